// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults: from a signal, or found by the vm itself, to the return of the outermost vm_call().
 *
 * A fault signal is ours when this thread runs a vm and the machine was either in the engine's
 * code at an instruction that touches memory, or in a C function that the vm called. Everything
 * else goes to the handler that was there before. Handlers run on an alternate stack, so that an
 * exhausted C stack is a fault like any other.
 *
 * Signal dispositions belong to the process and alternate stacks to the thread, hence the static
 * variables of this file, an exception to the rule of the house that there are none.
 */
#include "vm/vm_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define ALTERNATE_STACK (64 << 10) /* a chained handler may want more than ours does */

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;                  /* under lock */
static bool have_key;                       /* under lock */
static pthread_key_t key;                   /* frees a thread's alternate stack when it ends */
static struct sigaction previous[NSIGNALS]; /* written under lock, while the handler is not set */

/* initial-exec: the handler must not allocate. */
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL struct vm_activation *running;
THREAD_LOCAL void *alternate;
THREAD_LOCAL bool prepared;

struct vm_activation *fault_running(void)
{
	return running;
}

void fault_set_running(struct vm_activation *activation)
{
	running = activation;
}

/* What the processor says about the access. */
struct machine {
	uintptr_t pc;
	bool write, read; /* neither: it does not say */
};

#if defined(__x86_64__)
static struct machine machine_of(const ucontext_t *context)
{
	const greg_t *registers = context->uc_mcontext.gregs;
	bool page_fault = registers[REG_TRAPNO] == 14;
	bool write = registers[REG_ERR] & 2; /* W/R bit of a page fault's error code */

	return (struct machine){ .pc = registers[REG_RIP],
				 .write = page_fault && write,
				 .read = page_fault && !write };
}

/* Is the machine at the target of a call that did not arrive? A call of a non-canonical address
 * faults where it stands. */
static bool is_at(const struct machine *machine, uint64_t target)
{
	return machine->pc == target || (uint64_t)((int64_t)(target << 16) >> 16) != target;
}
#elif defined(__aarch64__)
/* The exception syndrome is a record behind the registers: WnR is bit 6 of a data abort's. */
static struct machine machine_of(const ucontext_t *context)
{
	const uint8_t *at = context->uc_mcontext.__reserved;
	const uint8_t *end = at + sizeof(context->uc_mcontext.__reserved);
	struct machine machine = { .pc = context->uc_mcontext.pc };

	while (end - at >= (ptrdiff_t)sizeof(struct esr_context)) {
		struct esr_context record;

		memcpy(&record, at, sizeof(record));
		if (!record.head.size)
			break;
		if (record.head.magic == ESR_MAGIC) {
			uint32_t class = record.esr >> 26 & 0x3f;

			if (class != 0x24 && class != 0x25)
				break;
			machine.write = record.esr & 1 << 6;
			machine.read = !machine.write;
			break;
		}
		at += record.head.size;
	}
	return machine;
}

/* A branch faults at its target, without the tag in the top byte. */
static bool is_at(const struct machine *machine, uint64_t target)
{
	return !((machine->pc ^ target) << 8);
}
#else
static struct machine machine_of(const ucontext_t *context)
{
	(void)context;
	return (struct machine){ 0 };
}

static bool is_at(const struct machine *machine, uint64_t target)
{
	return machine->pc == target;
}
#endif

static bool touches_memory(const struct vm_op *op)
{
	if (op->id >= ISA_NOPS)
		return false;
	switch (isa_row(op->id)->form) {
	case ISA_FORM_LOAD:
	case ISA_FORM_STORE_K:
	case ISA_FORM_STORE_X:
	case ISA_FORM_ATOMIC:
	case ISA_FORM_CMPXCHG:
		return true;
	default:
		return false;
	}
}

/* The C function that @op calls, as far as the vm knows it. */
static const struct vm_native *native_of(const struct vm *vm, const struct vm_op *op)
{
	const struct vm_address *known;

	if (op->id != ISA_CALLX)
		return vm->natives[op->off].native;
	if (vm->call_by_number && vm->target < vm->nnatives)
		return vm->natives[vm->target].native;
	known = closure_find(vm, vm->target);
	return known && known->native ? vm->natives[known->index].native : NULL;
}

/* Walks the frames, innermost first, through nested calls; async-signal-safe. */
static void write_trace(struct vm *vm)
{
	const struct vm_frame *frame = vm->frame;
	struct vm_fault *fault = &vm->fault;
	const struct vm_op *op = vm->pc;
	uint32_t function, insn;

	fault->ntrace = 0;
	fault->torn = false;
	while (op) {
		vm_locate(vm, op, &function, &insn);
		if (fault->ntrace < VM_TRACE_MAX) {
			fault->trace[fault->ntrace].function = function;
			fault->trace[fault->ntrace++].insn = insn;
		}
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
	fault->insn = fault->ntrace ? fault->trace[0].insn : 0;
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
		other->pc = NULL;
		other->registers = NULL;
		other->frame = other->frames;
		atomic_store(&other->base, NULL);
	}
	siglongjmp(base->jump, 1);
}

void fault_raise(struct vm *vm, enum vm_fault_kind kind)
{
	struct vm_fault what = { .kind = kind, .insn = VM_INSN_OF_PC };

	if (kind == VM_FAULT_ABORT) {
		memcpy(what.text, vm->fault.text, sizeof(what.text));
		if (vm->pc && vm_op_calls_c(vm->pc)) {
			const struct vm_native *native = native_of(vm, vm->pc);

			what.native = native ? native->name : NULL;
		}
	}
	fault_raise_as(vm, &what);
}

