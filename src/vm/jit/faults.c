// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a fault signal means when it comes from compiled code or from C that compiled code called;
 * and code that vm_interrupt() has closed.
 *
 * vm_interrupt() stores what it wants, then takes the permission to execute from the code. The next
 * fetch of an instruction faults. The thread that runs the vm gives the permission back and then
 * looks for what is wanted: an interrupt that comes in between closes the code after it was opened,
 * so that none is lost; nothing wanted means that it came too late, or was taken already, and the
 * fetch is tried again. C functions are not torn out: they return to a fetch.
 */
#include <errno.h>
#include <time.h>

#include "vm/jit/compiled.h"

#define NEAR_STACK_POINTER 4096 /* bytes below it that a call or a prologue touches */

static void wait_a_little(void)
{
	const struct timespec delay = { .tv_nsec = 1000000 };
	int saved_errno = errno;

	nanosleep(&delay, NULL);
	errno = saved_errno;
}

/* A thread that does not run the vm must leave the interrupt to the one that does. Threads that the
 * script made end with its call: the one that runs it may be waiting for them. */
static enum jit_fetch fetch_in_thread(struct vm *vm)
{
	const struct jit_memory *memory = &vm->jit->memory;

	if (vm->abandoned && signal_thread_is_ours())
		signal_thread_end();
	if (vm->abandoned)
		return JIT_FETCH_OTHER;
	if (atomic_load(&vm->base) && vm_interrupt_pending(vm)) {
		if (signal_thread_is_ours())
			signal_thread_end();
		wait_a_little();
		return JIT_FETCH_AGAIN;
	}
	if (jit_memory_open(memory, true))
		return JIT_FETCH_OTHER;
	if (vm_interrupt_pending(vm))
		jit_memory_open(memory, false);
	return JIT_FETCH_AGAIN;
}

enum jit_fetch jit_on_fetch(struct vm_signal *signal, struct vm **ret)
{
	struct vm *vm;

	if (signal->number != SIGSEGV || !jit_memory_any() || !signal_is_fetch(signal))
		return JIT_FETCH_OTHER;
	vm = jit_memory_owner(signal->pc);
	if (!vm)
		return JIT_FETCH_OTHER;
	if (!vm_runs_here(vm))
		return fetch_in_thread(vm);
	if (jit_memory_open(&vm->jit->memory, true))
		return JIT_FETCH_OTHER;
	*ret = vm;
	return vm_take_interrupt(vm) ? JIT_FETCH_INTERRUPTED : JIT_FETCH_AGAIN;
}

/* ---- where ----------------------------------------------------------------------------- */

/* The range that contains an offset of the code, JIT_NOWHERE: none. */
static uint32_t range_at(const struct jit *jit, uint32_t offset)
{
	uint32_t low = 0, high = jit->nemitted;

	if (!high)
		return JIT_NOWHERE;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (jit->ranges[jit->emitted[middle]].first <= offset)
			low = middle;
		else
			high = middle;
	}
	low = jit->emitted[low];
	return offset >= jit->ranges[low].first && offset < jit->ranges[low].end ? low
										 : JIT_NOWHERE;
}

