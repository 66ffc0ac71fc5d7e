// SPDX-License-Identifier: BSD-2-Clause
/* The order of the passes, and what the back ends want to know of a function as a whole. */
#include "vm/jit/passes.h"

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

/* Takes out what was deleted. */
static void close_gaps(struct jit_function *function)
{
	for (uint32_t k = 0; k < function->norder; k++) {
		struct jit_block *block = &function->blocks[function->order[k]];
		struct jit_insn *insns = &function->insns[block->first];
		uint32_t kept = 0;

		for (uint32_t i = 0; i < block->count; i++)
			if (insns[i].op != JIT_NOP)
				insns[kept++] = insns[i];
		block->count = kept;
	}
}

static bool calls(uint8_t op)
{
	return op == JIT_CALL_C || op == JIT_CALL_LOCAL || op == JIT_CALLX;
}

static void summarise(struct jit_function *function)
{
	uint16_t reads = 0, writes = 0;

	function->calls = false;
	for (uint32_t k = 0; k < function->norder; k++) {
		const struct jit_block *block = &function->blocks[function->order[k]];

		for (uint32_t i = 0; i < block->count; i++) {
			const struct jit_insn *insn = &function->insns[block->first + i];

			reads |= jit_reads(insn);
			writes |= jit_writes(insn);
			function->calls |= calls(insn->op);
		}
	}
	function->used = reads | writes;
	function->written = writes;
	function->uses_frame = function->used & jit_bit(ISA_FRAME);
}

static size_t scratch_size(const struct jit_function *function)
{
	const size_t sizes[] = { jit_copies_size(function), jit_liveness_size(function),
				 jit_layout_size(function), jit_align_size(function) };
	size_t most = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] > most)
			most = sizes[i];
	return jit_graph_size(function) + most;
}

/* The passes that change instructions. */
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
	if (function->passes & VM_PASS_DEAD) {
		jit_liveness(function, graph, arena);
		jit_remove_dead(function, graph);
	}
	if (function->passes & VM_PASS_ADDRESS) {
		jit_liveness(function, graph, arena);
		jit_fold_addresses(function, graph);
	}
	if (jit_checks(function, graph))
		return -ENOMEM;
	if (function->passes & VM_PASS_MODIFY) {
		jit_liveness(function, graph, arena);
		jit_fuse_memory(function, graph);
		if (function->passes & VM_PASS_ADDRESS) /* fewer readers */
			jit_fold_addresses(function, graph);
	}
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

	if (jit_scratch(function, scratch_size(function), &all) ||
	    change_insns(function, &graph, all))
		return -ENOMEM;
	if (function->passes & VM_PASS_LAYOUT)
		jit_thread_jumps(function, &graph);
	arena = all;
	jit_graph_make(function, &arena, &graph);
	if (function->passes & VM_PASS_LAYOUT)
		jit_lay_out(function, &graph, arena);
	else
		program_order(function);
	if (function->passes & VM_PASS_ALIGN)
		jit_align_loops(function, &graph, arena);
	jit_liveness(function, &graph, arena);
	clear_unset(function);
	close_gaps(function);
	jit_mark_live(function, &graph);
	summarise(function);
	return 0;
}
