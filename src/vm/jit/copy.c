// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies, numbers and addresses in the frame, followed along the flow in one walk: where ways meet,
 * what all of them agree on stays; at the start of a loop, what the loop does not write. Operands
 * become the oldest register with that value, so that moves die; the rest is simplify.c.
 */
#include "vm/jit/values.h"

#include <string.h>

/* Copies of a register whose value goes away: the first stands for the others. */
static void pass_on(uint8_t *of, uint8_t reg, uint16_t *roots)
{
	uint8_t heir = JIT_NONE;

	for (uint8_t other = 0; other < ISA_FRAME; other++) {
		if (of[other] != reg)
			continue;
		of[other] = heir;
		if (heir == JIT_NONE)
			heir = other;
	}
	*roots |= jit_bit(heir);
}

/* Nothing is known of the register but its bits. */
static void forget(struct jit_walk *walk, uint8_t reg, bool keep_low)
{
	struct jit_state *now = &walk->now;

	if (walk->roots & jit_bit(reg)) {
		pass_on(now->copy, reg, &walk->roots);
		if (!keep_low) {
			pass_on(now->low, reg, &walk->roots);
			walk->roots &= ~jit_bit(reg);
		}
	}
	now->kind[reg] = JIT_ANYTHING;
	now->number[reg] = 0;
	now->copy[reg] = JIT_NONE;
	if (!keep_low)
		now->low[reg] = JIT_NONE;
}

static void set_copy(struct jit_walk *walk, uint8_t reg, uint8_t from, bool all)
{
	struct jit_state *now = &walk->now;
	uint8_t root = jit_root(now, from), low = jit_low_root(now, from);
	uint8_t kind = now->kind[from];
	int64_t number = now->number[from];

	if (all && root == jit_root(now, reg))
		return; /* it held that already */
	if (!all && low == jit_low_root(now, reg)) {
		forget(walk, reg, true);
		return;
	}
	forget(walk, reg, false);
	if (low == reg) /* its old value went away: another one has inherited */
		low = now->low[from] == JIT_NONE ? from : now->low[from];
	now->low[reg] = low;
	walk->roots |= jit_bit(low);
	if (!all)
		return;
	if (root == reg)
		root = now->copy[from] == JIT_NONE ? from : now->copy[from];
	now->copy[reg] = root;
	walk->roots |= jit_bit(root);
	now->kind[reg] = kind;
	now->number[reg] = number;
}

static void set_number(struct jit_walk *walk, uint8_t reg, uint8_t kind, int64_t number)
{
	forget(walk, reg, false);
	walk->now.kind[reg] = kind;
	walk->now.number[reg] = number;
}

/* The two operands, when they are numbers. */
static bool numbers(const struct jit_walk *walk, const struct jit_insn *insn, uint64_t *a,
		    uint64_t *b)
{
	const struct jit_state *now = &walk->now;

	if (insn->a == JIT_NONE || now->kind[insn->a] != JIT_NUMBER)
		return false;
	if (insn->b != JIT_NONE && now->kind[insn->b] != JIT_NUMBER)
		return false;
	*a = now->number[insn->a];
	*b = insn->b == JIT_NONE ? insn->imm : (uint64_t)now->number[insn->b];
	return true;
}

static void set_result(struct jit_walk *walk, const struct jit_insn *insn, unsigned int bits)
{
	struct jit_state *now = &walk->now;
	uint64_t a, b;

	if (insn->op == JIT_MOV && insn->a == JIT_NONE) {
		set_number(walk, insn->dst, JIT_NUMBER,
			   insn->width == 4 ? (uint32_t)insn->imm : insn->imm);
	} else if (insn->op <= JIT_BSWAP && numbers(walk, insn, &a, &b)) {
		set_number(walk, insn->dst, JIT_NUMBER, jit_compute(insn, a, b));
	} else if (insn->op == JIT_MOV) {
		set_copy(walk, insn->dst, insn->a, insn->width == 8 || now->bits[insn->a] <= 32);
	} else if (insn->op == JIT_ADD && insn->width == 8 && insn->b == JIT_NONE &&
		   now->kind[insn->a] == JIT_STACK) {
		set_number(walk, insn->dst, JIT_STACK, now->number[insn->a] + insn->imm);
	} else if (insn->op == JIT_LEA && now->kind[insn->base] == JIT_NUMBER) {
		set_number(walk, insn->dst, JIT_NONZERO, 0); /* an element of an array */
	} else {
		forget(walk, insn->dst, false);
	}
	now->bits[insn->dst] = bits;
}

