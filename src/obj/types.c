// SPDX-License-Identifier: BSD-2-Clause
#include "obj/types.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "obj/types_layout.h"

/* How deep types may hold each other by value (members, elements, typedefs, qualifiers). The
 * kernel stops at 32; a limit of our own bounds every recursion over types. */
#define DEPTH_MAX 64

static int bad_type(struct err *err, const struct types *types, uint32_t id, const char *why)
{
	return err_set(err, -EINVAL, "BTF: type %u (%s): %s", id,
		       kind_name(BTF_INFO_KIND(types_get(types, id)->info)), why);
}

static int check_header(struct types *types, struct err *err)
{
	struct btf_header *header = &types->header;
	uint64_t left;

	if (types->size < sizeof(*header))
		return err_set(err, -EINVAL, "BTF: cut short: %zu bytes", types->size);
	memcpy(header, types->data, sizeof(*header));
	if (header->magic == __builtin_bswap16(BTF_MAGIC))
		return err_set(err, -EINVAL,
			       "BTF: of the other byte order: built for another "
			       "architecture");
	if (header->magic != BTF_MAGIC)
		return err_set(err, -EINVAL, "BTF: no BTF: magic %#x", header->magic);
	if (header->version != BTF_VERSION || header->flags)
		return err_set(err, -EINVAL, "BTF: unknown version %u, flags %#x", header->version,
			       header->flags);
	if (header->hdr_len < sizeof(*header) || header->hdr_len > types->size ||
	    header->hdr_len % 4)
		return err_set(err, -EINVAL, "BTF: bad header length %u", header->hdr_len);
	left = types->size - header->hdr_len;
	if (header->type_off % 4 || !range_inside(header->type_off, header->type_len, left))
		return err_set(err, -EINVAL, "BTF: types outside the section");
	if (!range_inside(header->str_off, header->str_len, left))
		return err_set(err, -EINVAL, "BTF: strings outside the section");
	/* libbpf and the kernel want this order. */
	if ((uint64_t)header->type_off + header->type_len > header->str_off)
		return err_set(err, -EINVAL, "BTF: types and strings overlap");
	types->records = (uint8_t *)types->data + header->hdr_len + header->type_off;
	types->strings = (char *)types->data + header->hdr_len + header->str_off;
	if (!header->str_len || types->strings[0] || types->strings[header->str_len - 1])
		return err_set(err, -EINVAL, "BTF: string section not terminated");
	return 0;
}

/* Finds the records: after this, types_get() of every id is whole. */
static int index_records(struct types *types, struct err *err)
{
	uint32_t length = types->header.type_len, at = 0, capacity = length / 16 + 16;

	types->offsets = malloc(capacity * sizeof(*types->offsets));
	if (!types->offsets)
		return err_nomem(err);
	types->count = 1;
	types->offsets[0] = 0;
	while (at < length) {
		const struct btf_type *type = (const void *)(types->records + at);
		uint64_t size = sizeof(*type);
		int64_t more = 0;

		if (length - at >= size)
			more = kind_extra(type->info);
		if (length - at < size || (more >= 0 && length - at - size < (uint64_t)more))
			return err_set(err, -EINVAL, "BTF: type %u: cut short", types->count);
		if (more < 0)
			return err_set(err, -EINVAL, "BTF: type %u: unknown kind %u", types->count,
				       BTF_INFO_KIND(type->info));
		if (types->count == capacity) {
			void *grown =
				realloc(types->offsets, capacity * 2 * sizeof(*types->offsets));

			if (!grown)
				return err_nomem(err);
			types->offsets = grown;
			capacity *= 2;
		}
		types->offsets[types->count++] = at;
		at += size + more;
	}
	return 0;
}

static bool is_type(const struct types *types, uint32_t id)
{
	return id < types->count;
}

static bool is_string(const struct types *types, uint32_t offset)
{
	return offset < types->header.str_len;
}

static const char *check_int(const struct types *types, const struct btf_type *type)
{
	uint32_t bits = BTF_INT_BITS(*(const uint32_t *)(type + 1));
	uint32_t offset = BTF_INT_OFFSET(*(const uint32_t *)(type + 1));

	if (type->size > 16 || !type->size || (type->size & (type->size - 1)))
		return "bad size";
	/* gcc writes SIGNED|CHAR, so the encoding is not looked at. */
	return !bits || offset + bits > type->size * 8 ? "bits outside the integer" : NULL;
}

