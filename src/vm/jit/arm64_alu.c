// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/arm64.h"

#include <assert.h>

static enum a64_shift shift_of(const struct jit_insn *in)
{
	return in->op == JIT_LSH ? A64_LSL : (in->op == JIT_RSH ? A64_LSR : A64_ASR);
}

static enum a64_logic logic_of(const struct jit_insn *in)
{
	return in->op == JIT_AND ? A64_AND : (in->op == JIT_OR ? A64_ORR : A64_EOR);
}

/* dst = a + value; r10 is a plain source here. */
static void add_constant(struct a64 *e, const struct jit_insn *in, int64_t value)
{
	int rd, rn;

	if (in->a == 10 && e->frame_on_sp && a64_wide(in)) {
		rd = a64_def(e, in->dst);
		a64_add_imm(e, true, rd, A64_SP, (uint64_t)value + e->frame_top, A64_T0);
		return;
	}
	rn = a64_value(e, in->a, A64_T1);
	rd = a64_def(e, in->dst);
	a64_add_imm(e, a64_wide(in), rd, rn, a64_wide(in) ? value : (int32_t)value, A64_T0);
}

static void logic_constant(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	const uint64_t value = a64_imm(in), ones = wide ? UINT64_MAX : UINT32_MAX;
	int field = a64_find_logic(wide, value);
	int rn = a64_value(e, in->a, A64_T1), rm, rd;

	if (field >= 0) {
		rd = a64_def(e, in->dst);
		a64_out(e, a64_logic_imm(wide, logic_of(in), rd, rn, field));
	} else if (value == ones && in->op == JIT_XOR) {
		rd = a64_def(e, in->dst);
		a64_out(e, a64_logic_reg(wide, A64_ORR, true, rd, A64_ZR, rn, A64_LSL, 0));
	} else {
		rm = a64_constant(e, value, A64_T0);
		rd = a64_def(e, in->dst);
		a64_out(e, a64_logic_reg(wide, logic_of(in), false, rd, rn, rm, A64_LSL, 0));
	}
}

bool a64_multiplies_shifting(const struct jit_insn *in)
{
	uint64_t value = a64_wide(in) ? in->imm : (uint64_t)(int32_t)in->imm, near;
	const bool negative = (int64_t)value < 0;

	value = negative ? -value : value;
	near = negative ? value + 1 : value - 1;
	return !(value & (value - 1)) || !(near & (near - 1));
}

/* Powers of two, and one more or less, need no multiplication. */
static bool multiply_shifting(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	uint64_t value = wide ? in->imm : (uint64_t)(int32_t)in->imm;
	const bool negative = (int64_t)value < 0;
	const enum a64_arith op = negative ? A64_SUB : A64_ADD;
	int rn = a64_value(e, in->a, A64_T1), rd, bit;

	if (negative)
		value = -value;
	if (!value) {
		a64_out(e, a64_movz(false, a64_def(e, in->dst), 0, 0));
		return true;
	}
	bit = __builtin_ctzll(value);
	if (value == 1ull << bit) {
		rd = a64_def(e, in->dst);
		if (negative)
			a64_out(e, a64_arith_reg(wide, A64_SUB, rd, A64_ZR, rn, A64_LSL,
						 bit & (wide ? 63 : 31)));
		else
			a64_out(e, a64_shift_imm(wide, A64_LSL, rd, rn, bit));
		return true;
	}
	/* n + (n << bit), and n - (n << bit). */
	value += negative ? 1 : -1;
	bit = __builtin_ctzll(value);
	if (value != 1ull << bit || bit > (wide ? 63 : 31))
		return false;
	rd = a64_def(e, in->dst);
	a64_out(e, a64_arith_reg(wide, op, rd, rn, rn, A64_LSL, bit));
	return true;
}

static void alu_constant(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	int rn, rm, rd;

	switch (in->op) {
	case JIT_ADD:
		add_constant(e, in, in->imm);
		return;
	case JIT_SUB:
		add_constant(e, in, -in->imm);
		return;
	case JIT_OR:
	case JIT_AND:
	case JIT_XOR:
		logic_constant(e, in);
		return;
	case JIT_LSH:
	case JIT_RSH:
	case JIT_ARSH:
		rn = a64_value(e, in->a, A64_T1);
		rd = a64_def(e, in->dst);
		a64_out(e, a64_shift_imm(wide, shift_of(in), rd, rn, in->imm & (wide ? 63 : 31)));
		return;
	default:
		assert(in->op == JIT_MUL);
		if (multiply_shifting(e, in))
			return;
		rn = a64_value(e, in->a, A64_T1);
		rm = a64_constant(e, a64_imm(in), A64_T0);
		rd = a64_def(e, in->dst);
		a64_out(e, a64_madd(wide, rd, rn, rm, A64_ZR));
	}
}

