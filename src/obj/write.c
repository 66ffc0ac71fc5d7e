// SPDX-License-Identifier: BSD-2-Clause
#include "obj/write.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "obj/object.h"
#include "obj/writer.h"

#ifndef EM_BPF
#define EM_BPF 247
#endif

uint32_t writer_put(struct writer *w, struct buf *buf, const void *data, size_t size)
{
	uint32_t before = buf->size;

	if (buf_append(buf, data, size))
		w->failed = true;
	return before;
}

uint32_t writer_put_text(struct writer *w, struct buf *buf, const char *text)
{
	return writer_put(w, buf, text, strlen(text) + 1);
}

static uint32_t add_section(struct writer *w, const char *name, uint32_t type, uint64_t flags)
{
	struct writer_section *section =
		array_grow(&w->sections, &w->nsections, &w->sections_capacity, sizeof(*section));

	if (!section) {
		w->failed = true;
		return 0;
	}
	section->name = name;
	section->type = type;
	section->flags = flags;
	section->align = 8;
	return w->nsections - 1;
}

static uint32_t code_section(struct writer *w, const char *name)
{
	for (size_t i = 1; i < w->nsections; i++) {
		if (!strcmp(w->sections[i].name, name))
			return i;
	}
	return add_section(w, name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR);
}

static void place_functions(struct writer *w)
{
	const struct isa_program *program = w->program;

	for (size_t i = 0; i < program->nfunctions && !w->failed; i++) {
		const struct isa_function *function = &program->functions[i];
		uint32_t section = code_section(w, function->section);

		if (w->failed)
			return;
		w->functions[i].section = section;
		w->functions[i].offset =
			writer_put(w, &w->sections[section].data, program->code + function->first,
				   function->count * sizeof(struct bpf_insn));
	}
}

static void place_data(struct writer *w)
{
	static const char zeroes[8];

	for (size_t i = 0; i < w->program->nsymbols && !w->failed; i++) {
		const struct isa_symbol *symbol = &w->program->symbols[i];
		uint32_t *section = symbol->data ? &w->rodata : &w->bss;

		if (!symbol->size)
			continue;
		if (!*section)
			*section = symbol->data ? add_section(w, ".rodata", SHT_PROGBITS, SHF_ALLOC)
						: add_section(w, ".bss", SHT_NOBITS,
							      SHF_ALLOC | SHF_WRITE);
		if (w->failed)
			return;
		w->symbols[i].section = *section;
		if (symbol->data) {
			w->symbols[i].offset = writer_put(w, &w->sections[*section].data,
							  symbol->data, symbol->size);
			continue;
		}
		w->symbols[i].offset = w->sections[*section].size;
		w->sections[*section].size += (symbol->size + sizeof(zeroes) - 1) & -sizeof(zeroes);
	}
	if (w->program->license) {
		uint32_t section = add_section(w, "license", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE);

		if (!w->failed)
			writer_put_text(w, &w->sections[section].data, w->program->license);
	}
}

/* ---- symbols ----------------------------------------------------------------------------------- */

struct table {
	struct buf symbols, names;
	uint32_t count;
};

static void table_deinit(struct table *table)
{
	buf_deinit(&table->symbols);
	buf_deinit(&table->names);
}

static uint32_t add_symbol(struct writer *w, struct table *table, const char *name, uint32_t info,
			   uint32_t section, uint64_t value, uint64_t size)
{
	Elf64_Sym symbol = { .st_name = writer_put_text(w, &table->names, name),
			     .st_info = info,
			     .st_shndx = section,
			     .st_value = value,
			     .st_size = size };

	writer_put(w, &table->symbols, &symbol, sizeof(symbol));
	return table->count++;
}

bool writer_is_function(const struct writer *w, uint32_t symbol)
{
	for (size_t i = 0; i < w->program->nreferences; i++) {
		const struct isa_reference *reference = &w->program->references[i];

		if (reference->symbol == symbol && insn_is_call(&w->program->code[reference->insn]))
			return true;
	}
	return false;
}

/* Functions of .text are static, so that the kernel's verifier follows calls of them; ELF wants
 * local symbols first. */
static void add_functions(struct writer *w, struct table *table, bool local)
{
	for (size_t i = 0; i < w->program->nfunctions; i++) {
		const struct isa_function *function = &w->program->functions[i];

		if (!strcmp(function->section, ".text") != local)
			continue;
		w->functions[i].symbol = add_symbol(
			w, table, function->name,
			ELF64_ST_INFO(local ? STB_LOCAL : STB_GLOBAL, STT_FUNC),
			w->functions[i].section, w->functions[i].offset, function->count * 8ull);
	}
}

