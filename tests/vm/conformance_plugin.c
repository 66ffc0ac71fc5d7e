// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_conformance_plugin ["hex memory"] [--interp]
 *
 * The plug-in of the public bpf_conformance runner: the program as hex bytes on standard input,
 * r1 = memory, r2 = its length; prints r0 as hex. Helper 5 is "unwind": when it returns 0, which
 * is what its argument was, the program ends there with that result.
 */
#include <duet/vm.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define UNWIND  5
#define NATIVES 64

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return 1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Blanks between bytes are optional. -1 for anything else that is no pair of digits. */
static int from_hex(const char *text, struct buf *ret)
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

/* A function starts at 0 and wherever a local call goes. */
static size_t find_functions(const struct bpf_insn *code, size_t ncode, struct vm_function *ret)
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

static int run(const struct vm_image *image, struct buf *memory)
{
	struct vm *vm = NULL;
	struct vm_options options = { .size = sizeof(options),
				      .context = &vm,
				      .callx_by_number = true };
	uint64_t args[2] = { memory->size ? (uintptr_t)memory->data : 0, memory->size };
	uint64_t result = 0;
	struct vm_fault fault;
	char text[256];

	if (vm_create(image, &options, &vm, text, sizeof(text), NULL))
		return fail("program", text);
	if (vm_call(vm, 0, args, 2, &result, &fault) && strcmp(fault.text, "unwind")) {
		fprintf(stderr, "instruction %u: %s\n", fault.insn,
			vm_fault_text(&fault, text, sizeof(text)));
		vm_destroy(vm);
		return 1;
	}
	vm_destroy(vm);
	printf("%llx\n", (unsigned long long)result);
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 }, code = { 0 }, memory = { 0 };
	CLEANUP(free_pointer)
	struct vm_function *functions = NULL;
	struct vm_native natives[NATIVES] = { [UNWIND] = { .name = "unwind",
							   .function = unwind,
							   .result = VM_U64,
							   .with_context = true } };
	struct vm_image image = { .natives = natives, .nnatives = NATIVES };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--interp"))
			continue;
		if (!strncmp(argv[i], "--", 2))
			return fail(argv[i], "not supported: only the interpreter is there");
		if (from_hex(argv[i], &memory))
			return fail("memory", "is not hex bytes");
	}
	if (buf_read_fd(&text, STDIN_FILENO) || from_hex(text.data ? text.data : "", &code))
		return fail("program", "is not hex bytes");
	if (!code.size || code.size % sizeof(struct bpf_insn))
		return fail("program", "is not a whole number of instructions");
	image.code = (const struct bpf_insn *)code.data;
	image.ncode = code.size / sizeof(struct bpf_insn);
	functions = calloc(image.ncode + 1, sizeof(*functions));
	if (!functions)
		return fail("program", "out of memory");
	image.nfunctions = find_functions(image.code, image.ncode, functions);
	image.functions = functions;
	return run(&image, &memory);
}
