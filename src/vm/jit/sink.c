// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a loop computes only for those who come after it moves out of it: onto the ways by which the
 * loop is left, which get a block of their own. Moves at the end of a loop that only rename the
 * result of its last steps go away, too: the steps write where the next round reads.
 */
#include "vm/jit/passes.h"

#include <errno.h>

#define MAX_EDGES  64 /* new blocks of one function */
#define MAX_SUNK   4  /* instructions on one way */
#define LOOK_BACK  24 /* instructions: keeps the pass linear */
#define INSN_SPACE (MAX_EDGES * (MAX_SUNK + 1))

struct sink {
	struct jit_function *function;
	const struct jit_graph *graph;
	uint32_t room; /* blocks that may still be made */
};

static bool is_computation(const struct jit_insn *insn)
{
	return insn->op >= JIT_ADD && insn->op <= JIT_CODE;
}

/* Puts instructions on a way out of a block. */
static void put_on_edge(struct sink *s, uint32_t *edge, const struct jit_insn *insns, uint32_t n,
			uint32_t insn)
{
	struct jit_function *function = s->function;
	struct jit_block *block = &function->blocks[function->nblocks];
	uint16_t live = function->blocks[*edge].live_in;

	*block = (struct jit_block){ .first = function->ninsns,
				     .count = n + 1,
				     .taken = JIT_NOWHERE,
				     .next = *edge,
				     .depth = function->blocks[*edge].depth,
				     .reachable = true };
	for (uint32_t i = 0; i < n; i++)
		function->insns[function->ninsns++] = insns[i];
	function->insns[function->ninsns++] = (struct jit_insn){ .op = JIT_JUMP,
								 .width = 8,
								 .dst = JIT_NONE,
								 .a = JIT_NONE,
								 .b = JIT_NONE,
								 .base = JIT_NONE,
								 .index = JIT_NONE,
								 .insn = insn };
	for (uint32_t i = n; i-- > 0;)
		live = (live & ~jit_write_set(&insns[i])) | jit_read_set(&insns[i]);
	block->live_in = live;
	*edge = function->nblocks++;
	s->room--;
}

/* The way out of the loop of a block that ends in a branch, or NULL. */
static uint32_t *way_out(const struct sink *s, uint32_t at)
{
	const struct jit_function *function = s->function;
	struct jit_block *block = &function->blocks[at];
	uint32_t next, taken;

	if (jit_end_of(function, at)->op != JIT_BRANCH || !block->depth)
		return NULL;
	next = function->blocks[block->next].depth;
	taken = function->blocks[block->taken].depth;
	if (next < block->depth && taken >= block->depth)
		return &block->next;
	return taken < block->depth && next >= block->depth ? &block->taken : NULL;
}

static void sink_block(struct sink *s, uint32_t at)
{
	struct jit_function *function = s->function;
	struct jit_block *block = &function->blocks[at];
	uint32_t *out = way_out(s, at), n = 0, kept;
	struct jit_insn sunk[MAX_SUNK];
	uint16_t read = 0, written = 0, outside, inside;

	if (!out)
		return;
	outside = function->blocks[*out].live_in;
	kept = out == &block->next ? block->taken : block->next;
	inside = function->blocks[kept].live_in;
	for (uint32_t i = block->count; i-- > 0 && n < MAX_SUNK && block->count - i < LOOK_BACK;) {
		struct jit_insn *insn = &function->insns[block->first + i];
		uint16_t reads = jit_read_set(insn), writes = jit_write_set(insn);

		if (is_computation(insn) && !(writes & (read | written | inside)) &&
		    writes & outside && !(reads & written)) {
			sunk[MAX_SUNK - ++n] = *insn;
			/* What it reads must stay as it is, and nobody may sink past it. */
			read |= reads;
			written |= writes;
			jit_delete(insn);
			continue;
		}
		read |= reads;
		written |= writes;
	}
	if (n)
		put_on_edge(s, out, &sunk[MAX_SUNK - n], n,
			    function->insns[block->first + block->count - 1].insn);
}

/*
 * Can what the move at @at copies be made in its destination right away? Goes back along the steps
 * that made it (s = s op x), up to one that starts it, or that reads the destination. Returns the
 * first of them; JIT_NOWHERE: no.
 */
