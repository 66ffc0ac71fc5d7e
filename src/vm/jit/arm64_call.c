// SPDX-License-Identifier: BSD-2-Clause
/* Calls, doubles, and the stubs that compiled code reaches C through. */
#include "vm/jit/arm64.h"

#include <assert.h>

/* bl or b to an offset of the code. */
static void go_to(struct a64 *e, uint32_t word, uint32_t offset)
{
	int64_t distance = (int64_t)offset - a64_here(e);

	if (!a64_fits(distance, A64_BRANCH_BITS))
		e->out_of_reach = true;
	a64_out(e, a64_retarget(word, distance));
}

void a64_call_stub(struct a64 *e, enum a64_stub stub)
{
	go_to(e, a64_bl(0), e->code->stub[stub]);
}

void a64_jump_stub(struct a64 *e, enum a64_stub stub)
{
	go_to(e, a64_b(0), e->code->stub[stub]);
}

void a64_call_address(struct a64 *e, uint64_t address)
{
	int64_t distance = address - a64_here_address(e);

	if (a64_pass(e, VM_PASS_NEAR) && !(distance & 3) && a64_fits(distance, A64_BRANCH_BITS)) {
		a64_out(e, a64_bl(distance));
		return;
	}
	a64_out(e, a64_blr(a64_constant(e, address, A64_T0)));
}

/* AAPCS64 leaves the upper bits of narrow integers to the callee; to 32 bits they are extended all
 * the same, as on other machines. */
static uint32_t narrow(enum vm_class class, int rd, int rn)
{
	const bool is_signed = class == VM_S8 || class == VM_S16;

	return a64_extract(false, is_signed, rd, rn, 0, class == VM_U8 || class == VM_S8 ? 8 : 16);
}

/* Integers move down to where doubles in front of them left room. */
static void move_arguments(struct a64 *e, const struct vm_native *native)
{
	int integers = 0, floating = 0;

	for (int i = 0; i < native->nargs; i++) {
		switch (native->args[i]) {
		case VM_FLOAT:
		case VM_DOUBLE:
			a64_out(e, a64_fmov_to(native->args[i] == VM_DOUBLE, floating++, i));
			break;
		case VM_U8:
		case VM_S8:
		case VM_U16:
		case VM_S16:
			a64_out(e, narrow(native->args[i], integers++, i));
			break;
		case VM_VOID:
		case VM_U32:
		case VM_S32:
		case VM_U64:
		case VM_S64:
		case VM_POINTER:
			a64_copy(e, integers++, i);
			break;
		}
	}
}

/* The result, as its class says, in x0; and there r0 is now. */
static void take_result(struct a64 *e, enum vm_class class)
{
	switch (class) {
	case VM_VOID:
		a64_out(e, a64_movz(false, 0, 0, 0));
		break;
	case VM_U8:
	case VM_U16:
		a64_out(e, a64_extract(false, false, 0, 0, 0, class == VM_U8 ? 8 : 16));
		break;
	case VM_S8:
	case VM_S16:
		a64_out(e, a64_extract(true, true, 0, 0, 0, class == VM_S8 ? 8 : 16));
		break;
	case VM_U32:
		a64_out(e, a64_mov(false, 0, 0));
		break;
	case VM_S32:
		a64_out(e, a64_extract(true, true, 0, 0, 0, 32));
		break;
	case VM_U64:
	case VM_S64:
	case VM_POINTER:
		break;
	case VM_FLOAT:
	case VM_DOUBLE:
		a64_out(e, a64_fmov_from(class == VM_DOUBLE, 0, 0));
		break;
	}
}

/* r0 is in x0; it moves when somebody needs it elsewhere. */
static void result_in_x0(struct a64 *e, const struct jit_insn *in)
{
	e->now = 0;
	if (!a64_pass(e, VM_PASS_COPY)) {
		if (in->live & 1)
			a64_out(e, a64_mov(true, A64_R0_APART, 0));
		e->now = A64_R0_APART;
	}
}

void a64_call_c(struct a64 *e, const struct jit_insn *in)
{
	const struct vm_native *native = &e->function->image->natives[in->target];

	if (e->function->checked && !(in->flags & JIT_FLAG_DIRECT)) {
		a64_move_imm(e, A64_T0, in->target);
		a64_call_stub(e, A64_STUB_CHECKED);
		result_in_x0(e, in);
		return;
	}
	if (native->with_context)
		a64_move_imm(e, 5, (uintptr_t)e->function->vm->context);
	else
		move_arguments(e, native);
	a64_call_address(e, (uintptr_t)native->function);
	if (in->live & 1 && !native->with_context)
		take_result(e, native->result);
	result_in_x0(e, in);
}

