// SPDX-License-Identifier: BSD-2-Clause
/* Shapes with pointers: what addressing modes, read-modify-write and bounds checks feed on. */
#include "generate_internal.h"

#define MOVES_FAR 20000 /* bytes that a pointer may be moved, when the access moves it back */

/* Some distance that [low, high) can be moved back by: offsets have 16 bits. */
static int32_t random_distance(struct generator *g, int32_t low, int32_t high)
{
	int32_t moved = (int32_t)below(g, 2 * MOVES_FAR) - MOVES_FAR;

	return low - moved < INT16_MIN || high - moved > INT16_MAX ? 0 : moved;
}

static const uint8_t loads[] = { 0x71, 0x69, 0x61, 0x79 }; /* by log2 of the width */
static const uint8_t signed_loads[] = { 0x91, 0x89, 0x81, 0x79 };
static const uint8_t stores[] = { 0x73, 0x6b, 0x63, 0x7b };
static const uint8_t stores_k[] = { 0x72, 0x6a, 0x62, 0x7a };

/* An index of 0 to @mask in @reg, in one of the ways that compilers and verifier know. Returns the
 * jump that leaves when it is too large, or SIZE_MAX. */
#define NO_JUMP SIZE_MAX
static size_t emit_index(struct generator *g, uint32_t reg, uint32_t mask)
{
	uint32_t bits = __builtin_ctz(mask + 1);

	switch (below(g, 6)) {
	case 0:
		emit(g, MOV_X(reg, source(g)));
		emit(g, RAW(0x57, reg, 0, 0, mask));
		return NO_JUMP;
	case 1:
		emit(g, MOV32_X(reg, source(g)));
		emit(g, RAW(0x54, reg, 0, 0, mask));
		return NO_JUMP;
	case 2:
		emit(g, LDX_B(reg, GENERATE_VALUE_BASE, below(g, 64)));
		emit(g, RAW(0x57, reg, 0, 0, mask));
		return NO_JUMP;
	case 3: /* the uppermost bits */
		emit(g, MOV_X(reg, source(g)));
		if (!bits)
			emit(g, MOV_K(reg, 0));
		else
			emit(g, RAW(0x77, reg, 0, 0, 64 - bits));
		return NO_JUMP;
	case 4: /* if (index > mask) leave, on 64 bits */
		emit(g, MOV_X(reg, source(g)));
		if (one_in(g, 2))
			emit(g, RAW(0x57, reg, 0, 0, 2 * mask + 1));
		emit(g, RAW(0x25, reg, 0, 0, mask));
		return g->program->ncode - 1;
	default: /* if (index >= mask + 1) leave, on 32 bits */
		emit(g, MOV32_X(reg, source(g)));
		emit(g, RAW(0x36, reg, 0, 0, mask + 1));
		return g->program->ncode - 1;
	}
}

/* Load, change and store, with the pointer moving on in between: *p++ += x and its relatives. */
static void emit_walk(struct generator *g)
{
	struct generate_base *base = &g->bases[g->nbases - 1];
	uint32_t log = below(g, 4), size = 1 << log, reg = target(g), moves = 1 + below(g, 2);
	int16_t from = base->low + below(g, base->high - base->low - size + 1);
	int32_t moved;

	emit(g, RAW(loads[log], reg, base->reg, from, 0));
	for (uint32_t i = 0; i < 2; i++) {
		if (i < moves) {
			/* Often such that the same offset is another place. */
			moved = (int32_t)below(g, base->high - base->low) - size;
			emit(g, ADD_K(base->reg, moved));
			base->low -= moved;
			base->high -= moved;
			base->phase = (base->phase + moved) & 7;
		}
		if (!i)
			emit(g, RAW(0x07, reg, 0, 0, random_edge(g->random)));
	}
	if (from < base->low || from + (int32_t)size > base->high)
		from = base->low + below(g, base->high - base->low - size + 1);
	emit(g, RAW(stores[log], base->reg, reg, from, 0));
}