static uint32_t start_of(const struct jit_function *function, uint32_t first, uint32_t at)
{
	uint8_t to = function->insns[at].dst, from = function->insns[at].a;

	for (uint32_t i = at; i-- > first && at - i < LOOK_BACK;) {
		const struct jit_insn *insn = &function->insns[i];
		uint16_t reads = jit_read_set(insn), writes = jit_write_set(insn);

		if (writes & jit_bit(to))
			return JIT_NOWHERE;
		if (writes & jit_bit(from)) {
			if (insn->dst != from || writes != jit_bit(from))
				return JIT_NOWHERE;
			if (reads & jit_bit(to) || !(reads & jit_bit(from)))
				return i;
			continue;
		}
		if (reads & jit_bit(to))
			return JIT_NOWHERE;
	}
	return JIT_NOWHERE;
}

static void rename_reads(struct jit_insn *insn, uint8_t from, uint8_t to)
{
	insn->a = insn->a == from ? to : insn->a;
	insn->b = insn->b == from ? to : insn->b;
	insn->base = insn->base == from ? to : insn->base;
	insn->index = insn->index == from ? to : insn->index;
}

/* Reads that are not written out: arguments of calls, r0 of an exit or a comparing exchange. */
static bool can_rename(const struct jit_insn *insn, uint8_t from)
{
	struct jit_insn rest = *insn;

	rest.a = rest.b = rest.base = rest.index = JIT_NONE;
	if (jit_read_set(&rest) & jit_bit(from))
		return false;
	return insn->op != JIT_ATOMIC || insn->b != from;
}

/* Does nobody read the register behind @at? */
static bool dies(const struct jit_function *function, uint32_t at, uint32_t end, uint8_t reg,
		 uint16_t live_out)
{
	for (uint32_t i = at + 1; i < end; i++) {
		const struct jit_insn *insn = &function->insns[i];

		if (jit_read_set(insn) & jit_bit(reg))
			return false;
		if (jit_write_set(insn) & jit_bit(reg))
			return true;
	}
	return !(live_out & jit_bit(reg));
}

static bool writes_between(const struct jit_function *function, uint32_t at, uint32_t end,
			   uint8_t reg)
{
	for (uint32_t i = at + 1; i < end; i++)
		if (jit_write_set(&function->insns[i]) & jit_bit(reg))
			return true;
	return false;
}

static void merge_move(struct sink *s, uint32_t block_at, uint32_t at)
{
	struct jit_function *function = s->function;
	struct jit_block *block = &function->blocks[block_at];
	struct jit_insn *insns = function->insns, *move = &insns[at], back = *move;
	uint32_t end = block->first + block->count, start, *out = NULL;
	uint16_t live = jit_live_out(function, block_at);
	uint8_t from = move->a, to = move->dst;

	if (move->op != JIT_MOV || move->width != 8 || from == JIT_NONE || from == to ||
	    from == ISA_FRAME)
		return;
	if (!dies(function, at, end, from, live)) {
		/* ... but on the way out of the loop, which can have it back. */
		out = s->room ? way_out(s, block_at) : NULL;
		if (!out)
			return;
		live = function->blocks[out == &block->next ? block->taken : block->next].live_in;
		if (!dies(function, at, end, from, live) || writes_between(function, at, end, to))
			return;
	}
	start = start_of(function, block->first, at);
	if (start == JIT_NOWHERE)
		return;
	for (uint32_t i = start + 1; i < at; i++)
		if (!can_rename(&insns[i], from))
			return;
	for (uint32_t i = start; i < at; i++) {
		if (i > start)
			rename_reads(&insns[i], from, to);
		if (jit_write_set(&insns[i]) & jit_bit(from))
			insns[i].dst = to;
	}
	jit_delete(move);
	if (!out)
		return;
	back.dst = from;
	back.a = to;
	put_on_edge(s, out, &back, 1, back.insn);
}

static void merge_moves(struct sink *s, uint32_t block_at)
{
	const struct jit_block block = s->function->blocks[block_at];

	for (uint32_t i = block.count; i-- > 0;)
		merge_move(s, block_at, block.first + i);
}

int jit_sink(struct jit_function *function, const struct jit_graph *graph)
{
	struct sink s = { .function = function, .graph = graph, .room = MAX_EDGES };

	if (jit_reserve(function, INSN_SPACE, MAX_EDGES))
		return -ENOMEM;
	for (uint32_t k = graph->nblocks; k-- > 0;) {
		if (function->passes & VM_PASS_DEAD && s.room)
			sink_block(&s, graph->forward[k]);
		if (function->passes & VM_PASS_COPY)
			merge_moves(&s, graph->forward[k]);
	}
	return s.room < MAX_EDGES;
}
