/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF, fully validated: after types_open() succeeded, no walk over the types can leave the bytes,
 * loop for ever or meet an unknown kind. Owns a copy of the bytes. Immutable, so thread safe.
 * Source: the kernel's Documentation/bpf/btf.rst and include/uapi/linux/btf.h.
 */
#pragma once

#include <linux/btf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct types;

/* Validates and copies. -EINVAL with "BTF: ..." when the bytes are no sound BTF. */
int types_open(const void *data, size_t size, struct types **ret, struct err *err);
void types_close(struct types *types);
DEFINE_CLEANUP(struct types *, types_close);

uint32_t types_count(const struct types *types); /* ids are 1 .. count-1; 0 is void */
/* NULL for 0 and for ids outside. */
const struct btf_type *types_get(const struct types *types, uint32_t id);
uint32_t types_kind(const struct types *types, uint32_t id); /* BTF_KIND_UNKN for void */
/* Never NULL: "" for an anonymous type or void. */
const char *types_name(const struct types *types, uint32_t id);
/* The string at an offset of the string section; "" when outside. */
const char *types_string(const struct types *types, uint32_t offset);
/* First id of @kind with @name, or 0. */
uint32_t types_find(const struct types *types, uint32_t kind, const char *name);
/* Through typedefs, const, volatile, restrict and type tags. */
uint32_t types_resolve(const struct types *types, uint32_t id);
/* Size in bytes; -EINVAL for functions and void, -E2BIG for what does not fit. */
int64_t types_size(const struct types *types, uint32_t id);
/* The decl tag on @id (component -1 = the declaration itself) that starts with @prefix: the text
 * behind the prefix, or NULL. */
const char *types_decl_tag(const struct types *types, uint32_t id, int32_t component,
			   const char *prefix);
/* The bytes, for those who hand them to the kernel. */
const void *types_data(const struct types *types, size_t *size);
