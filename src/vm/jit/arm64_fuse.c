// SPDX-License-Identifier: BSD-2-Clause
/*
 * What several instructions of the form are in one of the machine. The value between two of them
 * must not be needed by anybody else.
 */
#include "vm/jit/arm64.h"

#include <assert.h>

#define NEARBY 24 /* instructions that are looked through for the end of a step */

/* Is in[0].dst read by in[1] alone? */
static bool passes_on(const struct jit_insn *in)
{
	return in[0].dst == in[1].dst || !(in[1].live & 1u << in[0].dst);
}

static bool is_register(const struct a64 *e, uint8_t r)
{
	return r != JIT_NONE && (r != 10 || !e->frame_on_sp);
}

static bool is_shift(const struct jit_insn *in)
{
	return in->b == JIT_NONE && (in->op == JIT_LSH || in->op == JIT_RSH || in->op == JIT_ARSH);
}

static int bits_of(const struct jit_insn *in)
{
	return 8 * in->width;
}

static int amount(const struct jit_insn *in)
{
	return in->imm & (bits_of(in) - 1);
}

int a64_kept_bits(const struct jit_insn *in)
{
	uint64_t mask;

	if (in->op == JIT_MOV && in->a != JIT_NONE && in->width == 4)
		return 32;
	if (in->op == JIT_EXT && !(in->flags & JIT_FLAG_SIGNED) && in->size < 8)
		return 8 * in->size;
	if (in->op != JIT_AND || in->b != JIT_NONE)
		return 0;
	mask = a64_imm(in);
	return mask && mask + 1 && !(mask & (mask + 1)) ? __builtin_ctzll(~mask) : 0;
}

/* ---- fields of bits ---- */

/* (a << k) >> m */
static bool fuse_shifts(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in), is_signed = in[1].op == JIT_ARSH;
	const int left = amount(&in[0]), right = amount(&in[1]), bits = bits_of(in);
	int rn, rd;

	if (in[0].op != JIT_LSH || in[1].op == JIT_LSH || !is_shift(&in[1]) ||
	    in[1].a != in[0].dst || in[0].width != in[1].width || !left || !right)
		return false;
	rn = a64_use(e, in[0].a);
	rd = a64_def(e, in[1].dst);
	if (right >= left)
		a64_out(e, a64_extract(wide, is_signed, rd, rn, right - left, bits - right));
	else
		a64_out(e, a64_insert_zero(wide, is_signed, rd, rn, left - right, bits - left));
	return true;
}

/* (a >> k) & mask */
static bool fuse_extract(struct a64 *e, const struct jit_insn *in)
{
	const int right = amount(&in[0]), bits = bits_of(in);
	int width = a64_kept_bits(&in[1]), rn, rd;

	if (in[0].op == JIT_LSH || !width || in[1].a != in[0].dst || !right)
		return false;
	/* What comes in from above must not be looked at, where it is more than zeros. */
	if (width > bits - right) {
		if (in[0].op == JIT_ARSH)
			return false;
		width = bits - right;
	}
	rn = a64_use(e, in[0].a);
	rd = a64_def(e, in[1].dst);
	a64_out(e, a64_extract(a64_wide(in), false, rd, rn, right, width));
	return true;
}

/* (a & mask) << k */
static bool fuse_insert(struct a64 *e, const struct jit_insn *in)
{
	const int left = amount(&in[1]), bits = bits_of(&in[1]);
	const bool is_signed = in->op == JIT_EXT && in->flags & JIT_FLAG_SIGNED;
	int width = is_signed && in->width == 8 ? 8 * in->size : a64_kept_bits(in), rn, rd;

	if (!width || in[1].op != JIT_LSH || !is_shift(&in[1]) || in[1].a != in[0].dst || !left ||
	    width >= bits_of(&in[1]))
		return false;
	rn = a64_use(e, in[0].a);
	rd = a64_def(e, in[1].dst);
	a64_out(e, a64_insert_zero(a64_wide(&in[1]), is_signed, rd, rn, left,
				   width < bits - left ? width : bits - left));
	return true;
}

/* ---- operands that are shifted or extended on the way ---- */

static bool commutes(const struct jit_insn *in)
{
	return in->op != JIT_SUB;
}

static bool takes_shifted(const struct jit_insn *in)
{
	return in->op == JIT_ADD || in->op == JIT_SUB || in->op == JIT_AND || in->op == JIT_OR ||
	       in->op == JIT_XOR;
}

