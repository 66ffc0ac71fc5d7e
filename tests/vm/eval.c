// SPDX-License-Identifier: BSD-2-Clause
#include "eval.h"

#include <stdlib.h>
#include <string.h>

#define SPOILED 0xdeadbeef5a5a5a00

struct frame {
	struct eval *eval;
	const struct jit_function *function;
	uint32_t block;
	uint64_t r[ISA_REGISTERS];
	bool done;
};

static uint64_t low_bytes(uint64_t value, unsigned int size)
{
	return size == 8 ? value : value & ((1ull << 8 * size) - 1);
}

static uint64_t sign_extended(uint64_t value, unsigned int size)
{
	unsigned int unused = 64 - 8 * size;

	return (int64_t)(value << unused) >> unused;
}

static uint64_t divide(uint64_t a, uint64_t b, const struct jit_insn *insn)
{
	bool is_signed = insn->flags & JIT_FLAG_SIGNED;
	int64_t sa = sign_extended(a, insn->width), sb = sign_extended(b, insn->width);

	if (insn->op == JIT_DIV) {
		if (!b)
			return 0;
		if (is_signed)
			return sb == -1 ? -(uint64_t)sa : (uint64_t)(sa / sb);
		return a / b;
	}
	if (!b)
		return a;
	if (is_signed)
		return sb == -1 ? 0 : sa % sb;
	return a % b;
}

static uint64_t compute(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	unsigned int shift = b & (8 * insn->width - 1);

	a = low_bytes(a, insn->width);
	b = low_bytes(b, insn->width);
	switch (insn->op) {
	case JIT_ADD:
		return a + b;
	case JIT_SUB:
		return a - b;
	case JIT_MUL:
		return a * b;
	case JIT_DIV:
	case JIT_MOD:
		return divide(a, b, insn);
	case JIT_OR:
		return a | b;
	case JIT_AND:
		return a & b;
	case JIT_XOR:
		return a ^ b;
	case JIT_LSH:
		return a << shift;
	case JIT_RSH:
		return a >> shift;
	case JIT_ARSH:
		return (int64_t)sign_extended(a, insn->width) >> shift;
	default:
		return -a;
	}
}

static bool holds(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	int64_t sa = sign_extended(a, insn->width), sb = sign_extended(b, insn->width);

	a = low_bytes(a, insn->width);
	b = low_bytes(b, insn->width);
	switch ((enum jit_condition)insn->sub) {
	case JIT_EQ:
		return a == b;
	case JIT_NE:
		return a != b;
	case JIT_SET:
		return a & b;
	case JIT_GT:
		return a > b;
	case JIT_GE:
		return a >= b;
	case JIT_LT:
		return a < b;
	case JIT_LE:
		return a <= b;
	case JIT_SGT:
		return sa > sb;
	case JIT_SGE:
		return sa >= sb;
	case JIT_SLT:
		return sa < sb;
	case JIT_SLE:
		return sa <= sb;
	case JIT_CLEAR:
		return !(a & b);
	}
	return false;
}

static uint64_t address_of(const struct frame *frame, const struct jit_insn *insn)
{
	uint64_t address = frame->r[insn->base] + (int64_t)insn->off;

	if (insn->index != JIT_NONE)
		address += frame->r[insn->index] << insn->scale;
	return address;
}

static uint64_t load(uint64_t address, unsigned int size)
{
	uint64_t value = 0;

	memcpy(&value, (const void *)(uintptr_t)address, size);
	return value;
}

static void store(uint64_t address, unsigned int size, uint64_t value)
{
	memcpy((void *)(uintptr_t)address, &value, size);
}

static uint64_t extended(const struct jit_insn *insn, uint64_t value)
{
	if (insn->flags & JIT_FLAG_SIGNED)
		return sign_extended(value, insn->size);
	return low_bytes(value, insn->size);
}

static uint64_t operand_b(const struct frame *frame, const struct jit_insn *insn)
{
	return insn->b == JIT_NONE ? insn->imm : frame->r[insn->b];
}

static void modify(struct frame *frame, const struct jit_insn *insn)
{
	struct jit_insn change = { .op = insn->sub, .width = 8 };
	uint64_t address = address_of(frame, insn);

	store(address, insn->size,
	      compute(&change, load(address, insn->size), operand_b(frame, insn)));
}

static void atomic(struct frame *frame, const struct jit_insn *insn)
{
	struct jit_insn change = { .op = insn->sub, .width = 8 };
	uint64_t address = address_of(frame, insn), old = load(address, insn->size);
	uint64_t value = frame->r[insn->b];

	store(address, insn->size, insn->sub == JIT_MOV ? value : compute(&change, old, value));
	if (insn->flags & JIT_FLAG_FETCH)
		frame->r[insn->b] = old;
}

