/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BPF assembler: the language of the disassembler, with labels, functions, names and strings
 * (docs/ASSEMBLER.md). Stateless; safe on any thread.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct isa_function {
	const char *name;
	const char *section;   /* ".text" unless the source says another */
	uint32_t first, count; /* slots of code */
	uint32_t line;
};

/* Something that the code refers to by name: bytes of the source's own, or somebody else's. */
struct isa_symbol {
	const char *name;
	const uint8_t *data; /* .string: its bytes; NULL: zeroes (.space), or unknown here */
	uint32_t size;       /* 0: unknown here */
};

struct isa_reference {
	uint32_t insn;   /* slot: `call NAME` or `rN = NAME+M ll` */
	uint32_t symbol; /* index in symbols */
	int64_t addend;
};

/* Owns everything it points to. Zero-initialised is an empty one. */
struct isa_program {
	struct bpf_insn *code;
	uint32_t *lines; /* of the source, from 1, of each slot */
	size_t ncode;
	struct isa_function *functions; /* in the order of the code, without gaps */
	size_t nfunctions;
	struct isa_symbol *symbols; /* in the order of their first mention */
	size_t nsymbols;
	struct isa_reference *references;
	size_t nreferences;
	const char *license; /* .license, or NULL */
	char **owned;        /* texts of the above */
	size_t nowned;
};

/*
 * Assembles @text. Calls and addresses of functions of the same text are resolved: a call is
 * relative, an address is `code[INDEX]`, whose index is the function's in ret->functions; all other
 * names become references. 0, -ENOMEM, or -EINVAL with "LINE:COLUMN: why: hint" in @err; @ret is
 * untouched then.
 */
int isa_assemble(const char *text, size_t size, struct isa_program *ret, struct err *err);
void isa_program_deinit(struct isa_program *program);
