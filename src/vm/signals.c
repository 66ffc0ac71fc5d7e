// SPDX-License-Identifier: BSD-2-Clause
/*
 * The process's handlers of fault signals, and the state of a thread. Handlers run on an alternate
 * stack, so that an exhausted C stack is a fault like any other; what is not the vm's goes to the
 * handler that was there before.
 *
 * Signal dispositions belong to the process and alternate stacks to the thread, hence the static
 * variables of this file, an exception to the rule of the house that there are none.
 */
#include "vm/signals.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fixup.h"
#include "vm/jit/memory.h"
#include "vm/vm_internal.h"

#define ALTERNATE_STACK (64 << 10)    /* a chained handler may want more than ours does */
#define C_RESERVE       (64 << 10)    /* stack that C functions called at the limit still find */
#define LARGEST_STACK   (128ul << 20) /* that the kernel always keeps free below a process's stack */

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;                  /* under lock */
static unsigned int kept;                   /* of them: for threads that outlive their vm */
static bool have_key;                       /* under lock */
static pthread_key_t key;                   /* frees a thread's alternate stack when it ends */
static struct sigaction previous[NSIGNALS]; /* written under lock, while the handler is not set */

THREAD_LOCAL void *alternate;
THREAD_LOCAL bool prepared;
THREAD_LOCAL struct vm *home;                 /* whose code this thread was made for */
THREAD_LOCAL sigjmp_buf *ending;              /* where it ends, when it was made here */
THREAD_LOCAL uintptr_t stack_low, stack_high; /* of the thread as it was started */

__thread uintptr_t vm_stack_limit;

/* ---- what the processor says ---------------------------------------------------- */

#if defined(__x86_64__)
static void read_machine(struct vm_signal *signal)
{
	const greg_t *registers = signal->context->uc_mcontext.gregs;
	bool page_fault = registers[REG_TRAPNO] == 14;
	bool write = registers[REG_ERR] & 2; /* W/R bit of a page fault's error code */

	signal->pc = registers[REG_RIP];
	signal->sp = registers[REG_RSP];
	signal->write = page_fault && write;
	signal->read = page_fault && !write;
	signal->present = page_fault && registers[REG_ERR] & 1;
	signal->fetch = page_fault && registers[REG_ERR] & 16;
}

static void resume_at(struct vm_signal *signal, uintptr_t pc)
{
	signal->context->uc_mcontext.gregs[REG_RIP] = pc;
}

uintptr_t signal_return_address(const struct vm_signal *signal)
{
	return *(const uintptr_t *)signal->sp;
}

void signal_undo_call(struct vm_signal *signal)
{
	greg_t *registers = signal->context->uc_mcontext.gregs;

	registers[REG_RIP] = signal_return_address(signal) - 1;
	registers[REG_RSP] += sizeof(uintptr_t);
	signal->pc = registers[REG_RIP];
	signal->sp = registers[REG_RSP];
}
#elif defined(__aarch64__)
/* The exception syndrome is a record behind the registers: WnR is bit 6 of a data abort's. */
static void read_machine(struct vm_signal *signal)
{
	const uint8_t *at = signal->context->uc_mcontext.__reserved;
	const uint8_t *end = at + sizeof(signal->context->uc_mcontext.__reserved);

	signal->pc = signal->context->uc_mcontext.pc;
	signal->sp = signal->context->uc_mcontext.sp;
	/* Emulators may have no record. */
	signal->fetch = (uintptr_t)signal->info->si_addr == signal->pc;
	while (end - at >= (ptrdiff_t)sizeof(struct esr_context)) {
		struct esr_context record;

		memcpy(&record, at, sizeof(record));
		if (!record.head.size)
			break;
		if (record.head.magic == ESR_MAGIC) {
			uint32_t class = record.esr >> 26 & 0x3f;

			signal->fetch = class == 0x20 || class == 0x21; /* instruction abort */
			if (class != 0x24 && class != 0x25)
				break;
			signal->write = record.esr & 1 << 6;
			signal->read = !signal->write;
			signal->present = (record.esr & 0x3c) == 0x0c; /* permission fault */
			break;
		}
		at += record.head.size;
	}
}

static void resume_at(struct vm_signal *signal, uintptr_t pc)
{
	signal->context->uc_mcontext.pc = pc;
}

uintptr_t signal_return_address(const struct vm_signal *signal)
{
	return signal->context->uc_mcontext.regs[30];
}

void signal_undo_call(struct vm_signal *signal)
{
	signal->pc = signal->context->uc_mcontext.pc = signal_return_address(signal) - 4;
}
#else
static void read_machine(struct vm_signal *signal)
{
	(void)signal;
}

static void resume_at(struct vm_signal *signal, uintptr_t pc)
{
	(void)signal;
	(void)pc;
}

uintptr_t signal_return_address(const struct vm_signal *signal)
{
	(void)signal;
	return 0;
}

void signal_undo_call(struct vm_signal *signal)
{
	(void)signal;
}
#endif

bool signal_was_sent(const struct vm_signal *signal)
{
	if (signal->number == SIGABRT)
		return signal->info->si_code != SI_TKILL || signal->info->si_pid != getpid();
	return signal->info->si_code <= 0;
}

/* ---- handlers ----------------------------------------------------------------------- */

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

