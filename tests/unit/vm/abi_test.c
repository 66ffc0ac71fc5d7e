// SPDX-License-Identifier: BSD-2-Clause
/* Callers whose structs are smaller or bigger than this library's. */
#include "vm_fixture.h"

#include <errno.h>
#include <string.h>

static uint64_t twice(uint64_t a)
{
	return 2 * a;
}

static const struct bpf_insn call_twice[] = {
	{ .code = BPF_JMP | BPF_CALL, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
};
static const struct vm_function main_function = WHOLE(call_twice);

/* Structs of a caller that knows 16 bytes more. */
struct newer_native {
	struct vm_native native;
	uint64_t more[2];
};
struct newer_image {
	struct vm_image image;
	uint64_t more[2];
};
struct newer_options {
	struct vm_options options;
	uint64_t more[2];
};

static const struct vm_native the_native = {
	.name = "twice", .function = twice, .result = VM_U64, .nargs = 1, .args = { VM_U64 }
};

static struct vm_image image_of(const void *natives, size_t native_size)
{
	return (struct vm_image){ .size = sizeof(struct vm_image),
				  .native_size = native_size,
				  .code = call_twice,
				  .ncode = COUNT_OF(call_twice),
				  .functions = &main_function,
				  .nfunctions = 1,
				  .natives = natives,
				  .nnatives = 2 };
}

static void expect_result(const struct vm_image *image, const struct vm_options *options)
{
	char message[256];
	struct vm *vm = NULL;

	/* not by make_vm(), which copies the options */
	if (vm_create(image, options, &vm, message, sizeof(message), NULL))
		fail_msg("%s", message);
	assert_int_equal(call(vm, 21, 0), 42);
	vm_destroy(vm);
}

static void expect_refusal(const struct vm_image *image, const struct vm_options *options, int code,
			   const char *text)
{
	char message[256];
	struct vm *vm = NULL;

	assert_int_equal(vm_create(image, options, &vm, message, sizeof(message), NULL), code);
	assert_null(vm);
	if (!strstr(message, text))
		fail_msg("%s", message);
}

static void newer_natives_are_taken(void **state)
{
	struct newer_native natives[2] = { { the_native }, { the_native } };
	struct vm_image image = image_of(natives, sizeof(natives[0]));

	expect_result(&image, NULL);
	natives[1].more[1] = 1;
	expect_refusal(&image, NULL, -E2BIG, "struct vm_native");
}

static void older_natives_are_taken(void **state)
{
	size_t size = offsetof(struct vm_native, foreign) + sizeof(bool);
	char natives[2 * sizeof(struct vm_native)];
	struct vm_image image;

	size = (size + 7) & ~(size_t)7; /* as the older compiler laid out its array */
	memset(natives, 0xff, sizeof(natives));
	memcpy(natives, &the_native, size);
	memcpy(natives + size, &the_native, size);
	image = image_of(natives, size);
	expect_result(&image, NULL);
	image.native_size = 8;
	expect_refusal(&image, NULL, -EINVAL, "struct vm_native");
	image.native_size = 0;
	expect_refusal(&image, NULL, -EINVAL, "set it to sizeof");
}

static void images_of_other_sizes(void **state)
{
	struct vm_native natives[2] = { the_native, the_native };
	struct newer_image newer = { image_of(natives, sizeof(natives[0])), { 0 } };

	newer.image.size = sizeof(newer);
	expect_result((const void *)&newer, NULL);
	newer.more[0] = 1;
	expect_refusal((const void *)&newer, NULL, -E2BIG, "struct vm_image");
	/* what an older caller has behind its struct is not looked at */
	memset(&newer.image.arrays, 0xff, sizeof(newer) - offsetof(struct vm_image, arrays));
	newer.image.size = offsetof(struct vm_image, arrays);
	expect_result((const void *)&newer, NULL);
	newer.image.size = 0;
	expect_refusal((const void *)&newer, NULL, -EINVAL, "struct vm_image");
}

static void options_of_other_sizes(void **state)
{
	struct vm_native natives[2] = { the_native, the_native };
	struct vm_image image = image_of(natives, sizeof(natives[0]));
	struct newer_options newer = { { .size = sizeof(newer), .call_depth = 3 }, { 0 } };

	expect_result(&image, (const void *)&newer);
	newer.more[1] = 1ull << 63;
	expect_refusal(&image, (const void *)&newer, -E2BIG, "struct vm_options");
	newer.options.size = offsetof(struct vm_options, engine);
	newer.options.engine = 77;
	expect_result(&image, (const void *)&newer);
	newer.options.size = 8;
	expect_refusal(&image, (const void *)&newer, -EINVAL, "struct vm_options");
}

/* What programs were compiled with. A line here never changes; members are added at the end. */
static void members_stay_where_they_are(void **state)
{
#define AT(type, member, offset)                                         \
	{                                                                \
#type "." #member, offsetof(struct type, member), offset \
	}
	static const struct {
		const char *name;
		size_t is, was;
	} members[] = {
		AT(vm_native, name, 0),
		AT(vm_native, function, 8),
		AT(vm_native, result, 16),
		AT(vm_native, nargs, 20),
		AT(vm_native, args, 24),
		AT(vm_native, with_context, 44),
		AT(vm_native, foreign, 45),
		AT(vm_native, intrinsic, 48),
		AT(vm_native, contract, 56),
		AT(vm_contract, args, 0),
		AT(vm_contract, check, 40),
		AT(vm_function, name, 0),
		AT(vm_function, first, 8),
		AT(vm_function, count, 12),
		AT(vm_function, nargs, 16),
		AT(vm_array, handle, 0),
		AT(vm_array, data, 8),
		AT(vm_array, stride, 16),
		AT(vm_array, entries, 20),
		AT(vm_image, size, 0),
		AT(vm_image, native_size, 8),
		AT(vm_image, code, 16),
		AT(vm_image, functions, 32),
		AT(vm_image, natives, 48),
		AT(vm_image, arrays, 64),
		AT(vm_image, narrays, 72),
		AT(vm_options, size, 0),
		AT(vm_options, context, 8),
		AT(vm_options, stack_bytes, 16),
		AT(vm_options, call_depth, 20),
		AT(vm_options, frame_bytes, 24),
		AT(vm_options, instruction_budget, 32),
		AT(vm_options, callx_by_number, 40),
		AT(vm_options, engine, 44),
		AT(vm_options, checked, 48),
		AT(vm_options, passes_off, 52),
		AT(vm_fault, kind, 0),
		AT(vm_fault, insn, 4),
		AT(vm_fault, address, 8),
		AT(vm_fault, size, 16),
		AT(vm_fault, native, 24),
		AT(vm_fault, foreign, 32),
		AT(vm_fault, signal, 36),
		AT(vm_fault, text, 40),
		AT(vm_fault, ntrace, 200),
		AT(vm_fault, trace, 204),
		AT(vm_fault, write, 460),
		AT(vm_fault, read, 461),
		AT(vm_fault, torn, 462),
	};

	for (size_t i = 0; i < COUNT_OF(members); i++)
		if (members[i].is != members[i].was)
			fail_msg("%s is at %zu, not at %zu", members[i].name, members[i].is,
				 members[i].was);
	/* arrays of the caller's, and what the library writes into */
	assert_int_equal(sizeof(struct vm_function), 24);
	assert_int_equal(sizeof(struct vm_array), 24);
	assert_int_equal(sizeof(struct vm_fault), 528);
	assert_int_equal(sizeof(struct vm_contract), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_stay_where_they_are),
		cmocka_unit_test(newer_natives_are_taken),
		cmocka_unit_test(older_natives_are_taken),
		cmocka_unit_test(images_of_other_sizes),
		cmocka_unit_test(options_of_other_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
