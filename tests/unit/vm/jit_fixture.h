/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the compiler's passes share: instructions in, the dump of their blocks out. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <duet/vm.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "vm/jit/jit.h"
#include "../../vm/code.h"

struct compiled {
	struct vm *vm;
	struct jit_function function;
};

static inline void compiled_deinit(struct compiled *compiled)
{
	jit_release(&compiled->function);
	vm_destroy(compiled->vm);
}

/* Addressing modes as x86-64 has them. */
static inline bool test_can_address(bool has_index, unsigned int scale, int64_t off,
				    unsigned int size)
{
	(void)has_index;
	(void)size;
	return scale <= 3 && off >= INT32_MIN && off <= INT32_MAX;
}

static const struct jit_target test_target = {
	.name = "test",
	.has_modify = true,
	.has_branch_memory = true,
	.has_lea_scaled_off = true,
	.least_cases = 4,
	.can_address = test_can_address,
};

/* Function 0 of @image. */
static inline void compile_image(const struct vm_image *image, uint32_t passes, bool checked,
				 struct compiled *ret)
{
	struct vm_options options = { .size = sizeof(options),
				      .engine = VM_ENGINE_INTERPRETER,
				      .checked = checked };
	char message[256];

	*ret = (struct compiled){ 0 };
	if (vm_create(image, &options, &ret->vm, message, sizeof(message), NULL))
		fail_msg("%s", message);
	ret->function.vm = ret->vm;
	ret->function.image = image;
	ret->function.passes = passes;
	ret->function.checked = checked;
	ret->function.target = &test_target;
	assert_int_equal(jit_lower(&ret->function), 0);
	assert_int_equal(jit_optimise(&ret->function), 0);
}

static inline void expect_image(const struct vm_image *image, uint32_t passes, bool checked,
				const char *dump)
{
	CLEANUP(compiled_deinit) struct compiled compiled;
	CLEANUP(buf_deinit) struct buf text = { 0 };

	compile_image(image, passes, checked, &compiled);
	assert_int_equal(jit_dump(&compiled.function, &text), 0);
	assert_string_equal(text.data, dump);
}

#define CODE_IMAGE(code_array)                                                               \
	{                                                                                    \
		VM_IMAGE_SIZES,                                                              \
			.code = (code_array), .ncode = COUNT_OF(code_array),                 \
			.functions = &(struct vm_function){ .name = "main",                  \
							    .count = COUNT_OF(code_array) }, \
			.nfunctions = 1                                                      \
	}

/* expect(passes, dump, instructions...) */
#define expect(passes, dump, ...)                                   \
	do {                                                        \
		const struct bpf_insn __code[] = { __VA_ARGS__ };   \
		const struct vm_image __image = CODE_IMAGE(__code); \
		expect_image(&__image, passes, false, dump);        \
	} while (0)
#define expect_checked(passes, dump, ...)                           \
	do {                                                        \
		const struct bpf_insn __code[] = { __VA_ARGS__ };   \
		const struct vm_image __image = CODE_IMAGE(__code); \
		expect_image(&__image, passes, true, dump);         \
	} while (0)
