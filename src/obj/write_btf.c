// SPDX-License-Identifier: BSD-2-Clause
/* Types of assembled code: functions, variables, and the line of each instruction. */
#include <linux/btf.h>
#include <string.h>

#include "base/cleanup.h"
#include "obj/object.h"
#include "obj/writer.h"

#define EXT_MAGIC 0xeb9f

/* Types that are always there. */
enum { TYPE_INT = 1, TYPE_CHAR, TYPE_SHORT, TYPE_UNSIGNED, TYPE_LONG, TYPE_MAIN, TYPE_EXTERN };

struct types_writer {
	struct writer *w;
	struct buf types, strings;
	uint32_t count; /* number of the last type */
};

static void types_writer_deinit(struct types_writer *t)
{
	buf_deinit(&t->types);
	buf_deinit(&t->strings);
}

static uint32_t add_type(struct types_writer *t, const char *name, uint32_t kind, uint32_t vlen,
			 uint32_t size_or_type)
{
	struct btf_type type = { .name_off = *name ? writer_put_text(t->w, &t->strings, name) : 0,
				 .info = kind << 24 | vlen,
				 .size = size_or_type };

	writer_put(t->w, &t->types, &type, sizeof(type));
	return ++t->count;
}

static void add_word(struct types_writer *t, uint32_t word)
{
	writer_put(t->w, &t->types, &word, sizeof(word));
}

static void add_integer(struct types_writer *t, const char *name, uint32_t size, uint32_t encoding)
{
	add_type(t, name, BTF_KIND_INT, 0, size);
	add_word(t, encoding << 24 | size * 8);
}

static void add_basic_types(struct types_writer *t)
{
	add_integer(t, "int", 4, BTF_INT_SIGNED);
	add_integer(t, "char", 1, 0);
	add_integer(t, "unsigned short", 2, 0);
	add_integer(t, "unsigned int", 4, 0);
	add_integer(t, "unsigned long long", 8, 0);
	add_type(t, "", BTF_KIND_FUNC_PROTO, 0, TYPE_INT);
	add_type(t, "", BTF_KIND_FUNC_PROTO, 5, TYPE_LONG);
	for (char name[] = "a1"; name[1] <= '5'; name[1]++) {
		add_word(t, writer_put_text(t->w, &t->strings, name));
		add_word(t, TYPE_LONG);
	}
}

/* The type of each function: consecutive numbers, of which the first is returned. */
static uint32_t add_functions(struct types_writer *t)
{
	const struct isa_program *program = t->w->program;
	uint32_t first = t->count + 1;

	for (size_t i = 0; i < program->nfunctions; i++)
		add_type(t, program->functions[i].name, BTF_KIND_FUNC,
			 strcmp(program->functions[i].section, ".text") ? BTF_FUNC_GLOBAL
									: BTF_FUNC_STATIC,
			 TYPE_MAIN);
	for (size_t i = 0; i < program->nsymbols; i++) {
		if (writer_is_function(t->w, i))
			add_type(t, program->symbols[i].name, BTF_KIND_FUNC, BTF_FUNC_EXTERN,
				 TYPE_EXTERN);
	}
	return first;
}

static uint32_t type_of_variable(struct types_writer *t, const struct isa_symbol *symbol)
{
	uint32_t id;

	if (!symbol->data && symbol->size <= 8 && !(symbol->size & (symbol->size - 1)))
		return symbol->size == 8   ? TYPE_LONG
		       : symbol->size == 4 ? TYPE_UNSIGNED
		       : symbol->size == 2 ? TYPE_SHORT
					   : TYPE_CHAR;
	id = add_type(t, "", BTF_KIND_ARRAY, 0, 0);
	add_word(t, TYPE_CHAR);
	add_word(t, TYPE_UNSIGNED);
	add_word(t, symbol->size);
	return id;
}

