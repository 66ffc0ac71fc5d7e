// SPDX-License-Identifier: BSD-2-Clause
#include "elf_program.h"

#include <elf.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "program.h"

#ifndef EM_BPF
#define EM_BPF 247
#endif

enum { RELOC_LDDW = 1, RELOC_CALL = 10 };

struct elf {
	const char *bytes;
	size_t size;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	int64_t *places; /* of each section: instruction in code, or byte in data; -1: not taken */
	struct elf_program *program;
	char *why;
	size_t why_size;
};

#define refuse(elf, ...) (snprintf((elf)->why, (elf)->why_size, __VA_ARGS__), -1)

/* Copies, since nothing in the file need be aligned. */
static int take(const struct elf *elf, uint64_t offset, void *to, uint64_t size)
{
	if (offset > elf->size || size > elf->size - offset)
		return refuse(elf, "the object is cut short");
	memcpy(to, elf->bytes + offset, size);
	return 0;
}

static bool is_code(const Elf64_Shdr *section)
{
	return section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_EXECINSTR) &&
	       section->sh_size;
}

static bool is_data(const Elf64_Shdr *section)
{
	return (section->sh_flags & SHF_ALLOC) && !(section->sh_flags & SHF_EXECINSTR) &&
	       section->sh_size &&
	       (section->sh_type == SHT_PROGBITS || section->sh_type == SHT_NOBITS);
}

static const char *text_at(const struct elf *elf, uint32_t section, uint64_t offset)
{
	const Elf64_Shdr *strings = section < elf->header.e_shnum ? &elf->sections[section] : NULL;
	const char *text;

	if (!strings || strings->sh_offset > elf->size ||
	    strings->sh_size > elf->size - strings->sh_offset || offset >= strings->sh_size)
		return "";
	text = elf->bytes + strings->sh_offset + offset;
	return memchr(text, 0, strings->sh_size - offset) ? text : "";
}

static const char *section_name(const struct elf *elf, uint32_t section)
{
	return text_at(elf, elf->header.e_shstrndx, elf->sections[section].sh_name);
}

static int read_sections(struct elf *elf)
{
	const Elf64_Ehdr *header = &elf->header;

	if (take(elf, 0, &elf->header, sizeof(elf->header)))
		return -1;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_BPF ||
	    header->e_type != ET_REL || header->e_shentsize != sizeof(Elf64_Shdr))
		return refuse(elf, "is no little endian BPF object");
	elf->sections = calloc(header->e_shnum + 1, sizeof(*elf->sections));
	elf->places = calloc(header->e_shnum + 1, sizeof(*elf->places));
	if (!elf->sections || !elf->places)
		return refuse(elf, "out of memory");
	return take(elf, header->e_shoff, elf->sections,
		    (uint64_t)header->e_shnum * sizeof(*elf->sections));
}

/* ---- symbols ----------------------------------------------------------------------------------- */

static int symbol_at(const struct elf *elf, uint32_t table, uint64_t index, Elf64_Sym *ret)
{
	const Elf64_Shdr *symbols = table < elf->header.e_shnum ? &elf->sections[table] : NULL;

	if (!symbols || symbols->sh_type != SHT_SYMTAB || index >= symbols->sh_size / sizeof(*ret))
		return refuse(elf, "a relocation without a symbol");
	return take(elf, symbols->sh_offset + index * sizeof(*ret), ret, sizeof(*ret));
}

/* `main`, else the first function outside of .text, else the first. */
static int find_entry(const struct elf *elf, Elf64_Sym *ret)
{
	int best = 0;

	for (uint32_t i = 0; i < elf->header.e_shnum; i++) {
		uint64_t count = elf->sections[i].sh_size / sizeof(Elf64_Sym);

		for (uint64_t k = 1; elf->sections[i].sh_type == SHT_SYMTAB && k < count; k++) {
			Elf64_Sym symbol;
			int rank;

			if (symbol_at(elf, i, k, &symbol))
				return -1;
			if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
			    symbol.st_shndx >= elf->header.e_shnum ||
			    !is_code(&elf->sections[symbol.st_shndx]))
				continue;
			rank = 1 + !!strcmp(section_name(elf, symbol.st_shndx), ".text");
			if (!strcmp(text_at(elf, elf->sections[i].sh_link, symbol.st_name), "main"))
				rank = 3;
			if (rank <= best)
				continue;
			best = rank;
			*ret = symbol;
		}
	}
	return best ? 0 : refuse(elf, "the object has no function");
}

/* ---- code and data ----------------------------------------------------------------------------- */

static int add_code(struct elf *elf, uint32_t section)
{
	const Elf64_Shdr *from = &elf->sections[section];
	struct buf *code = &elf->program->code;

	if (from->sh_size % sizeof(struct bpf_insn))
		return refuse(elf, "section %s: no whole number of instructions",
			      section_name(elf, section));
	elf->places[section] = code->size / sizeof(struct bpf_insn);
	if (from->sh_offset > elf->size || from->sh_size > elf->size - from->sh_offset)
		return refuse(elf, "the object is cut short");
	return buf_append(code, elf->bytes + from->sh_offset, from->sh_size)
		       ? refuse(elf, "out of memory")
		       : 0;
}

