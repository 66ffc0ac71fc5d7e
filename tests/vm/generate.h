/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs that the kernel's verifier accepts and whose results do not depend on addresses:
 * pointers stay in r9 and r10, everything else computes with numbers.
 *
 * A program works on the 256 bytes at r9: GENERATE_SCRATCH bytes of data, then, written at its
 * end, r0 to r8.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/vm.h>

#include "isa/isa.h"

#define GENERATE_VALUE     256
#define GENERATE_SCRATCH   64
#define GENERATE_MAX       1024 /* instructions */
#define GENERATE_FUNCTIONS 4

struct generated {
	struct bpf_insn code[GENERATE_MAX];
	size_t ncode;
	struct vm_function functions[GENERATE_FUNCTIONS];
	size_t nfunctions;
	/* Where r9 is loaded (two slots each), with the value's address plus that offset: another one
	 * in each function, so that a lost r9 shows. */
	size_t address[GENERATE_FUNCTIONS];
	uint32_t offset[GENERATE_FUNCTIONS];
};

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *random);
/* 0 to @n - 1 */
uint32_t random_below(struct random *random, uint32_t n);
/* A number of the kind that breaks arithmetic: edges of widths and signs, or anything. */
uint64_t random_edge(struct random *random);

void generate(struct random *random, struct generated *ret);

/* May generate() use the operation? (The rest needs things that only one side has.) */
bool generates(enum isa_op op);
