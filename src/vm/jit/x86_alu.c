// SPDX-License-Identifier: BSD-2-Clause
/* Arithmetic, moves, addresses and comparisons. */
#include "vm/jit/x86.h"

#include "vm/jit/plant.h"

static unsigned int target_of(const struct jit_insn *insn)
{
	return x86_registers[insn->dst];
}

static bool is_wide(const struct jit_insn *insn)
{
	return insn->width == 8;
}

/* The immediate as an instruction carries it, sign-extended from 32 bits. */
static bool immediate(const struct jit_insn *insn, int32_t *ret)
{
	*ret = (int32_t)insn->imm;
	return insn->width == 4 || x86_fits32((int64_t)insn->imm);
}

/* r13 and rbp as a base cost a displacement that they do not need as an index. */
static struct x86_mem sum_of(unsigned int a, unsigned int b)
{
	if ((a & 7) == X86_RBP)
		return (struct x86_mem){ .base = b, .index = a };
	return (struct x86_mem){ .base = a, .index = b };
}

/* Result of add and sub of a constant that need not change the first operand. */
static void add_constant(struct x86 *x, const struct jit_insn *insn, int32_t imm)
{
	const struct jit_insn address = { .base = insn->a, .index = JIT_NONE, .off = imm };

	x86_rm(&x->e, X86_LEA, is_wide(insn), target_of(insn), x86_operand(x, &address, X86_R11));
}

/* and with a mask of low bits, or of a mask that zero-extends. */
static bool and_mask(struct x86 *x, const struct jit_insn *insn, unsigned int a)
{
	const unsigned int dst = target_of(insn);

	if (x->brief && insn->imm == 0xff)
		x86_rr(&x->e, X86_MOVZX8, false, dst, a);
	else if (x->brief && insn->imm == 0xffff)
		x86_rr(&x->e, X86_MOVZX16, false, dst, a);
	else if (insn->imm == UINT32_MAX)
		x86_mov_rr(&x->e, false, dst, a);
	else
		return false;
	return true;
}

static void alu_immediate(struct x86 *x, const struct jit_insn *insn, enum x86_alu op)
{
	const unsigned int dst = target_of(insn);
	bool wide = is_wide(insn);
	unsigned int a;
	int32_t imm;
	bool fits = immediate(insn, &imm);

	if (fits && (op == X86_ADD || op == X86_SUB) && insn->dst != insn->a && imm != INT32_MIN) {
		add_constant(x, insn, op == X86_ADD ? imm : -imm);
		return;
	}
	a = x86_use(x, insn->a, X86_R10);
	if (op == X86_AND && and_mask(x, insn, a))
		return;
	if (op == X86_AND && insn->imm <= UINT32_MAX) {
		wide = false;
		fits = true;
	}
	if (!fits && dst != a && op != X86_SUB) {
		x86_constant(x, dst, insn->imm);
		x86_rr(&x->e, X86_ALU_STORE(op), true, a, dst);
		x86_flags_are(x, dst, 8, op != X86_ADD);
		return;
	}
	if (dst != a)
		x86_mov_rr(&x->e, wide, dst, a);
	if (!fits) {
		x86_constant(x, X86_R11, insn->imm);
		x86_rr(&x->e, X86_ALU_STORE(op), true, X86_R11, dst);
	} else if (op == X86_XOR && imm == -1 && x->brief) {
		x86_rr(&x->e, X86_GROUP3, wide, 2, dst);
		return;
	} else if (x->brief && imm == 128 && (op == X86_ADD || op == X86_SUB)) {
		x86_alu_ri(&x->e, op == X86_ADD ? X86_SUB : X86_ADD, wide, dst, -128);
	} else {
		x86_alu_ri(&x->e, op, wide, dst, imm);
	}
	x86_flags_are(x, dst, wide ? 8 : 4, op != X86_ADD && op != X86_SUB);
}

