/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of obj/, for CO-RE: what an access string such as "0:1:2" means in the types that a
 * program was built with, and where the same thing is in the types of the kernel that runs.
 */
#pragma once

#include <stdbool.h>

#include "obj/types.h"

#define CORE_SPEC_MAX 64

struct core_step {
	const char *member; /* name of a member or enumerator; NULL: index of an array element */
	uint32_t index;
	uint32_t type; /* id that it leads to, in the types of the spec */
};

struct core_spec {
	const struct types *types;
	uint32_t root;      /* type, qualifiers resolved */
	uint32_t root_kind; /* of the type as named (typedefs kept) */
	uint32_t count;
	struct core_step steps[CORE_SPEC_MAX];
	/* Of the field that the last step reaches. */
	uint64_t bit_offset;
	uint32_t bit_size; /* of a bit field, else 0 */
	uint32_t type;     /* its type */
	uint64_t value;    /* of an enumerator */
};

/* NULL, or why the string does not fit @root. */
const char *core_spec_field(const struct types *types, uint32_t root, const char *access,
			    struct core_spec *ret);
const char *core_spec_enumerator(const struct types *types, uint32_t root, const char *access,
				 struct core_spec *ret);

/* The same path in type @root of @types. False: it is not there, or is something else. */
bool core_spec_find(const struct core_spec *local, const struct types *types, uint32_t root,
		    struct core_spec *ret);

/* Do two names mean one type? "task_struct___v5" is a flavour of "task_struct". */
bool core_names_equal(const char *left, const char *right);
/* May @left be read as @right, as libbpf sees it (kinds and pointees), or (@exact) by every member? */
bool core_types_match(const struct types *left_types, uint32_t left,
		      const struct types *right_types, uint32_t right, bool exact);
