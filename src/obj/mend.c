// SPDX-License-Identifier: BSD-2-Clause
/*
 * The BTF of the kernel image. The kernel refuses a whole BTF for one thing that it does not like
 * (libbpf then goes on without any), so: what the kernel half does not have (user functions'
 * externs, DATASECs such as "lua/exit", variables of hidden sections) becomes a plain `void *`,
 * since ids must stay; what it has is completed from the symbol table, in a form that libbpf takes
 * as it is. String offsets stay, for .BTF.ext refers to them too.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "obj/splitter.h"
#include "obj/types_layout.h"

struct mender {
	struct splitter *splitter;
	const struct types *types;
	bool *kept;            /* per id; of the kinds that may go */
	uint32_t *param_names; /* per FUNC_PROTO: name for parameters that have none */
	struct buf out;        /* records */
};

static void mender_deinit(struct mender *mender)
{
	free(mender->kept);
	free(mender->param_names);
	buf_deinit(&mender->out);
}

/* What Linux 6.1 takes as a function's name, or (@dots) a section's. */
static bool is_kernel_name(const char *name, bool dots)
{
	if (!isalpha((unsigned char)*name) && *name != '_' && !(dots && *name == '.'))
		return false;
	for (name++; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' && !(dots && *name == '.'))
			return false;
	return true;
}

static bool is_extern_datasec(const char *name)
{
	return !strcmp(name, ".ksyms") || !strcmp(name, ".kconfig");
}

/* Does the kernel half use the undefined symbol @name? */
static bool kernel_uses_extern(const struct splitter *splitter, const char *name)
{
	const struct obj *obj = splitter->obj;

	for (uint32_t i = 1; i < obj->nsymbols; i++)
		if (splitter->kernel_externs[i] && splitter->kernel_symbols[i] &&
		    !strcmp(object_symbol_name(obj, i), name))
			return true;
	return false;
}

/* The section of the kernel image that a DATASEC describes, 0: none. */
static uint32_t kernel_section_of(const struct splitter *splitter, const char *name)
{
	uint32_t section = obj_find_section(splitter->obj, name);

	switch (splitter->roles[section]) {
	case ROLE_MAPS:
	case ROLE_KERNEL_DATA:
		return section;
	case ROLE_DATA:
		return split_data_in_kernel(splitter, section) ? section : 0;
	default:
		return 0;
	}
}

/* Where DATASEC @name's entry @var lies; false: it has no place in the kernel image. */
static bool place_entry(const struct mender *mender, const char *name,
			struct btf_var_secinfo *entry)
{
	const struct splitter *splitter = mender->splitter;
	uint32_t section, symbol;
	int64_t size;

	if (is_extern_datasec(name))
		return kernel_uses_extern(splitter, types_name(mender->types, entry->type));
	section = kernel_section_of(splitter, name);
	if (!section || types_kind(mender->types, entry->type) != BTF_KIND_VAR)
		return false;
	symbol = split_find_variable(splitter, section, types_name(mender->types, entry->type),
				     entry->offset);
	size = types_size(mender->types, entry->type);
	if (!symbol || size <= 0 || (uint64_t)size > splitter->obj->symbols[symbol].st_size)
		return false;
	entry->offset = splitter->obj->symbols[symbol].st_value;
	entry->size = splitter->obj->symbols[symbol].st_size;
	return true;
}

static int compare_entries(const void *left, const void *right)
{
	const struct btf_var_secinfo *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The entries that stay, sorted and without overlaps (aliases); NULL: out of memory. */
static struct btf_var_secinfo *place_entries(const struct mender *mender, uint32_t id,
					     uint32_t *ret)
{
	const struct btf_type *type = types_get(mender->types, id);
	const struct btf_var_secinfo *info = (const void *)(type + 1);
	struct btf_var_secinfo *entries = calloc(BTF_INFO_VLEN(type->info) + 1, sizeof(*entries));
	const char *name = types_name(mender->types, id);
	uint32_t count = 0, kept = 0;

	*ret = 0;
	if (!entries || !is_kernel_name(name, true))
		return entries;
	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		entries[count] = info[i];
		count += place_entry(mender, name, &entries[count]);
	}
	*ret = count;
	if (is_extern_datasec(name))
		return entries; /* libbpf lays these out */
	qsort(entries, count, sizeof(*entries), compare_entries);
	for (uint32_t i = 0; i < count; i++)
		if (!kept || entries[i].offset >= entries[kept - 1].offset + entries[kept - 1].size)
			entries[kept++] = entries[i];
	*ret = kept;
	return entries;
}

static bool is_defined_function(const struct obj *obj, const char *name)
{
	for (uint32_t i = 0; i < obj->nfunctions; i++)
		if (!strcmp(object_function_name(obj, i), name))
			return true;
	return false;
}

/* A DATASEC stays when anything in it does, and its variables with it. */
static int keep_datasec(struct mender *mender, uint32_t id)
{
	uint32_t count;
	CLEANUP(free_pointer) struct btf_var_secinfo *entries = place_entries(mender, id, &count);

	if (!entries)
		return err_nomem(mender->splitter->err);
	mender->kept[id] = count > 0;
	for (uint32_t i = 0; i < count; i++)
		mender->kept[entries[i].type] = true;
	return 0;
}

static int choose_kept(struct mender *mender)
{
	const struct types *types = mender->types;

	for (uint32_t id = 1; id < types_count(types); id++) {
		const char *name = types_name(types, id);
		uint32_t kind = types_kind(types, id);
		int code = kind == BTF_KIND_DATASEC ? keep_datasec(mender, id) : 0;

		if (code)
			return code;
		if (kind == BTF_KIND_FUNC)
			mender->kept[id] |= is_kernel_name(name, false) &&
					    is_defined_function(mender->splitter->obj, name);
		else if (kind != BTF_KIND_VAR && kind != BTF_KIND_DECL_TAG &&
			 kind != BTF_KIND_DATASEC)
			mender->kept[id] = true;
	}
	for (uint32_t id = 1; id < types_count(types); id++) {
		const struct btf_type *type = types_get(types, id);

		if (BTF_INFO_KIND(type->info) == BTF_KIND_DECL_TAG)
			mender->kept[id] = mender->kept[type->type];
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC && mender->kept[id])
			mender->param_names[type->type] = type->name_off;
	}
	return 0;
}

