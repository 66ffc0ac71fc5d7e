// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations that compilers often write one behind the other, run by one handler of the
 * interpreter: a dispatch costs more than most of them. Only the first op changes. The others stay
 * where they are, so jumps to them need no thought, and neither do faults: a handler that touches
 * memory does so as the op that it was (vm->pc).
 */
#include "vm/vm_internal.h"

static const struct pair {
	uint16_t ops[3]; /* enum isa_op; the third may be absent: ISA_NOPS */
	uint16_t id;     /* enum vm_op_id */
} pairs[] = {
	/* The longest first. */
	{ { ISA_MOV64_X, ISA_ADD64_X, ISA_LDXB }, VM_OP_MOV_ADD_LDXB },
	{ { ISA_MOV64_X, ISA_ADD64_X, ISA_NOPS }, VM_OP_MOV_ADD },
	{ { ISA_MOV64_X, ISA_ADD64_K, ISA_NOPS }, VM_OP_MOV_ADD_K },
	{ { ISA_MOV64_X, ISA_AND64_K, ISA_NOPS }, VM_OP_MOV_AND_K },
	{ { ISA_MOV64_X, ISA_LSH64_K, ISA_NOPS }, VM_OP_MOV_LSH_K },
	{ { ISA_MOV64_X, ISA_RSH64_K, ISA_NOPS }, VM_OP_MOV_RSH_K },
	{ { ISA_LSH64_K, ISA_ADD64_X, ISA_NOPS }, VM_OP_LSH_ADD },
	{ { ISA_ADD64_X, ISA_LDXB, ISA_NOPS }, VM_OP_ADD_LDXB },
	{ { ISA_ADD64_X, ISA_LDXW, ISA_NOPS }, VM_OP_ADD_LDXW },
	{ { ISA_ADD64_X, ISA_LDXDW, ISA_NOPS }, VM_OP_ADD_LDXDW },
	{ { ISA_ADD64_K, ISA_JNE64_K, ISA_NOPS }, VM_OP_ADD_JNE_K },
	{ { ISA_ADD64_K, ISA_JNE64_X, ISA_NOPS }, VM_OP_ADD_JNE },
	{ { ISA_ADD64_K, ISA_JLT64_X, ISA_NOPS }, VM_OP_ADD_JLT },
	{ { ISA_ADD64_K, ISA_JGT64_X, ISA_NOPS }, VM_OP_ADD_JGT },
};

/* Is @op a value that @first has just written, and nothing else that it has? */
static bool goes_on(const struct vm_op *first, const struct vm_op *op, uint16_t id)
{
	switch (id) {
	case ISA_ADD64_X:
		/* LSH_ADD takes its operands one after the other, whichever they are. */
		return first->id == ISA_LSH64_K || (op->dst == first->dst && op->src != first->dst);
	case ISA_LDXB:
	case ISA_LDXW:
	case ISA_LDXDW:
		return op->src == first->dst;
	case ISA_JNE64_K:
	case ISA_JNE64_X:
	case ISA_JLT64_X:
	case ISA_JGT64_X:
		return true; /* taken one after the other */
	default:
		return op->dst == first->dst;
	}
}

static bool matches(const struct pair *pair, const struct vm_op *op, const struct vm_op *end)
{
	if (op->id != pair->ops[0])
		return false;
	for (int i = 1; i < 3 && pair->ops[i] != ISA_NOPS; i++)
		if (op + i >= end || op[i].id != pair->ops[i] || !goes_on(op, &op[i], pair->ops[i]))
			return false;
	return true;
}

static bool looks_up(const struct vm *vm, const struct vm_op *op)
{
	return (op->id == VM_OP_CALL_WHOLE || op->id == VM_OP_CALL_CONTEXT) &&
	       vm->natives[op->off].native->intrinsic == VM_ARRAY_LOOKUP;
}

void vm_pair(struct vm *vm)
{
	const struct vm_op *end = vm->ops + vm->nops;

	/* Forwards: what follows an op is still what it was. */
	for (struct vm_op *op = vm->ops; op < end; op++) {
		if (vm->image.narrays && looks_up(vm, op))
			op->id = VM_OP_CALL_ARRAY;
		if (op->id != ISA_MOV64_X && op->id != ISA_ADD64_X && op->id != ISA_ADD64_K &&
		    op->id != ISA_LSH64_K)
			continue;
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
			if (matches(&pairs[i], op, end)) {
				op->id = pairs[i].id;
				break;
			}
		}
	}
}
