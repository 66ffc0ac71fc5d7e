/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a script's C text to a BPF object: finds clang, knows its flags, keeps what it made in a
 * cache, and turns the BPF back end's messages into one line with the script's own file and line.
 *
 * No state between calls; any thread, also at the same time (in other processes too: the cache is
 * only ever changed by rename). Nothing here prints.
 *
 * Environment: DUET_CLANG (compiler), DUET_INCLUDE (folder of duet.h), XDG_CACHE_HOME, HOME,
 * TMPDIR (where to work when the cache cannot be written).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Writes vmlinux.h for the BTF at @btf_path (NULL: this machine's) to @fd. 0 or -errno. */
typedef int (*compile_vmlinux_fn)(void *context, const char *btf_path, int fd, struct err *err);

/* All strings are borrowed for the call; NULL is the default of each. */
struct compile_options {
	const char *path;     /* the script, "-": standard input */
	const char *arch;     /* "x86_64" or "arm64"; NULL: this machine's */
	const char *btf_path; /* kernel types; NULL: /sys/kernel/btf/vmlinux */
	const char *cflags;   /* further flags for clang, quoted as in a shell */
	bool verbose;         /* diagnostics holds clang's own words even where one line says it */
	compile_vmlinux_fn write_vmlinux;
	void *context; /* of write_vmlinux */
};

/* Owned by the caller: compile_result_deinit(). Zero-initialise. */
struct compile_result {
	struct buf object;
	struct buf diagnostics; /* for stderr, whole lines; warnings too, also from the cache */
	bool cached;            /* no compiler was started */
};
void compile_result_deinit(struct compile_result *result);

/*
 * Compiles @options->path. -EINVAL: the script is wrong: @err is one line that starts with
 * FILE:LINE where the position is known; @ret->diagnostics holds clang's text unless the line
 * already says it all. -ENOENT: no such file, no compiler, no kernel types; -errno. On failure
 * only ret->diagnostics is set.
 */
int compile_script(const struct compile_options *options, struct compile_result *ret,
		   struct err *err);

/* Puts the object into @output by rename: never half written, also on a full disk. */
int compile_write_object(const struct buf *object, const char *output, struct err *err);

/* One line of flags for clangd and make, with the folders of duet.h and vmlinux.h (which is made). */
int compile_cflags(const struct compile_options *options, struct buf *ret, struct err *err);

/* Writes a commented first script; -EEXIST rather than overwriting. */
int compile_new(const char *path, struct err *err);

/* The compiler that would be used, for doctor. -ENOENT with what to install in @err. */
struct compile_compiler {
	char path[4096];
	int version;          /* 19 */
	bool signed_division; /* `/` and `%` of signed values compile (user half, kernels from 6.6 on) */
};
int compile_find_compiler(struct compile_compiler *ret, struct err *err);

/* "x86_64" or "arm64", NULL for any other machine. */
const char *compile_host_arch(void);
