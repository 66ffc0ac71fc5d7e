// SPDX-License-Identifier: BSD-2-Clause
/* From what the user named to an object: .c, .s, .o, standard input, or a shipped tool. */
#include "cli/cli.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "compile/compile.h"
#include "kern/kern.h"

int cli_write_vmlinux(void *context, const char *btf_path, int fd, struct err *err)
{
	return kern_write_vmlinux_header(btf_path, fd, err);
}

int cli_data_folder(const char *name, char *path, size_t size)
{
	char executable[4096];
	ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
	struct stat status;
	const char *folder;

	if (length < 0)
		return -errno;
	executable[length] = 0;
	folder = dirname(executable);
	snprintf(path, size, "%s/../share/duet/%s", folder, name);
	if (!stat(path, &status) && S_ISDIR(status.st_mode))
		return 0;
	snprintf(path, size, "%s/%s", folder, name); /* not installed: the build's own */
	return !stat(path, &status) && S_ISDIR(status.st_mode) ? 0 : -ENOENT;
}

static bool ends_with(const char *text, const char *end)
{
	size_t text_size = strlen(text), end_size = strlen(end);

	return text_size >= end_size && !strcmp(text + text_size - end_size, end);
}

static int compile(const char *script, const struct cli_script_options *options, struct buf *ret,
		   struct err *err)
{
	CLEANUP(compile_result_deinit) struct compile_result result = { 0 };
	struct compile_options compile_options = { .path = script,
						   .cflags = options->cflags,
						   .arch = options->arch,
						   .btf_path = options->btf_path,
						   .verbose = options->explain,
						   .write_vmlinux = cli_write_vmlinux };
	int code = compile_script(&compile_options, &result, err);

	if (result.diagnostics.size)
		fputs(result.diagnostics.data, stderr);
	if (code)
		return code;
	*ret = result.object;
	result.object = (struct buf){ 0 };
	return 0;
}

int cli_load_script(const char *script, const struct cli_script_options *options, struct buf *ret,
		    struct err *err)
{
	char path[4096];

	if (!strcmp(script, "-") || ends_with(script, ".c"))
		return compile(script, options, ret, err);
	if (ends_with(script, ".s"))
		return cli_assemble(script, ret, err);
	if (ends_with(script, ".o") || strchr(script, '/'))
		return buf_read_file(ret, script, err);
	if (!cli_data_folder("tools", path, sizeof(path))) {
		size_t used = strlen(path);

		snprintf(path + used, sizeof(path) - used, "/%s.o", script);
		if (!access(path, R_OK))
			return buf_read_file(ret, path, err);
	}
	return err_set(
		err, -ENOENT,
		"%s: neither a .c, .s nor .o file, nor a shipped tool: see `duet list tools`",
		script);
}
