// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames. From the bottom: saved registers in pairs, then the BPF frame, whose end r10 is:
 *
 *	stp	x30, x19, [sp, #-total]!
 *	stp	x20, x21, [sp, #16]
 *
 * In checked mode the BPF frame lies on the vm's own stack. What is seldom needed (misses of
 * checks, the end of a budget) lies behind the function.
 */
#include "vm/jit/arm64.h"

#define FRAME_REGISTER      25   /* r10 in checked mode, in functions that call */
#define LEAF_FRAME_REGISTER 10   /* ... in those that do not */
#define UNPROBED            1024 /* bytes that sp may go down below the limit */

static void save(struct a64 *e, int reg)
{
	e->saved[e->nsaved++] = reg;
}

/* Which registers BPF's are, and what the function's frame holds. Constants that were hoisted come
 * on top: they need a register each. */
void a64_frame_plan(struct a64 *e)
{
	static const uint8_t calling[11] = { 7, 0, 1, 2, 3, 4, 19, 20, 21, 22, FRAME_REGISTER };
	static const uint8_t leaf[11] = { 7, 0, 1, 2, 3, 4, 5, 6, 8, 9, LEAF_FRAME_REGISTER };
	const struct jit_function *function = e->function;
	const bool whole = !a64_pass(e, VM_PASS_PROLOGUE);
	uint32_t frame = 0;

	for (int r = 0; r <= 10; r++)
		e->map[r] = e->plain[r] = e->leaf ? leaf[r] : calling[r];
	e->frame_on_sp = !function->checked;
	e->nsaved = 0;
	if (!e->leaf)
		save(e, A64_LR);
	for (int r = 6; r <= 9 && !e->leaf; r++)
		if (function->written & 1 << r || whole)
			save(e, e->map[r]);
	if (!e->leaf && !e->frame_on_sp && function->uses_frame)
		save(e, FRAME_REGISTER);
	if (!e->collecting)
		for (int i = 0; i < e->nhoisted; i++)
			if (e->hoisted[i].reg >= 19)
				save(e, e->hoisted[i].reg);
	if (e->frame_on_sp && (function->uses_frame || whole))
		frame = (function->frame + 15) & ~15u;
	e->frame_top = (e->nsaved + 1) / 2 * 16 + frame;
	e->total = e->frame_top;
}

static void note_saved(struct a64 *e, int i)
{
	a64_step(e->code, &e->rc, e->total, e->saved[i], e->total - 8 * i);
}

/* The first pair may take sp down by the whole frame. */
static bool at_once(const struct a64 *e)
{
	if (e->nsaved == 1)
		return e->total <= 256;
	return e->nsaved && a64_fits_pair(true, -(int64_t)e->total);
}

static void save_registers(struct a64 *e)
{
	int i = 0;

	if (at_once(e)) {
		if (e->nsaved == 1)
			a64_out(e,
				a64_memory_pre(A64_STORE, 8, e->saved[0], A64_SP, -(int)e->total));
		else
			a64_out(e, a64_pair_pre(false, true, e->saved[0], e->saved[1], A64_SP,
						-(int)e->total));
		i = e->nsaved == 1 ? 1 : 2;
		note_saved(e, 0);
		if (i == 2)
			note_saved(e, 1);
	} else if (e->total) {
		a64_add_imm(e, true, A64_SP, A64_SP, -(int64_t)e->total, A64_T0);
		a64_step(e->code, &e->rc, e->total, JIT_NONE, 0);
	}
	for (; i < e->nsaved; i += 2) {
		if (i + 1 < e->nsaved)
			a64_out(e,
				a64_pair(false, true, e->saved[i], e->saved[i + 1], A64_SP, 8 * i));
		else
			a64_out(e, a64_memory(A64_STORE, 8, e->saved[i], A64_SP, 8 * i));
		note_saved(e, i);
		if (i + 1 < e->nsaved)
			note_saved(e, i + 1);
	}
}

/* Of the thread's stack: nothing is saved yet, so that the caller is what overflowed. */
static void check_stack(struct a64 *e, uint32_t overflow)
{
	const int64_t offset = e->code->runtime->limit_offset;
	int rm;

	a64_out(e, a64_mrs_tpidr(A64_T0));
	if (a64_fits_offset(8, offset)) {
		a64_out(e, a64_memory(A64_LOAD, 8, A64_T0, A64_T0, offset));
	} else {
		a64_move_imm(e, A64_T1, offset);
		a64_out(e, a64_memory_reg(A64_LOAD, 8, A64_T0, A64_T0, A64_T1, false));
	}
	rm = A64_SP;
	if (e->total > UNPROBED) {
		a64_add_imm(e, true, A64_T1, A64_SP, -(int64_t)e->total, A64_T1);
		rm = A64_T1;
	}
	a64_out(e, a64_arith_sp(A64_SUBS, A64_ZR, rm, A64_T0));
	a64_branch_to(e, a64_b_cond(A64_LO, 0), overflow);
}

/* Of the vm's stack, in checked mode. Leaves r10 in T1. */
static void take_frame(struct a64 *e, uint32_t overflow)
{
	const struct jit_runtime *runtime = e->code->runtime;

	a64_move_imm(e, A64_T0, (uintptr_t)runtime->stack);
	a64_out(e, a64_memory(A64_LOAD, 8, A64_T1, A64_T0, 0));
	a64_add_imm(e, true, A64_T2, A64_T1, -(int64_t)e->function->frame, A64_T2);
	a64_move_imm(e, A64_T3, runtime->stack_low);
	a64_out(e, a64_arith_reg(true, A64_SUBS, A64_ZR, A64_T2, A64_T3, A64_LSL, 0));
	a64_branch_to(e, a64_b_cond(A64_LO, 0), overflow);
	a64_out(e, a64_memory(A64_STORE, 8, A64_T2, A64_T0, 0));
}

void a64_prologue(struct a64 *e)
{
	const struct jit_function *function = e->function;
	const bool own_stack = !e->frame_on_sp && function->uses_frame;
	uint32_t overflow = JIT_NOWHERE;

	if ((function->recursive || own_stack) &&
	    a64_grow(&e->asides, sizeof(*e->asides), &e->asides_list, &e->rc)) {
		overflow = a64_label(e);
		e->asides[e->asides_list.count++] =
			(struct a64_aside){ .label = overflow, .stub = A64_STUB_OVERFLOW };
	}
	if (e->rc)
		return;
	if (function->recursive)
		check_stack(e, overflow);
	if (own_stack)
		take_frame(e, overflow);
	save_registers(e);
	if (own_stack)
		a64_out(e, a64_mov(true, e->map[10], A64_T1));
	if (!e->collecting)
		for (int i = 0; i < e->nhoisted; i++)
			a64_move_imm(e, e->hoisted[i].reg, e->hoisted[i].value);
}

void a64_epilogue(struct a64 *e)
{
	const int first = at_once(e) ? (e->nsaved == 1 ? 1 : 2) : 0;

	if (!e->frame_on_sp && e->function->uses_frame) {
		a64_move_imm(e, A64_T0, (uintptr_t)e->code->runtime->stack);
		a64_out(e, a64_memory(A64_STORE, 8, e->map[10], A64_T0, 0));
	}
	for (int i = first; i < e->nsaved; i += 2) {
		if (i + 1 < e->nsaved)
			a64_out(e,
				a64_pair(true, true, e->saved[i], e->saved[i + 1], A64_SP, 8 * i));
		else
			a64_out(e, a64_memory(A64_LOAD, 8, e->saved[i], A64_SP, 8 * i));
	}
	if (first == 2)
		a64_out(e, a64_pair_post(true, true, e->saved[0], e->saved[1], A64_SP, e->total));
	else if (first == 1)
		a64_out(e, a64_memory_post(A64_LOAD, 8, e->saved[0], A64_SP, e->total));
	else if (e->total)
		a64_add_imm(e, true, A64_SP, A64_SP, e->total, A64_T0);
	a64_out(e, a64_ret());
}

unsigned int a64_epilogue_length(const struct a64 *e)
{
	unsigned int n = 1 + (e->nsaved + 1) / 2 + (!at_once(e) && e->total);

	return n + (!e->frame_on_sp && e->function->uses_frame ? 2 : 0);
}

void a64_budget(struct a64 *e, const struct jit_block *block)
{
	uint32_t spent;
	int rm;

	if (!e->code->runtime->has_budget ||
	    !a64_grow(&e->asides, sizeof(*e->asides), &e->asides_list, &e->rc))
		return;
	spent = a64_label(e);
	a64_move_imm(e, A64_T0, (uintptr_t)e->code->runtime->budget);
	a64_out(e, a64_memory(A64_LOAD, 8, A64_T1, A64_T0, 0));
	if (a64_fits_arith(block->cost)) {
		a64_out(e, a64_arith_imm(true, A64_SUBS, A64_T1, A64_T1, block->cost));
	} else {
		rm = a64_constant(e, block->cost, A64_T2);
		a64_out(e, a64_arith_reg(true, A64_SUBS, A64_T1, A64_T1, rm, A64_LSL, 0));
	}
	a64_out(e, a64_memory(A64_STORE, 8, A64_T1, A64_T0, 0));
	a64_branch_to(e, a64_b_cond(A64_MI, 0), spent);
	e->asides[e->asides_list.count++] = (struct a64_aside){
		.insn = &e->function->insns[block->first], .label = spent, .stub = A64_STUB_SPENT
	};
}

/* A function without calls has its return address in the register yet. */
static void push_return(struct a64 *e, bool *pushed)
{
	a64_out(e, a64_memory_pre(A64_STORE, 8, A64_LR, A64_SP, -16));
	/* The step holds for all that follow: at their calls they are alike. */
	if (!*pushed)
		a64_step(e->code, &e->rc, e->total + 16, A64_LR, e->total + 16);
	*pushed = true;
}

static void aside(struct a64 *e, const struct a64_aside *aside, bool *pushed)
{
	a64_bind(e, aside->label);
	a64_place(e, aside->insn->insn);
	if (e->leaf)
		push_return(e, pushed);
	if (aside->stub == A64_STUB_MISS) {
		a64_copy(e, A64_T0, aside->address);
		a64_move_imm(e, A64_T1, aside->insn->target);
	}
	a64_call_stub(e, aside->stub);
	if (aside->stub == A64_STUB_MISS) {
		if (e->leaf)
			a64_out(e, a64_memory_post(A64_LOAD, 8, A64_LR, A64_SP, 16));
		a64_branch_to(e, a64_b(0), aside->back);
	}
}

void a64_asides(struct a64 *e)
{
	bool pushed = false;

	for (size_t i = 0; i < e->asides_list.count; i++) {
		const struct a64_aside *this = &e->asides[i];

		if (this->stub != A64_STUB_OVERFLOW) {
			aside(e, this, &pushed);
			continue;
		}
		/* By a jump: the place is the call that did not succeed. */
		a64_bind(e, this->label);
		a64_place(e, JIT_NO_INSN);
		a64_jump_stub(e, this->stub);
	}
}
