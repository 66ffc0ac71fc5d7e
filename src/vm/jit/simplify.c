// SPDX-License-Identifier: BSD-2-Clause
/* One instruction becomes a cheaper one, by what is known of its operands. */
#include "vm/jit/values.h"

static uint64_t cut(uint64_t value, unsigned int bytes)
{
	return bytes >= 8 ? value : value & ((1ull << 8 * bytes) - 1);
}

static bool is_number(const struct jit_walk *walk, uint8_t reg)
{
	return reg != JIT_NONE && walk->now.kind[reg] == JIT_NUMBER;
}

/* Can the instruction have the number as an immediate? */
static bool can_be_immediate(const struct jit_walk *walk, const struct jit_insn *insn,
			     uint64_t number)
{
	const struct jit_target *target = walk->function->target;

	if (insn->width == 8 && number != (uint64_t)(int32_t)number)
		return false;
	return !target->can_immediate || target->can_immediate(insn, number);
}

static void becomes_number(struct jit_walk *walk, struct jit_insn *insn, uint64_t number)
{
	const struct jit_state *now = &walk->now;

	if (now->kind[insn->dst] == JIT_NUMBER && (uint64_t)now->number[insn->dst] == number) {
		jit_delete(insn);
		return;
	}
	insn->op = JIT_MOV;
	insn->width = number == (uint32_t)number ? 4 : 8;
	insn->a = insn->b = JIT_NONE;
	insn->flags = 0;
	insn->imm = number;
}

/* dst = a, of which the width is taken. */
static void becomes_move(struct jit_walk *walk, struct jit_insn *insn, uint8_t a)
{
	const struct jit_state *now = &walk->now;

	if (is_number(walk, a)) {
		becomes_number(walk, insn, cut(now->number[a], insn->width));
		return;
	}
	if (insn->width == 4 && now->bits[a] <= 32)
		insn->width = 8;
	if (insn->width == 8 && jit_root(now, insn->dst) == jit_root(now, a)) {
		jit_delete(insn);
		return;
	}
	insn->op = JIT_MOV;
	insn->a = a;
	insn->b = JIT_NONE;
	insn->flags = 0;
	insn->imm = 0;
}

static void becomes_extension(struct jit_walk *walk, struct jit_insn *insn, uint8_t a,
			      unsigned int size, bool is_signed)
{
	if (!is_signed && size == 4) {
		insn->width = 4;
		becomes_move(walk, insn, a);
		return;
	}
	insn->op = JIT_EXT;
	insn->size = size;
	insn->a = a;
	insn->b = JIT_NONE;
	insn->flags = is_signed ? JIT_FLAG_SIGNED : 0;
	insn->imm = 0;
	jit_simplify(walk, insn);
}

static void becomes_shift(struct jit_insn *insn, enum jit_op op, unsigned int shift)
{
	insn->op = op;
	insn->flags = 0;
	insn->b = JIT_NONE;
	insn->imm = shift;
}

static void simplify_extension(struct jit_walk *walk, struct jit_insn *insn)
{
	bool is_signed = insn->flags & JIT_FLAG_SIGNED;
	unsigned int size = 8 * insn->size, bits = walk->now.bits[insn->a];

	if (is_number(walk, insn->a))
		becomes_number(walk, insn, jit_compute(insn, walk->now.number[insn->a], 0));
	else if (bits < size || (bits == size && !is_signed))
		becomes_move(walk, insn, insn->a);
	else if (!is_signed && insn->size == 4)
		becomes_extension(walk, insn, insn->a, 4, false);
	else if (!is_signed)
		insn->width = 4; /* shorter, and the same */
}

static void simplify_and(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	unsigned int bits = walk->now.bits[insn->a];
	uint64_t most = bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;

	if (!imm)
		becomes_number(walk, insn, 0);
	else if ((imm & cut(most, insn->width)) == cut(most, insn->width))
		becomes_move(walk, insn, insn->a);
	else if (imm == 0xff)
		becomes_extension(walk, insn, insn->a, 1, false);
	else if (imm == 0xffff)
		becomes_extension(walk, insn, insn->a, 2, false);
	else if (imm == UINT32_MAX)
		becomes_extension(walk, insn, insn->a, 4, false);
	else if (imm <= INT32_MAX)
		insn->width = 4;
}

