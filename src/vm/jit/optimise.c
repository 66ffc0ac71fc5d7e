// SPDX-License-Identifier: BSD-2-Clause
/* The order of the passes. */
#include "vm/jit/values.h"

#include <errno.h>

/*
 * Registers that may be read before anything wrote them are zero at the start, as in the
 * interpreter; lower.c has left room for that. r1 to r5 are arguments, r10 is set up.
 */
static void clear_unset(struct jit_function *function)
{
	struct jit_block *entry = &function->blocks[0];
	uint16_t live = entry->live_in;
	uint32_t at = entry->first;

	for (uint8_t reg = 0; reg < ISA_FRAME; reg++) {
		struct jit_insn *insn = &function->insns[at];

		if ((reg >= 1 && reg <= VM_MAX_ARGUMENTS) || !(live & jit_bit(reg)))
			continue;
		*insn = (struct jit_insn){ .op = JIT_MOV,
					   .width = 8,
					   .dst = reg,
					   .a = JIT_NONE,
					   .b = JIT_NONE,
					   .base = JIT_NONE,
					   .index = JIT_NONE,
					   .insn = insn->insn };
		entry->live_in &= ~jit_bit(reg);
		at++;
	}
}

/* Scratch memory of all passes: the graph, and what one of them needs besides. */
static int make_scratch(struct jit_function *function, struct jit_arena *ret)
{
	const size_t sizes[] = { jit_bits_size(function), jit_liveness_size(function),
				 jit_layout_size(function), jit_align_size(function) };
	const size_t graph = jit_graph_size(function);
	size_t soon = 0, most = jit_copies_size(function); /* little of which is used as a rule */

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		soon = sizes[i] > soon ? sizes[i] : soon;
	most = soon > most ? soon : most;
	return jit_scratch(function, graph + most, graph + soon, ret);
}

/*
 * The passes that change instructions. Registers are live at the start of blocks what they were
 * before, or less: it is found out once. 1: the graph is out of date.
 */
static int change_insns(struct jit_function *function, struct jit_graph *graph,
			struct jit_arena all)
{
	struct jit_arena arena = all;

	jit_graph_make(function, &arena, graph);
	if (function->passes & (VM_PASS_COPY | VM_PASS_INLINE) &&
	    jit_copies(function, graph, arena)) {
		arena = all;
		jit_graph_make(function, &arena, graph);
	}
	if (function->passes & VM_PASS_COPY && jit_merge_blocks(function, graph, arena)) {
		arena = all;
		jit_graph_make(function, &arena, graph);
	}
	jit_liveness(function, graph, arena);
	if (function->passes & VM_PASS_DEAD) {
		jit_remove_dead(function, graph);
		jit_remove_dead_stores(function, graph);
	}
	if (function->passes & VM_PASS_ADDRESS)
		jit_fold_addresses(function, graph);
	if (jit_checks(function, graph))
		return -ENOMEM;
	if (function->passes & VM_PASS_MODIFY && jit_fuse_memory(function, graph) &&
	    function->passes & VM_PASS_ADDRESS) /* addresses have fewer readers */
		jit_fold_addresses(function, graph);
	if (function->passes & VM_PASS_COPY)
		jit_order_parts(function, graph);
	return function->passes & (VM_PASS_COPY | VM_PASS_DEAD) ? jit_sink(function, graph) : 0;
}

/* The graph again, after blocks were added. 0 or -ENOMEM. */
static int make_again(struct jit_function *function, struct jit_graph *graph, struct jit_arena *all,
		      struct jit_arena *arena)
{
	if (make_scratch(function, all))
		return -ENOMEM;
	*arena = *all;
	jit_graph_make(function, arena, graph);
	return 0;
}

static void program_order(struct jit_function *function)
{
	function->norder = 0;
	for (uint32_t i = 0; i < function->nblocks; i++)
		if (function->blocks[i].reachable)
			function->order[function->norder++] = i;
}

int jit_optimise(struct jit_function *function)
{
	struct jit_graph graph;
	struct jit_arena all, arena;
	int stale;

	if (make_scratch(function, &all))
		return -ENOMEM;
	stale = change_insns(function, &graph, all);
	arena = all;
	arena.at += jit_graph_size(function); /* the graph stays */
	if (stale < 0 || (stale && make_again(function, &graph, &all, &arena)))
		return -ENOMEM;
	if (function->passes & VM_PASS_DEAD) {
		stale = jit_drop_counters(function, &graph, arena);
		if (stale < 0 || (stale && make_again(function, &graph, &all, &arena)))
			return -ENOMEM;
	}
	if (function->passes & VM_PASS_LAYOUT && jit_thread_jumps(function, &graph)) {
		arena = all;
		jit_graph_make(function, &arena, &graph);
	}
	if (function->passes & VM_PASS_SWITCH) {
		stale = jit_make_switches(function, &graph, arena);
		if (stale < 0 || (stale && make_again(function, &graph, &all, &arena)))
			return -ENOMEM;
	}
	if (function->passes & VM_PASS_LAYOUT)
		jit_lay_out(function, &graph, arena);
	else
		program_order(function);
	if (function->passes & VM_PASS_ALIGN)
		jit_align_loops(function, &graph, arena);
	clear_unset(function);
	jit_finish(function);
	return 0;
}
