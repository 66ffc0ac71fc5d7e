// SPDX-License-Identifier: BSD-2-Clause
/* The lists of the user half: programs, maps, externs, data, hooks, notes, variables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "obj/splitter.h"
#include "obj/types_layout.h"

static int symbol_type(const struct obj *obj, uint32_t symbol)
{
	return ELF64_ST_TYPE(obj->symbols[symbol].st_info);
}

static int list_programs(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	struct user_half *user = splitter->user;
	size_t capacity = 0;

	for (uint32_t i = 0; i < obj->nfunctions; i++) {
		struct user_program *program;

		if (splitter->roles[obj->functions[i].section] != ROLE_KERNEL ||
		    ELF64_ST_BIND(obj->symbols[obj->functions[i].symbol].st_info) == STB_LOCAL)
			continue;
		splitter->program_index[i] = user->nprograms;
		program =
			array_grow(&user->programs, &user->nprograms, &capacity, sizeof(*program));
		if (!program)
			return err_nomem(splitter->err);
		program->name = user_half_string(user, object_function_name(obj, i));
		program->section =
			user_half_string(user, obj->sections[obj->functions[i].section].name);
		if (!program->name || !program->section)
			return err_nomem(splitter->err);
	}
	return 0;
}

static uint32_t find_datasec(const struct splitter *splitter, uint32_t section)
{
	const char *name = splitter->obj->sections[section].name;

	return splitter->types ? types_find(splitter->types, BTF_KIND_DATASEC, name) : 0;
}

/* BTF id of the VAR @name that DATASEC @datasec lists, 0: none. */
static uint32_t find_var(const struct splitter *splitter, uint32_t datasec, const char *name)
{
	const struct btf_type *type = types_get(splitter->types, datasec);
	const struct btf_var_secinfo *info = type_tail(type);

	for (uint32_t i = 0; type && i < BTF_INFO_VLEN(type->info); i++)
		if (!strcmp(types_name(splitter->types, info[i].type), name))
			return info[i].type;
	return 0;
}

static int add_map(struct splitter *splitter, uint32_t section, uint32_t symbol, size_t *capacity)
{
	const struct obj *obj = splitter->obj;
	struct user_half *user = splitter->user;
	const char *name = object_symbol_name(obj, symbol);
	uint32_t datasec = find_datasec(splitter, section),
		 var = datasec ? find_var(splitter, datasec, name) : 0;
	struct user_map *map;

	if (!var || types_kind(splitter->types, var) != BTF_KIND_VAR)
		return object_refuse(obj, splitter->err,
				     "map `%s`: not in the BTF: compile it with -g", name);
	if (ELF64_ST_BIND(obj->symbols[symbol].st_info) == STB_LOCAL)
		return object_refuse(obj, splitter->err, "map `%s`: static: remove `static`", name);
	splitter->map_index[symbol] = user->nmaps;
	map = array_grow(&user->maps, &user->nmaps, capacity, sizeof(*map));
	if (!map)
		return err_nomem(splitter->err);
	map->name = user_half_string(user, name);
	map->variable_type = types_get(splitter->types, var)->type;
	map->kernel_uses = splitter->kernel_symbols[symbol];
	return map->name ? 0 : err_nomem(splitter->err);
}

static int list_maps(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	size_t capacity = 0;
	int code;

	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		uint32_t section = obj->symbols[i].st_shndx;

		if (section == SHN_UNDEF || section >= obj->nsections ||
		    splitter->roles[section] != ROLE_MAPS || symbol_type(obj, i) != STT_OBJECT)
			continue;
		code = add_map(splitter, section, i, &capacity);
		if (code)
			return code;
	}
	return 0;
}

bool split_data_in_kernel(const struct splitter *splitter, uint32_t section)
{
	const char *name = splitter->obj->sections[section].name;

	if (splitter->roles[section] != ROLE_DATA || !splitter->obj->headers[section].sh_size ||
	    !splitter->has_kernel)
		return false;
	/* The ordinary ones are shared even when today's kernel half does not look at them: what a
	 * user may inspect as a map must not depend on that. */
	return splitter->kernel_sections[section] || !strcmp(name, ".bss") ||
	       !strcmp(name, ".data") || !strcmp(name, ".rodata");
}