static int add_data(struct elf *elf, uint32_t section)
{
	const Elf64_Shdr *from = &elf->sections[section];
	struct buf *data = &elf->program->data;
	size_t start = (data->size + 15) & ~(size_t)15;

	if (from->sh_size > 1 << 24 || buf_reserve(data, from->sh_size + 16))
		return refuse(elf, "section %s: too much data", section_name(elf, section));
	memset(data->data + data->size, 0, start + from->sh_size - data->size);
	data->size = start + from->sh_size;
	elf->places[section] = start;
	return from->sh_type == SHT_NOBITS
		       ? 0
		       : take(elf, from->sh_offset, data->data + start, from->sh_size);
}

/* The entry's section first, behind a call when the entry does not lie at its start. */
static int lay_out(struct elf *elf)
{
	Elf64_Sym entry;
	struct bpf_insn stub[2] = { { .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL },
				    { .code = BPF_JMP | BPF_EXIT } };
	int rc = find_entry(elf, &entry);

	memset(elf->places, 0xff, elf->header.e_shnum * sizeof(*elf->places));
	if (rc)
		return rc;
	stub[0].imm = 1 + (int32_t)(entry.st_value / sizeof(stub[0]));
	if (entry.st_value && buf_append(&elf->program->code, stub, sizeof(stub)))
		return refuse(elf, "out of memory");
	rc = add_code(elf, entry.st_shndx);
	for (uint32_t i = 1; i < elf->header.e_shnum && !rc; i++) {
		if (is_code(&elf->sections[i]) && i != entry.st_shndx)
			rc = add_code(elf, i);
		else if (is_data(&elf->sections[i]))
			rc = add_data(elf, i);
	}
	return rc;
}

/* ---- relocations ------------------------------------------------------------------------------- */

static int relocate_one(struct elf *elf, uint32_t table, const Elf64_Rel *rel, uint64_t at)
{
	struct bpf_insn *insn = (struct bpf_insn *)elf->program->code.data + at;
	uint32_t type = ELF64_R_TYPE(rel->r_info);
	const char *name;
	uint64_t value;
	Elf64_Sym symbol;
	int64_t place;

	if (symbol_at(elf, table, ELF64_R_SYM(rel->r_info), &symbol))
		return -1;
	name = text_at(elf, elf->sections[table].sh_link, symbol.st_name);
	if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= elf->header.e_shnum)
		return refuse(elf, "`%s` is not in the object", name);
	place = elf->places[symbol.st_shndx];
	if (type == RELOC_CALL && is_code(&elf->sections[symbol.st_shndx])) {
		insn->src_reg = BPF_PSEUDO_CALL;
		insn->imm = (int32_t)(place + (int64_t)(symbol.st_value / 8) + insn->imm + 1 -
				      (int64_t)(at + 1));
		return 0;
	}
	if (type != RELOC_LDDW || !is_data(&elf->sections[symbol.st_shndx]) ||
	    !strcmp(section_name(elf, symbol.st_shndx), ".maps") ||
	    !strcmp(section_name(elf, symbol.st_shndx), "maps"))
		return refuse(elf, "`%s`: maps and addresses of functions are not for here", name);
	value = (uintptr_t)elf->program->data.data + place + symbol.st_value + insn->imm;
	insn[0].src_reg = 0;
	insn[0].imm = (int32_t)value;
	insn[1].imm = (int32_t)(value >> 32);
	return 0;
}

static int relocate(struct elf *elf, const Elf64_Shdr *relocs)
{
	uint32_t target = relocs->sh_info;
	const Elf64_Shdr *section;

	if (target >= elf->header.e_shnum || !is_code(&elf->sections[target]))
		return 0;
	section = &elf->sections[target];
	for (uint64_t i = 0; i < relocs->sh_size / sizeof(Elf64_Rel); i++) {
		Elf64_Rel rel;

		if (take(elf, relocs->sh_offset + i * sizeof(rel), &rel, sizeof(rel)))
			return -1;
		if (rel.r_offset % 8 || rel.r_offset >= section->sh_size ||
		    (ELF64_R_TYPE(rel.r_info) == RELOC_LDDW &&
		     rel.r_offset + 16 > section->sh_size))
			return refuse(elf, "a relocation outside of its section");
		if (relocate_one(elf, relocs->sh_link, &rel,
				 elf->places[target] + rel.r_offset / 8))
			return -1;
	}
	return 0;
}

static int load(struct elf *elf)
{
	int rc = read_sections(elf);

	rc = rc ? rc : lay_out(elf);
	for (uint32_t i = 1; i < elf->header.e_shnum && !rc; i++) {
		if (elf->sections[i].sh_type == SHT_REL)
			rc = relocate(elf, &elf->sections[i]);
	}
	return rc;
}

void elf_program_deinit(struct elf_program *program)
{
	buf_deinit(&program->code);
	buf_deinit(&program->data);
}

int elf_program_load(const struct buf *bytes, struct elf_program *ret, char *why, size_t why_size)
{
	CLEANUP(buf_deinit) struct buf decoded = { 0 };
	struct elf elf = { .program = ret, .why = why, .why_size = why_size };
	int rc;

	if (bytes->size < SELFMAG || memcmp(bytes->data, ELFMAG, SELFMAG)) {
		if (program_from_hex(bytes->data ?: "", &decoded))
			return refuse(&elf, "is neither an object nor one in hex bytes");
		bytes = &decoded;
	}
	elf.bytes = bytes->data ?: "";
	elf.size = bytes->size;
	rc = load(&elf);
	free(elf.sections);
	free(elf.places);
	return rc;
}
