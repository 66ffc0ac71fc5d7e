/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: one file per command, one row per command in main.c. Only here is anything
 * printed about failures, once, as `duet: what: why: hint`, and only here an exit status is made.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
	CLI_OK = 0,
	CLI_FAILURE = 1, /* ours, or a hook's */
	CLI_USAGE = 2,
};

struct cli_command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the status */
	const char *synopsis, *summary;
};

extern const struct cli_command cli_commands[];

int cli_run(int argc, char **argv);
int cli_build(int argc, char **argv);
int cli_cflags(int argc, char **argv);
int cli_new(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_asm(int argc, char **argv);
int cli_dis(int argc, char **argv);

/* Prints the error and returns CLI_FAILURE, or CLI_USAGE with a pointer to --help. */
int cli_fail(const struct err *err);
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* SCRIPT as an object: a `.c` is compiled (or found in the cache), a `.s` assembled, a `.o` read,
 * `-` is C on standard input, any other name is a shipped tool. */
struct cli_script_options {
	const char *cflags;          /* --cflags, NULL: none */
	const char *arch, *btf_path; /* NULL: this machine's */
	bool explain;                /* -v: the compiler's own words too */
};
int cli_load_script(const char *script, const struct cli_script_options *options, struct buf *ret,
		    struct err *err);
/* An object of assembler text: a file, or `-`. */
int cli_assemble(const char *source, struct buf *ret, struct err *err);
/* For compile/: vmlinux.h of @btf_path, or of this machine (NULL). */
int cli_write_vmlinux(void *context, const char *btf_path, int fd, struct err *err);
/* Folders of shipped tools and headers beside the executable; "" when there is none. */
int cli_data_folder(const char *name, char *path, size_t size);

/* "2", "1.5" seconds, or with a unit: -d. 0: wrong. */
uint64_t cli_parse_seconds(const char *text);
/* "100" ms, or with a unit: -I. 0: wrong. */
uint64_t cli_parse_milliseconds(const char *text);
