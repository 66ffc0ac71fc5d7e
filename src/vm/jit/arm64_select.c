// SPDX-License-Identifier: BSD-2-Clause
/* Branches round a move become selects; constants that loops need get a register. */
#include "vm/jit/arm64.h"

#include <stdlib.h>

/* What a branch makes of a register: one value when it is taken, the other one when not. */
struct choice {
	uint8_t dst;
	const struct jit_insn *taken, *other; /* moves; NULL: it stays as it is */
	uint32_t sides[2];                    /* the blocks of the moves, JIT_NOWHERE: none */
	uint32_t join;
};

/* The move that is all there is in a block which nobody else goes to; NULL: it is more. */
static const struct jit_insn *only_move(const struct a64 *e, uint32_t block, uint32_t *join)
{
	const struct jit_block *b = &e->function->blocks[block];
	const struct jit_insn *insns = &e->function->insns[b->first], *move = NULL;

	if (e->preds[block] != 1 || e->consumed[block] || e->labels[block] != JIT_NOWHERE ||
	    insns[b->count - 1].op != JIT_JUMP)
		return NULL;
	for (uint32_t i = 0; i + 1 < b->count; i++) {
		if (insns[i].op == JIT_NOP)
			continue;
		if (move || insns[i].op != JIT_MOV)
			return NULL;
		move = &insns[i];
	}
	if (!move || (move->a == 10 && e->frame_on_sp))
		return NULL;
	if (move->a != JIT_NONE && move->width == 4 && !(move->flags & JIT_FLAG_ANY_UPPER))
		return NULL;
	*join = b->next;
	return move;
}

/* r1 may be chosen for nobody, while its register holds r0: then a select would lose that one. */
static bool loses_r0(const struct a64 *e, const struct jit_block *block, uint8_t dst)
{
	const struct jit_insn *end = &e->function->insns[block->first + block->count - 1];

	return dst == 1 && end->live & 1 &&
	       e->homes[2 * (block - e->function->blocks) + 1] != A64_R0_APART;
}

static bool find_choice(const struct a64 *e, const struct jit_block *block, struct choice *ret)
{
	uint32_t after_taken = JIT_NOWHERE, after_other = JIT_NOWHERE;
	const struct jit_insn *taken = only_move(e, block->taken, &after_taken);
	const struct jit_insn *other = only_move(e, block->next, &after_other);

	if (block->taken == block->next)
		return false;
	if (taken && other && after_taken == after_other && taken->dst == other->dst)
		*ret = (struct choice){
			taken->dst, taken, other, { block->taken, block->next }, after_taken
		};
	else if (taken && after_taken == block->next)
		*ret = (struct choice){
			taken->dst, taken, NULL, { block->taken, JIT_NOWHERE }, block->next
		};
	else if (other && after_other == block->taken)
		*ret = (struct choice){
			other->dst, NULL, other, { JIT_NOWHERE, block->next }, block->taken
		};
	else
		return false;
	return !loses_r0(e, block, ret->dst);
}

/* A value that needs no instruction of its own in a select. */
static bool is_cheap(const struct jit_insn *move)
{
	uint64_t value;

	if (!move || move->a != JIT_NONE)
		return true;
	value = a64_imm(move);
	return !value || value == 1 || value == UINT64_MAX;
}

static bool is_imm(const struct jit_insn *move, uint64_t value)
{
	return move && move->a == JIT_NONE && a64_imm(move) == value;
}

static int value_register(struct a64 *e, const struct choice *choice, const struct jit_insn *move,
			  int scratch)
{
	if (!move)
		return a64_use(e, choice->dst);
	if (move->a != JIT_NONE)
		return a64_use(e, move->a);
	return a64_constant(e, a64_imm(move), scratch);
}

