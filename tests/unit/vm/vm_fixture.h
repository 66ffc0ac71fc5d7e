/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the vm share: a vm over an array of instructions. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <duet/vm.h>

#include "../../vm/code.h"

/* One function over all of @code. */
#define WHOLE(code_array)                                                 \
	{                                                                 \
		.name = "main", .first = 0, .count = COUNT_OF(code_array) \
	}

/* The tests are built once for each engine; this says what they run on. */
#ifndef TEST_ENGINE
#define TEST_ENGINE VM_ENGINE_INTERPRETER
#define ON_JIT      0
#else
#define ON_JIT 1
#endif

static inline struct vm *make_vm(const struct vm_image *image, const struct vm_options *options)
{
	char message[256];
	struct vm_options with = { .size = sizeof(with) };
	struct vm *vm = NULL;

	if (options)
		with = *options;
	if (with.engine == VM_ENGINE_BEST)
		with.engine = TEST_ENGINE;
	if (vm_create(image, &with, &vm, message, sizeof(message), NULL))
		fail_msg("%s", message);
	return vm;
}

/* A vm with one function, and natives if @n is not 0. */
static inline struct vm *make_simple(const struct bpf_insn *code, size_t ncode,
				     const struct vm_native *natives, size_t n)
{
	struct vm_function function = { .name = "main", .count = ncode };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,    .ncode = ncode,
				  .functions = &function, .nfunctions = 1, .natives = natives,
				  .nnatives = n };

	return make_vm(&image, NULL);
}

/* Calls function 0 with @a and @b; fails the test if that faults. */
static inline uint64_t call(struct vm *vm, uint64_t a, uint64_t b)
{
	uint64_t args[2] = { a, b }, result = 0;
	struct vm_fault fault;
	char text[256];

	if (vm_call(vm, 0, args, 2, &result, &fault))
		fail_msg("%s", vm_fault_text(&fault, text, sizeof(text)));
	return result;
}

/* Calls function 0, which must fault like that; the vm must be usable afterwards. */
static inline struct vm_fault call_fault(struct vm *vm, uint64_t a, uint64_t b,
					 enum vm_fault_kind kind, const char *text)
{
	uint64_t args[2] = { a, b };
	struct vm_fault fault = { 0 };
	char got[256];

	assert_int_equal(vm_call(vm, 0, args, 2, NULL, &fault), -14);
	vm_fault_text(&fault, got, sizeof(got));
	assert_string_equal(got, text);
	assert_int_equal(fault.kind, kind);
	return fault;
}
