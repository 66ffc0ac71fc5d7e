// SPDX-License-Identifier: BSD-2-Clause
#include "vm/vm_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* What is known of an instruction slot. */
enum { SLOT_START = 1, SLOT_SECOND = 2, SLOT_ENTRY = 4 };

struct validator {
	const struct vm_image *image;
	struct vm *vm;
	uint8_t *slots;
	struct err *err;
	uint32_t at;    /* instruction that is looked at */
	int32_t lowest; /* stack offset that the function reaches down to */
	uint16_t known; /* registers that hold r10 plus a constant, in program order */
	int64_t offset[ISA_REGISTERS];
};

#define refuse(v, ...) err_set((v)->err, -EINVAL, __VA_ARGS__)

/* One pass over the slots: decodes each instruction alone and marks where instructions start. */
static int check_slots(struct validator *v)
{
	const struct vm_image *image = v->image;
	size_t i = 0;
	int op;

	while (i < image->ncode) {
		v->at = i;
		op = isa_decode(&image->code[i], image->ncode - i, v->err);
		if (op < 0)
			return op;
		v->slots[i] |= SLOT_START;
		if (isa_slots(isa_row(op)) == 2)
			v->slots[++i] |= SLOT_SECOND;
		i++;
	}
	return 0;
}

static int check_function_bounds(struct validator *v)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < v->vm->nordered; i++) {
		const struct vm_code *code = &v->vm->functions[v->vm->order[i]];

		v->at = code->first;
		if (code->first < end)
			return refuse(v, "two functions overlap");
		if (code->first > end) {
			v->at = end;
			return refuse(v, "belongs to no function");
		}
		if (!code->count)
			return refuse(v, "function is empty");
		if (code->count > v->image->ncode - code->first)
			return refuse(v, "function reaches past the end of the code");
		if (!(v->slots[code->first] & SLOT_START))
			return refuse(v, "function starts inside a 64-bit load");
		v->slots[code->first] |= SLOT_ENTRY;
		end = code->first + code->count;
	}
	if (end < v->image->ncode) {
		v->at = end;
		return refuse(v, "belongs to no function");
	}
	return 0;
}

static int check_jump(struct validator *v, const struct vm_code *code, int64_t distance)
{
	int64_t target = (int64_t)v->at + 1 + distance;

	if (target < code->first || target >= (int64_t)code->first + code->count)
		return refuse(v, "jumps to instruction %lld, out of its function",
			      (long long)target);
	if (v->slots[target] & SLOT_SECOND)
		return refuse(v, "jumps into the middle of the 64-bit load at %lld",
			      (long long)target - 1);
	return 0;
}

static int check_local_call(struct validator *v, int64_t distance)
{
	int64_t target = (int64_t)v->at + 1 + distance;

	if (target < 0 || target >= (int64_t)v->image->ncode)
		return refuse(v, "calls instruction %lld, out of the code", (long long)target);
	if (!(v->slots[target] & SLOT_ENTRY))
		return refuse(v, "calls instruction %lld, which starts no function",
			      (long long)target);
	return 0;
}

static int check_native_call(struct validator *v, const struct bpf_insn *insn)
{
	if (insn->imm < 0 || (uint32_t)insn->imm >= v->image->nnatives)
		return refuse(v, "calls native function %d: there are %zu", insn->imm,
			      v->image->nnatives);
	if (!v->image->natives[insn->imm].function)
		return refuse(v, "calls native function %d, which is not there", insn->imm);
	if (v->vm->options.checked && !v->image->natives[insn->imm].contract)
		return refuse(v, "calls %s(), which has no contract: checked mode needs one",
			      v->image->natives[insn->imm].name);
	return 0;
}

static int check_lddw(struct validator *v, const struct bpf_insn *insn)
{
	switch (insn->src_reg) {
	case 0:
		return 0;
	case BPF_PSEUDO_FUNC:
		if (insn[1].imm || insn->imm < 0 || (uint32_t)insn->imm >= v->vm->nfunctions)
			return refuse(v, "takes the address of function %d: there are %u",
				      insn->imm, v->vm->nfunctions);
		return 0;
	default:
		return refuse(v, "64-bit load of kind %u (%s) was not resolved", insn->src_reg,
			      isa_row(isa_find(insn))->text);
	}
}

/*
 * Stack use. Compilers address the frame through r10 or through a copy of it plus a constant;
 * copies are followed in program order, without looking at joins: an estimate from above is not
 * needed, since options.frame_bytes states what the compiler was told, and accesses that escape
 * this view meet the guard pages.
 */
static void reach(struct validator *v, int64_t offset)
{
	if (offset < v->lowest)
		v->lowest = offset < INT32_MIN ? INT32_MIN : offset;
}

static int note_access(struct validator *v, uint32_t base, const struct isa_row *row, int16_t off)
{
	if (base == ISA_FRAME && off + row->width > 0)
		return refuse(v, "accesses the stack above its frame, at r10%+d", off);
	if (v->known & (1u << base))
		reach(v, v->offset[base] + off);
	return 0;
}

