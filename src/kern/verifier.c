// SPDX-License-Identifier: BSD-2-Clause
/* From the verifier's log to `FILE:LINE: program NAME: why: hint`. */
#include "kern/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "obj/obj.h"

/* Known causes: the first row whose text is in the verifier's last words gives the hint. */
static const struct {
	const char *said, *hint;
} hints[] = {
	{ "map_value_or_null", "test the pointer: if (!p) return 0;" },
	{ "_or_null'", "test the pointer: if (!p) return 0;" },
	{ "invalid mem access 'scalar'",
	  "a kernel pointer cannot be followed here: BPF_CORE_READ() or bpf_probe_read_kernel()" },
	{ "invalid mem access 'inv'",
	  "a kernel pointer cannot be followed here: BPF_CORE_READ() or bpf_probe_read_kernel()" },
	{ "!read_ok",
	  "a variable is used before it is set: write every out-parameter on every path" },
	{ "invalid indirect read from stack", "initialise the whole structure, padding too" },
	{ "invalid read from stack", "initialise the whole structure, padding too" },
	{ "back-edge",
	  "the loop has no bound that the verifier sees: for (i = 0; i < CONSTANT; i++)" },
	{ "infinite loop",
	  "the loop has no bound that the verifier sees: use a constant, or bpf_loop()" },
	{ "program is too large", "too much to verify: split the program, or use bpf_loop()" },
	{ "too many jumps", "too much to verify: split the program, or use bpf_loop()" },
	{ "too complex", "too much to verify: split the program, or use bpf_loop()" },
	{ "combined stack size", "the stack has 512 bytes: keep large values in a map" },
	{ "stack depth", "the stack has 512 bytes: keep large values in a map" },
	{ "invalid stack", "the stack has 512 bytes: keep large values in a map" },
	{ "GPL-restricted", "helper for GPL programs: char LICENSE[] SEC(\"license\") = \"GPL\";" },
	{ "GPL compatible", "helper for GPL programs: char LICENSE[] SEC(\"license\") = \"GPL\";" },
	{ "unknown func", "this kernel, or this kind of program, lacks that helper" },
	{ "program of this type cannot use helper", "this kind of program lacks that helper" },
	{ "modified ctx ptr", "evaluate PT_REGS_...(ctx) into a variable first" },
	{ "min value is negative", "bound the index or size: if (n > MAX) return 0;" },
	{ "unbounded memory access", "bound the index or size: if (n > MAX) return 0;" },
	{ "max value is outside", "bound the index or size: if (n > MAX) return 0;" },
	{ "invalid access to map value", "bound the index: if (i >= ENTRIES) return 0;" },
	{ "doesn't have", "the function has fewer arguments than the program reads" },
	{ "CO-RE relocation", "this kernel lacks that type or field: test it with "
			      "bpf_core_field_exists()" },
	{ "uses reserved fields", "an instruction that this kernel does not know (signed / or % "
				  "need Linux 6.6): divide unsigned values" },
	{ "BPF_ALU uses reserved", "signed / and % need Linux 6.6: divide unsigned values" },
	{ "unknown opcode", "an instruction that this kernel does not know: compile with "
			    "-mcpu=v3" },
};

struct verdict {
	char why[300];  /* the verifier's last words */
	char text[200]; /* the source line in front of them */
	char file[128]; /* of the kernel's comment (6.4 on), or from the object */
	unsigned int line;
	long instruction; /* the last one it looked at, -1: none */
};

/* "; code text @ file.c:12" -> parts; without "@" only the text. */
static void take_comment(struct verdict *verdict, const char *line)
{
	const char *at = strstr(line, " @ "), *next;

	while (at && (next = strstr(at + 1, " @ ")))
		at = next;
	verdict->file[0] = 0;
	verdict->line = 0;
	line += 1 + (line[1] == ' ');
	snprintf(verdict->text, sizeof(verdict->text), "%.*s",
		 at && at > line ? (int)(at - line) : (int)strlen(line), line);
	if (at)
		sscanf(at + 3, "%127[^:]:%u", verdict->file, &verdict->line);
}

/* Lines that the verifier prints after, or between, its reasons. */
static bool is_statistics(const char *line)
{
	static const char *const starts[] = {
		"processed ",   "verification time",
		"stack depth ", "mark_precise",
		"arg#",         "func#",
		"from ",        "max_states",
		"last_idx",     "first_idx",
		"regs=",        "parent ",
		"peak_states",  "reg type unsupported",
		"-- ",          "safe",
		"propagating",
	};
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	}
	return false;
}

/* Register states: "R1=ctx(off=0,imm=0) R10=fp0", also "R1_w=...". A reason starts with "R1 ". */
static bool is_state(const char *line)
{
	size_t digits = line[0] == 'R' ? strspn(line + 1, "0123456789") : 0;

	return digits && (line[1 + digits] == '=' || line[1 + digits] == '_');
}

