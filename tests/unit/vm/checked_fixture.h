/* SPDX-License-Identifier: BSD-2-Clause */
/* Vms in checked mode. Each test runs with all passes of the compiler, without the one about checks,
 * and without any. */
#pragma once

#include "vm_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef TEST_ENGINE
#define TEST_ENGINE VM_ENGINE_INTERPRETER
#endif

#define CANARY 0xc5

/* An object between bytes that must stay as they are. */
struct guarded {
	uint8_t before[64], bytes[64], after[64];
};

static inline void set_guards(struct guarded *guarded)
{
	memset(guarded, CANARY, sizeof(*guarded));
	memset(guarded->bytes, 0, sizeof(guarded->bytes));
}

static inline void guards_are_whole(const struct guarded *guarded)
{
	for (size_t i = 0; i < sizeof(guarded->before); i++) {
		assert_int_equal(guarded->before[i], CANARY);
		assert_int_equal(guarded->after[i], CANARY);
	}
}

static const uint32_t pass_sets[] = { 0, VM_PASS_CHECKS, VM_PASS_ALL };

/* Set by every test's loop. */
static uint32_t passes_off;

static inline struct vm *make_checked_image(const struct vm_image *image)
{
	struct vm_options options = { .size = sizeof(options),
				      .engine = TEST_ENGINE,
				      .checked = true,
				      .passes_off = passes_off };

	return make_vm(image, &options);
}

static inline struct vm *make_checked(const struct bpf_insn *code, size_t ncode,
				      const struct vm_native *natives, size_t n)
{
	struct vm_function function = { .name = "main", .count = ncode };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,    .ncode = ncode,
				  .functions = &function, .nfunctions = 1, .natives = natives,
				  .nnatives = n };

	return make_checked_image(&image);
}

#define MAKE(code) make_checked(code, COUNT_OF(code), NULL, 0)
#define EACH_SET                                                                               \
	for (size_t set = 0; set < COUNT_OF(pass_sets) && (passes_off = pass_sets[set], true); \
	     set++)

/* @text with one %#llx for @address */
static inline struct vm_fault faults(struct vm *vm, uint64_t a, uint64_t b, enum vm_fault_kind kind,
				     const char *text, uint64_t address)
{
	char wanted[200];

	snprintf(wanted, sizeof(wanted), text, (unsigned long long)address);
	return call_fault(vm, a, b, kind, wanted);
}

/* For natives, which are given no vm. */
static struct vm *current;

static inline uint64_t forget_region(uint64_t address)
{
	assert_int_equal(vm_region_remove(current, (void *)address), 0);
	return 0;
}

static const struct vm_contract nothing;