/* A use of the pointer that was just made, then anything. */
static void emit_uses(struct generator *g)
{
	const struct generate_base *base = &g->bases[g->nbases - 1];

	for (uint32_t n = 1 + below(g, 3); n; n--) {
		uint32_t log = below(g, 4);
		int16_t off = base->low;

		if (base->high - base->low < 1 << log)
			log = 0;
		if (!base->stack)
			off += below(g, base->high - base->low - (1 << log) + 1);
		else if (base->align < 1 << log || (base->low + base->phase) & ((1 << log) - 1))
			break;
		switch (below(g, 4)) {
		case 0:
			emit(g, RAW(stores[log], base->reg, source(g), off, 0));
			break;
		case 1:
			emit(g, RAW(stores_k[log], base->reg, 0, off, random_edge(g->random)));
			break;
		case 2:
			emit(g, RAW(signed_loads[log], target(g), base->reg, off, 0));
			break;
		default:
			emit(g, RAW(loads[log], target(g), base->reg, off, 0));
		}
	}
	if (!base->stack && base->high - base->low >= 8 && one_in(g, 3))
		emit_walk(g);
	emit_some(g, 1 + below(g, 3));
}

/* The pointer ends as a number, now and then by a load through itself. */
static void forget(struct generator *g, uint32_t pointer)
{
	const struct generate_base *base = &g->bases[--g->nbases];

	if (!base->stack && one_in(g, 4))
		emit(g, RAW(loads[0], pointer, pointer, base->low, 0));
	else
		emit_number(g, pointer);
	give(g, pointer);
}

/*
 * pointer = base + (index << scale) + moved
 *
 * Not number += frame pointer: the verifier (seen on 6.18) then takes the sum for a place in the
 * outermost function's frame, whatever function it is in, misses what is stored there, and removes
 * reachable code as dead.
 */
static void emit_address(struct generator *g, const struct generate_base *from, uint32_t pointer,
			 uint32_t index, uint32_t scale, int32_t moved)
{
	switch (from->stack ? 3 : below(g, 4)) {
	case 0: /* index first */
		emit(g, MOV_X(pointer, index));
		if (scale || one_in(g, 8))
			emit(g, RAW(0x67, pointer, 0, 0, scale));
		emit(g, ADD_X(pointer, from->reg));
		break;
	case 1: /* ... by multiplication */
		emit(g, MOV_X(pointer, index));
		emit(g, RAW(0x27, pointer, 0, 0, 1 << scale));
		emit(g, ADD_X(pointer, from->reg));
		break;
	default:
		if (scale || one_in(g, 8))
			emit(g, RAW(0x67, index, 0, 0, scale));
		emit(g, MOV_X(pointer, from->reg));
		emit(g, ADD_X(pointer, index));
	}
	if (moved)
		emit(g, ADD_K(pointer, moved));
}

void shape_scaled(struct generator *g)
{
	const struct generate_base from = g->bases[below(g, g->nbases)];
	uint32_t scale = below(g, 4), mask = (1u << below(g, 4)) - 1, span = mask << scale, room;
	int pointer, index;
	int32_t at, moved = 0;
	size_t jump;

	if (g->nbases == GENERATE_BASES || (int32_t)span + 8 > from.high - from.low)
		return;
	pointer = take(g, true);
	if (pointer < 0)
		return;
	index = take(g, true);
	if (index < 0) {
		give(g, pointer);
		return;
	}
	room = from.high - from.low - span - 8;
	at = from.low + (room ? below(g, room + 1) & (from.stack ? ~7u : ~0u) : 0);
	if (one_in(g, 3))
		moved = one_in(g, 4) ? at : random_distance(g, at, at + 8);
	jump = emit_index(g, index, mask);
	if (one_in(g, 3))
		emit_some(g, 1);
	emit_address(g, &from, pointer, index, scale, moved);
	give(g, index);
	if (one_in(g, 3))
		emit(g, ADD_K(index, 1)); /* the index of the next turn, before the access */
	g->bases[g->nbases++] =
		(struct generate_base){ .reg = pointer,
					.stack = from.stack,
					.variable = mask || from.variable,
					.align = from.stack && scale < 3 && mask ? 1 << scale
										 : from.align,
					.phase = (from.phase + moved) & 7,
					.low = at - moved,
					.high = at - moved + 8 };
	if (!from.stack) /* atomics want to know */
		g->bases[g->nbases - 1].align = mask && scale < 3 ? 1 << scale : from.align;
	emit_uses(g);
	forget(g, pointer);
	if (jump != NO_JUMP)
		land(g, jump);
}