static const char *check_members(const struct types *types, const struct btf_type *type)
{
	const struct btf_member *member = (const void *)(type + 1);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++, member++) {
		if (!is_string(types, member->name_off))
			return "member name outside the strings";
		if (!member->type || !is_type(types, member->type))
			return "member of no type";
	}
	return NULL;
}

static const char *check_enum(const struct types *types, const struct btf_type *type)
{
	const uint8_t *at = (const uint8_t *)(type + 1);
	bool wide = BTF_INFO_KIND(type->info) == BTF_KIND_ENUM64;
	size_t step = wide ? sizeof(struct btf_enum64) : sizeof(struct btf_enum);

	if (type->size > 8 || !type->size || (type->size & (type->size - 1)))
		return "bad size";
	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++, at += step)
		if (!is_string(types, *(const uint32_t *)at))
			return "value name outside the strings";
	return NULL;
}

static const char *check_parameters(const struct types *types, const struct btf_type *type)
{
	const struct btf_param *param = (const void *)(type + 1);

	if (!is_type(types, type->type))
		return "no such result type";
	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++, param++) {
		if (!is_string(types, param->name_off))
			return "parameter name outside the strings";
		if (!is_type(types, param->type))
			return "parameter of no type";
	}
	return NULL;
}

static const char *check_datasec(const struct types *types, const struct btf_type *type)
{
	const struct btf_var_secinfo *info = (const void *)(type + 1);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++, info++) {
		uint32_t kind = types_kind(types, info->type);

		if (kind != BTF_KIND_VAR && kind != BTF_KIND_FUNC) /* functions: .ksyms */
			return "holds something that is no variable";
		/* Compilers leave the size 0: the linker fills it in. */
		if (type->size && !range_inside(info->offset, info->size, type->size))
			return "variable outside the section";
	}
	return NULL;
}

static const char *check_decl_tag(const struct types *types, const struct btf_type *type)
{
	int32_t component = ((const struct btf_decl_tag *)(type + 1))->component_idx;
	uint32_t parts = 0;
	const struct btf_type *of = types_get(types, type->type);

	switch (types_kind(types, type->type)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		parts = BTF_INFO_VLEN(of->info);
		break;
	case BTF_KIND_FUNC:
		if (types_kind(types, of->type) == BTF_KIND_FUNC_PROTO)
			parts = BTF_INFO_VLEN(types_get(types, of->type)->info);
		break;
	case BTF_KIND_VAR:
	case BTF_KIND_TYPEDEF:
		break;
	default:
		return "tags something that takes no tag";
	}
	return component < -1 || component >= (int64_t)parts ? "tags no such component" : NULL;
}

/* One record by itself: names, and the ids that it mentions. */
static const char *check_record(const struct types *types, const struct btf_type *type)
{
	const struct btf_array *array = (const void *)(type + 1);

	if (type->info & ~0x9f00ffffU)
		return "reserved bits set";
	if (!is_string(types, type->name_off))
		return "name outside the strings";
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
		return check_int(types, type);
	case BTF_KIND_ARRAY:
		return !is_type(types, array->type) || !array->type ||
				       !is_type(types, array->index_type)
			       ? "no such element type"
			       : NULL;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return check_members(types, type);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return check_enum(types, type);
	case BTF_KIND_FUNC:
		if (BTF_INFO_VLEN(type->info) > BTF_FUNC_EXTERN)
			return "unknown linkage";
		return types_kind(types, type->type) == BTF_KIND_FUNC_PROTO ? NULL
									    : "has no prototype";
	case BTF_KIND_FUNC_PROTO:
		return check_parameters(types, type);
	case BTF_KIND_VAR:
		if (((const struct btf_var *)(type + 1))->linkage > BTF_VAR_GLOBAL_EXTERN)
			return "unknown linkage";
		break;
	case BTF_KIND_DATASEC:
		return check_datasec(types, type);
	case BTF_KIND_DECL_TAG:
		return check_decl_tag(types, type);
	case BTF_KIND_FWD:
		return NULL;
	case BTF_KIND_FLOAT:
		return !type->size || type->size > 16 ? "bad size" : NULL;
	}
	return is_type(types, type->type) ? NULL : "refers to no type";
}