static void simplify_multiply(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	if (!imm)
		becomes_number(walk, insn, 0);
	else if (imm == 1)
		becomes_move(walk, insn, insn->a);
	else if (!(imm & (imm - 1)))
		becomes_shift(insn, JIT_LSH, __builtin_ctzll(imm));
	else if (imm == cut(UINT64_MAX, insn->width)) {
		insn->op = JIT_NEG;
		insn->imm = 0;
	}
}

static void simplify_divide(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	bool is_signed = insn->flags & JIT_FLAG_SIGNED;

	if (!imm) {
		becomes_number(walk, insn, 0);
	} else if (imm == 1) {
		becomes_move(walk, insn, insn->a);
	} else if (is_signed && imm == cut(UINT64_MAX, insn->width)) {
		insn->op = JIT_NEG;
		insn->flags = 0;
		insn->imm = 0;
	} else if (!is_signed && !(imm & (imm - 1))) {
		becomes_shift(insn, JIT_RSH, __builtin_ctzll(imm));
	}
}

static void simplify_modulo(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	bool is_signed = insn->flags & JIT_FLAG_SIGNED;

	if (!imm) {
		becomes_move(walk, insn, insn->a);
	} else if (imm == 1 || (is_signed && imm == cut(UINT64_MAX, insn->width))) {
		becomes_number(walk, insn, 0);
	} else if (!is_signed && !(imm & (imm - 1))) {
		insn->op = JIT_AND;
		insn->imm = imm - 1;
		simplify_and(walk, insn, imm - 1);
	}
}

/* Shifts up and down again by the same number of bits cut or extend; by less, extend and shift. */
static void simplify_shift_back(struct jit_walk *walk, struct jit_insn *insn)
{
	uint32_t at = walk->written[insn->a];
	struct jit_insn *up = at ? &walk->function->insns[at - 1] : NULL;
	unsigned int down = insn->imm;
	bool is_signed = insn->op == JIT_ARSH;
	uint8_t from;

	if (!up || up->op != JIT_LSH || up->width != 8 || up->b != JIT_NONE)
		return;
	from = up->a;
	if (from == up->dst ? !(walk->unread & jit_bit(from)) : walk->written[from] >= at)
		return;
	if (up->imm == down && (down == 32 || down == 48 || down == 56)) {
		if (from == up->dst && insn->dst != from)
			return;
		if (from == up->dst) { /* the old value comes back */
			jit_delete(up);
			walk->now.bits[from] = walk->bits_before[from];
			walk->now.kind[from] = JIT_ANYTHING;
			walk->written[from] = 0;
		}
		becomes_extension(walk, insn, from, 8 - down / 8, is_signed);
		return;
	}
	if (up->imm != 32 || !down || down > 32 || insn->dst != up->dst ||
	    !(walk->unread & jit_bit(insn->dst)))
		return;
	up->op = is_signed ? JIT_EXT : JIT_MOV;
	up->size = 4;
	up->width = is_signed ? 8 : 4;
	up->flags = is_signed ? JIT_FLAG_SIGNED : 0;
	up->imm = 0;
	if (from == up->dst && walk->bits_before[from] < 32u + !is_signed)
		jit_delete(up);
	becomes_shift(insn, JIT_LSH, 32 - down);
}

static void simplify_shift(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	if (!imm)
		becomes_move(walk, insn, insn->a);
	else if (insn->op == JIT_RSH && imm >= walk->now.bits[insn->a])
		becomes_number(walk, insn, 0);
	else if (insn->op != JIT_LSH && insn->width == 8)
		simplify_shift_back(walk, insn);
}

