// SPDX-License-Identifier: BSD-2-Clause
/*
 * The interpreter as an engine: entry from C, what a fault signal means when it comes from the loop
 * or from a C function that the loop called, and the trace.
 */
#include "vm/interp.h"

#include <errno.h>
#include <stdlib.h>

#include "vm/signals.h"

static int prepare(struct vm *vm, struct err *err)
{
	int rc = vm_make_stack(vm, err);

	if (rc)
		return rc;
	vm->frames = malloc(vm->options.call_depth * sizeof(*vm->frames));
	if (!vm->frames)
		return err_nomem(err);
	vm->frame = vm->frames;
	vm->frame_limit = vm->frames + vm->options.call_depth;
	rc = closure_prepare(vm, err);
	rc = rc ? rc : vm_decode(vm, &vm->image, err);
	return rc ? rc : interp_prepare(vm, err);
}

static void release(struct vm *vm)
{
	closure_release(vm);
	free(vm->frames);
	free(vm->ops);
}

/*
 * Pushes the frame that ends the loop's run, and runs. Called from C that the script called, it
 * uses the stack below the frame of the function that called that.
 */
static uint64_t call(struct vm *vm, const struct vm_activation *activation, uint32_t function,
		     const uint64_t *args)
{
	const struct vm_code *code = &vm->functions[function];
	uint64_t stack = activation->pc ? vm_stack_live(vm) : vm->stack_top;

	if (vm->frame == vm->frame_limit || stack < vm->stack_low + code->frame)
		fault_raise(vm, VM_FAULT_STACK);
	vm->frame->return_to = &vm->stop;
	vm->frame->saved[0] = (uintptr_t)activation->pc;
	vm->frame++;
	return interp_run(vm, &vm->ops[code->first_op], args, stack);
}

static uint64_t stack_live(const struct vm *vm)
{
	uint32_t function, insn;

	if (!vm->pc || !vm->registers)
		return 0;
	vm_locate(vm, vm->pc, &function, &insn);
	return vm->registers[ISA_FRAME] - vm->functions[function].frame;
}

static bool touches_memory(const struct vm_op *op)
{
	return op->id < ISA_NOPS && isa_touches_memory(isa_row(op->id));
}

/* The C function that @op calls, as far as the vm knows it. */
static const struct vm_native *native_of(const struct vm *vm, const struct vm_op *op)
{
	if (op->id != ISA_CALLX)
		return vm->natives[op->off].native;
	return closure_native(vm, vm->target);
}

/* Walks the frames, innermost first, through nested calls; async-signal-safe. */
static void trace(struct vm *vm, const struct vm_signal *signal, struct vm_fault *fault)
{
	const struct vm_frame *frame = vm->frame;
	const struct vm_op *op = vm->pc;
	uint32_t function, insn;

	(void)signal;
	if ((fault->kind == VM_FAULT_ABORT || fault->kind == VM_FAULT_ARGUMENT) && op &&
	    vm_op_calls_c(op)) {
		const struct vm_native *native = native_of(vm, op);

		fault->native = native ? native->name : NULL;
	}
	while (op) {
		vm_locate(vm, op, &function, &insn);
		fault_add_trace(fault, function, insn);
		if (frame == vm->frames)
			break;
		frame--;
		if (frame->return_to != &vm->stop) {
			op = frame->return_to - 1;
			continue;
		}
		op = (const struct vm_op *)(uintptr_t)frame->saved[0];
		if (op && vm_op_calls_c(op)) {
			const struct vm_native *native = native_of(vm, op);

			fault->torn |= !native || native->foreign;
		}
	}
}

static void describe_access(const struct vm *vm, const struct vm_op *op, struct vm_fault *fault)
{
	const struct isa_row *row = isa_row(op->id);
	uint32_t base = row->form == ISA_FORM_LOAD ? op->src : op->dst;

	/* An atomic is a write, though on arm64 the load of its pair faults first. */
	fault->kind = row->form == ISA_FORM_LOAD ? VM_FAULT_READ : VM_FAULT_WRITE;
	fault->write = fault->kind == VM_FAULT_WRITE;
	fault->read = !fault->write;
	/* Not what the kernel says: it knows no address for a non-canonical one. */
	fault->address = vm->registers[base] + (int64_t)op->off;
	fault->size = row->width;
}

/* Did the call get into a function at all? */
static bool arrived(const struct vm *vm, const struct vm_op *op, const struct vm_signal *signal)
{
	return op->id != ISA_CALLX || !fault_is_at(signal, vm->target);
}

static bool describe(struct vm *vm, struct vm_signal *signal, struct vm_fault *fault)
{
	const struct vm_op *op = vm->pc;
	const struct vm_native *native;

	if (!op)
		return false;
	if (touches_memory(op)) {
		if (!interp_owns(signal->pc))
			return false; /* a bug in the vm, not in the script */
		describe_access(vm, op, fault);
		return true;
	}
	if (!vm_op_calls_c(op))
		return false;
	if (!arrived(vm, op, signal)) {
		fault->kind = VM_FAULT_EXECUTE;
		fault->address = vm->target;
		return true;
	}
	native = native_of(vm, op);
	fault->kind = VM_FAULT_NATIVE;
	fault->native = native ? native->name : NULL;
	fault->foreign = !native || native->foreign;
	return true;
}

const struct vm_engine vm_interpreter = {
	.prepare = prepare,
	.release = release,
	.call = call,
	.interrupt = interp_interrupt,
	.describe = describe,
	.trace = trace,
	.stack_live = stack_live,
	.address = closure_address,
};
