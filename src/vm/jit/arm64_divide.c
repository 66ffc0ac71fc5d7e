// SPDX-License-Identifier: BSD-2-Clause
/*
 * Division. The machine's own already does what RFC 9669 wants: 0 when the divisor is 0, and
 * MIN / -1 = MIN; then a - quotient * divisor is a, and 0. Constants are multiplied by: see struct
 * jit_magic.
 */
#include "vm/jit/arm64.h"

#include <assert.h>

struct division {
	const struct jit_insn *in;
	bool wide, modulo;
	int bits;
	int rn;
	uint64_t divisor; /* its magnitude when signed */
	bool negative;
};

/* The result of a division is @quotient, or what it leaves of rn. */
static void finish(struct a64 *e, const struct division *d, int quotient)
{
	int rm, rd;

	if (!d->modulo) {
		rd = a64_def(e, d->in->dst);
		if (rd != quotient)
			a64_out(e, a64_mov(d->wide, rd, quotient));
		return;
	}
	rm = a64_constant(e, d->divisor, A64_T1);
	rd = a64_def(e, d->in->dst);
	a64_out(e, a64_msub(d->wide, rd, quotient, rm, d->rn));
}

/* Where the last step of a quotient goes: straight to the result when that is all. */
static int last(struct a64 *e, const struct division *d)
{
	return d->modulo ? A64_T0 : a64_def(e, d->in->dst);
}

static void unsigned_power(struct a64 *e, const struct division *d)
{
	const int bit = __builtin_ctzll(d->divisor);
	int rd = a64_def(e, d->in->dst);

	if (!d->modulo)
		a64_out(e, a64_shift_imm(d->wide, A64_LSR, rd, d->rn, bit));
	else if (bit)
		a64_out(e, a64_extract(d->wide, false, rd, d->rn, 0, bit));
	else
		a64_out(e, a64_movz(false, rd, 0, 0));
}

/* The product of 32 bits fits a register; with 33 bits of multiplier, 64 bits do it better: any
 * quotient of 32 bits is the upper half of n * ceil(2^64 / divisor). */
static void unsigned_narrow(struct a64 *e, const struct division *d, struct jit_magic magic)
{
	int rn = d->rn, rm, rd;

	if (magic.add) {
		rm = a64_constant(e, UINT64_MAX / d->divisor + 1, A64_T1);
		a64_out(e, a64_mov(false, A64_T0, rn));
		rd = last(e, d);
		a64_out(e, a64_umulh(rd, A64_T0, rm));
		finish(e, d, rd);
		return;
	}
	if (magic.before) {
		a64_out(e, a64_shift_imm(false, A64_LSR, A64_T0, rn, magic.before));
		rn = A64_T0;
	}
	rm = a64_constant(e, (uint32_t)magic.multiplier, A64_T1);
	a64_out(e, a64_umaddl(A64_T0, rn, rm, A64_ZR));
	rd = last(e, d);
	a64_out(e, a64_shift_imm(true, A64_LSR, rd, A64_T0, 32 + magic.shift));
	finish(e, d, rd);
}

static void unsigned_wide(struct a64 *e, const struct division *d, struct jit_magic magic)
{
	int rn = d->rn, rm, rd;

	if (magic.before) {
		a64_out(e, a64_shift_imm(true, A64_LSR, A64_T0, rn, magic.before));
		rn = A64_T0;
	}
	rm = a64_constant(e, magic.multiplier, A64_T1);
	if (!magic.add && !magic.shift) {
		rd = last(e, d);
		a64_out(e, a64_umulh(rd, rn, rm));
		finish(e, d, rd);
		return;
	}
	a64_out(e, a64_umulh(A64_T0, rn, rm));
	if (magic.add) { /* (high + n) >> shift, without the carry: ((n - high) / 2 + high) >> ... */
		assert(!magic.before && magic.shift);
		a64_out(e, a64_arith_reg(true, A64_SUB, A64_T1, rn, A64_T0, A64_LSL, 0));
		rd = magic.shift == 1 ? last(e, d) : A64_T0;
		a64_out(e, a64_arith_reg(true, A64_ADD, rd, A64_T0, A64_T1, A64_LSR, 1));
		magic.shift--;
		if (!magic.shift) {
			finish(e, d, rd);
			return;
		}
	}
	rd = last(e, d);
	a64_out(e, a64_shift_imm(true, A64_LSR, rd, A64_T0, magic.shift));
	finish(e, d, rd);
}

