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
	struct vm *vm = make_vm(image, options);

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
	expect_result(&newer.image, NULL);
	newer.more[0] = 1;
	expect_refusal(&newer.image, NULL, -E2BIG, "struct vm_image");
	/* what an older caller has behind its struct is not looked at */
	memset(&newer.image.arrays, 0xff, sizeof(newer) - offsetof(struct vm_image, arrays));
	newer.image.size = offsetof(struct vm_image, arrays);
	expect_result(&newer.image, NULL);
	newer.image.size = 0;
	expect_refusal(&newer.image, NULL, -EINVAL, "struct vm_image");
}

static void options_of_other_sizes(void **state)
{
	struct vm_native natives[2] = { the_native, the_native };
	struct vm_image image = image_of(natives, sizeof(natives[0]));
	struct newer_options newer = { { .size = sizeof(newer), .call_depth = 3 }, { 0 } };

	expect_result(&image, &newer.options);
	newer.more[1] = 1ull << 63;
	expect_refusal(&image, &newer.options, -E2BIG, "struct vm_options");
	newer.options.size = offsetof(struct vm_options, engine);
	newer.options.engine = 77;
	expect_result(&image, &newer.options);
	newer.options.size = 8;
	expect_refusal(&image, &newer.options, -EINVAL, "struct vm_options");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newer_natives_are_taken),
		cmocka_unit_test(older_natives_are_taken),
		cmocka_unit_test(images_of_other_sizes),
		cmocka_unit_test(options_of_other_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