static void out_select(struct a64 *e, const struct choice *choice, enum a64_condition condition)
{
	const struct jit_insn *yes = choice->taken, *no = choice->other;
	int rn, rm;

	/* The second operand can be one more than zero, or its complement. */
	if ((is_imm(yes, 1) || is_imm(yes, UINT64_MAX)) && !is_imm(no, 1)) {
		yes = choice->other;
		no = choice->taken;
		condition = a64_inverse(condition);
	}
	rn = value_register(e, choice, yes, A64_T2);
	if (is_imm(no, 1)) {
		a64_out(e, a64_csinc(true, a64_def(e, choice->dst), rn, A64_ZR, condition));
	} else if (is_imm(no, UINT64_MAX)) {
		a64_out(e, a64_csinv(true, a64_def(e, choice->dst), rn, A64_ZR, condition));
	} else {
		rm = value_register(e, choice, no, A64_T3);
		a64_out(e, a64_csel(true, a64_def(e, choice->dst), rn, rm, condition));
	}
}

static bool may_select(const struct a64 *e)
{
	return a64_pass(e, VM_PASS_LAYOUT) && !e->code->runtime->has_budget;
}

bool a64_select(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		const struct jit_insn *before, uint32_t *next)
{
	struct choice choice;

	if (!may_select(e) || !find_choice(e, block, &choice))
		return false;
	if (!before && e->depth == 0 && (!is_cheap(choice.taken) || !is_cheap(choice.other)))
		return false;
	if (!choice.taken)
		choice.taken = before;
	else if (!choice.other)
		choice.other = before;
	e->next = in->live & 1 ? e->homes[2 * choice.join] : A64_R0_APART;
	out_select(e, &choice, a64_compare(e, in));
	for (int i = 0; i < 2; i++)
		if (choice.sides[i] != JIT_NOWHERE)
			e->consumed[choice.sides[i]] = true;
	*next = choice.join;
	return true;
}

/* Is a move of 0 or 1 in front of a branch one of the two values that the branch chooses from? Then it
 * need not be moved first. */
bool a64_select_takes(const struct a64 *e, const struct jit_block *block,
		      const struct jit_insn *move)
{
	const struct jit_insn *in = move + 1, *set;
	struct choice choice;

	if (in->op != JIT_BRANCH || move->op != JIT_MOV || move->a != JIT_NONE ||
	    jit_reads(in) & 1u << move->dst || !may_select(e) || !find_choice(e, block, &choice))
		return false;
	set = choice.taken ? choice.taken : choice.other;
	return choice.dst == move->dst && !(choice.taken && choice.other) && is_cheap(move) &&
	       is_cheap(set) && !(is_imm(set, 1) && is_imm(move, UINT64_MAX)) &&
	       !(is_imm(set, UINT64_MAX) && is_imm(move, 1));
}

/* ---- constants in registers ---- */

static int by_weight(const void *a, const void *b)
{
	const struct a64_constant *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* Registers that the function does not need, the cheapest ones first. */
static int free_registers(const struct a64 *e, uint8_t *ret)
{
	static const uint8_t scratch[] = { 13, 14, 15 }, saved[] = { 23, 24, 26, 27, 28 };
	const struct jit_function *function = e->function;
	int n = 0;

	if (e->leaf) {
		for (size_t i = 0; i < sizeof(scratch); i++)
			ret[n++] = scratch[i];
		if (!e->apart)
			ret[n++] = A64_R0_APART;
	}
	for (int r = e->leaf ? 2 : 6; r <= 9; r++)
		if (!(function->used & 1u << r))
			ret[n++] = e->map[r];
	for (size_t i = 0; !e->leaf && i < sizeof(saved); i++)
		ret[n++] = saved[i];
	return n;
}

bool a64_hoist(struct a64 *e)
{
	const uint64_t worth = e->leaf ? 8 : 16; /* one use in a loop; or two, where it is saved */
	uint8_t registers[16];
	int n = free_registers(e, registers), kept = 0;

	qsort(e->hoisted, e->nhoisted, sizeof(e->hoisted[0]), by_weight);
	while (kept < e->nhoisted && kept < n && e->hoisted[kept].weight >= worth) {
		e->hoisted[kept].reg = registers[kept];
		kept++;
	}
	e->nhoisted = kept;
	e->collecting = false;
	return kept;
}
