// SPDX-License-Identifier: BSD-2-Clause
/*
 * write_cases > cases/edge.tsv		write_cases --check cases/edge.tsv
 *
 * Cases of single operations with edge operands. The right result is the kernel's: each program
 * is run there, with the address of a map's value as r1. The cases are the same every time, so
 * --check tells whether the file still says what this kernel does. 77 where bpf(2) is not allowed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "code.h"
#include "generate.h"
#include "kernel.h"

#define CASES_PER_OPERATION 4
#define RESULT              128 /* offset of r0 in the map's value */

struct one {
	struct bpf_insn code[24];
	size_t ncode;
	uint8_t memory[32];
	bool uses_memory;
};

static void add(struct one *one, struct bpf_insn insn)
{
	one->code[one->ncode++] = insn;
}

static void add_constant(struct one *one, uint32_t reg, uint64_t value)
{
	const struct bpf_insn pair[2] = { LDDW(reg, value) };

	add(one, pair[0]);
	add(one, pair[1]);
}

/* r0 = a, r3 = b: most operations work on these. */
static bool write_body(struct one *one, const struct isa_row *row, struct random *random)
{
	struct bpf_insn insn = { .code = row->opcode };
	uint64_t b = random_edge(random);

	add_constant(one, 0, random_edge(random));
	add_constant(one, 3, b);
	if (row->select == ISA_SELECT_OFF)
		insn.off = row->value;
	if (row->select == ISA_SELECT_IMM)
		insn.imm = row->value;
	switch (row->form) {
	case ISA_FORM_ALU_K:
		insn.imm = b;
		if (strstr(row->text, "<<") || strstr(row->text, ">>"))
			insn.imm &= 8 * row->width - 1;
		else if (!insn.imm && (strchr(row->text, '/') || strchr(row->text, '%')))
			insn.imm = -1;
		add(one, insn);
		break;
	case ISA_FORM_ALU_X:
	case ISA_FORM_MOVSX:
		insn.src_reg = 3;
		add(one, insn);
		break;
	case ISA_FORM_NEG:
	case ISA_FORM_ENDIAN:
		add(one, insn);
		break;
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
		insn.off = 1;
		insn.src_reg = row->form == ISA_FORM_JUMP_X ? 3 : 0;
		insn.imm = row->form == ISA_FORM_JUMP_K ? (int32_t)b : 0;
		if (random_below(random, 4) == 0) /* equal operands */
			add(one, row->form == ISA_FORM_JUMP_X ? MOV_X(0, 3) : MOV_K(0, b));
		add(one, MOV_K(4, 1));
		add(one, insn);
		add(one, MOV_K(4, 2));
		add(one, MOV_X(0, 4));
		break;
	case ISA_FORM_LOAD:
	case ISA_FORM_STORE_K:
	case ISA_FORM_STORE_X:
		insn.off = random_below(random, sizeof(one->memory) - row->width + 1);
		one->uses_memory = true;
		if (row->form == ISA_FORM_LOAD) {
			insn.src_reg = 1;
			add(one, insn);
			break;
		}
		insn.dst_reg = 1;
		insn.src_reg = row->form == ISA_FORM_STORE_X ? 3 : 0;
		insn.imm = row->form == ISA_FORM_STORE_K ? (int32_t)b : 0;
		add(one, insn);
		add(one, LDX_DW(0, 1, insn.off > 24 ? 24 : insn.off));
		break;
	case ISA_FORM_ATOMIC:
	case ISA_FORM_CMPXCHG:
		one->uses_memory = true;
		insn.dst_reg = 1;
		insn.src_reg = 3;
		insn.off = 8 * random_below(random, 3);
		if (row->form == ISA_FORM_CMPXCHG && random_below(random, 2))
			add(one, LDX_DW(0, 1, insn.off));
		add(one, insn);
		add(one, LDX_DW(4, 1, insn.off)); /* r0 = (r0 * 31 + r3) * 31 + memory */
		add(one, RAW(0x27, 0, 0, 0, 31));
		add(one, ADD_X(0, 3));
		add(one, RAW(0x27, 0, 0, 0, 31));
		add(one, ADD_X(0, 4));
		break;
	case ISA_FORM_LDDW:
		add(one, MOV_X(0, 3));
		break;
	default:
		return false;
	}
	return true;
}