/* Rounded towards zero: negative dividends get divisor - 1 first. */
static void signed_power(struct a64 *e, const struct division *d)
{
	const int bit = __builtin_ctzll(d->divisor);
	int sign = A64_T0, rd;

	if (!bit && d->modulo) {
		a64_out(e, a64_movz(false, a64_def(e, d->in->dst), 0, 0));
		return;
	}
	if (!bit) {
		rd = a64_def(e, d->in->dst);
		a64_out(e, a64_arith_reg(d->wide, d->negative ? A64_SUB : A64_ADD, rd, A64_ZR,
					 d->rn, A64_LSL, 0));
		return;
	}
	if (bit > 1)
		a64_out(e, a64_shift_imm(d->wide, A64_ASR, sign, d->rn, d->bits - 1));
	else
		sign = d->rn;
	a64_out(e, a64_arith_reg(d->wide, A64_ADD, A64_T1, d->rn, sign, A64_LSR, d->bits - bit));
	if (d->modulo) { /* n less its multiple */
		a64_out(e, a64_logic_imm(d->wide, A64_AND, A64_T1, A64_T1,
					 a64_find_logic(d->wide, -d->divisor)));
		rd = a64_def(e, d->in->dst);
		a64_out(e, a64_arith_reg(d->wide, A64_SUB, rd, d->rn, A64_T1, A64_LSL, 0));
	} else {
		rd = a64_def(e, d->in->dst);
		if (d->negative)
			a64_out(e,
				a64_arith_reg(d->wide, A64_SUB, rd, A64_ZR, A64_T1, A64_ASR, bit));
		else
			a64_out(e, a64_shift_imm(d->wide, A64_ASR, rd, A64_T1, bit));
	}
}

/* quotient - (n < 0 ? -1 : 0), turned round for a negative divisor. */
static void signed_end(struct a64 *e, const struct division *d, int quotient)
{
	int rd;

	if (d->negative && !d->modulo) {
		a64_out(e, a64_shift_imm(d->wide, A64_ASR, A64_T1, d->rn, d->bits - 1));
		rd = last(e, d);
		a64_out(e, a64_arith_reg(d->wide, A64_SUB, rd, A64_T1, quotient, A64_LSL, 0));
	} else {
		rd = last(e, d);
		a64_out(e,
			a64_arith_reg(d->wide, A64_SUB, rd, quotient, d->rn, A64_ASR, d->bits - 1));
	}
	finish(e, d, rd);
}

static void signed_magic(struct a64 *e, const struct division *d)
{
	struct jit_magic magic = jit_magic_signed(d->divisor, d->bits);
	int rm;

	if (d->wide) {
		rm = a64_constant(e, magic.multiplier, A64_T1);
		a64_out(e, a64_smulh(A64_T0, d->rn, rm));
		if (magic.add)
			a64_out(e, a64_arith_reg(true, A64_ADD, A64_T0, A64_T0, d->rn, A64_LSL, 0));
		if (magic.shift)
			a64_out(e, a64_shift_imm(true, A64_ASR, A64_T0, A64_T0, magic.shift));
	} else {
		/* With add the multiplier has its upper bit set, and the product of n with all of
		 * it fits 64 bits. */
		rm = a64_constant(e, (uint32_t)magic.multiplier, A64_T1);
		if (magic.add) {
			a64_out(e, a64_extract(true, true, A64_T0, d->rn, 0, 32));
			a64_out(e, a64_madd(true, A64_T0, A64_T0, rm, A64_ZR));
		} else {
			a64_out(e, a64_smaddl(A64_T0, d->rn, rm, A64_ZR));
		}
		a64_out(e, a64_shift_imm(true, A64_ASR, A64_T0, A64_T0, 32 + magic.shift));
	}
	signed_end(e, d, A64_T0);
}

static void by_constant(struct a64 *e, struct division *d)
{
	struct jit_magic magic;

	if (!d->divisor) {
		int rd = a64_def(e, d->in->dst);

		if (!d->modulo)
			a64_out(e, a64_movz(false, rd, 0, 0));
		else
			a64_out(e, a64_mov(d->wide, rd, d->rn));
		return;
	}
	if (!(d->divisor & (d->divisor - 1))) {
		if (d->in->flags & JIT_FLAG_SIGNED)
			signed_power(e, d);
		else
			unsigned_power(e, d);
		return;
	}
	if (d->in->flags & JIT_FLAG_SIGNED) {
		signed_magic(e, d);
		return;
	}
	magic = jit_magic_unsigned(d->divisor, d->bits);
	if (d->wide)
		unsigned_wide(e, d, magic);
	else
		unsigned_narrow(e, d, magic);
}

void a64_divide(struct a64 *e, const struct jit_insn *in)
{
	const bool is_signed = in->flags & JIT_FLAG_SIGNED, wide = a64_wide(in);
	struct division d = { .in = in, .wide = wide, .modulo = in->op == JIT_MOD };
	int rm, rd, quotient;

	d.bits = wide ? 64 : 32;
	d.rn = a64_value(e, in->a, A64_T2);
	d.divisor = a64_imm(in);
	if (in->b == JIT_NONE && a64_pass(e, VM_PASS_DIVIDE)) {
		d.negative = is_signed && (wide ? (int64_t)in->imm < 0 : (int32_t)in->imm < 0);
		if (d.negative)
			d.divisor = wide ? -in->imm : (uint32_t)-in->imm;
		by_constant(e, &d);
		return;
	}
	rm = in->b == JIT_NONE ? a64_constant(e, d.divisor, A64_T1) : a64_value(e, in->b, A64_T1);
	quotient = A64_T0;
	if (!d.modulo)
		quotient = a64_def(e, in->dst);
	a64_out(e, is_signed ? a64_sdiv(wide, quotient, d.rn, rm)
			     : a64_udiv(wide, quotient, d.rn, rm));
	if (!d.modulo)
		return;
	rd = a64_def(e, in->dst);
	a64_out(e, a64_msub(wide, rd, quotient, rm, d.rn));
}
