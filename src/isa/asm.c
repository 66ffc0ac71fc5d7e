// SPDX-License-Identifier: BSD-2-Clause
/* Lines, labels, functions and names of assembler text; statements are asm_match.c's. */
#include "isa/asm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "isa/asm_internal.h"

#define MOST_SPACE (1u << 30) /* bytes of one .space */

static int fail(struct assembler *as, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct assembler *as, const char *at, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_set(as->err, -EINVAL, "%u:%zu: %s", as->line, at - as->line_start + 1, text);
}

const char *asm_own(struct assembler *as, const char *at, size_t size)
{
	char **slot = array_grow(&as->program.owned, &as->program.nowned, &as->owned_capacity,
				 sizeof(*slot));

	if (slot)
		*slot = strndup(at, size);
	return slot ? *slot : NULL;
}

static uint32_t function_here(const struct assembler *as)
{
	return as->program.nfunctions - 1;
}

/* ---- functions, symbols ------------------------------------------------------------------------ */

static int end_function(struct assembler *as)
{
	struct isa_program *program = &as->program;
	struct isa_function *last;

	if (!program->nfunctions)
		return 0;
	last = &program->functions[program->nfunctions - 1];
	last->count = program->ncode - last->first;
	if (!last->count) {
		return err_set(as->err, -EINVAL, "%u:1: function `%s` is empty", last->line,
			       last->name);
	}
	return 0;
}

static int begin_function(struct assembler *as, struct asm_name name, const char *section)
{
	struct isa_program *program = &as->program;
	struct isa_function *function;
	int rc = end_function(as);

	if (rc)
		return rc;
	function = array_grow(&program->functions, &program->nfunctions, &as->functions_capacity,
			      sizeof(*function));
	if (!function)
		return err_nomem(as->err);
	function->name = asm_own(as, name.at, name.size);
	function->section = section;
	function->first = program->ncode;
	function->line = as->line;
	return function->name ? 0 : err_nomem(as->err);
}

/* ---- directives -------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at)
{
	while (asm_is_blank(*at))
		at++;
	return at;
}

static int expect_end(struct assembler *as, const char *at)
{
	at = skip_blanks(at);
	return *at ? fail(as, at, "`%c` is too much here: the line should end", *at) : 0;
}

static int read_escape(struct assembler *as, const char **at, char *ret)
{
	static const char letters[] = "ntr0\\\"", values[] = "\n\t\r\0\\\"";
	const char *letter = **at ? strchr(letters, **at) : NULL;

	if (!letter)
		return fail(as, *at - 1, "no such escape: \\n \\t \\r \\0 \\\\ \\\"");
	*ret = values[letter - letters];
	(*at)++;
	return 0;
}

/* A text in quotes; zero bytes may be inside. */
static int read_quoted(struct assembler *as, const char **at, struct buf *ret)
{
	const char *start = skip_blanks(*at), *p = start + 1;
	int rc = 0;

	if (*start != '"')
		return fail(as, start, "expected a text in quotes");
	while (*p && *p != '"' && !rc) {
		char c = *p++;

		if (c == '\\')
			rc = read_escape(as, &p, &c);
		if (!rc && buf_append(ret, &c, 1))
			rc = err_nomem(as->err);
	}
	if (rc)
		return rc;
	if (!*p)
		return fail(as, start, "the text does not end: a quote is missing");
	*at = p + 1;
	return 0;
}

static int read_new_name(struct assembler *as, const char **at, struct asm_name *ret)
{
	const char *start = skip_blanks(*at);

	*ret = asm_read_name(start);
	if (!ret->size)
		return fail(as, start,
			    "expected a name: letters, digits, `_`, `.`, `$`, and no "
			    "register");
	*at = start + ret->size;
	return 0;
}

/* .function NAME ["SECTION"] */
static int directive_function(struct assembler *as, const char *at)
{
	CLEANUP(buf_deinit) struct buf section = { 0 };
	struct asm_name name;
	const char *kept = ".text";
	int rc = read_new_name(as, &at, &name);

	if (rc)
		return rc;
	at = skip_blanks(at);
	if (*at) {
		const char *start = at;

		rc = read_quoted(as, &at, &section);
		rc = rc ? rc : expect_end(as, at);
		if (!rc && (!section.size || strlen(section.data) != section.size))
			rc = fail(as, start, "no name for a section");
		if (rc)
			return rc;
		kept = asm_own(as, section.data, section.size);
		if (!kept)
			return err_nomem(as->err);
	}
	return begin_function(as, name, kept);
}

