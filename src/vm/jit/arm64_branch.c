// SPDX-License-Identifier: BSD-2-Clause
/* Ends of blocks. */
#include "vm/jit/arm64.h"

#include <assert.h>

#define SHORT_EPILOGUE 6 /* instructions that are repeated rather than jumped to */

static enum a64_condition condition_of(enum jit_condition condition)
{
	switch (condition) {
	case JIT_EQ:
	case JIT_CLEAR:
		return A64_EQ;
	case JIT_NE:
	case JIT_SET:
		return A64_NE;
	case JIT_GT:
		return A64_HI;
	case JIT_GE:
		return A64_HS;
	case JIT_LT:
		return A64_LO;
	case JIT_LE:
		return A64_LS;
	case JIT_SGT:
		return A64_GT;
	case JIT_SGE:
		return A64_GE;
	case JIT_SLT:
		return A64_LT;
	case JIT_SLE:
		return A64_LE;
	}
	return A64_AL;
}

static bool tests_bits(const struct jit_insn *in)
{
	return in->sub == JIT_SET || in->sub == JIT_CLEAR;
}

/* The register of the left side, loaded first when it is memory. */
static int left_side(struct a64 *e, const struct jit_insn *in)
{
	if (in->base == JIT_NONE)
		return a64_value(e, in->a, A64_T1);
	a64_operand_load(e, in, A64_T1);
	return A64_T1;
}

/* Does it fit cmp, or with its sign changed cmn? */
static bool fits_compare(bool wide, uint64_t value)
{
	return a64_fits_arith(value) || a64_fits_arith(wide ? -value : (uint32_t)-value);
}

/* x > 0x1fff is x >= 0x2000, which fits. */
static enum a64_condition round_constant(bool wide, enum jit_condition condition, uint64_t *value)
{
	const uint64_t ones = wide ? UINT64_MAX : UINT32_MAX, most = ones >> 1;
	uint64_t up = (*value + 1) & ones, down = (*value - 1) & ones, changed = *value;
	enum jit_condition as = condition;

	switch (condition) {
	case JIT_GT:
	case JIT_LE:
		if (*value != ones)
			changed = up, as = condition == JIT_GT ? JIT_GE : JIT_LT;
		break;
	case JIT_GE:
	case JIT_LT:
		if (*value)
			changed = down, as = condition == JIT_GE ? JIT_GT : JIT_LE;
		break;
	case JIT_SGT:
	case JIT_SLE:
		if (*value != most)
			changed = up, as = condition == JIT_SGT ? JIT_SGE : JIT_SLT;
		break;
	case JIT_SGE:
	case JIT_SLT:
		if (*value != most + 1)
			changed = down, as = condition == JIT_SGE ? JIT_SGT : JIT_SLE;
		break;
	case JIT_EQ:
	case JIT_NE:
	case JIT_SET:
	case JIT_CLEAR:
		break;
	}
	if (fits_compare(wide, *value) || !fits_compare(wide, changed))
		return condition_of(condition);
	*value = changed;
	return condition_of(as);
}

enum a64_condition a64_compare(struct a64 *e, const struct jit_insn *in)
{
	const bool wide = a64_wide(in);
	enum a64_condition condition = condition_of(in->sub);
	uint64_t value = a64_imm(in), opposite;
	int rn = left_side(e, in), rm, field;

	if (in->b != JIT_NONE) {
		rm = a64_value(e, in->b, A64_T0);
	} else if (tests_bits(in)) {
		field = a64_find_logic(wide, value);
		if (field >= 0) {
			a64_out(e, a64_logic_imm(wide, A64_ANDS, A64_ZR, rn, field));
			return condition;
		}
		rm = a64_constant(e, value, A64_T0);
	} else {
		condition = round_constant(wide, in->sub, &value);
		opposite = wide ? -value : (uint32_t)-value;
		if (a64_fits_arith(value)) {
			a64_out(e, a64_arith_imm(wide, A64_SUBS, A64_ZR, rn, value));
			return condition;
		}
		if (a64_fits_arith(opposite)) {
			a64_out(e, a64_arith_imm(wide, A64_ADDS, A64_ZR, rn, opposite));
			return condition;
		}
		rm = a64_constant(e, value, A64_T0);
	}
	if (tests_bits(in))
		a64_out(e, a64_logic_reg(wide, A64_ANDS, false, A64_ZR, rn, rm, A64_LSL, 0));
	else
		a64_out(e, a64_arith_reg(wide, A64_SUBS, A64_ZR, rn, rm, A64_LSL, 0));
	return condition;
}

/* Is the branch taken when the left side is zero (1), is not zero (0), or neither (-1)? */
static int tests_zero(const struct jit_insn *in)
{
	uint64_t value = a64_imm(in);

	switch ((enum jit_condition)in->sub) {
	case JIT_EQ:
		return value ? -1 : 1;
	case JIT_LE:
		return value ? -1 : 1;
	case JIT_LT:
		return value == 1 ? 1 : -1;
	case JIT_NE:
		return value ? -1 : 0;
	case JIT_GT:
		return value ? -1 : 0;
	case JIT_GE:
		return value == 1 ? 0 : -1;
	case JIT_SET:
	case JIT_CLEAR:
	case JIT_SGT:
	case JIT_SGE:
	case JIT_SLT:
	case JIT_SLE:
		return -1;
	}
	return -1;
}

