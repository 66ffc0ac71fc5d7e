// SPDX-License-Identifier: BSD-2-Clause
/* duet asm */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "compile/compile.h"
#include "isa/asm.h"
#include "obj/write.h"

static const char help[] =
	"usage: duet asm FILE.s [-o FILE.o] [--hex]\n"
	"Assembles BPF code, in the language that `duet dis` prints, into an object that `duet "
	"run`,\n"
	"`duet dis` and libbpf take. FILE.s may be `-`: standard input.\n"
	"  -o FILE  the object: FILE.o beside the source when absent\n"
	"  --hex    print the instructions instead, as hex bytes, one instruction a line\n\n"
	"examples:\n"
	"  duet asm count.s && duet run count.o\n"
	"  echo 'r0 = 42\n"
	"        exit' | duet asm - --hex\n";

struct assemble {
	const char *source, *output;
	bool hex;
};

static bool parse(int argc, char **argv, struct assemble *ret, int *status)
{
	const struct cli_option options[] = { { "output", 'o', .value = &ret->output },
					      { "hex", .flag = &ret->hex },
					      {} };
	const struct cli_word words[] = { { "FILE.s", &ret->source }, {} };

	if (!cli_parse(&(struct cli_syntax){ help, options, words }, argc, argv, status))
		return false;
	if (!ret->source)
		*status = cli_usage("asm", "which FILE.s?");
	else if (ret->hex && ret->output)
		*status = cli_usage("asm", "--hex prints to standard output: -o is for objects");
	else if (!ret->hex && !ret->output && !strcmp(ret->source, "-"))
		*status = cli_usage("asm", "standard input has no name: -o FILE.o or --hex");
	return *status == CLI_OK;
}

static int read_source(const char *source, struct buf *ret, struct err *err)
{
	int code;

	if (strcmp(source, "-"))
		return buf_read_file(ret, source, err);
	code = buf_read_fd(ret, STDIN_FILENO);
	return code ? err_set(err, code, "standard input: %s", strerror(-code)) : 0;
}

static int assemble(const char *source, struct buf *text, struct isa_program *ret, struct err *err)
{
	const char *name = strcmp(source, "-") ? source : "standard input";
	int code = read_source(source, text, err);

	if (code)
		return code;
	code = isa_assemble(text->data ?: "", text->size, ret, err);
	return code ? err_prepend(err, code, "%s", name) : 0;
}

int cli_assemble(const char *source, struct buf *ret, struct err *err)
{
	CLEANUP(isa_program_deinit) struct isa_program program = { 0 };
	CLEANUP(buf_deinit) struct buf text = { 0 };
	int code = assemble(source, &text, &program, err);

	if (code)
		return code;
	code = obj_write(&program, source, text.data, text.size, ret, err);
	return code ? err_prepend(err, code, "%s", source) : 0;
}

static int print_hex(const char *source, struct err *err)
{
	CLEANUP(isa_program_deinit) struct isa_program program = { 0 };
	CLEANUP(buf_deinit) struct buf text = { 0 };
	int code = assemble(source, &text, &program, err);

	if (code)
		return code;
	if (program.nreferences)
		return err_set(err, -EINVAL,
			       "%s:%u: `%s` is not in the text: bytes alone cannot refer to it: "
			       "write an object by -o",
			       source, program.lines[program.references[0].insn],
			       program.symbols[program.references[0].symbol].name);
	for (size_t i = 0; i < program.ncode; i++) {
		const unsigned char *bytes = (const unsigned char *)&program.code[i];

		for (size_t k = 0; k < sizeof(program.code[i]); k++)
			printf("%s%02x", k ? " " : "", bytes[k]);
		printf("\n");
	}
	return 0;
}

static int write_object(const struct assemble *options, struct err *err)
{
	CLEANUP(buf_deinit) struct buf object = { 0 }, beside = { 0 };
	const char *source = options->source, *dot = strrchr(source, '.');
	size_t stem =
		dot && !strchr(dot, '/') && dot != source ? (size_t)(dot - source) : strlen(source);
	int code = cli_assemble(source, &object, err);

	if (code)
		return code;
	if (buf_printf(&beside, "%.*s.o", (int)stem, source))
		return err_nomem(err);
	return compile_write_object(&object, options->output ?: beside.data, err);
}

int cli_asm(int argc, char **argv)
{
	struct assemble options = { 0 };
	struct err err = { 0 };
	int status;

	if (!parse(argc, argv, &options, &status))
		return status;
	if (options.hex ? print_hex(options.source, &err) : write_object(&options, &err))
		return cli_fail(&err);
	return CLI_OK;
}
