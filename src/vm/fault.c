// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults: from a signal, or found by the vm itself, to the return of the outermost vm_call().
 *
 * A fault signal is ours when it comes from code of a vm, or from a C function that such code
 * called. In a thread that runs the vm it ends the outermost vm_call(). In one that does not (the
 * script made it, or a script function is a signal's handler there) it ends that thread, and the
 * vm_call() that runs elsewhere at its next instruction of script code. Everything else goes to the
 * handler that was there before.
 *
 * What runs in a thread is the thread's own: hence a thread-local variable, an exception to the rule
 * of the house that there are none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vm/jit/engine.h"
#include "vm/signals.h"
#include "vm/vm_internal.h"

THREAD_LOCAL struct vm_activation *running;

struct vm_activation *fault_running(void)
{
	return running;
}

void fault_set_running(struct vm_activation *activation)
{
	running = activation;
}

bool vm_runs_here(const struct vm *vm)
{
	for (const struct vm_activation *a = running; a; a = a->outer)
		if (a->vm == vm)
			return true;
	return false;
}

void fault_add_trace(struct vm_fault *fault, uint32_t function, uint32_t insn)
{
	if (fault->ntrace == VM_TRACE_MAX)
		return;
	fault->trace[fault->ntrace].function = function;
	fault->trace[fault->ntrace++].insn = insn;
}

/* Is the machine at the target of a call that did not arrive? */
bool fault_is_at(const struct vm_signal *signal, uint64_t target)
{
#if defined(__x86_64__)
	/* A call of a non-canonical address faults where it stands. */
	return signal->pc == target || (uint64_t)((int64_t)(target << 16) >> 16) != target;
#elif defined(__aarch64__)
	/* A branch faults at its target, without the tag in the top byte. */
	return !((signal->pc ^ target) << 8);
#else
	return signal->pc == target;
#endif
}

/* Forgets the calls of other vms that lie between here and our outermost call. */
static void leave(struct vm *vm) __attribute__((noreturn));
static void leave(struct vm *vm)
{
	struct vm_base *base = atomic_load(&vm->base);

	for (struct vm_activation *a = running; a != &base->activation; a = a->outer) {
		struct vm *other = a->vm;

		if (other == vm || &atomic_load(&other->base)->activation != a)
			continue;
		vm_reset(other);
	}
	siglongjmp(base->jump, 1);
}

/* ---- threads that do not run the vm --------------------------------------------- */

enum { THREAD_FAULT_NONE, THREAD_FAULT_CLAIMED, THREAD_FAULT_KEPT };

/* The first fault is kept, for the vm_call() that runs in another thread. */
static void fault_in_thread(struct vm *vm, const struct vm_fault *fault) __attribute__((noreturn));
static void fault_in_thread(struct vm *vm, const struct vm_fault *fault)
{
	int none = THREAD_FAULT_NONE;

	if (atomic_compare_exchange_strong(&vm->thread_faults, &none, THREAD_FAULT_CLAIMED)) {
		vm->thread_fault = *fault;
		atomic_store(&vm->thread_faults, THREAD_FAULT_KEPT);
		vm_interrupt(vm, false);
	}
	signal_thread_end();
}

bool fault_take_from_thread(struct vm *vm)
{
	if (atomic_load_explicit(&vm->thread_faults, memory_order_relaxed) == THREAD_FAULT_NONE ||
	    atomic_load(&vm->thread_faults) != THREAD_FAULT_KEPT)
		return false;
	vm->fault = vm->thread_fault;
	atomic_store(&vm->thread_faults, THREAD_FAULT_NONE);
	return true;
}

/* ---- ways into a fault ------------------------------------------------------------ */

static void finish(struct vm *vm, const struct vm_fault *fault) __attribute__((noreturn));
static void finish(struct vm *vm, const struct vm_fault *fault)
{
	if (fault->kind != VM_FAULT_INTERRUPTED || !fault_take_from_thread(vm))
		vm->fault = *fault;
	leave(vm);
}

static void complete(struct vm *vm, const struct vm_signal *signal, struct vm_fault *fault)
{
	uint32_t insn = fault->insn;

	fault->ntrace = 0;
	fault->torn = false;
	vm->engine->trace(vm, signal, fault);
	if (insn == VM_INSN_OF_PC)
		insn = fault->ntrace ? fault->trace[0].insn : 0;
	else if (fault->ntrace)
		fault->trace[0].insn = insn;
	fault->insn = insn;
}

void fault_raise(struct vm *vm, enum vm_fault_kind kind)
{
	struct vm_fault what = { .kind = kind, .insn = VM_INSN_OF_PC };

	fault_raise_as(vm, &what);
}

void fault_raise_as(struct vm *vm, const struct vm_fault *what)
{
	struct vm_fault fault = *what;

	if (!atomic_load(&vm->base) && signal_thread_is_ours())
		signal_thread_end(); /* nobody runs the vm, and nobody can be told */
	if (!atomic_load(&vm->base))
		abort(); /* vm_raise() without a vm_call(): our own bug */
	complete(vm, NULL, &fault);
	if (!vm_runs_here(vm))
		fault_in_thread(vm, &fault);
	finish(vm, &fault);
}

/* The vm whose code, or a C function called by it, the signal interrupted; NULL: none. */
static struct vm *owner_of(struct vm_signal *signal)
{
	struct vm *compiled = jit_owner(signal, (uintptr_t)running);

	if (compiled && (!running || vm_runs_here(compiled)))
		return compiled;
	return running ? running->vm : NULL;
}

bool fault_on_signal(struct vm_signal *signal)
{
	struct vm_fault fault = { .kind = VM_FAULT_INTERRUPTED, .insn = VM_INSN_OF_PC };
	struct vm *vm;

	jit_second_fault();
	switch (jit_on_fetch(signal, &vm)) {
	case JIT_FETCH_AGAIN:
		return true;
	case JIT_FETCH_INTERRUPTED:
		complete(vm, signal, &fault);
		finish(vm, &fault);
	case JIT_FETCH_OTHER:
		break;
	}
	if (signal_was_sent(signal))
		return false;
	vm = owner_of(signal);
	if (vm && !running && !atomic_load(&vm->base) && signal_thread_is_ours())
		signal_thread_end();
	if (!vm || !atomic_load(&vm->base))
		return false;
	fault = (struct vm_fault){ .insn = VM_INSN_OF_PC,
				   .signal = signal->number,
				   .write = signal->write,
				   .read = signal->read };
	if (signal->number != SIGABRT)
		fault.address = (uintptr_t)signal->info->si_addr;
	if (!vm->engine->describe(vm, signal, &fault))
		return false;
	complete(vm, signal, &fault);
	if (!running)
		fault_in_thread(vm, &fault);
	finish(vm, &fault);
}

/* ---- in words ------------------------------------------------------------------------ */

static const char *signal_name(int number)
{
	const char *name = sigabbrev_np(number);

	return name ? name : "?";
}

const char *vm_fault_text(const struct vm_fault *fault, char *text, size_t size)
{
	unsigned long long address = fault->address;

	switch (fault->kind) {
	case VM_FAULT_READ:
	case VM_FAULT_WRITE:
		snprintf(text, size, "%s of %u byte%s at 0x%llx",
			 fault->kind == VM_FAULT_READ ? "read" : "write", fault->size,
			 fault->size == 1 ? "" : "s", address);
		break;
	case VM_FAULT_EXECUTE:
		if (address)
			snprintf(text, size, "call of 0x%llx, which is no function", address);
		else if (fault->signal)
			snprintf(text, size, "call of a null pointer");
		else
			snprintf(text, size, "function ran off its end");
		break;
	case VM_FAULT_STACK:
		snprintf(text, size, "stack overflow: calls nest too deep");
		break;
	case VM_FAULT_NATIVE:
		if (fault->signal == SIGSEGV || fault->signal == SIGBUS)
			snprintf(text, size, "%s at 0x%llx inside %s (SIG%s)",
				 fault->write ? "write" : (fault->read ? "read" : "access"),
				 address, fault->native ? fault->native : "a C function",
				 signal_name(fault->signal));
		else
			snprintf(text, size, "SIG%s inside %s", signal_name(fault->signal),
				 fault->native ? fault->native : "a C function");
		break;
	case VM_FAULT_INTERRUPTED:
		snprintf(text, size, "interrupted");
		break;
	case VM_FAULT_BUDGET:
		snprintf(text, size, "instruction budget used up");
		break;
	case VM_FAULT_ARGUMENT:
		snprintf(text, size, "%s(): %s", fault->native ? fault->native : "C function",
			 fault->text);
		break;
	case VM_FAULT_ABORT:
		snprintf(text, size, "%s", fault->text);
		break;
	default:
		snprintf(text, size, "no fault");
	}
	return text;
}
