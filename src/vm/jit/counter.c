// SPDX-License-Identifier: BSD-2-Clause
/*
 * A loop that counts its rounds only to know when to end, and steps through memory besides, needs
 * one of the two: where it ends is an address, too.
 *
 *	c = 0; do { ... p += s; c += 1; } while (c < n)
 *	c = p + max(n, 1) * s; do { ... p += s; } while (p != c)
 *
 * Innermost loops with one way in and one way back, in whose last block all this happens. That
 * n * s does not wrap is known from the bits of n.
 */
#include "vm/jit/values.h"

#include <errno.h>

#define MAX_LOOPS  32  /* of one function */
#define MAX_BLOCKS 64  /* of a loop and what lies between them: keeps the pass linear */
#define LOOK_BACK  24  /* instructions, for the start of the counter */
#define MAX_STEP   256 /* bytes */
#define NEW_BLOCKS 3   /* of a loop */
#define NEW_INSNS  7

struct counter {
	struct jit_function *function;
	const struct jit_graph *graph;
	uint32_t nblocks; /* that the graph knows: those that are made here are in no loop */
	uint32_t header, last, entry; /* blocks; last: its branch goes back */
	struct jit_insn *branch, *count, *step, *start;
	uint8_t reg;
	bool less; /* c < n, else c != n */
	uint16_t written,
		rewritten; /* registers that instructions of the loop write; two or more */
};

static bool steps(const struct jit_insn *insn, uint64_t most)
{
	return insn->op == JIT_ADD && insn->width == 8 && insn->a == insn->dst &&
	       insn->b == JIT_NONE && insn->imm && insn->imm <= most && insn->dst != ISA_FRAME;
}

static uint32_t place_of(const struct counter *c, uint32_t block)
{
	return block < c->nblocks ? c->graph->place[block] : JIT_NOWHERE;
}

/* The block's branch goes back to the header of a loop as long as c < n or c != n. */
static bool find_branch(struct counter *c, uint32_t last)
{
	const struct jit_function *function = c->function;
	const struct jit_block *block = &function->blocks[last];
	const uint32_t place = c->graph->place[last];
	struct jit_insn *end = jit_end_of(function, last);
	uint8_t condition = end->sub;

	if (end->op != JIT_BRANCH || end->width != 8 || end->a == JIT_NONE || end->a == end->b)
		return false;
	c->header = block->taken;
	if (place_of(c, block->taken) > place) {
		c->header = block->next;
		condition = condition == JIT_GE ? JIT_LT : condition == JIT_EQ ? JIT_NE : JIT_NOPS;
	}
	if (place_of(c, c->header) > place || block->taken == block->next)
		return false;
	c->last = last;
	c->branch = end;
	c->reg = end->a;
	c->less = condition == JIT_LT;
	return c->less || condition == JIT_NE;
}

/* The one block that the loop is entered from. */
static bool find_entry(struct counter *c)
{
	const struct jit_graph *graph = c->graph;
	const uint32_t first = graph->first_pred[c->header];

	if (graph->first_pred[c->header + 1] - first != 2)
		return false;
	c->entry = graph->preds[first] == c->last ? graph->preds[first + 1] : graph->preds[first];
	return graph->place[c->entry] < graph->place[c->header];
}

static bool find_count(struct counter *c)
{
	const struct jit_block *block = &c->function->blocks[c->last];

	for (uint32_t i = 0; i < block->count; i++) {
		struct jit_insn *insn = &c->function->insns[block->first + i];

		if (insn->dst == c->reg && steps(insn, 1))
			c->count = insn;
	}
	return c->count;
}

static bool is_member(const struct counter *c, uint32_t block)
{
	return block == c->header || (block < c->nblocks && c->graph->loop[block] == c->header);
}

/* Does somebody outside of the loop read the counter, who comes there from this block? */
static bool is_read_outside(const struct counter *c, uint32_t block)
{
	const uint32_t n = jit_nsuccessors(c->function, block);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t to = *jit_successor(c->function, block, i);

		if (!is_member(c, to) && c->function->blocks[to].live_in & jit_bit(c->reg))
			return true;
	}
	return false;
}

