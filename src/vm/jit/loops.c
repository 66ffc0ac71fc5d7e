// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loops, innermost first, each collapsed into its header (Tarjan; Havlak, "Nesting of reducible and
 * irreducible loops"): near linear. Where a loop is entered elsewhere than at its header nothing is
 * claimed about what the loops of the function leave alone.
 */
#include "vm/jit/passes.h"

#include <string.h>

struct loops {
	struct jit_function *function;
	struct jit_graph *graph;
	uint32_t *in;    /* block that a block was collapsed into: union-find with path halving */
	uint32_t *queue; /* members of the loop that is collected */
	uint32_t nqueue;
};

static uint32_t find(struct loops *l, uint32_t block)
{
	while (l->in[block] != block) {
		l->in[block] = l->in[l->in[block]];
		block = l->in[block];
	}
	return block;
}

/* Was @block found from @from? */
static bool descends(const struct jit_graph *graph, uint32_t block, uint32_t from)
{
	return graph->number[block] >= graph->number[from] &&
	       graph->number[block] <= graph->last[from];
}

static void add(struct loops *l, uint32_t header, uint32_t block)
{
	block = find(l, block);
	if (block == header)
		return;
	l->in[block] = header;
	l->graph->loop[block] = header;
	l->queue[l->nqueue++] = block;
}

/* Collects what reaches the header again without passing it. */
static void collect(struct loops *l, uint32_t header)
{
	struct jit_graph *graph = l->graph;

	l->nqueue = 0;
	for (uint32_t i = graph->first_pred[header]; i < graph->first_pred[header + 1]; i++) {
		if (!descends(graph, graph->preds[i], header))
			continue;
		graph->header[header] = true;
		add(l, header, graph->preds[i]);
	}
	for (uint32_t k = 0; k < l->nqueue; k++) {
		uint32_t block = l->queue[k];

		for (uint32_t i = graph->first_pred[block]; i < graph->first_pred[block + 1]; i++) {
			uint32_t pred = graph->preds[i];

			if (descends(graph, pred, block))
				continue; /* back to the header of an inner loop */
			if (!descends(graph, find(l, pred), header))
				graph->irreducible = true;
			else
				add(l, header, pred);
		}
	}
}

void jit_find_loops(struct jit_function *function, struct jit_arena arena, struct jit_graph *graph)
{
	struct loops l = { .function = function, .graph = graph };
	uint32_t n = function->nblocks;
	uint32_t *by_number = jit_take(&arena, n, sizeof(*by_number));

	l.in = jit_take(&arena, n, sizeof(*l.in));
	l.queue = jit_take(&arena, n, sizeof(*l.queue));
	graph->irreducible = false;
	memset(graph->header, 0, n * sizeof(*graph->header));
	memset(graph->loop, 0xff, n * sizeof(*graph->loop)); /* JIT_NOWHERE */
	for (uint32_t i = 0; i < graph->nblocks; i++) {
		uint32_t block = graph->forward[i];

		l.in[block] = block;
		by_number[graph->number[block]] = block;
	}
	for (uint32_t i = graph->nblocks; i-- > 0;)
		collect(&l, by_number[i]);
	for (uint32_t i = 0; i < graph->nblocks; i++) { /* headers come before their members */
		uint32_t block = by_number[i], loop = graph->loop[block];

		function->blocks[block].depth =
			(loop == JIT_NOWHERE ? 0 : function->blocks[loop].depth) +
			graph->header[block];
	}
}

static uint16_t writes_of(const struct jit_function *function, uint32_t block)
{
	const struct jit_block *b = &function->blocks[block];
	uint16_t writes = 0;

	for (uint32_t i = 0; i < b->count; i++)
		writes |= jit_write_set(&function->insns[b->first + i]);
	return writes;
}

uint16_t *jit_find_writes(const struct jit_function *function, const struct jit_graph *graph,
			  struct jit_arena *arena)
{
	uint16_t *writes = jit_take(arena, function->nblocks, sizeof(*writes));

	for (uint32_t i = 0; i < graph->nblocks; i++)
		writes[graph->forward[i]] = writes_of(function, graph->forward[i]);
	/* Members come behind their headers, inner headers too. */
	for (uint32_t i = graph->nblocks; i-- > 0;) {
		uint32_t block = graph->forward[i], loop = graph->loop[block];

		if (graph->irreducible && graph->header[block])
			writes[block] = (1u << ISA_FRAME) - 1;
		if (loop != JIT_NOWHERE)
			writes[loop] |= writes[block];
	}
	return writes;
}