static int add_data(struct splitter *splitter, uint32_t section, size_t *capacity)
{
	const struct obj *obj = splitter->obj;
	struct user_half *user = splitter->user;
	const Elf64_Shdr *header = &obj->headers[section];
	size_t size = 0;
	const void *bytes = obj_section_data(obj, section, &size);
	struct user_data *data;

	splitter->data_index[section] = user->ndata;
	data = array_grow(&user->data, &user->ndata, capacity, sizeof(*data));
	if (!data)
		return err_nomem(splitter->err);
	data->name = user_half_string(user, obj->sections[section].name);
	data->size = header->sh_size;
	data->initial = bytes ? user_half_copy(user, bytes, size) : NULL;
	if (!data->name || (bytes && !data->initial))
		return err_nomem(splitter->err);
	data->readonly = !(header->sh_flags & SHF_WRITE) || !strncmp(data->name, ".rodata", 7);
	data->in_kernel = split_data_in_kernel(splitter, section);
	data->type = find_datasec(splitter, section);
	return 0;
}

static int list_data(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	size_t capacity = 0;
	int code;

	for (uint32_t i = 1; i < obj->nsections; i++) {
		if (!splitter->user_sections[i] &&
		    (splitter->roles[i] != ROLE_DATA || !obj->headers[i].sh_size))
			continue;
		code = add_data(splitter, i, &capacity);
		if (code)
			return code;
	}
	return 0;
}

/* "const char x[]" of a text section; the next one by place in file, UINT32_MAX: no more. */
static uint32_t next_object(const struct obj *obj, uint32_t section, int64_t after)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];

		if (symbol->st_shndx == section && symbol_type(obj, i) == STT_OBJECT &&
		    symbol->st_size && (int64_t)symbol->st_value > after &&
		    (best == UINT32_MAX || symbol->st_value < obj->symbols[best].st_value))
			best = i;
	}
	return best;
}

static int add_text(struct splitter *splitter, uint32_t section, uint32_t symbol, size_t *hooks,
		    size_t *notes)
{
	const struct obj *obj = splitter->obj;
	struct user_half *user = splitter->user;
	const char *name = user_half_string(user, object_symbol_name(obj, symbol));
	uint32_t size = obj->symbols[symbol].st_size;
	size_t ignored;
	const char *bytes = obj_section_data(obj, section, &ignored);
	const char *text =
		user_half_copy(user, bytes ? bytes + obj->symbols[symbol].st_value : NULL, size);
	struct user_hook *hook;
	struct user_note *note;

	if (!name || !text)
		return err_nomem(splitter->err);
	if (splitter->roles[section] == ROLE_LUA) {
		hook = array_grow(&user->hooks, &user->nhooks, hooks, sizeof(*hook));
		if (!hook)
			return err_nomem(splitter->err);
		*hook = (struct user_hook){ NULL, name, UINT32_MAX, text };
		hook->section = user_half_string(user, obj->sections[section].name);
		return hook->section ? 0 : err_nomem(splitter->err);
	}
	note = array_grow(&user->notes, &user->nnotes, notes, sizeof(*note));
	if (!note)
		return err_nomem(splitter->err);
	*note = (struct user_note){ NULL, name, text, size + (text[size - 1] != 0) };
	note->kind = user_half_string(user, obj->sections[section].name + strlen(".duet."));
	return note->kind ? 0 : err_nomem(splitter->err);
}

static int add_hook(struct splitter *splitter, uint32_t function, size_t *capacity)
{
	const struct obj *obj = splitter->obj;
	struct user_half *user = splitter->user;
	const struct object_function *of = &obj->functions[function];
	struct user_hook *hook;

	if (ELF64_ST_BIND(obj->symbols[of->symbol].st_info) == STB_LOCAL)
		return 0; /* a part that the compiler split off */
	hook = array_grow(&user->hooks, &user->nhooks, capacity, sizeof(*hook));
	if (!hook)
		return err_nomem(splitter->err);
	hook->section = user_half_string(user, obj->sections[of->section].name);
	hook->name = user_half_string(user, object_function_name(obj, function));
	hook->function = splitter->function_index[function];
	return hook->section && hook->name ? 0 : err_nomem(splitter->err);
}

/* Hooks and notes by section, then by place in it: the order of the source file. */
static int list_texts(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	size_t hooks = 0, notes = 0;
	int code;

	for (uint32_t i = 1; i < obj->nsections; i++) {
		for (uint32_t f = 0; splitter->roles[i] == ROLE_USER && f < obj->nfunctions; f++) {
			code = obj->functions[f].section == i ? add_hook(splitter, f, &hooks) : 0;
			if (code)
				return code;
		}
		if (splitter->roles[i] != ROLE_LUA && splitter->roles[i] != ROLE_NOTE)
			continue;
		for (int64_t after = -1;;) {
			uint32_t symbol = next_object(obj, i, after);

			if (symbol == UINT32_MAX)
				break;
			after = obj->symbols[symbol].st_value;
			code = add_text(splitter, i, symbol, &hooks, &notes);
			if (code)
				return code;
		}
	}
	return 0;
}

