// SPDX-License-Identifier: BSD-2-Clause
#include "obj/split.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "obj/splitter.h"

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool is_one_of(const char *name, const char *base)
{
	size_t length = strlen(base);

	return !strncmp(name, base, length) && (!name[length] || name[length] == '.');
}

int split_refuse(const struct splitter *splitter, uint32_t section, uint32_t offset,
		 const char *format, ...)
{
	struct obj_line line;
	char text[sizeof(splitter->err->text)], file[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	object_clean_text(text);
	if (section && obj_line_of(splitter->obj, section, offset, &line) && line.file[0]) {
		snprintf(file, sizeof(file), "%s", line.file);
		object_clean_text(file);
		return err_set(splitter->err, -EINVAL, "%s:%u: %s", file, line.line, text);
	}
	return err_set(splitter->err, -EINVAL, "%s: %s", splitter->obj->name, text);
}

static bool is_user_code(const char *name)
{
	return starts_with(name, "user/") || starts_with(name, "UBPF;");
}

static bool is_lua(const char *name)
{
	return starts_with(name, "lua/") || starts_with(name, "UBPF-lua;");
}

static enum section_role role_of(const struct obj *obj, uint32_t section)
{
	const Elf64_Shdr *header = &obj->headers[section];
	const char *name = obj->sections[section].name;

	if (header->sh_type != SHT_PROGBITS && header->sh_type != SHT_NOBITS)
		return ROLE_NONE;
	if (header->sh_flags & SHF_EXECINSTR) {
		if (is_user_code(name))
			return ROLE_USER;
		if (is_one_of(name, ".text"))
			return ROLE_TEXT;
		return header->sh_size ? ROLE_KERNEL : ROLE_NONE;
	}
	if (!(header->sh_flags & SHF_ALLOC))
		return ROLE_NONE;
	if (is_lua(name))
		return ROLE_LUA;
	if (starts_with(name, ".duet."))
		return ROLE_NOTE;
	if (!strcmp(name, ".maps"))
		return ROLE_MAPS;
	if (is_one_of(name, ".bss") || is_one_of(name, ".data") || is_one_of(name, ".rodata"))
		return ROLE_DATA;
	if (!strcmp(name, "license") || !strcmp(name, "version") ||
	    starts_with(name, ".struct_ops"))
		return ROLE_KERNEL_DATA;
	return ROLE_OTHER_DATA;
}

/* Sections that would be run or filled by a C run-time, which a BPF object does not have. */
static const char *const refused_sections[] = { ".init_array", ".fini_array", ".preinit_array",
						".ctors",      ".dtors",      ".init",
						".fini",       ".tdata",      ".tbss" };

static int check_role(const struct splitter *splitter, uint32_t section)
{
	const struct obj *obj = splitter->obj;
	const Elf64_Shdr *header = &obj->headers[section];
	const char *name = obj->sections[section].name;

	for (size_t i = 0; i < sizeof(refused_sections) / sizeof(refused_sections[0]); i++)
		if (is_one_of(name, refused_sections[i]) && header->sh_size)
			return object_refuse(
				obj, splitter->err,
				"section %s: nothing would run or fill it: set things up in "
				"SEC(\"user/open\")",
				name);
	if (!(header->sh_flags & SHF_ALLOC) || !header->sh_size)
		return 0;
	if (!strcmp(name, "maps"))
		return object_refuse(
			obj, splitter->err,
			"section maps: maps of the old form: define them in SEC(\".maps\")");
	if (is_user_code(name) && splitter->roles[section] != ROLE_USER)
		return object_refuse(obj, splitter->err, "section %s: holds data, not a function",
				     name);
	if (is_lua(name) && splitter->roles[section] != ROLE_LUA)
		return object_refuse(obj, splitter->err,
				     "section %s: holds a function, not Lua text: write "
				     "`const char NAME[] SEC(\"%s\") = \"...\"`",
				     name, name);
	if ((splitter->roles[section] == ROLE_LUA || splitter->roles[section] == ROLE_NOTE) &&
	    obj->sections[section].nrelocs)
		return object_refuse(obj, splitter->err,
				     "section %s: holds a pointer, not text: write "
				     "`const char NAME[] SEC(\"%s\") = \"...\"`",
				     name, name);
	if (!splitter->types &&
	    (splitter->roles[section] == ROLE_USER || splitter->roles[section] == ROLE_LUA ||
	     splitter->roles[section] == ROLE_MAPS))
		return object_refuse(obj, splitter->err, "no BTF: compile it with -g");
	return 0;
}

static int find_roles(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	int code;

	for (uint32_t i = 1; i < obj->nsections; i++) {
		splitter->roles[i] = role_of(obj, i);
		code = check_role(splitter, i);
		if (code)
			return code;
	}
	for (uint32_t i = 0; i < obj->nfunctions; i++) {
		enum section_role role = splitter->roles[obj->functions[i].section];
		const Elf64_Sym *symbol = &obj->symbols[obj->functions[i].symbol];
		const char *name = object_function_name(obj, i);

		splitter->has_kernel |= role == ROLE_KERNEL;
		splitter->has_user |= role == ROLE_USER;
		/* Names with a dot are parts that the compiler split off. */
		if ((role == ROLE_USER || role == ROLE_KERNEL) &&
		    ELF64_ST_BIND(symbol->st_info) == STB_LOCAL && !strchr(name, '.'))
			return split_refuse(splitter, obj->functions[i].section,
					    obj->functions[i].offset,
					    "%s `%s` is static: remove `static`",
					    role == ROLE_USER ? "hook" : "kernel program", name);
	}
	return 0;
}

/* Which undefined symbols are the kernel's? Those that a DATASEC .ksyms or .kconfig lists. */
static void find_kernel_externs(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;
	const struct types *types = splitter->types;

	for (uint32_t id = 1; types && id < types_count(types); id++) {
		const struct btf_type *type = types_get(types, id);
		const struct btf_var_secinfo *info = (const void *)(type + 1);
		const char *name = types_name(types, id);

		if (BTF_INFO_KIND(type->info) != BTF_KIND_DATASEC ||
		    (strcmp(name, ".ksyms") && strcmp(name, ".kconfig")))
			continue;
		for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++)
			for (uint32_t s = 1; s < obj->nsymbols; s++)
				if (obj->symbols[s].st_shndx == SHN_UNDEF &&
				    !strcmp(object_symbol_name(obj, s),
					    types_name(types, info[i].type)))
					splitter->kernel_externs[s] = true;
	}
}

