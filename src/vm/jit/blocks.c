// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/passes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POPULATE_LEAST (4ul << 12) /* bytes: less is not worth the call */

/*
 * A page that is touched for the first time costs a fault, and of a big function that is most of the
 * time: the kernel makes many at once for less. Where it cannot, it does not matter.
 */
void jit_populate(void *memory, size_t size)
{
#ifdef MADV_POPULATE_WRITE
	const uintptr_t page = sysconf(_SC_PAGESIZE);
	const uintptr_t start = ((uintptr_t)memory + page - 1) & -page;
	const uintptr_t end = ((uintptr_t)memory + size) & -page;

	if (size >= POPULATE_LEAST && end > start)
		(void)madvise((void *)start, end - start, MADV_POPULATE_WRITE);
#endif
}

int jit_scratch(struct jit_function *function, size_t size, size_t soon, struct jit_arena *ret)
{
	if (size > function->scratch_size) {
		void *scratch;

		size += size / 2; /* the next function may be bigger */
		scratch = malloc(size);
		if (!scratch)
			return err_nomem(function->err);
		free(function->scratch);
		jit_populate(scratch, soon);
		function->scratch = scratch;
		function->scratch_size = size;
	}
	ret->at = function->scratch;
	ret->end = ret->at + function->scratch_size;
	return 0;
}

void *jit_take(struct jit_arena *arena, size_t count, size_t size)
{
	void *ret = arena->at;

	size = (count * size + 7) & ~(size_t)7;
	assert(size <= (size_t)(arena->end - arena->at));
	arena->at += size;
	return ret;
}

static int grow(void *array_pointer, uint32_t *capacity, size_t wanted, size_t element)
{
	void **array = array_pointer;
	void *bigger;

	if (wanted <= *capacity)
		return 0;
	wanted += wanted / 2;
	bigger = realloc(*array, wanted * element);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*capacity = wanted;
	return 0;
}

int jit_reserve(struct jit_function *function, size_t ninsns, size_t nblocks)
{
	uint32_t for_order = function->blocks_capacity;

	if (grow(&function->insns, &function->insns_capacity, function->ninsns + ninsns,
		 sizeof(*function->insns)) ||
	    grow(&function->order, &for_order, function->nblocks + nblocks,
		 sizeof(*function->order)) ||
	    grow(&function->blocks, &function->blocks_capacity, function->nblocks + nblocks,
		 sizeof(*function->blocks)))
		return err_nomem(function->err);
	return 0;
}

int jit_reserve_targets(struct jit_function *function, size_t ntargets)
{
	return grow(&function->targets, &function->targets_capacity, function->ntargets + ntargets,
		    sizeof(*function->targets))
		       ? err_nomem(function->err)
		       : 0;
}

void jit_release(struct jit_function *function)
{
	free(function->insns);
	free(function->blocks);
	free(function->order);
	free(function->targets);
	free(function->scratch);
	function->insns = NULL;
	function->blocks = NULL;
	function->order = function->targets = NULL;
	function->scratch = NULL;
	function->insns_capacity = function->blocks_capacity = function->targets_capacity = 0;
	function->scratch_size = 0;
}

size_t jit_graph_size(const struct jit_function *function)
{
	size_t n = function->nblocks + 1, edges = 2 * n + function->ntargets;

	return n * (10 * sizeof(uint32_t) + 8) + edges * sizeof(uint32_t) + 256;
}

/* Depth first, without recursion: `done` counts the successors of a block that were looked at. */
static void search(struct jit_function *function, struct jit_arena arena, struct jit_graph *graph)
{
	uint32_t n = function->nblocks, height = 0, end = n, number = 0;
	uint32_t *stack = jit_take(&arena, n, sizeof(*stack));
	uint32_t *done = jit_take(&arena, n, sizeof(*done));

	for (uint32_t i = 0; i < n; i++)
		function->blocks[i].reachable = false;
	function->blocks[0].reachable = true;
	graph->number[0] = number++;
	stack[height] = 0;
	done[height++] = 0;
	while (height) {
		uint32_t block = stack[height - 1], to;

		if (done[height - 1] == jit_nsuccessors(function, block)) {
			graph->forward[--end] = block;
			graph->last[block] = number - 1;
			height--;
			continue;
		}
		to = *jit_successor(function, block, done[height - 1]++);
		if (!function->blocks[to].reachable) {
			function->blocks[to].reachable = true;
			graph->number[to] = number++;
			stack[height] = to;
			done[height++] = 0;
		}
	}
	graph->nblocks = n - end;
	graph->forward += end;
}

static void find_preds(struct jit_function *function, struct jit_graph *graph)
{
	uint32_t *first = graph->first_pred, sum = 0;

	memset(first, 0, (function->nblocks + 1) * sizeof(*first));
	for (uint32_t i = 0; i < graph->nblocks; i++) {
		uint32_t block = graph->forward[i], n = jit_nsuccessors(function, block);

		for (uint32_t k = 0; k < n; k++)
			first[*jit_successor(function, block, k)]++;
	}
	for (uint32_t i = 0; i <= function->nblocks; i++) {
		sum += first[i];
		first[i] = sum;
	}
	for (uint32_t i = graph->nblocks; i-- > 0;) {
		uint32_t block = graph->forward[i], n = jit_nsuccessors(function, block);

		for (uint32_t k = 0; k < n; k++)
			graph->preds[--first[*jit_successor(function, block, k)]] = block;
	}
}

void jit_graph_make(struct jit_function *function, struct jit_arena *arena, struct jit_graph *ret)
{
	uint32_t n = function->nblocks;

	ret->forward = jit_take(arena, n, sizeof(uint32_t));
	ret->place = jit_take(arena, n, sizeof(uint32_t));
	ret->first_pred = jit_take(arena, n + 1, sizeof(uint32_t));
	ret->preds = jit_take(arena, 2 * (size_t)n + function->ntargets, sizeof(uint32_t));
	ret->number = jit_take(arena, n, sizeof(uint32_t));
	ret->last = jit_take(arena, n, sizeof(uint32_t));
	ret->loop = jit_take(arena, n, sizeof(uint32_t));
	ret->header = jit_take(arena, n, sizeof(bool));
	search(function, *arena, ret);
	memset(ret->place, 0xff, n * sizeof(*ret->place)); /* JIT_NOWHERE */
	for (uint32_t i = 0; i < ret->nblocks; i++)
		ret->place[ret->forward[i]] = i;
	find_preds(function, ret);
	jit_find_loops(function, *arena, ret);
}
