/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where fields lie in this kernel's structures: asked of the kernel; else one walk over its BTF,
 * which libbpf and the validating reader of src/obj would take ten times longer for.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum field_kind {
	FIELD_INT, /* of any size */
	FIELD_POINTER,
	FIELD_ARRAY, /* of integers */
	FIELD_STRUCT,
};

struct field_offset {
	const char *structure, *field;
	enum field_kind kind; /* what the kernel has under this name */
	uint32_t offset;      /* bytes; set by offsets_find() */
};

/* All or -errno with the reason: -ENOENT for a field that is not there. @path NULL: this kernel. */
int offsets_find(const char *path, struct field_offset *fields, int count, struct err *err);

/* Only by asking the running kernel: -errno when it cannot tell; `offset`s are then untouched. */
int offsets_ask(struct field_offset *fields, int count);
