// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/arm64.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#include <ucontext.h>
#endif

#define FUNCTION_ALIGN   16
#define MOST_OF_INSN     96 /* bytes that one instruction may take, with what it has aside */
#define MOST_OF_FUNCTION 512
#define STUBS            1024

/* Where in jit_code a function began: what is put back to emit it again. */
struct mark {
	size_t size, nplaces, nsteps, npatches;
	bool full;
};

static struct mark mark_of(const struct jit_code *code)
{
	return (struct mark){ code->size, code->nplaces, code->nsteps, code->npatches, code->full };
}

static void rewind_to(struct jit_code *code, const struct mark *mark)
{
	code->size = mark->size;
	code->nplaces = mark->nplaces;
	code->nsteps = mark->nsteps;
	code->npatches = mark->npatches;
	code->full = mark->full;
}

static bool is_call(const struct jit_insn *in)
{
	return in->op == JIT_CALL_C || in->op == JIT_CALL_LOCAL || in->op == JIT_CALLX;
}

/* Where r0 goes when an instruction writes it: it stays there until it is written again. */
static uint8_t next_home(const struct a64 *e, const struct jit_insn *in, const struct jit_insn *end,
			 uint8_t at_end)
{
	/* Also what nobody will read must not go over r1. */
	if (!a64_pass(e, VM_PASS_COPY) || in->live & 2)
		return A64_R0_APART;
	for (const struct jit_insn *i = in; i < end; i++) {
		if (i > in && a64_writes(i) & 1)
			return 0;
		if (a64_disturbs(i))
			return A64_R0_APART;
		if (!(i->live & 1))
			return 0;
	}
	return at_end;
}

/* ---- one function ---- */

static void emit_insn(struct a64 *e, const struct jit_insn *in)
{
	switch ((enum jit_op)in->op) {
	case JIT_NOP:
		return;
	case JIT_ADD:
	case JIT_SUB:
	case JIT_MUL:
	case JIT_OR:
	case JIT_AND:
	case JIT_XOR:
	case JIT_LSH:
	case JIT_RSH:
	case JIT_ARSH:
		a64_alu(e, in);
		return;
	case JIT_DIV:
	case JIT_MOD:
		a64_divide(e, in);
		return;
	case JIT_NEG:
		a64_neg(e, in);
		return;
	case JIT_MOV:
		a64_move(e, in);
		return;
	case JIT_EXT:
		a64_extend(e, in);
		return;
	case JIT_BSWAP:
		a64_bswap(e, in);
		return;
	case JIT_LEA:
		a64_lea(e, in);
		return;
	case JIT_CODE:
		a64_function_address(e, a64_def(e, in->dst), in->target);
		return;
	case JIT_LOAD:
		a64_load(e, in);
		return;
	case JIT_STORE:
		a64_store(e, in);
		return;
	case JIT_MODIFY:
		a64_modify(e, in);
		return;
	case JIT_ATOMIC:
		a64_atomic(e, in);
		return;
	case JIT_CMPXCHG:
		a64_cmpxchg(e, in);
		return;
	case JIT_CHECK:
		a64_check(e, in);
		return;
	case JIT_CALL_C:
		a64_call_c(e, in);
		return;
	case JIT_CALL_LOCAL:
		a64_call_local(e, in);
		return;
	case JIT_CALLX:
		a64_callx(e, in);
		return;
	case JIT_ARRAY:
		a64_array(e, in);
		return;
	case JIT_F64:
		a64_f64(e, in);
		return;
	case JIT_JUMP:
	case JIT_BRANCH:
	case JIT_EXIT:
	case JIT_TRAP:
	case JIT_SWITCH:
	case JIT_NOPS:
		assert(!"an end inside a block");
	}
}

/* The next block that is still to come. */
static uint32_t following(const struct a64 *e, uint32_t k)
{
	const struct jit_function *function = e->function;

	while (++k < function->norder)
		if (!e->consumed[function->order[k]])
			return function->order[k];
	return JIT_NOWHERE;
}

/* @before: see a64_select(). */
static void emit_end(struct a64 *e, uint32_t k, const struct jit_insn *in,
		     const struct jit_insn *before)
{
	const uint32_t number = e->function->order[k];
	const struct jit_block *block = &e->function->blocks[number];
	uint32_t next, planned;

	if (in->op == JIT_JUMP && a64_returns(e, block->next)) {
		a64_exit(e);
		return;
	}
	if (in->op == JIT_BRANCH || in->op == JIT_SWITCH)
		a64_settle(e, in->live & 1, e->homes[2 * number + 1]);
	switch (in->op) {
	case JIT_JUMP:
		a64_jump(e, block->next, following(e, k));
		return;
	case JIT_BRANCH:
		planned = k + 1 < e->function->norder ? e->function->order[k + 1] : JIT_NOWHERE;
		if (a64_select(e, block, in, before, &next))
			a64_jump(e, next, following(e, k));
		else
			a64_branch(e, block, in, following(e, k), planned);
		return;
	case JIT_SWITCH:
		a64_switch(e, block, in, following(e, k));
		return;
	case JIT_EXIT:
		a64_exit(e);
		return;
	default:
		assert(in->op == JIT_TRAP);
		a64_out(e, a64_udf(0));
	}
}

