// SPDX-License-Identifier: BSD-2-Clause
/* duet build, duet cflags, duet new */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "compile/compile.h"

static const char build_help[] =
	"usage: duet build SCRIPT.c [-o SCRIPT.o] [--arch ARCH] [--btf FILE] [--cflags FLAGS] "
	"[-v]\n"
	"Compiles a script into one object, which runs on any machine of its architecture without\n"
	"compiler, headers or source.\n"
	"  -o FILE        the object: SCRIPT.o beside the source when absent\n"
	"  --arch ARCH    x86_64 or arm64: this machine's when absent; another needs --btf\n"
	"  --btf FILE     kernel types: a copy of the other machine's /sys/kernel/btf/vmlinux\n"
	"  --cflags FLAGS for the compiler\n"
	"  -v             the compiler's own words too\n\n"
	"example: duet build --arch arm64 --btf arm64.btf ipc.c && scp ipc.o box:\n";

struct build {
	struct cli_script_options script;
	const char *source, *output;
	bool help;
};

static int parse_build(const char *command, int argc, char **argv, struct build *ret)
{
	static const struct option options[] = {
		{ "arch", required_argument, NULL, 'A' },
		{ "btf", required_argument, NULL, 'B' },
		{ "cflags", required_argument, NULL, 'F' },
		{ "output", required_argument, NULL, 'o' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, ":o:vh", options, NULL)) != -1) {
		switch (option) {
		case 'A':
			ret->script.arch = optarg;
			break;
		case 'B':
			ret->script.btf_path = optarg;
			break;
		case 'F':
			ret->script.cflags = optarg;
			break;
		case 'o':
			ret->output = optarg;
			break;
		case 'v':
			ret->script.explain = true;
			break;
		case 'h':
			ret->help = true;
			return 0;
		case ':':
			return cli_usage(command, "%s: a value is missing", argv[optind - 1]);
		default:
			return cli_usage(command, "%s: no such option", argv[optind - 1]);
		}
	}
	if (optind < argc)
		ret->source = argv[optind++];
	if (optind < argc)
		return cli_usage(command, "%s: one SCRIPT at a time", argv[optind]);
	return 0;
}

int cli_build(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf object = { 0 };
	CLEANUP(free_pointer) char *beside = NULL;
	struct build build = { 0 };
	struct err err = { 0 };
	int status = parse_build("build", argc, argv, &build);
	size_t size;

	if (status)
		return status;
	if (build.help)
		return fputs(build_help, stdout), CLI_OK;
	size = build.source ? strlen(build.source) : 0;
	if (size < 3 || strcmp(build.source + size - 2, ".c"))
		return cli_usage("build", "which SCRIPT.c?");
	if (!build.output) {
		beside = strdup(build.source);
		if (!beside)
			return CLI_FAILURE;
		beside[size - 1] = 'o';
		build.output = beside;
	}
	if (cli_load_script(build.source, &build.script, &object, &err) ||
	    compile_write_object(&object, build.output, &err))
		return cli_fail(&err);
	return CLI_OK;
}

int cli_cflags(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf flags = { 0 };
	struct build build = { 0 };
	struct err err = { 0 };
	struct compile_options options = { .write_vmlinux = cli_write_vmlinux };
	int status = parse_build("cflags", argc, argv, &build);

	if (status)
		return status;
	if (build.help) {
		puts("usage: duet cflags [--arch ARCH] [--btf FILE]\n"
		     "Prints the flags that scripts are compiled with, on one line.\n\n"
		     "example: duet cflags | tr ' ' '\\n' >compile_flags.txt   # for clangd");
		return CLI_OK;
	}
	if (build.source)
		return cli_usage("cflags", "%s: it takes no files", build.source);
	options.arch = build.script.arch;
	options.btf_path = build.script.btf_path;
	options.cflags = build.script.cflags;
	if (compile_cflags(&options, &flags, &err))
		return cli_fail(&err);
	fputs(flags.data, stdout);
	if (flags.size && flags.data[flags.size - 1] != '\n')
		putchar('\n');
	return CLI_OK;
}

int cli_new(int argc, char **argv)
{
	struct err err = { 0 };

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		puts("usage: duet new FILE.c\n"
		     "Writes a commented first script. An existing file is left alone.\n\n"
		     "example: duet new first.c && duet run first.c -- ls");
		return CLI_OK;
	}
	if (argc != 2 || argv[1][0] == '-')
		return cli_usage("new", "which FILE.c?");
	if (compile_new(argv[1], &err))
		return cli_fail(&err);
	printf("%s: written: try `duet run %s -- ls`\n", argv[1], argv[1]);
	return CLI_OK;
}