void x86_alu(struct x86 *x, const struct jit_insn *insn, enum x86_alu op)
{
	const bool wide = is_wide(insn);
	const unsigned int dst = target_of(insn);
	unsigned int a, b;

	if (insn->b == JIT_NONE) {
		alu_immediate(x, insn, op);
		return;
	}
	a = x86_use(x, insn->a, X86_R10);
	b = x86_use(x, insn->b, X86_R11);
	if (dst == b && dst != a) {
		if (op == X86_SUB) {
			x86_rr(&x->e, X86_GROUP3, wide, 3, dst);
			op = X86_ADD;
		}
		b = a;
	} else if (dst != a && op == X86_ADD) {
		x86_rm(&x->e, X86_LEA, wide, dst, sum_of(a, b));
		return;
	} else if (dst != a) {
		x86_mov_rr(&x->e, wide, dst, a);
	}
	x86_rr(&x->e, X86_ALU_STORE(op), wide, b, dst);
	x86_flags_are(x, dst, insn->width, op != X86_ADD && op != X86_SUB);
}

static bool multiply_simple(struct x86 *x, const struct jit_insn *insn, unsigned int a)
{
	const unsigned int dst = target_of(insn);
	const uint64_t imm = insn->imm;
	const bool wide = is_wide(insn);
	unsigned int shift;

	if (imm == 3 || imm == 5 || imm == 9) {
		struct x86_mem mem = { .base = a, .index = a, .scale = imm == 3 ? 1 : 2 };

		mem.scale = imm == 9 ? 3 : mem.scale;
		x86_rm(&x->e, X86_LEA, wide, dst, mem);
		return true;
	}
	if (!imm || imm & (imm - 1))
		return false;
	shift = __builtin_ctzll(imm);
	if (dst != a)
		x86_mov_rr(&x->e, wide, dst, a);
	if (shift)
		x86_shift_ri(&x->e, X86_SHL, wide, dst, shift);
	else if (!wide && dst == a)
		x86_mov_rr(&x->e, false, dst, dst);
	return true;
}

void x86_multiply(struct x86 *x, const struct jit_insn *insn)
{
	const bool wide = is_wide(insn);
	const unsigned int dst = target_of(insn), a = x86_use(x, insn->a, X86_R10);
	unsigned int b;
	int32_t imm;

	if (insn->b == JIT_NONE) {
		if (x->brief && multiply_simple(x, insn, a))
			return;
		if (immediate(insn, &imm)) {
			x86_imul_rri(&x->e, wide, dst, a, imm);
			return;
		}
		if (dst != a) {
			x86_constant(x, dst, insn->imm);
			x86_rr(&x->e, X86_IMUL, true, dst, a);
			return;
		}
		x86_constant(x, X86_R11, insn->imm);
		b = X86_R11;
	} else {
		b = x86_use(x, insn->b, X86_R11);
	}
	if (dst == b && dst != a)
		b = a;
	else if (dst != a)
		x86_mov_rr(&x->e, wide, dst, a);
	x86_rr(&x->e, X86_IMUL, wide, dst, b);
}

static void shift_constant(struct x86 *x, const struct jit_insn *insn, enum x86_shift op,
			   unsigned int a)
{
	const unsigned int dst = target_of(insn);
	const unsigned int count = insn->imm & (PLANT(3) ? 31 : 8 * insn->width - 1);
	const bool wide = is_wide(insn);

	if (op == X86_SHL && dst != a && count && count <= 3 && x->brief) {
		struct x86_mem mem = { .base = X86_NONE, .index = a, .scale = count };

		x86_rm(&x->e, X86_LEA, wide, dst, count == 1 ? sum_of(a, a) : mem);
		return;
	}
	if (dst != a || (!count && !wide))
		x86_mov_rr(&x->e, wide, dst, a);
	if (!count)
		return;
	x86_shift_ri(&x->e, op, wide, dst, count);
	x86_flags_are(x, dst, insn->width, false);
}

