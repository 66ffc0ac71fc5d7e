/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs that the kernel's verifier accepts and whose results do not depend on addresses:
 * what is computed with are numbers; pointers are made, used and overwritten.
 *
 * A program works on struct generate_memory: GENERATE_SCRATCH bytes of data at r9 (another offset
 * in each function), then, written at its end, r0 to r8; and the elements of three arrays, which it
 * finds by native 1 (the kernel's bpf_map_lookup_elem) and changes by native 2
 * (bpf_map_update_elem).
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/vm.h>

#include "isa/isa.h"
#include "random.h"

#define GENERATE_SCRATCH     128
#define GENERATE_VALUE       256
#define GENERATE_MAX         2048 /* instructions */
#define GENERATE_FUNCTIONS   5
#define GENERATE_RELOCATIONS 128

/* Arrays: their elements lie 8-byte aligned one behind the other, as the kernel has them. */
#define GENERATE_ARRAYS    3
#define GENERATE_ARRAY_MAX 128 /* bytes of all elements of one */

struct generate_array {
	uint32_t value_size, stride, entries;
};

extern const struct generate_array generate_arrays[GENERATE_ARRAYS];

struct generate_memory {
	uint8_t value[GENERATE_VALUE];
	uint8_t arrays[GENERATE_ARRAYS][GENERATE_ARRAY_MAX];
};

/* Natives, by the number in `call`. The first two are the kernel's; the others only programs for
 * the vm alone use. */
enum generate_native {
	GENERATE_LOOKUP = 1, /* (array, uint32_t *index) -> element or 0 */
	GENERATE_UPDATE = 2, /* (array, uint32_t *index, value, flags) -> 0 or -errno */
	GENERATE_CONTEXT,    /* five numbers and the context */
	GENERATE_WHOLE,      /* five numbers; spoils every register that C may spoil */
	GENERATE_NARROW,     /* (s8, u16, s32) -> s16 */
	GENERATE_DOUBLE,     /* (double, u32, float) -> double */
	GENERATE_CALLBACK,   /* (function, a, b): calls it as a C function */
	GENERATE_FLOAT,      /* first of the VM_F64_ functions, in the order of enum vm_intrinsic */
	GENERATE_NATIVES = GENERATE_FLOAT + VM_F64_TO_S64 - VM_F64_ADD + 1
};

struct generated {
	struct bpf_insn code[GENERATE_MAX];
	size_t ncode;
	struct vm_function functions[GENERATE_FUNCTIONS];
	size_t nfunctions;
	/* lddw instructions that both sides fill in themselves. */
	struct {
		uint32_t at;
		uint32_t array; /* GENERATE_ARRAYS: the value's address plus offset */
		uint32_t offset;
	} relocations[GENERATE_RELOCATIONS];
	size_t nrelocations;
	bool alone; /* uses what only the vm has: not for the kernel */
};

/* @alone: may use C functions, callx, addresses of functions and doubles. */
void generate(struct random *random, bool alone, struct generated *ret);
/* Data to start with. */
void generate_memory(struct random *random, struct generate_memory *ret);

/* May a program that is not alone use the operation? (The rest needs things that only one side
 * has.) */
bool generates(enum isa_op op);