/* After the instruction. */
static void step(struct jit_walk *walk, const struct jit_insn *insn)
{
	uint16_t writes = jit_write_set(insn);
	uint8_t bits[ISA_REGISTERS];

	walk->unread &= ~jit_read_set(insn);
	jit_note_slots(walk, insn);
	if (!writes)
		return;
	memcpy(bits, walk->now.bits, sizeof(bits));
	jit_step_bits(walk->function, insn, bits);
	for (uint16_t left = writes; left; left &= left - 1) {
		uint8_t reg = __builtin_ctz(left);

		walk->bits_before[reg] = walk->now.bits[reg];
		if (reg != insn->dst)
			forget(walk, reg, false);
	}
	if (insn->dst != JIT_NONE)
		set_result(walk, insn, bits[insn->dst]);
	memcpy(walk->now.bits, bits, sizeof(bits));
	for (uint16_t left = writes; left; left &= left - 1)
		walk->written[__builtin_ctz(left)] = walk->at + 1;
	walk->unread |= writes;
	jit_lose_slots(walk, writes);
}

static uint8_t oldest(const struct jit_state *now, uint8_t reg, bool low)
{
	if (reg == JIT_NONE)
		return reg;
	return low ? jit_low_root(now, reg) : jit_root(now, reg);
}

/* Where the base is r10, the address lies in the frame. */
static void replace_address(struct jit_walk *walk, struct jit_insn *insn)
{
	const struct jit_state *now = &walk->now;
	unsigned int size = insn->op == JIT_CHECK ? insn->imm : insn->size;
	uint8_t base = oldest(now, insn->base, false);
	int64_t off;

	insn->index = oldest(now, insn->index, false);
	if (base == JIT_NONE)
		return;
	if (base != ISA_FRAME)
		insn->base = base;
	if (insn->base == ISA_FRAME || insn->index != JIT_NONE || now->kind[base] != JIT_STACK ||
	    __builtin_add_overflow(now->number[base], (int64_t)insn->off, &off) ||
	    off < -(int64_t)walk->function->frame || off > -(int64_t)size)
		return;
	insn->base = ISA_FRAME;
	insn->off = off;
}

/* How many bytes of a and b the instruction looks at. */
static unsigned int looks_at(const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_EXT:
	case JIT_BSWAP:
	case JIT_STORE:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
		return insn->size;
	case JIT_CALLX:
		return 8;
	default:
		return insn->width;
	}
}

static void replace_operands(struct jit_walk *walk, struct jit_insn *insn)
{
	bool low = looks_at(insn) <= 4;

	replace_address(walk, insn);
	insn->a = oldest(&walk->now, insn->a, low);
	if (insn->op != JIT_ATOMIC || !(insn->flags & JIT_FLAG_FETCH))
		insn->b = oldest(&walk->now, insn->b, low);
}

static void walk_block(struct jit_walk *walk, uint32_t at)
{
	const struct jit_block *block = &walk->function->blocks[at];

	walk->block = at;
	walk->unread = 0;
	walk->nslots = 0;
	memset(walk->written, 0, sizeof(walk->written));
	for (uint32_t i = 0; i < block->count; i++) {
		struct jit_insn *insn = &walk->function->insns[block->first + i];

		walk->at = block->first + i;
		if (walk->copies) {
			replace_operands(walk, insn);
			jit_simplify(walk, insn);
		}
		if (walk->inlines)
			jit_inline_lookup(walk, insn);
		step(walk, insn);
	}
}

static void meet(struct jit_state *now, const struct jit_state *other)
{
	for (int reg = 0; reg < ISA_REGISTERS; reg++) {
		if (now->kind[reg] != other->kind[reg] || now->number[reg] != other->number[reg]) {
			now->kind[reg] = JIT_ANYTHING;
			now->number[reg] = 0;
		}
		if (now->copy[reg] != other->copy[reg])
			now->copy[reg] = JIT_NONE;
		if (now->low[reg] != other->low[reg])
			now->low[reg] = JIT_NONE;
		if (now->bits[reg] < other->bits[reg])
			now->bits[reg] = other->bits[reg];
	}
}