/* Without BMI2 the count must be in cl. */
static void shift_by_cl(struct x86 *x, const struct jit_insn *insn, enum x86_shift op,
			unsigned int a, unsigned int b)
{
	const unsigned int dst = target_of(insn);
	const bool wide = is_wide(insn);
	const bool keep = b != X86_RCX && dst != X86_RCX && x86_is_live(insn, 4);
	const unsigned int work = dst == X86_RCX || dst == b ? X86_R11 : dst;

	if (work != a)
		x86_mov_rr(&x->e, wide, work, a);
	if (keep)
		x86_mov_rr(&x->e, true, X86_R9, X86_RCX);
	if (b != X86_RCX)
		x86_mov_rr(&x->e, false, X86_RCX, b);
	x86_shift_cl(&x->e, op, wide, work);
	if (keep)
		x86_mov_rr(&x->e, true, X86_RCX, X86_R9);
	/* A count of 0 leaves the upper half of a 32-bit shift's register as it is on no processor,
	 * but the copy is needed anyway. */
	if (work != dst)
		x86_mov_rr(&x->e, wide, dst, work);
}

void x86_shift(struct x86 *x, const struct jit_insn *insn, enum x86_shift op)
{
	const unsigned int a = x86_use(x, insn->a, X86_R11);
	unsigned int b;

	if (insn->b == JIT_NONE) {
		shift_constant(x, insn, op, a);
		return;
	}
	b = x86_use(x, insn->b, X86_R10);
	if (x->bmi2)
		x86_shift_bmi(&x->e, op, is_wide(insn), target_of(insn), a, b);
	else
		shift_by_cl(x, insn, op, a, b);
}

void x86_negate(struct x86 *x, const struct jit_insn *insn)
{
	const unsigned int dst = target_of(insn), a = x86_use(x, insn->a, X86_R10);

	if (dst != a)
		x86_mov_rr(&x->e, is_wide(insn), dst, a);
	x86_rr(&x->e, X86_GROUP3, is_wide(insn), 3, dst);
	x86_flags_are(x, dst, insn->width, false);
}

void x86_move(struct x86 *x, const struct jit_insn *insn)
{
	const unsigned int dst = target_of(insn);
	unsigned int a;

	if (insn->a == JIT_NONE) {
		x86_constant(x, dst, insn->imm);
		return;
	}
	a = x86_use(x, insn->a, dst);
	if (a != dst || (insn->width == 4 && !(insn->flags & JIT_FLAG_ANY_UPPER)))
		x86_mov_rr(&x->e, is_wide(insn) || PLANT(2), dst, a);
}

void x86_extend(struct x86 *x, const struct jit_insn *insn)
{
	const unsigned int dst = target_of(insn), a = x86_use(x, insn->a, X86_R10);
	const bool sign = insn->flags & JIT_FLAG_SIGNED, wide = is_wide(insn) && sign && !PLANT(1);

	switch (insn->size) {
	case 1:
		x86_rr(&x->e, sign ? X86_MOVSX8 : X86_MOVZX8, wide, dst, a);
		break;
	case 2:
		x86_rr(&x->e, sign ? X86_MOVSX16 : X86_MOVZX16, wide, dst, a);
		break;
	case 4:
		x86_rr(&x->e, wide ? X86_MOVSXD : X86_LOAD, wide, dst, a);
		break;
	default:
		x86_mov_rr(&x->e, true, dst, a);
	}
}

void x86_swap(struct x86 *x, const struct jit_insn *insn)
{
	const unsigned int dst = target_of(insn), a = x86_use(x, insn->a, X86_R10);
	const bool wide = insn->size == 8;

	if (dst != a)
		x86_mov_rr(&x->e, wide, dst, a);
	x86_bswap(&x->e, wide, dst);
	if (insn->size == 2 && !PLANT(21))
		x86_shift_ri(&x->e, X86_SHR, false, dst, 16);
}

