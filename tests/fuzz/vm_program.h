/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes to programs, for vm_check.c. */
#pragma once

#include <duet/vm.h>

#define VM_PROGRAM_INSNS     256 /* of the input */
#define VM_PROGRAM_FUNCTIONS 8
#define VM_PROGRAM_MEMORY    256

struct vm_program {
	struct bpf_insn code[6 * VM_PROGRAM_INSNS + 7 * VM_PROGRAM_FUNCTIONS];
	size_t ncode;
	struct vm_function functions[VM_PROGRAM_INSNS + 1];
	size_t nfunctions;
};

/* Instructions as they are; functions start at 0 and where local calls go. */
void vm_program_raw(struct vm_program *program, const uint8_t *data, size_t size);
/* Every eight bytes become a valid instruction; 64-bit constants may point into @memory. */
void vm_program_made(struct vm_program *program, const uint8_t *data, size_t size, uint64_t memory,
		     size_t nnatives);
