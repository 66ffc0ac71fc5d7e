// SPDX-License-Identifier: BSD-2-Clause
/* An object's user half, opened as duet opens it, linked against the bench's few functions. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "obj/split.h"

static int read_file(const char *path, void **data, size_t *size, struct err *err)
{
	FILE *file = fopen(path, "rb");
	int rc = -ENOMEM;

	if (!file)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	*data = malloc(1 << 20);
	if (*data) {
		*size = fread(*data, 1, 1 << 20, file);
		rc = *size ? 0 : -EIO;
	}
	fclose(file);
	return rc;
}

static int add_region(struct bench_image *image, void *address, size_t size)
{
	if (image->nregions == sizeof(image->regions) / sizeof(image->regions[0]))
		return -E2BIG;
	image->regions[image->nregions++] = (struct bench_region){ address, size };
	return 0;
}

/* Index of a C function in the image's natives, which grow. */
static int add_native(struct bench_image *image, struct vm_native *natives, const char *name)
{
	const struct vm_native *found = bench_native(name);

	if (!found)
		return -ENOENT;
	for (size_t i = 0; i < image->vm.nnatives; i++)
		if (natives[i].function == found->function)
			return i;
	natives[image->vm.nnatives] = *found;
	return image->vm.nnatives++;
}

static void put_address(struct bpf_insn *insn, uint64_t address)
{
	insn[0].src_reg = 0;
	insn[0].imm = (uint32_t)address;
	insn[1].imm = address >> 32;
}

/* @data: address of each data section. */
static int link_ref(struct bench_image *image, const struct user_half *user,
		    struct vm_native *natives, void *const *data, const struct user_ref *ref)
{
	struct bpf_insn *insn = &user->code[ref->at];
	int native;

	switch (ref->kind) {
	case USER_REF_DATA:
		put_address(insn, (uintptr_t)data[ref->index] + ref->addend);
		return 0;
	case USER_REF_MAP: /* the only one there is */
		put_address(insn, (uintptr_t)bench_values);
		return 0;
	case USER_REF_FUNCTION:
		insn[0].src_reg = BPF_PSEUDO_FUNC;
		insn[0].imm = ref->index;
		insn[1].imm = 0;
		return 0;
	case USER_REF_EXTERN:
	case USER_REF_HELPER:
		native = add_native(image, natives,
				    ref->kind == USER_REF_EXTERN ? user->externs[ref->index].name
								 : "bpf_map_lookup_elem");
		insn->src_reg = 0;
		insn->imm = native;
		return native < 0 ? native : 0;
	default:
		return -EINVAL;
	}
}

static int link_half(struct bench_image *image, const struct user_half *user, const char *entry,
		     struct err *err)
{
	static struct vm_array values = { 0, bench_values, 8, BENCH_VALUES };
	struct vm_function *functions = calloc(user->nfunctions + 1, sizeof(*functions));
	struct vm_native *natives = calloc(user->nrefs + 1, sizeof(*natives));
	void **data = calloc(user->ndata + 1, sizeof(*data));
	int rc = functions && natives && data ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < user->ndata; i++) {
		size_t size = (user->data[i].size + 15) & ~15u;

		data[i] = aligned_alloc(64, (size + 63) & ~(size_t)63);
		rc = data[i] ? add_region(image, data[i], size) : -ENOMEM;
		if (!rc)
			memset(data[i], 0, size);
		if (!rc && user->data[i].initial)
			memcpy(data[i], user->data[i].initial, user->data[i].size);
	}
	image->entry = UINT32_MAX;
	for (size_t i = 0; !rc && i < user->nfunctions; i++) {
		functions[i] =
			(struct vm_function){ user->functions[i].name, user->functions[i].first,
					      user->functions[i].count, 5 };
		if (!strcmp(functions[i].name, entry))
			image->entry = i;
	}
	image->vm.code = user->code;
	image->vm.ncode = user->ncode;
	image->vm.functions = functions;
	image->vm.nfunctions = user->nfunctions;
	image->vm.natives = natives;
	for (size_t i = 0; !rc && i < user->nrefs; i++)
		rc = link_ref(image, user, natives, data, &user->refs[i]);
	values.handle = (uintptr_t)bench_values;
	image->vm.arrays = &values;
	image->vm.narrays = 1;
	free(data);
	if (!rc && image->entry == UINT32_MAX)
		rc = -ENOENT;
	return rc ? err_set(err, rc, "linking: %s", strerror(-rc)) : 0;
}