void fault_raise_as(struct vm *vm, const struct vm_fault *what)
{
	if (!running || !atomic_load(&vm->base))
		abort(); /* vm_raise() without a vm_call(): our own bug */
	vm->fault = *what;
	write_trace(vm);
	if (what->insn != VM_INSN_OF_PC) {
		vm->fault.insn = what->insn;
		vm->fault.trace[0].insn = what->insn;
	}
	leave(vm);
}

static void describe_access(struct vm *vm, const struct vm_op *op)
{
	const struct isa_row *row = isa_row(op->id);
	struct vm_fault *fault = &vm->fault;
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
static bool arrived(const struct vm *vm, const struct vm_op *op, const struct machine *machine)
{
	if (op->id != ISA_CALLX)
		return true;
	return !is_at(machine, vm->target);
}

/* Is the signal the vm's? Then vm->fault says what happened. */
static bool describe(struct vm *vm, int number, const siginfo_t *info,
		     const struct machine *machine)
{
	const struct vm_op *op = vm->pc;
	struct vm_fault *fault = &vm->fault;
	const struct vm_native *native;

	if (number == SIGABRT ? info->si_code != SI_TKILL || info->si_pid != getpid()
			      : info->si_code <= 0)
		return false; /* sent by somebody */
	if (!op || !atomic_load(&vm->base))
		return false;
	fault->text[0] = '\0';
	fault->native = NULL;
	fault->foreign = false;
	fault->signal = number;
	fault->write = machine->write;
	fault->read = machine->read;
	fault->size = 0;
	fault->address = number == SIGABRT ? 0 : (uintptr_t)info->si_addr;
	if (touches_memory(op)) {
		if (!vm->engine->owns(vm, machine->pc))
			return false; /* a bug in the vm, not in the script */
		describe_access(vm, op);
		return true;
	}
	if (!vm_op_calls_c(op))
		return false;
	if (!arrived(vm, op, machine)) {
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

static void chain(int number, siginfo_t *info, void *context)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	for (size_t i = 0; i < NSIGNALS; i++)
		if (signals[i] == number)
			action = previous[i];
	if (action.sa_flags & SA_SIGINFO) {
		action.sa_sigaction(number, info, context);
	} else if (action.sa_handler == SIG_IGN && info->si_code <= 0) {
		return;
	} else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
		action.sa_handler(number);
	} else {
		/* The instruction faults again, or the signal is sent again, and ends us. */
		action.sa_handler = SIG_DFL;
		sigaction(number, &action, NULL);
		if (info->si_code <= 0)
			raise(number);
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	struct machine machine = machine_of(context);
	int saved_errno = errno;
	struct vm *vm;

	if (running) {
		vm = running->vm;
		if (describe(vm, number, info, &machine)) {
			write_trace(vm);
			leave(vm);
		}
	}
	chain(number, info, context);
	errno = saved_errno;
}

/* The handler is left by siglongjmp without restoring the signal mask: hence it blocks nothing. */
static int set_handlers(void)
{
	struct sigaction action = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < NSIGNALS; i++)
		if (sigaction(signals[i], NULL, &previous[i]) ||
		    sigaction(signals[i], &action, NULL))
			return -errno;
	return 0;
}

/* Somebody else's handler that came after ours stays. */
static void reset_handlers(void)
{
	struct sigaction now;

	for (size_t i = 0; i < NSIGNALS; i++)
		if (!sigaction(signals[i], NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
		    now.sa_sigaction == on_signal)
			sigaction(signals[i], &previous[i], NULL);
}

static void thread_ends(void *map)
{
	stack_t now, off = { .ss_flags = SS_DISABLE };

	if (!sigaltstack(NULL, &now) && now.ss_sp == map)
		sigaltstack(&off, NULL);
	munmap(map, ALTERNATE_STACK);
	alternate = NULL;
	prepared = false;
}

int fault_handlers_get(struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!have_key) {
		rc = -pthread_key_create(&key, thread_ends);
		have_key = !rc;
	}
	if (!rc && !users)
		rc = set_handlers();
	if (!rc)
		users++;
	pthread_mutex_unlock(&lock);
	return rc ? err_set(err, rc, "signal handlers: %s", strerror(-rc)) : 0;
}

void fault_handlers_put(void)
{
	pthread_mutex_lock(&lock);
	if (!--users)
		reset_handlers();
	pthread_mutex_unlock(&lock);
}

int fault_thread_prepare(void)
{
	stack_t stack = { .ss_size = ALTERNATE_STACK };
	stack_t now;

	if (prepared)
		return 0;
	if (!sigaltstack(NULL, &now) && !(now.ss_flags & SS_DISABLE)) {
		prepared = true; /* the thread has one, which is not ours to replace */
		return 0;
	}
	stack.ss_sp = mmap(NULL, ALTERNATE_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED)
		return -ENOMEM;
	if (pthread_setspecific(key, stack.ss_sp) || sigaltstack(&stack, NULL)) {
		munmap(stack.ss_sp, ALTERNATE_STACK);
		return -ENOMEM;
	}
	alternate = stack.ss_sp;
	prepared = true;
	return 0;
}

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
	case VM_FAULT_ABORT:
	case VM_FAULT_ARGUMENT:
		snprintf(text, size, "%s", fault->text);
		break;
	default:
		snprintf(text, size, "no fault");
	}
	return text;
}
