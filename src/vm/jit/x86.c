// SPDX-License-Identifier: BSD-2-Clause
/*
 * The x86-64 back end: a function's blocks in the order of the layout. See x86.h for the use of
 * registers and how jumps become short.
 */
#include "vm/jit/x86.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <ucontext.h>
#endif

#define FUNCTION_ALIGN 16
#define CACHE_LINE     64

/* Branches are predicted from what went before, a jump through a table less well: measured, up to a
 * dozen cases are faster compared, from two dozen on the table is, whatever the order they come in. */
#define LEAST_CASES 24

/* ---- instructions ---- */

static void emit_insn(struct x86 *x, const struct jit_insn *insn)
{
	switch ((enum jit_op)insn->op) {
	case JIT_NOP:
		return;
	case JIT_ADD:
		x86_alu(x, insn, X86_ADD);
		return;
	case JIT_SUB:
		x86_alu(x, insn, X86_SUB);
		return;
	case JIT_MUL:
		x86_multiply(x, insn);
		return;
	case JIT_DIV:
	case JIT_MOD:
		x86_divide(x, insn);
		return;
	case JIT_OR:
		x86_alu(x, insn, X86_OR);
		return;
	case JIT_AND:
		x86_alu(x, insn, X86_AND);
		return;
	case JIT_XOR:
		x86_alu(x, insn, X86_XOR);
		return;
	case JIT_LSH:
		x86_shift(x, insn, X86_SHL);
		return;
	case JIT_RSH:
		x86_shift(x, insn, X86_SHR);
		return;
	case JIT_ARSH:
		x86_shift(x, insn, X86_SAR);
		return;
	case JIT_NEG:
		x86_negate(x, insn);
		return;
	case JIT_MOV:
		x86_move(x, insn);
		return;
	case JIT_EXT:
		x86_extend(x, insn);
		return;
	case JIT_BSWAP:
		x86_swap(x, insn);
		return;
	case JIT_LEA:
		x86_address(x, insn);
		return;
	case JIT_CODE:
		x86_code_address(x, insn);
		return;
	case JIT_LOAD:
		x86_load_insn(x, insn);
		return;
	case JIT_STORE:
		x86_store_insn(x, insn);
		return;
	case JIT_MODIFY:
		x86_modify(x, insn);
		return;
	case JIT_ATOMIC:
		x86_atomic(x, insn);
		return;
	case JIT_CMPXCHG:
		x86_compare_exchange(x, insn);
		return;
	case JIT_CHECK:
		x86_check(x, insn);
		return;
	case JIT_TRAP:
		x86_byte(&x->e, 0x0f);
		x86_byte(&x->e, 0x0b);
		return;
	case JIT_CALL_C:
		x86_call_c(x, insn);
		return;
	case JIT_CALL_LOCAL:
		x86_call_local(x, insn);
		return;
	case JIT_CALLX:
		x86_callx(x, insn);
		return;
	case JIT_ARRAY:
		x86_array(x, insn, JIT_NOWHERE);
		return;
	case JIT_F64:
		x86_double(x, insn);
		return;
	case JIT_EXIT:
		x86_epilogue(x);
		return;
	/* Ends with successors: emit_end(). */
	case JIT_JUMP:
	case JIT_BRANCH:
	case JIT_SWITCH:
	case JIT_NOPS:
		return;
	}
}

static void go_to(struct x86 *x, uint32_t block)
{
	const uint32_t goal = x->blocks[block].goal;
	const struct jit_insn *only;

	if (goal == x->next)
		return;
	only = x86_only_insn(x->function, goal);
	if (only && only->op == JIT_EXIT && x->repeat_epilogue) {
		x86_place(x, only->insn);
		x86_epilogue(x);
		return;
	}
	x86_jump_to_block(x, -1, block);
}

