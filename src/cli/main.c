// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "hook/hook.h"

const struct cli_command cli_commands[] = {
	{ "run", cli_run, "SCRIPT [options] [-- CMD ...]", "run a script" },
	{ "build", cli_build, "SCRIPT.c [-o SCRIPT.o] [--arch ARCH] [--btf FILE]",
	  "compile a script once, to run it anywhere" },
	{ "cflags", cli_cflags, "", "print the compiler flags of scripts, for clangd and make" },
	{ "new", cli_new, "FILE.c", "write a commented first script" },
	{ "inspect", cli_inspect, "SCRIPT [--dis]",
	  "show programs, hooks, maps, globals, events, arguments" },
	{ "dis", cli_dis, "SCRIPT|HEX [FUNCTION] [--jit]",
	  "show BPF instructions with their source lines, and machine code" },
	{ "asm", cli_asm, "FILE.s [-o FILE.o] [--hex]", "assemble BPF instructions" },
	{ "list", cli_list, "[events|probes|tools|hooks|functions] [GLOB] [-v]",
	  "show what there is on this machine" },
	{ "doctor", cli_doctor, "",
	  "show what this machine and user can do, and how to get the rest" },
	{ NULL, NULL, NULL, NULL },
};

int cli_fail(const struct err *err)
{
	fflush(stdout);
	fprintf(stderr, "duet: %s\n", err->text);
	return CLI_FAILURE;
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "duet %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": see `duet %s --help`\n", command);
	return CLI_USAGE;
}

static uint64_t parse_time(const char *text, double unit)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || value <= 0)
		return 0;
	if (*end)
		return hook_parse_duration(text);
	return value * unit < 9e18 ? (uint64_t)(value * unit) : 0;
}

uint64_t cli_parse_seconds(const char *text)
{
	return parse_time(text, 1e9);
}

uint64_t cli_parse_milliseconds(const char *text)
{
	return parse_time(text, 1e6);
}

static void print_help(FILE *out)
{
	const struct cli_command *command;

	fprintf(out, "duet measures where a machine's hardware time goes, by scripts in C with a\n"
		     "kernel half and a user half.\n\nusage:\n");
	for (command = cli_commands; command->name; command++)
		fprintf(out, "  duet %-8s %s\n                %s\n", command->name,
			command->synopsis, command->summary);
	fprintf(out, "  duet TOOL ...  short for duet run TOOL ...\n\n"
		     "examples:\n"
		     "  duet new first.c                      a script to start from\n"
		     "  duet run first.c -- make              measure a command\n"
		     "  duet run first.c -p 1234 -d 10        a process, for ten seconds\n"
		     "  duet build first.c && scp first.o ... no compiler is needed where it runs\n"
		     "  duet doctor                           what this machine can do\n\n"
		     "`duet COMMAND --help` tells more; so do the manual pages: man duet\n");
}

static int unknown_command(const char *name)
{
	const struct cli_command *command;
	struct nearest nearest;
	char near[200];

	nearest_init(&nearest, name);
	for (command = cli_commands; command->name; command++)
		nearest_offer(&nearest, command->name);
	nearest_text(&nearest, near, sizeof(near));
	fprintf(stderr, "duet: `%s` is neither a command nor a shipped tool: %s%s%s\n", name,
		near[0] ? "did you mean " : "see `duet --help`", near, near[0] ? "?" : "");
	return CLI_USAGE;
}

static int run_command(int argc, char **argv)
{
	const struct cli_command *command;
	char path[4096];

	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return CLI_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("duet " DUET_VERSION "\n");
		return CLI_OK;
	}
	for (command = cli_commands; command->name; command++) {
		if (!strcmp(command->name, argv[1]))
			return command->run(argc - 1, argv + 1);
	}
	if (argv[1][0] != '-' && cli_data_folder("tools", path, sizeof(path)) == 0) {
		size_t used = strlen(path);

		snprintf(path + used, sizeof(path) - used, "/%s.o", argv[1]);
		if (access(path, R_OK) == 0) {
			argv[0] = "run";
			return cli_run(argc, argv);
		}
	}
	return unknown_command(argv[1]);
}

/* What is opened next must not get the number of a closed standard stream, where it would be
 * written to: these fail instead. */
static void keep_standard_descriptors(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			exit(CLI_FAILURE);
	}
}

/* Commands print to stdout and need not care whether it takes it. */
static int end_output(int status)
{
	int code = errno;

	if (fflush(stdout))
		code = errno;
	else if (!ferror(stdout))
		return status;
	fprintf(stderr, "duet: stdout: %s\n", strerror(code ?: EIO));
	return CLI_FAILURE;
}

int main(int argc, char **argv)
{
	int status;

	keep_standard_descriptors();
	status = run_command(argc, argv);
	return end_output(status);
}
