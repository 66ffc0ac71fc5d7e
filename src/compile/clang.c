// SPDX-License-Identifier: BSD-2-Clause
/* Which compiler, and what it must be told. */
#include "compile/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/cleanup.h"

/* From this version on there is instruction set v4, of which we take signed division alone. */
#define CLANG_V4 18

const char *compile_host_arch(void)
{
	struct utsname names;

	if (uname(&names))
		return NULL;
	if (!strcmp(names.machine, "x86_64"))
		return "x86_64";
	return !strcmp(names.machine, "aarch64") ? "arm64" : NULL;
}

/* Finds @name along $PATH (or as it is, when it holds a slash). */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return !access(path, X_OK);
	}
	for (; folders && *folders; folders = *end ? end + 1 : end) {
		end = strchrnul(folders, ':');
		if (end == folders)
			continue;
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - folders), folders, name) <
			    PATH_MAX &&
		    !access(path, X_OK))
			return true;
	}
	return false;
}

int compiler_locate(char path[PATH_MAX], struct err *err)
{
	/* 19 is what the tests run with; then newer ones; 14 is Debian 12's own. */
	static const int versions[] = { 19, 20, 21, 22, 23, 24, 25, 18, 17, 16, 15 };
	const char *chosen = getenv("DUET_CLANG");
	char name[32];
	size_t i;

	if (chosen && *chosen) {
		if (find_program(chosen, path))
			return 0;
		return err_set(err, -ENOENT,
			       "%s: no such compiler: DUET_CLANG names it: set it to "
			       "a clang or unset it",
			       chosen);
	}
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		snprintf(name, sizeof(name), "clang-%d", versions[i]);
		if (find_program(name, path))
			return 0;
	}
	if (find_program("clang", path) || find_program("clang-14", path))
		return 0;
	return err_set(err, -ENOENT,
		       "clang: not found: compiling a .c needs it (a .o does not): "
		       "apt-get install clang-19, or set DUET_CLANG");
}

uint64_t compiler_identity(const char *path)
{
	char real[PATH_MAX];
	struct hash hash = { 0 };
	struct stat status;

	if (!realpath(path, real) || stat(real, &status))
		return 0;
	hash_text(&hash, real);
	hash_word(&hash, status.st_size);
	hash_word(&hash, status.st_mtim.tv_sec);
	hash_word(&hash, status.st_mtim.tv_nsec);
	return hash.a ? hash.a : 1;
}

/* "/usr/lib/llvm-19/bin/clang" and "clang-19" tell without starting anything; else ask. */
static int find_version(const char *path)
{
	char *const argv[] = { (char *)path, "--version", NULL };
	CLEANUP(buf_deinit)
	struct buf output = { 0 };
	const char *at;
	char real[PATH_MAX];
	int version;

	if (realpath(path, real)) {
		at = strstr(real, "/llvm-");
		if (at && sscanf(at, "/llvm-%d/", &version) == 1)
			return version;
	}
	if (process_run(argv, -1, &output) || !output.size)
		return -ENOENT;
	at = strstr(output.data, "clang version ");
	return at && sscanf(at, "clang version %d", &version) == 1 ? version : -ENOENT;
}

int compile_find_compiler(struct compile_compiler *ret, struct err *err)
{
	struct compile_compiler found = { 0 };
	int code;

	code = compiler_locate(found.path, err);
	if (code)
		return code;
	found.version = find_version(found.path);
	if (found.version < 0)
		return err_set(err, -ENOENT, "%s: is no clang: set DUET_CLANG to one", found.path);
	found.signed_division = found.version >= CLANG_V4;
	*ret = found;
	return 0;
}

int compiler_flags(const struct compile_compiler *compiler, const char *arch, const char *cflags,
		   struct list *ret, struct err *err)
{
	/* -fno-builtin: a zeroing loop stays a loop, printf stays printf. */
	static const char *const common[] = {
		"-target",
		"bpf",
		"-O2",
		"-g",
		"-fno-builtin",
		"-Wall",
		"-Wno-unused-function",
		"-Wvla",
		"-Werror=implicit-function-declaration",
		"-fno-crash-diagnostics",
		"-fno-color-diagnostics",
		"-nostdlibinc",
	};
	/* Of v4, signed division alone: older kernels' verifiers know none of the rest. */
	static const char *const v4[] = {
		"-mcpu=v4",
		"-mllvm",
		"-disable-ldsx",
		"-mllvm",
		"-disable-movsx",
		"-mllvm",
		"-disable-bswap",
		"-mllvm",
		"-disable-gotol",
		"-mllvm",
		"-disable-storeimm",
		/* The user half has larger frames; the verifier holds the kernel half to 512. */
		"-mllvm",
		"-bpf-stack-size=8192",
	};
	size_t i;
	int code = 0;

	for (i = 0; i < sizeof(common) / sizeof(common[0]) && !code; i++)
		code = list_add(ret, common[i]);
	for (i = 0; compiler->signed_division && i < sizeof(v4) / sizeof(v4[0]) && !code; i++)
		code = list_add(ret, v4[i]);
	if (!compiler->signed_division && !code)
		code = list_add(ret, "-mcpu=v3");
	if (!code)
		code = list_add(ret, !strcmp(arch, "arm64") ? "-D__TARGET_ARCH_arm64"
							    : "-D__TARGET_ARCH_x86");
	if (code)
		return err_nomem(err);
	return cflags ? list_add_words(ret, cflags, err) : 0;
}
