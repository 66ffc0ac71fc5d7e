// SPDX-License-Identifier: BSD-2-Clause
/* Sound objects open; each unsound one is refused for the right reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "obj/obj.h"

#include "compile.h"

static const char source[] = "extern int puts(const char *); int counted; static int hidden[3];\n"
			     "static NOINLINE int help(int v) { return puts(\"a\") + v; }\n"
			     "SEC(\"raw_tp/sys_enter\") int p(void *c) { counted++; return 0; }\n"
			     "SEC(\"user/exit\") int f(void *c)\n"
			     "{\n"
			     "	hidden[counted & 1]++;\n"
			     "	return help(3);\n"
			     "}\n";

/* The object that the corruptions start from. */
static struct buf sound;

static int make_sound(void **state)
{
	for (size_t i = 0; i < ncompilers; i++)
		if (!strcmp(compilers[i].name, "clang-14 v3"))
			compile(&compilers[i], source, &sound);
	return sound.size ? 0 : -1;
}

static int free_sound(void **state)
{
	buf_deinit(&sound);
	return 0;
}

static int open_bytes(const void *data, size_t size, struct err *err)
{
	struct obj *obj = NULL;
	int code;

	memset(err, 0, sizeof(*err));
	code = obj_open(data, size, "x.o", &obj, err);
	if (code)
		assert_null(obj);
	obj_close(obj);
	return code;
}

static void objects_of_every_compiler_open(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(buf_deinit) struct buf buf = { 0 };
		CLEANUP(obj_close_cleanup) struct obj *obj = NULL;
		struct err err = { 0 };
		uint32_t section;
		size_t size = 0;

		compile(&compilers[i], source, &buf);
		if (obj_open(buf.data, buf.size, "x.o", &obj, &err))
			fail_msg("%s: %s", compilers[i].name, err.text);
		assert_string_equal(obj_name(obj), "x.o");
		assert_non_null(obj_types(obj));
		section = obj_find_section(obj, "user/exit");
		assert_int_not_equal(section, 0);
		assert_string_equal(obj_section_name(obj, section), "user/exit");
		assert_non_null(obj_section_data(obj, section, &size));
		assert_int_equal(size, obj_section(obj, section)->sh_size);
		assert_null(obj_section_data(obj, obj_find_section(obj, ".bss"), &size));
		assert_int_equal(obj_find_section(obj, "no such"), 0);
		assert_null(obj_section(obj, obj_section_count(obj)));
		assert_string_equal(obj_section_name(obj, UINT32_MAX), "");
	}
}

static void every_cut_is_refused(void **state)
{
	struct err err;

	for (size_t size = 0; size < sound.size; size++) {
		if (open_bytes(sound.data, size, &err) != -EINVAL || strncmp(err.text, "x.o: ", 5))
			fail_msg("cut at %zu: %s", size, err.text);
	}
}

static Elf64_Shdr *header_of(char *data, const char *name)
{
	Elf64_Ehdr *header = (void *)data;
	Elf64_Shdr *sections = (void *)(data + header->e_shoff);

	for (uint32_t i = 1; i < header->e_shnum; i++)
		if (!strcmp(data + sections[header->e_shstrndx].sh_offset + sections[i].sh_name,
			    name))
			return &sections[i];
	fail_msg("no section %s", name);
	return NULL;
}

static Elf64_Sym *symbol_of(char *data, const char *name)
{
	Elf64_Shdr *table = header_of(data, ".symtab");
	Elf64_Sym *symbols = (void *)(data + table->sh_offset);

	for (uint32_t i = 1; i < table->sh_size / sizeof(*symbols); i++)
		if (!strcmp(data + header_of(data, ".strtab")->sh_offset + symbols[i].st_name,
			    name))
			return &symbols[i];
	fail_msg("no symbol %s", name);
	return NULL;
}

static Elf64_Rel *reloc_of(char *data, const char *section)
{
	return (void *)(data + header_of(data, section)->sh_offset);
}

#define HEADER(data) ((Elf64_Ehdr *)(data))