/* The other operand of in[1], when one is in[0]'s result that it can take as its second. */
static uint8_t other_operand(const struct a64 *e, const struct jit_insn *in)
{
	uint8_t other = JIT_NONE;

	if (in[1].b == in[0].dst)
		other = in[1].a;
	else if (in[1].a == in[0].dst && commutes(&in[1]))
		other = in[1].b;
	return other == in[0].dst || !is_register(e, other) ? JIT_NONE : other;
}

static void out_shifted(struct a64 *e, const struct jit_insn *in, int rd, int rn, int rm,
			enum a64_shift shift, int by)
{
	const bool wide = a64_wide(in);

	if (in->op == JIT_ADD || in->op == JIT_SUB)
		a64_out(e, a64_arith_reg(wide, in->op == JIT_ADD ? A64_ADD : A64_SUB, rd, rn, rm,
					 shift, by));
	else
		a64_out(e, a64_logic_reg(wide,
					 in->op == JIT_AND ? A64_AND
							   : (in->op == JIT_OR ? A64_ORR : A64_EOR),
					 false, rd, rn, rm, shift, by));
}

/* x op (a << k) */
static bool fuse_shifted(struct a64 *e, const struct jit_insn *in)
{
	uint8_t other;
	int rn, rm, rd;

	if (!takes_shifted(&in[1]) || in[1].b == JIT_NONE)
		return false;
	if (in[0].width != in[1].width &&
	    (in[0].op != JIT_LSH || in[0].width == 4 || amount(&in[0]) > 31))
		return false;
	other = other_operand(e, in);
	if (other == JIT_NONE)
		return false;
	rn = a64_use(e, other);
	rm = a64_use(e, in[0].a);
	rd = a64_def(e, in[1].dst);
	out_shifted(e, &in[1], rd, rn, rm,
		    in[0].op == JIT_LSH ? A64_LSL : (in[0].op == JIT_RSH ? A64_LSR : A64_ASR),
		    amount(&in[0]));
	return true;
}

/* How a register is extended: the option field of extended operands; -1: not at all. */
static int extension_of(const struct jit_insn *in)
{
	static const uint8_t unsigned_by[9] = { [1] = 0, [2] = 1, [4] = 2 };
	const int kept = a64_kept_bits(in);

	if (kept == 8 || kept == 16 || kept == 32)
		return unsigned_by[kept / 8];
	if (in->op == JIT_EXT && in->flags & JIT_FLAG_SIGNED && in->width == 8 && in->size < 8)
		return 4 + unsigned_by[in->size];
	return -1;
}

/* x + (u32)a, x + ((u32)a << scale) */
static bool fuse_extended(struct a64 *e, const struct jit_insn *in)
{
	const int extension = extension_of(in);
	uint8_t other;
	int rn, rm, rd, scale = 0;

	if (extension < 0 || in[1].width != 8)
		return false;
	if (in[1].op == JIT_LEA && in[1].index == in[0].dst && in[1].base != in[0].dst &&
	    !in[1].off && is_register(e, in[1].base)) {
		other = in[1].base;
		scale = in[1].scale;
	} else if ((in[1].op == JIT_ADD || in[1].op == JIT_SUB) && in[1].b != JIT_NONE) {
		other = other_operand(e, in);
	} else {
		return false;
	}
	if (other == JIT_NONE)
		return false;
	rn = a64_use(e, other);
	rm = a64_use(e, in[0].a);
	rd = a64_def(e, in[1].dst);
	a64_out(e, a64_arith_extended(in[1].op == JIT_SUB ? A64_SUB : A64_ADD, rd, rn, rm,
				      extension, scale));
	return true;
}

/* [base + ((u32)a << scale)] */
static bool fuse_index(struct a64 *e, const struct jit_insn *in)
{
	const int extension = extension_of(in);
	const struct jit_insn *access = &in[1];
	int rn, rm, rt;

	if ((extension != 2 && extension != 6) ||
	    (access->op != JIT_LOAD && access->op != JIT_STORE) || access->index != in[0].dst ||
	    access->base == in[0].dst || access->b == in[0].dst || access->off ||
	    !is_register(e, access->base) || (access->scale && 1u << access->scale != access->size))
		return false;
	if (access->op == JIT_STORE && access->b == JIT_NONE)
		return false;
	if (access->op == JIT_STORE && !is_register(e, access->b))
		return false;
	a64_place(e, access->insn);
	rn = a64_use(e, access->base);
	rm = a64_use(e, in[0].a);
	rt = access->op == JIT_LOAD ? a64_def(e, access->dst) : a64_use(e, access->b);
	a64_out(e, a64_memory_extended(a64_access_of(access), access->size, rt, rn, rm,
				       access->scale, extension));
	return true;
}

