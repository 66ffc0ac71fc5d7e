// SPDX-License-Identifier: BSD-2-Clause
#include "obj/obj.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "obj/object.h"

/* More than any script has; keeps every offset inside a section in 31 bits. */
#define SECTION_SIZE_MAX (1U << 30)

int object_refuse(const struct obj *obj, struct err *err, const char *format, ...)
{
	char text[sizeof(err->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	object_clean_text(text);
	return err_set(err, -EINVAL, "%s: %s", obj->name, text);
}

/* Names go into messages, and messages to terminals. */
static bool is_printable(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			return false;
	return true;
}

void object_clean_text(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static const char *machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_AARCH64:
		return "arm64";
	case EM_386:
		return "x86 (32 bits)";
	case EM_ARM:
		return "arm (32 bits)";
	case EM_RISCV:
		return "RISC-V";
	case EM_S390:
		return "s390";
	case EM_PPC64:
		return "ppc64";
	case EM_LOONGARCH:
		return "LoongArch";
	}
	return NULL;
}

static int check_header(const struct obj *obj, struct err *err)
{
	const Elf64_Ehdr *header = (const void *)obj->data;
	const char *machine;

	if (obj->size < SELFMAG || memcmp(obj->data, ELFMAG, SELFMAG))
		return object_refuse(obj, err,
				     "not an ELF object: compile it with "
				     "`clang -target bpf -g -c`, or run the .c");
	if (obj->size < sizeof(*header))
		return object_refuse(obj, err, "cut short: %zu bytes", obj->size);
	if (header->e_ident[EI_CLASS] != ELFCLASS64)
		return object_refuse(obj, err, "not a 64-bit object");
	if (header->e_ident[EI_DATA] == ELFDATA2MSB)
		return object_refuse(obj, err,
				     "a big-endian object: this machine is little-endian: "
				     "build it for this architecture");
	if (header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_ident[EI_VERSION] != EV_CURRENT ||
	    header->e_version != EV_CURRENT)
		return object_refuse(obj, err, "unknown ELF version or byte order");
	if (header->e_machine != EM_BPF) {
		machine = machine_name(header->e_machine);
		if (machine)
			return object_refuse(obj, err,
					     "an object for %s, not for BPF: compile it with "
					     "`-target bpf`",
					     machine);
		return object_refuse(obj, err, "an object for machine %u, not for BPF",
				     header->e_machine);
	}
	if (header->e_type != ET_REL)
		return object_refuse(obj, err, "not a relocatable object (type %u)",
				     header->e_type);
	if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_ehsize != sizeof(*header))
		return object_refuse(obj, err, "bad ELF header");
	if (!header->e_shnum || header->e_shnum >= SHN_LORESERVE)
		return object_refuse(obj, err, "no section table, or one of the extended kind");
	if (header->e_shoff % 8 ||
	    !range_inside(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr), obj->size))
		return object_refuse(obj, err, "section table outside the file: is it cut short?");
	if (!header->e_shstrndx || header->e_shstrndx >= header->e_shnum)
		return object_refuse(obj, err, "no table of section names");
	return 0;
}

static int check_section(struct obj *obj, uint32_t index, struct err *err)
{
	const Elf64_Shdr *header = &obj->headers[index];
	const Elf64_Shdr *names = &obj->headers[((Elf64_Ehdr *)obj->data)->e_shstrndx];
	const char *name =
		string_at((char *)obj->data + names->sh_offset, names->sh_size, header->sh_name);

	if (!name)
		return object_refuse(obj, err, "section %u: name outside the table of names",
				     index);
	obj->sections[index].name = name;
	if (header->sh_size > SECTION_SIZE_MAX)
		return object_refuse(obj, err, "section %s: larger than 1 GiB", name);
	if (header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL &&
	    !range_inside(header->sh_offset, header->sh_size, obj->size))
		return object_refuse(obj, err, "section %s: outside the file: is it cut short?",
				     name);
	if (header->sh_addralign & (header->sh_addralign - 1))
		return object_refuse(obj, err, "section %s: bad alignment", name);
	if (header->sh_link >= obj->nsections)
		return object_refuse(obj, err, "section %s: linked to no section", name);
	switch (header->sh_type) {
	case SHT_RELA:
		return object_refuse(
			obj, err, "section %s: relocations of a kind that BPF does not have", name);
	case SHT_SYMTAB_SHNDX:
		return object_refuse(
			obj, err, "section %s: extended section indices: too many sections", name);
	case SHT_SYMTAB:
		if (obj->symtab)
			return object_refuse(obj, err, "section %s: a second symbol table", name);
		obj->symtab = index;
	}
	if (section_is_code(header) && (header->sh_size % 8 || header->sh_offset % 8))
		return object_refuse(obj, err, "section %s: not made of whole instructions", name);
	return 0;
}

