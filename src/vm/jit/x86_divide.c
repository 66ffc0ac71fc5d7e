// SPDX-License-Identifier: BSD-2-Clause
/*
 * Division. The processor wants the dividend in rdx:rax and leaves quotient and remainder there;
 * these are r3 and r0, kept in scratch registers only where they are live. What it would fault on
 * (0, MIN / -1) leaves for the end of the function before anything has been changed.
 */
#include "vm/jit/x86.h"

#include "vm/jit/plant.h"

struct division {
	const struct jit_insn *insn;
	unsigned int dst, a;
	bool wide, sign, modulo;
	bool keep_rax, keep_rdx;
};

static struct division division_of(const struct jit_insn *insn)
{
	return (struct division){
		.insn = insn,
		.dst = x86_registers[insn->dst],
		.wide = insn->width == 8,
		.sign = insn->flags & JIT_FLAG_SIGNED,
		.modulo = insn->op == JIT_MOD,
		.keep_rax = insn->dst != 0 && x86_is_live(insn, 0),
		.keep_rdx = insn->dst != 3 && x86_is_live(insn, 3) && !PLANT(6),
	};
}

static void save(struct x86 *x, const struct division *d)
{
	if (d->keep_rax)
		x86_mov_rr(&x->e, true, X86_R10, X86_RAX);
	if (d->keep_rdx)
		x86_mov_rr(&x->e, true, X86_R9, X86_RDX);
}

static void restore(struct x86 *x, const struct division *d)
{
	if (d->keep_rdx)
		x86_mov_rr(&x->e, true, X86_RDX, X86_R9);
	if (d->keep_rax)
		x86_mov_rr(&x->e, true, X86_RAX, X86_R10);
}

static void divide_rax(struct x86 *x, bool wide, bool sign, unsigned int divisor)
{
	if (!sign) {
		x86_rr(&x->e, X86_ALU_STORE(X86_XOR), false, X86_RDX, X86_RDX);
	} else {
		if (wide)
			x86_byte(&x->e, 0x48);
		x86_byte(&x->e, 0x99); /* cdq, cqo */
	}
	x86_rr(&x->e, X86_GROUP3, wide, sign ? 7 : 6, divisor);
}

static void slow_wide(struct x86 *x, const struct x86_slow *slow)
{
	divide_rax(x, true, slow->insn.flags & JIT_FLAG_SIGNED, slow->reg);
}

/* @divisor is neither rax nor rdx. */
static void divide_machine(struct x86 *x, const struct division *d, unsigned int divisor)
{
	struct x86_slow *slow;

	save(x, d);
	x86_mov_rr(&x->e, true, X86_RAX, x86_use(x, d->insn->a, X86_RAX));
	if (d->wide && x->narrow) {
		x86_mov_rr(&x->e, true, X86_RDX, X86_RAX);
		x86_rr(&x->e, X86_ALU_STORE(X86_OR), true, divisor, X86_RDX);
		x86_shift_ri(&x->e, X86_SHR, true, X86_RDX, 32);
		slow = x86_slow_if(x, X86_NE, d->insn, slow_wide);
		x86_rr(&x->e, X86_GROUP3, false, 6, divisor); /* rdx is 0 */
		if (slow) {
			slow->reg = divisor;
			x86_slow_back(x, slow);
		}
	} else {
		divide_rax(x, d->wide, d->sign, divisor);
	}
	x86_mov_rr(&x->e, true, d->dst, d->modulo ? X86_RDX : X86_RAX);
	restore(x, d);
}

/* Division by zero: 0, modulo: the dividend. */
static void slow_zero(struct x86 *x, const struct x86_slow *slow)
{
	const struct division d = division_of(&slow->insn);

	if (d.modulo && !PLANT(9))
		x86_mov_rr(&x->e, d.wide, d.dst, x86_use(x, d.insn->a, d.dst));
	else
		x86_mov_ri(&x->e, d.dst, 0);
}

/* Divisor b is 0 or -1: the quotient is a * b, the remainder a + a * b. */
static void slow_signed(struct x86 *x, const struct x86_slow *slow)
{
	const struct division d = division_of(&slow->insn);
	const unsigned int b = slow->reg, a = x86_use(x, d.insn->a, X86_R9);

	x86_mov_rr(&x->e, true, X86_R10, b);
	x86_rr(&x->e, X86_IMUL, d.wide, X86_R10, a);
	if (d.modulo)
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), d.wide, a, X86_R10);
	x86_mov_rr(&x->e, true, d.dst, X86_R10);
}

