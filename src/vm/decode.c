// SPDX-License-Identifier: BSD-2-Clause
/*
 * From validated instructions to ops. The ops of a function are its instructions one to one (the
 * second slot of lddw too, never reached), and one trap behind them, so:
 *
 *	op index = instruction index + number of functions before it in program order
 */
#include "vm/vm_internal.h"

#include <errno.h>
#include <stdlib.h>

static int32_t distance(const struct vm_op *from, const struct vm_op *to)
{
	return (const char *)to - (const char *)from;
}

static const struct vm_code *function_at(const struct vm *vm, uint32_t insn)
{
	uint32_t low = 0, high = vm->nordered;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (vm->functions[vm->order[middle]].first <= insn)
			low = middle;
		else
			high = middle;
	}
	return &vm->functions[vm->order[low]];
}

/* imm: caller's frame in the lower half, callee's in the upper. */
static void decode_local_call(struct vm *vm, const struct vm_code *code,
			      const struct bpf_insn *insn, uint32_t index, struct vm_op *op)
{
	const struct vm_code *callee = function_at(vm, index + 1 + insn->imm);

	op->off = distance(op, &vm->ops[callee->first_op]);
	op->imm = (uint64_t)callee->frame << 32 | code->frame;
}

static int decode_lddw(struct vm *vm, const struct bpf_insn *insn, struct vm_op *op)
{
	if (insn->src_reg == BPF_PSEUDO_FUNC) {
		op->imm = (uintptr_t)closure_address(vm, insn->imm);
		return op->imm ? 0 : -ENOMEM;
	}
	op->imm = (uint64_t)(uint32_t)insn[1].imm << 32 | (uint32_t)insn[0].imm;
	return 0;
}

static int decode(struct vm *vm, const struct vm_code *code, const struct bpf_insn *insn,
		  uint32_t index, struct vm_op *op)
{
	const struct isa_row *row;

	op->id = isa_find(insn);
	row = isa_row(op->id);
	op->dst = insn->dst_reg;
	op->src = insn->src_reg;
	op->off = insn->off;
	op->imm = row->width == 4 ? (uint32_t)insn->imm : (uint64_t)(int64_t)insn->imm;
	switch (row->form) {
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
	case ISA_FORM_GOTO:
		op->off = distance(op, op + 1 + insn->off);
		break;
	case ISA_FORM_GOTOL:
		op->off = distance(op, op + 1 + insn->imm);
		break;
	case ISA_FORM_CALL:
		op->id = vm->natives[insn->imm].id;
		op->off = insn->imm;
		op->imm = op->id == VM_OP_CALL_OTHER ? (uintptr_t)&vm->natives[insn->imm]
						     : (uintptr_t)vm->natives[insn->imm].function;
		break;
	case ISA_FORM_CALL_LOCAL:
		decode_local_call(vm, code, insn, index, op);
		break;
	case ISA_FORM_CALLX:
		op->src = isa_callx_register(insn);
		op->off = 0;
		op->imm = code->frame;
		break;
	case ISA_FORM_LDDW:
		return decode_lddw(vm, insn, op);
	case ISA_FORM_STORE_K:
		op->imm = (int64_t)insn->imm; /* a double word is sign-extended */
		break;
	default:
		break;
	}
	return 0;
}

static int decode_function(struct vm *vm, const struct vm_image *image, const struct vm_code *code)
{
	struct vm_op *op = &vm->ops[code->first_op];
	int rc;

	for (uint32_t i = 0; i < code->count; i++, op++) {
		const struct bpf_insn *insn = &image->code[code->first + i];

		rc = decode(vm, code, insn, code->first + i, op);
		if (rc)
			return rc;
		if (isa_slots(isa_row(isa_find(insn))) == 2) {
			i++;
			op++;
			op->id = VM_OP_RUN_OFF;
		}
	}
	op->id = VM_OP_RUN_OFF;
	return 0;
}

int vm_decode(struct vm *vm, const struct vm_image *image, struct err *err)
{
	int rc;

	vm->nops = image->ncode + vm->nordered;
	vm->ops = calloc(vm->nops, sizeof(*vm->ops));
	if (!vm->ops)
		return err_nomem(err);
	for (uint32_t i = 0; i < vm->nordered; i++)
		vm->functions[vm->order[i]].first_op = vm->functions[vm->order[i]].first + i;
	for (uint32_t i = 0; i < vm->nfunctions; i++) { /* aliases share the ops */
		const struct vm_code *original = function_at(vm, vm->functions[i].first);

		vm->functions[i].first_op = original->first_op;
		vm->functions[i].frame = original->frame;
	}
	for (uint32_t i = 0; i < vm->nordered; i++) {
		rc = decode_function(vm, image, &vm->functions[vm->order[i]]);
		if (rc)
			return err_nomem(err);
	}
	return 0;
}

void vm_locate(const struct vm *vm, const struct vm_op *op, uint32_t *function, uint32_t *insn)
{
	uint32_t index = op - vm->ops, low = 0, high = vm->nordered;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (vm->functions[vm->order[middle]].first_op <= index)
			low = middle;
		else
			high = middle;
	}
	*function = vm->order[low];
	*insn = index - low;
}