static void compare_exchange(struct frame *frame, const struct jit_insn *insn)
{
	uint64_t address = address_of(frame, insn), old = load(address, insn->size);

	if (old == low_bytes(frame->r[0], insn->size))
		store(address, insn->size, frame->r[insn->b]);
	frame->r[0] = old;
}

static void array(struct frame *frame, const struct jit_insn *insn)
{
	const struct vm_array *found = &frame->eval->image->arrays[insn->target];
	uint32_t index = insn->imm;

	if (insn->base != JIT_NONE)
		index = load(address_of(frame, insn), 4);
	else if (insn->a != JIT_NONE)
		index = frame->r[insn->a];
	frame->r[0] = index < found->entries
			      ? (uintptr_t)found->data + (uint64_t)index * found->stride
			      : 0;
}

static uint64_t call_number(struct eval *eval, uint64_t target, const uint64_t *args)
{
	const struct vm_address *known = closure_find(eval->vm, target);

	if (known && known->native)
		return native_call(eval->vm, &eval->vm->natives[known->index], args);
	if (known)
		return eval_run(eval, known->index, args);
	eval->why = "callx to something that is no function";
	return 0;
}

static void call(struct frame *frame, const struct jit_insn *insn)
{
	struct eval *eval = frame->eval;
	struct vm *vm = eval->vm;
	uint64_t args[VM_MAX_ARGUMENTS];

	for (unsigned int i = 0; i < VM_MAX_ARGUMENTS; i++)
		args[i] = i < insn->size ? frame->r[i + 1] : SPOILED + 16 * i;
	if (insn->op == JIT_CALL_C)
		frame->r[0] = native_call(vm, &vm->natives[insn->target], args);
	else if (insn->op == JIT_CALL_LOCAL)
		frame->r[0] = eval_run(eval, insn->target, args);
	else
		frame->r[0] = call_number(eval, frame->r[insn->a], args);
}

static void f64(struct frame *frame, const struct jit_insn *insn)
{
	const struct vm_image *image = frame->eval->image;

	for (size_t i = 0; i < image->nnatives; i++)
		if (image->natives[i].intrinsic == insn->sub)
			frame->r[0] = native_call(frame->eval->vm, &frame->eval->vm->natives[i],
						  &frame->r[1]);
}

/* What may not be relied upon afterwards. */
static void spoil(struct frame *frame, const struct jit_insn *insn)
{
	uint16_t lost = ~insn->live;

	if (jit_writes(insn) == 0x3f)
		lost |= 0x3e;
	for (int reg = 0; reg < ISA_FRAME; reg++)
		if (lost & 1u << reg)
			frame->r[reg] = SPOILED + reg;
}

static void swap_bytes(struct frame *frame, const struct jit_insn *insn)
{
	uint64_t value = __builtin_bswap64(frame->r[insn->a]);

	frame->r[insn->dst] = value >> (64 - 8 * insn->size);
}

static void go(struct frame *frame, uint32_t block)
{
	frame->block = block;
}

static void branch(struct frame *frame, const struct jit_insn *insn)
{
	const struct jit_block *block = &frame->function->blocks[frame->block];
	uint64_t a;

	if (insn->base != JIT_NONE)
		a = extended(insn, load(address_of(frame, insn), insn->size));
	else
		a = frame->r[insn->a];
	go(frame, holds(insn, a, operand_b(frame, insn)) ? block->taken : block->next);
}

static void select_case(struct frame *frame, const struct jit_insn *insn)
{
	const struct jit_function *function = frame->function;
	uint64_t i = low_bytes(frame->r[insn->a] - (int64_t)insn->off, insn->width);

	go(frame, i < insn->imm ? function->targets[insn->target + i]
				: function->blocks[frame->block].next);
}

static void lea(struct frame *frame, const struct jit_insn *insn)
{
	frame->r[insn->dst] = low_bytes(address_of(frame, insn), insn->width);
}

