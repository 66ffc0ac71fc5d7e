// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel image: the object as it was, on a copy, with everything that libbpf must not see made
 * SHT_STRTAB (which libbpf passes over) and a BTF of its own appended. Nothing moves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "obj/splitter.h"

struct image {
	struct splitter *splitter;
	uint8_t *data;
	Elf64_Shdr *headers; /* in data */
	Elf64_Sym *symbols;  /* in data */
};

static bool is_hidden(const struct splitter *splitter, uint32_t section)
{
	const struct obj *obj = splitter->obj;

	switch (splitter->roles[section]) {
	case ROLE_USER:
	case ROLE_LUA:
	case ROLE_NOTE:
	case ROLE_OTHER_DATA:
		return true;
	case ROLE_DATA:
		return !split_data_in_kernel(splitter, section);
	case ROLE_TEXT:
		for (uint32_t i = 0; i < obj->nfunctions; i++)
			if (obj->functions[i].section == section && splitter->kernel_functions[i])
				return false;
		return true;
	default:
		return false;
	}
}

static void hide_section(struct image *image, uint32_t section)
{
	uint32_t relocs = image->splitter->obj->sections[section].reloc_section;

	image->headers[section].sh_type = SHT_STRTAB;
	image->headers[section].sh_flags = 0;
	if (relocs) {
		image->headers[relocs].sh_type = SHT_STRTAB;
		image->headers[relocs].sh_flags = 0;
	}
}

/* Only relocations of functions that the kernel half reaches stay. */
static void prune_text_relocs(struct image *image, uint32_t section)
{
	const struct splitter *splitter = image->splitter;
	uint32_t index = splitter->obj->sections[section].reloc_section;
	const Elf64_Shdr *header = &splitter->obj->headers[index];
	Elf64_Rel *rels = (void *)(image->data + header->sh_offset);
	size_t count = header->sh_size / sizeof(*rels), kept = 0;

	if (!index)
		return;
	for (size_t i = 0; i < count; i++) {
		uint32_t function =
			object_function_around(splitter->obj, section, rels[i].r_offset);

		if (function != UINT32_MAX && splitter->kernel_functions[function])
			rels[kept++] = rels[i];
	}
	image->headers[index].sh_size = kept * sizeof(*rels);
	if (!kept)
		image->headers[index].sh_type = SHT_STRTAB;
}

/* libbpf knows LLVM's addends only. */
static void rewrite_addends(struct image *image, uint32_t section)
{
	const struct obj *obj = image->splitter->obj;
	const struct object_section *of = &obj->sections[section];

	for (uint32_t i = 0; i < of->nrelocs; i++) {
		const struct object_reloc *reloc = &of->relocs[i];
		const Elf64_Sym *symbol = &obj->symbols[reloc->symbol];
		struct object_target target = object_reloc_target(obj, section, reloc);
		struct bpf_insn *insn =
			(void *)(image->data + obj->headers[section].sh_offset + reloc->offset);
		int64_t addend = target.offset - (int64_t)symbol->st_value;

		if (!target.section || ELF64_ST_TYPE(symbol->st_info) == STT_SECTION)
			continue;
		insn->imm = reloc->type == RELOC_64_32 ? addend / 8 - 1 : addend;
	}
}

static void hide_sections(struct image *image)
{
	const struct splitter *splitter = image->splitter;
	const struct obj *obj = splitter->obj;

	for (uint32_t i = 1; i < obj->nsections; i++) {
		enum section_role role = splitter->roles[i];

		if (is_hidden(splitter, i)) {
			hide_section(image, i);
			continue;
		}
		if (obj->addends_hold_values && (role == ROLE_KERNEL || role == ROLE_TEXT))
			rewrite_addends(image, i);
		if (role == ROLE_TEXT)
			prune_text_relocs(image, i);
		/* Pointer tables are the user half's; libbpf would only talk about them. */
		if (role == ROLE_DATA && obj->sections[i].reloc_section)
			image->headers[obj->sections[i].reloc_section].sh_type = SHT_STRTAB;
	}
}

static void hide_symbols(struct image *image)
{
	const struct splitter *splitter = image->splitter;
	const struct obj *obj = splitter->obj;

	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];
		uint32_t function;

		if (symbol->st_shndx == SHN_UNDEF && !splitter->kernel_symbols[i])
			image->symbols[i].st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
		/* So that libbpf makes no subprogram of it. */
		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
		    symbol->st_shndx >= obj->nsections ||
		    splitter->roles[symbol->st_shndx] != ROLE_TEXT)
			continue;
		function = object_function_at(obj, symbol->st_shndx, symbol->st_value);
		if (function == UINT32_MAX || !splitter->kernel_functions[function])
			image->symbols[i].st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
	}
}

int split_make_image(struct splitter *splitter, void **ret, size_t *ret_size)
{
	const struct obj *obj = splitter->obj;
	CLEANUP(free_pointer)
	void *types = NULL;
	CLEANUP(free_pointer)
	uint8_t *data = NULL;
	uint32_t btf = obj->types ? obj_find_section(obj, ".BTF") : 0;
	size_t types_size = 0, start = (obj->size + 7) & ~7UL;
	struct image image = { .splitter = splitter };
	int code = obj->types ? split_mend_types(splitter, &types, &types_size) : 0;

	if (code)
		return code;
	data = calloc(1, start + types_size);
	if (!data)
		return err_nomem(splitter->err);
	memcpy(data, obj->data, obj->size);
	image.data = data;
	image.headers = (void *)(data + ((uint8_t *)obj->headers - obj->data));
	image.symbols = (void *)(data + obj->headers[obj->symtab].sh_offset);
	hide_sections(&image);
	hide_symbols(&image);
	if (btf) {
		memcpy(data + start, types, types_size);
		image.headers[btf].sh_offset = start;
		image.headers[btf].sh_size = types_size;
	}
	*ret = take_pointer(data);
	*ret_size = start + types_size;
	return 0;
}