void a64_call_local(struct a64 *e, const struct jit_insn *in)
{
	const struct jit_range *range = &e->code->functions[in->target];

	if (range->end || in->target == e->function->index) {
		go_to(e, a64_bl(0), range->first);
	} else {
		a64_patch(e, in->target, A64_PATCH_CALL);
		a64_out(e, a64_bl(0));
	}
	result_in_x0(e, in);
}

void a64_callx(struct a64 *e, const struct jit_insn *in)
{
	a64_copy(e, A64_T0, a64_value(e, in->a, A64_T0));
	a64_call_stub(e, A64_STUB_CALLX);
	a64_out(e, a64_blr(A64_T0));
	result_in_x0(e, in);
}

/* ---- doubles ---- */

static void compare_doubles(struct a64 *e, enum a64_condition condition)
{
	a64_out(e, a64_fcmp(0, 1));
	a64_out(e, a64_cset(false, a64_def(e, 0), condition));
}

static void arithmetic(struct a64 *e, enum a64_fp op)
{
	a64_out(e, a64_fp(op, 0, 0, 1));
	a64_out(e, a64_fmov_from(true, a64_def(e, 0), 0));
}

/* Operations on d0 and d1. Conditions are those of C with operands that are not numbers. */
static void on_doubles(struct a64 *e, enum vm_intrinsic operation)
{
	switch (operation) {
	case VM_F64_ADD:
		arithmetic(e, A64_FADD);
		return;
	case VM_F64_SUB:
		arithmetic(e, A64_FSUB);
		return;
	case VM_F64_MUL:
		arithmetic(e, A64_FMUL);
		return;
	case VM_F64_DIV:
		arithmetic(e, A64_FDIV);
		return;
	case VM_F64_LT:
		compare_doubles(e, A64_MI);
		return;
	case VM_F64_LE:
		compare_doubles(e, A64_LS);
		return;
	case VM_F64_GT:
		compare_doubles(e, A64_GT);
		return;
	case VM_F64_GE:
		compare_doubles(e, A64_GE);
		return;
	case VM_F64_EQ:
		compare_doubles(e, A64_EQ);
		return;
	case VM_F64_NE:
		compare_doubles(e, A64_NE);
		return;
	case VM_F64_TO_S64:
		a64_out(e, a64_to_int(true, a64_def(e, 0), 0));
		return;
	case VM_F64_NEG:
	case VM_F64_FROM_S64:
	case VM_F64_FROM_U64:
	case VM_INTRINSIC_NONE:
	case VM_ARRAY_LOOKUP:
		assert(!"not an operation on doubles");
	}
}

void a64_f64(struct a64 *e, const struct jit_insn *in)
{
	const enum vm_intrinsic operation = in->sub;
	const int x = e->map[1], y = e->map[2];

	switch (operation) {
	case VM_F64_NEG:
		a64_out(e, a64_logic_imm(true, A64_EOR, a64_def(e, 0), x,
					 a64_find_logic(true, 1ull << 63)));
		return;
	case VM_F64_FROM_S64:
	case VM_F64_FROM_U64:
		a64_out(e, a64_from_int(operation == VM_F64_FROM_S64, 0, x));
		a64_out(e, a64_fmov_from(true, a64_def(e, 0), 0));
		return;
	default:
		a64_out(e, a64_fmov_to(true, 0, x));
		if (operation != VM_F64_TO_S64)
			a64_out(e, a64_fmov_to(true, 1, y));
		on_doubles(e, operation);
	}
}

/* ---- stubs ---- */

static void start_stub(struct a64 *e, enum a64_stub stub)
{
	e->code->stub[stub] = e->code->size;
	a64_step(e->code, &e->rc, 0, JIT_NONE, 0);
}

/* Pushes x30 with x0 above it, and goes @size bytes down. */
static void push_first(struct a64 *e, int size)
{
	a64_out(e, a64_pair_pre(false, true, A64_LR, 0, A64_SP, -size));
	a64_step(e->code, &e->rc, size, A64_LR, size);
}

static void save_pairs(struct a64 *e, bool load, const uint8_t *registers, int n)
{
	for (int i = 0; i < n; i += 2)
		a64_out(e,
			a64_pair(load, true, registers[i], registers[i + 1], A64_SP, 16 + 8 * i));
}