static int check_unique(const struct obj *obj, uint32_t index, struct err *err)
{
	const char *name = obj->sections[index].name;

	if (!(obj->headers[index].sh_flags & SHF_ALLOC) && strncmp(name, ".BTF", 4))
		return 0;
	for (uint32_t i = 1; i < index; i++)
		if (!strcmp(obj->sections[i].name, name))
			return object_refuse(obj, err, "section %s: there are two of them", name);
	return 0;
}

struct file_range {
	uint64_t offset, size;
	const char *name;
};

static int compare_ranges(const void *left, const void *right)
{
	const struct file_range *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* No two parts of the file share bytes: what the split changes in one must not change another. */
static int check_overlaps(const struct obj *obj, struct err *err)
{
	const Elf64_Ehdr *header = (const void *)obj->data;
	CLEANUP(free_pointer)
	struct file_range *ranges = calloc(obj->nsections + 1, sizeof(*ranges));
	uint32_t count = 2;

	if (!ranges)
		return err_nomem(err);
	ranges[0] = (struct file_range){ 0, sizeof(*header), "ELF header" };
	ranges[1] = (struct file_range){ header->e_shoff, obj->nsections * sizeof(Elf64_Shdr),
					 "section table" };
	for (uint32_t i = 1; i < obj->nsections; i++) {
		const Elf64_Shdr *section = &obj->headers[i];

		if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
		    section->sh_size)
			ranges[count++] = (struct file_range){ section->sh_offset, section->sh_size,
							       obj->sections[i].name };
	}
	qsort(ranges, count, sizeof(*ranges), compare_ranges);
	for (uint32_t i = 1; i < count; i++)
		if (ranges[i].offset < ranges[i - 1].offset + ranges[i - 1].size)
			return object_refuse(obj, err, "%s and %s overlap", ranges[i - 1].name,
					     ranges[i].name);
	return 0;
}

static int read_sections(struct obj *obj, struct err *err)
{
	const Elf64_Ehdr *header = (const void *)obj->data;
	const Elf64_Shdr *names;
	int code;

	obj->headers = (const void *)(obj->data + header->e_shoff);
	obj->nsections = header->e_shnum;
	obj->sections = calloc(obj->nsections, sizeof(*obj->sections));
	if (!obj->sections)
		return err_nomem(err);
	for (uint32_t i = 0; i < obj->nsections; i++)
		obj->sections[i].name = "";
	names = &obj->headers[header->e_shstrndx];
	if (names->sh_type != SHT_STRTAB ||
	    !range_inside(names->sh_offset, names->sh_size, obj->size))
		return object_refuse(obj, err, "no table of section names");
	for (uint32_t i = 1; i < obj->nsections; i++) {
		code = check_section(obj, i, err);
		if (!code)
			code = check_unique(obj, i, err);
		if (code)
			return code;
	}
	if (!obj->symtab)
		return object_refuse(obj, err, "no symbol table: it was stripped");
	return check_overlaps(obj, err);
}

static int check_symbol(struct obj *obj, uint32_t index, struct err *err)
{
	const Elf64_Shdr *names = &obj->headers[obj->headers[obj->symtab].sh_link];
	const Elf64_Sym *symbol = &obj->symbols[index];
	const char *name = string_at(obj->symbol_names, names->sh_size, symbol->st_name);
	const Elf64_Shdr *header;
	int type = ELF64_ST_TYPE(symbol->st_info);

	if (!name)
		return object_refuse(obj, err, "symbol %u: name outside the table of names", index);
	if (!is_printable(name))
		return object_refuse(obj, err, "symbol %u: control characters in its name", index);
	if (symbol->st_shndx == SHN_COMMON)
		return object_refuse(
			obj, err, "variable `%s`: a common symbol: compile with -fno-common", name);
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return 0;
	if (symbol->st_shndx >= obj->nsections)
		return object_refuse(obj, err, "symbol `%s`: in no section", name);
	header = &obj->headers[symbol->st_shndx];
	if (!range_inside(symbol->st_value, symbol->st_size, header->sh_size))
		return object_refuse(obj, err, "symbol `%s`: outside section %s", name,
				     obj->sections[symbol->st_shndx].name);
	if (type != STT_FUNC)
		return 0;
	if (!section_is_code(header))
		return object_refuse(obj, err, "function `%s`: section %s holds no code", name,
				     obj->sections[symbol->st_shndx].name);
	if (!symbol->st_size || symbol->st_value % 8 || symbol->st_size % 8)
		return object_refuse(obj, err, "function `%s`: not made of whole instructions",
				     name);
	obj->nfunctions++;
	return 0;
}

static int compare_functions(const void *left, const void *right)
{
	const struct object_function *a = left, *b = right;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->symbol < b->symbol ? -1 : a->symbol > b->symbol;
}