int image_open(const char *path, const char *entry, struct bench_image *ret, struct err *err)
{
	struct split split;
	struct obj *obj;
	void *bytes = NULL;
	size_t size = 0;
	int rc;

	*ret = (struct bench_image){ .vm = { VM_IMAGE_SIZES } };
	rc = read_file(path, &bytes, &size, err);
	if (rc)
		return rc;
	rc = obj_open(bytes, size, path, &obj, err);
	if (rc)
		return rc;
	rc = obj_split(obj, NULL, &split, err);
	if (rc)
		return rc;
	rc = add_region(ret, bench_values, sizeof(bench_values));
	return rc ? rc : link_half(ret, split.user, entry, err); /* the half stays */
}

int image_vm(const struct bench_image *image, enum vm_engine_kind engine, bool checked,
	     uint32_t passes_off, void *memory, size_t size, struct vm **ret, struct err *err)
{
	struct vm_options options = { .size = sizeof(options),
				      .engine = engine,
				      .checked = checked,
				      .passes_off = passes_off };
	char message[256];
	struct vm *vm;
	int rc;

	rc = vm_create(&image->vm, &options, &vm, message, sizeof(message), NULL);
	if (rc)
		return err_set(err, rc, "%s", message);
	if (checked) {
		for (size_t i = 0; !rc && i < image->nregions; i++)
			rc = vm_region_add(vm, image->regions[i].address, image->regions[i].size,
					   VM_REGION_WRITABLE);
		rc = rc || !memory ? rc : vm_region_add(vm, memory, size, VM_REGION_WRITABLE);
		if (rc)
			return err_set(err, rc, "regions: %s", strerror(-rc));
	}
	*ret = vm;
	return 0;
}

#define PATTERN 20

/* Sixteen lines of C or so: a loop with a branch in it, memory, divisions, shifts, a local call. */
static void make_pattern(struct bpf_insn *insn, int32_t number)
{
	const struct bpf_insn pattern[PATTERN] = {
		{ BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 8 },
		{ BPF_LDX | BPF_MEM | BPF_DW, 3, 1, 8, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_X, 4, 3, 0, 0 },
		{ BPF_ALU64 | BPF_AND | BPF_K, 4, 0, 0, 7 },
		{ BPF_ALU64 | BPF_LSH | BPF_K, 4, 0, 0, 3 },
		{ BPF_ALU64 | BPF_ADD | BPF_X, 4, 1, 0, 0 },
		{ BPF_LDX | BPF_MEM | BPF_DW, 5, 4, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, 5, 0, 0, number },
		{ BPF_STX | BPF_MEM | BPF_DW, 4, 5, 0, 0 },
		{ BPF_JMP | BPF_JGT | BPF_K, 3, 0, 3, 1000 },
		{ BPF_ALU64 | BPF_DIV | BPF_K, 3, 0, 0, 10 },
		{ BPF_STX | BPF_MEM | BPF_DW, 1, 3, 8, 0 },
		{ BPF_JMP | BPF_JA, 0, 0, 3, 0 },
		{ BPF_ALU | BPF_MOV | BPF_X, 5, 3, 0, 0 },
		{ BPF_ALU | BPF_RSH | BPF_K, 5, 0, 0, 3 },
		{ BPF_ALU64 | BPF_ADD | BPF_X, 0, 5, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -1 },
		{ BPF_JMP | BPF_JNE | BPF_K, 2, 0, -17, 0 },
		{ BPF_STX | BPF_MEM | BPF_DW, 10, 0, -8, 0 },
		{ BPF_LDX | BPF_MEM | BPF_DW, 0, 10, -8, 0 },
	};

	memcpy(insn, pattern, sizeof(pattern));
}

int image_make(size_t ninsns, struct bench_image *ret)
{
	size_t patterns = (ninsns - 2) / PATTERN, n = 0;
	struct bpf_insn *code = calloc(patterns * PATTERN + 2, sizeof(*code));
	struct vm_function *function = calloc(1, sizeof(*function));

	if (!code || !function)
		return -ENOMEM;
	code[n++] = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1 };
	for (size_t i = 0; i < patterns; i++, n += PATTERN)
		make_pattern(&code[n], i);
	code[n++] = (struct bpf_insn){ BPF_JMP | BPF_EXIT };
	*function = (struct vm_function){ "made", 0, n, 1 };
	*ret = (struct bench_image){ .vm = { VM_IMAGE_SIZES, .code = code, .ncode = n,
					     .functions = function, .nfunctions = 1 } };
	return 0;
}