/* Does nothing else read the counter, and nothing else in the loop write it? */
static bool only_counts(struct counter *c)
{
	const struct jit_graph *graph = c->graph;
	const struct jit_function *function = c->function;
	const uint16_t bit = jit_bit(c->reg);

	for (uint32_t k = graph->place[c->header]; k <= graph->place[c->last]; k++) {
		const uint32_t at = graph->forward[k];
		const struct jit_block *block = &function->blocks[at];

		if (!is_member(c, at))
			continue;
		if ((at != c->header && graph->header[at]) || is_read_outside(c, at))
			return false;
		for (uint32_t i = 0; i < block->count; i++) {
			const struct jit_insn *insn = &function->insns[block->first + i];
			const uint16_t writes = jit_write_set(insn);

			if (insn != c->count && insn != c->branch &&
			    (jit_read_set(insn) | writes) & bit)
				return false;
			c->rewritten |= c->written & writes;
			c->written |= writes;
		}
	}
	return true;
}

static bool find_step(struct counter *c)
{
	const struct jit_block *block = &c->function->blocks[c->last];

	for (uint32_t i = 0; i < block->count; i++) {
		struct jit_insn *insn = &c->function->insns[block->first + i];

		if (insn != c->count && steps(insn, MAX_STEP) &&
		    !(c->rewritten & jit_bit(insn->dst)))
			c->step = insn;
	}
	return c->step;
}

/* The move of 0 to the counter in the block before the loop. */
static struct jit_insn *find_start(const struct counter *c)
{
	const struct jit_block *block = &c->function->blocks[c->entry];

	for (uint32_t i = block->count; i-- > 0 && block->count - i < LOOK_BACK;) {
		struct jit_insn *insn = &c->function->insns[block->first + i];

		if (!(jit_write_set(insn) & jit_bit(c->reg)))
			continue;
		return insn->op == JIT_MOV && insn->a == JIT_NONE && !insn->imm ? insn : NULL;
	}
	return NULL;
}

/* Nobody else needs it where the loop is entered from. */
static bool is_needless(const struct counter *c)
{
	const struct jit_insn *end = jit_end_of(c->function, c->entry);

	if (end->op != JIT_JUMP)
		return false;
	for (const struct jit_insn *insn = c->start + 1; insn < end; insn++)
		if (jit_read_set(insn) & jit_bit(c->reg))
			return false;
	return true;
}

static bool cannot_wrap(const struct counter *c, const uint8_t *bits)
{
	const uint8_t known = bits[(size_t)c->header * ISA_REGISTERS + c->branch->b];

	return known && known < 64 && c->step->imm <= 1ull << (64 - known);
}

static bool find_loop(struct counter *c, uint32_t last)
{
	if (!find_branch(c, last) || !find_entry(c) || !find_count(c) ||
	    c->graph->place[last] - c->graph->place[c->header] >= MAX_BLOCKS || !only_counts(c) ||
	    !find_step(c))
		return false;
	if (c->branch->b == JIT_NONE)
		return c->branch->imm && c->branch->imm <= INT32_MAX / MAX_STEP;
	return c->branch->b != ISA_FRAME && !(c->written & jit_bit(c->branch->b));
}

/* ---- */

static struct jit_insn *append(struct counter *c, enum jit_op op, uint8_t dst, uint8_t a,
			       uint64_t imm)
{
	struct jit_function *function = c->function;
	struct jit_insn *insn = &function->insns[function->ninsns++];

	*insn = (struct jit_insn){ .op = op,
				   .width = 8,
				   .dst = dst,
				   .a = a,
				   .b = JIT_NONE,
				   .base = JIT_NONE,
				   .index = JIT_NONE,
				   .insn = c->branch->insn,
				   .imm = imm };
	return insn;
}

/* The block that the instructions from @first on are, which goes on to @next. */
static uint32_t make_block(struct counter *c, uint32_t first, uint32_t taken, uint32_t next,
			   uint16_t live)
{
	struct jit_function *function = c->function;

	function->blocks[function->nblocks] =
		(struct jit_block){ .first = first,
				    .count = function->ninsns - first,
				    .taken = taken,
				    .next = next,
				    .depth = function->blocks[c->entry].depth,
				    .live_in = live,
				    .reachable = true };
	return function->nblocks++;
}