/* A copy of a pointer, moved. */
void shape_pointer(struct generator *g)
{
	const struct generate_base from = g->bases[below(g, g->nbases)];
	int32_t moved;
	int pointer;

	if (g->nbases == GENERATE_BASES)
		return;
	pointer = take(g, true);
	if (pointer < 0)
		return;
	moved = one_in(g, 3) ? random_distance(g, from.low, from.high)
			     : from.low + (int32_t)below(g, from.high - from.low);
	emit(g, MOV_X(pointer, from.reg));
	if (!from.stack && one_in(g, 4)) /* the verifier does not subtract from the frame */
		emit(g, RAW(0x17, pointer, 0, 0, -moved));
	else
		emit(g, ADD_K(pointer, moved));
	g->bases[g->nbases] = from;
	g->bases[g->nbases].reg = pointer;
	g->bases[g->nbases].phase = (from.phase + moved) & 7;
	g->bases[g->nbases].low -= moved;
	g->bases[g->nbases++].high -= moved;
	emit_uses(g);
	forget(g, pointer);
}

/* The place for a load and a store that may be one instruction together. */
struct cell {
	uint32_t base, log;
	int16_t off;
};

static void random_cell(struct generator *g, struct cell *cell)
{
	cell->log = below(g, 4);
	place(g, 1 << cell->log, false, false, &cell->base, &cell->off);
}

/* memory op= something, in three instructions; sometimes not quite. */
void shape_change(struct generator *g)
{
	static const uint8_t nibbles[] = { BPF_ADD, BPF_SUB, BPF_OR,  BPF_AND, BPF_XOR,
					   BPF_ADD, BPF_XOR, BPF_LSH, BPF_MUL, BPF_RSH };
	uint8_t code = nibbles[below(g, COUNT_OF(nibbles))] | (one_in(g, 2) ? BPF_ALU64 : BPF_ALU);
	uint32_t reg = target(g), log, other = source(g);
	int32_t imm = random_edge(g->random);
	struct cell cell;

	random_cell(g, &cell);
	emit(g, RAW((one_in(g, 6) ? signed_loads : loads)[cell.log], reg, cell.base, cell.off, 0));
	if (one_in(g, 8))
		emit_some(g, 1);
	if (other != reg && one_in(g, 2))
		emit(g, RAW(code | BPF_X, reg, other, 0, 0));
	else
		emit(g, RAW(code | BPF_K, reg, 0, 0,
			    (code & 0xf0) == BPF_LSH || (code & 0xf0) == BPF_RSH ? imm & 31 : imm));
	if (one_in(g, 8))
		emit_some(g, 1);
	log = one_in(g, 8) && cell.log ? below(g, cell.log) : cell.log;
	if (writable(g, reg) || one_in(g, 2))
		emit(g, RAW(stores[log], cell.base, reg, cell.off, 0));
	if (one_in(g, 2) && writable(g, reg)) /* the value is of no use any more */
		emit_constant(g, reg);
}

/* if (memory op something): load and compare. */
void shape_test_memory(struct generator *g)
{
	uint32_t reg = target(g);
	struct cell cell;
	size_t at;

	random_cell(g, &cell);
	emit(g, RAW((one_in(g, 3) ? signed_loads : loads)[cell.log], reg, cell.base, cell.off, 0));
	if (one_in(g, 6))
		emit(g, RAW(stores_k[cell.log], cell.base, 0, cell.off, random_edge(g->random)));
	at = emit_condition(g, reg);
	if (one_in(g, 2))
		emit_constant(g, reg);
	else
		emit_some(g, 1);
	land(g, at);
	if (one_in(g, 2) && writable(g, reg))
		emit_constant(g, reg);
}

/* Several stores or a copy, side by side. */
void shape_fill(struct generator *g)
{
	uint32_t log = below(g, 3), n = 1 + below(g, 8 >> log), reg = target(g), from, to;
	int32_t imm = random_edge(g->random);
	bool copies = one_in(g, 2);
	int16_t to_off, from_off;

	place(g, 8, false, false, &to, &to_off);
	place(g, 8, false, false, &from, &from_off);
	for (uint32_t i = 0; i < n; i++) {
		if (copies) {
			emit(g, RAW(loads[log], reg, from, from_off + (i << log), 0));
			emit(g, RAW(stores[log], to, reg, to_off + (i << log), 0));
		} else {
			emit(g, RAW(stores_k[log], to, 0, to_off + (i << log), imm));
		}
	}
}