static void call_c(struct a64 *e, uintptr_t function)
{
	a64_move_imm(e, 0, (uintptr_t)e->code->runtime->vm);
	a64_move_imm(e, A64_T0, function);
	a64_out(e, a64_blr(A64_T0));
}

static void jump_c(struct a64 *e, enum a64_stub stub, uintptr_t function)
{
	start_stub(e, stub);
	a64_move_imm(e, 0, (uintptr_t)e->code->runtime->vm);
	a64_move_imm(e, A64_T0, function);
	a64_out(e, a64_br(A64_T0));
}

static void stub_callx(struct a64 *e)
{
	static const uint8_t arguments[] = { 1, 2, 3, 4 };

	start_stub(e, A64_STUB_CALLX);
	push_first(e, 48);
	save_pairs(e, false, arguments, 4);
	a64_out(e, a64_mov(true, 1, A64_T0));
	call_c(e, (uintptr_t)e->code->runtime->callx_target);
	a64_out(e, a64_mov(true, A64_T0, 0));
	save_pairs(e, true, arguments, 4);
	a64_out(e, a64_pair_post(true, true, A64_LR, 0, A64_SP, 48));
	a64_out(e, a64_ret());
}

static void stub_miss(struct a64 *e)
{
	static const uint8_t in_use[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 12 };

	start_stub(e, A64_STUB_MISS);
	push_first(e, 128);
	save_pairs(e, false, in_use, sizeof(in_use));
	a64_out(e, a64_mov(true, 2, A64_T0));
	a64_out(e, a64_mov(false, 1, A64_T1));
	call_c(e, (uintptr_t)e->code->runtime->check_miss);
	save_pairs(e, true, in_use, sizeof(in_use));
	a64_out(e, a64_pair_post(true, true, A64_LR, 0, A64_SP, 128));
	a64_out(e, a64_ret());
}

static void stub_checked(struct a64 *e)
{
	static const uint8_t arguments[] = { 1, 2, 3, 4 };

	start_stub(e, A64_STUB_CHECKED);
	push_first(e, 48);
	save_pairs(e, false, arguments, 4);
	a64_out(e, a64_mov(false, 1, A64_T0));
	a64_out(e, a64_arith_imm(true, A64_ADD, 2, A64_SP, 8));
	call_c(e, (uintptr_t)e->code->runtime->checked_call);
	a64_out(e, a64_memory_post(A64_LOAD, 8, A64_LR, A64_SP, 48));
	a64_out(e, a64_ret());
}

/* uint64_t enter(void *code, const uint64_t args[5]); keeps a frame record, as C does. */
static void stub_enter(struct a64 *e)
{
	a64_out(e, a64_pair_pre(false, true, 29, A64_LR, A64_SP, -16));
	a64_step(e->code, &e->rc, 16, 29, 16);
	a64_step(e->code, &e->rc, 16, A64_LR, 8);
	a64_out(e, a64_arith_imm(true, A64_ADD, 29, A64_SP, 0));
	a64_out(e, a64_mov(true, A64_T0, 0));
	a64_out(e, a64_mov(true, A64_T1, 1));
	a64_out(e, a64_pair(true, true, 0, 1, A64_T1, 0));
	a64_out(e, a64_pair(true, true, 2, 3, A64_T1, 16));
	a64_out(e, a64_memory(A64_LOAD, 8, 4, A64_T1, 32));
	a64_out(e, a64_blr(A64_T0));
	a64_out(e, a64_pair_post(true, true, 29, A64_LR, A64_SP, 16));
	a64_out(e, a64_ret());
}

int a64_begin(struct jit_code *code, uint32_t *enter)
{
	struct jit_function none = { .passes = 0 };
	struct a64 e = { .code = code, .function = &none, .reach = A64_REACH_FAR };
	const struct jit_runtime *runtime = code->runtime;

	code->stubs.first = *enter = code->size;
	code->stubs.first_step = code->nsteps;
	stub_enter(&e);
	stub_callx(&e);
	stub_miss(&e);
	stub_checked(&e);
	jump_c(&e, A64_STUB_OVERFLOW, (uintptr_t)runtime->overflow);
	jump_c(&e, A64_STUB_SPENT, (uintptr_t)runtime->spent);
	code->stubs.end = code->size;
	code->stubs.nsteps = code->nsteps - code->stubs.first_step;
	return e.rc;
}
