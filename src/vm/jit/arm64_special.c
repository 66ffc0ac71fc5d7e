// SPDX-License-Identifier: BSD-2-Clause
/* Memory that is more than read or written: atomics, checks, arrays. */
#include "vm/jit/arm64.h"

#include <assert.h>

/* Where r10 is computed for a loop of exclusives, which needs all scratch registers: not in use
 * when r10 is not a register. */
#define A64_FRAME_VALUE 10

/* Atomics take their address from a register alone. */
static int cell(struct a64 *e, const struct jit_insn *in)
{
	int64_t off;
	int rn = a64_base(e, in, &off);

	if (in->index == JIT_NONE && !off && rn != A64_SP)
		return rn;
	a64_operand_address(e, in, A64_T0);
	return A64_T0;
}

static bool atomic_at_once(struct a64 *e, const struct jit_insn *in, int rn, int rm)
{
	const bool fetch = in->flags & JIT_FLAG_FETCH;
	enum a64_lse op;

	if (!e->lse)
		return false;
	switch (in->sub) {
	case JIT_ADD:
		op = A64_LDADD;
		break;
	case JIT_OR:
		op = A64_LDSET;
		break;
	case JIT_XOR:
		op = A64_LDEOR;
		break;
	case JIT_AND:
		op = A64_LDCLR;
		a64_out(e, a64_logic_reg(true, A64_ORR, true, A64_T1, A64_ZR, rm, A64_LSL, 0));
		rm = A64_T1;
		break;
	default:
		assert(in->sub == JIT_MOV);
		op = A64_SWP;
	}
	a64_out(e, a64_lse(op, fetch, in->size, rm, fetch ? a64_def(e, in->b) : A64_ZR, rn));
	return true;
}

void a64_atomic(struct a64 *e, const struct jit_insn *in)
{
	const bool fetch = in->flags & JIT_FLAG_FETCH;
	int rn = cell(e, in), rm = a64_value(e, in->b, A64_FRAME_VALUE), changed = A64_T3;
	uint32_t again;

	if (atomic_at_once(e, in, rn, rm))
		return;
	again = a64_label(e);
	a64_bind(e, again);
	a64_out(e, a64_load_exclusive(fetch, in->size, A64_T1, rn));
	if (in->sub == JIT_MOV)
		changed = rm;
	else
		a64_combine(e, in, changed, A64_T1, rm);
	a64_out(e, a64_store_exclusive(fetch, in->size, A64_T2, changed, rn));
	a64_branch_to(e, a64_cbz(false, true, A64_T2, 0), again);
	if (fetch)
		a64_out(e, a64_mov(in->size == 8, a64_def(e, in->b), A64_T1));
}

/* Compares with r0 and takes the old value into it. */
static void exchange_loop(struct a64 *e, const struct jit_insn *in, int rn, int rm)
{
	const bool wide = in->size == 8;
	uint32_t again = a64_label(e), done = a64_label(e);

	a64_bind(e, again);
	a64_out(e, a64_load_exclusive(true, in->size, A64_T1, rn));
	if (in->size >= 4) {
		a64_out(e,
			a64_arith_reg(wide, A64_SUBS, A64_ZR, A64_T1, a64_use(e, 0), A64_LSL, 0));
	} else {
		a64_out(e, a64_extract(false, false, A64_T3, a64_use(e, 0), 0, in->size * 8));
		a64_out(e, a64_arith_reg(false, A64_SUBS, A64_ZR, A64_T1, A64_T3, A64_LSL, 0));
	}
	a64_branch_to(e, a64_b_cond(A64_NE, 0), done);
	a64_out(e, a64_store_exclusive(true, in->size, A64_T2, rm, rn));
	a64_branch_to(e, a64_cbz(false, true, A64_T2, 0), again);
	a64_bind(e, done);
}

void a64_cmpxchg(struct a64 *e, const struct jit_insn *in)
{
	int rn = cell(e, in), rm = a64_value(e, in->b, A64_FRAME_VALUE);

	if (e->lse) {
		a64_out(e, a64_mov(true, A64_T1, a64_use(e, 0)));
		a64_out(e, a64_casal(in->size, A64_T1, rm, rn));
	} else {
		exchange_loop(e, in, rn, rm);
	}
	a64_out(e, a64_mov(in->size == 8, a64_def(e, 0), A64_T1));
}