static int define(struct assembler *as, const char **at, struct isa_symbol **ret)
{
	const char *start = skip_blanks(*at);
	struct asm_name name;
	int rc = read_new_name(as, at, &name);

	if (rc)
		return rc;
	if (asm_find_symbol(as, name))
		return fail(as, start, "`%.*s` is there already", (int)name.size, name.at);
	*ret = asm_add_symbol(as, name);
	return *ret ? 0 : err_nomem(as->err);
}

/* .string NAME "TEXT" */
static int directive_string(struct assembler *as, const char *at)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct isa_symbol *symbol;
	char **slot;
	int rc = define(as, &at, &symbol);

	rc = rc ? rc : read_quoted(as, &at, &text);
	rc = rc ? rc : expect_end(as, at);
	if (rc)
		return rc;
	slot = array_grow(&as->program.owned, &as->program.nowned, &as->owned_capacity,
			  sizeof(*slot));
	if (!slot || buf_append(&text, "", 1))
		return err_nomem(as->err);
	symbol->size = text.size;
	symbol->data = (const uint8_t *)text.data;
	*slot = take_pointer(text.data);
	return 0;
}

/* .space NAME BYTES */
static int directive_space(struct assembler *as, const char *at)
{
	struct isa_symbol *symbol;
	unsigned long long size;
	const char *start;
	char *end;
	int rc = define(as, &at, &symbol);

	if (rc)
		return rc;
	start = skip_blanks(at);
	errno = 0;
	size = strtoull(start, &end, 0);
	if (*start < '0' || *start > '9' || errno || !size || size > MOST_SPACE)
		return fail(as, start, "expected a number of bytes, 1 to %u", MOST_SPACE);
	symbol->size = size;
	return expect_end(as, end);
}

/* .license "GPL" */
static int directive_license(struct assembler *as, const char *at)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	int rc = read_quoted(as, &at, &text);

	rc = rc ? rc : expect_end(as, at);
	if (rc)
		return rc;
	as->program.license = asm_own(as, text.data ?: "", text.size);
	return as->program.license ? 0 : err_nomem(as->err);
}

static const struct {
	const char *name;
	int (*read)(struct assembler *as, const char *at);
} directives[] = {
	{ ".function", directive_function },
	{ ".string", directive_string },
	{ ".space", directive_space },
	{ ".license", directive_license },
};

static int read_directive(struct assembler *as, const char *at)
{
	struct asm_name name = asm_read_name(at);
	struct nearest nearest;
	char wanted[64], near[200];

	snprintf(wanted, sizeof(wanted), "%.*s", (int)name.size, name.at);
	nearest_init(&nearest, wanted);
	for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
		if (!asm_compare_names(asm_name_of(directives[i].name), name))
			return directives[i].read(as, at + name.size);
		nearest_offer(&nearest, directives[i].name);
	}
	nearest_text(&nearest, near, sizeof(near));
	return fail(as, at,
		    "%s: no such directive: there are .function, .string, .space and "
		    ".license%s%s%s",
		    wanted, near[0] ? ": did you mean " : "", near, near[0] ? "?" : "");
}

/* ---- lines ------------------------------------------------------------------------------------- */

static int add_slot(struct assembler *as, const struct bpf_insn *insn)
{
	struct isa_program *program = &as->program;
	uint32_t *line =
		array_grow(&program->lines, &as->nlines, &as->lines_capacity, sizeof(*line));
	struct bpf_insn *slot = line ? array_grow(&program->code, &program->ncode,
						  &as->code_capacity, sizeof(*slot))
				     : NULL;

	if (!slot)
		return err_nomem(as->err);
	*slot = *insn;
	*line = as->line;
	return 0;
}

static int add_fixup(struct assembler *as, const struct asm_match *match)
{
	struct fixup *fixup =
		array_grow(&as->fixups, &as->nfixups, &as->fixups_capacity, sizeof(*fixup));

	if (!fixup)
		return err_nomem(as->err);
	*fixup = (struct fixup){ .name = match->name,
				 .addend = match->addend,
				 .refers = match->refers,
				 .slot = as->program.ncode,
				 .function = function_here(as),
				 .line = as->line,
				 .column = match->name.at - as->line_start + 1 };
	return 0;
}

