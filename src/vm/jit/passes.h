/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the passes of the compiler: the graph of a function's blocks, and what each file does.
 * Everything lies in the function's scratch memory, which is valid until the next jit_scratch().
 */
#pragma once

#include "vm/jit/jit.h"
#include "vm/jit/plant.h"

#define JIT_CLOBBERED 0x3f /* r0 to r5: lost in a call */

/* Scratch memory, taken from the front. */
struct jit_arena {
	uint8_t *at, *end;
};

/* Empties the scratch memory and makes it at least @size bytes, of which the first @soon will be
 * written. 0 or -ENOMEM. */
int jit_scratch(struct jit_function *function, size_t size, size_t soon, struct jit_arena *ret);
/* @count elements of @size bytes, not cleared. The arena must have been made big enough. */
void *jit_take(struct jit_arena *arena, size_t count, size_t size);

/* Memory that will be written soon, all of it. */
void jit_populate(void *memory, size_t size);

/* Makes room for @ninsns more instructions and @nblocks more blocks. */
int jit_reserve(struct jit_function *function, size_t ninsns, size_t nblocks);
/* ... for more targets of switches. */
int jit_reserve_targets(struct jit_function *function, size_t ntargets);

/* 0 for JIT_NONE. */
static inline uint16_t jit_bit(uint8_t reg)
{
	return 1u << (reg & 31);
}

/* jit_reads() and jit_writes(), which every pass calls for every instruction. */
static inline uint16_t jit_read_set(const struct jit_insn *insn)
{
	uint16_t reads =
		jit_bit(insn->a) | jit_bit(insn->b) | jit_bit(insn->base) | jit_bit(insn->index);

	if (insn->op < JIT_CMPXCHG)
		return reads;
	switch (insn->op) {
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX: /* r1 to rN */
		return reads | ((1u << insn->size) - 1) << 1;
	case JIT_F64:
		return reads | 1 << 1 | 1 << 2;
	case JIT_EXIT:
	case JIT_CMPXCHG:
		return reads | !PLANT(10);
	default:
		return reads;
	}
}

static inline uint16_t jit_write_set(const struct jit_insn *insn)
{
	if (insn->op < JIT_ATOMIC)
		return jit_bit(insn->dst);
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
		return 0;
	}
}

static inline struct jit_insn *jit_end_of(const struct jit_function *function, uint32_t block)
{
	const struct jit_block *b = &function->blocks[block];

	return &function->insns[b->first + b->count - 1];
}

static inline bool jit_is_end(uint8_t op)
{
	return (op >= JIT_JUMP && op <= JIT_TRAP) || op == JIT_SWITCH;
}

/* The places where the successors of a block stand: next, taken, then a switch's. */
static inline uint32_t jit_nsuccessors(const struct jit_function *function, uint32_t block)
{
	const struct jit_insn *end = jit_end_of(function, block);

	switch (end->op) {
	case JIT_JUMP:
		return 1;
	case JIT_BRANCH:
		return 2;
	case JIT_SWITCH:
		return 1 + end->imm;
	default:
		return 0;
	}
}

static inline uint32_t *jit_successor(const struct jit_function *function, uint32_t block,
				      uint32_t i)
{
	struct jit_block *b = &function->blocks[block];
	const struct jit_insn *end;

	if (!i)
		return &b->next;
	end = jit_end_of(function, block);
	if (end->op == JIT_BRANCH)
		return &b->taken;
	return &function->targets[end->target + i - 1];
}

/* Blocks that can be reached, and how. Arrays are by number of the block where nothing else is said. */
struct jit_graph {
	uint32_t nblocks;        /* that can be reached */
	uint32_t *forward;       /* ... in reverse postorder: forward[0] is 0 */
	uint32_t *place;         /* of a block in forward; JIT_NOWHERE: cannot be reached */
	uint32_t *first_pred;    /* where its predecessors start in preds; one more at the end */
	uint32_t *preds;         /* of blocks that can be reached, once an edge */
	uint32_t *number, *last; /* in the order of the search, and the last one found from there */
	uint32_t *loop;   /* header of the innermost loop around it; of a header: the next outer */
	bool irreducible; /* a loop is entered elsewhere than at its header */
	bool *header;     /* an edge comes back to it */
};