static void write_symbols(struct writer *w)
{
	CLEANUP(table_deinit) struct table table = { 0 };
	uint32_t symtab, strtab, locals;

	add_symbol(w, &table, "", 0, 0, 0, 0);
	add_functions(w, &table, true);
	locals = table.count;
	add_functions(w, &table, false);
	for (size_t i = 0; i < w->program->nsymbols; i++) {
		const struct isa_symbol *symbol = &w->program->symbols[i];

		w->symbols[i].symbol = add_symbol(
			w, &table, symbol->name,
			ELF64_ST_INFO(STB_GLOBAL, symbol->size ? STT_OBJECT : STT_NOTYPE),
			w->symbols[i].section, w->symbols[i].offset, symbol->size);
	}
	symtab = add_section(w, ".symtab", SHT_SYMTAB, 0);
	strtab = add_section(w, ".strtab", SHT_STRTAB, 0);
	if (w->failed)
		return;
	w->sections[symtab].link = strtab;
	w->sections[symtab].info = locals;
	w->sections[symtab].entsize = sizeof(Elf64_Sym);
	w->sections[symtab].data = table.symbols;
	w->sections[strtab].data = table.names;
	table = (struct table){ 0 };
}

/* ---- relocations ------------------------------------------------------------------------------- */

static uint32_t function_around(const struct isa_program *program, uint32_t slot)
{
	uint32_t low = 0, high = program->nfunctions;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (program->functions[middle].first <= slot)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The field that is relocated holds the addend. */
static void add_reloc(struct writer *w, struct buf *relocs, uint32_t slot, uint32_t type,
		      uint32_t symbol, int32_t addend)
{
	uint32_t function = function_around(w->program, slot);
	uint32_t section = w->functions[function].section;
	uint32_t offset =
		w->functions[function].offset + (slot - w->program->functions[function].first) * 8;
	Elf64_Rel rel = { .r_offset = offset, .r_info = ELF64_R_INFO((uint64_t)symbol, type) };
	struct bpf_insn *insn = (struct bpf_insn *)(w->sections[section].data.data + offset);

	insn->src_reg = type == RELOC_64_32 ? BPF_PSEUDO_CALL : 0;
	insn->imm = addend;
	writer_put(w, &relocs[section], &rel, sizeof(rel));
}

static int refuse(const struct writer *w, uint32_t slot, const char *why)
{
	return err_set(w->err, -EINVAL, "%u:1: %s", w->program->lines[slot], why);
}

/* A call or an address of a function of the program itself. */
static int relocate_local(struct writer *w, struct buf *relocs, uint32_t slot)
{
	const struct isa_program *program = w->program;
	const struct bpf_insn *insn = &program->code[slot];
	int64_t target = (int64_t)slot + 1 + insn->imm;
	uint32_t function;

	if (insn_is_lddw(insn)) {
		if ((uint32_t)insn->imm >= program->nfunctions)
			return refuse(w, slot, "code[]: there is no such function in this text");
		add_reloc(w, relocs, slot, RELOC_64_64, w->functions[insn->imm].symbol, 0);
		return 0;
	}
	if (target < 0 || target >= (int64_t)program->ncode)
		return refuse(w, slot, "it calls something outside of the text");
	function = function_around(program, target);
	if (program->functions[function].first != target)
		return refuse(w, slot,
			      "it calls something inside a function: start one there by "
			      ".function");
	add_reloc(w, relocs, slot, RELOC_64_32, w->functions[function].symbol, -1);
	return 0;
}

static int relocate(struct writer *w, struct buf *relocs)
{
	const struct isa_program *program = w->program;
	int rc = 0;

	for (uint32_t i = 0; i < program->ncode && !rc; i++) {
		const struct bpf_insn *insn = &program->code[i];

		if ((insn_is_call(insn) && insn->src_reg == BPF_PSEUDO_CALL) ||
		    (insn_is_lddw(insn) && insn->src_reg == BPF_PSEUDO_FUNC))
			rc = relocate_local(w, relocs, i);
		i += insn_is_lddw(insn);
	}
	for (size_t i = 0; i < program->nreferences && !rc; i++) {
		const struct isa_reference *reference = &program->references[i];
		bool call = insn_is_call(&program->code[reference->insn]);

		if (reference->addend != (int32_t)reference->addend)
			return refuse(w, reference->insn, "what is added does not fit 32 bits");
		add_reloc(w, relocs, reference->insn, call ? RELOC_64_32 : RELOC_64_64,
			  w->symbols[reference->symbol].symbol,
			  call ? -1 : (int32_t)reference->addend);
	}
	return rc;
}

static int by_offset(const void *a, const void *b)
{
	const Elf64_Rel *x = a, *y = b;

	return (x->r_offset > y->r_offset) - (x->r_offset < y->r_offset);
}

static void write_relocs(struct writer *w, struct buf *relocs, size_t ncode_sections,
			 struct buf *names, uint32_t symtab)
{
	for (size_t i = 1; i < ncode_sections; i++) {
		uint32_t section;

		if (!relocs[i].size)
			continue;
		qsort(relocs[i].data, relocs[i].size / sizeof(Elf64_Rel), sizeof(Elf64_Rel),
		      by_offset);
		if (buf_printf(&names[i], ".rel%s", w->sections[i].name)) {
			w->failed = true;
			return;
		}
		section = add_section(w, names[i].data, SHT_REL, 0);
		if (w->failed)
			return;
		w->sections[section].link = symtab;
		w->sections[section].info = i;
		w->sections[section].entsize = sizeof(Elf64_Rel);
		w->sections[section].data = relocs[i];
		relocs[i] = (struct buf){ 0 };
	}
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void write_types(struct writer *w)
{
	uint32_t btf = add_section(w, ".BTF", SHT_PROGBITS, 0);
	uint32_t ext = add_section(w, ".BTF.ext", SHT_PROGBITS, 0);

	if (!w->failed)
		writer_add_types(w, &w->sections[btf].data, &w->sections[ext].data);
}

static void write_file(struct writer *w, struct buf *ret)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_REL,
		.e_machine = EM_BPF,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	uint32_t names = add_section(w, ".shstrtab", SHT_STRTAB, 0), start = ret->size;

	for (size_t i = 0; i < w->nsections && !w->failed; i++)
		w->sections[i].name_offset =
			writer_put_text(w, &w->sections[names].data, w->sections[i].name);
	writer_put(w, ret, &header, sizeof(header));
	for (size_t i = 1; i < w->nsections && !w->failed; i++) {
		static const char padding[8];
		struct writer_section *section = &w->sections[i];

		writer_put(w, ret, padding, -(ret->size - start) & 7);
		section->offset = ret->size - start;
		writer_put(w, ret, section->data.data ?: "", section->data.size);
	}
	writer_put(w, ret, "\0\0\0\0\0\0\0", -(ret->size - start) & 7);
	header.e_shoff = ret->size - start;
	header.e_shnum = w->nsections;
	header.e_shstrndx = names;
	for (size_t i = 0; i < w->nsections && !w->failed; i++) {
		const struct writer_section *section = &w->sections[i];
		Elf64_Shdr row = { .sh_name = section->name_offset,
				   .sh_type = section->type,
				   .sh_flags = section->flags,
				   .sh_offset = section->offset,
				   .sh_size = section->size ?: section->data.size,
				   .sh_link = section->link,
				   .sh_info = section->info,
				   .sh_addralign = section->align,
				   .sh_entsize = section->entsize };

		writer_put(w, ret, &row, sizeof(row));
	}
	if (!w->failed)
		memcpy(ret->data + start, &header, sizeof(header));
}

static void writer_deinit(struct writer *w)
{
	for (size_t i = 0; i < w->nsections; i++)
		buf_deinit(&w->sections[i].data);
	free(w->sections);
	free(w->functions);
	free(w->symbols);
}

static void free_bufs(struct buf *bufs, size_t count)
{
	for (size_t i = 0; bufs && i < count; i++)
		buf_deinit(&bufs[i]);
	free(bufs);
}

static int write_all(struct writer *w, struct buf *ret)
{
	size_t ncode_sections = w->nsections;
	struct buf *relocs = calloc(2 * ncode_sections, sizeof(*relocs));
	int rc = 0;

	w->failed |= !relocs;
	if (!w->failed)
		place_data(w);
	if (!w->failed)
		write_symbols(w);
	if (!w->failed)
		rc = relocate(w, relocs);
	if (!w->failed && !rc)
		write_relocs(w, relocs, ncode_sections, relocs + ncode_sections, w->nsections - 2);
	if (!w->failed && !rc)
		write_types(w);
	if (!w->failed && !rc)
		write_file(w, ret);
	free_bufs(relocs, 2 * ncode_sections);
	return rc;
}

int obj_write(const struct isa_program *program, const char *file, const char *text, size_t size,
	      struct buf *ret, struct err *err)
{
	CLEANUP(writer_deinit)
	struct writer w = {
		.program = program, .file = file, .text = text, .text_size = size, .err = err
	};
	int rc;

	w.functions = calloc(program->nfunctions + 1, sizeof(*w.functions));
	w.symbols = calloc(program->nsymbols + 1, sizeof(*w.symbols));
	if (!w.functions || !w.symbols)
		return err_nomem(err);
	add_section(&w, "", SHT_NULL, 0);
	place_functions(&w);
	rc = write_all(&w, ret);
	return w.failed ? err_nomem(err) : rc;
}