static int need_function(struct assembler *as)
{
	return as->program.nfunctions ? 0 : begin_function(as, asm_name_of("main"), ".text");
}

static int read_statement(struct assembler *as, const char *at)
{
	struct asm_match match;
	struct err why = { 0 };
	size_t column = 0;
	int rc = need_function(as);

	if (rc)
		return rc;
	if (asm_match(at, &match, &column, &why))
		return fail(as, at + column, "%s", why.text);
	/* What a pattern lets through: writes to r10. `<invalid ...>` is meant as it stands. */
	if (*at != '<' && isa_decode(match.insn, match.slots, &why) < 0)
		return fail(as, at, "%s", why.text);
	if (match.refers)
		rc = add_fixup(as, &match);
	for (size_t i = 0; i < match.slots && !rc; i++)
		rc = add_slot(as, &match.insn[i]);
	return rc;
}

static int add_label(struct assembler *as, struct asm_name name)
{
	struct label *label;
	int rc = need_function(as);

	if (rc)
		return rc;
	label = array_grow(&as->labels, &as->nlabels, &as->labels_capacity, sizeof(*label));
	if (!label)
		return err_nomem(as->err);
	*label = (struct label){ .name = name,
				 .function = function_here(as),
				 .slot = as->program.ncode,
				 .line = as->line };
	return 0;
}

/* "loop:" and, as dis numbers its lines, "12:". Moves @at behind it. */
static int read_label(struct assembler *as, const char **at, bool *found)
{
	struct asm_name name = asm_read_name(*at);
	const char *end = *at + name.size;

	*found = false;
	if (!name.size)
		while (*end >= '0' && *end <= '9')
			end++;
	if (end == *at || *skip_blanks(end) != ':')
		return 0;
	*found = true;
	*at = skip_blanks(end) + 1;
	return name.size ? add_label(as, name) : 0;
}

static void cut_comment(char *line)
{
	bool quoted = false;
	char *at;

	for (at = line; *at; at++) {
		if (*at == '"')
			quoted = !quoted;
		else if (quoted && *at == '\\' && at[1])
			at++;
		else if (!quoted && (*at == ';' || (*at == '/' && at[1] == '/')))
			break;
	}
	while (at > line && asm_is_blank(at[-1]))
		at--;
	*at = '\0';
}

static int read_line(struct assembler *as, char *line)
{
	const char *at = line;
	bool found = true;
	int rc = 0;

	as->line_start = line;
	cut_comment(line);
	while (!rc && found) {
		at = skip_blanks(at);
		rc = read_label(as, &at, &found);
	}
	if (rc || !*at)
		return rc;
	return *at == '.' ? read_directive(as, at) : read_statement(as, at);
}

static int read_text(struct assembler *as, size_t size)
{
	char *at = as->text, *end = as->text + size, *next;
	int rc = 0;

	for (; at < end && !rc; at = next) {
		next = memchr(at, '\n', end - at);
		next = next ? next + 1 : end;
		as->line++;
		as->line_start = at;
		if (memchr(at, '\0', next - at))
			return fail(as, at, "a zero byte: this is no text");
		if (next[-1] == '\n')
			next[-1] = '\0';
		rc = read_line(as, at);
	}
	rc = rc ? rc : end_function(as);
	if (!rc && !as->program.ncode)
		rc = err_set(as->err, -EINVAL, "1:1: there are no instructions");
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static void assembler_deinit(struct assembler *as)
{
	isa_program_deinit(&as->program);
	free(as->text);
	free(as->labels);
	free(as->fixups);
	free(as->by_name);
}

void isa_program_deinit(struct isa_program *program)
{
	for (size_t i = 0; i < program->nowned; i++)
		free(program->owned[i]);
	free(program->owned);
	free(program->code);
	free(program->lines);
	free(program->functions);
	free(program->symbols);
	free(program->references);
	*program = (struct isa_program){ 0 };
}

int isa_assemble(const char *text, size_t size, struct isa_program *ret, struct err *err)
{
	CLEANUP(assembler_deinit) struct assembler as = { .err = err };
	int rc;

	as.text = malloc(size + 1);
	if (!as.text)
		return err_nomem(err);
	memcpy(as.text, text, size);
	as.text[size] = '\0';
	rc = read_text(&as, size);
	rc = rc ? rc : asm_resolve(&as);
	if (rc)
		return rc;
	*ret = as.program;
	as.program = (struct isa_program){ 0 };
	return 0;
}