/* blocks.c: makes it, and sets `reachable` and `depth` of the blocks. */
size_t jit_graph_size(const struct jit_function *function);
void jit_graph_make(struct jit_function *function, struct jit_arena *arena, struct jit_graph *ret);
/* loops.c: its second half. */
void jit_find_loops(struct jit_function *function, struct jit_arena arena, struct jit_graph *graph);
/* Registers that blocks write, for a header: that its loop writes. */
uint16_t *jit_find_writes(const struct jit_function *function, const struct jit_graph *graph,
			  struct jit_arena *arena);

/* merge.c: whether the graph has changed. @arena: as jit_liveness(). */
bool jit_merge_blocks(struct jit_function *function, const struct jit_graph *graph,
		      struct jit_arena arena);

/* live.c: sets live_in of the blocks. @arena: jit_liveness_size(). */
size_t jit_liveness_size(const struct jit_function *function);
void jit_liveness(struct jit_function *function, const struct jit_graph *graph,
		  struct jit_arena arena);
uint16_t jit_live_out(const struct jit_function *function, uint32_t block);
/* ... then, when the order is there: `live` of all instructions, without those that were deleted,
 * and what the function uses and writes as a whole. */
void jit_finish(struct jit_function *function);

/* copy.c: copies and numbers, and inlined look-ups. True: a branch is gone, the graph is out of date. */
size_t jit_copies_size(const struct jit_function *function);
bool jit_copies(struct jit_function *function, const struct jit_graph *graph,
		struct jit_arena arena);

/* dead.c: needs live_in, and keeps it. */
void jit_remove_dead(struct jit_function *function, const struct jit_graph *graph);
void jit_remove_dead_stores(struct jit_function *function, const struct jit_graph *graph);
void jit_delete(struct jit_insn *insn);

/* sink.c: needs live_in, and keeps it. 1: there are new blocks, the graph is out of date; 0; -ENOMEM. */
int jit_sink(struct jit_function *function, const struct jit_graph *graph);

/* counter.c: likewise. @arena: jit_copies_size(). */
int jit_drop_counters(struct jit_function *function, const struct jit_graph *graph,
		      struct jit_arena arena);

/* order.c */
void jit_order_parts(struct jit_function *function, const struct jit_graph *graph);

/* fold.c: `a sub b` is `b turned a`. */
uint8_t jit_turned(uint8_t condition);

/* address.c, modify.c: need live_in. */
void jit_fold_addresses(struct jit_function *function, const struct jit_graph *graph);
/* True: something has changed. */
bool jit_fuse_memory(struct jit_function *function, const struct jit_graph *graph);

/* thread.c: true: the graph is out of date. */
bool jit_thread_jumps(struct jit_function *function, const struct jit_graph *graph);

/* switch.c: 1: tables have taken the place of branches, the graph is out of date; 0; -ENOMEM. */
int jit_make_switches(struct jit_function *function, const struct jit_graph *graph,
		      struct jit_arena arena);

/* layout.c: sets order, turns branches round. align.c: sets `align`. */
size_t jit_layout_size(const struct jit_function *function);
void jit_lay_out(struct jit_function *function, const struct jit_graph *graph,
		 struct jit_arena arena);
size_t jit_align_size(const struct jit_function *function);
void jit_align_loops(struct jit_function *function, const struct jit_graph *graph,
		     struct jit_arena arena);

/* checks.c: checked mode: leaves out and joins checks, numbers the others and describes them to the
 * vm. Behind the passes that find common bases (copy, address), before those that look at loads and
 * stores together (modify). 0 or -ENOMEM. */
int jit_checks(struct jit_function *function, const struct jit_graph *graph);

/* The function (of those that are no alias) whose code contains an instruction. */
static inline uint32_t jit_function_at(const struct vm *vm, uint32_t insn)
{
	uint32_t low = 0, high = vm->nordered;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (vm->functions[vm->order[middle]].first <= insn)
			low = middle;
		else
			high = middle;
	}
	return vm->order[low];
}
