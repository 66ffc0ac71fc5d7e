// SPDX-License-Identifier: BSD-2-Clause
/* How BPF registers, memory and addresses are named in machine code. */
#include "vm/jit/x86.h"

const uint8_t x86_registers[11] = { X86_RAX, X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8,
				    X86_RBX, X86_R13, X86_R14, X86_R15, X86_RBP };

unsigned int x86_use(struct x86 *x, uint8_t reg, unsigned int scratch)
{
	if (reg != 10 || x->on_heap)
		return x->map[reg];
	x86_rm(&x->e, X86_LEA, true, scratch,
	       (struct x86_mem){ .base = X86_RSP, .index = X86_NONE, .disp = x->frame });
	return scratch;
}

struct x86_mem x86_operand(struct x86 *x, const struct jit_insn *insn, unsigned int scratch)
{
	uint8_t base = insn->base, index = insn->index, scale = insn->scale;
	struct x86_mem mem = { .base = X86_NONE, .index = X86_NONE, .disp = insn->off };

	if (index != JIT_NONE && !scale && (index == 10 || base == 7)) {
		/* The frame can only be a base; r13 costs a displacement as one. */
		base = insn->index;
		index = insn->base;
	}
	if (base == 10 && !x->on_heap) {
		mem.base = X86_RSP;
		mem.disp += x->frame;
	} else if (base != JIT_NONE) {
		mem.base = x->map[base];
	}
	if (index != JIT_NONE) {
		mem.index = x86_use(x, index, scratch);
		mem.scale = scale;
	}
	return mem;
}

static bool reaches(const struct jit_code *code, uint64_t address)
{
	/* From anywhere in the code, so that both emissions decide alike. */
	return x86_fits32((int64_t)(address - code->address)) &&
	       x86_fits32((int64_t)(address - code->address - code->capacity)) &&
	       x86_fits32((int64_t)(address - code->address + 64));
}

bool x86_reaches(const struct x86 *x, uint64_t address)
{
	return reaches(x->code, address);
}

struct x86_mem x86_absolute(struct x86 *x, const void *address, unsigned int scratch)
{
	const uint64_t value = (uintptr_t)address;

	if (x86_reaches(x, value))
		return (struct x86_mem){ .base = X86_RIP,
					 .index = X86_NONE,
					 .disp = (int32_t)(value - x->code->address -
							   x86_offset(x)) };
	x86_mov_ri(&x->e, scratch, value);
	return (struct x86_mem){ .base = scratch, .index = X86_NONE };
}

void x86_constant(struct x86 *x, unsigned int reg, uint64_t value)
{
	const unsigned int pin = x->npins ? x86_pin_of(x, value) : X86_NONE;

	if (pin != X86_NONE)
		x86_mov_rr(&x->e, true, reg, pin);
	else if (x->brief && value > UINT32_MAX && !x86_fits32((int64_t)value) &&
		 x86_reaches(x, value))
		x86_rm(&x->e, X86_LEA, true, reg,
		       x86_absolute(x, (const void *)(uintptr_t)value, reg));
	else
		x86_mov_ri(&x->e, reg, value);
}

void x86_flags_are(struct x86 *x, unsigned int reg, unsigned int width, bool logic)
{
	x->zero = reg;
	x->zero_width = width;
	x->zero_logic = logic;
}

void x86_branch_to(struct x86 *x, unsigned int opcode, uint32_t offset)
{
	if (opcode > 0xff)
		x86_byte(&x->e, opcode >> 8);
	x86_byte(&x->e, opcode);
	x86_word32(&x->e, offset - (x86_offset(x) + 4));
}

void x86_call_address(struct x86 *x, uint64_t address)
{
	const bool near = !x->function || x->function->passes & VM_PASS_NEAR;

	if (near && x86_reaches(x, address)) {
		x86_byte(&x->e, 0xe8);
		x86_word32(&x->e, (uint32_t)(address - (x->code->address + x86_offset(x) + 4)));
	} else {
		x86_mov_ri(&x->e, X86_R11, address);
		x86_rr(&x->e, X86_CALL_RM, false, 2, X86_R11);
	}
}