static void emit_branch(struct x86 *x, const struct jit_block *block, const struct jit_insn *insn)
{
	enum x86_condition condition = x86_compare(x, insn);
	const uint32_t taken = x->blocks[block->taken].goal, next = x->blocks[block->next].goal;
	const struct x86_block *mine = &x->blocks[block - x->function->blocks];

	if (mine->chosen != X86_NONE) {
		/* It holds 0 or 1: the rest of it is 0 already. */
		x86_rr(&x->e, X86_SETCC | (mine->chosen_taken ? condition : condition ^ 1), false,
		       0, mine->chosen);
		go_to(x, mine->otherwise);
	} else if (taken == next) {
		go_to(x, next);
	} else if (taken == x->next) {
		x86_jump_to_block(x, condition ^ 1, next);
	} else {
		x86_jump_to_block(x, condition, taken);
		go_to(x, next);
	}
}

/* An array's element that is at once compared with 0: the bounds check already knows. */
static bool emit_lookup(struct x86 *x, const struct jit_block *block, const struct jit_insn *insn)
{
	const struct jit_insn *branch = insn + 1;
	uint32_t null = block->taken, found = block->next;

	if (!x->brief || x->blocks[block - x->function->blocks].chosen != X86_NONE ||
	    branch->op != JIT_BRANCH || branch->base != JIT_NONE || branch->a ||
	    branch->b != JIT_NONE || branch->imm || branch->width != 8 ||
	    (branch->sub != JIT_EQ && branch->sub != JIT_NE))
		return false;
	if (branch->sub == JIT_NE) {
		null = block->next;
		found = block->taken;
	}
	x86_array(x, insn, null);
	go_to(x, found);
	return true;
}

static void emit_end(struct x86 *x, const struct jit_block *block, const struct jit_insn *insn)
{
	if (insn->op == JIT_JUMP)
		go_to(x, block->next);
	else if (insn->op == JIT_BRANCH)
		emit_branch(x, block, insn);
	else if (insn->op == JIT_SWITCH)
		x86_switch(x, insn, block->next);
	else
		emit_insn(x, insn);
}

/* ---- blocks ---- */

/* A loop that fits into the rest of the cache line need not begin one. */
static void align_block(struct x86 *x, uint32_t align, uint32_t loop)
{
	const uint32_t at = (uint32_t)x->code->address + x86_offset(x);
	const uint32_t left = -at & (CACHE_LINE - 1);
	uint32_t padding;

	if (align < 2 || align > CACHE_LINE)
		return;
	x->most_padding += align - 1;
	padding = -at & (align - 1);
	if (loop && loop <= left && align > FUNCTION_ALIGN)
		padding = 0;
	x->padding += padding;
	x86_nop(&x->e, padding);
}

static void take_budget(struct x86 *x, const struct jit_block *block)
{
	uint8_t *enough;

	if (!x->budget || !block->cost)
		return;
	x86_mov_ri(&x->e, X86_R10, block->cost);
	x86_rm(&x->e, X86_ALU_STORE(X86_SUB), true, X86_R10,
	       x86_absolute(x, x->runtime->budget, X86_R11));
	enough = x86_skip(&x->e, X86_NS);
	x86_branch_to(x, 0xe8, x->code->stub[X86_STUB_SPENT]);
	x86_land(&x->e, enough);
}

/* Do the flags still tell of the register that they told of before? */
static bool keeps_flags(const struct x86 *x, const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_BRANCH:
	case JIT_NOP:
	case JIT_STORE:
		return true;
	case JIT_MOV:
		return (insn->a != JIT_NONE || insn->imm) && x86_registers[insn->dst] != x->zero;
	case JIT_LOAD:
	case JIT_EXT:
		return x86_registers[insn->dst] != x->zero;
	default:
		return false;
	}
}