/* a * b + c, c - a * b */
static bool fuse_multiply(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	uint8_t other;
	int rn, rm, ra, rd;

	if ((in[1].op != JIT_ADD && in[1].op != JIT_SUB) || in[1].b == JIT_NONE ||
	    in[0].width != in[1].width || !is_register(e, in[0].a))
		return false;
	other = other_operand(e, in);
	if (other == JIT_NONE || (in[0].b != JIT_NONE && !is_register(e, in[0].b)))
		return false;
	if (in[0].b == JIT_NONE && a64_multiplies_shifting(&in[0]))
		return false;
	rn = a64_use(e, in[0].a);
	rm = in[0].b == JIT_NONE ? a64_constant(e, a64_imm(in), A64_T0) : a64_use(e, in[0].b);
	ra = a64_use(e, other);
	rd = a64_def(e, in[1].dst);
	a64_out(e, in[1].op == JIT_ADD ? a64_madd(wide, rd, rn, rm, ra)
				       : a64_msub(wide, rd, rn, rm, ra));
	return true;
}

/* ---- memory ---- */

/* Where a result will go: r0 and r1 may be the same register. */
static int target_of(const struct a64 *e, uint8_t r)
{
	return r ? e->map[r] : e->next;
}

static bool is_access(const struct jit_insn *in)
{
	return in->op == JIT_LOAD || in->op == JIT_STORE;
}

/* The register that is loaded or stored. */
static uint8_t data_of(const struct jit_insn *in)
{
	return in->op == JIT_LOAD ? in->dst : in->b;
}

/* Two neighbours of the same kind. The first one's address is what a fault will be told to be, so it
 * has to be the lower one; in the frame there are no faults. */
static bool fuse_pair(struct a64 *e, const struct jit_insn *in)
{
	const bool load = in[0].op == JIT_LOAD, wide = in[0].size == 8;
	int64_t first, second;
	int rn, rt, rt2;

	if (in[1].op != in[0].op || in[1].size != in[0].size || in[0].size < 4 ||
	    in[0].base != in[1].base || in[0].index != JIT_NONE || in[1].index != JIT_NONE ||
	    (in[0].flags | in[1].flags) & JIT_FLAG_SIGNED)
		return false;
	if (load && (in[0].dst == in[0].base || target_of(e, in[0].dst) == target_of(e, in[1].dst)))
		return false;
	if (!load && ((in[0].b == JIT_NONE ? in[0].imm != 0 : !is_register(e, in[0].b)) ||
		      (in[1].b == JIT_NONE ? in[1].imm != 0 : !is_register(e, in[1].b))))
		return false;
	rn = a64_base(e, &in[0], &first);
	a64_base(e, &in[1], &second);
	if (second - first != in->size && (first - second != in->size || in[0].base != 10))
		return false;
	if (!a64_fits_pair(wide, first < second ? first : second))
		return false;
	if (load) {
		rt = a64_def(e, in[0].dst);
		rt2 = a64_def(e, in[1].dst);
	} else {
		rt = in[0].b == JIT_NONE ? A64_ZR : a64_use(e, in[0].b);
		rt2 = in[1].b == JIT_NONE ? A64_ZR : a64_use(e, in[1].b);
	}
	if (first < second)
		a64_out(e, a64_pair(load, wide, rt, rt2, rn, first));
	else
		a64_out(e, a64_pair(load, wide, rt2, rt, rn, second));
	return true;
}

static bool is_step(const struct jit_insn *in, uint8_t base)
{
	const int64_t by = in->op == JIT_SUB ? (int64_t)-in->imm : (int64_t)in->imm;

	return (in->op == JIT_ADD || in->op == JIT_SUB) && in->width == 8 && in->b == JIT_NONE &&
	       in->dst == base && in->a == base && by >= -256 && by < 256;
}

