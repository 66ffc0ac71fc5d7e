// SPDX-License-Identifier: BSD-2-Clause
/*
 * Comparisons of one register with numbers, one behind the other or as a tree, as compilers write
 * `switch` where they have no tables: one jump through a table, where that pays on the machine.
 *
 * The first block may do more; the others only compare. From the first one on each of them gets the
 * interval of numbers that lead to it. What lies at the ends is either a number or an interval; one
 * of the blocks there is where all the others go, and all the rest must lie close together.
 */
#include "vm/jit/passes.h"

#include <errno.h>
#include <string.h>

#define MAX_CASES  512
#define MAX_LEAVES 64
#define MAX_DEPTH  48 /* halves that wait */
#define SPARSE     3  /* entries of the table a case, at most */
#define MAX_BLOCKS 1024
#define FAR        (1 << 30) /* from 0: the first number */
#define WORK       4 /* blocks looked at in vain, by number of blocks: keeps the pass linear */

/* Numbers are kept so that they compare as unsigned ones: signed ones with their sign turned. */
struct interval {
	uint64_t low, high;
	uint32_t block;
};

struct chain {
	struct jit_function *function;
	uint8_t reg, width;
	bool ordered,
		is_signed; /* ordered: there was a comparison by order, which tells of the sign */
	struct interval leaves[MAX_LEAVES], waiting[MAX_DEPTH];
	uint32_t nleaves, nwaiting;
	struct {
		uint64_t number;
		uint32_t block;
	} cases[MAX_CASES];
	uint32_t ncases;
	uint32_t blocks[MAX_BLOCKS]; /* that compare */
	uint32_t nblocks, most_blocks;
	uint64_t low, high; /* of the table */
	uint32_t otherwise;
};

static uint64_t mask_of(const struct chain *c)
{
	return c->width == 8 ? UINT64_MAX : UINT32_MAX;
}

static uint64_t sign_of(const struct chain *c)
{
	return c->is_signed ? 1ull << (8 * c->width - 1) : 0;
}

static bool is_order(uint8_t condition)
{
	return condition >= JIT_GT && condition <= JIT_SLE;
}

/* The comparison at the end of a block, if it goes on with the chain. */
static const struct jit_insn *comparison(struct chain *c, uint32_t at, bool first)
{
	const struct jit_block *block = &c->function->blocks[at];
	const struct jit_insn *end = jit_end_of(c->function, at);
	bool is_signed = end->sub >= JIT_SGT;

	if (end->op != JIT_BRANCH || end->a == JIT_NONE || end->b != JIT_NONE ||
	    end->base != JIT_NONE || end->sub == JIT_SET || end->sub == JIT_CLEAR)
		return NULL;
	if (first)
		return end;
	if (end->a != c->reg || end->width != c->width ||
	    (is_order(end->sub) && c->ordered && is_signed != c->is_signed))
		return NULL;
	for (uint32_t i = 0; i + 1 < block->count; i++)
		if (c->function->insns[block->first + i].op != JIT_NOP)
			return NULL;
	return end;
}

/* Before the first interval is cut: one that was not is whole either way. */
static void set_order(struct chain *c, bool is_signed)
{
	if (c->ordered)
		return;
	c->ordered = true;
	c->is_signed = is_signed;
	for (uint32_t i = 0; i < c->ncases; i++)
		c->cases[i].number ^= sign_of(c);
}

static bool add_leaf(struct chain *c, const struct interval *interval)
{
	if (interval->low > interval->high)
		return true;
	if (c->nleaves == MAX_LEAVES)
		return false;
	c->leaves[c->nleaves++] = *interval;
	return true;
}

static bool add_case(struct chain *c, const struct interval *interval, uint64_t number,
		     uint32_t block)
{
	if (number < interval->low || number > interval->high)
		return true;
	if (c->ncases == MAX_CASES)
		return false;
	c->cases[c->ncases].number = number;
	c->cases[c->ncases++].block = block;
	return true;
}

/* Takes what lies above @number off: it goes to @block. */
static bool cut(struct chain *c, struct interval *interval, uint64_t number, bool with_number,
		uint32_t above, uint32_t below)
{
	struct interval *rest = &c->waiting[c->nwaiting];

	if (c->nwaiting == MAX_DEPTH)
		return false;
	if (with_number && !number) { /* all of it */
		interval->block = above;
		return true;
	}
	number -= with_number;
	*rest = *interval;
	rest->block = above;
	interval->block = below;
	if (number < rest->low) {
		*interval = *rest;
		return true;
	}
	if (number >= interval->high)
		return true;
	rest->low = number + 1;
	interval->high = number;
	c->nwaiting++;
	return true;
}

/* One comparison: the interval becomes what goes on with it. */
static bool follow(struct chain *c, const struct jit_insn *end, struct interval *interval)
{
	const struct jit_block *block = &c->function->blocks[interval->block];
	const uint32_t taken = block->taken, next = block->next;
	uint64_t number;

	if (is_order(end->sub))
		set_order(c, end->sub >= JIT_SGT);
	number = (end->imm & mask_of(c)) ^ sign_of(c);
	switch (end->sub) {
	case JIT_EQ:
		interval->block = next;
		return add_case(c, interval, number, taken);
	case JIT_NE:
		interval->block = taken;
		return add_case(c, interval, number, next);
	case JIT_GT:
	case JIT_SGT:
		return cut(c, interval, number, false, taken, next);
	case JIT_GE:
	case JIT_SGE:
		return cut(c, interval, number, true, taken, next);
	case JIT_LT:
	case JIT_SLT:
		return cut(c, interval, number, true, next, taken);
	case JIT_LE:
	case JIT_SLE:
		return cut(c, interval, number, false, next, taken);
	default:
		return false;
	}
}

