/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own cases in C: programs that are built, run on every engine. For cmocka tests. */
#pragma once

#include "code.h"
#include "host.h"

struct every {
	struct bpf_insn *code; /* room for `capacity`, which grows */
	size_t ncode, capacity;
	struct vm_function functions[512];
	size_t nfunctions;
	struct vm_array arrays[16];
	size_t narrays;
	struct vm_native natives[8];
	size_t nnatives;
	struct vm_options options; /* engine, checked and passes are each engine's */
	void *region;              /* what checked mode may touch */
	size_t region_size;
	uint64_t args[5];
};

void every_add(struct every *every, struct bpf_insn insn);
void every_add_lddw(struct every *every, uint32_t reg, uint32_t kind, uint64_t value);
/* The next instruction begins a function; the first begins by itself. */
uint32_t every_begin(struct every *every);
void every_deinit(struct every *every);

/* Fails the test where an engine does not return @want. */
void every_returns(struct every *every, uint64_t want);
/* ... where it does not end with a fault of that kind; @fault (of the last engine) may be NULL. The
 * kind, instruction and trace are the same in every engine. */
void every_faults(struct every *every, enum vm_fault_kind kind, struct vm_fault *fault);
/* ... where vm_create() does not refuse it with @text in the message. */
void every_refuses(struct every *every, const char *text);
