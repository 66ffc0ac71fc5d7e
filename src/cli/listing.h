/* SPDX-License-Identifier: BSD-2-Clause */
/* Listings of code, for `duet dis` and `duet inspect --dis`: text that `duet asm` takes back. */
#pragma once

#include <duet/vm.h>
#include <stddef.h>

#include "hook/hook.h"
#include "obj/split.h"

struct native_listing;

struct listing {
	const struct obj *obj;        /* NULL: instructions alone */
	const struct user_half *user; /* NULL: nobody knows which half a function belongs to */
	const char *function;         /* NULL: all of them */
	/* NULL: no machine code. Function numbers are those of @user, or of @functions. */
	const struct vm *vm;
	const struct hook_half *half;        /* whose vm it is, or NULL */
	const struct vm_function *functions; /* without an object */
	size_t nfunctions;
	struct native_listing *native;
};

/* Prints the functions of an object. Returns their number. */
size_t listing_print(const struct listing *listing);
/* Prints an array of instructions. */
void listing_print_code(const struct listing *listing, const struct bpf_insn *insns, size_t count);

/* The instructions of one function, and where they lie: in the object; in the vm. */
struct listing_code {
	const struct bpf_insn *insns;
	size_t count;
	uint32_t section;
	uint64_t offset;
	uint32_t first;
};
/* "3: r1 = 5", in front of what instruction @insn of the function became; -1: of none. */
void listing_print_origin(const struct listing *listing, const struct listing_code *code,
			  int64_t insn);

/* native.c: what capstone makes of machine code, when it is installed. */
struct native_listing *native_open(void); /* NULL: out of memory */
void native_close(struct native_listing *native);
/* Where capstone is missing, one line that says so and how to get it; else NULL. */
const char *native_missing(const struct native_listing *native);
/* The machine code of function @function of the vm. */
void native_print(const struct listing *listing, const struct listing_code *code,
		  uint32_t function);