/* A constant in a register stands for the register that it is moved to, as long as nothing else does
 * and no call wants it there. */
static bool stands_for(struct a64 *e, const struct jit_insn *in, const struct jit_insn *end)
{
	const uint16_t bit = in->dst == JIT_NONE ? 0 : 1u << in->dst;
	const struct jit_insn *i = in;
	int reg;

	if (in->op != JIT_MOV || in->a != JIT_NONE || !a64_imm(in) || !a64_pass(e, VM_PASS_COPY) ||
	    (e->collecting && !e->depth))
		return false;
	while (i < end && i->live & bit) {
		i++;
		if (is_call(i) && jit_reads(i) & bit)
			return false;
		if (i < end && a64_writes(i) & bit)
			break;
	}
	if (i == end && i->live & bit) /* needed behind the block */
		return false;
	reg = a64_hoisted(e, a64_imm(in));
	if (reg < 0)
		return false;
	if (in->dst)
		e->map[in->dst] = reg;
	else
		e->now = reg;
	return true;
}

/* For the last one of two instructions that writes r0. */
static void set_next(struct a64 *e, const struct jit_insn *first, const struct jit_insn *second,
		     const struct jit_insn *end, uint32_t block)
{
	const struct jit_insn *writer = a64_writes(second) & 1 ? second : first;

	if (a64_writes(writer) & 1)
		e->next = next_home(e, writer, end, e->homes[2 * block + 1]);
}

static void emit_block(struct a64 *e, uint32_t k)
{
	const uint32_t number = e->function->order[k];
	const struct jit_block *block = &e->function->blocks[number];
	const struct jit_insn *insns = &e->function->insns[block->first], *before = NULL;
	const uint32_t last = block->count - 1;
	unsigned int n;

	memcpy(e->map, e->plain, sizeof(e->map));
	e->now = e->homes[2 * number];
	e->apart |= block->live_in & 1 && e->now == A64_R0_APART;
	e->depth = block->depth;
	e->nstepped = 0;
	a64_place(e, e->function->insns[block->first].insn);
	a64_budget(e, block);
	for (uint32_t i = 0; i < last; i += n) {
		const struct jit_insn *in = &insns[i];

		n = 1;
		if (in->op == JIT_NOP)
			continue;
		if (i + 1 == last && a64_select_takes(e, block, in)) {
			before = in;
			continue;
		}
		if (stands_for(e, in, &insns[last]))
			continue;
		a64_place(e, in->insn);
		a64_leave_x0(e, in);
		set_next(e, in, in, &insns[last], number);
		n = a64_fuse_one(e, in, last - i);
		if (n)
			continue;
		set_next(e, in, i + 1 < last ? &in[1] : in, &insns[last], number);
		n = a64_fuse_two(e, in, last - i);
		if (n)
			continue;
		set_next(e, in, in, &insns[last], number);
		emit_insn(e, in);
		n = 1;
	}
	a64_place(e, insns[last].insn);
	e->next = e->homes[2 * number + 1];
	emit_end(e, k, &insns[last], before);
}

static void emit_function(struct a64 *e)
{
	const struct jit_function *function = e->function;
	struct jit_range *range = &e->code->functions[function->index];

	e->labels_list.count = e->fixups_list.count = e->asides_list.count = 0;
	e->literals_list.count = 0;
	e->too_far = false;
	a64_frame_plan(e);
	for (uint32_t i = 0; i < function->nblocks; i++) {
		a64_label(e);
		e->consumed[i] = false;
	}
	while ((e->code->address + e->code->size) % FUNCTION_ALIGN && !e->code->full)
		a64_out(e, a64_udf(0));
	*range = (struct jit_range){ .first = e->code->size, .first_step = e->code->nsteps };
	a64_place(e, JIT_NO_INSN);
	a64_prologue(e);
	for (uint32_t k = 0; k < function->norder && !e->rc; k++) {
		if (e->consumed[function->order[k]])
			continue;
		a64_bind(e, function->order[k]);
		emit_block(e, k);
	}
	a64_asides(e);
	a64_literals(e);
	range->nsteps = e->code->nsteps - range->first_step;
	if (!e->rc)
		a64_resolve(e);
}

static bool is_leaf(const struct jit_function *function)
{
	if (!(function->passes & VM_PASS_PROLOGUE))
		return false;
	for (uint32_t i = 0; i < function->ninsns; i++)
		if (is_call(&function->insns[i]))
			return false;
	return true;
}

/* How many ways lead to each block. */
static void count_preds(struct a64 *e)
{
	const struct jit_function *function = e->function;

	memset(e->preds, 0, function->nblocks * sizeof(*e->preds));
	for (uint32_t k = 0; k < function->norder; k++) {
		const struct jit_block *block = &function->blocks[function->order[k]];
		const struct jit_insn *end = &function->insns[block->first + block->count - 1];

		if (end->op == JIT_JUMP || end->op == JIT_BRANCH || end->op == JIT_SWITCH)
			e->preds[block->next] += e->preds[block->next] < UINT16_MAX;
		if (end->op == JIT_BRANCH)
			e->preds[block->taken] += e->preds[block->taken] < UINT16_MAX;
		for (uint64_t i = 0; end->op == JIT_SWITCH && i < end->imm; i++)
			e->preds[function->targets[end->target + i]] = UINT16_MAX;
	}
}