static int step_by(const struct jit_insn *in)
{
	return in->op == JIT_SUB ? -(int)in->imm : (int)in->imm;
}

/* The base, stepped on after the access by an instruction further down, in front of which nobody
 * asks for it. */
static const struct jit_insn *later_step(const struct jit_insn *in, unsigned int left)
{
	for (unsigned int i = 1; i < left && i < NEARBY; i++) {
		if (is_step(&in[i], in->base))
			return &in[i];
		if ((jit_reads(&in[i]) | jit_writes(&in[i])) & 1u << in->base)
			return NULL;
	}
	return NULL;
}

/* A constant that is in a register all along. */
static bool is_constant(const struct a64 *e, uint8_t r)
{
	return r ? e->map[r] != e->plain[r] : e->now != 0 && e->now != A64_R0_APART;
}

static bool takes_step(const struct a64 *e, const struct jit_insn *in)
{
	if (!is_access(in) || is_constant(e, in->base))
		return false;
	/* Loading the base itself, with a step, has no meaning. */
	if (in->op == JIT_LOAD && is_register(e, in->base) &&
	    target_of(e, in->dst) == a64_use(e, in->base))
		return false;
	return is_access(in) && in->index == JIT_NONE && !in->off && in->base < 10 &&
	       data_of(in) != in->base &&
	       (in->op == JIT_LOAD || in->b == JIT_NONE ? in->op == JIT_LOAD || !in->imm
							: is_register(e, in->b));
}

static int data_register(struct a64 *e, const struct jit_insn *in)
{
	if (in->op == JIT_LOAD)
		return a64_def(e, in->dst);
	return in->b == JIT_NONE ? A64_ZR : a64_use(e, in->b);
}

static bool fuse_step_after(struct a64 *e, const struct jit_insn *in, unsigned int left)
{
	const struct jit_insn *step;
	int rn;

	if (!takes_step(e, in) || e->nstepped == sizeof(e->stepped) / sizeof(e->stepped[0]))
		return false;
	step = later_step(in, left);
	if (!step)
		return false;
	e->stepped[e->nstepped++] = step;
	rn = a64_use(e, in->base);
	a64_out(e, a64_memory_post(a64_access_of(in), in->size, data_register(e, in), rn,
				   step_by(step)));
	return true;
}

static bool fuse_step_before(struct a64 *e, const struct jit_insn *in)
{
	int rn;

	if (in[1].base == JIT_NONE || !is_step(&in[0], in[1].base) || !takes_step(e, &in[1]))
		return false;
	a64_place(e, in[1].insn);
	rn = a64_use(e, in[1].base);
	a64_out(e, a64_memory_pre(a64_access_of(&in[1]), in[1].size, data_register(e, &in[1]), rn,
				  step_by(&in[0])));
	return true;
}

/* ---- */

static bool fuse_two(struct a64 *e, const struct jit_insn *in)
{
	if (in->dst == JIT_NONE || !passes_on(in) || !is_register(e, in->a))
		return false;
	if (is_shift(in))
		return fuse_shifts(e, in) || fuse_extract(e, in) || fuse_shifted(e, in);
	if (in->op == JIT_MUL)
		return fuse_multiply(e, in);
	return fuse_insert(e, in) || fuse_index(e, in) || fuse_extended(e, in);
}

static bool is_stepped(const struct a64 *e, const struct jit_insn *in)
{
	for (int i = 0; i < e->nstepped; i++)
		if (e->stepped[i] == in)
			return true;
	return false;
}

unsigned int a64_fuse_one(struct a64 *e, const struct jit_insn *in, unsigned int left)
{
	if (is_stepped(e, in))
		return 1;
	return a64_pass(e, VM_PASS_SHORT) && fuse_step_after(e, in, left);
}

unsigned int a64_fuse_two(struct a64 *e, const struct jit_insn *in, unsigned int left)
{
	if (left < 2 || !a64_pass(e, VM_PASS_SHORT) || is_stepped(e, &in[1]))
		return 0;
	/* r0 leaves x0 between instructions, not inside of two. */
	if (e->now == 0 && a64_writes(&in[1]) & 2 && in[1].live & 1 &&
	    !((a64_writes(&in[0]) | a64_writes(&in[1])) & 1))
		return 0;
	if (is_access(in) && fuse_pair(e, in))
		return 2;
	return fuse_step_before(e, in) || fuse_two(e, in) ? 2 : 0;
}
