/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compiler as an engine, as the rest of the vm sees it: which vm a signal's code belongs to,
 * and instruction fetches from code that vm_interrupt() has closed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct vm;
struct vm_signal;

/* The machine that the vm's code is for. */
const char *jit_name(const struct vm *vm);

enum jit_fetch {
	JIT_FETCH_OTHER,       /* the signal is about something else */
	JIT_FETCH_AGAIN,       /* the code is open (again): go on */
	JIT_FETCH_INTERRUPTED, /* the vm's running call, which is this thread's, ends here */
};

/* All for signal handlers. */
enum jit_fetch jit_on_fetch(struct vm_signal *signal, struct vm **ret);
/* The vm whose compiled code the signal interrupted, or called the C function that it interrupted;
 * frames of C above the stack address @until (0: no bound) do not count. NULL: none. */
struct vm *jit_owner(struct vm_signal *signal, uintptr_t until);
/* Was this signal raised by looking at the stack? Then it goes on there, without return. */
void jit_second_fault(void);