static int run_kernel(const struct kernel *kernel, const struct one *one, uint64_t *result)
{
	struct bpf_insn code[40];
	size_t n = 0;
	int fd, rc;

	kernel_load_address(kernel, 0, 0, 1, code);
	n = 2;
	code[n++] = MOV_X(9, 1);
	memcpy(&code[n], one->code, one->ncode * sizeof(code[0]));
	n += one->ncode;
	code[n++] = STX_DW(9, 0, RESULT);
	code[n++] = MOV_K(0, 0);
	code[n++] = EXIT();
	memcpy(kernel->arrays[0].data, one->memory, sizeof(one->memory));
	fd = kernel_load(code, n, NULL, 0);
	if (fd < 0)
		return -1;
	rc = kernel_run(fd, 0);
	close(fd);
	if (rc)
		return -1;
	memcpy(result, kernel->arrays[0].data + RESULT, sizeof(*result));
	return 0;
}

static int print_hex(struct buf *text, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		if (buf_printf(text, "%02x", bytes[i]))
			return -1;
	return 0;
}

static int write_case(const struct kernel *kernel, enum isa_op op, int number, struct buf *text)
{
	const struct isa_row *row = isa_row(op);
	/* Seeded by name, so that a new row of the table changes no other case. */
	struct random random = { number };
	struct one one = { 0 };
	uint64_t result;

	for (const char *c = row->name; *c; c++)
		random.state = random.state * 131 + (uint8_t)*c;
	for (size_t i = 0; i < sizeof(one.memory); i += 8) {
		uint64_t value = random_edge(&random);

		memcpy(one.memory + i, &value, 8);
	}
	if (!generates(op) || !write_body(&one, row, &random))
		return 0;
	if (run_kernel(kernel, &one, &result)) {
		fprintf(stderr, "%s-%d: refused by the kernel\n", row->name, number);
		return -1;
	}
	add(&one, EXIT());
	if (buf_printf(text, "%s-%d\t", row->name, number))
		return -1;
	if (one.uses_memory && print_hex(text, one.memory, sizeof(one.memory)))
		return -1;
	if (buf_puts(text, "\t") || print_hex(text, one.code, one.ncode * sizeof(one.code[0])))
		return -1;
	return buf_printf(text, "\t0x%llx\n", (unsigned long long)result);
}

static int check(const char *path, const struct buf *text)
{
	CLEANUP(buf_deinit) struct buf file = { 0 };

	if (buf_read_file(&file, path, NULL)) {
		perror(path);
		return 1;
	}
	if (file.size == text->size && !memcmp(file.data, text->data, file.size))
		return 0;
	fprintf(stderr, "%s: differs from what this kernel computes\n", path);
	return 1;
}

int main(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct kernel kernel = { 0 };

	if (kernel_add_array(&kernel, GENERATE_VALUE, 1) < 0) {
		fprintf(stderr, "bpf(2): not allowed here\n");
		return 77;
	}
	if (buf_puts(&text, "name\tmemory_hex\tprogram_hex\tresult\n"))
		return 1;
	for (int op = 0; op < ISA_NOPS; op++)
		for (int number = 1; number <= CASES_PER_OPERATION; number++)
			if (write_case(&kernel, op, number, &text))
				return 1;
	kernel_close(&kernel);
	if (argc == 3 && !strcmp(argv[1], "--check"))
		return check(argv[2], &text);
	fputs(text.data, stdout);
	return 0;
}
