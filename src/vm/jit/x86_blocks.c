// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which blocks need code: those that only jump on are passed over, short ones that are the same are
 * one, and where a branch only chooses between 0 and 1 for a register, it becomes a setcc.
 */
#include "vm/jit/x86.h"

#define MAX_TWINS 8  /* that are compared: keeps it linear */
#define MAX_HOPS  8  /* of a jump to a jump to ... */
#define MAX_STEPS 32 /* back to where a register was set: keeps the search linear */

/* The only instruction of a block, or NULL. */
const struct jit_insn *x86_only_insn(const struct jit_function *function, uint32_t block)
{
	const struct jit_block *b = &function->blocks[block];
	const struct jit_insn *insns = &function->insns[b->first];

	for (uint32_t i = 0; i + 1 < b->count; i++)
		if (insns[i].op != JIT_NOP)
			return NULL;
	return &insns[b->count - 1];
}

static uint32_t goal_of(const struct x86 *x, uint32_t block)
{
	const struct jit_insn *only = x86_only_insn(x->function, block);
	uint32_t goal = block;
	unsigned int hops = 0;

	/* A budget counts every block. */
	while (only && only->op == JIT_JUMP && !x->budget) {
		if (++hops > MAX_HOPS)
			return block; /* maybe an endless loop of jumps */
		goal = x->function->blocks[goal].next;
		only = x86_only_insn(x->function, goal);
	}
	return goal;
}

static const struct jit_insn *end_of(const struct jit_function *function, uint32_t block)
{
	const struct jit_block *b = &function->blocks[block];

	return &function->insns[b->first + b->count - 1];
}

static void add_way(struct x86 *x, uint32_t from, uint32_t to)
{
	x->blocks[to].nfrom++;
	x->blocks[to].from = from;
}

static void find_ways(struct x86 *x, uint32_t block)
{
	const struct jit_function *function = x->function;
	const struct jit_block *b = &function->blocks[block];
	const struct jit_insn *end = end_of(function, block);

	if (end->op == JIT_JUMP || end->op == JIT_BRANCH || end->op == JIT_SWITCH)
		add_way(x, block, b->next);
	if (end->op == JIT_BRANCH)
		add_way(x, block, b->taken);
	if (end->op == JIT_SWITCH)
		for (uint64_t i = 0; i < end->imm; i++)
			add_way(x, block, function->targets[end->target + i]);
}

/* Is it a move of 0 or 1? */
static bool sets_bit(const struct jit_insn *insn)
{
	return insn->op == JIT_MOV && insn->a == JIT_NONE && insn->imm <= 1;
}

/* The move of 0 or 1 that is all that a block does before it jumps, or NULL. */
static const struct jit_insn *only_sets(const struct jit_function *function, uint32_t block)
{
	const struct jit_block *b = &function->blocks[block];
	const struct jit_insn *insns = &function->insns[b->first], *set = NULL;

	if (insns[b->count - 1].op != JIT_JUMP)
		return NULL;
	for (uint32_t i = 0; i + 1 < b->count; i++) {
		if (insns[i].op == JIT_NOP)
			continue;
		if (set || !sets_bit(&insns[i]))
			return NULL;
		set = &insns[i];
	}
	return set;
}

/* What a register is known to hold at the end of a block, 0 or 1; -1: something else. Looks into
 * the blocks before, as long as there is one way. @ret: where it was set, if nobody reads it in
 * between, else JIT_NOWHERE. */
static int bit_at_end(const struct x86 *x, uint32_t block, uint8_t reg, uint32_t *ret)
{
	const struct jit_function *function = x->function;
	uint32_t i = function->blocks[block].count - 1;
	bool read = jit_reads(end_of(function, block)) >> reg & 1;

	for (uint32_t steps = 0; steps < MAX_STEPS; steps++) {
		const struct jit_insn *insn;

		if (!i) {
			if (!block || x->blocks[block].nfrom != 1)
				return -1;
			block = x->blocks[block].from;
			i = function->blocks[block].count;
			/* Another way out of it may read what was set. */
			read |= x->blocks[block].chosen == X86_NONE &&
				end_of(function, block)->op != JIT_JUMP;
			if (x->blocks[block].chosen == x86_registers[reg])
				return -1;
		}
		insn = &function->insns[function->blocks[block].first + --i];
		if (jit_writes(insn) >> reg & 1) {
			*ret = read ? JIT_NOWHERE : (uint32_t)(insn - function->insns);
			return sets_bit(insn) ? (int)insn->imm : -1;
		}
		read |= jit_reads(insn) >> reg & 1;
	}
	return -1;
}

/* Does the instruction leave no more than so many bytes in the register that it writes? */
static bool leaves_bytes(const struct jit_insn *insn, unsigned int bytes)
{
	if (insn->op == JIT_LOAD || insn->op == JIT_EXT)
		return !(insn->flags & JIT_FLAG_SIGNED) && insn->size <= bytes;
	return insn->op == JIT_AND && insn->b == JIT_NONE && insn->imm >> 8 * bytes == 0;
}

