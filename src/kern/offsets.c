// SPDX-License-Identifier: BSD-2-Clause
#include "kern/offsets.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/reader.h"

#define NOT_FOUND UINT32_MAX
#define MAX_DEPTH 8 /* of anonymous structures (randomised layouts have one) */

struct walk {
	const uint8_t *types;
	size_t size;
	const char *strings;
	size_t strings_size;
	uint32_t *at; /* type id -> offset in types */
	uint32_t count;
};

/* Bytes behind a type's twelve. Documentation/bpf/btf.rst. */
static int64_t extra_size(uint32_t info)
{
	uint32_t vlen = BTF_INFO_VLEN(info);

	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return (int64_t)vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return (int64_t)vlen * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return (int64_t)vlen * 12;
	case BTF_KIND_FUNC_PROTO:
		return (int64_t)vlen * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return (int64_t)vlen * sizeof(struct btf_var_secinfo);
	default:
		return BTF_INFO_KIND(info) <= BTF_KIND_ENUM64 ? 0 : -EINVAL;
	}
}

static const char *name_of(const struct walk *walk, uint32_t offset)
{
	const char *name = string_at(walk->strings, walk->strings_size, offset);

	return name ? name : "";
}

static const struct btf_type *type_at(const struct walk *walk, uint32_t id)
{
	return id && id < walk->count ? (const void *)(walk->types + walk->at[id]) : NULL;
}

static int index_types(struct walk *walk)
{
	uint32_t capacity = walk->size / sizeof(struct btf_type) + 2;
	size_t offset = 0;

	walk->at = malloc(capacity * sizeof(*walk->at));
	if (!walk->at)
		return -ENOMEM;
	walk->at[0] = 0;
	for (walk->count = 1; offset < walk->size; walk->count++) {
		const struct btf_type *type = (const void *)(walk->types + offset);
		int64_t extra;

		if (!range_inside(offset, sizeof(*type), walk->size))
			return -EINVAL;
		extra = extra_size(type->info);
		if (extra < 0 || !range_inside(offset + sizeof(*type), extra, walk->size))
			return -EINVAL;
		walk->at[walk->count] = offset;
		offset += sizeof(*type) + extra;
	}
	return 0;
}

static uint32_t find_field(const struct walk *walk, const struct btf_type *type, const char *field,
			   int depth)
{
	const struct btf_member *member = (const void *)(type + 1);
	uint32_t vlen = BTF_INFO_VLEN(type->info), i;

	for (i = 0; i < vlen; i++) {
		uint32_t bit = BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(member[i].offset)
							  : member[i].offset;
		const char *name = name_of(walk, member[i].name_off);
		const struct btf_type *inner = type_at(walk, member[i].type);
		uint32_t found;

		if (!strcmp(name, field))
			return bit / 8;
		if (name[0] || !inner || depth == MAX_DEPTH ||
		    (BTF_INFO_KIND(inner->info) != BTF_KIND_STRUCT &&
		     BTF_INFO_KIND(inner->info) != BTF_KIND_UNION))
			continue;
		found = find_field(walk, inner, field, depth + 1);
		if (found != NOT_FOUND)
			return found + bit / 8;
	}
	return NOT_FOUND;
}

static void find_in_structure(const struct walk *walk, const struct btf_type *type,
			      const char *name, struct field_offset *fields, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (fields[i].offset == NOT_FOUND && !strcmp(name, fields[i].structure))
			fields[i].offset = find_field(walk, type, fields[i].field, 0);
	}
}

static int open_walk(struct walk *walk, const struct buf *btf)
{
	const struct btf_header *header = (const void *)btf->data;

	if (btf->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    !range_inside((uint64_t)header->hdr_len + header->type_off, header->type_len,
			  btf->size) ||
	    !range_inside((uint64_t)header->hdr_len + header->str_off, header->str_len, btf->size))
		return -EINVAL;
	walk->types = (const uint8_t *)btf->data + header->hdr_len + header->type_off;
	walk->size = header->type_len;
	walk->strings = btf->data + header->hdr_len + header->str_off;
	walk->strings_size = header->str_len;
	return index_types(walk);
}

int offsets_find(const char *path, struct field_offset *fields, int count, struct err *err)
{
	CLEANUP(buf_deinit)
	struct buf btf = { 0 };
	struct walk walk = { 0 };
	CLEANUP(free_pointer)
	uint32_t *index = NULL;
	uint32_t id;
	int i, code;

	if (!path && !offsets_ask(fields, count))
		return 0;
	path = path ? path : "/sys/kernel/btf/vmlinux";
	code = buf_read_file(&btf, path, err);
	if (code)
		return err_prepend(err, code, "this kernel's types (BTF)");
	code = open_walk(&walk, &btf);
	index = walk.at;
	if (code)
		return err_set(err, code, "%s: not BTF as we know it", path);
	for (i = 0; i < count; i++)
		fields[i].offset = NOT_FOUND;
	for (id = 1; id < walk.count; id++) {
		const struct btf_type *type = type_at(&walk, id);

		if (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT)
			find_in_structure(&walk, type, name_of(&walk, type->name_off), fields,
					  count);
	}
	for (i = 0; i < count; i++) {
		if (fields[i].offset == NOT_FOUND)
			return err_set(err, -ENOENT, "this kernel's struct %s has no field %s",
				       fields[i].structure, fields[i].field);
	}
	return 0;
}