/* Loads both halves of a check's slot. */
static void load_slot(struct a64 *e, uint64_t slot)
{
	int64_t distance = slot - a64_here_address(e);
	int64_t page = (int64_t)(slot >> 12) - (int64_t)(a64_here_address(e) >> 12);

	if (a64_fits(distance, A64_COND_BITS) && a64_fits(distance + 4, A64_COND_BITS)) {
		a64_out(e, a64_literal(true, A64_T0, distance));
		a64_out(e, a64_literal(true, A64_T1, distance + 4));
		return;
	}
	if (page >= -(1 << 20) && page < 1 << 20)
		a64_out(e, a64_adrp(A64_T1, page));
	else
		a64_move_imm(e, A64_T1, slot & ~0xfffull);
	a64_out(e, a64_memory(A64_LOAD, 8, A64_T0, A64_T1, slot & 0xfff));
	a64_out(e, a64_memory(A64_LOAD, 8, A64_T1, A64_T1, (slot & 0xfff) + 8));
}

void a64_check(struct a64 *e, const struct jit_insn *in)
{
	uint32_t miss = a64_label(e), back = a64_label(e);
	int rn;

	if (e->rc || !a64_grow(&e->asides, sizeof(*e->asides), &e->asides_list, &e->rc))
		return;
	if (in->off || in->index != JIT_NONE || (in->base == 10 && e->frame_on_sp)) {
		a64_operand_address(e, in, A64_T3);
		rn = A64_T3;
	} else {
		rn = a64_use(e, in->base);
	}
	load_slot(e, (uintptr_t)&e->code->runtime->checks[in->target]);
	a64_out(e, a64_arith_reg(true, A64_SUB, A64_T0, rn, A64_T0, A64_LSL, 0));
	a64_out(e, a64_arith_reg(true, A64_SUBS, A64_ZR, A64_T0, A64_T1, A64_LSL, 0));
	a64_branch_to(e, a64_b_cond(A64_HI, 0), miss);
	a64_bind(e, back);
	e->asides[e->asides_list.count++] = (struct a64_aside){
		.insn = in, .label = miss, .back = back, .address = rn, .stub = A64_STUB_MISS
	};
}

/* r0 = the element's address, or 0: data + index * stride, if index < entries. */
void a64_array(struct a64 *e, const struct jit_insn *in)
{
	const struct vm_array *array = &e->function->image->arrays[in->target];
	struct jit_insn key = *in; /* a uint32_t, whatever in->size says */
	int index = A64_T1, rm, rd, data;

	key.size = 4;
	key.flags = 0;
	if (in->base == JIT_NONE && in->a == JIT_NONE) {
		rd = a64_def(e, 0);
		a64_move_imm(e, rd, (uintptr_t)array->data + in->imm * array->stride);
		return;
	}
	if (in->base == JIT_NONE)
		a64_out(e, a64_mov(false, index, a64_value(e, in->a, A64_T1)));
	else
		a64_operand_load(e, &key, index);
	if (a64_fits_arith(array->entries)) {
		a64_out(e, a64_arith_imm(false, A64_SUBS, A64_ZR, index, array->entries));
	} else {
		rm = a64_constant(e, array->entries, A64_T0);
		a64_out(e, a64_arith_reg(false, A64_SUBS, A64_ZR, index, rm, A64_LSL, 0));
	}
	data = a64_constant(e, (uintptr_t)array->data, A64_T0);
	if (array->stride && !(array->stride & (array->stride - 1))) {
		a64_out(e, a64_arith_reg(true, A64_ADD, A64_T0, data, index, A64_LSL,
					 __builtin_ctz(array->stride)));
	} else {
		rm = a64_constant(e, array->stride, A64_T2);
		a64_out(e, a64_madd(true, A64_T0, index, rm, data));
	}
	rd = a64_def(e, 0);
	a64_out(e, a64_csel(true, rd, A64_T0, A64_ZR, A64_LO));
}
