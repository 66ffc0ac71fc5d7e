/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of compile/ share. */
#pragma once

#include <limits.h>
#include <signal.h>
#include <stdint.h>

#include "compile/compile.h"
#include "compile/hash.h"

/* ---- list.c: an argument vector that owns its strings ------------------------ */
struct list {
	char **items; /* NULL-terminated when count > 0 */
	size_t count, capacity;
};
void list_deinit(struct list *list);
int list_add(struct list *list, const char *text);
int list_add_format(struct list *list, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Words as a shell would see them (blanks, quotes, backslash; no expansion). -EINVAL. */
int list_add_words(struct list *list, const char *text, struct err *err);

/* ---- process.c ---------------------------------------------------------------- */
/*
 * Runs argv[0] and collects stderr and stdout in @output. Returns the exit status (128 + signal),
 * or -errno when it could not be started. @input: descriptor for stdin, -1: nothing.
 */
int process_run(char *const *argv, int input, struct buf *output);
/*
 * Between the two SIGINT and SIGTERM do not end us, so that no half-made file is left: they end
 * the compiler (process_run() returns -EINTR). The second gives back the mask and returns the
 * signal that came and is now forgotten, or 0.
 */
void process_hold_signals(sigset_t *old);
int process_release_signals(const sigset_t *old);

/* ---- cache.c ------------------------------------------------------------------- */
/* Where this run works: the cache folder, or a temporary one that goes at the end. */
struct workspace {
	char path[PATH_MAX - 128];
	bool temporary;
};
int workspace_open(struct workspace *ret, struct err *err);
void workspace_close(struct workspace *workspace); /* removes a temporary one */
/* A fresh name in the workspace for something that will be renamed. Nothing is created. */
void workspace_temporary(const struct workspace *workspace, char path[PATH_MAX]);
/* Deletes the longest unused entries above the size limit, and leftovers of killed runs. */
void workspace_trim(const struct workspace *workspace);
void workspace_touch(const char *path); /* "used now", for the trim */
/* Writes all of @data to @path by way of a temporary file in the same folder and rename. */
int write_by_rename(const char *path, const void *data, size_t size, struct err *err);
void remove_tree(const char *path);

/* ---- entry.c: objects in the cache ---------------------------------------------- */
struct entry_key {
	struct hash hash;  /* everything that is known before the compiler runs */
	uint64_t compiler; /* identity of the compiler, 0: none is installed */
};
/* 0 and the result, or -ENOENT. */
int entry_load(const struct workspace *workspace, const struct entry_key *key,
	       struct compile_result *ret);
/* @depfile: make rules of the compiler; files below @skip folders are part of the key already. */
void entry_store(const struct workspace *workspace, const struct entry_key *key,
		 const char *depfile, const char *source, const char *const *skip,
		 const struct compile_result *result);

/* ---- clang.c ------------------------------------------------------------------- */
/* Identity of the binary (path, size, time), without starting it. */
uint64_t compiler_identity(const char *path);
/* Path only, no process: 0 or -ENOENT with the hint in @err. */
int compiler_locate(char path[PATH_MAX], struct err *err);
/* Flags that depend on compiler and architecture, then the user's. */
int compiler_flags(const struct compile_compiler *compiler, const char *arch, const char *cflags,
		   struct list *ret, struct err *err);

/* ---- headers.c ------------------------------------------------------------------ */
struct headers {
	char duet[PATH_MAX];       /* folder of duet.h */
	char libc[PATH_MAX];       /* its folder of stdio.h ... */
	char bpf[PATH_MAX];        /* folder that contains libbpf's bpf/ */
	char vmlinux[PATH_MAX];    /* folder of vmlinux.h; "" until headers_make() */
	char libbpf_dir[PATH_MAX]; /* .../bpf itself */
	struct hash contents;      /* of duet's headers, libbpf's and the kernel types */
	struct hash stamp; /* contents, and the times of the files (a precompiled header's key) */
	struct hash btf;
};
/* Finds them; reads what is needed for the key only. */
int headers_find(const struct compile_options *options, const char *arch, struct headers *ret,
		 struct err *err);
/* Makes vmlinux.h and the folder of links in the workspace, where they are absent. */
int headers_make(const struct workspace *workspace, const struct compile_options *options,
		 const char *arch, struct headers *headers, struct err *err);
int headers_flags(const struct headers *headers, struct list *ret);

/* ---- pch.c ---------------------------------------------------------------------- */
enum pch_kind { PCH_NONE, PCH_DUET, PCH_VMLINUX };
/* Does the script start with `#include <duet.h>` or "vmlinux.h", nothing but comments before it?
 * @folder: of the script, where a quoted include looks first. */
enum pch_kind pch_wanted(const char *source, size_t size, const char *folder);
/* The precompiled header, made if absent. false: go on without. */
bool pch_make(const struct workspace *workspace, const struct compile_compiler *compiler,
	      const struct list *flags, const struct headers *headers, enum pch_kind kind,
	      char path[PATH_MAX]);

/* ---- messages.c ------------------------------------------------------------------ */
/*
 * One line for what went wrong. Returns true when it says everything (clang's text need not be
 * shown). @script: as clang calls it. @headers: folder of duet.h, for names that are near.
 */
bool message_from_clang(const char *output, const char *script, int status,
			const struct compile_compiler *compiler, const char *headers, char *text,
			size_t size);