static void simplify_subtract(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	uint64_t negative = insn->width == 4 ? (uint32_t)-imm : -imm;

	if (!imm) {
		becomes_move(walk, insn, insn->a);
	} else if (can_be_immediate(walk, insn, negative)) {
		insn->op = JIT_ADD;
		insn->imm = negative;
	}
}

/* a op imm */
static void simplify_immediate(struct jit_walk *walk, struct jit_insn *insn, uint64_t imm)
{
	switch (insn->op) {
	case JIT_SUB:
		simplify_subtract(walk, insn, imm);
		break;
	case JIT_ADD:
	case JIT_XOR:
		if (!imm)
			becomes_move(walk, insn, insn->a);
		break;
	case JIT_OR:
		if (!imm)
			becomes_move(walk, insn, insn->a);
		else if (imm == cut(UINT64_MAX, insn->width))
			becomes_number(walk, insn, imm);
		break;
	case JIT_AND:
		simplify_and(walk, insn, imm);
		break;
	case JIT_MUL:
		simplify_multiply(walk, insn, imm);
		break;
	case JIT_DIV:
		simplify_divide(walk, insn, imm);
		break;
	case JIT_MOD:
		simplify_modulo(walk, insn, imm);
		break;
	default:
		simplify_shift(walk, insn, imm);
	}
}

static bool commutes(uint8_t op)
{
	return op == JIT_ADD || op == JIT_MUL || op == JIT_OR || op == JIT_AND || op == JIT_XOR;
}

static void simplify_same(struct jit_walk *walk, struct jit_insn *insn)
{
	if (insn->op == JIT_SUB || insn->op == JIT_XOR)
		becomes_number(walk, insn, 0);
	else if (insn->op == JIT_OR || insn->op == JIT_AND)
		becomes_move(walk, insn, insn->a);
}

static void simplify_alu(struct jit_walk *walk, struct jit_insn *insn)
{
	const struct jit_state *now = &walk->now;
	bool is_shift = insn->op >= JIT_LSH && insn->op <= JIT_ARSH;
	uint64_t b;

	if (is_number(walk, insn->a) && !is_number(walk, insn->b) && insn->b != JIT_NONE &&
	    commutes(insn->op)) {
		uint8_t reg = insn->a;

		insn->a = insn->b;
		insn->b = reg;
	}
	if (insn->b != JIT_NONE && !is_number(walk, insn->b)) {
		if (insn->a == insn->b)
			simplify_same(walk, insn);
		return;
	}
	b = cut(insn->b == JIT_NONE ? insn->imm : (uint64_t)now->number[insn->b], insn->width);
	if (is_shift)
		b &= 8 * insn->width - 1;
	if (is_number(walk, insn->a)) {
		becomes_number(walk, insn, jit_compute(insn, now->number[insn->a], b));
		return;
	}
	if (insn->b != JIT_NONE && !is_shift && !can_be_immediate(walk, insn, b)) {
		if (insn->op == JIT_AND && b == UINT32_MAX)
			simplify_and(walk, insn, b);
		return;
	}
	insn->b = JIT_NONE;
	insn->imm = b;
	simplify_immediate(walk, insn, b);
}

static void becomes_jump(struct jit_walk *walk, struct jit_insn *insn, bool taken)
{
	struct jit_block *block = &walk->function->blocks[walk->block];

	if (taken)
		block->next = block->taken;
	block->taken = JIT_NOWHERE;
	insn->op = JIT_JUMP;
	insn->a = insn->b = JIT_NONE;
	insn->imm = 0;
	walk->decided = true;
}