/* One corruption each. */
/* clang-format off */
static void no_elf(char *d) { d[1] = 'e'; }
static void of_32_bits(char *d) { d[EI_CLASS] = ELFCLASS32; }
static void big_endian(char *d) { d[EI_DATA] = ELFDATA2MSB; }
static void of_x86(char *d) { HEADER(d)->e_machine = EM_X86_64; }
static void of_arm64(char *d) { HEADER(d)->e_machine = EM_AARCH64; }
static void of_unknown(char *d) { HEADER(d)->e_machine = 4711; }
static void executable_file(char *d) { HEADER(d)->e_type = ET_EXEC; }
static void no_sections(char *d) { HEADER(d)->e_shnum = 0; }
static void table_outside(char *d) { HEADER(d)->e_shoff = ~7ULL; }
static void table_crooked(char *d) { HEADER(d)->e_shoff += 4; }
static void names_outside(char *d) { HEADER(d)->e_shstrndx = 500; }
static void names_extended(char *d) { HEADER(d)->e_shstrndx = SHN_XINDEX; }
static void section_outside(char *d) { header_of(d, "license")->sh_offset = 1 << 20; }
static void section_huge(char *d) { header_of(d, ".bss")->sh_size = 1ULL << 40; }
static void section_name(char *d) { header_of(d, "license")->sh_name = 1 << 20; }
static void section_link(char *d) { header_of(d, "license")->sh_link = 500; }
static void section_align(char *d) { header_of(d, "license")->sh_addralign = 3; }
static void code_cut(char *d) { header_of(d, "user/exit")->sh_size -= 4; }
static void sections_overlap(char *d) { header_of(d, "license")->sh_offset = 64; }
static void sections_alike(char *d) { header_of(d, "license")->sh_name = header_of(d, ".bss")->sh_name; }
static void rela(char *d) { header_of(d, ".reluser/exit")->sh_type = SHT_RELA; }
static void second_symtab(char *d) { header_of(d, ".debug_line")->sh_type = SHT_SYMTAB; }
static void no_symtab(char *d) { header_of(d, ".symtab")->sh_type = SHT_PROGBITS; }
static void extended_indices(char *d) { header_of(d, ".debug_line")->sh_type = SHT_SYMTAB_SHNDX; }
static void symbol_size(char *d) { header_of(d, ".symtab")->sh_entsize = 8; }
static void symbol_name(char *d) { symbol_of(d, "f")->st_name = 1 << 20; }
static void symbol_control(char *d) { d[header_of(d, ".strtab")->sh_offset + symbol_of(d, "counted")->st_name] = 033; }
static void symbol_section(char *d) { symbol_of(d, "counted")->st_shndx = 500; }
static void symbol_extended(char *d) { symbol_of(d, "counted")->st_shndx = SHN_XINDEX; }
static void symbol_outside(char *d) { symbol_of(d, "counted")->st_size = 999; }
static void symbol_wraps(char *d) { symbol_of(d, "counted")->st_value = ~3ULL; }
static void symbol_common(char *d) { symbol_of(d, "counted")->st_shndx = SHN_COMMON; }
static void function_crooked(char *d) { symbol_of(d, "help")->st_size -= 4; }
static void function_empty(char *d) { symbol_of(d, "f")->st_size = 0; }
static void function_in_data(char *d) { symbol_of(d, "counted")->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC); }
static void reloc_outside(char *d) { reloc_of(d, ".reluser/exit")->r_offset = 1 << 20; }
static void reloc_crooked(char *d) { reloc_of(d, ".reluser/exit")->r_offset += 4; }
static void reloc_elsewhere(char *d) { reloc_of(d, ".reluser/exit")->r_offset += 16; }
static void reloc_symbol(char *d) { reloc_of(d, ".reluser/exit")->r_info = ELF64_R_INFO(9999, 1); }
static void reloc_type(char *d) { reloc_of(d, ".reluser/exit")->r_info |= 0x40; }
static void reloc_twice(char *d) { reloc_of(d, ".reluser/exit")[1] = reloc_of(d, ".reluser/exit")[0]; }
static void reloc_target(char *d) { header_of(d, ".reluser/exit")->sh_info = 0; }
static void reloc_table(char *d) { header_of(d, ".reluser/exit")->sh_link = 1; }
static void btf_magic(char *d) { d[header_of(d, ".BTF")->sh_offset] = 0; }
static void ext_magic(char *d) { d[header_of(d, ".BTF.ext")->sh_offset] = 0; }
static void ext_length(char *d) { ((uint32_t *)(d + header_of(d, ".BTF.ext")->sh_offset))[3] = 1 << 20; }
static void ext_record(char *d) { ((uint32_t *)(d + header_of(d, ".BTF.ext")->sh_offset))[8] = 4; }

/* clang-format on */