/* Is the result of insns[0] only moved on by insns[1]? Then it goes there at once. */
static bool moves_on(const struct x86 *x, const struct jit_insn *insns)
{
	const struct jit_insn *move = &insns[1];
	bool narrow = insns->width == 4;

	if (!x->brief || !(x->function->passes & VM_PASS_COPY) || move->op != JIT_MOV ||
	    move->a == JIT_NONE || move->a != insns->dst || move->dst == move->a ||
	    x86_is_live(move, move->a))
		return false;
	switch (insns->op) {
	case JIT_ADD:
	case JIT_SUB:
	case JIT_MUL:
	case JIT_DIV:
	case JIT_MOD:
	case JIT_OR:
	case JIT_AND:
	case JIT_XOR:
	case JIT_LSH:
	case JIT_RSH:
	case JIT_ARSH:
	case JIT_NEG:
	case JIT_MOV:
	case JIT_LEA:
		break;
	case JIT_EXT:
		narrow |= !(insns->flags & JIT_FLAG_SIGNED) && insns->size <= 4;
		break;
	case JIT_LOAD:
		narrow = !(insns->flags & JIT_FLAG_SIGNED) && insns->size <= 4;
		break;
	default:
		return false;
	}
	return move->width == 8 || narrow;
}

/* Emits the first of @left + 1 instructions of a block that are not its end: how many were done. */
static uint32_t emit_insns(struct x86 *x, const struct jit_insn *insns, uint32_t left)
{
	struct jit_insn insn = *insns;
	uint32_t n = 1;

	if (left > 1 && moves_on(x, insns)) {
		insn.dst = insns[1].dst;
		insn.live = insns[1].live;
		n = 2;
	} else if (x86_read_pin(x, insns, left)) {
		return 1;
	} else if (insn.op == JIT_MOV && x86_is_vague(x, insns)) {
		insn.imm = 0;
		x->zero = X86_NONE;
	}
	emit_insn(x, &insn);
	if (x->aliased)
		x86_end_pins(x, jit_writes(&insn));
	return n;
}

static void emit_block(struct x86 *x, uint32_t at)
{
	const struct jit_block *block = &x->function->blocks[at];
	const struct jit_insn *insns = &x->function->insns[block->first];
	struct x86_block *mine = &x->blocks[at];

	align_block(x, block->align, mine->loop);
	mine->start = x86_offset(x);
	mine->bound = mine->start - x->padding + x->most_padding;
	x->zero = X86_NONE;
	x->block = at;
	x86_place(x, insns->insn);
	take_budget(x, block);
	for (uint32_t i = 0; i < block->count;) {
		const struct jit_insn *insn = &insns[i];

		if (!x86_has_room(x, X86_INSN_ROOM) || x->error)
			return;
		if (insn->op == JIT_NOP) {
			i++;
			continue;
		}
		if (!keeps_flags(x, insn))
			x->zero = X86_NONE;
		x86_place(x, insn->insn);
		if (insn->op == JIT_ARRAY && i + 2 == block->count && emit_lookup(x, block, insn))
			break;
		if (i + 1 == block->count) {
			emit_end(x, block, insn);
			break;
		}
		i += emit_insns(x, insn, block->count - 1 - i);
	}
	x86_end_pins(x, x->aliased);
}

static void emit_function(struct x86 *x, const uint32_t *sequence, uint32_t n)
{
	x->njumps = x->nslows = 0;
	x->padding = x->most_padding = 0;
	x->last_place = UINT32_MAX;
	if (!x86_has_room(x, X86_INSN_ROOM))
		return;
	x->pins_loaded = false;
	x86_prologue(x);
	x86_load_pins(x);
	x->next = sequence[0];
	x->number = 0;
	if (x->blocks[0].goal != x->next)
		x86_jump_to_block(x, -1, 0);
	for (uint32_t i = 0; i < n && !x->error && !x->code->full; i++) {
		x->number = i;
		x->next = i + 1 < n ? sequence[i + 1] : JIT_NOWHERE;
		if (x86_has_room(x, X86_INSN_ROOM))
			emit_block(x, sequence[i]);
	}
	if (!x->error && !x->code->full)
		x86_emit_slow(x);
	if (!x->error && !x->code->full)
		x86_fill_jumps(x);
}

static void emit_twice(struct x86 *x, const uint32_t *sequence, uint32_t n)
{
	struct jit_code *code = x->code;
	const size_t nplaces = code->nplaces, nsteps = code->nsteps, npatches = code->npatches;
	uint8_t *const start = x->e.at;

	x->last = n == 1;
	emit_function(x, sequence, n);
	if (x->error || code->full || x->last)
		return;
	x->second = x->last = true;
	x->e.at = start;
	code->nplaces = nplaces;
	code->nsteps = nsteps;
	code->npatches = npatches;
	emit_function(x, sequence, n);
}

