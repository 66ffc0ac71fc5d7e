/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of obj/obj.h, for this folder only. After obj_open() every index, offset and name below
 * is inside its bounds; relocations are sorted and fit their instructions.
 */
#pragma once

#include <linux/bpf.h>

#include "obj/obj.h"

/* Relocation types, as LLVM names them; the GNU assembler has numbers of its own for data. */
#define RELOC_64_64       1 /* lddw */
#define RELOC_ABS64       2 /* pointer in data */
#define RELOC_ABS32       3
#define RELOC_NODYLD32    4
#define RELOC_64_32       10 /* call */
#define RELOC_GNU_DATA_32 11
#define RELOC_GNU_DATA_64 12

struct object_reloc {
	uint32_t offset; /* in its section */
	uint32_t type;
	uint32_t symbol; /* never 0 */
};

struct object_section {
	const char *name;
	struct object_reloc *relocs; /* by offset, no two alike; only of SHF_ALLOC sections */
	uint32_t nrelocs;
	uint32_t reloc_section; /* index of the SHT_REL section, 0: none */
};

/* A function of the symbol table. Functions of one section do not overlap; aliases appear once. */
struct object_function {
	uint32_t symbol;
	uint32_t section;
	uint32_t offset, size; /* bytes, multiples of 8 */
};

struct object_line {
	uint32_t section, offset;
	uint32_t file, text; /* offsets in the strings of BTF */
	uint32_t position;   /* line << 10 | column */
};

struct object_func_info {
	uint32_t section, offset, type;
};

struct object_core_reloc {
	uint32_t section, offset;
	uint32_t type;   /* local BTF type */
	uint32_t access; /* "0:1:2", offset in the strings of BTF; terminated */
	uint32_t kind;   /* enum bpf_core_relo_kind, validated */
};

struct obj {
	char *name;
	uint8_t *data;
	size_t size;
	const Elf64_Shdr *headers;
	struct object_section *sections;
	uint32_t nsections;
	uint32_t symtab; /* section index */
	const Elf64_Sym *symbols;
	uint32_t nsymbols;
	const char *symbol_names;
	struct object_function *functions; /* by section and offset */
	uint32_t nfunctions;
	struct types *types;
	struct object_line *lines; /* the three: by section and offset */
	struct object_func_info *func_infos;
	struct object_core_reloc *core_relocs;
	uint32_t nlines, nfunc_infos, ncore_relocs;
	/*
	 * The GNU assembler up to binutils 2.40 adds a symbol's value to the addend that it leaves
	 * in place: undone wherever addends are read.
	 */
	bool addends_hold_values;
};

/* What a relocation means. */
struct object_target {
	uint32_t symbol;
	uint32_t section; /* 0: undefined symbol */
	int64_t offset;   /* in the section; 0 for an undefined symbol */
};

/* Refuses: `NAME: ...`. Returns -EINVAL. */
int object_refuse(const struct obj *obj, struct err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Control characters become '?': for text that comes from the object. */
void object_clean_text(char *text);

/* Parts of obj_open(), in this order. */
int object_read_relocs(struct obj *obj, struct err *err);
int object_read_ext(struct obj *obj, struct err *err);

const char *object_symbol_name(const struct obj *obj, uint32_t symbol);
const struct bpf_insn *object_insn(const struct obj *obj, uint32_t section, uint64_t offset);
/* The relocation exactly at @offset, or NULL. */
const struct object_reloc *object_reloc_at(const struct obj *obj, uint32_t section,
					   uint64_t offset);
/* Of an instruction or an 8-byte pointer in data. */
struct object_target object_reloc_target(const struct obj *obj, uint32_t section,
					 const struct object_reloc *reloc);
/* Index in functions of the one that starts at, or holds, @offset; UINT32_MAX: none. */
uint32_t object_function_at(const struct obj *obj, uint32_t section, int64_t offset);
uint32_t object_function_around(const struct obj *obj, uint32_t section, int64_t offset);

static inline const char *object_function_name(const struct obj *obj, uint32_t function)
{
	return object_symbol_name(obj, obj->functions[function].symbol);
}

static inline bool insn_is_lddw(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static inline bool insn_is_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL);
}

static inline bool section_is_code(const Elf64_Shdr *header)
{
	return header->sh_type == SHT_PROGBITS && (header->sh_flags & SHF_EXECINSTR) &&
	       header->sh_size;
}
