// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code that the functions of a vm share: the way in from C, and the ways out that need more than a
 * call. Those that do not come back are jumped to as if the caller had called C itself.
 */
#include "vm/jit/x86.h"

/* What stubs push belongs to their callers' callers, or is lost in any call: nothing to unwind. */
#define UNSAVED JIT_NONE

static void goto_c(struct x86 *x, uint64_t address)
{
	x86_constant(x, X86_RDI, (uintptr_t)x->runtime->vm);
	if (x86_reaches(x, address)) {
		x86_byte(&x->e, 0xe9);
		x86_word32(&x->e, (uint32_t)(address - (x->code->address + x86_offset(x) + 4)));
		return;
	}
	x86_mov_ri(&x->e, X86_RAX, address);
	x86_rr(&x->e, X86_CALL_RM, false, 4, X86_RAX);
}

static void stub_starts(struct x86 *x, enum x86_stub stub)
{
	x86_nop(&x->e, -x86_offset(x) & 15);
	x->code->stub[stub] = x86_offset(x);
	x86_frame_step(x, 0, UNSAVED);
}

static uint32_t push_all(struct x86 *x, const uint8_t *registers, size_t n, uint32_t depth)
{
	for (size_t i = 0; i < n; i++) {
		x86_push(&x->e, registers[i]);
		depth += 8;
		x86_frame_step(x, depth, UNSAVED);
	}
	return depth;
}

static void pop_all(struct x86 *x, const uint8_t *registers, size_t n, uint32_t depth)
{
	while (n-- > 0) {
		x86_pop(&x->e, registers[n]);
		depth -= 8;
		x86_frame_step(x, depth, UNSAVED);
	}
}

/* r11: where to. Arguments stay as they are, for the function that the engine finds. */
static void emit_callx(struct x86 *x)
{
	static const uint8_t arguments[] = { X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8 };
	uint32_t depth;

	stub_starts(x, X86_STUB_CALLX);
	depth = push_all(x, arguments, sizeof(arguments), 0);
	x86_constant(x, X86_RDI, (uintptr_t)x->runtime->vm);
	x86_mov_rr(&x->e, true, X86_RSI, X86_R11);
	x86_call_address(x, (uintptr_t)x->runtime->callx_target);
	pop_all(x, arguments, sizeof(arguments), depth);
	x86_rr(&x->e, X86_CALL_RM, false, 4, X86_RAX);
}

/* r10: number of the check, r11: address. Keeps all but scratch registers. */
static void emit_miss(struct x86 *x)
{
	static const uint8_t registers[] = { X86_RAX, X86_RDI, X86_RSI, X86_RDX,
					     X86_RCX, X86_R8,  X86_R9 };
	uint32_t depth;

	stub_starts(x, X86_STUB_MISS);
	depth = push_all(x, registers, sizeof(registers), 0);
	x86_constant(x, X86_RDI, (uintptr_t)x->runtime->vm);
	x86_mov_rr(&x->e, false, X86_RSI, X86_R10);
	x86_mov_rr(&x->e, true, X86_RDX, X86_R11);
	x86_call_address(x, (uintptr_t)x->runtime->check_miss);
	pop_all(x, registers, sizeof(registers), depth);
	x86_byte(&x->e, 0xc3);
}

/* enter(rdi: code, rsi: args): becomes the call of the code, which returns to C by itself. */
static void emit_enter(struct x86 *x)
{
	static const uint8_t order[] = { 1, 3, 4, 5, 2 }; /* rsi last */

	x86_mov_rr(&x->e, true, X86_RAX, X86_RDI);
	for (size_t i = 0; i < sizeof(order); i++)
		x86_load(&x->e, 8, false, x86_registers[order[i]],
			 (struct x86_mem){
				 .base = X86_RSI, .index = X86_NONE, .disp = 8 * (order[i] - 1) });
	x86_rr(&x->e, X86_CALL_RM, false, 4, X86_RAX);
}

/* Processors that have VPCLMULQDQ (Ice Lake, Zen 3 and later) divide small 64-bit numbers as fast as
 * 32-bit ones; most before took thrice as long. */
static uint32_t find_cpu(void)
{
#if defined(__x86_64__)
	return (__builtin_cpu_supports("bmi2") ? X86_CPU_BMI2 : 0) |
	       (__builtin_cpu_supports("vpclmulqdq") ? 0 : X86_CPU_SLOW_DIVIDE);
#else
	return 0;
#endif
}

int x86_begin(struct jit_code *code, uint32_t *enter)
{
	struct x86 x = { .code = code, .runtime = code->runtime, .brief = true };
	const uint32_t first_step = code->nsteps;

	if (code->capacity - code->size < X86_STUB_ROOM) {
		code->full = true;
		return 0;
	}
	code->cpu = find_cpu();
	x.e = (struct x86_emit){ .at = code->bytes + code->size, .brief = true };
	code->stubs.first = x86_offset(&x);
	code->stubs.first_step = first_step;
	*enter = x86_offset(&x);
	emit_enter(&x);
	stub_starts(&x, X86_STUB_OVERFLOW);
	goto_c(&x, (uintptr_t)code->runtime->overflow);
	stub_starts(&x, X86_STUB_SPENT);
	goto_c(&x, (uintptr_t)code->runtime->spent);
	emit_callx(&x);
	emit_miss(&x);
	code->size = x86_offset(&x);
	code->stubs.end = code->size;
	code->stubs.nsteps = code->nsteps - first_step;
	return x.error;
}
