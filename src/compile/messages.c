// SPDX-License-Identifier: BSD-2-Clause
/*
 * From clang's output to one line. The table below is what people run into: limits of BPF C, which
 * the back end words for compiler writers, and names that clash with the kernel's types.
 */
#include "compile/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"

/* The first error, and what surrounds it. */
struct diagnostic {
	char file[256]; /* "" when clang does not know */
	unsigned int line;
	char text[512];
	char subject[128];   /* the first 'quoted' word of text */
	char origin[256];    /* file of "previous definition is here" */
	char suggestion[64]; /* of "did you mean" */
	char include[256];   /* the script's file and line that included ... */
	char header[256];    /* ... this header */
	unsigned int include_line;
	unsigned int errors;
	const char *headers; /* folder of duet.h */
};

struct rule {
	const char *match, *also; /* both in the text; also may be NULL */
	/* Returns false when the rule does not apply after all. NULL: `what` as it is. */
	bool (*write)(const struct diagnostic *diagnostic, char *text, size_t size);
	const char *what;
};

static void copy(char *to, size_t size, const char *from, size_t length)
{
	if (length >= size)
		length = size - 1;
	memcpy(to, from, length);
	to[length] = 0;
}

/* ---- reading ------------------------------------------------------------------------ */

/* "FILE:LINE[:COLUMN]" at @text; @length of FILE. */
static bool position(const char *text, size_t size, size_t *length, unsigned int *line)
{
	size_t i;

	for (i = 1; i + 1 < size; i++) {
		if (text[i] == ':' && text[i + 1] >= '1' && text[i + 1] <= '9') {
			*length = i;
			*line = strtoul(text + i + 1, NULL, 10);
			return true;
		}
	}
	return false;
}

static void set_position(struct diagnostic *diagnostic, const char *text, size_t size)
{
	unsigned int line;
	size_t length;

	if (!position(text, size, &length, &line))
		return;
	copy(diagnostic->file, sizeof(diagnostic->file), text, length);
	diagnostic->line = line;
}

/* The back end names a place only at the end of its own notation: "..., x.c:5:11 @[ x.c:9 ]". */
static void position_in_notation(struct diagnostic *diagnostic)
{
	const char *at = diagnostic->text, *last = NULL;

	for (at = strstr(at, ", "); at; at = strstr(at + 2, ", ")) {
		if (strchr(at + 2, ':') && at[2] != '0')
			last = at + 2;
	}
	if (last)
		set_position(diagnostic, last, strcspn(last, " "));
}

static void read_error(struct diagnostic *diagnostic, const char *line, size_t size,
		       const char *message)
{
	const char *quote, *end;

	copy(diagnostic->text, sizeof(diagnostic->text), message, line + size - message);
	if (message > line && strncmp(line, "fatal error:", 12) && strncmp(line, "error:", 6))
		set_position(diagnostic, line, message - line);
	if (!diagnostic->file[0])
		position_in_notation(diagnostic);
	quote = strchr(diagnostic->text, '\'');
	end = quote ? strchr(quote + 1, '\'') : NULL;
	if (end)
		copy(diagnostic->subject, sizeof(diagnostic->subject), quote + 1, end - quote - 1);
}

static void read_note(struct diagnostic *diagnostic, const char *line, size_t size)
{
	static const char previous[] = "note: previous", meant[] = "note: did you mean '";
	const char *at;
	unsigned int number;
	size_t length;

	at = memmem(line, size, previous, sizeof(previous) - 1);
	if (at && !diagnostic->origin[0] && position(line, size, &length, &number))
		copy(diagnostic->origin, sizeof(diagnostic->origin), line, length);
	at = memmem(line, size, meant, sizeof(meant) - 1);
	if (at && !diagnostic->suggestion[0]) {
		at += sizeof(meant) - 1;
		copy(diagnostic->suggestion, sizeof(diagnostic->suggestion), at, strcspn(at, "'"));
	}
}

/* @vla: where the last variable-length array was warned of, for clang-14, which crashes on it. */
static void read_line(struct diagnostic *diagnostic, const char *line, size_t size,
		      const char *script, struct diagnostic *vla)
{
	static const char from[] = "In file included from ";
	const char *at = memmem(line, size, "error: ", 7);
	unsigned int number;
	size_t length;

	if (!diagnostic->errors && size > sizeof(from) && !strncmp(line, from, sizeof(from) - 1)) {
		line += sizeof(from) - 1;
		if (!position(line, size - sizeof(from) + 1, &length, &number))
			return;
		if (length == strlen(script) && !strncmp(line, script, length)) {
			copy(diagnostic->include, sizeof(diagnostic->include), line, length);
			diagnostic->include_line = number;
			diagnostic->header[0] = 0;
		} else if (!diagnostic->header[0]) {
			copy(diagnostic->header, sizeof(diagnostic->header), line, length);
		}
		return;
	}
	if (memmem(line, size, "[-Wvla", 6))
		set_position(vla, line, size);
	if (at && !memmem(line, size, "clang frontend command failed", 29)) {
		if (!diagnostic->errors++)
			read_error(diagnostic, line, size, at + 7);
		return;
	}
	if (!diagnostic->errors && memmem(line, size, "warning: ", 9))
		diagnostic->include_line = 0;
	if (diagnostic->errors == 1)
		read_note(diagnostic, line, size);
}

