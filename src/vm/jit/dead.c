// SPDX-License-Identifier: BSD-2-Clause
/* Instructions without effect. A load may fault, which is one; those of the frame do not. */
#include "vm/jit/passes.h"

static bool in_frame(const struct jit_function *function, const struct jit_insn *insn,
		     unsigned int size)
{
	return insn->base == ISA_FRAME && insn->index == JIT_NONE &&
	       insn->off >= -(int64_t)function->frame && insn->off + (int64_t)size <= 0;
}

/* Does it nothing but write registers? */
static bool is_pure(const struct jit_function *function, const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_LOAD:
		return in_frame(function, insn, insn->size);
	case JIT_ARRAY:
		return insn->base == JIT_NONE || in_frame(function, insn, sizeof(uint32_t));
	case JIT_F64:
		return true;
	default:
		return insn->op >= JIT_ADD && insn->op <= JIT_CODE;
	}
}

void jit_delete(struct jit_insn *insn)
{
	*insn = (struct jit_insn){ .op = JIT_NOP,
				   .dst = JIT_NONE,
				   .a = JIT_NONE,
				   .b = JIT_NONE,
				   .base = JIT_NONE,
				   .index = JIT_NONE,
				   .insn = insn->insn };
}

void jit_remove_dead(struct jit_function *function, const struct jit_graph *graph)
{
	for (uint32_t k = graph->nblocks; k-- > 0;) {
		struct jit_block *block = &function->blocks[graph->forward[k]];
		uint16_t live = jit_live_out(function, graph->forward[k]);

		for (uint32_t i = block->count; i-- > 0;) {
			struct jit_insn *insn = &function->insns[block->first + i];
			uint16_t writes = jit_write_set(insn);

			if (!(writes & live) && is_pure(function, insn)) {
				jit_delete(insn);
				continue;
			}
			if (insn->op == JIT_MOV && insn->dst == insn->a && insn->width == 8) {
				jit_delete(insn);
				continue;
			}
			live = (live & ~writes) | jit_read_set(insn);
		}
		block->live_in = live;
	}
}
