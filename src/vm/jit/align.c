// SPDX-License-Identifier: BSD-2-Clause
/*
 * Short inner loops start where few lines of the instruction cache hold them. How long they will
 * be is a guess: that of x86-64, where it matters more.
 */
#include "vm/jit/passes.h"

#include <string.h>

#define LINE    64
#define TOO_BIG 256 /* bytes: of no use any more */

/* Bytes of code. */
static unsigned int guess(const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_NOP:
	case JIT_CHECK:
		return 0;
	case JIT_BRANCH:
		return 6;
	case JIT_JUMP:
		return 0;
	case JIT_DIV:
	case JIT_MOD:
		return 24;
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
		return 5;
	case JIT_ARRAY:
		return 24;
	case JIT_SWITCH:
		return 20;
	default:
		return insn->a != JIT_NONE && insn->a != insn->dst && insn->b != JIT_NONE ? 6 : 4;
	}
}

struct loop {
	uint32_t top;  /* place of its first block, plus one; 0: none yet */
	uint32_t last; /* ... of its last */
	uint32_t bytes, blocks;
	bool outer; /* another one is inside */
};

size_t jit_align_size(const struct jit_function *function)
{
	return function->nblocks * sizeof(struct loop) + 8;
}

static void gather(const struct jit_function *function, const struct jit_graph *graph,
		   struct loop *loops)
{
	for (uint32_t i = 0; i < function->norder; i++) {
		uint32_t at = function->order[i];
		const struct jit_block *block = &function->blocks[at];
		uint32_t header = graph->header[at] ? at : graph->loop[at];
		struct loop *loop;

		if (graph->header[at] && graph->loop[at] != JIT_NOWHERE)
			loops[graph->loop[at]].outer = true;
		if (header == JIT_NOWHERE)
			continue;
		loop = &loops[header];
		if (!loop->top)
			loop->top = i + 1;
		loop->last = i + 1;
		loop->blocks++;
		for (uint32_t k = 0; k < block->count; k++)
			loop->bytes += guess(&function->insns[block->first + k]);
	}
}

void jit_align_loops(struct jit_function *function, const struct jit_graph *graph,
		     struct jit_arena arena)
{
	struct loop *loops = jit_take(&arena, function->nblocks, sizeof(*loops));

	memset(loops, 0, function->nblocks * sizeof(*loops));
	gather(function, graph, loops);
	for (uint32_t i = 0; i < function->norder; i++) {
		const struct loop *loop = &loops[function->order[i]];
		struct jit_block *top;

		if (!loop->top || loop->outer || loop->bytes > TOO_BIG ||
		    loop->last - loop->top + 1 != loop->blocks)
			continue;
		top = &function->blocks[function->order[loop->top - 1]];
		top->align = 16;
		while (top->align < loop->bytes && top->align < LINE)
			top->align *= 2;
		if (loop->bytes > LINE)
			top->align = LINE / 2;
	}
}
