// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sums of many parts are added up in the order in which the parts were computed: the last one comes
 * last, so that nothing else waits for it. Any order gives the same sum.
 */
#include "vm/jit/passes.h"

#define MAX_PARTS 8

/* d = d op part */
static bool adds_part(const struct jit_insn *insn)
{
	return (insn->op == JIT_ADD || insn->op == JIT_OR || insn->op == JIT_AND ||
		insn->op == JIT_XOR) &&
	       insn->a == insn->dst && insn->b != JIT_NONE && insn->b != insn->dst;
}

static bool same_sum(const struct jit_insn *a, const struct jit_insn *b)
{
	return a->op == b->op && a->width == b->width && a->dst == b->dst;
}

/* Swaps neighbours until the parts are in order; @written: of each register, in the block. */
static void sort_parts(struct jit_insn *insns, uint32_t n, const uint32_t *written)
{
	for (uint32_t i = 1; i < n; i++) {
		for (uint32_t k = i; k && written[insns[k - 1].b] > written[insns[k].b]; k--) {
			struct jit_insn insn = insns[k];

			insns[k] = insns[k - 1];
			insns[k - 1] = insn;
		}
	}
}

static void order_block(struct jit_function *function, const struct jit_block *block)
{
	struct jit_insn *insns = &function->insns[block->first];
	uint32_t written[ISA_REGISTERS] = { 0 };

	for (uint32_t i = 0; i < block->count; i++) {
		uint32_t n = 1;

		if (adds_part(&insns[i])) {
			while (n < MAX_PARTS && i + n < block->count && adds_part(&insns[i + n]) &&
			       same_sum(&insns[i], &insns[i + n]))
				n++;
			if (n > 1)
				sort_parts(&insns[i], n, written);
			i += n - 1;
		}
		for (uint16_t left = jit_write_set(&insns[i]); left; left &= left - 1)
			written[__builtin_ctz(left)] = i + 1;
	}
}

void jit_order_parts(struct jit_function *function, const struct jit_graph *graph)
{
	for (uint32_t k = 0; k < graph->nblocks; k++)
		order_block(function, &function->blocks[graph->forward[k]]);
}