static int emit_datasec(struct mender *mender, uint32_t id)
{
	struct btf_type type = *types_get(mender->types, id);
	const char *name = types_name(mender->types, id);
	uint32_t count;
	CLEANUP(free_pointer) struct btf_var_secinfo *entries = place_entries(mender, id, &count);
	int code;

	if (!entries)
		return -ENOMEM;
	type.info = BTF_KIND_DATASEC << 24 | count;
	if (!is_extern_datasec(name))
		type.size =
			mender->splitter->obj->headers[kernel_section_of(mender->splitter, name)]
				.sh_size;
	code = buf_append(&mender->out, &type, sizeof(type));
	return code ? code : buf_append(&mender->out, entries, count * sizeof(*entries));
}

/* libbpf looks every global variable up by name among the global symbols. */
static void mend_linkage(const struct mender *mender, const char *name, struct btf_var *var)
{
	const struct obj *obj = mender->splitter->obj;

	if (var->linkage != BTF_VAR_GLOBAL_ALLOCATED)
		return;
	for (uint32_t i = 1; i < obj->nsymbols; i++)
		if (ELF64_ST_TYPE(obj->symbols[i].st_info) == STT_OBJECT &&
		    ELF64_ST_BIND(obj->symbols[i].st_info) != STB_LOCAL &&
		    !strcmp(object_symbol_name(obj, i), name))
			return;
	var->linkage = BTF_VAR_STATIC;
}

static void mend_record(const struct mender *mender, uint32_t id, struct btf_type *type)
{
	struct btf_param *params = (void *)(type + 1);
	uint32_t *integer = (void *)(type + 1);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
		/* gcc 12 writes SIGNED|CHAR; the kernel wants one bit at most. */
		if (BTF_INT_ENCODING(*integer) & (BTF_INT_ENCODING(*integer) - 1))
			*integer = (*integer & ~0x0f000000U) |
				   (BTF_INT_ENCODING(*integer) & BTF_INT_SIGNED) << 24;
		break;
	case BTF_KIND_FUNC_PROTO:
		for (uint32_t i = 0; mender->param_names[id] && i < BTF_INFO_VLEN(type->info); i++)
			if (params[i].type && !params[i].name_off)
				params[i].name_off = mender->param_names[id];
		break;
	case BTF_KIND_FWD:
		type->type = 0; /* gcc 12 leaves something there */
		break;
	case BTF_KIND_VAR:
		mend_linkage(mender, types_name(mender->types, id), (struct btf_var *)(type + 1));
		break;
	}
}

static int emit(struct mender *mender, uint32_t id)
{
	static const struct btf_type pointer = { .info = BTF_KIND_PTR << 24 };
	const struct btf_type *type = types_get(mender->types, id);
	size_t size = sizeof(*type) + kind_extra(type->info), start = mender->out.size;
	int code;

	if (!mender->kept[id])
		return buf_append(&mender->out, &pointer, sizeof(pointer));
	if (BTF_INFO_KIND(type->info) == BTF_KIND_DATASEC)
		return emit_datasec(mender, id);
	code = buf_append(&mender->out, type, size);
	if (!code)
		mend_record(mender, id, (struct btf_type *)(mender->out.data + start));
	return code;
}

int split_mend_types(struct splitter *splitter, void **ret, size_t *ret_size)
{
	CLEANUP(mender_deinit)
	struct mender mender = { .splitter = splitter, .types = splitter->types };
	struct btf_header header = { BTF_MAGIC, BTF_VERSION, 0, sizeof(header), 0, 0, 0, 0 };
	const struct btf_header *old;
	size_t ignored;
	uint8_t *data;
	int code;

	mender.kept = calloc(types_count(mender.types), sizeof(bool));
	mender.param_names = calloc(types_count(mender.types), sizeof(uint32_t));
	if (!mender.kept || !mender.param_names)
		return err_nomem(splitter->err);
	code = choose_kept(&mender);
	if (code)
		return code;
	for (uint32_t id = 1; id < types_count(mender.types); id++)
		if (emit(&mender, id))
			return err_nomem(splitter->err);
	old = types_data(mender.types, &ignored);
	header.type_len = header.str_off = mender.out.size;
	header.str_len = old->str_len;
	data = malloc(sizeof(header) + header.type_len + header.str_len);
	if (!data)
		return err_nomem(splitter->err);
	memcpy(data, &header, sizeof(header));
	if (header.type_len)
		memcpy(data + sizeof(header), mender.out.data, header.type_len);
	memcpy(data + sizeof(header) + header.type_len, types_string(mender.types, 0),
	       header.str_len);
	*ret = data;
	*ret_size = sizeof(header) + header.type_len + header.str_len;
	return 0;
}