/* ---- rules ---------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "/cache/include-0123/linux/bpf.h" as one would include it. */
static const char *include_name(const char *path)
{
	const char *at = strstr(path, "/include-");

	at = at ? strchr(at + 1, '/') : strstr(path, "/include/");
	if (!at)
		return base_name(path);
	return strncmp(at, "/include/", 9) ? at + 1 : at + 9;
}

static bool write_clash(const struct diagnostic *diagnostic, char *text, size_t size)
{
	bool kernel = !strcmp(base_name(diagnostic->origin), "vmlinux.h");

	if (diagnostic->include_line && strcmp(diagnostic->file, diagnostic->include)) {
		if (!kernel && strcmp(base_name(diagnostic->file), "vmlinux.h") &&
		    !strstr(diagnostic->origin, "/duet/"))
			return false;
		snprintf(text, size,
			 "%s: clashes with vmlinux.h, which has the kernel's types "
			 "already: remove that include (constants that are missing: #define them)",
			 include_name(diagnostic->header[0] ? diagnostic->header
							    : diagnostic->file));
		return true;
	}
	if (kernel)
		snprintf(text, size,
			 "%s: the kernel has a type or name like that (vmlinux.h): "
			 "choose another, such as my_%s",
			 diagnostic->subject, diagnostic->subject);
	else if (strstr(diagnostic->origin, "/duet/") ||
		 !strcmp(base_name(diagnostic->origin), "duet.h"))
		snprintf(text, size, "%s: %s declares that name: choose another, such as my_%s",
			 diagnostic->subject, include_name(diagnostic->origin),
			 diagnostic->subject);
	else if (strstr(diagnostic->origin, "/bpf/"))
		snprintf(text, size,
			 "%s: libbpf's %s defines that name: choose another, such as "
			 "my_%s",
			 diagnostic->subject, include_name(diagnostic->origin),
			 diagnostic->subject);
	else
		return false;
	return true;
}

static bool write_builtin(const struct diagnostic *diagnostic, char *text, size_t size)
{
	static const struct {
		const char *name, *instead;
	} doubles[] = {
		{ "adddf3", "f64_add(a, b)" },
		{ "subdf3", "f64_sub(a, b)" },
		{ "muldf3", "f64_mul(a, b), or ratio(a, b) of integers" },
		{ "divdf3", "f64_div(a, b), or ratio(a, b) of integers" },
		{ "negdf2", "f64_neg(a)" },
		{ "floatundidf", "f64_from_u64(n)" },
		{ "floatunsidf", "f64_from_u64(n)" },
		{ "floatdidf", "f64_from_s64(n)" },
		{ "floatsidf", "f64_from_s64(n)" },
		{ "fixunsdf", "f64_to_u64(a)" },
		{ "fixdf", "f64_to_s64(a)" },
		{ "ltdf2", "f64_lt(a, b)" },
		{ "ledf2", "f64_le(a, b)" },
		{ "gtdf2", "f64_gt(a, b)" },
		{ "gedf2", "f64_ge(a, b)" },
		{ "eqdf2", "f64_eq(a, b)" },
		{ "nedf2", "f64_ne(a, b)" },
		{ "unorddf2", "f64_eq(a, a)" },
	};
	const char *name = diagnostic->subject;
	size_t i;

	while (*name == '_')
		name++;
	for (i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
		if (strncmp(name, doubles[i].name, strlen(doubles[i].name)))
			continue;
		snprintf(text, size, "computes with a double: BPF has no floating point: use %s",
			 doubles[i].instead);
		return true;
	}
	if (strstr(name, "sf") || strstr(name, "df") || strstr(name, "tf"))
		snprintf(text, size,
			 "computes with a float: BPF has no floating point: use double "
			 "with f64_add(), f64_mul() and kin, or ratio(a, b) of integers");
	else if (strstr(name, "ti"))
		snprintf(text, size,
			 "computes with 128 bits: BPF has 64: use mul_div(a, b, c) or "
			 "per_mille(a, b) in the user half");
	else if (!strncmp(name, "mem", 3))
		snprintf(text, size,
			 "%s() of more than 1024 bytes or of a size that is not "
			 "constant: BPF does it in place only: copy in a loop, or call (%s)() in "
			 "the user half",
			 name, name);
	else
		snprintf(text, size, "needs the compiler's own function %s(), which BPF has not",
			 diagnostic->subject);
	return true;
}