static void divide_by_register(struct x86 *x, const struct division *d)
{
	unsigned int b = x86_use(x, d->insn->b, X86_R11);
	struct x86_slow *slow;

	if (b == X86_RAX || b == X86_RDX) {
		x86_mov_rr(&x->e, d->wide, X86_R11, b);
		b = X86_R11;
	}
	if (d->sign) {
		const struct x86_mem more = { .base = b, .index = X86_NONE, .disp = 1 };

		x86_rm(&x->e, X86_LEA, d->wide, X86_R10, more);
		x86_alu_ri(&x->e, X86_CMP, d->wide, X86_R10, 1);
		slow = x86_slow_if(x, X86_BE, d->insn, slow_signed);
	} else {
		x86_rr(&x->e, X86_TEST, d->wide, b, b);
		slow = x86_slow_if(x, X86_E, d->insn, slow_zero);
	}
	if (slow)
		slow->reg = b;
	/* The list may move while the rest is emitted. */
	const uint32_t number = x->nslows - 1;

	divide_machine(x, d, b);
	if (slow)
		x86_slow_back(x, &x->slows[number]);
}

/* ---- constants ---- */

/* dst = a - r11, when r11 holds quotient * divisor. */
static void subtract(struct x86 *x, const struct division *d, unsigned int n)
{
	if (d->dst != n)
		x86_mov_rr(&x->e, d->wide, d->dst, n);
	x86_rr(&x->e, X86_ALU_STORE(X86_SUB), d->wide, X86_R11, d->dst);
}

static void multiply_by(struct x86 *x, bool wide, unsigned int reg, uint64_t factor,
			unsigned int scratch)
{
	if (!wide || x86_fits32((int64_t)factor)) {
		x86_imul_rri(&x->e, wide, reg, reg, (int32_t)factor);
	} else {
		x86_mov_ri(&x->e, scratch, factor);
		x86_rr(&x->e, X86_IMUL, true, reg, scratch);
	}
}

/* high = upper half of n * multiplier, 64 bits. */
static void multiply_high(struct x86 *x, const struct division *d, unsigned int high,
			  unsigned int n, uint64_t multiplier)
{
	const bool rdx_is_free = n != X86_RDX && d->a != X86_RDX && !d->keep_rdx;

	if (x->bmi2) {
		if (n == X86_RDX) {
			x86_mov_ri(&x->e, X86_R11, multiplier);
			x86_mulx(&x->e, high, high, X86_R11);
			return;
		}
		if (!rdx_is_free)
			x86_mov_rr(&x->e, true, X86_R9, X86_RDX);
		x86_mov_ri(&x->e, X86_RDX, multiplier);
		x86_mulx(&x->e, high, high, n);
		if (!rdx_is_free && high != X86_RDX)
			x86_mov_rr(&x->e, true, X86_RDX, X86_R9);
		return;
	}
	/* high is r11 */
	x86_mov_rr(&x->e, true, X86_R9, X86_RAX);
	x86_mov_rr(&x->e, true, X86_R11, X86_RDX);
	if (n == X86_RAX)
		x86_mov_ri(&x->e, X86_RDX, multiplier);
	else
		x86_mov_ri(&x->e, X86_RAX, multiplier);
	x86_rr(&x->e, X86_GROUP3, true, 4, n == X86_RAX ? X86_RDX : n);
	x86_rr(&x->e, X86_XCHG, true, X86_RDX, X86_R11);
	x86_mov_rr(&x->e, true, X86_RAX, X86_R9);
}

static void unsigned_magic64(struct x86 *x, const struct division *d)
{
	const struct jit_magic magic = jit_magic_unsigned(d->insn->imm, 64);
	const bool in_place = !d->modulo && !(magic.add && d->dst == d->a) && x->bmi2;
	const unsigned int q = in_place ? d->dst : X86_R11;
	unsigned int n = d->a;

	if (magic.before) {
		x86_mov_rr(&x->e, true, X86_R10, n);
		x86_shift_ri(&x->e, X86_SHR, true, X86_R10, magic.before);
		n = X86_R10;
	}
	multiply_high(x, d, q, n, magic.multiplier);
	if (magic.add) {
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), true, d->a, q);
		x86_shift_ri(&x->e, X86_RCR, true, q, 1);
		if (magic.shift > 1)
			x86_shift_ri(&x->e, X86_SHR, true, q, magic.shift - !PLANT(25));
	} else if (magic.shift) {
		x86_shift_ri(&x->e, X86_SHR, true, q, magic.shift);
	}
	if (d->modulo) {
		multiply_by(x, true, q, d->insn->imm, X86_R9);
		subtract(x, d, d->a);
	} else {
		x86_mov_rr(&x->e, true, d->dst, q);
	}
}