static void splitter_deinit(struct splitter *splitter)
{
	free(splitter->roles);
	free(splitter->kernel_sections);
	free(splitter->user_sections);
	free(splitter->kernel_externs);
	free(splitter->kernel_symbols);
	free(splitter->kernel_functions);
	free(splitter->user_functions);
	free(splitter->callers);
	free(splitter->function_index);
	free(splitter->data_index);
	free(splitter->map_index);
	free(splitter->extern_index);
	free(splitter->program_index);
	user_half_free(splitter->user);
}

static void *new_indices(size_t count)
{
	void *indices = malloc((count + 1) * sizeof(uint32_t));

	if (indices)
		memset(indices, 0xff, (count + 1) * sizeof(uint32_t));
	return indices;
}

static int splitter_init(struct splitter *splitter, const struct obj *obj,
			 const struct types *kernel_types, struct err *err)
{
	splitter->obj = obj;
	splitter->types = obj->types;
	splitter->kernel_types = kernel_types;
	splitter->err = err;
	splitter->roles = calloc(obj->nsections, sizeof(*splitter->roles));
	splitter->kernel_sections = calloc(obj->nsections, sizeof(bool));
	splitter->user_sections = calloc(obj->nsections, sizeof(bool));
	splitter->kernel_externs = calloc(obj->nsymbols + 1, sizeof(bool));
	splitter->kernel_symbols = calloc(obj->nsymbols + 1, sizeof(bool));
	splitter->kernel_functions = calloc(obj->nfunctions + 1, sizeof(bool));
	splitter->user_functions = calloc(obj->nfunctions + 1, sizeof(bool));
	splitter->callers = new_indices(obj->nfunctions);
	splitter->function_index = new_indices(obj->nfunctions);
	splitter->data_index = new_indices(obj->nsections);
	splitter->map_index = new_indices(obj->nsymbols);
	splitter->extern_index = new_indices(obj->nsymbols);
	splitter->program_index = new_indices(obj->nfunctions);
	splitter->user = user_half_create();
	if (!splitter->roles || !splitter->kernel_sections || !splitter->user_sections ||
	    !splitter->kernel_externs || !splitter->kernel_symbols || !splitter->kernel_functions ||
	    !splitter->user_functions || !splitter->callers || !splitter->function_index ||
	    !splitter->data_index || !splitter->map_index || !splitter->extern_index ||
	    !splitter->program_index || !splitter->user)
		return err_nomem(err);
	return 0;
}

int obj_split(const struct obj *obj, const struct types *kernel_types, struct split *ret,
	      struct err *err)
{
	CLEANUP(splitter_deinit)
	struct splitter splitter = { 0 };
	static int (*const steps[])(struct splitter *) = {
		find_roles,           split_reach_kernel, split_reach_user,    split_list_tables,
		split_list_variables, split_link,         split_core_relocate,
	};
	struct err ignored = { 0 };
	int code = splitter_init(&splitter, obj, kernel_types, err ? err : &ignored);

	if (code)
		return code;
	find_kernel_externs(&splitter);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		code = steps[i](&splitter);
		if (code)
			return code;
	}
	code = split_make_image(&splitter, &ret->kernel, &ret->kernel_size);
	if (code)
		return code;
	ret->user = take_pointer(splitter.user);
	return 0;
}

void split_deinit(struct split *split)
{
	free(split->kernel);
	user_half_free(split->user);
	*split = (struct split){ 0 };
}

bool obj_user_needs_kernel_types(const struct obj *obj)
{
	/* Functions of .text may serve either half, so they count. */
	for (uint32_t i = 0; i < obj->ncore_relocs; i++) {
		enum section_role role = role_of(obj, obj->core_relocs[i].section);

		if (role == ROLE_USER)
			return true;
		if (role == ROLE_TEXT)
			for (uint32_t s = 1; s < obj->nsections; s++)
				if (role_of(obj, s) == ROLE_USER)
					return true;
	}
	return false;
}