static int prepare(struct a64 *e)
{
	const struct jit_function *function = e->function;
	int rc;

	e->leaf = is_leaf(function);
	e->preds = calloc(function->nblocks, sizeof(*e->preds));
	e->consumed = calloc(function->nblocks, sizeof(*e->consumed));
	if (!e->preds || !e->consumed)
		return -ENOMEM;
	count_preds(e);
	rc = a64_tidy(e);
	if (rc)
		return rc;
	count_preds(e);
	a64_frame_plan(e);
	return a64_find_homes(e);
}

static void release(struct a64 *e)
{
	free(e->labels);
	free(e->fixups);
	free(e->asides);
	free(e->literals);
	free(e->preds);
	a64_untidy(e);
	free(e->homes);
	free(e->consumed);
}

/* First to see which constants its loops need, then with these in registers, then with longer
 * branches until all reach. */
static int emit_until_right(struct a64 *e, const struct mark *mark)
{
	e->collecting = a64_pass(e, VM_PASS_PROLOGUE) && a64_pass(e, VM_PASS_COPY);
	emit_function(e);
	if (e->collecting && a64_hoist(e)) {
		e->collecting = false;
		rewind_to(e->code, mark);
		emit_function(e);
	}
	while (!e->rc && !e->code->full && e->too_far) {
		if (e->reach == A64_REACH_FAR)
			e->out_of_reach = true;
		if (e->out_of_reach)
			break;
		e->collecting = false;
		e->reach++;
		rewind_to(e->code, mark);
		emit_function(e);
	}
	if (e->rc)
		return e->rc;
	if (e->out_of_reach && !e->code->full)
		return err_set(e->function->err, -ENOTSUP, "function %u: too large",
			       e->function->index);
	return 0;
}

int a64_function(struct jit_code *code, const struct jit_function *function, bool lse)
{
	struct a64 e = { .code = code, .function = function, .lse = lse };
	const struct mark mark = mark_of(code);
	int rc;

	rc = prepare(&e);
	rc = rc ? rc : emit_until_right(&e, &mark);
	release(&e);
	if (rc)
		rewind_to(code, &mark);
	else
		code->functions[function->index].end = code->size;
	return rc;
}

static bool has_lse(void)
{
#if defined(__aarch64__)
	return getauxval(AT_HWCAP) & HWCAP_ATOMICS;
#else
	return false;
#endif
}

static int arm64_function(struct jit_code *code, const struct jit_function *function)
{
	return a64_function(code, function, has_lse());
}

static int arm64_finish(struct jit_code *code)
{
	if (code->full)
		return 0;
	for (size_t i = 0; i < code->npatches; i++) {
		const struct jit_patch *patch = &code->patches[i];
		const uint32_t first = code->functions[patch->function].first;
		const int64_t distance = (int64_t)first - patch->offset;
		const uint64_t address = code->address + first;
		uint32_t word;

		if (patch->kind == A64_PATCH_ADDRESS) {
			memcpy(code->bytes + patch->offset, &address, sizeof(address));
			continue;
		}
		if (!a64_fits(distance, A64_BRANCH_BITS))
			return -ENOTSUP;
		word = a64_bl(distance);
		memcpy(code->bytes + patch->offset, &word, sizeof(word));
	}
	return 0;
}

static size_t arm64_bound(size_t ninsns, size_t nfunctions)
{
	return STUBS + nfunctions * MOST_OF_FUNCTION + ninsns * MOST_OF_INSN;
}

static bool can_address(bool has_index, unsigned int scale, int64_t off, unsigned int size)
{
	const uint64_t distance = off < 0 ? -(uint64_t)off : (uint64_t)off;

	if (has_index)
		return !off && (!size || !scale || 1u << scale == size);
	return size ? a64_fits_offset(size, off) : a64_fits_arith(distance);
}

static uint64_t fault_address(const uint8_t *pc, const void *ucontext)
{
#if defined(__aarch64__)
	const mcontext_t *context = &((const ucontext_t *)ucontext)->uc_mcontext;
	uint64_t registers[32];
	uint32_t word;

	memcpy(registers, context->regs, sizeof(context->regs));
	registers[A64_SP] = context->sp;
	memcpy(&word, pc, sizeof(word));
	return a64_address(word, registers);
#else
	(void)pc;
	(void)ucontext;
	return 0;
#endif
}

const struct jit_target jit_arm64 = {
	.name = "arm64",
	.has_modify = false,
	.has_branch_memory = false,
	.has_lea_scaled_off = false,
	.least_cases = 11, /* fewer instructions than a tree of comparisons */
	.can_address = can_address,
	.begin = a64_begin,
	.function = arm64_function,
	.finish = arm64_finish,
	.bound = arm64_bound,
	.fault_address = fault_address,
};