static int read_functions(struct obj *obj, struct err *err)
{
	uint32_t count = 0, kept = 0;

	obj->functions = calloc(obj->nfunctions + 1, sizeof(*obj->functions));
	if (!obj->functions)
		return err_nomem(err);
	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];

		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
		    symbol->st_shndx == SHN_ABS)
			continue;
		obj->functions[count++] =
			(struct object_function){ i, symbol->st_shndx, symbol->st_value,
						  symbol->st_size };
	}
	qsort(obj->functions, count, sizeof(*obj->functions), compare_functions);
	for (uint32_t i = 0; i < count; i++) {
		struct object_function *last = kept ? &obj->functions[kept - 1] : NULL,
				       *now = &obj->functions[i];

		if (last && last->section == now->section &&
		    now->offset < last->offset + last->size) {
			if (now->offset != last->offset || now->size != last->size)
				return object_refuse(obj, err, "functions `%s` and `%s` overlap",
						     object_symbol_name(obj, last->symbol),
						     object_symbol_name(obj, now->symbol));
			continue; /* an alias */
		}
		obj->functions[kept++] = *now;
	}
	obj->nfunctions = kept;
	return 0;
}

static int read_symbols(struct obj *obj, struct err *err)
{
	const Elf64_Shdr *table = &obj->headers[obj->symtab],
			 *names = &obj->headers[table->sh_link];
	int code;

	if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_size % sizeof(Elf64_Sym) ||
	    table->sh_offset % 8 || names->sh_type != SHT_STRTAB)
		return object_refuse(obj, err, "bad symbol table");
	obj->symbols = (const void *)(obj->data + table->sh_offset);
	obj->nsymbols = table->sh_size / sizeof(Elf64_Sym);
	obj->symbol_names = (char *)obj->data + names->sh_offset;
	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		code = check_symbol(obj, i, err);
		if (code)
			return code;
	}
	return read_functions(obj, err);
}

static int read_types(struct obj *obj, struct err *err)
{
	uint32_t section = obj_find_section(obj, ".BTF");
	size_t size;
	const void *data = section ? obj_section_data(obj, section, &size) : NULL;
	int code;

	if (!data)
		return 0;
	code = types_open(data, size, &obj->types, err);
	return code ? err_prepend(err, code, "%s", obj->name) : object_read_ext(obj, err);
}

static struct obj *obj_create(const void *data, size_t size, const char *name)
{
	struct obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return NULL;
	obj->name = strdup(name);
	obj->data = malloc(size + 1);
	if (!obj->name || !obj->data) {
		obj_close(obj);
		return NULL;
	}
	memcpy(obj->data, data, size);
	obj->size = size;
	return obj;
}

int obj_open(const void *data, size_t size, const char *name, struct obj **ret, struct err *err)
{
	CLEANUP(obj_close_cleanup) struct obj *obj = obj_create(data, size, name);
	int code;

	if (!obj)
		return err_nomem(err);
	code = check_header(obj, err);
	if (!code)
		code = read_sections(obj, err);
	if (!code)
		code = read_symbols(obj, err);
	if (!code)
		code = object_read_relocs(obj, err);
	if (!code)
		code = read_types(obj, err);
	if (code)
		return code;
	*ret = take_pointer(obj);
	return 0;
}

void obj_close(struct obj *obj)
{
	if (!obj)
		return;
	for (uint32_t i = 0; obj->sections && i < obj->nsections; i++)
		free(obj->sections[i].relocs);
	types_close(obj->types);
	free(obj->lines);
	free(obj->func_infos);
	free(obj->core_relocs);
	free(obj->functions);
	free(obj->sections);
	free(obj->data);
	free(obj->name);
	free(obj);
}

const char *obj_name(const struct obj *obj)
{
	return obj->name;
}

const struct types *obj_types(const struct obj *obj)
{
	return obj->types;
}

uint32_t obj_section_count(const struct obj *obj)
{
	return obj->nsections;
}

const Elf64_Shdr *obj_section(const struct obj *obj, uint32_t index)
{
	return index < obj->nsections ? &obj->headers[index] : NULL;
}

const char *obj_section_name(const struct obj *obj, uint32_t index)
{
	return index < obj->nsections ? obj->sections[index].name : "";
}

const void *obj_section_data(const struct obj *obj, uint32_t index, size_t *size)
{
	const Elf64_Shdr *header = obj_section(obj, index);

	if (!header || header->sh_type == SHT_NOBITS || header->sh_type == SHT_NULL)
		return NULL;
	*size = header->sh_size;
	return obj->data + header->sh_offset;
}

uint32_t obj_find_section(const struct obj *obj, const char *name)
{
	for (uint32_t i = 1; i < obj->nsections; i++)
		if (!strcmp(obj->sections[i].name, name))
			return i;
	return 0;
}
