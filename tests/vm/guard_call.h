/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls a function of C on another stack and tells what it left of what it must keep. */
#pragma once

#include <stdint.h>

#define GUARD_KEPT 20 /* registers, at most */

struct guard_call {
	uint64_t result;
	uint64_t stack;            /* pointer when it returned */
	uint64_t kept[GUARD_KEPT]; /* registers that a callee keeps */
};

/* Number of kept registers of this machine; they hold guard_value(i) at the call. */
extern const unsigned int guard_kept;
uint64_t guard_value(unsigned int i);

/* @top: end of the stack to use, 16-byte aligned. Returns the stack pointer at the call. */
uint64_t guard_call(void *function, const uint64_t *args, void *top, struct guard_call *ret);