/* c = p + c * s */
static void append_end(struct counter *c)
{
	const uint64_t step = c->step->imm;
	const unsigned int scale = __builtin_ctzll(step);
	struct jit_insn *insn;

	if (step <= 8 && !(step & (step - 1)) &&
	    c->function->target->can_address(true, scale, 0, 0)) {
		insn = append(c, JIT_LEA, c->reg, JIT_NONE, 0);
		insn->base = c->step->dst;
		insn->index = c->reg;
		insn->scale = scale;
		return;
	}
	append(c, JIT_MUL, c->reg, c->reg, step);
	insn = append(c, JIT_ADD, c->reg, c->step->dst, 0);
	insn->b = c->reg;
}

/* What computes the end, in front of the loop. Returns its first block. */
static uint32_t make_entry(struct counter *c)
{
	struct jit_function *function = c->function;
	const uint8_t n = c->branch->b, p = c->step->dst;
	const uint16_t live = function->blocks[c->header].live_in | jit_bit(p);
	const uint16_t others = live & ~jit_bit(c->reg);
	uint32_t first = function->ninsns, one, end;

	if (n == JIT_NONE) {
		append(c, JIT_ADD, c->reg, p, c->branch->imm * c->step->imm);
		append(c, JIT_JUMP, JIT_NONE, JIT_NONE, 0);
		return make_block(c, first, JIT_NOWHERE, c->header, others);
	}
	append_end(c);
	append(c, JIT_JUMP, JIT_NONE, JIT_NONE, 0);
	end = make_block(c, first, JIT_NOWHERE, c->header, live);
	first = function->ninsns;
	if (!c->less) {
		append(c, JIT_MOV, c->reg, n, 0);
		append(c, JIT_JUMP, JIT_NONE, JIT_NONE, 0);
		return make_block(c, first, JIT_NOWHERE, end, others | jit_bit(n));
	}
	append(c, JIT_MOV, c->reg, JIT_NONE, 1 + PLANT(26))->width = 4;
	append(c, JIT_JUMP, JIT_NONE, JIT_NONE, 0);
	one = make_block(c, first, JIT_NOWHERE, end, others);
	first = function->ninsns;
	append(c, JIT_MOV, c->reg, n, 0);
	append(c, JIT_BRANCH, JIT_NONE, c->reg, 0)->sub = JIT_NE;
	return make_block(c, first, end, one, others | jit_bit(n));
}

static void change_loop(struct counter *c)
{
	struct jit_function *function = c->function;
	const struct jit_block *last = &function->blocks[c->last];
	const uint32_t n = jit_nsuccessors(function, c->entry), entry = make_entry(c);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t *to = jit_successor(function, c->entry, i);

		if (*to == c->header)
			*to = entry;
	}
	if (is_needless(c))
		jit_delete(c->start);
	jit_delete(c->count);
	c->branch->sub = last->taken == c->header ? JIT_NE : JIT_EQ;
	c->branch->a = c->step->dst;
	c->branch->b = c->reg;
	c->branch->size = 8;
	c->branch->imm = 0;
}

/* Is there a loop that can be changed? @bits: found before the first one is, as the graph is. */
static bool may_change(struct counter *c, uint32_t last, struct jit_arena arena,
		       const uint8_t **bits)
{
	if (!find_loop(c, last))
		return false;
	c->start = find_start(c);
	if (!c->start)
		return false;
	if (!*bits) {
		const uint16_t *writes = jit_find_writes(c->function, c->graph, &arena);

		*bits = jit_find_bits(c->function, c->graph, writes, &arena);
	}
	return c->branch->b == JIT_NONE || cannot_wrap(c, *bits);
}

int jit_drop_counters(struct jit_function *function, const struct jit_graph *graph,
		      struct jit_arena arena)
{
	const uint32_t nblocks = function->nblocks;
	const uint8_t *bits = NULL;
	uint32_t changed = 0;

	if (graph->irreducible)
		return 0;
	if (jit_reserve(function, NEW_INSNS * MAX_LOOPS, NEW_BLOCKS * MAX_LOOPS))
		return -ENOMEM;
	for (uint32_t k = 0; k < graph->nblocks && changed < MAX_LOOPS; k++) {
		struct counter c = { .function = function, .graph = graph, .nblocks = nblocks };

		if (!may_change(&c, graph->forward[k], arena, &bits))
			continue;
		change_loop(&c);
		changed++;
	}
	return changed > 0;
}
