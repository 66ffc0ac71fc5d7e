/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of obj/split.h, for this folder only: the state of one obj_split(), shared by its steps.
 */
#pragma once

#include "obj/object.h"
#include "obj/split.h"

/* What a section is to the split. */
enum section_role {
	ROLE_NONE,        /* not part of the program: BTF, DWARF, tables */
	ROLE_KERNEL,      /* programs */
	ROLE_TEXT,        /* functions that either half may reach */
	ROLE_USER,        /* user/..., UBPF;...: code */
	ROLE_LUA,         /* lua/..., UBPF-lua;...: text */
	ROLE_NOTE,        /* .duet.* */
	ROLE_MAPS,        /* .maps */
	ROLE_DATA,        /* .bss*, .data*, .rodata*: libbpf makes a map of it */
	ROLE_KERNEL_DATA, /* license and what else libbpf reads */
	ROLE_OTHER_DATA,  /* data in a section of the author's own: nothing to libbpf */
};

/* One step's reference from a function or a data section. */
struct reference {
	uint32_t section; /* where it stands */
	uint32_t offset;
	uint32_t function; /* index in obj->functions, UINT32_MAX: in data */
	bool call;
	struct object_target target;
};

struct splitter {
	const struct obj *obj;
	const struct types *types;        /* obj's; may be NULL */
	const struct types *kernel_types; /* may be NULL */
	struct err *err;
	bool has_kernel, has_user; /* is there any code of that half? */

	enum section_role *roles; /* per section */
	bool *kernel_sections;    /* per section: data that kernel code refers to */
	bool *user_sections;      /* per section: data that the user half can see */
	bool *kernel_externs;     /* per symbol: undefined, and declared in .ksyms or .kconfig */
	bool *kernel_symbols;     /* per symbol: kernel code refers to it */
	bool *kernel_functions;   /* per function: kernel code reaches it */
	bool *user_functions;     /* per function: user code reaches it */
	uint32_t *callers;        /* per function: who reached it first (kernel half) */

	/* From the object's indices to those of the user half, UINT32_MAX: not in it. */
	uint32_t *function_index, *data_index, *map_index, *extern_index, *program_index;

	struct user_half *user;
};

/* Owned pieces of a user half; NULL when out of memory. */
struct user_half *user_half_create(void);
void user_half_free(struct user_half *user);
void *user_half_copy(struct user_half *user, const void *data, size_t size); /* + a NUL */
const char *user_half_string(struct user_half *user, const char *text);

/* -EINVAL with "FILE:LINE: ..." where the line of the instruction is known, else "NAME: ...". */
int split_refuse(const struct splitter *splitter, uint32_t section, uint32_t offset,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Calls @visit for every reference of a function; stops at the first that is not 0. */
typedef int (*reference_fn)(struct splitter *splitter, const struct reference *reference);
int split_walk_function(struct splitter *splitter, uint32_t function, reference_fn visit);
int split_walk_data(struct splitter *splitter, uint32_t section, reference_fn visit);

/* The steps, in this order. */
int split_reach_kernel(struct splitter *splitter);
int split_reach_user(struct splitter *splitter);
int split_list_tables(struct splitter *splitter); /* programs, maps, externs, data, hooks, notes */
int split_list_variables(struct splitter *splitter);
int split_link(struct splitter *splitter); /* code and references */
int split_core_relocate(struct splitter *splitter);
int split_make_image(struct splitter *splitter, void **image, size_t *size);

/* Is a map made of this data section by libbpf, in the kernel image? */
bool split_data_in_kernel(const struct splitter *splitter, uint32_t section);

/* The BTF that goes into the kernel image (mend.c): malloc'ed bytes. */
int split_mend_types(struct splitter *splitter, void **data, size_t *size);

/* OBJECT symbol @name in @section, at @offset if there are several (linked objects have static
 * variables of one name); else the one of a static variable that the compiler numbered ("last.0");
 * 0: none. */
uint32_t split_find_variable(const struct splitter *splitter, uint32_t section, const char *name,
			     uint32_t offset);