/* The last place at or before an offset, NULL: none. */
static const struct jit_place *place_at(const struct jit *jit, uint32_t offset)
{
	size_t low = 0, high = jit->nplaces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (jit->places[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &jit->places[low - 1] : NULL;
}

bool jit_locate(const struct vm *vm, uintptr_t pc, uint32_t *function, uint32_t *insn)
{
	const struct jit *jit = vm->jit;
	uint32_t offset = pc - (uintptr_t)jit->memory.code;
	uint32_t range = range_at(jit, offset);
	const struct jit_place *place;

	if (range >= vm->nfunctions)
		return false;
	*function = range;
	*insn = vm->functions[range].first;
	place = place_at(jit, offset);
	if (place && place->offset >= jit->ranges[range].first && place->insn != JIT_NO_INSN)
		*insn = place->insn;
	return true;
}

const void *vm_machine_code(const struct vm *vm, uint32_t function, size_t *size)
{
	const struct jit_range *range;

	if (!vm->jit || function >= vm->nfunctions)
		return NULL;
	range = &vm->jit->ranges[function];
	*size = range->end - range->first;
	return vm->jit->memory.code + range->first;
}

/* The place of a byte of the function's machine code, NULL: none. */
static const struct jit_place *place_in(const struct vm *vm, uint32_t function, size_t offset)
{
	const struct jit_range *range;
	const struct jit_place *place;

	if (!vm->jit || function >= vm->nfunctions)
		return NULL;
	range = &vm->jit->ranges[function];
	if (offset >= range->end - range->first)
		return NULL;
	place = place_at(vm->jit, range->first + offset);
	return place && place->offset >= range->first ? place : NULL;
}

int64_t vm_machine_insn(const struct vm *vm, uint32_t function, size_t offset)
{
	const struct jit_place *place = place_in(vm, function, offset);

	return place && place->insn != JIT_NO_INSN ? (int64_t)place->insn : -1;
}

bool vm_machine_table(const struct vm *vm, uint32_t function, size_t offset)
{
	const struct jit_place *place = place_in(vm, function, offset);

	return place && place->table;
}

/* ---- what ------------------------------------------------------------------------------- */

const struct vm_native *jit_native_at(const struct vm *vm, uint32_t insn)
{
	const struct bpf_insn *code = &vm->jit->code[insn];

	switch (isa_row(isa_find(code))->form) {
	case ISA_FORM_CALL:
		return vm->natives[code->imm].native;
	case ISA_FORM_CALLX:
		return closure_native(vm, vm->target);
	default:
		return NULL;
	}
}

static void describe_native(const struct vm *vm, uint32_t insn, struct vm_fault *fault)
{
	const struct vm_native *native = jit_native_at(vm, insn);

	fault->kind = VM_FAULT_NATIVE;
	fault->native = native ? native->name : NULL;
	fault->foreign = !native || native->foreign;
}

static void describe_access(const struct vm *vm, const struct vm_signal *signal,
			    const struct isa_row *row, struct vm_fault *fault)
{
	bool load = row->form == ISA_FORM_LOAD;

	/* A load that became one instruction with the store behind it: the page is only readable. */
	if (load && signal->write && signal->present)
		load = false;
	fault->kind = load ? VM_FAULT_READ : VM_FAULT_WRITE;
	fault->write = !load;
	fault->read = load;
	fault->size = row->width;
	/* Not what the kernel says: it knows no address for a non-canonical one. */
	fault->address =
		vm->jit->target->fault_address((const uint8_t *)signal->pc, signal->context);
}

/* Calls and prologues push; a script's own access there cannot fault unless the stack is used up. */
static bool is_stack_overflow(const struct vm_signal *signal)
{
	uintptr_t address = (uintptr_t)signal->info->si_addr;

	return signal->number == SIGSEGV && signal->info->si_code != SI_KERNEL &&
	       address + NEAR_STACK_POINTER >= signal->sp &&
	       address < signal->sp + NEAR_STACK_POINTER;
}

/* A jump from the stub of callx to an address that x86-64 does not even try. */
static bool is_bad_jump(const struct vm *vm, const struct vm_signal *signal)
{
	uint32_t offset = signal->pc - (uintptr_t)vm->jit->memory.code;

	return offset >= vm->jit->stubs.first && offset < vm->jit->stubs.end &&
	       signal->number == SIGSEGV && fault_is_at(signal, vm->target);
}

static bool describe_in_code(const struct vm *vm, struct vm_signal *signal, struct vm_fault *fault)
{
	const struct isa_row *row;
	uint32_t function, insn;

	if (is_stack_overflow(signal)) {
		fault->kind = VM_FAULT_STACK;
		fault->address = 0;
		return true;
	}
	if (is_bad_jump(vm, signal)) {
		signal_undo_call(signal);
		signal->undone = true;
	}
	if (!jit_locate(vm, signal->pc, &function, &insn))
		return false; /* a bug in the vm, not in the script */
	row = isa_row(isa_find(&vm->jit->code[insn]));
	if (signal->number == SIGILL) {
		fault->kind = VM_FAULT_EXECUTE; /* the trap behind a function's end */
		fault->address = 0;
		fault->signal = 0;
	} else if (signal->undone || row->form == ISA_FORM_CALLX) {
		fault->kind = VM_FAULT_EXECUTE;
		fault->address = vm->target;
	} else if (row->form == ISA_FORM_CALL) {
		describe_native(vm, insn, fault); /* a lookup that was inlined */
	} else if (isa_touches_memory(row)) {
		describe_access(vm, signal, row, fault);
	} else {
		return false;
	}
	return true;
}

bool jit_describe(struct vm *vm, struct vm_signal *signal, struct vm_fault *fault)
{
	struct vm_fault where = { .kind = VM_FAULT_NATIVE };

	if (jit_memory_owner(signal->pc) == vm)
		return describe_in_code(vm, signal, fault);
	jit_trace(vm, signal, &where);
	if (!where.ntrace)
		return false; /* C that entered the vm, but called no function of it */
	describe_native(vm, where.trace[0].insn, fault);
	return true;
}

void jit_trace(struct vm *vm, const struct vm_signal *signal, struct vm_fault *fault)
{
	const struct vm_base *base = atomic_load(&vm->base);

	jit_frames_trace(vm, signal, vm_runs_here(vm) ? (uintptr_t)&base->activation : 0, fault);
	if (!fault->ntrace && signal && signal->scanned)
		fault_add_trace(fault, signal->function, signal->insn);
}
