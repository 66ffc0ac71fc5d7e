// SPDX-License-Identifier: BSD-2-Clause
/* Calls: of C by its classes, of the vm's functions, through registers; arithmetic on doubles. */
#include "vm/jit/x86.h"

#include "vm/jit/plant.h"

static bool is_floating(uint8_t class)
{
	return class == VM_FLOAT || class == VM_DOUBLE;
}

/* What C may rely on is an extension to 32 bits; results are extended to 64. */
static void extend(struct x86 *x, enum vm_class class, bool result, unsigned int dst,
		   unsigned int src)
{
	switch (class) {
	case VM_U8:
		x86_rr(&x->e, X86_MOVZX8, false, dst, src);
		return;
	case VM_S8:
		x86_rr(&x->e, X86_MOVSX8, result, dst, src);
		return;
	case VM_U16:
		x86_rr(&x->e, X86_MOVZX16, false, dst, src);
		return;
	case VM_S16:
		x86_rr(&x->e, X86_MOVSX16, result && !PLANT(24), dst, src);
		return;
	case VM_U32:
		if (result)
			x86_mov_rr(&x->e, false, dst, src);
		else
			x86_mov_rr(&x->e, true, dst, src);
		return;
	case VM_S32:
		if (result)
			x86_rr(&x->e, X86_MOVSXD, true, dst, src);
		else
			x86_mov_rr(&x->e, true, dst, src);
		return;
	case VM_VOID:
		if (result)
			x86_mov_ri(&x->e, dst, 0);
		return;
	case VM_U64:
	case VM_S64:
	case VM_POINTER:
	case VM_FLOAT:
	case VM_DOUBLE:
		x86_mov_rr(&x->e, true, dst, src);
		return;
	}
}

/* Integers move down over the registers of those that go into xmm registers: never over one that
 * is still needed. */
static void pass_arguments(struct x86 *x, const struct vm_native *native)
{
	unsigned int integers = 0, doubles = 0;

	for (unsigned int i = 0; i < native->nargs && i < VM_MAX_ARGUMENTS; i++) {
		const unsigned int src = x86_registers[i + 1];

		if (is_floating(native->args[i]))
			x86_rr(&x->e, X86_MOVQ_TO, native->args[i] == VM_DOUBLE, doubles++, src);
		else
			extend(x, native->args[i], false, x86_registers[++integers], src);
	}
	if (doubles) /* variadic functions ask how many */
		x86_mov_ri(&x->e, X86_RAX, doubles);
}

static void take_result(struct x86 *x, const struct vm_native *native)
{
	if (is_floating(native->result))
		x86_rr(&x->e, X86_MOVQ_FROM, native->result == VM_DOUBLE, 0, X86_RAX);
	else
		extend(x, native->result, true, X86_RAX, X86_RAX);
}

static void call_checked(struct x86 *x, const struct jit_insn *insn, unsigned int nargs)
{
	struct x86_mem mem = { .base = X86_RSP, .index = X86_NONE, .disp = (int32_t)x->area };

	for (unsigned int i = 0; i < nargs; i++, mem.disp += 8)
		x86_store(&x->e, 8, x86_registers[i + 1], mem);
	mem.disp = (int32_t)x->area;
	x86_constant(x, X86_RDI, (uintptr_t)x->runtime->vm);
	x86_mov_ri(&x->e, X86_RSI, insn->target);
	x86_rm(&x->e, X86_LEA, true, X86_RDX, mem);
	x86_call_address(x, (uintptr_t)x->runtime->checked_call);
}

void x86_call_c(struct x86 *x, const struct jit_insn *insn)
{
	const struct vm_native *native = &x->function->image->natives[insn->target];

	if (x->function->checked && !(insn->flags & JIT_FLAG_DIRECT)) {
		call_checked(x, insn,
			     native->with_context || native->nargs > VM_MAX_ARGUMENTS
				     ? VM_MAX_ARGUMENTS
				     : native->nargs);
		return;
	}
	if (native->with_context)
		x86_constant(x, X86_R9, (uintptr_t)x->function->vm->context);
	else
		pass_arguments(x, native);
	x86_call_address(x, (uintptr_t)native->function);
	if (!native->with_context && x86_is_live(insn, 0))
		take_result(x, native);
}

void x86_call_local(struct x86 *x, const struct jit_insn *insn)
{
	x86_byte(&x->e, 0xe8);
	x86_patch(x, insn->target);
}

void x86_callx(struct x86 *x, const struct jit_insn *insn)
{
	x86_mov_rr(&x->e, true, X86_R11, x86_use(x, insn->a, X86_R11));
	x86_branch_to(x, 0xe8, x->code->stub[X86_STUB_CALLX]);
}

void x86_code_address(struct x86 *x, const struct jit_insn *insn)
{
	const unsigned int dst = x86_registers[insn->dst];

	/* lea dst, [rip + field] */
	x86_byte(&x->e, dst >> 3 ? 0x4c : 0x48);
	x86_byte(&x->e, X86_LEA);
	x86_byte(&x->e, (dst & 7) << 3 | 5);
	x86_patch(x, insn->target);
}

/* ---- doubles: xmm0 = r1, xmm1 = r2, result in r0 ---- */

enum { XMM0, XMM1 };

static void f64_arguments(struct x86 *x, bool both)
{
	x86_rr(&x->e, X86_MOVQ_TO, true, XMM0, X86_RDI);
	if (both)
		x86_rr(&x->e, X86_MOVQ_TO, true, XMM1, X86_RSI);
}