/* The product fits in 64 bits. */
static void unsigned_magic32(struct x86 *x, const struct division *d)
{
	const struct jit_magic magic = jit_magic_unsigned(d->insn->imm, 32);
	const bool in_place = !d->modulo && !(magic.add && d->dst == d->a);
	const unsigned int q = in_place ? d->dst : X86_R11;

	x86_mov_rr(&x->e, false, q, d->a);
	if (magic.before)
		x86_shift_ri(&x->e, X86_SHR, false, q, magic.before);
	multiply_by(x, true, q, magic.multiplier, X86_R10);
	if (magic.add) {
		x86_shift_ri(&x->e, X86_SHR, true, q, 32);
		x86_mov_rr(&x->e, false, X86_R10, d->a);
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), true, X86_R10, q);
		if (magic.shift)
			x86_shift_ri(&x->e, X86_SHR, true, q, magic.shift);
	} else {
		x86_shift_ri(&x->e, X86_SHR, true, q, 32 + magic.shift);
	}
	if (d->modulo) {
		multiply_by(x, false, q, d->insn->imm, X86_R10);
		subtract(x, d, d->a);
	} else {
		x86_mov_rr(&x->e, true, d->dst, q);
	}
}

/* Rounds towards zero: 1 is added when the dividend is negative. */
static void signed_magic64(struct x86 *x, const struct division *d, uint64_t divisor, bool negate)
{
	const struct jit_magic magic = jit_magic_signed((int64_t)divisor, 64);
	unsigned int n = d->a, result = X86_RDX;

	if (n == X86_RAX || n == X86_RDX || n == X86_R10) {
		x86_mov_rr(&x->e, true, X86_R11, n);
		n = X86_R11;
	}
	save(x, d);
	x86_mov_ri(&x->e, X86_RAX, magic.multiplier);
	x86_rr(&x->e, X86_GROUP3, true, 5, n);
	if (magic.add)
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), true, n, X86_RDX);
	if (magic.shift)
		x86_shift_ri(&x->e, X86_SAR, true, X86_RDX, magic.shift);
	x86_mov_rr(&x->e, true, X86_RAX, n);
	x86_shift_ri(&x->e, X86_SHR, true, X86_RAX, 63);
	x86_rr(&x->e, X86_ALU_STORE(X86_ADD), true, X86_RAX, X86_RDX);
	if (d->modulo) {
		multiply_by(x, true, X86_RDX, divisor, X86_RAX);
		x86_mov_rr(&x->e, true, X86_RAX, n);
		x86_rr(&x->e, X86_ALU_STORE(X86_SUB), true, X86_RDX, X86_RAX);
		result = X86_RAX;
	} else if (negate) {
		x86_rr(&x->e, X86_GROUP3, true, 3, X86_RDX);
	}
	x86_mov_rr(&x->e, true, d->dst, result);
	restore(x, d);
}

static void signed_magic32(struct x86 *x, const struct division *d, uint32_t divisor, bool negate)
{
	const struct jit_magic magic = jit_magic_signed((int32_t)divisor, 32);

	x86_rr(&x->e, X86_MOVSXD, true, X86_R10, d->a);
	x86_imul_rri(&x->e, true, X86_R11, X86_R10, (int32_t)magic.multiplier);
	if (magic.add) {
		x86_shift_ri(&x->e, X86_SAR, true, X86_R11, 32);
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), false, X86_R10, X86_R11);
		if (magic.shift)
			x86_shift_ri(&x->e, X86_SAR, false, X86_R11, magic.shift);
	} else {
		x86_shift_ri(&x->e, X86_SAR, true, X86_R11, 32 + magic.shift);
	}
	x86_mov_rr(&x->e, false, X86_R9, X86_R10);
	x86_shift_ri(&x->e, X86_SHR, false, X86_R9, 31);
	x86_rr(&x->e, X86_ALU_STORE(X86_ADD), false, X86_R9, X86_R11);
	if (d->modulo) {
		multiply_by(x, false, X86_R11, divisor, X86_R9);
		subtract(x, d, X86_R10);
	} else {
		if (negate)
			x86_rr(&x->e, X86_GROUP3, false, 3, X86_R11);
		x86_mov_rr(&x->e, false, d->dst, X86_R11);
	}
}