/*
 * Height of the tree of types that @id holds by value, memoised in @heights. -E2BIG when it is
 * deeper than DEPTH_MAX, which a cycle always is.
 */
static int by_value_height(const struct types *types, uint8_t *heights, uint32_t id, int depth)
{
	const struct btf_type *type = types_get(types, id);
	const struct btf_member *members;
	int height = 0, below;

	if (!type)
		return 0;
	if (heights[id])
		return depth + heights[id] > DEPTH_MAX ? -E2BIG : heights[id];
	if (depth >= DEPTH_MAX)
		return -E2BIG;
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_ARRAY:
		height = by_value_height(types, heights,
					 ((const struct btf_array *)(type + 1))->type, depth + 1);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		members = (const void *)(type + 1);
		for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++) {
			below = by_value_height(types, heights, members[i].type, depth + 1);
			if (below < 0)
				return below;
			height = below > height ? below : height;
		}
		break;
	case BTF_KIND_VAR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		height = by_value_height(types, heights, type->type, depth + 1);
		break;
	}
	if (height < 0)
		return height;
	heights[id] = height + 1;
	return height + 1;
}

/* Members lie inside their structure. Needs sizes, so it runs after the cycles are ruled out. */
static const char *check_member_places(const struct types *types, const struct btf_type *type)
{
	const struct btf_member *member = (const void *)(type + 1);
	uint64_t total = (uint64_t)type->size * 8;

	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++, member++) {
		bool flagged = BTF_INFO_KFLAG(type->info);
		uint64_t offset = flagged ? BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset;
		uint64_t bits = flagged ? BTF_MEMBER_BITFIELD_SIZE(member->offset) : 0;
		int64_t size = types_size(types, member->type);

		if (size < 0)
			return "member without a size";
		if (bits > (uint64_t)size * 8)
			return "bit field wider than its type";
		if (!range_inside(offset, bits ? bits : (uint64_t)size * 8, total)) {
			uint32_t plain = types_resolve(types, member->type);

			/* Before kind_flag existed a bit field was an integer of few bits. */
			if (flagged || types_kind(types, plain) != BTF_KIND_INT ||
			    !range_inside(
				    offset,
				    BTF_INT_BITS(*(const uint32_t *)(types_get(types, plain) + 1)),
				    total))
				return "member outside the structure";
		}
	}
	return NULL;
}

static int check_all(struct types *types, struct err *err)
{
	CLEANUP(free_pointer)
	uint8_t *heights = calloc(types->count, 1);
	const char *why;

	if (!heights)
		return err_nomem(err);
	for (uint32_t id = 1; id < types->count; id++) {
		why = check_record(types, types_get(types, id));
		if (why)
			return bad_type(err, types, id, why);
	}
	for (uint32_t id = 1; id < types->count; id++)
		if (by_value_height(types, heights, id, 0) < 0)
			return bad_type(err, types, id, "holds itself, or is nested too deeply");
	for (uint32_t id = 1; id < types->count; id++) {
		const struct btf_type *type = types_get(types, id);
		uint32_t kind = BTF_INFO_KIND(type->info);

		why = kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION
			      ? check_member_places(types, type)
			      : NULL;
		if (!why && kind == BTF_KIND_ARRAY && types_size(types, id) == -E2BIG)
			why = "too large";
		if (why)
			return bad_type(err, types, id, why);
	}
	return 0;
}

static struct types *types_create(const void *data, size_t size)
{
	struct types *types = calloc(1, sizeof(*types));

	if (!types)
		return NULL;
	types->data = malloc(size + 1);
	if (!types->data) {
		types_close(types);
		return NULL;
	}
	memcpy(types->data, data, size);
	types->size = size;
	return types;
}

int types_open(const void *data, size_t size, struct types **ret, struct err *err)
{
	CLEANUP(types_close_cleanup) struct types *types = NULL;
	int code;

	if (size > UINT32_MAX)
		return err_set(err, -EINVAL, "BTF: larger than 4 GiB");
	types = types_create(data, size);
	if (!types)
		return err_nomem(err);
	code = check_header(types, err);
	if (!code)
		code = index_records(types, err);
	if (!code)
		code = check_all(types, err);
	if (code)
		return code;
	*ret = take_pointer(types);
	return 0;
}

void types_close(struct types *types)
{
	if (!types)
		return;
	free(types->offsets);
	free(types->data);
	free(types);
}