static void note_alu(struct validator *v, enum isa_op op, const struct bpf_insn *insn)
{
	uint16_t dst = 1u << insn->dst_reg;

	if (op == ISA_MOV64_X && (v->known & (1u << insn->src_reg))) {
		v->known |= dst;
		v->offset[insn->dst_reg] = v->offset[insn->src_reg];
		return;
	}
	if (op == ISA_ADD64_K && (v->known & dst)) {
		v->offset[insn->dst_reg] += insn->imm;
		reach(v, v->offset[insn->dst_reg]);
		return;
	}
	if (isa_writes_dst(isa_row(op)))
		v->known &= ~dst;
}

static int check_insn(struct validator *v, const struct vm_code *code)
{
	const struct bpf_insn *insn = &v->image->code[v->at];
	enum isa_op op = isa_find(insn);
	const struct isa_row *row = isa_row(op);
	int rc = 0;

	switch (row->form) {
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
	case ISA_FORM_GOTO:
		return check_jump(v, code, insn->off);
	case ISA_FORM_GOTOL:
		return check_jump(v, code, insn->imm);
	case ISA_FORM_CALL:
		v->known &= ~0x3f; /* r0 to r5 do not survive */
		if (op == ISA_CALL_KFUNC)
			return refuse(v, "calls kernel function #%d: only kernel programs can",
				      insn->imm);
		return check_native_call(v, insn);
	case ISA_FORM_CALL_LOCAL:
		v->known &= ~0x3f;
		return check_local_call(v, insn->imm);
	case ISA_FORM_CALLX:
		v->known &= ~0x3f;
		return 0;
	case ISA_FORM_PACKET:
		return refuse(v, "%s: legacy packet access has no meaning here", row->text);
	case ISA_FORM_LDDW:
		rc = check_lddw(v, insn);
		break;
	case ISA_FORM_LOAD:
		rc = note_access(v, insn->src_reg, row, insn->off);
		break;
	case ISA_FORM_STORE_K:
	case ISA_FORM_STORE_X:
	case ISA_FORM_ATOMIC:
	case ISA_FORM_CMPXCHG:
		rc = note_access(v, insn->dst_reg, row, insn->off);
		break;
	default:
		break;
	}
	note_alu(v, op, insn);
	return rc;
}

/*
 * The last instruction must not fall through. After a call it may: the called function may be
 * one that does not return, and the decoder puts a trap there for the case that it does.
 */
static int check_end(struct validator *v, const struct vm_code *code)
{
	uint32_t last = code->first + code->count - 1;
	const struct isa_row *row;

	v->at = last;
	if (v->slots[last] & SLOT_SECOND)
		return refuse(v, "function runs off its end");
	row = isa_row(isa_find(&v->image->code[last]));
	switch (row->form) {
	case ISA_FORM_EXIT:
	case ISA_FORM_GOTO:
	case ISA_FORM_GOTOL:
	case ISA_FORM_CALL:
	case ISA_FORM_CALL_LOCAL:
	case ISA_FORM_CALLX:
		return 0;
	default:
		return refuse(v, "function runs off its end");
	}
}

static int check_function(struct validator *v, struct vm_code *code)
{
	uint32_t wanted = v->vm->options.frame_bytes;
	int rc;

	v->lowest = 0;
	v->known = 1u << ISA_FRAME;
	v->offset[ISA_FRAME] = 0;
	for (uint32_t i = 0; i < code->count; i++) {
		v->at = code->first + i;
		if (v->slots[v->at] & SLOT_SECOND)
			continue;
		rc = check_insn(v, code);
		if (rc)
			return rc;
	}
	rc = check_end(v, code);
	if (rc)
		return rc;
	v->at = code->first;
	if (wanted < VM_MIN_FRAME)
		wanted = VM_MIN_FRAME;
	if ((uint64_t) - (int64_t)v->lowest > wanted)
		wanted = -(int64_t)v->lowest;
	if (wanted > v->vm->options.stack_bytes)
		return refuse(v, "function needs %u bytes of stack, there are %u", wanted,
			      v->vm->options.stack_bytes);
	code->frame = (wanted + 15) & ~15u;
	return 0;
}

static int check_all(struct validator *v)
{
	int rc;

	rc = check_slots(v);
	if (!rc)
		rc = check_function_bounds(v);
	for (uint32_t i = 0; !rc && i < v->vm->nordered; i++)
		rc = check_function(v, &v->vm->functions[v->vm->order[i]]);
	return rc;
}

int vm_validate(struct vm *vm, const struct vm_image *image, uint32_t *bad_insn, struct err *err)
{
	CLEANUP(free_pointer)
	uint8_t *slots = calloc(image->ncode, 1);
	struct validator v = { .image = image, .vm = vm, .slots = slots, .err = err };
	int rc;

	if (!slots)
		return err_nomem(err);
	rc = check_all(&v);
	if (rc == -EINVAL) {
		err_prepend(err, rc, "instruction %u", v.at);
		if (bad_insn)
			*bad_insn = v.at;
	}
	return rc;
}
