// SPDX-License-Identifier: BSD-2-Clause
#include "obj/types.h"

#include <errno.h>
#include <string.h>

#include "obj/types_layout.h"

/* By kind: bytes once per type, bytes per element of vlen. */
static const struct {
	const char *name;
	uint8_t once, each;
} kinds[] = {
	[BTF_KIND_INT] = { "INT", 4, 0 },
	[BTF_KIND_PTR] = { "PTR", 0, 0 },
	[BTF_KIND_ARRAY] = { "ARRAY", sizeof(struct btf_array), 0 },
	[BTF_KIND_STRUCT] = { "STRUCT", 0, sizeof(struct btf_member) },
	[BTF_KIND_UNION] = { "UNION", 0, sizeof(struct btf_member) },
	[BTF_KIND_ENUM] = { "ENUM", 0, sizeof(struct btf_enum) },
	[BTF_KIND_FWD] = { "FWD", 0, 0 },
	[BTF_KIND_TYPEDEF] = { "TYPEDEF", 0, 0 },
	[BTF_KIND_VOLATILE] = { "VOLATILE", 0, 0 },
	[BTF_KIND_CONST] = { "CONST", 0, 0 },
	[BTF_KIND_RESTRICT] = { "RESTRICT", 0, 0 },
	[BTF_KIND_FUNC] = { "FUNC", 0, 0 },
	[BTF_KIND_FUNC_PROTO] = { "FUNC_PROTO", 0, sizeof(struct btf_param) },
	[BTF_KIND_VAR] = { "VAR", sizeof(struct btf_var), 0 },
	[BTF_KIND_DATASEC] = { "DATASEC", 0, sizeof(struct btf_var_secinfo) },
	[BTF_KIND_FLOAT] = { "FLOAT", 0, 0 },
	[BTF_KIND_DECL_TAG] = { "DECL_TAG", sizeof(struct btf_decl_tag), 0 },
	[BTF_KIND_TYPE_TAG] = { "TYPE_TAG", 0, 0 },
	[BTF_KIND_ENUM64] = { "ENUM64", 0, sizeof(struct btf_enum64) },
};

int64_t kind_extra(uint32_t info)
{
	uint32_t kind = BTF_INFO_KIND(info);

	if (kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[kind].name)
		return -1;
	return kinds[kind].once + (int64_t)kinds[kind].each * BTF_INFO_VLEN(info);
}

const char *kind_name(uint32_t kind)
{
	return kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind].name ? kinds[kind].name : "?";
}

uint32_t types_count(const struct types *types)
{
	return types->count;
}

const struct btf_type *types_get(const struct types *types, uint32_t id)
{
	if (!id || id >= types->count)
		return NULL;
	return (const void *)(types->records + types->offsets[id]);
}

uint32_t types_kind(const struct types *types, uint32_t id)
{
	const struct btf_type *type = types_get(types, id);

	return type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;
}

const char *types_string(const struct types *types, uint32_t offset)
{
	return offset < types->header.str_len ? types->strings + offset : "";
}

const char *types_name(const struct types *types, uint32_t id)
{
	const struct btf_type *type = types_get(types, id);

	return type ? types_string(types, type->name_off) : "";
}

uint32_t types_find(const struct types *types, uint32_t kind, const char *name)
{
	for (uint32_t id = 1; id < types->count; id++) {
		const struct btf_type *type = types_get(types, id);

		if (BTF_INFO_KIND(type->info) == kind &&
		    !strcmp(types_string(types, type->name_off), name))
			return id;
	}
	return 0;
}

uint32_t types_resolve(const struct types *types, uint32_t id)
{
	for (;;) {
		const struct btf_type *type = types_get(types, id);

		if (!type)
			return 0;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_CONST:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			id = type->type;
			break;
		default:
			return id;
		}
	}
}

int64_t types_size(const struct types *types, uint32_t id)
{
	uint64_t elements = 1;

	for (;;) {
		const struct btf_type *type = types_get(types, id = types_resolve(types, id));
		const struct btf_array *array;
		uint64_t size = 8; /* a pointer, on every architecture that duet knows */

		if (!type)
			return -EINVAL;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_ARRAY:
			array = (const void *)(type + 1);
			if (__builtin_mul_overflow(elements, array->nelems, &elements) ||
			    elements > UINT32_MAX)
				return -E2BIG;
			id = array->type;
			continue;
		case BTF_KIND_VAR:
			id = type->type;
			continue;
		case BTF_KIND_INT:
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
		case BTF_KIND_FLOAT:
		case BTF_KIND_DATASEC:
			size = type->size;
			break;
		case BTF_KIND_PTR:
			break;
		default:
			return -EINVAL;
		}
		if (__builtin_mul_overflow(elements, size, &size) || size > UINT32_MAX)
			return -E2BIG;
		return size;
	}
}

const char *types_decl_tag(const struct types *types, uint32_t id, int32_t component,
			   const char *prefix)
{
	size_t length = strlen(prefix);

	for (uint32_t tag = 1; tag < types->count; tag++) {
		const struct btf_type *type = types_get(types, tag);
		const char *text;

		if (BTF_INFO_KIND(type->info) != BTF_KIND_DECL_TAG || type->type != id ||
		    ((const struct btf_decl_tag *)(type + 1))->component_idx != component)
			continue;
		text = types_string(types, type->name_off);
		if (!strncmp(text, prefix, length))
			return text + length;
	}
	return NULL;
}

const void *types_data(const struct types *types, size_t *size)
{
	*size = types->size;
	return types->data;
}
