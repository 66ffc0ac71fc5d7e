// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/arm64.h"

#include <assert.h>

/* What a load or store instruction says: [rn + off], or [rn + (rm << scale)]. */
struct operand {
	int rn, rm; /* rm -1: none */
	bool scaled;
	int64_t off;
};

int a64_base(const struct a64 *e, const struct jit_insn *in, int64_t *off)
{
	*off = in->off;
	if (in->base != 10 || !e->frame_on_sp)
		return a64_use(e, in->base);
	*off += e->frame_top;
	return A64_SP;
}

void a64_operand_address(struct a64 *e, const struct jit_insn *in, int rd)
{
	int64_t off;
	int rn = a64_base(e, in, &off), rm;

	if (in->index == JIT_NONE) {
		a64_add_imm(e, true, rd, rn, off, rd);
		return;
	}
	rm = a64_use(e, in->index);
	if (rn == A64_SP) {
		a64_add_imm(e, true, rd, A64_SP, off, rd);
		a64_out(e, a64_arith_reg(true, A64_ADD, rd, rd, rm, A64_LSL, in->scale));
		return;
	}
	a64_out(e, a64_arith_reg(true, A64_ADD, rd, rn, rm, A64_LSL, in->scale));
	if (off)
		a64_add_imm(e, true, rd, rd, off, A64_T2);
}

/* What one instruction can do is its; the rest is computed into @scratch. */
static struct operand operand_of(struct a64 *e, const struct jit_insn *in, int scratch)
{
	struct operand operand = { .rm = -1 };
	int64_t off, near;

	operand.rn = a64_base(e, in, &off);
	if (in->index != JIT_NONE) {
		if (!off && operand.rn != A64_SP && (!in->scale || 1u << in->scale == in->size)) {
			operand.rm = a64_use(e, in->index);
			operand.scaled = in->scale;
			return operand;
		}
		a64_operand_address(e, in, scratch);
		operand.rn = scratch;
		return operand;
	}
	if (a64_fits_offset(in->size, off)) {
		operand.off = off;
		return operand;
	}
	/* The upper part first: the lower one may fit. */
	near = off & 0xfff;
	if (off > -(1 << 24) && off < 1 << 24 && a64_fits_offset(in->size, near)) {
		a64_add_imm(e, true, scratch, operand.rn, off - near, scratch);
		operand.rn = scratch;
		operand.off = near;
		return operand;
	}
	if (operand.rn == A64_SP) {
		a64_add_imm(e, true, scratch, A64_SP, off, scratch);
		operand.rn = scratch;
		return operand;
	}
	operand.rm = a64_constant(e, off, scratch);
	return operand;
}

static void access_memory(struct a64 *e, enum a64_access access, unsigned int size, int rt,
			  const struct operand *operand)
{
	if (operand->rm >= 0)
		a64_out(e, a64_memory_reg(access, size, rt, operand->rn, operand->rm,
					  operand->scaled));
	else
		a64_out(e, a64_memory(access, size, rt, operand->rn, operand->off));
}

enum a64_access a64_access_of(const struct jit_insn *in)
{
	if (in->op == JIT_STORE)
		return A64_STORE;
	return in->flags & JIT_FLAG_SIGNED && in->size < 8 ? A64_LOAD_SIGNED : A64_LOAD;
}

void a64_operand_load(struct a64 *e, const struct jit_insn *in, int rt)
{
	struct operand operand = operand_of(e, in, A64_T0);

	access_memory(e, a64_access_of(in), in->size, rt, &operand);
}

void a64_load(struct a64 *e, const struct jit_insn *in)
{
	struct operand operand = operand_of(e, in, A64_T0);

	access_memory(e, a64_access_of(in), in->size, a64_def(e, in->dst), &operand);
}

/* As many bits as are stored. */
static uint64_t stored_imm(const struct jit_insn *in)
{
	return in->size == 8 ? in->imm : in->imm & ((1ull << in->size * 8) - 1);
}

void a64_store(struct a64 *e, const struct jit_insn *in)
{
	struct operand operand = operand_of(e, in, A64_T0);
	int rt;

	if (in->b == JIT_NONE)
		rt = a64_constant(e, stored_imm(in), A64_T1);
	else
		rt = a64_value(e, in->b, A64_T1);
	access_memory(e, A64_STORE, in->size, rt, &operand);
}

void a64_combine(struct a64 *e, const struct jit_insn *in, int rd, int rn, int rm)
{
	const bool wide = in->size == 8;

	switch (in->sub) {
	case JIT_ADD:
		a64_out(e, a64_arith_reg(wide, A64_ADD, rd, rn, rm, A64_LSL, 0));
		return;
	case JIT_SUB:
		a64_out(e, a64_arith_reg(wide, A64_SUB, rd, rn, rm, A64_LSL, 0));
		return;
	case JIT_OR:
		a64_out(e, a64_logic_reg(wide, A64_ORR, false, rd, rn, rm, A64_LSL, 0));
		return;
	case JIT_AND:
		a64_out(e, a64_logic_reg(wide, A64_AND, false, rd, rn, rm, A64_LSL, 0));
		return;
	default:
		assert(in->sub == JIT_XOR);
		a64_out(e, a64_logic_reg(wide, A64_EOR, false, rd, rn, rm, A64_LSL, 0));
	}
}

void a64_modify(struct a64 *e, const struct jit_insn *in)
{
	struct operand operand = operand_of(e, in, A64_T0);
	int rm;

	access_memory(e, A64_LOAD, in->size, A64_T1, &operand);
	if (in->b == JIT_NONE)
		rm = a64_constant(e, stored_imm(in), A64_T2);
	else
		rm = a64_value(e, in->b, A64_T2);
	a64_combine(e, in, A64_T1, A64_T1, rm);
	access_memory(e, A64_STORE, in->size, A64_T1, &operand);
}
