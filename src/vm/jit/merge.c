// SPDX-License-Identifier: BSD-2-Clause
/*
 * A block that only one other leads to, and that only leads to it, becomes one with it: when a
 * branch has turned out to go one way, what follows it is seen together with what was before. Only
 * blocks whose instructions lie one behind the other, as they do where a branch falls through.
 */
#include "vm/jit/passes.h"

#include <string.h>

/* Leads block @at to one that nothing else leads to, and that lies behind it? */
static bool can_merge(const struct jit_function *function, const uint32_t *ways, uint32_t at)
{
	const struct jit_block *block = &function->blocks[at];
	const uint32_t next = block->next;

	return jit_end_of(function, at)->op == JIT_JUMP && next && next != at && ways[next] == 1 &&
	       function->blocks[next].first == block->first + block->count;
}

static void merge(struct jit_function *function, uint32_t at)
{
	struct jit_block *block = &function->blocks[at];
	struct jit_block *next = &function->blocks[block->next];

	jit_end_of(function, at)->op = JIT_NOP;
	block->count += next->count;
	block->cost += next->cost;
	block->taken = next->taken;
	block->next = next->next;
	next->reachable = false;
}

bool jit_merge_blocks(struct jit_function *function, const struct jit_graph *graph,
		      struct jit_arena arena)
{
	uint32_t *ways = jit_take(&arena, function->nblocks, sizeof(*ways));
	bool changed = false;

	memset(ways, 0, function->nblocks * sizeof(*ways));
	for (uint32_t k = 0; k < graph->nblocks; k++) {
		const uint32_t at = graph->forward[k], n = jit_nsuccessors(function, at);

		for (uint32_t i = 0; i < n; i++)
			ways[*jit_successor(function, at, i)]++;
	}
	for (uint32_t k = 0; k < graph->nblocks; k++) {
		const uint32_t at = graph->forward[k];

		if (!function->blocks[at].reachable)
			continue;
		for (; can_merge(function, ways, at); changed = true)
			merge(function, at);
	}
	return changed;
}