void x86_address(struct x86 *x, const struct jit_insn *insn)
{
	const unsigned int dst = target_of(insn);
	const struct x86_mem mem = x86_operand(x, insn, X86_R11);
	const bool wide = is_wide(insn), plain = mem.index == X86_NONE || !mem.scale;

	if (plain && !mem.disp && (mem.index == dst || mem.base == dst) && mem.index != X86_NONE &&
	    mem.base != X86_NONE)
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), wide, mem.base == dst ? mem.index : mem.base,
		       dst);
	else if (mem.index == X86_NONE && mem.base == dst)
		x86_alu_ri(&x->e, X86_ADD, wide, dst, mem.disp);
	else if (mem.index == X86_NONE && !mem.disp && mem.base != X86_NONE)
		x86_mov_rr(&x->e, wide, dst, mem.base);
	else
		x86_rm(&x->e, X86_LEA, wide, dst, mem);
}

/* ---- comparisons ---- */

static enum x86_condition condition_of(enum jit_condition condition)
{
	switch (condition) {
	case JIT_EQ:
	case JIT_CLEAR:
		return X86_E;
	case JIT_NE:
	case JIT_SET:
		return X86_NE;
	case JIT_GT:
		return X86_A;
	case JIT_GE:
		return X86_AE;
	case JIT_LT:
		return X86_B;
	case JIT_LE:
		return PLANT(4) ? X86_B : X86_BE;
	case JIT_SGT:
		return PLANT(5) ? X86_A : X86_G;
	case JIT_SGE:
		return X86_GE;
	case JIT_SLT:
		return X86_L;
	case JIT_SLE:
		return X86_LE;
	}
	return X86_E;
}

static bool tests_bits(const struct jit_insn *insn)
{
	return insn->sub == JIT_SET || insn->sub == JIT_CLEAR;
}

static bool is_signed(enum x86_condition condition)
{
	return condition >= X86_L;
}

/* Of two numbers that are not negative. */
static enum x86_condition without_sign(enum x86_condition condition)
{
	switch (condition) {
	case X86_L:
		return X86_B;
	case X86_GE:
		return X86_AE;
	case X86_LE:
		return X86_BE;
	case X86_G:
		return X86_A;
	default:
		return condition;
	}
}

/* Is there no need to test a against 0, since the last instruction has? */
static bool known_zero(struct x86 *x, const struct jit_insn *insn, unsigned int a,
		       enum x86_condition *condition)
{
	if (!x->brief || x->zero != a)
		return false;
	if (*condition == X86_E || *condition == X86_NE)
		return x->zero_width <= insn->width || PLANT(14);
	if (x->zero_width != insn->width)
		return false;
	if (*condition == X86_L)
		*condition = X86_S;
	else if (*condition == X86_GE)
		*condition = X86_NS;
	else
		return x->zero_logic;
	return true;
}

static void test_immediate(struct x86 *x, const struct jit_insn *insn, unsigned int a)
{
	const uint64_t imm = insn->imm;

	if (x->brief && imm <= 0xff) {
		if (a == X86_RAX)
			x86_byte(&x->e, 0xa8);
		else
			x86_rr(&x->e, X86_BYTE_RM | 0xf6, false, 0, a);
		x86_byte(&x->e, imm);
	} else if (imm <= UINT32_MAX) {
		x86_test_ri(&x->e, false, a, imm);
	} else if (x86_fits32(imm)) {
		x86_test_ri(&x->e, true, a, imm);
	} else {
		x86_constant(x, X86_R11, imm);
		x86_rr(&x->e, X86_TEST, true, X86_R11, a);
	}
}

static void compare_immediate(struct x86 *x, const struct jit_insn *insn, unsigned int a)
{
	int32_t imm;

	if (x->brief && !insn->imm) {
		x86_rr(&x->e, X86_TEST, is_wide(insn), a, a);
	} else if (immediate(insn, &imm)) {
		x86_alu_ri(&x->e, X86_CMP, is_wide(insn), a, imm);
	} else {
		x86_constant(x, X86_R11, insn->imm);
		x86_rr(&x->e, X86_ALU_STORE(X86_CMP), true, X86_R11, a);
	}
}