static bool walk(struct chain *c, uint32_t first)
{
	struct interval interval = { 0, mask_of(c), first };
	const struct jit_insn *end = comparison(c, first, true);

	for (;;) {
		if (!end) {
			if (!add_leaf(c, &interval))
				return false;
			if (!c->nwaiting)
				return true;
			interval = c->waiting[--c->nwaiting];
		} else {
			if (c->nblocks == c->most_blocks)
				return false;
			c->blocks[c->nblocks++] = interval.block;
			if (!follow(c, end, &interval))
				return false;
		}
		end = interval.block == first ? NULL : comparison(c, interval.block, false);
	}
}

/* What all numbers above or below go to; and where the rest begins and ends. */
static uint64_t find_bounds(struct chain *c)
{
	uint64_t n = 0;

	c->low = UINT64_MAX;
	c->high = 0;
	for (uint32_t i = 0; i < c->nleaves + c->ncases; i++) {
		const uint32_t at = i - c->nleaves;
		struct interval one;

		if (i < c->nleaves)
			one = c->leaves[i];
		else
			one = (struct interval){ c->cases[at].number, c->cases[at].number,
						 c->cases[at].block };
		if (one.block == c->otherwise)
			continue;
		n++;
		c->low = one.low < c->low ? one.low : c->low;
		c->high = one.high > c->high ? one.high : c->high;
	}
	return n;
}

/* The lowest number as the program has it. */
static int64_t first_number(const struct chain *c)
{
	const uint64_t number = c->low ^ sign_of(c);

	return c->width == 4 ? (int32_t)number : (int64_t)number;
}

static bool pays(struct chain *c)
{
	uint64_t n;

	set_order(c, true);
	for (uint32_t i = 0; i < c->nleaves; i++)
		if (c->leaves[i].high == mask_of(c))
			c->otherwise = c->leaves[i].block;
	n = find_bounds(c);
	if (n < c->function->target->least_cases || c->high - c->low >= SPARSE * n ||
	    c->otherwise == JIT_NOWHERE)
		return false;
	return first_number(c) > -FAR && first_number(c) < FAR;
}

/* Where a number comes first it is taken: later ones are written first. */
static void fill_table(const struct chain *c, uint32_t *targets)
{
	const uint64_t n = c->high - c->low + 1;

	for (uint64_t i = 0; i < n; i++)
		targets[i] = c->otherwise;
	for (uint32_t i = 0; i < c->nleaves; i++) {
		const struct interval *leaf = &c->leaves[i];

		for (uint64_t k = 0; k < n; k++)
			if (c->low + k >= leaf->low && c->low + k <= leaf->high)
				targets[k] = leaf->block;
	}
	for (uint32_t i = c->ncases; i-- > 0;)
		if (c->cases[i].number >= c->low && c->cases[i].number <= c->high)
			targets[c->cases[i].number - c->low] = c->cases[i].block;
}

static int make_table(struct chain *c, uint32_t first)
{
	struct jit_function *function = c->function;
	struct jit_insn *end = jit_end_of(function, first);
	const uint64_t n = c->high - c->low + 1 - PLANT(27);

	if (jit_reserve_targets(function, n))
		return -ENOMEM;
	fill_table(c, function->targets + function->ntargets);
	end->op = JIT_SWITCH;
	end->sub = 0;
	end->off = (int32_t)first_number(c);
	end->imm = n;
	end->target = function->ntargets;
	function->ntargets += n;
	function->blocks[first].taken = JIT_NOWHERE;
	function->blocks[first].next = c->otherwise;
	return 1;
}

/* Does the block begin a chain? 1: a table has taken its place; 0; -ENOMEM. @done: blocks of those. */
static int try_chain(struct jit_function *function, uint32_t first, uint32_t *work, bool *done)
{
	struct chain c;
	const struct jit_insn *end;

	c.function = function;
	c.ordered = c.is_signed = false;
	c.nleaves = c.nwaiting = c.ncases = c.nblocks = 0;
	c.most_blocks = *work < MAX_BLOCKS ? *work : MAX_BLOCKS;
	c.otherwise = JIT_NOWHERE;
	end = comparison(&c, first, true);
	if (!end)
		return 0;
	c.reg = end->a;
	c.width = end->width;
	if (!comparison(&c, function->blocks[first].next, false) &&
	    !comparison(&c, function->blocks[first].taken, false))
		return 0;
	if (!walk(&c, first) || !pays(&c)) {
		*work -= c.nblocks;
		return 0;
	}
	for (uint32_t i = 0; i < c.nblocks; i++)
		done[c.blocks[i]] = true;
	return make_table(&c, first);
}

int jit_make_switches(struct jit_function *function, const struct jit_graph *graph,
		      struct jit_arena arena)
{
	bool *done = jit_take(&arena, function->nblocks, sizeof(*done));
	uint32_t work = WORK * graph->nblocks;
	int changed = 0;

	/* What a budget pays must stay. */
	if (!function->target->least_cases || function->vm->options.instruction_budget)
		return 0;
	memset(done, 0, function->nblocks * sizeof(*done));
	for (uint32_t k = 0; k < graph->nblocks; k++) {
		int rc = 0;

		if (!done[graph->forward[k]])
			rc = try_chain(function, graph->forward[k], &work, done);
		if (rc < 0)
			return rc;
		changed |= rc;
	}
	return changed;
}
