/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder with a cache of its own, and scripts in it. */
#pragma once

#include "compile/compile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static const int versions[] = { 14, 19 };
static char folder[64] = "/tmp/duet-compile-XXXXXX"; /* holds cache/ and the scripts */

static inline int run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Kernel types by way of bpftool: this floor knows no libbpf. */
static inline int write_vmlinux(void *context, const char *btf_path, int fd, struct err *err)
{
	char command[4200];
	int *calls = context;

	if (calls)
		++*calls;
	snprintf(command, sizeof(command),
		 "PATH=/usr/sbin:/usr/bin:/bin bpftool btf dump file %s format c >/proc/%d/fd/%d",
		 btf_path ? btf_path : "/sys/kernel/btf/vmlinux", getpid(), fd);
	return run(command) ? err_set(err, -EIO, "bpftool failed") : 0;
}

static inline void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline void use_clang(int version)
{
	char name[16];

	snprintf(name, sizeof(name), "clang-%d", version);
	setenv("DUET_CLANG", name, 1);
}

static inline bool have_clang(int version)
{
	struct compile_compiler compiler;

	use_clang(version);
	return !compile_find_compiler(&compiler, NULL);
}

static inline int compile_path(const char *path, struct compile_result *ret, struct err *err)
{
	struct compile_options options = { .path = path, .write_vmlinux = write_vmlinux };

	return compile_script(&options, ret, err);
}

static inline void must_compile(const char *path, bool cached)
{
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };
	struct err err = { 0 };

	if (compile_path(path, &result, &err))
		fail_msg("%s: %s\n%s", path, err.text,
			 result.diagnostics.data ? result.diagnostics.data : "");
	assert_true(result.object.size > 64);
	assert_memory_equal(result.object.data, "\177ELF", 4);
	assert_int_equal(result.cached, cached);
}

static const char good[] = "#include <duet.h>\n"
			   "u64 count;\n"
			   "SEC(\"user/exit\") int end(const struct duet_exit *e)\n"
			   "{\n"
			   "\tprintf(\"%llu\\n\", count);\n"
			   "\treturn 0;\n"
			   "}\n";

static inline int make_folder(void **state)
{
	char path[80];

	if (!mkdtemp(folder) || chdir(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/cache", folder);
	setenv("XDG_CACHE_HOME", path, 1);
	unsetenv("DUET_CLANG");
	write_text("good.c", good);
	return 0;
}

static inline int remove_folder(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || run(command);
}
