/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A BPF object file in memory: ELF, BTF and BTF.ext, fully validated, before anyone else sees it.
 * Objects of clang-14, clang-19 and gcc-bpf. Owns a copy of the bytes; immutable once opened.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "obj/types.h"

struct obj;

/* -EINVAL with `NAME: why: hint` for anything that is not a sound BPF object of this machine's
 * byte order. @name is used in messages only (and copied). */
int obj_open(const void *data, size_t size, const char *name, struct obj **ret, struct err *err);
void obj_close(struct obj *obj);
DEFINE_CLEANUP(struct obj *, obj_close);

const char *obj_name(const struct obj *obj);
/* NULL when the object carries no BTF. */
const struct types *obj_types(const struct obj *obj);

/* Sections by index; everything that is returned lives as long as the object. */
uint32_t obj_section_count(const struct obj *obj);
const Elf64_Shdr *obj_section(const struct obj *obj, uint32_t index);
const char *obj_section_name(const struct obj *obj, uint32_t index);
/* Contents; NULL for SHT_NOBITS. */
const void *obj_section_data(const struct obj *obj, uint32_t index, size_t *size);
/* 0 when there is none (section 0 is never a real one). */
uint32_t obj_find_section(const struct obj *obj, const char *name);

/* Source position of an instruction from .BTF.ext: file may be ""; false when unknown. */
struct obj_line {
	const char *file;
	const char *text; /* the source line itself, blanks stripped, may be "" */
	uint32_t line;
	uint32_t column;
};
bool obj_line_of(const struct obj *obj, uint32_t section, uint64_t offset, struct obj_line *ret);

/* Functions, by section and offset; those that share an address appear once. */
struct obj_function {
	const char *name;
	uint32_t section;
	uint32_t offset, size; /* bytes */
};
uint32_t obj_function_count(const struct obj *obj);
struct obj_function obj_function_at(const struct obj *obj, uint32_t index);

/* What the instruction at @offset refers to by a relocation, or calls; false: nothing. */
struct obj_reference {
	const char *name; /* of a function, a variable or a section */
	int64_t addend;
};
bool obj_reference_at(const struct obj *obj, uint32_t section, uint64_t offset,
		      struct obj_reference *ret);
