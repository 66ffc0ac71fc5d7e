/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the compiler's intermediate form, by its description in jit.h and nothing else, so that the
 * passes can be judged without a back end. Registers that are not live are spoiled after each
 * instruction, and what a call loses after each call.
 */
#pragma once

#include "vm/jit/jit.h"

struct eval {
	struct vm *vm;
	const struct vm_image *image;
	struct jit_function *functions; /* by index; ninsns 0: none (an alias) */
	uint64_t steps;                 /* instructions that may still run */
	const char *why;                /* what went wrong; NULL: nothing */
};

/* Lowers and optimises all functions. 0 or -1. */
int eval_compile(struct eval *eval, struct vm *vm, const struct vm_image *image, uint32_t passes,
		 bool checked, const struct jit_target *target);
/* r0, or 0 with the reason in eval->why. */
uint64_t eval_run(struct eval *eval, uint32_t function, const uint64_t *args);
void eval_deinit(struct eval *eval);