bool x86_has_bytes(const struct x86 *x, uint32_t block, uint8_t reg, unsigned int bytes)
{
	const struct jit_function *function = x->function;
	uint32_t i = function->blocks[block].count - 1;

	for (uint32_t steps = 0; steps < MAX_STEPS; steps++) {
		const struct jit_insn *insn;

		if (!i) {
			if (!block || x->blocks[block].nfrom != 1)
				return false;
			block = x->blocks[block].from;
			i = function->blocks[block].count;
		}
		insn = &function->insns[function->blocks[block].first + --i];
		if (jit_writes(insn) >> reg & 1)
			return leaves_bytes(insn, bytes);
	}
	return false;
}

/* `r = 1; if (...) goto other; r = 0; other:`, with @setter the block in between. */
static bool find_choice(struct x86 *x, uint32_t block, uint32_t setter, uint32_t other)
{
	const struct jit_function *function = x->function;
	const struct jit_insn *set;
	struct x86_block *mine = &x->blocks[block];
	uint32_t at;
	int before;

	if (x->blocks[setter].nfrom != 1 || setter == other || x->budget)
		return false;
	set = only_sets(function, setter);
	if (!set || x->blocks[function->blocks[setter].next].goal != x->blocks[other].goal)
		return false;
	before = bit_at_end(x, block, set->dst, &at);
	if (before < 0 || before == (int)set->imm)
		return false;
	mine->chosen = x86_registers[set->dst];
	mine->chosen_taken = setter == function->blocks[block].taken ? set->imm : (unsigned)before;
	mine->otherwise = other;
	if (at != JIT_NOWHERE && x->nvague < X86_VAGUE)
		x->vague[x->nvague++] = at;
	x->blocks[setter].goal = JIT_NOWHERE;
	if (function->blocks[setter].next == other && x->blocks[other].nfrom == 2) {
		x->blocks[other].nfrom = 1;
		x->blocks[other].from = block;
	}
	return true;
}

bool x86_is_vague(const struct x86 *x, const struct jit_insn *insn)
{
	const uint32_t at = insn - x->function->insns;

	for (unsigned int i = 0; i < x->nvague; i++)
		if (x->vague[i] == at)
			return true;
	return false;
}

/* ---- twins ---- */

/* Computes a block a few things that cannot fault before it jumps? How many. */
static uint32_t short_block(const struct jit_function *function, uint32_t block)
{
	const struct jit_block *b = &function->blocks[block];
	const struct jit_insn *insns = &function->insns[b->first];

	if (b->count < 2 || b->count > 3 || insns[b->count - 1].op != JIT_JUMP)
		return 0;
	for (uint32_t i = 0; i + 1 < b->count; i++)
		if (insns[i].op < JIT_ADD || insns[i].op > JIT_LEA)
			return 0;
	return b->count - 1;
}

static bool is_same(const struct jit_insn *a, const struct jit_insn *b)
{
	return a->op == b->op && a->sub == b->sub && a->width == b->width && a->size == b->size &&
	       a->flags == b->flags && a->dst == b->dst && a->a == b->a && a->b == b->b &&
	       a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->off == b->off && a->imm == b->imm;
}

static bool are_twins(const struct x86 *x, uint32_t one, uint32_t other, uint32_t n)
{
	const struct jit_function *function = x->function;
	const struct jit_block *a = &function->blocks[one], *b = &function->blocks[other];

	if (a->count != b->count || x->blocks[a->next].goal != x->blocks[b->next].goal)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!is_same(&function->insns[a->first + i], &function->insns[b->first + i]))
			return false;
	return true;
}

/* Ways out of a loop that compute the same become one. */
static void find_twins(struct x86 *x)
{
	const struct jit_function *function = x->function;
	uint32_t seen[MAX_TWINS], nseen = 0;

	for (uint32_t i = 0; i < function->norder && !x->budget; i++) {
		const uint32_t block = function->order[i], n = short_block(function, block);
		uint32_t k = 0;

		if (!n || !block || x->blocks[block].goal != block)
			continue;
		while (k < nseen && !are_twins(x, seen[k], block, n))
			k++;
		if (k < nseen)
			x->blocks[block].goal = seen[k];
		else if (nseen < MAX_TWINS)
			seen[nseen++] = block;
	}
	for (uint32_t i = 0; i < function->norder; i++) {
		struct x86_block *block = &x->blocks[function->order[i]];

		if (block->goal != JIT_NOWHERE)
			block->goal = x->blocks[block->goal].goal;
	}
}

void x86_plan_blocks(struct x86 *x, uint32_t *sequence, uint32_t *nsequence)
{
	const struct jit_function *function = x->function;
	uint32_t n = 0;

	for (uint32_t i = 0; i < function->norder; i++)
		x->blocks[function->order[i]] =
			(struct x86_block){ .number = JIT_NOWHERE,
					    .chosen = X86_NONE,
					    .goal = goal_of(x, function->order[i]) };
	for (uint32_t i = 0; i < function->norder; i++)
		find_ways(x, function->order[i]);
	for (uint32_t i = 0; i < function->norder && x->brief; i++) {
		const uint32_t at = function->order[i];
		const struct jit_block *b = &function->blocks[at];

		if (end_of(function, at)->op == JIT_BRANCH &&
		    !find_choice(x, at, b->next, b->taken))
			find_choice(x, at, b->taken, b->next);
	}
	if (x->brief)
		find_twins(x);
	for (uint32_t i = 0; i < function->norder; i++) {
		const uint32_t block = function->order[i];

		if (x->blocks[block].goal != block)
			continue;
		x->blocks[block].number = n;
		sequence[n++] = block;
	}
	*nsequence = n;
}