/* Can `cmp mem, imm` stand for the comparison of the extended value? */
static bool direct(const struct jit_insn *insn, enum x86_condition *condition)
{
	const int64_t imm = insn->width == 4 ? (int32_t)insn->imm : (int64_t)insn->imm;
	const unsigned int bits = 8 * insn->size;

	if (insn->size == insn->width)
		return x86_fits32(imm);
	/* A 16-bit immediate makes decoders stall. */
	if (insn->size == 2 && !x86_fits8(imm))
		return false;
	if (insn->flags & JIT_FLAG_SIGNED)
		return imm >= -(1ll << (bits - 1)) && imm < 1ll << (bits - 1) &&
		       !tests_bits(insn) &&
		       (is_signed(*condition) || *condition == X86_E || *condition == X86_NE);
	if (tests_bits(insn))
		return insn->size != 2;
	if (imm < 0 || imm >= 1ll << bits)
		return false;
	*condition = without_sign(*condition);
	return true;
}

static enum x86_condition compare_memory(struct x86 *x, const struct jit_insn *insn)
{
	enum x86_condition condition = condition_of(insn->sub);
	const struct x86_mem mem = x86_operand(x, insn, X86_R10);
	struct jit_insn in_register = *insn;

	if (insn->b == JIT_NONE && direct(insn, &condition)) {
		if (tests_bits(insn))
			x86_test_mi(&x->e, insn->size, mem, insn->imm);
		else
			x86_alu_mi(&x->e, X86_CMP, insn->size, mem, insn->imm);
		return condition;
	}
	if (insn->b != JIT_NONE && insn->size == insn->width) {
		const unsigned int b = x86_use(x, insn->b, X86_R11);

		if (tests_bits(insn))
			x86_rm(&x->e, X86_TEST, is_wide(insn), b, mem);
		else
			x86_alu_mr(&x->e, X86_CMP, insn->size, mem, b);
		return condition;
	}
	if (insn->b < 10 && !(insn->flags & JIT_FLAG_SIGNED) && !tests_bits(insn) && x->brief &&
	    x86_has_bytes(x, x->block, insn->b, insn->size)) {
		x86_alu_mr(&x->e, X86_CMP, insn->size, mem, x86_use(x, insn->b, X86_R11));
		return without_sign(condition);
	}
	x86_load(&x->e, insn->size, insn->flags & JIT_FLAG_SIGNED, X86_R10, mem);
	in_register.base = JIT_NONE;
	if (insn->b != JIT_NONE)
		x86_rr(&x->e, tests_bits(insn) ? X86_TEST : X86_ALU_STORE(X86_CMP), is_wide(insn),
		       x86_use(x, insn->b, X86_R11), X86_R10);
	else if (tests_bits(insn))
		test_immediate(x, &in_register, X86_R10);
	else
		compare_immediate(x, &in_register, X86_R10);
	return condition;
}

enum x86_condition x86_compare(struct x86 *x, const struct jit_insn *insn)
{
	enum x86_condition condition = condition_of(insn->sub);
	unsigned int a;

	if (insn->base != JIT_NONE || insn->a == JIT_NONE)
		return compare_memory(x, insn);
	a = x86_use(x, insn->a, X86_R10);
	if (insn->b != JIT_NONE)
		x86_rr(&x->e, tests_bits(insn) ? X86_TEST : X86_ALU_STORE(X86_CMP), is_wide(insn),
		       x86_use(x, insn->b, X86_R11), a);
	else if (tests_bits(insn))
		test_immediate(x, insn, a);
	else if (insn->imm || !known_zero(x, insn, a, &condition))
		compare_immediate(x, insn, a);
	return condition;
}