/* Nothing that the loop writes is known, but how many bits it has. */
static void enter_loop(struct jit_state *now, uint16_t writes)
{
	for (uint8_t reg = 0; reg < ISA_FRAME; reg++) {
		if (now->copy[reg] != JIT_NONE && writes & (jit_bit(reg) | jit_bit(now->copy[reg])))
			now->copy[reg] = JIT_NONE;
		if (now->low[reg] != JIT_NONE && writes & (jit_bit(reg) | jit_bit(now->low[reg])))
			now->low[reg] = JIT_NONE;
		if (writes & jit_bit(reg)) {
			now->kind[reg] = JIT_ANYTHING;
			now->number[reg] = 0;
			now->bits[reg] = 64;
		}
	}
}

static void know_nothing(struct jit_state *now)
{
	memset(now, 0, sizeof(*now));
	memset(now->copy, JIT_NONE, sizeof(now->copy));
	memset(now->low, JIT_NONE, sizeof(now->low));
	memset(now->bits, 64, sizeof(now->bits));
	now->kind[ISA_FRAME] = JIT_STACK;
}

/*
 * What is known at the start of blocks that were reached and not yet looked at: few at a time, so
 * that they use the same memory again and again.
 */
struct starts {
	struct jit_state *states;
	uint32_t *of;   /* by place in the walk: its state; JIT_NOWHERE: none */
	uint32_t *free; /* states that are not in use, the next one last */
	uint32_t nfree;
};

static void starts_init(struct starts *starts, uint32_t n, struct jit_arena *arena)
{
	starts->of = jit_take(arena, n, sizeof(*starts->of));
	starts->free = jit_take(arena, n, sizeof(*starts->free));
	starts->states = jit_take(arena, n, sizeof(*starts->states));
	starts->nfree = n;
	for (uint32_t i = 0; i < n; i++)
		starts->free[i] = n - 1 - i;
	memset(starts->of, 0xff, n * sizeof(*starts->of)); /* JIT_NOWHERE */
}

/* Tells those who come next what is known at the end of the block. */
static void tell_successors(const struct jit_walk *walk, const struct jit_graph *graph,
			    uint32_t place, struct starts *starts)
{
	uint32_t at = graph->forward[place], n = jit_nsuccessors(walk->function, at);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = graph->place[*jit_successor(walk->function, at, i)];

		if (to <= place)
			continue;
		if (starts->of[to] != JIT_NOWHERE) {
			meet(&starts->states[starts->of[to]], &walk->now);
			continue;
		}
		starts->of[to] = starts->free[--starts->nfree];
		starts->states[starts->of[to]] = walk->now;
	}
}

/* What is known at the start of the block that is number @place of the walk. */
static void start(struct jit_walk *walk, const struct jit_graph *graph, uint32_t place,
		  struct starts *starts, const uint8_t *bits, const uint16_t *writes)
{
	uint32_t block = graph->forward[place], state = starts->of[place];
	struct jit_state *now = &walk->now;

	if (state == JIT_NOWHERE) {
		know_nothing(now);
	} else {
		*now = starts->states[state];
		starts->free[starts->nfree++] = state;
	}
	if (graph->header[block])
		enter_loop(now, writes[block]);
	walk->roots = 0;
	for (uint8_t reg = 0; reg < ISA_REGISTERS; reg++) {
		uint8_t known = bits[(size_t)block * ISA_REGISTERS + reg];

		if (known < now->bits[reg])
			now->bits[reg] = known;
		walk->roots |= jit_bit(now->copy[reg]) | jit_bit(now->low[reg]);
	}
}

size_t jit_copies_size(const struct jit_function *function)
{
	return jit_bits_size(function) +
	       function->nblocks *
		       (sizeof(struct jit_state) + sizeof(uint16_t) + 2 * sizeof(uint32_t)) +
	       64;
}

bool jit_copies(struct jit_function *function, const struct jit_graph *graph,
		struct jit_arena arena)
{
	struct jit_walk walk = { .function = function,
				 .copies = function->passes & VM_PASS_COPY,
				 .inlines = function->passes & VM_PASS_INLINE };
	const uint16_t *writes = jit_find_writes(function, graph, &arena);
	const uint8_t *bits = jit_find_bits(function, graph, writes, &arena);
	struct starts starts;

	starts_init(&starts, graph->nblocks, &arena);
	for (uint32_t place = 0; place < graph->nblocks; place++) {
		start(&walk, graph, place, &starts, bits, writes);
		walk_block(&walk, graph->forward[place]);
		tell_successors(&walk, graph, place, &starts);
	}
	return walk.decided;
}
