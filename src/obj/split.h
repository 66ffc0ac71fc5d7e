/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes one object apart: a kernel-only ELF image for libbpf, and the user half, linked into one
 * instruction array with symbolic references. Everything in `struct user_half` is owned by it and
 * lives until user_half_free(); names point into it, not into the object.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/obj.h"

/* What an instruction, or a pointer in data, refers to. */
enum user_ref_kind {
	USER_REF_DATA, /* index: user_half.data; addend: offset in it */
	USER_REF_MAP,  /* index: user_half.maps */
	USER_REF_FUNCTION, /* index: user_half.functions (address taken; local calls are already linked) */
	USER_REF_EXTERN, /* index: user_half.externs (a call by name, or the address of a C function) */
	USER_REF_HELPER,  /* index: helper number of a `call imm` */
	USER_REF_PROGRAM, /* index: user_half.programs: `&prog` of a kernel program */
};

struct user_ref {
	enum user_ref_kind kind;
	uint32_t at; /* instruction index in code, or byte offset in a data section */
	uint32_t index;
	int64_t addend;
};

struct user_function {
	const char *name;
	uint32_t first, count; /* instructions in user_half.code */
	uint32_t type;         /* BTF FUNC id, 0: unknown */
};

/* A section user/..., lua/..., UBPF;..., UBPF-lua;... */
struct user_hook {
	const char *section; /* as written */
	const char *name;    /* function, or variable of the Lua text */
	uint32_t function;   /* index; UINT32_MAX for Lua text */
	const char *lua;     /* NULL for C */
};

struct user_data {
	const char *name; /* ".bss", ".rodata", ".data.x", ".rodata.str1.1" ... */
	uint32_t size;
	const void *initial; /* NULL: zeroes */
	bool readonly;
	bool in_kernel;        /* libbpf makes a map of it; otherwise private to the user half */
	uint32_t type;         /* BTF DATASEC id in obj_types(), 0: none */
	struct user_ref *refs; /* 8-byte pointers inside */
	size_t nrefs;
};

/* A variable, for --set, $NAME and reports. */
struct user_variable {
	const char *name;
	uint32_t data; /* index in user_half.data */
	uint32_t offset, size;
	uint32_t type; /* BTF id of its type (not of the VAR) */
	bool readonly; /* in .rodata* */
	bool is_volatile;
	bool is_static;
};

struct user_map {
	const char *name;
	uint32_t variable_type; /* BTF id of the VAR's struct type in .maps */
	bool kernel_uses;       /* some kernel program refers to it */
};

struct user_extern {
	const char *name;
	uint32_t proto; /* BTF FUNC_PROTO id, 0: unknown */
	bool weak;
	bool variable; /* a data symbol such as `stdout`, not a function */
};

struct user_program {
	const char *name;    /* kernel program's function name */
	const char *section; /* its SEC() text */
};

/* Text of a `.duet.NAME` section: NUL-separated strings as written, one struct per variable. */
struct user_note {
	const char *kind; /* "pmu", "group", "record", "options", "print", "argument", ... */
	const char *name; /* the variable */
	const char *text;
	uint32_t size; /* of text, including NULs inside and the last one */
};

struct user_half {
	struct bpf_insn *code;
	size_t ncode;
	/* Source of each instruction: section index and byte offset in the object, for lines. */
	struct {
		uint32_t section, offset;
	} * origin;
	struct user_ref *refs;
	size_t nrefs;
	struct user_function *functions;
	size_t nfunctions;
	struct user_hook *hooks; /* file order */
	size_t nhooks;
	struct user_data *data;
	size_t ndata;
	struct user_variable *variables;
	size_t nvariables;
	struct user_map *maps; /* every map of the object */
	size_t nmaps;
	struct user_extern *externs;
	size_t nexterns;
	struct user_program *programs; /* every kernel program of the object */
	size_t nprograms;
	struct user_note *notes;
	size_t nnotes;
};

struct split {
	void *kernel; /* ELF image for bpf_object__open_mem */
	size_t kernel_size;
	struct user_half *user; /* never NULL; empty for a plain libbpf object */
};

/*
 * -EINVAL with the reason: both names when a kernel function reaches a user-only symbol; field
 * name when a CO-RE relocation of the user half does not resolve against @kernel_types (may be
 * NULL: then any such relocation is refused). Validates what it links: call targets are function
 * starts, references are inside their sections.
 */
int obj_split(const struct obj *obj, const struct types *kernel_types, struct split *ret,
	      struct err *err);
void split_deinit(struct split *split);
/* Does the user half hold CO-RE relocations? (Then the caller loads the kernel's BTF first.) */
bool obj_user_needs_kernel_types(const struct obj *obj);
