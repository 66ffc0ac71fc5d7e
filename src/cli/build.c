// SPDX-License-Identifier: BSD-2-Clause
/* duet build, duet cflags, duet new */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/options.h"
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

static const char cflags_help[] =
	"usage: duet cflags [--arch ARCH] [--btf FILE]\n"
	"Prints the flags that scripts are compiled with, on one line.\n\n"
	"example: duet cflags | tr ' ' '\\n' >compile_flags.txt   # for clangd\n";

static const char new_help[] =
	"usage: duet new FILE.c\n"
	"Writes a commented first script. An existing file is left alone.\n\n"
	"example: duet new first.c && duet run first.c -- ls\n";

struct build {
	struct cli_script_options script;
	const char *source, *output;
};

static bool parse(const char *help, int argc, char **argv, struct build *ret, int *status)
{
	const struct cli_option options[] = { { "arch", .value = &ret->script.arch },
					      { "btf", .value = &ret->script.btf_path },
					      { "cflags", .value = &ret->script.cflags },
					      { "output", 'o', .value = &ret->output },
					      { "verbose", 'v', .flag = &ret->script.explain },
					      {} };
	const struct cli_word words[] = { { "SCRIPT", &ret->source }, {} };

	return cli_parse(&(struct cli_syntax){ help, options, words }, argc, argv, status);
}

int cli_build(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf object = { 0 };
	CLEANUP(free_pointer) char *beside = NULL;
	struct build build = { 0 };
	struct err err = { 0 };
	int status;
	size_t size;

	if (!parse(build_help, argc, argv, &build, &status))
		return status;
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
	int status;

	if (!parse(cflags_help, argc, argv, &build, &status))
		return status;
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
	const char *path = NULL;
	const struct cli_word words[] = { { "FILE.c", &path }, {} };
	struct err err = { 0 };
	int status;

	if (!cli_parse(&(struct cli_syntax){ new_help, .words = words }, argc, argv, &status))
		return status;
	if (!path || path[0] == '-')
		return cli_usage("new", "which FILE.c?");
	if (compile_new(path, &err))
		return cli_fail(&err);
	printf("%s: written: try `duet run %s -- ls`\n", path, path);
	return CLI_OK;
}
