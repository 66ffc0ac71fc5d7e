/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of obj/types.h, for this folder only: how BTF lies in memory.
 */
#pragma once

#include "obj/types.h"

struct types {
	void *data;
	size_t size;
	struct btf_header header;
	const uint8_t *records; /* header.type_len bytes, one btf_type after the other */
	const char *strings;    /* header.str_len bytes, first and last are 0 */
	uint32_t *offsets;      /* of each id in records; [0] is unused */
	uint32_t count;
};

/* What follows the record; NULL for NULL. */
static inline const void *type_tail(const struct btf_type *type)
{
	return type ? type + 1 : NULL;
}

/* Bytes that follow a struct btf_type with this info; -1 for an unknown kind. */
int64_t kind_extra(uint32_t info);
/* "STRUCT" ...; never NULL. */
const char *kind_name(uint32_t kind);