static void unsigned_power(struct x86 *x, const struct division *d, unsigned int shift)
{
	const uint64_t mask = d->insn->imm - 1;
	const bool wide = d->wide && !(d->modulo && mask <= UINT32_MAX);

	if (d->dst != d->a || (!wide && mask == UINT32_MAX))
		x86_mov_rr(&x->e, wide, d->dst, d->a);
	if (!d->modulo) {
		x86_shift_ri(&x->e, X86_SHR, wide, d->dst, shift);
	} else if (mask > UINT32_MAX) {
		x86_mov_ri(&x->e, X86_R11, mask);
		x86_rr(&x->e, X86_ALU_STORE(X86_AND), true, X86_R11, d->dst);
	} else if (mask != UINT32_MAX) {
		x86_alu_ri(&x->e, X86_AND, false, d->dst, (int32_t)mask);
	}
}

/* A negative dividend gets divisor - 1 added, so that the shift rounds towards zero. */
static void signed_power(struct x86 *x, const struct division *d, unsigned int shift, bool negate)
{
	const unsigned int bits = d->wide ? 64 : 32;

	x86_mov_rr(&x->e, d->wide, X86_R11, d->a);
	if (shift > 1)
		x86_shift_ri(&x->e, X86_SAR, d->wide, X86_R11, bits - 1);
	x86_shift_ri(&x->e, X86_SHR, d->wide, X86_R11, bits - shift);
	if (PLANT(8))
		x86_mov_rr(&x->e, d->wide, X86_R11, d->a);
	else
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), d->wide, d->a, X86_R11);
	x86_shift_ri(&x->e, X86_SAR, d->wide, X86_R11, shift);
	if (d->modulo) {
		x86_shift_ri(&x->e, X86_SHL, d->wide, X86_R11, shift);
		subtract(x, d, d->a);
	} else {
		if (negate)
			x86_rr(&x->e, X86_GROUP3, d->wide, 3, X86_R11);
		x86_mov_rr(&x->e, d->wide, d->dst, X86_R11);
	}
}

static void divide_trivial(struct x86 *x, const struct division *d, int64_t divisor)
{
	if ((divisor != 0) == d->modulo) { /* x / 0, x % 1, x % -1 */
		x86_mov_ri(&x->e, d->dst, 0);
		return;
	}
	x86_mov_rr(&x->e, d->wide, d->dst, d->a);
	if (divisor == -1)
		x86_rr(&x->e, X86_GROUP3, d->wide, 3, d->dst);
}

static void divide_by_constant(struct x86 *x, struct division *d)
{
	const uint64_t bits = d->wide ? d->insn->imm : (uint32_t)d->insn->imm;
	const int64_t divisor = d->wide ? (int64_t)bits : (int32_t)bits;
	const bool negate = d->sign && divisor < 0;
	const uint64_t size = negate ? -(uint64_t)divisor : bits;
	const bool power = !(size & (size - 1));
	bool magic = x->function->passes & VM_PASS_DIVIDE;

	if (negate && (d->wide ? (int64_t)size < 0 : size == 1ull << 31))
		magic = false; /* MIN has no opposite */

	d->a = x86_use(x, d->insn->a, X86_R10);
	magic &= d->a != X86_R10;
	if (bits <= 1 || (d->sign && divisor == -1)) {
		divide_trivial(x, d, d->sign ? divisor : (int64_t)bits);
	} else if (!magic) {
		x86_mov_ri(&x->e, X86_R11, bits);
		divide_machine(x, d, X86_R11);
	} else if (power && d->sign) {
		signed_power(x, d, __builtin_ctzll(size), negate);
	} else if (power) {
		unsigned_power(x, d, __builtin_ctzll(size));
	} else if (d->sign && d->wide) {
		signed_magic64(x, d, size, negate);
	} else if (d->sign) {
		signed_magic32(x, d, size, negate);
	} else if (d->wide) {
		unsigned_magic64(x, d);
	} else {
		unsigned_magic32(x, d);
	}
}

void x86_divide(struct x86 *x, const struct jit_insn *insn)
{
	struct division d = division_of(insn);

	if (insn->b == JIT_NONE)
		divide_by_constant(x, &d);
	else
		divide_by_register(x, &d);
}
