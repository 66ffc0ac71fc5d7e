// SPDX-License-Identifier: BSD-2-Clause
/* Loads, stores, atomics, the checks of checked mode, and elements of arrays. */
#include "vm/jit/x86.h"

#include "vm/jit/plant.h"

void x86_load_insn(struct x86 *x, const struct jit_insn *insn)
{
	x86_load(&x->e, insn->size, insn->flags & JIT_FLAG_SIGNED, x86_registers[insn->dst],
		 x86_operand(x, insn, X86_R10));
}

void x86_store_insn(struct x86 *x, const struct jit_insn *insn)
{
	const struct x86_mem mem = x86_operand(x, insn, X86_R10);

	if (insn->b != JIT_NONE) {
		x86_store(&x->e, insn->size, x86_use(x, insn->b, X86_R11), mem);
	} else if (insn->size < 8 || x86_fits32((int64_t)insn->imm)) {
		x86_store_i(&x->e, insn->size, (int32_t)insn->imm, mem);
	} else {
		x86_constant(x, X86_R11, insn->imm);
		x86_store(&x->e, 8, X86_R11, mem);
	}
}

/* Operations that JIT_MODIFY and JIT_ATOMIC know. */
static enum x86_alu operation(uint8_t op)
{
	switch (op) {
	case JIT_ADD:
		return X86_ADD;
	case JIT_SUB:
		return X86_SUB;
	case JIT_OR:
		return X86_OR;
	case JIT_AND:
		return X86_AND;
	default:
		return X86_XOR;
	}
}

void x86_modify(struct x86 *x, const struct jit_insn *insn)
{
	const enum x86_alu op = operation(insn->sub);
	const struct x86_mem mem = x86_operand(x, insn, X86_R10);
	const int64_t imm = (int64_t)insn->imm;
	unsigned int b;

	if (insn->b == JIT_NONE && (insn->size == 1 || x86_fits8(imm) || (insn->size == 4) ||
				    (insn->size == 8 && x86_fits32(imm)))) {
		x86_alu_mi(&x->e, op, insn->size, mem, (int32_t)imm);
		return;
	}
	if (insn->b == JIT_NONE) {
		/* 16-bit immediates make decoders stall. */
		x86_constant(x, X86_R11, insn->size == 2 ? (uint16_t)imm : (uint64_t)imm);
		b = X86_R11;
	} else {
		b = x86_use(x, insn->b, X86_R11);
	}
	x86_alu_mr(&x->e, op, insn->size, mem, b);
}

/* No instruction gives the old value back: compare and exchange until nobody came between. */
static void fetch_loop(struct x86 *x, const struct jit_insn *insn, struct x86_mem mem)
{
	const bool wide = insn->size == 8;
	unsigned int b = x86_registers[insn->b];
	const bool keep = insn->b != 0 && x86_is_live(insn, 0) && !PLANT(22);
	uint8_t *again;

	if (mem.base == X86_RAX || mem.index == X86_RAX) {
		x86_rm(&x->e, X86_LEA, true, X86_R10, mem);
		mem = (struct x86_mem){ .base = X86_R10, .index = X86_NONE };
	}
	if (keep || b == X86_RAX)
		x86_mov_rr(&x->e, true, X86_R9, X86_RAX);
	if (b == X86_RAX)
		b = X86_R9;
	x86_load(&x->e, insn->size, false, X86_RAX, mem);
	again = x->e.at;
	x86_mov_rr(&x->e, wide, X86_R11, X86_RAX);
	x86_rr(&x->e, X86_ALU_STORE(operation(insn->sub)), wide, b, X86_R11);
	x86_rm(&x->e, X86_CMPXCHG, wide, X86_R11, mem);
	x86_land(&x->e, x86_skip(&x->e, X86_NE));
	x->e.at[-1] = (uint8_t)(again - x->e.at);
	x86_mov_rr(&x->e, wide, x86_registers[insn->b], X86_RAX);
	if (keep)
		x86_mov_rr(&x->e, true, X86_RAX, X86_R9);
}

void x86_atomic(struct x86 *x, const struct jit_insn *insn)
{
	const struct x86_mem mem = x86_operand(x, insn, X86_R10);
	const bool wide = insn->size == 8;

	if (insn->sub == JIT_MOV)
		x86_rm(&x->e, X86_XCHG, wide, x86_registers[insn->b], mem);
	else if (!(insn->flags & JIT_FLAG_FETCH))
		x86_rm(&x->e, X86_LOCK | X86_ALU_STORE(operation(insn->sub)), wide,
		       x86_use(x, insn->b, X86_R11), mem);
	else if (insn->sub == JIT_ADD)
		x86_rm(&x->e, X86_XADD, wide, x86_registers[insn->b], mem);
	else
		fetch_loop(x, insn, mem);
}

