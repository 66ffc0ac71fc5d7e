// SPDX-License-Identifier: BSD-2-Clause
/* Which registers an instruction reads and writes, and which of them are needed later. */
#include "vm/jit/passes.h"

uint16_t jit_reads(const struct jit_insn *insn)
{
	return jit_read_set(insn);
}

uint16_t jit_writes(const struct jit_insn *insn)
{
	return jit_write_set(insn);
}

struct effect {
	uint16_t reads, writes; /* reads: before a write */
};

size_t jit_liveness_size(const struct jit_function *function)
{
	return (size_t)function->nblocks * sizeof(struct effect) + 8;
}

static struct effect effect_of(const struct jit_function *function, const struct jit_block *block)
{
	struct effect effect = { 0 };

	for (uint32_t i = block->count; i-- > 0;) {
		const struct jit_insn *insn = &function->insns[block->first + i];
		uint16_t writes = jit_write_set(insn);

		effect.reads = (effect.reads & ~writes) | jit_read_set(insn);
		effect.writes |= writes;
	}
	return effect;
}

uint16_t jit_live_out(const struct jit_function *function, uint32_t block)
{
	uint32_t n = jit_nsuccessors(function, block);
	uint16_t live = 0;

	for (uint32_t i = 0; i < n; i++)
		live |= function->blocks[*jit_successor(function, block, i)].live_in;
	return live;
}

/* Against the flow, until nothing changes: as often as loops are nested, and once more. */
void jit_liveness(struct jit_function *function, const struct jit_graph *graph,
		  struct jit_arena arena)
{
	struct effect *effects = jit_take(&arena, function->nblocks, sizeof(*effects));
	bool changed = true;

	for (uint32_t i = 0; i < graph->nblocks; i++) {
		struct jit_block *block = &function->blocks[graph->forward[i]];

		effects[graph->forward[i]] = effect_of(function, block);
		block->live_in = 0;
	}
	while (changed) {
		changed = false;
		for (uint32_t i = graph->nblocks; i-- > 0;) {
			uint32_t at = graph->forward[i];
			struct jit_block *block = &function->blocks[at];
			uint16_t live = effects[at].reads |
					(jit_live_out(function, at) & ~effects[at].writes);

			changed |= live != block->live_in;
			block->live_in = live;
		}
	}
}

void jit_finish(struct jit_function *function)
{
	uint16_t reads = 0, writes = 0;

	function->calls = false;
	for (uint32_t k = 0; k < function->norder; k++) {
		struct jit_block *block = &function->blocks[function->order[k]];
		uint16_t live = jit_live_out(function, function->order[k]);
		uint32_t to = block->first + block->count;

		for (uint32_t i = to; i-- > block->first;) {
			struct jit_insn *insn = &function->insns[i];
			uint16_t read = jit_read_set(insn), written = jit_write_set(insn);

			if (insn->op == JIT_NOP)
				continue;
			insn->live = live;
			live = (live & ~written) | read;
			reads |= read;
			writes |= written;
			function->calls |= insn->op >= JIT_CALL_C && insn->op <= JIT_CALLX;
			if (--to != i)
				function->insns[to] = *insn;
		}
		block->count -= to - block->first;
		block->first = to;
	}
	function->used = reads | writes;
	function->written = writes;
	function->uses_frame = function->used & jit_bit(ISA_FRAME);
}
