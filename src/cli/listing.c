// SPDX-License-Identifier: BSD-2-Clause
#include "cli/listing.h"

#include <stdio.h>
#include <string.h>

#include "isa/disasm.h"

static bool is_lddw(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* Assembler text says what its instructions say. */
static bool is_assembled(const char *file)
{
	size_t size = strlen(file);

	return size > 2 && !strcmp(file + size - 2, ".s");
}

static void print_line_of(const struct obj *obj, uint32_t section, uint64_t offset, uint32_t *last)
{
	struct obj_line line;

	if (!obj || !obj_line_of(obj, section, offset, &line) || line.line == *last || !line.line)
		return;
	*last = line.line;
	if (!is_assembled(line.file))
		printf("; %s  [%s:%u]\n", line.text, line.file, line.line);
}

/* With the name in the place of what a relocation will fill in. */
static void write_insn(const struct listing *listing, const struct listing_code *code, size_t i,
		       char *text, size_t size)
{
	const struct bpf_insn *insn = &code->insns[i];
	struct obj_reference to = { 0 };
	char addend[32] = "";

	if (!listing->obj ||
	    !obj_reference_at(listing->obj, code->section, code->offset + i * 8, &to)) {
		isa_disassemble(insn, code->count - i, text, size);
		return;
	}
	if (to.addend)
		snprintf(addend, sizeof(addend), "%+lld", (long long)to.addend);
	if (is_lddw(insn))
		snprintf(text, size, "r%u = %s%s ll", insn->dst_reg, to.name, addend);
	else
		snprintf(text, size, "call %s%s", to.name, addend);
}

static void print_code(const struct listing *listing, const struct listing_code *code)
{
	uint32_t last = 0;
	char text[512];

	for (size_t i = 0; i < code->count; i++) {
		print_line_of(listing->obj, code->section, code->offset + i * 8, &last);
		write_insn(listing, code, i, text, sizeof(text));
		printf("%8zu: %s\n", i, text);
		if (is_lddw(&code->insns[i]))
			i++;
	}
}

void listing_print_origin(const struct listing *listing, const struct listing_code *code,
			  int64_t insn)
{
	char text[512];

	if (insn < 0 || insn >= (int64_t)code->count) {
		printf(";     -\n");
		return;
	}
	write_insn(listing, code, insn, text, sizeof(text));
	printf(";     %lld: %s\n", (long long)insn, text);
}

/* Index in the user half, UINT32_MAX: it is not there. */
static uint32_t user_function(const struct user_half *user, const struct obj_function *function)
{
	for (uint32_t i = 0; user && i < user->nfunctions; i++) {
		uint32_t first = user->functions[i].first;

		if (user->origin[first].section == function->section &&
		    user->origin[first].offset == function->offset)
			return i;
	}
	return UINT32_MAX;
}

static void print_function(const struct listing *listing, const struct obj_function *function)
{
	const struct obj *obj = listing->obj;
	uint32_t index = user_function(listing->user, function);
	size_t size;
	const char *data = obj_section_data(obj, function->section, &size);
	struct listing_code code = { .insns = (const void *)(data + function->offset),
				     .count = function->size / sizeof(struct bpf_insn),
				     .section = function->section,
				     .offset = function->offset };
	const char *half = "";

	if (listing->user)
		half = index == UINT32_MAX ? " ; kernel half" : " ; user half";
	printf(".function %s \"%s\"%s\n", function->name, obj_section_name(obj, function->section),
	       half);
	print_code(listing, &code);
	if (!listing->vm || index == UINT32_MAX)
		return;
	code.first = listing->user->functions[index].first;
	native_print(listing, &code, index);
}

size_t listing_print(const struct listing *listing)
{
	uint32_t count = obj_function_count(listing->obj);
	size_t printed = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct obj_function function = obj_function_at(listing->obj, i);

		if (listing->function && strcmp(listing->function, function.name))
			continue;
		if (printed++)
			printf("\n");
		print_function(listing, &function);
	}
	return printed;
}

void listing_print_code(const struct listing *listing, const struct bpf_insn *insns, size_t count)
{
	struct listing_code code = { .insns = insns, .count = count };

	print_code(listing, &code);
	for (size_t i = 0; listing->vm && i < listing->nfunctions; i++) {
		code.insns = insns + listing->functions[i].first;
		code.count = listing->functions[i].count;
		code.first = listing->functions[i].first;
		native_print(listing, &code, i);
	}
}