static void f64_arithmetic(struct x86 *x, uint32_t opcode)
{
	f64_arguments(x, true);
	x86_rr(&x->e, opcode, false, XMM0, XMM1);
	x86_rr(&x->e, X86_MOVQ_FROM, true, XMM0, X86_RAX);
}

/* cmpsd makes all ones or nothing; predicates 0 eq, 1 lt, 2 le, 4 neq. */
static void f64_compare(struct x86 *x, unsigned int predicate, bool swapped)
{
	f64_arguments(x, true);
	x86_rr(&x->e, X86_CMPSD, false, swapped ? XMM1 : XMM0, swapped ? XMM0 : XMM1);
	x86_byte(&x->e, predicate);
	x86_rr(&x->e, X86_MOVQ_FROM, false, swapped ? XMM1 : XMM0, X86_RAX);
	x86_alu_ri(&x->e, X86_AND, false, X86_RAX, 1);
}

static void from_integer(struct x86 *x, unsigned int src)
{
	x86_rr(&x->e, X86_XORPS, false, XMM0, XMM0);
	x86_rr(&x->e, X86_CVTSI2SD, true, XMM0, src);
}

/* Half of a number with bit 63, the lost bit kept so that it rounds alike; then twice that. */
static void slow_from_u64(struct x86 *x, const struct x86_slow *slow)
{
	(void)slow;
	x86_mov_rr(&x->e, true, X86_RAX, X86_RDI);
	x86_shift_ri(&x->e, X86_SHR, true, X86_RAX, 1);
	x86_alu_ri(&x->e, X86_AND, false, X86_RDI, 1);
	x86_rr(&x->e, X86_ALU_STORE(X86_OR), true, X86_RDI, X86_RAX);
	from_integer(x, X86_RAX);
	x86_rr(&x->e, X86_ADDSD, false, XMM0, XMM0);
}

static void f64_from_u64(struct x86 *x, const struct jit_insn *insn)
{
	struct x86_slow *slow;

	x86_rr(&x->e, X86_TEST, true, X86_RDI, X86_RDI);
	slow = x86_slow_if(x, X86_S, insn, slow_from_u64);
	from_integer(x, X86_RDI);
	if (slow)
		x86_slow_back(x, slow);
	x86_rr(&x->e, X86_MOVQ_FROM, true, XMM0, X86_RAX);
}

/* The conversion gave MIN: too small, or too large, or not a number. */
static void slow_to_s64(struct x86 *x, const struct x86_slow *slow)
{
	uint8_t *number, *small;

	(void)slow;
	x86_rr(&x->e, X86_UCOMISD, false, XMM0, XMM0);
	number = x86_skip(&x->e, X86_NP);
	x86_mov_ri(&x->e, X86_RAX, 0);
	x86_rr(&x->e, X86_ALU_STORE(X86_XOR), false, X86_RDI, X86_RDI);
	x86_alu_ri(&x->e, X86_SUB, true, X86_RDI, 1); /* as if it were too small: done */
	x86_land(&x->e, number);
	x86_rr(&x->e, X86_TEST, true, X86_RDI, X86_RDI);
	small = x86_skip(&x->e, X86_S);
	x86_mov_ri(&x->e, X86_RAX, INT64_MAX);
	x86_land(&x->e, small);
}

static void f64_to_s64(struct x86 *x, const struct jit_insn *insn)
{
	struct x86_slow *slow;

	f64_arguments(x, false);
	x86_rr(&x->e, X86_CVTTSD2SI, true, X86_RAX, XMM0);
	x86_alu_ri(&x->e, X86_CMP, true, X86_RAX, 1); /* overflows for MIN alone */
	slow = x86_slow_if(x, X86_O, insn, slow_to_s64);
	if (slow)
		x86_slow_back(x, slow);
}

void x86_double(struct x86 *x, const struct jit_insn *insn)
{
	switch ((enum vm_intrinsic)insn->sub) {
	case VM_F64_ADD:
		f64_arithmetic(x, X86_ADDSD);
		return;
	case VM_F64_SUB:
		f64_arithmetic(x, X86_SUBSD);
		return;
	case VM_F64_MUL:
		f64_arithmetic(x, X86_MULSD);
		return;
	case VM_F64_DIV:
		f64_arithmetic(x, X86_DIVSD);
		return;
	case VM_F64_NEG:
		x86_mov_rr(&x->e, true, X86_RAX, X86_RDI);
		x86_rr(&x->e, X86_0F | 0xba, true, 7, X86_RAX); /* btc rax, 63 */
		x86_byte(&x->e, 63);
		return;
	case VM_F64_LT:
		f64_compare(x, 1, false);
		return;
	case VM_F64_LE:
		f64_compare(x, 2, false);
		return;
	case VM_F64_GT:
		f64_compare(x, 1, true);
		return;
	case VM_F64_GE:
		f64_compare(x, 2, true);
		return;
	case VM_F64_EQ:
		f64_compare(x, 0, false);
		return;
	case VM_F64_NE:
		f64_compare(x, 4, false);
		return;
	case VM_F64_FROM_S64:
		from_integer(x, X86_RDI);
		x86_rr(&x->e, X86_MOVQ_FROM, true, XMM0, X86_RAX);
		return;
	case VM_F64_FROM_U64:
		f64_from_u64(x, insn);
		return;
	case VM_F64_TO_S64:
		f64_to_s64(x, insn);
		return;
	case VM_INTRINSIC_NONE:
	case VM_ARRAY_LOOKUP:
		return;
	}
}