static void read_log(char *log, struct verdict *verdict)
{
	char *line, *rest;

	for (line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *end;
		long number;

		if (line[0] == ';') {
			take_comment(verdict, line);
			continue;
		}
		number = strtol(line, &end, 10);
		if (end != line && *end == ':') {
			if (strchr(end, '('))
				verdict->instruction = number;
			continue;
		}
		if (!is_statistics(line) && !is_state(line))
			snprintf(verdict->why, sizeof(verdict->why), "%s", line);
	}
}

/* ---- the source line from the object, for kernels whose log has the text only ---------- */

/* The function's section and offset, by the symbol table (validated by obj_open()). */
static bool find_function(const struct obj *obj, const char *name, uint32_t *section,
			  uint64_t *offset, uint64_t *size)
{
	uint32_t i, count = obj_section_count(obj);

	for (i = 1; i < count; i++) {
		const Elf64_Shdr *header = obj_section(obj, i);
		size_t bytes, names_size, k;
		const Elf64_Sym *symbols;
		const char *names;

		if (header->sh_type != SHT_SYMTAB || header->sh_link >= count)
			continue;
		symbols = obj_section_data(obj, i, &bytes);
		names = obj_section_data(obj, header->sh_link, &names_size);
		for (k = 0; symbols && names && k < bytes / sizeof(*symbols); k++) {
			Elf64_Sym symbol;

			memcpy(&symbol, &symbols[k], sizeof(symbol));
			if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
			    symbol.st_name >= names_size || strcmp(names + symbol.st_name, name))
				continue;
			*section = symbol.st_shndx;
			*offset = symbol.st_value;
			*size = symbol.st_size;
			return true;
		}
	}
	return false;
}

/* The first instruction whose source line reads @text. */
static bool find_text(const struct obj *obj, uint32_t section, uint64_t from, uint64_t to,
		      const char *text, struct obj_line *ret)
{
	for (; from < to; from += 8) {
		if (obj_line_of(obj, section, from, ret) && !strcmp(ret->text, text))
			return true;
	}
	return false;
}

static void find_line(const struct kern *kern, const char *program, struct verdict *verdict)
{
	const struct obj *obj = kern->source;
	uint64_t offset, size, at = (uint64_t)verdict->instruction * 8;
	struct obj_line line;
	uint32_t section, text;
	size_t bytes;

	if (!obj || !find_function(obj, program, &section, &offset, &size))
		return;
	/* Functions that it calls stand behind it in the log's numbers, in an order that is
	 * libbpf's: those are found by their text. */
	if (verdict->instruction >= 0 && at < size) {
		if (!obj_line_of(obj, section, offset + at, &line))
			return;
	} else {
		text = obj_find_section(obj, ".text");
		if (!text || !verdict->text[0] || !obj_section_data(obj, text, &bytes) ||
		    !find_text(obj, text, 0, bytes, verdict->text, &line))
			return;
	}
	snprintf(verdict->file, sizeof(verdict->file), "%s", line.file);
	verdict->line = line.line;
	snprintf(verdict->text, sizeof(verdict->text), "%s", line.text);
}

/* ---- the message ------------------------------------------------------------------------- */

static const char *find_hint(const char *why)
{
	size_t i;

	for (i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (strstr(why, hints[i].said))
			return hints[i].hint;
	}
	return NULL;
}

static int explain_load(const struct kern *kern, int code, struct err *err)
{
	const char *reason = kern->messages.reason;

	if (explain_permission(code, err))
		return err_prepend(err, code, "%s", kern->name);
	return err_set(err, code, "%s: the kernel does not take it: %s", kern->name,
		       reason[0] ? reason : kern_errno_text(code));
}

/* Line by line: one call of log_verbose() shows 4,096 bytes at most. */
static void show_log(const char *program, const char *log)
{
	if (log_get_level() < LOG_VERBOSE)
		return;
	log_verbose("the verifier on program %s:", program);
	while (*log) {
		size_t size = strcspn(log, "\n");

		log_verbose("  %.*s", (int)size, log);
		log += size + (log[size] == '\n');
	}
}

int verifier_explain(const struct kern *kern, int code, struct err *err)
{
	CLEANUP(buf_deinit)
	struct buf log = { 0 };
	struct verdict verdict = { .instruction = -1 };
	const char *program = kern->messages.program, *hint;

	if (!kern->messages.log.size)
		return explain_load(kern, code, err);
	show_log(program, kern->messages.log.data);
	if (buf_puts(&log, kern->messages.log.data))
		return err_nomem(err);
	read_log(log.data, &verdict);
	if (!verdict.why[0])
		return explain_load(kern, code, err);
	find_line(kern, program, &verdict);
	if (verdict.line)
		err_set(err, code, "%s:%u: program %s: %s", verdict.file, verdict.line, program,
			verdict.why);
	else
		err_set(err, code, "program %s: %s", program, verdict.why);
	if (verdict.text[0])
		err_hint(err, code, "in \"%s\"", verdict.text);
	hint = find_hint(verdict.why);
	return hint ? err_hint(err, code, "%s", hint) : code;
}
