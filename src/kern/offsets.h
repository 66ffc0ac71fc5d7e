/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where fields lie in this kernel's structures: one walk over its BTF, which libbpf and the
 * validating reader of src/obj would take ten times longer for.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct field_offset {
	const char *structure, *field;
	uint32_t offset; /* bytes; set by offsets_find() */
};

/* All or -errno with the reason: -ENOENT for a field that is not there. @path NULL: this kernel. */
int offsets_find(const char *path, struct field_offset *fields, int count, struct err *err);