/* Offers every `name(` in the headers under @folder. */
static void offer_names(const char *folder, struct nearest *nearest)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		CLEANUP(buf_deinit)
		struct buf file = { 0 };
		char path[PATH_MAX + 256], name[64];
		const char *at, *start;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] == '.' || buf_read_file(&file, path, NULL) || !file.size)
			continue;
		for (at = strchr(file.data, '('); at; at = strchr(at + 1, '(')) {
			for (start = at; start > file.data &&
					 (isalnum((unsigned char)start[-1]) || start[-1] == '_');)
				start--;
			if (at - start < 3 || at - start >= (int)sizeof(name) || *start == '_')
				continue;
			copy(name, sizeof(name), start, at - start);
			nearest_offer(nearest, name);
		}
	}
	if (directory)
		closedir(directory);
}

/* "did you mean printf()?", from clang or from duet's headers; "" when nothing is near. */
static const char *suggest(const struct diagnostic *diagnostic, char *text, size_t size)
{
	char folder[PATH_MAX];
	struct nearest nearest;

	if (diagnostic->suggestion[0]) {
		snprintf(text, size, "%s", diagnostic->suggestion);
		return text;
	}
	nearest_init(&nearest, diagnostic->subject);
	snprintf(folder, sizeof(folder), "%s/duet", diagnostic->headers);
	offer_names(folder, &nearest);
	return nearest_text(&nearest, text, size);
}

static bool write_undeclared(const struct diagnostic *diagnostic, char *text, size_t size)
{
	static const struct {
		const char *name, *instead;
	} known[] = {
		{ "exit", "call duet_stop(status) and return" },
		{ "abort", "call duet_stop(1) and return" },
		{ "sprintf", "use snprintf(buffer, size, ...) or text(array, ...)" },
		{ "vprintf",
		  "variadic functions do not exist in BPF C: use a macro around printf()" },
		{ "signal", "write a program SEC(\"user/signal/USR1\")" },
	};
	const char *name = diagnostic->subject;
	char names[300];
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(name, known[i].name)) {
			snprintf(text, size, "%s(): not in a script: %s", name, known[i].instead);
			return true;
		}
	}
	if (*suggest(diagnostic, names, sizeof(names)))
		snprintf(text, size, "%s(): is declared nowhere: did you mean %s?", name, names);
	else
		snprintf(text, size,
			 "%s(): is declared nowhere: a function of the C library that "
			 "duet.h does not know is declared by hand: extern int %s(...types...);",
			 name, name);
	return true;
}

static bool write_missing_file(const struct diagnostic *diagnostic, char *text, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/usr/include/%s", diagnostic->subject);
	if (access(path, F_OK)) {
		snprintf(path, sizeof(path), "/usr/include/x86_64-linux-gnu/%s",
			 diagnostic->subject);
		if (access(path, F_OK))
			return false;
	}
	snprintf(text, size,
		 "#include <%s>: the system's headers clash with the kernel's types and "
		 "are not searched: duet.h declares the C library; what is missing there is "
		 "declared "
		 "by hand",
		 diagnostic->subject);
	return true;
}

static bool write_crash(const struct diagnostic *diagnostic, char *text, size_t size)
{
	const char *at = strstr(diagnostic->text, "error in backend: ");

	at = at ? at + 18 : diagnostic->text;
	snprintf(text, size,
		 "the compiler's BPF back end gave up: %.160s: simplify that expression "
		 "(-v shows the original)",
		 at);
	return true;
}

#define TOO_MANY                                                                        \
	"more than five arguments: BPF passes at most five, in registers: hand over a " \
	"pointer to a structure"
#define DIVISION                                                                               \
	"signed division or remainder: clang-%v cannot compile it for BPF: use div_s64(a, b) " \
	"or rem_s64(a, b), unsigned values, or clang-19"
#define STRUCT_RESULT                                                                       \
	"returns a structure of more than 8 bytes, or takes variable arguments: BPF C has " \
	"neither: hand over a pointer to the result, or use a macro"
#define VLA                                                                                  \
	"an array of variable length: a BPF stack frame has a fixed size: give the array a " \
	"constant size, or malloc() it in the user half"
#define ATOMIC \
	"an atomic operation on 8 or 16 bits: BPF has them for 32 and 64 bits: use u32 or u64"