/* Loops lie better where the function begins a line of the cache: short ones often fit into it. */
static uint32_t alignment(const struct jit_function *function)
{
	for (uint32_t i = 0; i < function->norder && function->passes & VM_PASS_ALIGN; i++)
		if (function->blocks[function->order[i]].depth)
			return CACHE_LINE;
	return FUNCTION_ALIGN;
}

static int x86_function(struct jit_code *code, const struct jit_function *function)
{
	struct x86 x = {
		.code = code,
		.function = function,
		.runtime = code->runtime,
		.brief = function->passes & VM_PASS_SHORT,
		.bmi2 = function->passes & VM_PASS_SHIFT && code->cpu & X86_CPU_BMI2,
		.narrow = function->passes & VM_PASS_NARROW && code->cpu & X86_CPU_SLOW_DIVIDE,
		.budget = code->runtime->has_budget,
		.on_heap = function->checked,
	};
	struct jit_range *range = &code->functions[function->index];
	const uint32_t align = alignment(function);
	uint32_t *sequence, n;

	x.e = (struct x86_emit){ .at = code->bytes + code->size, .brief = x.brief };
	memcpy(x.map, x86_registers, sizeof(x.map));
	if (!x86_has_room(&x, X86_INSN_ROOM))
		return 0;
	x.blocks = malloc(function->nblocks * (sizeof(*x.blocks) + sizeof(*sequence)));
	if (!x.blocks)
		return err_nomem(function->err);
	sequence = (uint32_t *)(x.blocks + function->nblocks);
	x86_plan_blocks(&x, sequence, &n);
	x86_plan_pins(&x);
	x86_plan_frame(&x);
	while (((uint32_t)code->address + x86_offset(&x)) & (align - 1))
		x86_byte(&x.e, 0xcc);
	range->first = x86_offset(&x);
	range->first_step = code->nsteps;
	emit_twice(&x, sequence, n);
	if (!x.error && !code->full) {
		code->size = x86_offset(&x);
		range->end = code->size;
		range->nsteps = code->nsteps - range->first_step;
	}
	free(x.blocks);
	free(x.jumps);
	free(x.slows);
	return x.error ? err_nomem(function->err) : 0;
}

static int x86_finish(struct jit_code *code)
{
	for (size_t i = 0; i < code->npatches; i++) {
		const struct jit_patch *patch = &code->patches[i];
		struct x86_emit e = { .at = code->bytes + patch->offset };

		x86_word32(&e, code->functions[patch->function].first - (patch->offset + 4));
	}
	return 0;
}

/* ---- what the back end is ---- */

static bool can_address(bool has_index, unsigned int scale, int64_t off, unsigned int size)
{
	(void)has_index;
	(void)size;
	return scale <= 3 && x86_fits32(off);
}

static size_t bound(size_t ninsns, size_t nfunctions)
{
	return X86_STUB_ROOM + 192 * ninsns + 4 * X86_INSN_ROOM * nfunctions;
}

static uint64_t fault_address(const uint8_t *pc, const void *ucontext)
{
#if defined(__x86_64__)
	static const uint8_t numbers[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
					     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
					     REG_R12, REG_R13, REG_R14, REG_R15 };
	const ucontext_t *context = ucontext;
	uint64_t registers[16];

	for (int i = 0; i < 16; i++)
		registers[i] = context->uc_mcontext.gregs[numbers[i]];
	return x86_operand_address(pc, registers);
#else
	(void)pc;
	(void)ucontext;
	return 0;
#endif
}

const struct jit_target jit_x86 = {
	.name = "x86-64",
	.has_modify = true,
	.has_branch_memory = true,
	.has_lea_scaled_off = true,
	.least_cases = LEAST_CASES,
	.can_address = can_address,
	.begin = x86_begin,
	.function = x86_function,
	.finish = x86_finish,
	.bound = bound,
	.fault_address = fault_address,
};
