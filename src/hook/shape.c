// SPDX-License-Identifier: BSD-2-Clause
#include "hook/shape.h"

#include <linux/bpf.h>
#include <string.h>

/* A member of the declaration `struct { __uint(type, ...); __type(key, ...); ... } NAME`. */
static uint32_t declared_pointer(const struct types *types, uint32_t variable_type,
				 const char *member_name)
{
	uint32_t id = types_resolve(types, variable_type), i;
	const struct btf_type *type = types_get(types, id);
	const struct btf_member *members;

	if (!type || BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT)
		return 0;
	members = (const struct btf_member *)(type + 1);
	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		const struct btf_type *pointer;

		if (strcmp(types_string(types, members[i].name_off), member_name))
			continue;
		pointer = types_get(types, types_resolve(types, members[i].type));
		return pointer && BTF_INFO_KIND(pointer->info) == BTF_KIND_PTR ? pointer->type : 0;
	}
	return 0;
}

void hook_map_shape(const struct hook_half *half, const struct hook_map *map,
		    struct report_map *ret)
{
	int64_t size;

	*ret = (struct report_map){ .name = map->name, .types = half->types, .cpus = 1 };
	if (half->types) {
		ret->key_type = declared_pointer(half->types, map->variable_type, "key");
		ret->value_type = declared_pointer(half->types, map->variable_type, "value");
		size = types_size(half->types, ret->key_type);
		ret->key_size = size > 0 ? size : 0;
		size = types_size(half->types, ret->value_type);
		ret->value_size = size > 0 ? size : 0;
	}
	if (map->kern) {
		ret->key_size = map->info.key_size;
		ret->value_size = map->info.value_size;
	}
}

bool hook_map_printable(const struct hook_map *map)
{
	if (!map->kern || !strncmp(map->name, "__", 2))
		return false;
	switch (map->info.type) {
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
	case BPF_MAP_TYPE_LPM_TRIE:
		/* NAME_lap of PMU() is scaffolding, as are maps named __*. */
		return !(strlen(map->name) > 4 && map->info.max_entries == 1 &&
			 !strcmp(map->name + strlen(map->name) - 4, "_lap"));
	default:
		return false;
	}
}

static const struct user_variable *variable_at(const struct hook_half *half, uint64_t address)
{
	const struct user_half *user = half->options.user;
	size_t i;

	for (i = 0; i < user->nvariables; i++) {
		const struct user_variable *variable = &user->variables[i];
		uint64_t first = (uintptr_t)half->data[variable->data] + variable->offset;

		if (address >= first && address < first + variable->size)
			return variable;
	}
	return NULL;
}

const char *hook_variable_name(const struct hook_half *half, uint64_t address)
{
	const struct user_variable *variable = variable_at(half, address);

	return variable ? variable->name : "";
}

/* duet's and the author's own business: `__NAME`, also as a function's static variable. */
static bool is_private(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strncmp(dot ? dot + 1 : name, "__", 2);
}

int hook_dump_variables(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t i;

	for (i = 0; i < user->nvariables; i++) {
		const struct user_variable *variable = &user->variables[i];
		const struct user_data *data = &user->data[variable->data];
		int code;

		if (variable->readonly || !variable->type || !data->in_kernel ||
		    is_private(variable->name))
			continue;
		code = report_value_print(
			half->options.report, variable->name, half->types, variable->type,
			(const char *)half->data[variable->data] + variable->offset, variable->size,
			err);
		if (code)
			return err_prepend(err, code, "variable %s", variable->name);
	}
	return 0;
}
