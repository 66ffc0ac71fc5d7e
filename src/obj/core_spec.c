// SPDX-License-Identifier: BSD-2-Clause
#include "obj/core_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "obj/types_layout.h"

static bool is_composite(uint32_t kind)
{
	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

static bool is_enum(uint32_t kind)
{
	return kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64;
}

static size_t essential_length(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour && flavour > name ? (size_t)(flavour - name) : strlen(name);
}

bool core_names_equal(const char *left, const char *right)
{
	size_t length;

	if (*left != *right)
		return false;
	length = essential_length(left);

	return length == essential_length(right) && !memcmp(left, right, length);
}

/* The next number of "0:1:2"; false: none, or nonsense. */
static bool next_index(const char **access, uint32_t *ret)
{
	char *end;
	unsigned long value;

	if (**access < '0' || **access > '9')
		return false;
	errno = 0;
	value = strtoul(*access, &end, 10);
	if (errno || value > INT32_MAX || (*end && *end != ':'))
		return false;
	*access = *end ? end + 1 : end;
	*ret = value;
	return true;
}

static struct core_step *add_step(struct core_spec *spec, const char *member, uint32_t index,
				  uint32_t type)
{
	struct core_step *step = spec->count < CORE_SPEC_MAX ? &spec->steps[spec->count++] : NULL;

	if (step)
		*step = (struct core_step){ member, index, type };
	return step;
}

static const struct btf_member *member_at(const struct types *types, uint32_t id, uint32_t index)
{
	const struct btf_type *type = types_get(types, id);

	return index < BTF_INFO_VLEN(type->info) ? (const struct btf_member *)(type + 1) + index
						 : NULL;
}

static void enter_member(struct core_spec *spec, const struct btf_type *of,
			 const struct btf_member *member)
{
	bool flagged = BTF_INFO_KFLAG(of->info);

	spec->bit_offset += flagged ? BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset;
	spec->bit_size = flagged ? BTF_MEMBER_BITFIELD_SIZE(member->offset) : 0;
	spec->type = member->type;
}

static bool enter_element(struct core_spec *spec, uint32_t element, uint32_t index)
{
	int64_t size = types_size(spec->types, element);

	if (size < 0 || (uint64_t)size * index > UINT32_MAX)
		return false;
	spec->bit_offset += (uint64_t)size * index * 8;
	spec->bit_size = 0;
	spec->type = element;
	return true;
}

static void start_spec(const struct types *types, uint32_t root, struct core_spec *spec)
{
	*spec = (struct core_spec){ .types = types,
				    .root = types_resolve(types, root),
				    .type = root };
	spec->root_kind = types_kind(types, root);
}

const char *core_spec_field(const struct types *types, uint32_t root, const char *access,
			    struct core_spec *ret)
{
	uint32_t index;

	start_spec(types, root, ret);
	/* The first number counts whole objects: `p[1].x`. */
	if (!next_index(&access, &index) || !enter_element(ret, root, index) ||
	    !add_step(ret, NULL, index, root))
		return "a bad access string";
	while (*access) {
		uint32_t id = types_resolve(types, ret->type), kind = types_kind(types, id);
		const struct btf_type *type = types_get(types, id);
		const struct btf_member *member;
		const char *name;

		if (!next_index(&access, &index))
			return "a bad access string";
		if (is_composite(kind)) {
			member = member_at(types, id, index);
			if (!member)
				return "no such member";
			name = types_string(types, member->name_off);
			enter_member(ret, type, member);
			/* Members without a name only group others. */
			if (name[0] && !add_step(ret, name, index, member->type))
				return "too long a path";
		} else if (kind == BTF_KIND_ARRAY) {
			if (!enter_element(ret, ((const struct btf_array *)(type + 1))->type,
					   index) ||
			    !add_step(ret, NULL, index, ret->type))
				return "too long a path";
		} else {
			return "a path through something that has no members";
		}
	}
	return NULL;
}

/* Enumerator @index of an enum; NULL: none. */
static const char *enumerator_at(const struct types *types, uint32_t id, uint32_t index,
				 uint64_t *value)
{
	const struct btf_type *type = types_get(types, id);
	const struct btf_enum *narrow = type_tail(type);
	const struct btf_enum64 *wide = type_tail(type);

	if (!type || index >= BTF_INFO_VLEN(type->info))
		return NULL;
	if (BTF_INFO_KIND(type->info) == BTF_KIND_ENUM64) {
		*value = wide[index].val_lo32 | (uint64_t)wide[index].val_hi32 << 32;
		return types_string(types, wide[index].name_off);
	}
	*value = BTF_INFO_KFLAG(type->info) ? (uint64_t)(int64_t)narrow[index].val
					    : (uint32_t)narrow[index].val;
	return types_string(types, narrow[index].name_off);
}

const char *core_spec_enumerator(const struct types *types, uint32_t root, const char *access,
				 struct core_spec *ret)
{
	const char *name;
	uint32_t index;

	start_spec(types, root, ret);
	if (!is_enum(types_kind(types, ret->root)) || !next_index(&access, &index))
		return "not an enumerator";
	name = enumerator_at(types, ret->root, index, &ret->value);
	if (!name || !name[0])
		return "no such enumerator";
	add_step(ret, name, index, root);
	return NULL;
}

/* May a field of type @left be read where the program expects @right? */
static bool fields_compatible(const struct types *left_types, uint32_t left,
			      const struct types *right_types, uint32_t right)
{
	for (int depth = 0; depth < 64; depth++) {
		const struct btf_type *a, *b;
		uint32_t kind_a, kind_b;

		left = types_resolve(left_types, left);
		right = types_resolve(right_types, right);
		kind_a = types_kind(left_types, left);
		kind_b = types_kind(right_types, right);
		if ((is_composite(kind_a) && is_composite(kind_b)) ||
		    (is_enum(kind_a) && is_enum(kind_b)))
			return true;
		if (kind_a != kind_b)
			return false;
		if (kind_a != BTF_KIND_ARRAY)
			return kind_a == BTF_KIND_PTR || kind_a == BTF_KIND_INT ||
			       kind_a == BTF_KIND_FLOAT || kind_a == BTF_KIND_FWD;
		a = types_get(left_types, left);
		b = types_get(right_types, right);
		left = ((const struct btf_array *)(a + 1))->type;
		right = ((const struct btf_array *)(b + 1))->type;
	}
	return false;
}

/* Enters the member @name of structure @id, also through members without a name. */
static bool enter_named(struct core_spec *spec, uint32_t id, const char *name, int depth)
{
	const struct btf_type *type = types_get(spec->types, id);
	const struct btf_member *members = type_tail(type);

	if (!type || depth > 64 || !is_composite(BTF_INFO_KIND(type->info)))
		return false;
	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		const char *mine = types_string(spec->types, members[i].name_off);
		struct core_spec before = *spec;

		if (mine[0] && strcmp(mine, name))
			continue;
		enter_member(spec, type, &members[i]);
		if (mine[0])
			return true;
		if (enter_named(spec, types_resolve(spec->types, members[i].type), name, depth + 1))
			return true;
		*spec = before;
	}
	return false;
}

