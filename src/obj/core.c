// SPDX-License-Identifier: BSD-2-Clause
/*
 * CO-RE relocations of the user half. The kernel half's are libbpf's business; what libbpf does
 * for it is done here for user code, against the same BTF. One difference: libbpf puts an invalid
 * instruction where a field is missing, and the verifier complains when it is reached. Here a
 * missing field is refused, unless the same function asks whether it exists.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "obj/core_spec.h"
#include "obj/splitter.h"

enum core_kind {
	CORE_FIELD_BYTE_OFFSET,
	CORE_FIELD_BYTE_SIZE,
	CORE_FIELD_EXISTS,
	CORE_FIELD_SIGNED,
	CORE_FIELD_LSHIFT_U64,
	CORE_FIELD_RSHIFT_U64,
	CORE_TYPE_ID_LOCAL,
	CORE_TYPE_ID_TARGET,
	CORE_TYPE_EXISTS,
	CORE_TYPE_SIZE,
	CORE_ENUMVAL_EXISTS,
	CORE_ENUMVAL_VALUE,
	CORE_TYPE_MATCHES,
};

/* What a relocation comes to, in one set of types. */
struct core_value {
	bool found;
	uint64_t value;
	bool free; /* compilers place bit fields as they like: what the code says is not checked */
	uint32_t access_size;     /* bytes that a load of the field reads; 0: not a field */
	bool unsigned_or_pointer; /* the load may be widened or narrowed */
};

/* Types of the kernel that have the name of a type of the object, found once. */
struct candidates {
	uint32_t type; /* of the object */
	uint32_t *ids;
	size_t count, capacity;
};

struct candidate_lists {
	struct candidates *lists;
	size_t count, capacity;
};

static void candidate_lists_deinit(struct candidate_lists *lists)
{
	for (size_t i = 0; i < lists->count; i++)
		free(lists->lists[i].ids);
	free(lists->lists);
}

struct relocation {
	struct splitter *splitter;
	struct candidate_lists *known;
	const struct object_core_reloc *reloc;
	struct core_spec local;
	struct core_value before, after;
};

static bool is_field(uint32_t kind)
{
	return kind <= CORE_FIELD_RSHIFT_U64;
}

static bool is_enumerator(uint32_t kind)
{
	return kind == CORE_ENUMVAL_EXISTS || kind == CORE_ENUMVAL_VALUE;
}

static bool is_question(uint32_t kind)
{
	return kind == CORE_FIELD_EXISTS || kind == CORE_TYPE_EXISTS ||
	       kind == CORE_ENUMVAL_EXISTS || kind == CORE_TYPE_MATCHES;
}

/* "field struct task_struct.pid", "type struct foo", "enumerator enum foo.BAR" */
static const char *describe(const struct relocation *relocation, char *text, size_t size)
{
	const struct core_spec *local = &relocation->local;
	const struct types *types = local->types;
	uint32_t kind = types_kind(types, relocation->reloc->type);
	size_t used;

	used = snprintf(text, size, "%s %s%.100s",
			is_field(relocation->reloc->kind)        ? "field"
			: is_enumerator(relocation->reloc->kind) ? "enumerator"
								 : "type",
			kind == BTF_KIND_STRUCT                            ? "struct "
			: kind == BTF_KIND_UNION                           ? "union "
			: kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64 ? "enum "
									   : "",
			types_name(types, relocation->reloc->type));
	for (uint32_t i = is_field(relocation->reloc->kind); i < local->count && used < size; i++)
		used += local->steps[i].member
				? snprintf(text + used, size - used, ".%.60s",
					   local->steps[i].member)
				: snprintf(text + used, size - used, "[%u]", local->steps[i].index);
	return text;
}

static int refuse(const struct relocation *relocation, const char *why)
{
	char text[600];

	return split_refuse(relocation->splitter, relocation->reloc->section,
			    relocation->reloc->offset, "%s: %s",
			    describe(relocation, text, sizeof(text)), why);
}