void x86_compare_exchange(struct x86 *x, const struct jit_insn *insn)
{
	const struct x86_mem mem = x86_operand(x, insn, X86_R10);

	x86_rm(&x->e, X86_CMPXCHG, insn->size == 8, x86_use(x, insn->b, X86_R11), mem);
	/* When it succeeds it leaves rax as it was. */
	if (insn->size == 4 && !PLANT(18))
		x86_mov_rr(&x->e, false, X86_RAX, X86_RAX);
}

/* ---- checked mode ---- */

static void against_slot(struct x86 *x, const struct jit_insn *insn, enum x86_alu op, bool size)
{
	const struct jit_check_slot *slot = &x->runtime->checks[insn->target];

	x86_rm(&x->e, X86_ALU_LOAD(op), true, X86_R11,
	       x86_absolute(x, size ? &slot->size : &slot->start, X86_R10));
}

static void slow_miss(struct x86 *x, const struct x86_slow *slow)
{
	against_slot(x, &slow->insn, X86_ADD, false);
	x86_mov_ri(&x->e, X86_R10, slow->insn.target);
	x86_branch_to(x, 0xe8, x->code->stub[X86_STUB_MISS]);
}

void x86_check(struct x86 *x, const struct jit_insn *insn)
{
	const struct x86_mem mem = x86_operand(x, insn, X86_R10);
	struct x86_slow *slow;

	if (mem.index == X86_NONE && !mem.disp && mem.base != X86_NONE)
		x86_mov_rr(&x->e, true, X86_R11, mem.base);
	else
		x86_rm(&x->e, X86_LEA, true, X86_R11, mem);
	against_slot(x, insn, X86_SUB, false);
	against_slot(x, insn, X86_CMP, true);
	slow = x86_slow_if(x, X86_A, insn, slow_miss);
	if (slow)
		x86_slow_back(x, slow);
}

/* ---- arrays ---- */

static void slow_null(struct x86 *x, const struct x86_slow *slow)
{
	(void)slow;
	x86_mov_ri(&x->e, X86_RAX, 0);
}

/* rax = data + rax * stride; rax is an index within the array. */
static void element_address(struct x86 *x, const struct vm_array *array)
{
	const uint64_t data = (uintptr_t)array->data;
	const bool wide = (uint64_t)array->stride * array->entries > UINT32_MAX;
	unsigned int scale = array->stride ? __builtin_ctz(array->stride) : 0;
	unsigned int base = x86_pin_of(x, data);
	uint32_t rest;

	if (scale > 3)
		scale = array->stride & (array->stride - 1) ? 3 : 0;
	rest = array->stride >> scale;
	if (rest == 3 || rest == 5 || rest == 9) {
		const struct x86_mem mem = { .base = X86_RAX,
					     .index = X86_RAX,
					     .scale = __builtin_ctz(rest - 1) };

		x86_rm(&x->e, X86_LEA, wide, X86_RAX, mem);
	} else if (rest && !(rest & (rest - 1))) {
		if (rest > 1)
			x86_shift_ri(&x->e, X86_SHL, wide, X86_RAX, __builtin_ctz(rest));
	} else {
		x86_imul_rri(&x->e, wide || rest > INT32_MAX, X86_RAX, X86_RAX, (int32_t)rest);
	}
	if (data <= INT32_MAX && base == X86_NONE) {
		const struct x86_mem mem = {
			.base = X86_NONE, .index = X86_RAX, .scale = scale, .disp = (int32_t)data
		};

		x86_rm(&x->e, X86_LEA, true, X86_RAX, mem);
		return;
	}
	if (base == X86_NONE) {
		base = X86_R11;
		x86_constant(x, base, data);
	}
	if (scale)
		x86_rm(&x->e, X86_LEA, true, X86_RAX,
		       (struct x86_mem){ .base = base, .index = X86_RAX, .scale = scale });
	else
		x86_rr(&x->e, X86_ALU_STORE(X86_ADD), true, base, X86_RAX);
}

void x86_array(struct x86 *x, const struct jit_insn *insn, uint32_t null)
{
	const struct vm_array *array = &x->function->image->arrays[insn->target];
	struct x86_slow *slow = NULL;

	if (insn->base == JIT_NONE && insn->a == JIT_NONE) {
		x86_constant(x, X86_RAX, (uintptr_t)array->data + insn->imm * array->stride);
	} else {
		if (insn->base != JIT_NONE)
			x86_load(&x->e, 4, false, X86_RAX, x86_operand(x, insn, X86_R10));
		else
			x86_mov_rr(&x->e, false, X86_RAX, x86_use(x, insn->a, X86_R10));
		x86_alu_ri(&x->e, X86_CMP, false, X86_RAX, (int32_t)array->entries + PLANT(17));
		if (null != JIT_NOWHERE && !(x->function->blocks[null].live_in & 1)) {
			x86_jump_to_block(x, X86_AE, null);
		} else {
			slow = x86_slow_if(x, X86_AE, insn, slow_null);
			if (slow)
				slow->block = null;
		}
		element_address(x, array);
		if (slow && null == JIT_NOWHERE)
			x86_slow_back(x, slow);
	}
}