static bool find_enumerator(const struct core_spec *local, struct core_spec *spec)
{
	const char *name;

	for (uint32_t i = 0; (name = enumerator_at(spec->types, spec->root, i, &spec->value)); i++)
		if (core_names_equal(name, local->steps[0].member))
			return true;
	return false;
}

static bool find_element(struct core_spec *spec, uint32_t index, bool may_overrun)
{
	uint32_t id = types_resolve(spec->types, spec->type);
	const struct btf_type *type = types_get(spec->types, id);
	const struct btf_array *array = type_tail(type);

	if (types_kind(spec->types, id) != BTF_KIND_ARRAY ||
	    (index >= array->nelems && !may_overrun))
		return false;
	return enter_element(spec, array->type, index);
}

bool core_spec_find(const struct core_spec *local, const struct types *types, uint32_t root,
		    struct core_spec *ret)
{
	start_spec(types, root, ret);
	if (local->count && local->steps[0].member)
		return is_enum(types_kind(types, ret->root)) && find_enumerator(local, ret);
	for (uint32_t i = 0; i < local->count; i++) {
		const struct core_step *step = &local->steps[i];
		uint32_t id = types_resolve(types, ret->type);

		if (!i) {
			if (!enter_element(ret, root, step->index))
				return false;
		} else if (step->member) {
			if (!enter_named(ret, id, step->member, 0))
				return false;
		} else {
			const struct btf_type *array = types_get(types, id);
			bool flexible = types_kind(types, id) == BTF_KIND_ARRAY &&
					!((const struct btf_array *)(array + 1))->nelems;

			if (!find_element(ret, step->index, flexible))
				return false;
		}
		if (i && !fields_compatible(local->types, step->type, types, ret->type))
			return false;
		add_step(ret, step->member, step->index, ret->type);
	}
	return true;
}

static bool members_match(const struct types *left_types, uint32_t left,
			  const struct types *right_types, uint32_t right)
{
	const struct btf_type *type = types_get(left_types, left);
	const struct btf_member *members = type_tail(type);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		const char *name = types_string(left_types, members[i].name_off);
		struct core_spec place = { .types = right_types };

		if (name[0] &&
		    (!enter_named(&place, right, name, 0) ||
		     !fields_compatible(left_types, members[i].type, right_types, place.type)))
			return false;
	}
	return true;
}

static bool enumerators_match(const struct types *left_types, uint32_t left,
			      const struct types *right_types, uint32_t right)
{
	const char *name, *other;
	uint64_t value;

	for (uint32_t i = 0; (name = enumerator_at(left_types, left, i, &value)); i++) {
		uint32_t k = 0;

		while ((other = enumerator_at(right_types, right, k, &value)) &&
		       !core_names_equal(name, other))
			k++;
		if (!other)
			return false;
	}
	return true;
}

bool core_types_match(const struct types *left_types, uint32_t left,
		      const struct types *right_types, uint32_t right, bool exact)
{
	for (int depth = 0; depth < 32; depth++) {
		uint32_t kind_a, kind_b;

		left = types_resolve(left_types, left);
		right = types_resolve(right_types, right);
		kind_a = types_kind(left_types, left);
		kind_b = types_kind(right_types, right);
		if (is_enum(kind_a) && is_enum(kind_b))
			return !exact || enumerators_match(left_types, left, right_types, right);
		if (kind_a != kind_b)
			return false;
		switch (kind_a) {
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
			return !exact || members_match(left_types, left, right_types, right);
		case BTF_KIND_INT:
			return !exact ||
			       types_size(left_types, left) == types_size(right_types, right);
		case BTF_KIND_PTR:
			left = types_get(left_types, left)->type;
			right = types_get(right_types, right)->type;
			continue;
		case BTF_KIND_ARRAY:
			left = ((const struct btf_array *)(types_get(left_types, left) + 1))->type;
			right = ((const struct btf_array *)(types_get(right_types, right) + 1))
					->type;
			continue;
		default:
			return true;
		}
	}
	return false;
}