static bool is_signed(const struct types *types, uint32_t id)
{
	const struct btf_type *type = types_get(types, types_resolve(types, id));

	if (!type)
		return false;
	if (BTF_INFO_KIND(type->info) == BTF_KIND_ENUM ||
	    BTF_INFO_KIND(type->info) == BTF_KIND_ENUM64)
		return BTF_INFO_KFLAG(type->info);
	return BTF_INFO_KIND(type->info) == BTF_KIND_INT &&
	       BTF_INT_ENCODING(*(const uint32_t *)(type + 1)) & BTF_INT_SIGNED;
}

/* A bit field is read as the smallest aligned integer, of its own type or larger, that holds it. */
static const char *place_bit_field(const struct core_spec *spec, uint64_t *byte_offset,
				   uint64_t *byte_size)
{
	for (;; *byte_size *= 2) {
		if (*byte_size > 8 || !*byte_size)
			return "a bit field that no load can reach";
		*byte_offset = spec->bit_offset / 8 / *byte_size * *byte_size;
		if (spec->bit_offset + spec->bit_size - *byte_offset * 8 <= *byte_size * 8)
			return NULL;
	}
}

static const char *field_value(const struct core_spec *spec, uint32_t kind, struct core_value *ret)
{
	int64_t size = types_size(spec->types, spec->type);
	uint64_t byte_size = size < 0 ? 0 : size, byte_offset = spec->bit_offset / 8, bits;
	uint32_t type = types_kind(spec->types, types_resolve(spec->types, spec->type));
	const char *why = spec->bit_size ? place_bit_field(spec, &byte_offset, &byte_size) : NULL;

	if (why)
		return why;
	ret->free = spec->bit_size && kind != CORE_FIELD_SIGNED && kind != CORE_FIELD_RSHIFT_U64;
	bits = spec->bit_size ? spec->bit_size : byte_size * 8;
	switch (kind) {
	case CORE_FIELD_BYTE_OFFSET:
		ret->value = byte_offset;
		ret->access_size = spec->bit_size || byte_size > 8 ? 0 : byte_size;
		ret->unsigned_or_pointer =
			type == BTF_KIND_PTR || !is_signed(spec->types, spec->type);
		break;
	case CORE_FIELD_BYTE_SIZE:
		ret->value = byte_size;
		break;
	case CORE_FIELD_SIGNED:
		ret->value = is_signed(spec->types, spec->type);
		break;
	case CORE_FIELD_LSHIFT_U64: /* little endian */
		ret->value = 64 - (spec->bit_offset + bits - byte_offset * 8);
		break;
	case CORE_FIELD_RSHIFT_U64:
		ret->value = 64 - bits;
		break;
	}
	return NULL;
}

/* @spec is the path in one set of types, for a relocation that is no question. */
static const char *value_of(const struct core_spec *spec, uint32_t id, uint32_t kind,
			    struct core_value *ret)
{
	int64_t size;

	*ret = (struct core_value){ .found = true, .value = 1 };
	if (is_question(kind))
		return NULL;
	if (is_field(kind))
		return field_value(spec, kind, ret);
	switch (kind) {
	case CORE_TYPE_SIZE:
		size = types_size(spec->types, id);
		ret->value = size;
		return size < 0 ? "a type without a size" : NULL;
	case CORE_ENUMVAL_VALUE:
		ret->value = spec->value;
		return NULL;
	default:
		ret->value = id;
		return NULL;
	}
}

/* Candidates: types of that name, and of a kind that can be meant. */
static bool is_candidate(const struct relocation *relocation, uint32_t id)
{
	const struct types *kernel = relocation->splitter->kernel_types;
	const struct types *local = relocation->splitter->types;
	uint32_t kind = types_kind(kernel, id), wanted = types_kind(local, relocation->reloc->type);
	bool enums = (kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64) &&
		     (wanted == BTF_KIND_ENUM || wanted == BTF_KIND_ENUM64);

	return (kind == wanted || enums) &&
	       core_names_equal(types_name(kernel, id), types_name(local, relocation->reloc->type));
}