static void step(struct frame *frame, const struct jit_insn *insn)
{
	uint64_t *r = frame->r, value;

	switch ((enum jit_op)insn->op) {
	case JIT_NOP:
	case JIT_CHECK:
		break;
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
		value = compute(insn, r[insn->a], operand_b(frame, insn));
		r[insn->dst] = low_bytes(value, insn->width);
		break;
	case JIT_NEG:
		r[insn->dst] = low_bytes(compute(insn, r[insn->a], 0), insn->width);
		break;
	case JIT_MOV:
		value = insn->a == JIT_NONE ? insn->imm : r[insn->a];
		r[insn->dst] = low_bytes(value, insn->width);
		if (insn->flags & JIT_FLAG_ANY_UPPER)
			r[insn->dst] = value;
		break;
	case JIT_EXT:
		r[insn->dst] = low_bytes(extended(insn, r[insn->a]), insn->width);
		break;
	case JIT_BSWAP:
		swap_bytes(frame, insn);
		break;
	case JIT_LEA:
		lea(frame, insn);
		break;
	case JIT_CODE:
		r[insn->dst] = (uintptr_t)vm_function_address(frame->eval->vm, insn->target);
		break;
	case JIT_LOAD:
		r[insn->dst] = extended(insn, load(address_of(frame, insn), insn->size));
		break;
	case JIT_STORE:
		store(address_of(frame, insn), insn->size, operand_b(frame, insn));
		break;
	case JIT_MODIFY:
		modify(frame, insn);
		break;
	case JIT_ATOMIC:
		atomic(frame, insn);
		break;
	case JIT_CMPXCHG:
		compare_exchange(frame, insn);
		break;
	case JIT_JUMP:
		go(frame, frame->function->blocks[frame->block].next);
		break;
	case JIT_BRANCH:
		branch(frame, insn);
		break;
	case JIT_SWITCH:
		select_case(frame, insn);
		break;
	case JIT_EXIT:
		frame->done = true;
		return;
	case JIT_TRAP:
		frame->eval->why = "a trap was reached";
		break;
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
		call(frame, insn);
		break;
	case JIT_ARRAY:
		array(frame, insn);
		break;
	case JIT_F64:
		f64(frame, insn);
		break;
	case JIT_NOPS:
		frame->eval->why = "no operation";
		break;
	}
	spoil(frame, insn);
}

uint64_t eval_run(struct eval *eval, uint32_t index, const uint64_t *args)
{
	const struct jit_function *function = &eval->functions[index];
	struct frame frame = { .eval = eval, .function = function };
	uint8_t *stack;

	if (!function->ninsns) /* another name of a function */
		for (uint32_t i = 0; i < eval->image->nfunctions; i++)
			if (eval->functions[i].ninsns &&
			    eval->image->functions[i].first == eval->image->functions[index].first)
				return eval_run(eval, i, args);
	stack = malloc(function->frame);
	if (!stack) {
		eval->why = "out of memory";
		return 0;
	}
	memset(stack, 0xa5, function->frame);
	for (int reg = 0; reg < ISA_FRAME; reg++)
		frame.r[reg] = reg >= 1 && reg <= VM_MAX_ARGUMENTS ? args[reg - 1] : SPOILED - reg;
	frame.r[ISA_FRAME] = (uintptr_t)stack + function->frame;
	while (!frame.done && !eval->why) {
		uint32_t block = frame.block, count = function->blocks[block].count;
		const struct jit_insn *insns = &function->insns[function->blocks[block].first];

		for (uint32_t i = 0; i < count && !eval->why; i++) {
			if (i + 1 < count &&
			    ((insns[i].op >= JIT_JUMP && insns[i].op <= JIT_TRAP) ||
			     insns[i].op == JIT_SWITCH))
				eval->why = "the end of a block stands in its middle";
			step(&frame, &insns[i]);
		}
		if (eval->steps < count)
			eval->why = "does not end";
		else
			eval->steps -= count;
	}
	free(stack);
	return frame.r[0];
}

int eval_compile(struct eval *eval, struct vm *vm, const struct vm_image *image, uint32_t passes,
		 bool checked, const struct jit_target *target)
{
	*eval = (struct eval){ .vm = vm, .image = image, .steps = 1000000 };
	eval->functions = calloc(image->nfunctions, sizeof(*eval->functions));
	if (!eval->functions)
		return -1;
	for (uint32_t k = 0; k < vm->nordered; k++) {
		struct jit_function *function = &eval->functions[vm->order[k]];

		function->vm = vm;
		function->image = image;
		function->index = vm->order[k];
		function->passes = passes;
		function->checked = checked;
		function->target = target;
		if (jit_lower(function) || jit_optimise(function))
			return -1;
	}
	return 0;
}

void eval_deinit(struct eval *eval)
{
	for (size_t i = 0; eval->functions && i < eval->image->nfunctions; i++)
		jit_release(&eval->functions[i]);
	free(eval->functions);
	eval->functions = NULL;
}