static void add_variables(struct types_writer *t, uint32_t section, const char *name)
{
	CLEANUP(buf_deinit) struct buf infos = { 0 };
	const struct writer *w = t->w;
	const struct isa_program *program = w->program;
	uint32_t count = 0;

	for (size_t i = 0; section && i < program->nsymbols; i++) {
		struct btf_var_secinfo info = { .offset = w->symbols[i].offset,
						.size = program->symbols[i].size };

		if (w->symbols[i].section != section)
			continue;
		info.type = type_of_variable(t, &program->symbols[i]);
		info.type = add_type(t, program->symbols[i].name, BTF_KIND_VAR, 0, info.type);
		add_word(t, BTF_VAR_GLOBAL_ALLOCATED);
		writer_put(t->w, &infos, &info, sizeof(info));
		count++;
	}
	if (!count || count > BTF_MAX_VLEN)
		return;
	add_type(t, name, BTF_KIND_DATASEC, count,
		 w->sections[section].size ?: w->sections[section].data.size);
	writer_put(t->w, &t->types, infos.data, infos.size);
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* The text of line @number, blanks stripped; @at and @line remember where the last one was. */
static uint32_t put_line(struct types_writer *t, uint32_t number, const char **at, uint32_t *line)
{
	const char *end = t->w->text + t->w->text_size, *stop;
	char text[256];
	size_t size;

	for (; *line < number && *at < end; (*line)++) {
		stop = memchr(*at, '\n', end - *at);
		*at = stop ? stop + 1 : end;
	}
	stop = memchr(*at, '\n', end - *at) ?: end;
	size = stop - *at < (long)sizeof(text) ? stop - *at : (long)sizeof(text) - 1;
	memcpy(text, *at, size);
	while (size && (text[size - 1] == ' ' || text[size - 1] == '\r'))
		size--;
	text[size] = '\0';
	return writer_put_text(t->w, &t->strings, text + strspn(text, " \t"));
}

static void put_section(struct types_writer *t, struct buf *part, const char *name, uint32_t count)
{
	uint32_t head[2] = { writer_put_text(t->w, &t->strings, name), count };

	writer_put(t->w, part, head, sizeof(head));
}

/* Records of one code section; its functions lie in it in program order. */
static void describe_section(struct types_writer *t, uint32_t section, uint32_t first_type,
			     uint32_t file, struct buf *functions, struct buf *lines)
{
	const struct isa_program *program = t->w->program;
	const char *at = t->w->text;
	uint32_t nfunctions = 0, nlines = 0, line = 1;
	size_t head_f = functions->size, head_l = lines->size;

	put_section(t, functions, t->w->sections[section].name, 0);
	put_section(t, lines, t->w->sections[section].name, 0);
	for (size_t i = 0; i < program->nfunctions; i++) {
		const struct isa_function *function = &program->functions[i];
		uint32_t offset = t->w->functions[i].offset;

		if (t->w->functions[i].section != section)
			continue;
		writer_put(t->w, functions, &(uint32_t[2]){ offset, first_type + i }, 8);
		nfunctions++;
		for (uint32_t k = 0; k < function->count && !t->w->failed; k++) {
			uint32_t number = program->lines[function->first + k];

			if (k && number == program->lines[function->first + k - 1])
				continue;
			writer_put(t->w, lines,
				   &(uint32_t[4]){ offset + k * 8, file,
						   put_line(t, number, &at, &line),
						   number << 10 | 1 },
				   16);
			nlines++;
		}
	}
	if (t->w->failed)
		return;
	memcpy(functions->data + head_f + 4, &nfunctions, 4);
	memcpy(lines->data + head_l + 4, &nlines, 4);
}

static void put_ext(struct types_writer *t, uint32_t first_type, struct buf *ext)
{
	CLEANUP(buf_deinit) struct buf functions = { 0 }, lines = { 0 };
	struct {
		uint16_t magic;
		uint8_t version, flags;
		uint32_t size, functions, functions_size, lines, lines_size;
	} header = { .magic = EXT_MAGIC, .version = 1, .size = sizeof(header) };
	uint32_t file = writer_put_text(t->w, &t->strings, t->w->file);

	writer_put(t->w, &functions, &(uint32_t){ 8 }, 4); /* bytes of a record */
	writer_put(t->w, &lines, &(uint32_t){ 16 }, 4);
	for (size_t i = 1; i < t->w->nsections && !t->w->failed; i++) {
		if (t->w->sections[i].flags & SHF_EXECINSTR)
			describe_section(t, i, first_type, file, &functions, &lines);
	}
	header.functions_size = header.lines = functions.size;
	header.lines_size = lines.size;
	writer_put(t->w, ext, &header, sizeof(header));
	writer_put(t->w, ext, functions.data, functions.size);
	writer_put(t->w, ext, lines.data, lines.size);
}

void writer_add_types(struct writer *w, struct buf *btf, struct buf *ext)
{
	CLEANUP(types_writer_deinit) struct types_writer t = { .w = w };
	struct btf_header header = { .magic = BTF_MAGIC,
				     .version = BTF_VERSION,
				     .hdr_len = sizeof(header) };
	uint32_t first_function;

	writer_put_text(w, &t.strings, "");
	add_basic_types(&t);
	first_function = add_functions(&t);
	add_variables(&t, w->rodata, ".rodata");
	add_variables(&t, w->bss, ".bss");
	put_ext(&t, first_function, ext);
	header.type_len = header.str_off = t.types.size;
	header.str_len = t.strings.size;
	writer_put(w, btf, &header, sizeof(header));
	writer_put(w, btf, t.types.data, t.types.size);
	writer_put(w, btf, t.strings.data, t.strings.size);
}
