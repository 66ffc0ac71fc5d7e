// SPDX-License-Identifier: BSD-2-Clause
/* Prologue and epilogue. */
#include "vm/jit/x86.h"

#include "vm/jit/plant.h"

#define RED_ZONE 128 /* below rsp, kept by signal handlers (psABI 3.2.2) */
/* Frames up to this need no exact check of the stack: handlers of an overflow need more. */
#define SMALL_FRAME 1024

/* An epilogue with up to so many registers is repeated rather than jumped to. */
#define REPEATED_POPS 2

/* Callee-saved ones in the order in which they are pushed, with their DWARF numbers. */
static const struct {
	uint8_t reg, bpf, dwarf; /* bpf 11: none */
} saved_registers[] = {
	{ X86_RBP, 10, 6 }, { X86_RBX, 6, 3 },  { X86_R12, 11, 12 },
	{ X86_R13, 7, 13 }, { X86_R14, 8, 14 }, { X86_R15, 9, 15 },
};
#define NSAVED (sizeof(saved_registers) / sizeof(saved_registers[0]))

/* Does the function change the machine register of r@bpf? */
static bool is_written(const struct x86 *x, unsigned int bpf)
{
	if (bpf == 10)
		return x->on_heap && x->framed;
	return bpf < 10 &&
	       (x->function->written >> bpf & 1 || !(x->function->passes & VM_PASS_PROLOGUE));
}

void x86_plan_frame(struct x86 *x)
{
	const struct jit_function *function = x->function;
	const bool all = !(function->passes & VM_PASS_PROLOGUE);
	unsigned int pushes = 0, misalign;

	x->framed = all || function->uses_frame;
	x->aligned = all || function->calls || function->checked || x->budget;
	for (size_t i = 0; i < NSAVED; i++) {
		const unsigned int bpf = saved_registers[i].bpf;

		if (!is_written(x, bpf) && !(x->pinned >> saved_registers[i].reg & 1))
			continue;
		if (PLANT(19) && bpf == 8)
			continue;
		x->saved |= 1u << i;
		pushes++;
	}
	x->repeat_epilogue = pushes <= REPEATED_POPS && !x->on_heap;
	misalign = (8 + 8 * pushes) & 15;
	if (x->framed && !x->on_heap && !x->aligned && function->frame + misalign <= RED_ZONE) {
		x->frame = -(int32_t)misalign;
		return;
	}
	x->locals = x->aligned || (x->framed && !x->on_heap) ? misalign : 0;
	if (x->framed && !x->on_heap) {
		x->frame = (int32_t)function->frame;
		x->locals += function->frame;
	}
	if (function->checked && function->calls)
		x->locals += 48;
}

/* A function that may be entered again, or that takes a lot, leaves before it does anything. */
static void check_stack(struct x86 *x)
{
	const int64_t limit = x->runtime->limit_offset;
	const uint32_t needed = x->locals + 8 * (uint32_t)__builtin_popcount(x->saved);
	struct x86_mem mem = { .base = X86_NONE, .index = X86_NONE, .fs = true };
	unsigned int lowest = X86_RSP;

	if (!x->function->recursive && needed <= SMALL_FRAME)
		return;
	if (needed > SMALL_FRAME) {
		lowest = X86_R11;
		x86_rm(&x->e, X86_LEA, true, lowest,
		       (struct x86_mem){
			       .base = X86_RSP, .index = X86_NONE, .disp = -(int32_t)needed });
	}
	if (x86_fits32(limit)) {
		mem.disp = (int32_t)limit;
	} else {
		mem.base = X86_R10;
		x86_mov_ri(&x->e, X86_R10, limit);
	}
	x86_rm(&x->e, X86_ALU_LOAD(X86_CMP), true, lowest, mem);
	x86_branch_to(x, 0x0f80 | X86_B, x->code->stub[X86_STUB_OVERFLOW]);
}

/* r10 = the new top of the vm's own stack; rbp is set from it when it has been saved. */
static void take_heap_frame(struct x86 *x)
{
	x86_rm(&x->e, X86_LOAD, true, X86_R10, x86_absolute(x, x->runtime->stack, X86_R11));
	x86_alu_ri(&x->e, X86_SUB, true, X86_R10, (int32_t)x->function->frame);
	x86_mov_ri(&x->e, X86_R9, x->runtime->stack_low);
	x86_rr(&x->e, X86_ALU_STORE(X86_CMP), true, X86_R9, X86_R10);
	x86_branch_to(x, 0x0f80 | X86_B, x->code->stub[X86_STUB_OVERFLOW]);
	x86_rm(&x->e, X86_MOV, true, X86_R10, x86_absolute(x, x->runtime->stack, X86_R11));
}

void x86_prologue(struct x86 *x)
{
	uint32_t depth = 0;

	check_stack(x);
	if (x->on_heap && x->framed)
		take_heap_frame(x);
	for (size_t i = 0; i < NSAVED; i++) {
		if (!(x->saved >> i & 1))
			continue;
		x86_push(&x->e, saved_registers[i].reg);
		depth += 8;
		x86_frame_step(x, depth, saved_registers[i].dwarf);
	}
	if (x->locals) {
		x86_alu_ri(&x->e, X86_SUB, true, X86_RSP, (int32_t)x->locals);
		x86_frame_step(x, depth + x->locals, JIT_NONE);
	}
	if (x->on_heap && x->framed)
		x86_rm(&x->e, X86_LEA, true, X86_RBP,
		       (struct x86_mem){ .base = X86_R10,
					 .index = X86_NONE,
					 .disp = (int32_t)x->function->frame });
}

void x86_epilogue(struct x86 *x)
{
	if (x->on_heap && x->framed)
		x86_rm(&x->e, X86_MOV, true, X86_RBP, x86_absolute(x, x->runtime->stack, X86_R11));
	if (x->locals)
		x86_alu_ri(&x->e, X86_ADD, true, X86_RSP, (int32_t)x->locals);
	for (size_t i = NSAVED; i-- > 0;)
		if (x->saved >> i & 1)
			x86_pop(&x->e, saved_registers[i].reg);
	x86_byte(&x->e, 0xc3);
}