/* How many bytes tell two registers apart, for who compares one of them in memory. */
static void note_size(const struct jit_walk *walk, struct jit_insn *insn)
{
	unsigned int a = walk->now.bits[insn->a], b = walk->now.bits[insn->b], bits = a > b ? a : b;

	insn->size = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

static void simplify_branch(struct jit_walk *walk, struct jit_insn *insn)
{
	const struct jit_state *now = &walk->now;
	uint64_t b;
	int decided;

	if (insn->a == JIT_NONE)
		return;
	if (is_number(walk, insn->a) && insn->b != JIT_NONE && !is_number(walk, insn->b)) {
		uint8_t reg = insn->a;

		insn->a = insn->b;
		insn->b = reg;
		insn->sub = jit_turned(insn->sub);
	}
	if (insn->b != JIT_NONE && !is_number(walk, insn->b)) {
		note_size(walk, insn);
		return;
	}
	b = cut(insn->b == JIT_NONE ? insn->imm : (uint64_t)now->number[insn->b], insn->width);
	if (is_number(walk, insn->a)) {
		becomes_jump(walk, insn, jit_holds(insn, now->number[insn->a], b));
		return;
	}
	if (insn->b != JIT_NONE && !can_be_immediate(walk, insn, b))
		return;
	insn->b = JIT_NONE;
	insn->imm = b;
	decided = jit_decide(insn, now->bits[insn->a]);
	if (!b && insn->width == 8 && insn->sub <= JIT_NE && now->kind[insn->a] == JIT_NONZERO)
		decided = insn->sub == JIT_NE;
	if (decided >= 0)
		becomes_jump(walk, insn, decided);
	else if (insn->sub >= JIT_SGT && insn->sub <= JIT_SLE &&
		 now->bits[insn->a] < 8 * insn->width)
		insn->sub -= JIT_SGT - JIT_GT; /* both are positive */
}

/* A store has its number sign-extended, from the bytes that are stored. */
static void simplify_store(struct jit_walk *walk, struct jit_insn *insn)
{
	unsigned int unused = 64 - 8 * insn->size;
	int64_t number;

	if (!is_number(walk, insn->b))
		return;
	number = (int64_t)((uint64_t)walk->now.number[insn->b] << unused) >> unused;
	if (!can_be_immediate(walk, insn, number))
		return;
	insn->b = JIT_NONE;
	insn->imm = number;
}

static bool in_frame(const struct jit_walk *walk, int64_t off, unsigned int size)
{
	return off < 0 && off >= -(int64_t)walk->function->frame && off + size <= 0;
}

/* A value that the frame holds and a register, too. */
static void simplify_load(struct jit_walk *walk, struct jit_insn *insn)
{
	const struct jit_slot *slot;

	if (insn->base != ISA_FRAME || insn->index != JIT_NONE)
		return;
	slot = jit_find_slot(walk, insn->off, insn->size);
	if (!slot || slot->lost)
		return;
	insn->op = JIT_EXT;
	insn->base = JIT_NONE;
	insn->off = 0;
	insn->width = 8;
	if (slot->reg == JIT_NONE)
		becomes_number(walk, insn, jit_compute(insn, slot->number, 0));
	else if (insn->size == 8)
		becomes_move(walk, insn, slot->reg);
	else
		becomes_extension(walk, insn, slot->reg, insn->size, insn->flags & JIT_FLAG_SIGNED);
}

void jit_simplify(struct jit_walk *walk, struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_MOV:
		if (insn->a == JIT_NONE)
			becomes_number(walk, insn, cut(insn->imm, insn->width));
		else
			becomes_move(walk, insn, insn->a);
		break;
	case JIT_EXT:
		simplify_extension(walk, insn);
		break;
	case JIT_NEG:
	case JIT_BSWAP:
		if (is_number(walk, insn->a))
			becomes_number(walk, insn, jit_compute(insn, walk->now.number[insn->a], 0));
		break;
	case JIT_BRANCH:
		simplify_branch(walk, insn);
		break;
	case JIT_STORE:
		simplify_store(walk, insn);
		break;
	case JIT_LOAD:
		simplify_load(walk, insn);
		break;
	case JIT_CHECK:
		if (insn->base == ISA_FRAME && insn->index == JIT_NONE &&
		    in_frame(walk, insn->off, insn->imm))
			jit_delete(insn);
		break;
	default:
		if (insn->op <= JIT_ARSH && insn->op != JIT_NOP)
			simplify_alu(walk, insn);
	}
}
