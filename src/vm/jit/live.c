// SPDX-License-Identifier: BSD-2-Clause
/* Which registers an instruction reads and writes, and which of them are needed later. */
#include "vm/jit/passes.h"

#include "vm/jit/plant.h"

/* r1 to rN */
static uint16_t arguments(unsigned int count)
{
	return ((1u << count) - 1) << 1;
}

uint16_t jit_reads(const struct jit_insn *insn)
{
	uint16_t reads =
		jit_bit(insn->a) | jit_bit(insn->b) | jit_bit(insn->base) | jit_bit(insn->index);

	switch (insn->op) {
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
		return reads | arguments(insn->size);
	case JIT_F64:
		return reads | arguments(2);
	case JIT_CMPXCHG:
		return reads | !PLANT(10);
	case JIT_EXIT:
		return reads | 1;
	default:
		return reads;
	}
}

uint16_t jit_writes(const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
	case JIT_ARRAY:
	case JIT_F64:
		return JIT_CLOBBERED;
	case JIT_CMPXCHG:
		return 1;
	case JIT_ATOMIC:
		return insn->flags & JIT_FLAG_FETCH && !PLANT(11) ? jit_bit(insn->b) : 0;
	default:
		return jit_bit(insn->dst);
	}
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
		uint16_t writes = jit_writes(insn);

		effect.reads = (effect.reads & ~writes) | jit_reads(insn);
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

void jit_mark_live(struct jit_function *function, const struct jit_graph *graph)
{
	for (uint32_t k = 0; k < graph->nblocks; k++) {
		const struct jit_block *block = &function->blocks[graph->forward[k]];
		uint16_t live = jit_live_out(function, graph->forward[k]);

		for (uint32_t i = block->count; i-- > 0;) {
			struct jit_insn *insn = &function->insns[block->first + i];

			insn->live = live;
			live = (live & ~jit_writes(insn)) | jit_reads(insn);
		}
	}
}