/* An instruction that may fault: goes on behind it. */
static bool fix(struct vm_signal *signal)
{
	uintptr_t resume = signal_was_sent(signal) ? 0 : fixup_find(signal->pc);

	if (resume)
		resume_at(signal, resume);
	return resume;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	struct vm_signal signal = { .number = number, .info = info, .context = context };
	int saved_errno = errno;

	read_machine(&signal);
	if (!fix(&signal) && !fault_on_signal(&signal))
		chain(number, info, context);
	errno = saved_errno;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

/* The handler is left by siglongjmp without restoring the signal mask: hence it blocks nothing. */
static int set_handlers(void)
{
	struct sigaction action = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < NSIGNALS; i++) {
		struct sigaction now;

		if (sigaction(signals[i], NULL, &now))
			return -errno;
		if (is_ours(&now))
			continue;
		previous[i] = now;
		if (sigaction(signals[i], &action, NULL))
			return -errno;
	}
	return 0;
}

/* Somebody else's handler that came after ours stays. */
static void reset_handlers(void)
{
	struct sigaction now;

	for (size_t i = 0; i < NSIGNALS; i++)
		if (!sigaction(signals[i], NULL, &now) && is_ours(&now))
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

int signal_handlers_get(struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!have_key) {
		rc = -pthread_key_create(&key, thread_ends);
		have_key = !rc;
	}
	if (!rc && users == kept)
		rc = set_handlers();
	if (!rc)
		users++;
	pthread_mutex_unlock(&lock);
	return rc ? err_set(err, rc, "signal handlers: %s", strerror(-rc)) : 0;
}

void signal_handlers_put(void)
{
	pthread_mutex_lock(&lock);
	if (!--users)
		reset_handlers();
	pthread_mutex_unlock(&lock);
}

void signal_handlers_keep(void)
{
	pthread_mutex_lock(&lock);
	kept++;
	pthread_mutex_unlock(&lock);
}

/* ---- threads ------------------------------------------------------------------------- */

/*
 * The first thread's stack grows down to its limit from behind the program's arguments, of which
 * the name of the file is the last. (pthread_getattr_np() would read /proc/self/maps.)
 */
static void find_first_stack(void)
{
	uintptr_t name = getauxval(AT_EXECFN);
	struct rlimit limit;

	if (!name || getrlimit(RLIMIT_STACK, &limit))
		return;
	if (limit.rlim_cur > LARGEST_STACK)
		limit.rlim_cur = LARGEST_STACK;
	stack_high = name;
	stack_low = name - limit.rlim_cur + (16 << 10);
}

static void find_stack(void)
{
	pthread_attr_t attributes;
	void *start;
	size_t size;

	if (gettid() == getpid()) {
		find_first_stack();
		return;
	}
	if (pthread_getattr_np(pthread_self(), &attributes))
		return;
	if (!pthread_attr_getstack(&attributes, &start, &size)) {
		stack_low = (uintptr_t)start;
		stack_high = stack_low + size;
	}
	pthread_attr_destroy(&attributes);
}

int signal_thread_prepare(void)
{
	stack_t stack = { .ss_size = ALTERNATE_STACK };
	stack_t now;

	if (prepared)
		return 0;
	find_stack();
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

uintptr_t signal_stack_limit(uintptr_t bytes, uintptr_t below)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t limit = here > bytes ? here - bytes : 0;
	uintptr_t lowest = stack_low + C_RESERVE + below;

	/* A host's coroutine runs elsewhere: nothing is known of its stack. */
	if (here >= stack_low && here < stack_high && limit < lowest)
		limit = lowest;
	return limit;
}

/* Threads of a script count: their vm's code stays where it is as long as they live. */
struct thread_start {
	void *(*start)(void *);
	void *argument;
	struct vm *vm; /* NULL: starts in C */
};

bool signal_thread_is_ours(void)
{
	return home != NULL;
}

static void leave_home(void *unused)
{
	(void)unused;
	if (home)
		atomic_fetch_sub(&home->threads, 1);
	home = NULL;
}

/*
 * As if it had returned, so that what libraries keep of the thread is put in order: its memory may
 * be the next thread's. (A stack that cannot be unwound does not hinder pthread_exit().) The first
 * thread of a process cannot end alone: it waits for ever.
 */
void signal_thread_end(void)
{
	if (ending)
		siglongjmp(*ending, 1);
	if (gettid() != getpid())
		pthread_exit(NULL);
	for (;;)
		pause();
}

static void *run_thread(void *data)
{
	struct thread_start start = *(struct thread_start *)data;
	void *volatile result = NULL;
	sigjmp_buf end;

	free(data);
	home = start.vm;
	signal_thread_prepare(); /* without it, only an exhausted stack is no fault any more */
	vm_stack_limit = stack_low + C_RESERVE;
	pthread_cleanup_push(leave_home, NULL);
	if (!sigsetjmp(end, 1)) {
		ending = &end;
		result = start.start(start.argument);
	}
	ending = NULL;
	pthread_cleanup_pop(1);
	return result;
}

int signal_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			 void *argument)
{
	struct thread_start *data = malloc(sizeof(*data));
	struct vm *vm = jit_memory_owner((uintptr_t)start);
	int rc;

	if (!data)
		return EAGAIN;
	*data = (struct thread_start){ start, argument, vm };
	if (vm)
		atomic_fetch_add(&vm->threads, 1);
	rc = pthread_create(thread, attr, run_thread, data);
	if (!rc)
		return 0;
	if (vm)
		atomic_fetch_sub(&vm->threads, 1);
	free(data);
	return rc;
}