static void alu_registers(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	int rn = a64_value(e, in->a, A64_T1), rm = a64_value(e, in->b, A64_T0);
	int rd = a64_def(e, in->dst);

	switch (in->op) {
	case JIT_ADD:
		a64_out(e, a64_arith_reg(wide, A64_ADD, rd, rn, rm, A64_LSL, 0));
		return;
	case JIT_SUB:
		a64_out(e, a64_arith_reg(wide, A64_SUB, rd, rn, rm, A64_LSL, 0));
		return;
	case JIT_OR:
	case JIT_AND:
	case JIT_XOR:
		a64_out(e, a64_logic_reg(wide, logic_of(in), false, rd, rn, rm, A64_LSL, 0));
		return;
	case JIT_LSH:
	case JIT_RSH:
	case JIT_ARSH:
		a64_out(e, a64_shift_reg(wide, shift_of(in), rd, rn, rm));
		return;
	default:
		assert(in->op == JIT_MUL);
		a64_out(e, a64_madd(wide, rd, rn, rm, A64_ZR));
	}
}

void a64_alu(struct a64 *e, const struct jit_insn *in)
{
	if (in->b == JIT_NONE)
		alu_constant(e, in);
	else
		alu_registers(e, in);
}

void a64_neg(struct a64 *e, const struct jit_insn *in)
{
	int rn = a64_value(e, in->a, A64_T1);
	int rd = a64_def(e, in->dst);

	a64_out(e, a64_arith_reg(a64_wide(in), A64_SUB, rd, A64_ZR, rn, A64_LSL, 0));
}

void a64_move(struct a64 *e, const struct jit_insn *in)
{
	int rn, rd;

	if (in->a == JIT_NONE) {
		rd = a64_def(e, in->dst);
		a64_move_imm(e, rd, a64_imm(in));
	} else if (in->a == 10 && e->frame_on_sp) {
		rd = a64_def(e, in->dst);
		a64_add_imm(e, true, rd, A64_SP, e->frame_top, A64_T0);
		if (!a64_wide(in))
			a64_out(e, a64_mov(false, rd, rd));
	} else {
		rn = a64_use(e, in->a);
		rd = a64_def(e, in->dst);
		if (a64_wide(in) || (in->flags & JIT_FLAG_ANY_UPPER))
			a64_copy(e, rd, rn);
		else
			a64_out(e, a64_mov(false, rd, rn));
	}
}

void a64_extend(struct a64 *e, const struct jit_insn *in)
{
	const bool is_signed = in->flags & JIT_FLAG_SIGNED;
	int rn = a64_value(e, in->a, A64_T1);
	int rd = a64_def(e, in->dst);

	if (in->size == 8 || (in->size == 4 && is_signed && !a64_wide(in)))
		a64_out(e, a64_mov(a64_wide(in), rd, rn));
	else if (in->size == 4 && !is_signed)
		a64_out(e, a64_mov(false, rd, rn));
	else
		a64_out(e,
			a64_extract(is_signed && a64_wide(in), is_signed, rd, rn, 0, in->size * 8));
}

void a64_bswap(struct a64 *e, const struct jit_insn *in)
{
	int rn = a64_value(e, in->a, A64_T1);
	int rd = a64_def(e, in->dst);

	a64_out(e, a64_rev(in->size == 8, rd, rn));
	if (in->size == 2)
		a64_out(e, a64_shift_imm(false, A64_LSR, rd, rd, 16));
}

void a64_lea(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	int rn, rm, rd;

	if (in->index == JIT_NONE || (in->base == 10 && e->frame_on_sp)) {
		if (in->index == JIT_NONE && !(in->base == 10 && e->frame_on_sp)) {
			rn = a64_use(e, in->base);
			rd = a64_def(e, in->dst);
			a64_add_imm(e, wide, rd, rn, in->off, A64_T0);
			return;
		}
		a64_operand_address(e, in, A64_T1);
		rd = a64_def(e, in->dst);
		a64_out(e, a64_mov(wide, rd, A64_T1));
		return;
	}
	rn = a64_use(e, in->base);
	rm = a64_use(e, in->index);
	rd = a64_def(e, in->dst);
	a64_out(e, a64_arith_reg(wide, A64_ADD, rd, rn, rm, A64_LSL, in->scale));
	if (in->off)
		a64_add_imm(e, wide, rd, rd, in->off, A64_T0);
}
