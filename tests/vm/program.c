// SPDX-License-Identifier: BSD-2-Clause
#include "program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define UNWIND  5
#define NATIVES 64

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int program_from_hex(const char *text, struct buf *ret)
{
	while (*text) {
		int high, low;
		char byte;

		if (isspace((unsigned char)*text)) {
			text++;
			continue;
		}
		high = hex_digit(text[0]);
		low = high < 0 ? -1 : hex_digit(text[1]);
		if (low < 0)
			return -1;
		byte = high << 4 | low;
		if (buf_append(ret, &byte, 1))
			return -1;
		text += 2;
	}
	return 0;
}

static uint64_t unwind(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, void *vm)
{
	(void)b, (void)c, (void)d, (void)e;
	if (!a)
		vm_raise(*(struct vm **)vm, "unwind");
	return a;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = ((const struct vm_function *)a)->first;
	uint32_t y = ((const struct vm_function *)b)->first;

	return x < y ? -1 : x > y;
}

size_t program_functions(const struct bpf_insn *code, size_t ncode, struct vm_function *ret)
{
	size_t n = 0, kept = 0;

	ret[n++].first = 0;
	for (size_t i = 0; i < ncode; i++) {
		if (code[i].code == (BPF_JMP | BPF_CALL) && code[i].src_reg == BPF_PSEUDO_CALL &&
		    i + 1 + code[i].imm < ncode)
			ret[n++].first = i + 1 + code[i].imm;
		if (code[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
	qsort(ret, n, sizeof(*ret), compare);
	for (size_t i = 0; i < n; i++)
		if (!i || ret[i].first != ret[kept - 1].first)
			ret[kept++].first = ret[i].first;
	for (size_t i = 0; i < kept; i++) {
		ret[i].name = "function";
		ret[i].count = (i + 1 < kept ? ret[i + 1].first : ncode) - ret[i].first;
	}
	return kept;
}

static int fail(char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
	return -1;
}

static int run_image(const struct vm_image *image, struct buf *memory, const struct vm_options *how,
		     uint64_t *result, char *why, size_t why_size)
{
	struct vm *vm = NULL;
	struct vm_options options = { .size = sizeof(options),
				      .context = &vm,
				      .callx_by_number = true,
				      .engine = how ? how->engine : VM_ENGINE_INTERPRETER,
				      .checked = how && how->checked,
				      .passes_off = how ? how->passes_off : 0 };
	uint64_t args[2] = { memory->size ? (uintptr_t)memory->data : 0, memory->size };
	struct vm_fault fault;
	char text[256];
	int rc;

	if (vm_create(image, &options, &vm, why, why_size, NULL))
		return -1;
	if (memory->size && vm_region_add(vm, memory->data, memory->size, VM_REGION_WRITABLE))
		return fail(why, why_size, "its memory is no region");
	*result = 0;
	rc = vm_call(vm, 0, args, 2, result, &fault);
	vm_destroy(vm);
	if (!rc || (fault.kind == VM_FAULT_ABORT && !strcmp(fault.text, "unwind")))
		return 0;
	snprintf(why, why_size, "instruction %u: %s", fault.insn,
		 vm_fault_text(&fault, text, sizeof(text)));
	return -1;
}

int program_run(const struct buf *code, struct buf *memory, const struct vm_options *how,
		uint64_t *result, char *why, size_t why_size)
{
	static const struct vm_contract nothing;
	CLEANUP(free_pointer) struct vm_function *functions = NULL;
	struct vm_native natives[NATIVES] = { [UNWIND] = { .name = "unwind",
							   .function = unwind,
							   .result = VM_U64,
							   .with_context = true,
							   .contract = &nothing } };
	struct vm_image image = { VM_IMAGE_SIZES, .code = (const struct bpf_insn *)code->data,
				  .ncode = code->size / sizeof(struct bpf_insn), .natives = natives,
				  .nnatives = NATIVES };

	if (!code->size || code->size % sizeof(struct bpf_insn))
		return fail(why, why_size, "is not a whole number of instructions");
	functions = calloc(image.ncode + 1, sizeof(*functions));
	if (!functions)
		return fail(why, why_size, "out of memory");
	image.nfunctions = program_functions(image.code, image.ncode, functions);
	image.functions = functions;
	return run_image(&image, memory, how, result, why, why_size);
}