static bool matches(const struct relocation *relocation, uint32_t id, struct core_spec *ret)
{
	const struct splitter *splitter = relocation->splitter;
	uint32_t kind = relocation->reloc->kind;

	if (is_field(kind) || is_enumerator(kind))
		return core_spec_find(&relocation->local, splitter->kernel_types, id, ret);
	*ret = (struct core_spec){ .types = splitter->kernel_types };
	return core_types_match(splitter->types, relocation->reloc->type, splitter->kernel_types,
				id, kind == CORE_TYPE_MATCHES);
}

/* NULL: out of memory. */
static const struct candidates *find_candidates(const struct relocation *relocation)
{
	struct candidate_lists *known = relocation->known;
	struct candidates *list;

	for (size_t i = 0; i < known->count; i++)
		if (known->lists[i].type == relocation->reloc->type)
			return &known->lists[i];
	list = array_grow(&known->lists, &known->count, &known->capacity, sizeof(*list));
	if (!list)
		return NULL;
	list->type = relocation->reloc->type;
	for (uint32_t id = 1; id < types_count(relocation->splitter->kernel_types); id++) {
		uint32_t *place;

		if (!is_candidate(relocation, id))
			continue;
		place = array_grow(&list->ids, &list->count, &list->capacity, sizeof(*place));
		if (!place)
			return NULL;
		*place = id;
	}
	return list;
}

static int find_in_kernel(struct relocation *relocation, bool *named)
{
	const struct candidates *list = find_candidates(relocation);
	struct core_value value;
	struct core_spec spec;

	if (!list)
		return err_nomem(relocation->splitter->err);
	*named = list->count > 0;
	for (size_t i = 0; i < list->count; i++) {
		const char *why;

		if (!matches(relocation, list->ids[i], &spec))
			continue;
		why = value_of(&spec, list->ids[i], relocation->reloc->kind, &value);
		if (why)
			return refuse(relocation, why);
		if (relocation->after.found && relocation->after.value != value.value &&
		    relocation->reloc->kind != CORE_TYPE_ID_TARGET)
			return refuse(relocation,
				      "this kernel has several types of that name, which differ");
		if (!relocation->after.found)
			relocation->after = value;
	}
	return 0;
}

/* Does the same function ask whether the same thing exists? Then this is guarded by the answer. */
static bool is_guarded(const struct relocation *relocation)
{
	const struct obj *obj = relocation->splitter->obj;
	const struct object_core_reloc *mine = relocation->reloc;
	uint32_t function = object_function_around(obj, mine->section, mine->offset);

	for (uint32_t i = 0; i < obj->ncore_relocs; i++) {
		const struct object_core_reloc *other = &obj->core_relocs[i];

		if (!is_question(other->kind) || other->section != mine->section ||
		    object_function_around(obj, other->section, other->offset) != function ||
		    strcmp(types_name(obj->types, other->type), types_name(obj->types, mine->type)))
			continue;
		if (other->kind == CORE_TYPE_EXISTS || other->kind == CORE_TYPE_MATCHES ||
		    !strcmp(types_string(obj->types, other->access),
			    types_string(obj->types, mine->access)))
			return true;
	}
	return false;
}

static int refuse_missing(const struct relocation *relocation, bool named)
{
	return refuse(
		relocation,
		!named ? "this kernel has no such type: test it with bpf_core_type_exists() first"
		: is_field(relocation->reloc->kind)
			? "this kernel's type has no such member: test it with "
			  "bpf_core_field_exists() first"
			: "this kernel's type is another one: test it with bpf_core_*_exists() "
			  "first");
}

/* A load's width follows the field's, as far as that cannot change the value. */
static const char *adjust_width(const struct relocation *relocation, struct bpf_insn *insn)
{
	static const uint8_t codes[] = { [1] = BPF_B, [2] = BPF_H, [4] = BPF_W, [8] = BPF_DW };
	uint32_t before = relocation->before.access_size, after = relocation->after.access_size;

	if (!before || !after || before == after)
		return NULL;
	if (!relocation->before.unsigned_or_pointer || !relocation->after.unsigned_or_pointer ||
	    (after & (after - 1)))
		return "has another size in this kernel";
	insn->code = (insn->code & ~0x18) | codes[after];
	return NULL;
}

