// SPDX-License-Identifier: BSD-2-Clause
#include "obj/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"

const char *object_symbol_name(const struct obj *obj, uint32_t symbol)
{
	const Elf64_Sym *sym = &obj->symbols[symbol];

	/* Section symbols have no name of their own. */
	if (ELF64_ST_TYPE(sym->st_info) == STT_SECTION && sym->st_shndx < obj->nsections)
		return obj->sections[sym->st_shndx].name;
	return obj->symbol_names + sym->st_name;
}

const struct bpf_insn *object_insn(const struct obj *obj, uint32_t section, uint64_t offset)
{
	return (const void *)(obj->data + obj->headers[section].sh_offset + offset);
}

static int compare_relocs(const void *left, const void *right)
{
	const struct object_reloc *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int check_code_reloc(const struct obj *obj, uint32_t section,
			    const struct object_reloc *reloc, struct err *err)
{
	const Elf64_Shdr *header = &obj->headers[section];
	const struct bpf_insn *insn = object_insn(obj, section, reloc->offset);
	bool fits = false;

	if (reloc->offset % 8)
		return object_refuse(obj, err, "section %s: relocation inside an instruction",
				     obj->sections[section].name);
	switch (reloc->type) {
	case RELOC_64_64:
		fits = range_inside(reloc->offset, 16, header->sh_size) && insn_is_lddw(insn);
		break;
	case RELOC_64_32:
		fits = insn_is_call(insn);
		break;
	}
	return fits ? 0
		    : object_refuse(obj, err,
				    "section %s: relocation of type %u does not fit the "
				    "instruction at %#x",
				    obj->sections[section].name, reloc->type, reloc->offset);
}

static int check_reloc(const struct obj *obj, uint32_t section, const struct object_reloc *reloc,
		       struct err *err)
{
	const Elf64_Shdr *header = &obj->headers[section];
	const char *name = obj->sections[section].name;
	bool wide = reloc->type == RELOC_64_64 || reloc->type == RELOC_ABS64 ||
		    reloc->type == RELOC_GNU_DATA_64;

	if (!reloc->symbol || reloc->symbol >= obj->nsymbols)
		return object_refuse(obj, err, "section %s: relocation against no symbol", name);
	if (!range_inside(reloc->offset, wide || section_is_code(header) ? 8 : 4, header->sh_size))
		return object_refuse(obj, err, "section %s: relocation outside the section", name);
	if (header->sh_type == SHT_NOBITS)
		return object_refuse(obj, err, "section %s: relocation in zeroes", name);
	return section_is_code(header) ? check_code_reloc(obj, section, reloc, err) : 0;
}

static int read_reloc_section(struct obj *obj, uint32_t index, struct err *err)
{
	const Elf64_Shdr *header = &obj->headers[index];
	const char *name = obj->sections[index].name;
	struct object_section *target;
	const Elf64_Rel *rels;
	uint32_t count = header->sh_size / sizeof(*rels);
	int code;

	if (header->sh_entsize != sizeof(*rels) || header->sh_size % sizeof(*rels) ||
	    header->sh_offset % 8 || !header->sh_info || header->sh_info >= obj->nsections ||
	    header->sh_link != obj->symtab)
		return object_refuse(obj, err, "section %s: bad relocation section", name);
	if (!(obj->headers[header->sh_info].sh_flags & SHF_ALLOC))
		return 0; /* DWARF and BTF: nobody reads these */
	target = &obj->sections[header->sh_info];
	if (target->reloc_section)
		return object_refuse(obj, err, "section %s: relocates %s a second time", name,
				     target->name);
	target->reloc_section = index;
	target->relocs = calloc(count + 1, sizeof(*target->relocs));
	if (!target->relocs)
		return err_nomem(err);
	rels = (const void *)(obj->data + header->sh_offset);
	for (uint32_t i = 0; i < count; i++) {
		if (rels[i].r_offset > UINT32_MAX)
			return object_refuse(obj, err, "section %s: relocation outside the section",
					     target->name);
		target->relocs[i] =
			(struct object_reloc){ rels[i].r_offset, ELF64_R_TYPE(rels[i].r_info),
					       ELF64_R_SYM(rels[i].r_info) };
		code = check_reloc(obj, header->sh_info, &target->relocs[i], err);
		if (code)
			return code;
	}
	target->nrelocs = count;
	qsort(target->relocs, count, sizeof(*target->relocs), compare_relocs);
	for (uint32_t i = 1; i < count; i++)
		if (target->relocs[i].offset == target->relocs[i - 1].offset)
			return object_refuse(obj, err, "section %s: two relocations at %#x",
					     target->name, target->relocs[i].offset);
	return 0;
}

static int64_t addend_of(const struct obj *obj, uint32_t section, const struct object_reloc *reloc)
{
	const uint8_t *at = obj->data + obj->headers[section].sh_offset + reloc->offset;
	int64_t value = 0;

	if (!section_is_code(&obj->headers[section])) {
		memcpy(&value, at, 8);
		return value;
	}
	return ((const struct bpf_insn *)at)->imm;
}

static bool is_named_target(const struct obj *obj, const struct object_reloc *reloc)
{
	const Elf64_Sym *symbol = &obj->symbols[reloc->symbol];

	return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
	       ELF64_ST_TYPE(symbol->st_info) != STT_SECTION;
}

/*
 * Which form of addends? Nothing in the file tells the assembler's version, so: it is gcc's, and
 * no addend of a named symbol is less than the symbol's value. The fixed form leaves 0 (-1 for
 * calls) in nearly every one of them.
 */
static bool find_addend_form(const struct obj *obj)
{
	uint32_t comment = obj_find_section(obj, ".comment");
	size_t size = 0;
	const char *text = comment ? obj_section_data(obj, comment, &size) : NULL;

	if (!text || !memmem(text, size, "GCC:", 4) || memmem(text, size, "clang", 5))
		return false;
	for (uint32_t i = 1; i < obj->nsections; i++) {
		const struct object_section *section = &obj->sections[i];

		for (uint32_t r = 0; r < section->nrelocs; r++) {
			const struct object_reloc *reloc = &section->relocs[r];
			int64_t value = obj->symbols[reloc->symbol].st_value;
			bool call = reloc->type == RELOC_64_32;
			bool pointer = reloc->type == RELOC_ABS64 ||
				       reloc->type == RELOC_GNU_DATA_64 ||
				       reloc->type == RELOC_64_64;

			if ((call || pointer) && value && is_named_target(obj, reloc) &&
			    range_inside(reloc->offset, 8, obj->headers[i].sh_size) &&
			    addend_of(obj, i, reloc) + call < value)
				return false;
		}
	}
	return true;
}

int object_read_relocs(struct obj *obj, struct err *err)
{
	int code;

	for (uint32_t i = 1; i < obj->nsections; i++) {
		if (obj->headers[i].sh_type != SHT_REL)
			continue;
		code = read_reloc_section(obj, i, err);
		if (code)
			return code;
	}
	obj->addends_hold_values = find_addend_form(obj);
	return 0;
}

const struct object_reloc *object_reloc_at(const struct obj *obj, uint32_t section, uint64_t offset)
{
	const struct object_section *of = &obj->sections[section];
	uint32_t low = 0, high = of->nrelocs;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (of->relocs[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < of->nrelocs && of->relocs[low].offset == offset ? &of->relocs[low] : NULL;
}

struct object_target object_reloc_target(const struct obj *obj, uint32_t section,
					 const struct object_reloc *reloc)
{
	const Elf64_Sym *symbol = &obj->symbols[reloc->symbol];
	struct object_target target = { .symbol = reloc->symbol };
	int64_t addend = addend_of(obj, section, reloc);
	bool named = is_named_target(obj, reloc);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return target;
	target.section = symbol->st_shndx;
	/* Calls count instructions, from the next one on (RFC 9669, 4.3.1); the old GNU form adds
	 * the symbol's value in bytes. */
	if (named && obj->addends_hold_values)
		addend -= (int64_t)symbol->st_value;
	if (reloc->type == RELOC_64_32)
		addend = (addend + 1) * 8;
	if (__builtin_add_overflow((int64_t)symbol->st_value, addend, &target.offset))
		target.offset = -1;
	return target;
}

/* The last function of @section that starts at or before @offset. */
static uint32_t function_before(const struct obj *obj, uint32_t section, int64_t offset)
{
	uint32_t low = 0, high = obj->nfunctions;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct object_function *function = &obj->functions[middle];

		if (function->section < section ||
		    (function->section == section && function->offset <= offset))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || obj->functions[low - 1].section != section)
		return UINT32_MAX;
	return low - 1;
}

uint32_t object_function_at(const struct obj *obj, uint32_t section, int64_t offset)
{
	uint32_t found = function_before(obj, section, offset);

	return found != UINT32_MAX && obj->functions[found].offset == offset ? found : UINT32_MAX;
}

uint32_t object_function_around(const struct obj *obj, uint32_t section, int64_t offset)
{
	uint32_t found = function_before(obj, section, offset);

	if (found == UINT32_MAX ||
	    offset >= (int64_t)obj->functions[found].offset + obj->functions[found].size)
		return UINT32_MAX;
	return found;
}
