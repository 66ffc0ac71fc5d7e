/* SPDX-License-Identifier: BSD-2-Clause */
/* Where probes are calibrated: nothing happens between the first place and the second. One thread. */
#pragma once

#include "kern/internal.h"

/* Both are called, one right after the other, by BPF_PROG_TEST_RUN of duet's trigger. */
#define EMPTY_KERNEL_FUNCTION "bpf_fentry_test1"
#define EMPTY_KERNEL_SECOND   "bpf_fentry_test2"

/* "KIND:BINARY:OFFSET" of a function of this process. 0 or -errno. */
int empty_place(void (*function)(void), const char *kind, char *text, size_t size, struct err *err);
/* Our function that begins with an instruction like the one at @target ("BINARY:FUNCTION+0x10"); what
 * cannot be looked at is like most functions. */
void (*empty_function_for(const char *target, bool second))(void);
/* Our function with a USDT probe at its start, and the probe's place. */
void (*empty_usdt(bool second, char *text, size_t size))(void);
/* The place in the kernel's empty function whose instruction is like the one at @target, a function
 * with or without an offset. 0 or -errno. */
int empty_kernel_place(const char *target, bool second, char *text, size_t size, struct err *err);
