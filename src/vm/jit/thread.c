// SPDX-License-Identifier: BSD-2-Clause
/* Jumps go where the jumps that they lead to go. */
#include "vm/jit/passes.h"

#define CHAIN_AT_MOST 64 /* blocks: an endless loop may be of empty ones alone */

static bool is_empty(const struct jit_function *function, uint32_t at)
{
	const struct jit_block *block = &function->blocks[at];

	if (jit_end_of(function, at)->op != JIT_JUMP)
		return false;
	/* What a budget pays must stay. */
	if (block->cost && function->vm->options.instruction_budget)
		return false;
	for (uint32_t i = 0; i + 1 < block->count; i++)
		if (function->insns[block->first + i].op != JIT_NOP)
			return false;
	return true;
}

static uint32_t destination(const struct jit_function *function, uint32_t block)
{
	for (int i = 0; i < CHAIN_AT_MOST && is_empty(function, block); i++)
		block = function->blocks[block].next;
	return block;
}

bool jit_thread_jumps(struct jit_function *function, const struct jit_graph *graph)
{
	bool changed = false;

	for (uint32_t k = 0; k < graph->nblocks; k++) {
		uint32_t at = graph->forward[k], n = jit_nsuccessors(function, at);
		struct jit_insn *end = jit_end_of(function, at);
		struct jit_block *block = &function->blocks[at];

		for (uint32_t i = 0; i < n; i++) {
			uint32_t *to = jit_successor(function, at, i), last;

			last = destination(function, *to);
			changed |= last != *to;
			*to = last;
		}
		if (end->op != JIT_BRANCH || block->taken != block->next || end->base != JIT_NONE)
			continue;
		end->op = JIT_JUMP;
		end->a = end->b = JIT_NONE;
		end->imm = 0;
		block->taken = JIT_NOWHERE;
		changed = true;
	}
	return changed;
}
