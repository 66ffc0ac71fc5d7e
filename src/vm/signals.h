/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fault signal says, the handlers of the process, and what a thread needs before it runs a
 * vm: an alternate stack and a bound of its own. Inside of the vm only.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/err.h"

struct vm_signal {
	int number;
	const siginfo_t *info;
	ucontext_t *context;
	uintptr_t pc, sp;
	bool write, read; /* what the access was; neither: the machine does not say */
	bool present;     /* the page was there, but not for this */
	bool fetch;       /* it was that of an instruction */
	bool undone;      /* signal_undo_call() */
	bool scanned;     /* the stack could not be walked, but this was found on it: */
	uint32_t function, insn;
};

/* The return address of a call that did not arrive: on the stack (x86-64), in the link register. */
uintptr_t signal_return_address(const struct vm_signal *signal);
/* Back to the call instruction that led to @signal->pc, as if it was what faulted. */
void signal_undo_call(struct vm_signal *signal);
static inline bool signal_is_fetch(const struct vm_signal *signal)
{
	return signal->fetch;
}
/* Sent by somebody, not raised by an instruction or abort(). */
bool signal_was_sent(const struct vm_signal *signal);

/* Reference counted: the process's handlers. */
int signal_handlers_get(struct err *err);
void signal_handlers_put(void);
/* Instead of put: for good. */
void signal_handlers_keep(void);

/* This thread's alternate stack and the bounds of its stack, once a thread. 0 or -ENOMEM. */
int signal_thread_prepare(void);

/*
 * The lowest address that compiled code may use of this thread's stack, when it may use @bytes
 * from here on, and what runs unchecked below that takes up to @below bytes.
 */
uintptr_t signal_stack_limit(uintptr_t bytes, uintptr_t below);

/* Was this thread made by signal_thread_create(), for a vm's code? */
bool signal_thread_is_ours(void);
/* Ends this thread: whoever joins it goes on. From a signal handler, too. */
void signal_thread_end(void) __attribute__((noreturn));
/* pthread_create() for scripts: the thread is prepared, and its stack bounded. */
int signal_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			 void *argument);