/* ... when one bit is set (1), is clear (0), or neither (-1)? */
static int tests_bit(const struct jit_insn *in, int *bit)
{
	const uint64_t value = a64_imm(in), ones = a64_wide(in) ? UINT64_MAX : UINT32_MAX;

	*bit = a64_wide(in) ? 63 : 31;
	switch ((enum jit_condition)in->sub) {
	case JIT_SLT:
		return value ? -1 : 1;
	case JIT_SGE:
		return value ? -1 : 0;
	case JIT_SLE:
		return value == ones ? 1 : -1;
	case JIT_SGT:
		return value == ones ? 0 : -1;
	case JIT_SET:
	case JIT_CLEAR:
		if (!value || value & (value - 1))
			return -1;
		*bit = __builtin_ctzll(value);
		return in->sub == JIT_SET;
	case JIT_EQ:
	case JIT_NE:
	case JIT_GT:
	case JIT_GE:
	case JIT_LT:
	case JIT_LE:
		return -1;
	}
	return -1;
}

/* Emits what goes before a branch, which it returns. */
static uint32_t branch_word(struct a64 *e, const struct jit_insn *in)
{
	int zero, set, bit, rn;

	if (in->b == JIT_NONE && a64_pass(e, VM_PASS_SHORT)) {
		zero = tests_zero(in);
		if (zero >= 0) {
			rn = left_side(e, in);
			return a64_cbz(a64_wide(in), !zero, rn, 0);
		}
		set = tests_bit(in, &bit);
		if (set >= 0) {
			rn = left_side(e, in);
			return a64_tbz(set, rn, bit, 0);
		}
	}
	return a64_b_cond(a64_compare(e, in), 0);
}

void a64_branch(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		uint32_t follows, uint32_t planned)
{
	uint32_t word;

	if (block->taken == block->next) {
		a64_jump(e, block->next, follows);
		return;
	}
	word = branch_word(e, in);
	if (block->taken == planned) {
		a64_branch_to(e, a64_turned(word), block->next);
		a64_jump(e, block->taken, follows);
	} else {
		a64_branch_to(e, word, block->taken);
		a64_jump(e, block->next, follows);
	}
}

/* A block that only returns. */
static bool is_exit(const struct a64 *e, uint32_t block)
{
	const struct jit_block *b = &e->function->blocks[block];

	return b->count == 1 && e->function->insns[b->first].op == JIT_EXIT;
}

bool a64_returns(const struct a64 *e, uint32_t block)
{
	return is_exit(e, block) && a64_epilogue_length(e) <= SHORT_EPILOGUE &&
	       a64_pass(e, VM_PASS_LAYOUT) && !e->code->runtime->has_budget;
}

void a64_jump(struct a64 *e, uint32_t block, uint32_t follows)
{
	if (block != follows && a64_returns(e, block)) {
		a64_exit(e);
		return;
	}
	a64_settle(e, e->function->blocks[block].live_in & 1, e->homes[2 * block]);
	if (block != follows)
		a64_branch_to(e, a64_b(0), block);
}

void a64_exit(struct a64 *e)
{
	a64_copy(e, 0, a64_use(e, 0));
	a64_epilogue(e);
}

/* The table lies behind the jump: words, counted from the table's start. */
void a64_switch(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		uint32_t follows)
{
	const bool wide = a64_wide(in);
	const uint32_t past = a64_label(e);
	int index = a64_value(e, in->a, A64_T1), rm;
	uint32_t table;

	(void)follows;
	if (in->off || !wide) {
		if (in->off)
			a64_add_imm(e, wide, A64_T1, index, -(int64_t)in->off, A64_T0);
		else
			a64_out(e, a64_mov(false, A64_T1, index));
		index = A64_T1;
	}
	if (a64_fits_arith(in->imm)) {
		a64_out(e, a64_arith_imm(wide, A64_SUBS, A64_ZR, index, in->imm));
	} else {
		rm = a64_constant(e, in->imm, A64_T0);
		a64_out(e, a64_arith_reg(wide, A64_SUBS, A64_ZR, index, rm, A64_LSL, 0));
	}
	a64_branch_to(e, a64_b_cond(A64_HS, 0), block->next);
	a64_refer(e, past, JIT_NOWHERE);
	a64_out(e, a64_adr(A64_T0, 0));
	a64_out(e, a64_memory_reg(A64_LOAD_SIGNED, 4, A64_T1, A64_T0, index, true));
	a64_out(e, a64_arith_reg(true, A64_ADD, A64_T0, A64_T0, A64_T1, A64_LSL, 0));
	a64_out(e, a64_br(A64_T0));
	a64_bind(e, past);
	table = a64_here(e);
	a64_table_place(e, in->insn);
	for (uint64_t i = 0; i < in->imm; i++) {
		a64_refer(e, e->function->targets[in->target + i], table);
		a64_out(e, 0);
	}
	a64_place(e, in->insn);
}