static const char *patch(const struct relocation *relocation, struct bpf_insn *insn)
{
	uint64_t value = relocation->after.value, old = relocation->before.value;
	bool free = relocation->before.free;

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		if (BPF_SRC(insn->code) != BPF_K || (!free && (uint32_t)insn->imm != (uint32_t)old))
			return "does not fit its instruction";
		insn->imm = value;
		return NULL;
	case BPF_LDX:
	case BPF_ST:
	case BPF_STX:
		if (relocation->reloc->kind != CORE_FIELD_BYTE_OFFSET ||
		    (!free && insn->off != (int64_t)old))
			return "does not fit its instruction";
		if (value > INT16_MAX)
			return "is too far inside its type in this kernel";
		insn->off = value;
		return adjust_width(relocation, insn);
	case BPF_LD:
		if (!insn_is_lddw(insn) || insn->src_reg ||
		    (!free &&
		     ((uint32_t)insn[0].imm | (uint64_t)(uint32_t)insn[1].imm << 32) != old))
			return "does not fit its instruction";
		insn[0].imm = (uint32_t)value;
		insn[1].imm = value >> 32;
		return NULL;
	}
	return "does not fit its instruction";
}

/* Code behind a guard that says no: never run, but it must be valid. */
static void patch_dead(struct bpf_insn *insn)
{
	bool wide = insn_is_lddw(insn);
	uint8_t class = BPF_CLASS(insn->code);

	if (class == BPF_ST || class == BPF_STX)
		*insn = (struct bpf_insn){ .code = BPF_JMP | BPF_JA };
	else if (!wide && class != BPF_ALU && class != BPF_ALU64)
		*insn = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K,
					   .dst_reg = insn->dst_reg };
	else
		insn->imm = 0;
}

static int relocate(struct relocation *relocation, struct bpf_insn *insn)
{
	const struct splitter *splitter = relocation->splitter;
	const struct object_core_reloc *reloc = relocation->reloc;
	const char *access = types_string(splitter->types, reloc->access), *why = NULL;
	bool named;
	int code;

	relocation->local.types = splitter->types;
	if (!types_name(splitter->types, reloc->type)[0])
		why = "a type without a name";
	else if (is_field(reloc->kind))
		why = core_spec_field(splitter->types, reloc->type, access, &relocation->local);
	else if (is_enumerator(reloc->kind))
		why = core_spec_enumerator(splitter->types, reloc->type, access,
					   &relocation->local);
	if (!why)
		why = value_of(&relocation->local, reloc->type, reloc->kind, &relocation->before);
	if (why)
		return refuse(relocation, why);
	if (reloc->kind == CORE_TYPE_ID_LOCAL) {
		relocation->after = relocation->before;
	} else if (!splitter->kernel_types) {
		return refuse(relocation, "this kernel's types are not known: it has no BTF");
	} else {
		code = find_in_kernel(relocation, &named);
		if (code)
			return code;
		if (!relocation->after.found && !is_question(reloc->kind)) {
			if (!is_guarded(relocation))
				return refuse_missing(relocation, named);
			patch_dead(insn);
			return 0;
		}
	}
	why = patch(relocation, insn);
	return why ? refuse(relocation, why) : 0;
}

int split_core_relocate(struct splitter *splitter)
{
	CLEANUP(candidate_lists_deinit) struct candidate_lists known = { 0 };
	const struct obj *obj = splitter->obj;

	for (uint32_t i = 0; i < obj->ncore_relocs; i++) {
		const struct object_core_reloc *reloc = &obj->core_relocs[i];
		uint32_t function = object_function_around(obj, reloc->section, reloc->offset), at;
		struct relocation relocation = { .splitter = splitter,
						 .known = &known,
						 .reloc = reloc };
		struct user_function *mine;
		int code;

		if (function == UINT32_MAX || splitter->function_index[function] == UINT32_MAX)
			continue;
		mine = &splitter->user->functions[splitter->function_index[function]];
		at = (reloc->offset - obj->functions[function].offset) / 8;
		if (insn_is_lddw(&splitter->user->code[mine->first + at]) && at + 1 == mine->count)
			return refuse(&relocation, "at half an instruction");
		code = relocate(&relocation, &splitter->user->code[mine->first + at]);
		if (code)
			return code;
	}
	return 0;
}