static void corruptions_are_told_apart(void **state)
{
	static const struct {
		void (*corrupt)(char *data);
		const char *why;
	} rows[] = {
		{ no_elf, "not an ELF object" },
		{ of_32_bits, "not a 64-bit object" },
		{ big_endian, "a big-endian object" },
		{ of_x86, "an object for x86-64, not for BPF" },
		{ of_arm64, "an object for arm64, not for BPF" },
		{ of_unknown, "an object for machine 4711" },
		{ executable_file, "not a relocatable object" },
		{ no_sections, "no section table" },
		{ table_outside, "section table outside the file" },
		{ table_crooked, "section table outside the file" },
		{ names_outside, "no table of section names" },
		{ names_extended, "no table of section names" },
		{ section_outside, "section license: outside the file" },
		{ section_huge, "section .bss: larger than 1 GiB" },
		{ section_name, "name outside the table of names" },
		{ section_link, "section license: linked to no section" },
		{ section_align, "section license: bad alignment" },
		{ code_cut, "section user/exit: not made of whole instructions" },
		{ sections_overlap, "overlap" },
		{ sections_alike, "section .bss: there are two" },
		{ rela, "section .reluser/exit: relocations of a kind" },
		{ second_symtab, "a second symbol table" },
		{ no_symtab, "no symbol table" },
		{ extended_indices, "extended section indices" },
		{ symbol_size, "bad symbol table" },
		{ symbol_name, "name outside the table of names" },
		{ symbol_control, "control characters in its name" },
		{ symbol_section, "symbol `counted`: in no section" },
		{ symbol_extended, "symbol `counted`: in no section" },
		{ symbol_outside, "symbol `counted`: outside section .bss" },
		{ symbol_wraps, "symbol `counted`: outside section .bss" },
		{ symbol_common, "variable `counted`: a common symbol" },
		{ function_crooked, "function `help`: not made of whole instructions" },
		{ function_empty, "function `f`: not made of whole instructions" },
		{ function_in_data, "function `counted`: section .bss holds no code" },
		{ reloc_outside, "section user/exit: relocation outside" },
		{ reloc_crooked, "section user/exit: relocation inside an instruction" },
		{ reloc_elsewhere, "does not fit the instruction" },
		{ reloc_symbol, "section user/exit: relocation against no symbol" },
		{ reloc_type, "does not fit the instruction" },
		{ reloc_twice, "section user/exit: two relocations at" },
		{ reloc_target, "bad relocation section" },
		{ reloc_table, "bad relocation section" },
		{ btf_magic, "x.o: BTF: no BTF" },
		{ ext_magic, "section .BTF.ext: bad header" },
		{ ext_length, "section .BTF.ext: func_info: outside" },
		{ ext_record, "section .BTF.ext: func_info: bad record size" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *copy = malloc(sound.size);
		struct err err;
		int code;

		assert_non_null(copy);
		memcpy(copy, sound.data, sound.size);
		rows[i].corrupt(copy);
		code = open_bytes(copy, sound.size, &err);
		free(copy);
		if (code != -EINVAL || strncmp(err.text, "x.o: ", 5) ||
		    !strstr(err.text, rows[i].why))
			fail_msg("row %zu: %d \"%s\", wanted \"%s\"", i, code, err.text,
				 rows[i].why);
	}
}

static void lines_are_found_by_place(void **state)
{
	CLEANUP(obj_close_cleanup) struct obj *obj = NULL;
	struct err err = { 0 };
	struct obj_line line;
	uint32_t section;
	size_t size;

	assert_int_equal(obj_open(sound.data, sound.size, "x.o", &obj, &err), 0);
	section = obj_find_section(obj, "user/exit");
	assert_non_null(obj_section_data(obj, section, &size));
	assert_true(obj_line_of(obj, section, 0, &line));
	assert_string_equal(line.text, "hidden[counted & 1]++;");
	assert_int_equal(line.line, 6);
	assert_int_not_equal(line.column, 0);
	assert_true(obj_line_of(obj, section, size - 8, &line));
	assert_int_equal(line.line, 7);
	assert_string_equal(line.text, "return help(3);");
	assert_false(obj_line_of(obj, section, size + 800, &line));
	assert_false(obj_line_of(obj, obj_find_section(obj, ".bss"), 0, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_of_every_compiler_open),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(corruptions_are_told_apart),
		cmocka_unit_test(lines_are_found_by_place),
	};

	return cmocka_run_group_tests(tests, make_sound, free_sound);
}
