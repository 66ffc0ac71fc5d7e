// SPDX-License-Identifier: BSD-2-Clause
#include "report/value.h"

#include <stdio.h>
#include <string.h>

/* Typedef names of duet.h; compilers drop type tags on integers, and keep these. */
static const struct {
	const char *name;
	enum place_meaning meaning;
} meanings[] = {
	{ "duet_ns", MEANING_NS },         { "duet_bytes", MEANING_BYTES },
	{ "duet_cgroup", MEANING_CGROUP }, { "duet_kstack", MEANING_KSTACK },
	{ "duet_ustack", MEANING_USTACK }, { "duet_kaddr", MEANING_KADDR },
	{ "duet_pid", MEANING_PID },       { "duet_cpu", MEANING_CPU },
};

static enum place_meaning meaning_of(const struct types *types, uint32_t type)
{
	uint32_t end = types_resolve(types, type);
	size_t i;

	while (type != end) {
		const char *name = types_name(types, type);

		for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
			if (types_kind(types, type) == BTF_KIND_TYPEDEF &&
			    !strcmp(name, meanings[i].name))
				return meanings[i].meaning;
		}
		type = types_get(types, type)->type;
	}
	return MEANING_NONE;
}

static const struct btf_array *array_info(const struct btf_type *t)
{
	return (const struct btf_array *)(t + 1);
}

static bool is_char(const struct types *types, uint32_t type)
{
	const struct btf_type *t = types_get(types, type);
	uint32_t data;

	if (types_kind(types, type) != BTF_KIND_INT || t->size != 1)
		return false;
	memcpy(&data, t + 1, sizeof(data));
	return (BTF_INT_ENCODING(data) & BTF_INT_CHAR) || !strcmp(types_name(types, type), "char");
}

static enum place_class struct_class(const struct types *types, uint32_t type)
{
	const char *name = types_name(types, type);
	const struct btf_type *t = types_get(types, type);

	if (!strcmp(name, "pmu_sum") && t->size == sizeof(struct pmu_sum) &&
	    BTF_INFO_VLEN(t->info) == 3)
		return PLACE_COUNTER;
	if (!strcmp(name, "hist") && t->size == sizeof(struct hist) && BTF_INFO_VLEN(t->info) == 3)
		return PLACE_HIST;
	return PLACE_STRUCT;
}

static void integer_place(const struct types *types, struct place *place, uint32_t bits)
{
	const struct btf_type *t = types_get(types, place->type);
	uint32_t data;

	memcpy(&data, t + 1, sizeof(data));
	place->class = BTF_INT_ENCODING(data) & BTF_INT_BOOL ? PLACE_BOOL : PLACE_INTEGER;
	place->bits = bits ? bits : BTF_INT_BITS(data);
	if (!bits)
		place->bit_offset += BTF_INT_OFFSET(data);
}

struct place place_of(const struct types *types, uint32_t type, uint64_t bit_offset, uint32_t bits)
{
	struct place place = { .type = types_resolve(types, type), .bit_offset = bit_offset };
	int64_t size = types_size(types, place.type);
	const struct btf_type *t = types_get(types, place.type);

	place.meaning = meaning_of(types, type);
	place.class = PLACE_NOTHING;
	place.bits = bits ? bits : size > 0 && size < (1 << 28) ? size * 8 : 0;
	switch (types_kind(types, place.type)) {
	case BTF_KIND_INT:
		integer_place(types, &place, bits);
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		place.class = PLACE_ENUM;
		break;
	case BTF_KIND_PTR:
		place.class = PLACE_POINTER;
		place.bits = 64; /* of a BPF program, whatever this machine has */
		break;
	case BTF_KIND_FLOAT:
		place.class = PLACE_REAL;
		break;
	case BTF_KIND_ARRAY:
		place.class = is_char(types, types_resolve(types, array_info(t)->type))
				      ? PLACE_STRING
				      : PLACE_ARRAY;
		break;
	case BTF_KIND_STRUCT:
		place.class = struct_class(types, place.type);
		break;
	case BTF_KIND_UNION:
		place.class = PLACE_UNION;
		break;
	case BTF_KIND_DATASEC:
		place.class = PLACE_SECTION;
		break;
	case BTF_KIND_VAR:
		return place_of(types, t->type, bit_offset, bits);
	}
	return place;
}

uint32_t place_elements(const struct types *types, const struct place *array)
{
	return array_info(types_get(types, array->type))->nelems;
}

struct place place_element(const struct types *types, const struct place *array, uint32_t index)
{
	uint32_t type = array_info(types_get(types, array->type))->type;
	int64_t size = types_size(types, type);
	struct place place;

	place = place_of(types, type, array->bit_offset + (size > 0 ? size * 8 * index : 0), 0);
	if (array->meaning && !place.meaning)
		place.meaning = array->meaning;
	place.key = array->key;
	place.unsupported = array->unsupported;
	place.window = array->window;
	return place;
}

uint32_t place_members(const struct types *types, const struct place *of)
{
	return BTF_INFO_VLEN(types_get(types, of->type)->info);
}

struct place place_member(const struct types *types, const struct place *of, uint32_t index,
			  const char **name)
{
	const struct btf_type *t = types_get(types, of->type);
	uint32_t offset, bits = 0, type;
	struct place place;

	if (of->class == PLACE_SECTION) {
		const struct btf_var_secinfo *variable =
			(const struct btf_var_secinfo *)(t + 1) + index;

		type = variable->type;
		offset = variable->offset * 8;
		*name = types_name(types, type);
	} else {
		const struct btf_member *member = (const struct btf_member *)(t + 1) + index;

		type = member->type;
		offset = member->offset;
		if (BTF_INFO_KFLAG(t->info)) {
			bits = BTF_MEMBER_BITFIELD_SIZE(member->offset);
			offset = BTF_MEMBER_BIT_OFFSET(member->offset);
		}
		*name = types_string(types, member->name_off);
	}
	place = place_of(types, type, of->bit_offset + offset, bits);
	place.key = of->key;
	place.unsupported = of->unsupported;
	place.window = of->window;
	return place;
}

bool place_has_number(const struct place *place)
{
	return place->class <= PLACE_REAL || place->class == PLACE_COUNTER;
}

bool place_adds(const struct place *place)
{
	if (place->key)
		return false;
	if (place->class == PLACE_COUNTER || place->class == PLACE_HIST)
		return true;
	return (place->class == PLACE_INTEGER || place->class == PLACE_REAL) &&
	       place->meaning <= MEANING_BYTES;
}
