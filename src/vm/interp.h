/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreter's loop (interp.c) and what makes an engine of it (interp_engine.c). */
#pragma once

#include "vm/vm_internal.h"

/* Gives all ops their handlers. 0 or -ENOMEM. */
int interp_prepare(struct vm *vm, struct err *err);
/* Runs a function whose frame has been pushed, with r10 = @stack and the five @args; returns r0 or
 * unwinds. */
uint64_t interp_run(struct vm *vm, const struct vm_op *entry, const uint64_t *args, uint64_t stack);
/* Makes the running code leave at its next instruction; async-signal-safe, any thread. */
void interp_interrupt(struct vm *vm);
/* Is this machine address inside the loop? Async-signal-safe. */
bool interp_owns(uintptr_t pc);
