// SPDX-License-Identifier: BSD-2-Clause
#include "object_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/libbpf.h>

#include "duet/vm.h"
#include "obj/split.h"

#define CHECK(condition, ...)                                                           \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__);                                   \
			fprintf(stderr, "\n");                                          \
			abort();                                                        \
		}                                                                       \
	} while (0)

static int drop_message(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static void check_message(int code, const struct err *err)
{
	CHECK(code == -EINVAL, "%d", code);
	CHECK(err->code == code, "%d", err->code);
	CHECK(err->text[0] && !strchr(err->text, '\n'), "\"%s\"", err->text);
}

/* Every index and offset of the user half is in its bounds: read all of it. */
static size_t check_half(const struct user_half *user)
{
	size_t sum = 0;

	for (size_t i = 0; i < user->nrefs; i++) {
		const struct user_ref *ref = &user->refs[i];
		size_t limits[] = {
			[USER_REF_DATA] = user->ndata,          [USER_REF_MAP] = user->nmaps,
			[USER_REF_FUNCTION] = user->nfunctions, [USER_REF_EXTERN] = user->nexterns,
			[USER_REF_HELPER] = UINT32_MAX,         [USER_REF_PROGRAM] = user->nprograms
		};

		CHECK(ref->at < user->ncode && ref->index < limits[ref->kind], "reference %zu", i);
	}
	for (size_t i = 0; i < user->ndata; i++) {
		const struct user_data *data = &user->data[i];

		sum += strlen(data->name) +
		       (data->initial ? ((const char *)data->initial)[data->size - 1] : 0);
		for (size_t r = 0; r < data->nrefs; r++)
			CHECK(data->refs[r].at + 8ULL <= data->size, "pointer %zu of %s", r,
			      data->name);
	}
	for (size_t i = 0; i < user->nvariables; i++) {
		const struct user_variable *variable = &user->variables[i];

		CHECK(variable->data < user->ndata, "%s", variable->name);
		CHECK(variable->offset + (uint64_t)variable->size <=
			      user->data[variable->data].size,
		      "%s", variable->name);
	}
	for (size_t i = 0; i < user->nfunctions; i++)
		CHECK(user->functions[i].first + user->functions[i].count <= user->ncode, "%s",
		      user->functions[i].name);
	for (size_t i = 0; i < user->nhooks; i++)
		CHECK(user->hooks[i].lua ? strlen(user->hooks[i].lua) < 1 << 30
					 : user->hooks[i].function < user->nfunctions,
		      "%s", user->hooks[i].name);
	for (size_t i = 0; i < user->nnotes; i++)
		CHECK(!user->notes[i].text[user->notes[i].size - 1], "%s", user->notes[i].name);
	return sum;
}

static uint64_t nothing(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, void *context)
{
	return 0;
}

/* The VM's validator, with every reference resolved to something harmless. */
static void check_vm(const struct user_half *user)
{
	static const struct vm_native native = { .name = "nothing",
						 .function = nothing,
						 .result = VM_U64,
						 .nargs = 5,
						 .args = { VM_U64, VM_U64, VM_U64, VM_U64, VM_U64 },
						 .with_context = true };
	struct vm_function *functions = calloc(user->nfunctions + 1, sizeof(*functions));
	struct vm_image image = {
		VM_IMAGE_SIZES, user->code, user->ncode, functions, user->nfunctions, &native, 1
	};
	/* small, for speed */
	struct vm_options options = { .size = sizeof(options), .stack_bytes = 65536 };
	char message[256] = "";
	uint32_t bad = 0;
	struct vm *vm = NULL;
	int code;

	CHECK(functions, "out of memory");
	for (size_t i = 0; i < user->nfunctions; i++)
		functions[i] =
			(struct vm_function){ user->functions[i].name, user->functions[i].first,
					      user->functions[i].count, 5 };
	for (size_t i = 0; i < user->nrefs; i++)
		if (user->refs[i].kind == USER_REF_HELPER || user->refs[i].kind == USER_REF_EXTERN)
			if (user->code[user->refs[i].at].code == (BPF_JMP | BPF_CALL))
				user->code[user->refs[i].at].imm = 0;
	code = vm_create(&image, &options, &vm, message, sizeof(message), &bad);
	CHECK(!code || code == -EINVAL || code == -ENOTSUP, "%d", code);
	CHECK(!code || message[0], "%d", code);
	vm_destroy(vm);
	free(functions);
}

bool object_check(const void *data, size_t size)
{
	struct split split = { 0 };
	struct err err = { 0 };
	struct obj *obj = NULL;
	struct bpf_object *kernel;
	int code = obj_open(data, size, "x.o", &obj, &err);
	bool accepted = false;

	libbpf_set_print(drop_message);
	if (!code)
		code = obj_split(obj, NULL, &split, &err);
	if (code) {
		check_message(code, &err);
	} else {
		accepted = true;
		CHECK(!err.code && !err.text[0], "\"%s\"", err.text);
		check_half(split.user);
		if (split.user->ncode)
			check_vm(split.user);
		kernel = bpf_object__open_mem(split.kernel, split.kernel_size, NULL);
		bpf_object__close(kernel);
	}
	split_deinit(&split);
	obj_close(obj);
	return accepted;
}
