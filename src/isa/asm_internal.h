/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the assembler share. */
#pragma once

#include <string.h>

#include "isa/asm.h"
#include "isa/isa.h"

/* What stands where a name was given. */
enum asm_refers {
	ASM_REFERS_NOT,
	ASM_REFERS_OFF,    /* a label, distance in off */
	ASM_REFERS_IMM,    /* a label, distance in imm */
	ASM_REFERS_CALL,   /* a function */
	ASM_REFERS_SYMBOL, /* anything that has an address, plus `addend` */
};

struct asm_name {
	const char *at;
	size_t size;
};

/* One statement. */
struct asm_match {
	struct bpf_insn insn[2];
	size_t slots;
	enum asm_refers refers;
	struct asm_name name;
	int64_t addend;
};

/*
 * Finds the operation that reads like the zero-terminated @text. 0, or -EINVAL with the reason in
 * @err and in @column how far into @text the best attempt came.
 */
int asm_match(const char *text, struct asm_match *ret, size_t *column, struct err *err);

/* Letters, digits, `_`, `.` and `$`, not starting with a digit, and no register. Size 0: none. */
struct asm_name asm_read_name(const char *text);

static inline bool asm_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '$';
}

static inline bool asm_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

struct label {
	struct asm_name name;
	uint32_t function, slot, line;
};

/* A name that is looked up when all are known. */
struct fixup {
	struct asm_name name;
	int64_t addend;
	enum asm_refers refers;
	uint32_t slot, function, line, column;
};

struct assembler {
	struct isa_program program;
	char *text; /* a copy, cut into lines */
	const char *line_start;
	uint32_t line;
	size_t code_capacity, lines_capacity, nlines, functions_capacity, symbols_capacity;
	size_t references_capacity, owned_capacity;
	struct label *labels;
	size_t nlabels, labels_capacity;
	struct fixup *fixups;
	size_t nfixups, fixups_capacity;
	struct isa_function **by_name;
	struct err *err;
};

/* asm_names.c: fills in what was given by name. */
int asm_resolve(struct assembler *as);
/* NULL: there is none; out of memory. */
struct isa_symbol *asm_find_symbol(struct assembler *as, struct asm_name name);
struct isa_symbol *asm_add_symbol(struct assembler *as, struct asm_name name);
/* asm.c: a copy that lives as long as the program; NULL: out of memory. */
const char *asm_own(struct assembler *as, const char *at, size_t size);

static inline int asm_compare_names(struct asm_name a, struct asm_name b)
{
	size_t least = a.size < b.size ? a.size : b.size;
	int order = memcmp(a.at, b.at, least);

	return order ?: (a.size > b.size) - (a.size < b.size);
}

static inline struct asm_name asm_name_of(const char *text)
{
	return (struct asm_name){ .at = text, .size = strlen(text) };
}