/* Functions of user sections first, then those of .text, each by place. */
static int list_functions(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	struct user_half *user = splitter->user;
	size_t capacity = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < obj->nfunctions; i++) {
			bool hook = splitter->roles[obj->functions[i].section] == ROLE_USER;
			struct user_function *function;

			if (!splitter->user_functions[i] || hook != (pass == 0))
				continue;
			splitter->function_index[i] = user->nfunctions;
			function = array_grow(&user->functions, &user->nfunctions, &capacity,
					      sizeof(*function));
			if (!function)
				return err_nomem(splitter->err);
			function->name = user_half_string(user, object_function_name(obj, i));
			if (!function->name)
				return err_nomem(splitter->err);
			function->first = user->ncode;
			function->count = obj->functions[i].size / 8;
			user->ncode += function->count;
		}
	}
	return user->ncode > INT32_MAX / 16
		       ? object_refuse(obj, splitter->err, "user half: too many instructions")
		       : 0;
}

int split_list_tables(struct splitter *splitter)
{
	int code = list_programs(splitter);

	if (!code)
		code = list_maps(splitter);
	if (!code)
		code = list_data(splitter);
	if (!code)
		code = list_functions(splitter);
	return code ? code : list_texts(splitter);
}

uint32_t split_find_variable(const struct splitter *splitter, uint32_t section, const char *name,
			     uint32_t offset)
{
	const struct obj *obj = splitter->obj;
	size_t length = strlen(name);
	uint32_t exact = 0, numbered = 0;

	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		const char *symbol = obj->symbol_names + obj->symbols[i].st_name;

		if (obj->symbols[i].st_shndx != section || symbol_type(obj, i) != STT_OBJECT ||
		    strncmp(symbol, name, length))
			continue;
		if (!symbol[length] && obj->symbols[i].st_value == offset)
			return i;
		if (!symbol[length] && !exact)
			exact = i;
		if (symbol[length] == '.' && !numbered &&
		    ELF64_ST_BIND(obj->symbols[i].st_info) == STB_LOCAL)
			numbered = i;
	}
	return exact ? exact : numbered;
}

static bool has_volatile(const struct types *types, uint32_t id)
{
	for (;;) {
		const struct btf_type *type = types_get(types, id);

		if (!type)
			return false;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_VOLATILE:
			return true;
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			id = type->type;
			break;
		case BTF_KIND_ARRAY:
			id = ((const struct btf_array *)(type + 1))->type;
			break;
		default:
			return false;
		}
	}
}

static int add_variable(struct splitter *splitter, uint32_t section, uint32_t symbol, uint32_t var,
			size_t *capacity)
{
	struct user_half *user = splitter->user;
	const Elf64_Sym *place = &splitter->obj->symbols[symbol];
	const struct btf_type *type = types_get(splitter->types, var);
	struct user_variable *variable;

	variable = array_grow(&user->variables, &user->nvariables, capacity, sizeof(*variable));
	if (!variable)
		return err_nomem(splitter->err);
	variable->name = user_half_string(user, types_name(splitter->types, var));
	if (!variable->name)
		return err_nomem(splitter->err);
	variable->data = splitter->data_index[section];
	variable->offset = place->st_value;
	variable->size = place->st_size;
	variable->type = type->type;
	variable->readonly = user->data[variable->data].readonly;
	variable->is_volatile = has_volatile(splitter->types, type->type);
	variable->is_static = ELF64_ST_BIND(place->st_info) == STB_LOCAL;
	return 0;
}

int split_list_variables(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	const struct types *types = splitter->types;
	size_t capacity = 0;

	for (uint32_t i = 1; types && i < obj->nsections; i++) {
		uint32_t datasec =
			splitter->data_index[i] != UINT32_MAX ? find_datasec(splitter, i) : 0;
		const struct btf_type *type = types_get(types, datasec);
		const struct btf_var_secinfo *info = type_tail(type);

		for (uint32_t v = 0; type && v < BTF_INFO_VLEN(type->info); v++) {
			uint32_t symbol = split_find_variable(
				splitter, i, types_name(types, info[v].type), info[v].offset);
			int64_t size = types_size(types, info[v].type);
			int code;

			/* A variable is as large as its type says, or nobody may use the type. */
			if (!symbol || types_kind(types, info[v].type) != BTF_KIND_VAR ||
			    size < 0 || (uint64_t)size > obj->symbols[symbol].st_size)
				continue;
			code = add_variable(splitter, i, symbol, info[v].type, &capacity);
			if (code)
				return code;
		}
	}
	return 0;
}