static const struct rule rules[] = {
	{ "stack arguments are not supported", NULL, NULL, TOO_MANY },
	{ "defined with too many args", NULL, NULL, TOO_MANY },
	{ "too many args to 0x", NULL, NULL, TOO_MANY },
	{ " too many arguments", "0x", NULL, TOO_MANY },
	{ "call to built-in function '", NULL, write_builtin, NULL },
	{ "BPF stack limit", NULL, NULL,
	  "local variables of more than %d bytes: too much for one stack frame: make the big one "
	  "static or global, or a PERCPU() map in the kernel half" },
	{ " = sdiv ", NULL, NULL, DIVISION },
	{ " = srem ", NULL, NULL, DIVISION },
	{ " = sdivrem ", NULL, NULL, DIVISION },
	{ "nsupport", "signed division", NULL, DIVISION },
	{ "VarArgs or StructRet", NULL, NULL, STRUCT_RESULT },
	{ "aggregate returns are not supported", NULL, NULL, STRUCT_RESULT },
	{ "variadic functions are not supported", NULL, NULL, STRUCT_RESULT },
	{ "only small returns supported", NULL, NULL, STRUCT_RESULT },
	{ "dynamic stack allocation", NULL, NULL, VLA },
	{ "nsupported atomic operation", NULL, NULL, ATOMIC },
	{ "at most 12 values: use two calls", NULL, NULL,
	  "more than 12 values: printf() and kin take at most 12: use two calls" },
	{ "text: wants an array, not a pointer", NULL, NULL,
	  "text() of a pointer: it needs an array, whose size it knows: use snprintf(buffer, size, "
	  "...)" },
	{ "redefinition", NULL, write_clash, NULL },
	{ "conflicting types for", NULL, write_clash, NULL },
	{ "redeclaration", NULL, write_clash, NULL },
	{ "with a different type", NULL, write_clash, NULL },
	{ "call to undeclared function", NULL, write_undeclared, NULL },
	{ "implicit declaration of function", NULL, write_undeclared, NULL },
	{ "file not found", NULL, write_missing_file, NULL },
	{ "error in backend", NULL, write_crash, NULL },
	{ "Cannot select", NULL, write_crash, NULL },
};

/* %d: bytes of a stack frame; %v: version of the compiler. */
static void expand(const char *format, const struct compile_compiler *compiler, char *text,
		   size_t size)
{
	size_t used = 0;

	for (; *format && used + 16 < size; format++) {
		if (*format == '%' && (format[1] == 'd' || format[1] == 'v')) {
			used += snprintf(text + used, size - used, "%d",
					 format[1] == 'v'            ? compiler->version
					 : compiler->signed_division ? 8192
								     : 512);
			format++;
		} else {
			text[used++] = *format;
		}
	}
	text[used] = 0;
}

static bool apply(const struct diagnostic *diagnostic, const struct compile_compiler *compiler,
		  char *text, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *rule = &rules[i];

		if (!strstr(diagnostic->text, rule->match) ||
		    (rule->also && !strstr(diagnostic->text, rule->also)))
			continue;
		if (!rule->write) {
			expand(rule->what, compiler, text, size);
			return true;
		}
		return rule->write(diagnostic, text, size);
	}
	return false;
}

/* The back end leaves out what a path shares with the working folder: "a/x.c" of "/tmp/a/x.c". */
static const char *as_given(const char *file, const char *script)
{
	size_t length = strlen(file), whole = strlen(script);

	if (file[0] != '/' && whole > length && script[whole - length - 1] == '/' &&
	    !strcmp(script + whole - length, file))
		return script;
	return file;
}

bool message_from_clang(const char *output, const char *script, int status,
			const struct compile_compiler *compiler, const char *headers, char *text,
			size_t size)
{
	struct diagnostic diagnostic = { .headers = headers }, vla = { 0 };
	const char *line = output, *end, *file;
	unsigned int number;
	char what[600];

	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		read_line(&diagnostic, line, end - line, script, &vla);
	}
	if (!diagnostic.errors) {
		snprintf(text, size, "%s: %s ended with status %d and no message", script,
			 compiler->path, status);
		return false;
	}
	if (!apply(&diagnostic, compiler, what, sizeof(what))) {
		snprintf(text, size, "%s: does not compile: %u error%s", script, diagnostic.errors,
			 diagnostic.errors == 1 ? "" : "s");
		return false;
	}
	if (!diagnostic.file[0] && strstr(diagnostic.text, "dynamic stack"))
		diagnostic = vla;
	file = diagnostic.include_line ? diagnostic.include : diagnostic.file;
	number = diagnostic.include_line ? diagnostic.include_line : diagnostic.line;
	if (file[0])
		snprintf(text, size, "%s:%u: %s", as_given(file, script), number, what);
	else
		snprintf(text, size, "%s: %s", script, what);
	return true;
}
