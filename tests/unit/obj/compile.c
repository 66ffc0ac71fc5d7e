// SPDX-License-Identifier: BSD-2-Clause
#include "compile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define CLANG "-target bpf -g -O2 -fno-builtin -Wall -Werror -Wno-unused"

const struct compiler compilers[] = {
	{ "clang-14 v1", "clang-14 " CLANG " -mcpu=v1", false },
	{ "clang-14 v2", "clang-14 " CLANG " -mcpu=v2", false },
	{ "clang-14 v3", "clang-14 " CLANG " -mcpu=v3", false },
	{ "clang-19 v1", "clang-19 " CLANG " -mcpu=v1", false },
	{ "clang-19 v3", "clang-19 " CLANG " -mcpu=v3", false },
	{ "clang-19 v4", "clang-19 " CLANG " -mcpu=v4", false },
	/* mcpu=v3 by itself has no indirect calls */
	{ "bpf-gcc", "bpf-gcc -gbtf -mco-re -O2 -fno-builtin -fno-toplevel-reorder -Wno-attributes",
	  true },
};
const size_t ncompilers = sizeof(compilers) / sizeof(compilers[0]);

static const char prelude[] =
	"typedef unsigned char u8; typedef unsigned int u32; typedef int s32;\n"
	"typedef unsigned long long u64; typedef long long s64;\n"
	"#define SEC(n) __attribute__((section(n), used))\n"
	"#define FROM(n) __attribute__((section(n)))\n"
	"#define NOINLINE __attribute__((noinline))\n"
	"#define WEAK __attribute__((weak))\n"
	"#define MAP(name, kind, n, K, V) struct { int (*type)[kind]; int (*max_entries)[n]; K "
	"*key; V *value; } "
	"name SEC(\".maps\")\n"
	"#ifdef __clang__\n"
	"static void *(*lookup)(void *, const void *) = (void *)1;\n"
	"static long (*printk)(const char *, u32, ...) = (void *)6;\n"
	"static long (*loop)(u32, void *, void *, u64) = (void *)181;\n"
	"#else\n"
	"void *lookup(void *, const void *) __attribute__((kernel_helper(1)));\n"
	"long printk(const char *, u32, ...) __attribute__((kernel_helper(6)));\n"
	"long loop(u32, void *, void *, u64) __attribute__((kernel_helper(181)));\n"
	"#endif\n"
	"#define CORE __attribute__((preserve_access_index))\n"
	"char _license[] SEC(\"license\") = \"GPL\";\n";

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* Where DUET_TEST_OBJECTS keeps what this compiler makes of this source, false: nowhere. */
static bool kept_path(const struct compiler *compiler, const char *source, char *path, size_t size)
{
	const char *folder = getenv("DUET_TEST_OBJECTS");
	const char *const texts[] = { compiler->command, prelude, source };
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	if (!folder)
		return false;
	for (size_t i = 0; i < 3; i++)
		for (const char *at = texts[i]; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	snprintf(path, size, "%s/%016llx.o", folder, (unsigned long long)hash);
	return true;
}

static int run_compiler(const struct compiler *compiler, const char *folder)
{
	char command[512];
	FILE *output;

	snprintf(command, sizeof(command),
		 "cd %s && %s -include prelude.h -c script.c -o script.o 2>&1", folder,
		 compiler->command);
	output = popen(command, "r");
	assert_non_null(output);
	for (char line[256]; fgets(line, sizeof(line), output);)
		print_message("%s: %s", compiler->name, line);
	return pclose(output);
}

void compile(const struct compiler *compiler, const char *source, struct buf *ret)
{
	char folder[] = "/tmp/duet-obj.XXXXXX", kept[256], command[512];
	struct err err = { 0 };
	int status;
	bool keep = kept_path(compiler, source, kept, sizeof(kept));

	if (keep && !access(kept, R_OK)) {
		assert_int_equal(buf_read_file(ret, kept, &err), 0);
		return;
	}
	assert_non_null(mkdtemp(folder));
	write_file(folder, "prelude.h", prelude);
	write_file(folder, "script.c", source);
	status = run_compiler(compiler, folder);
	snprintf(command, sizeof(command), "%s/script.o", folder);
	if (!status && buf_read_file(ret, command, &err))
		print_message("%s\n", err.text);
	if (keep && !status)
		snprintf(command, sizeof(command), "mv %s/script.o %s && rm -r %s", folder, kept,
			 folder);
	else
		snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(status, 0);
	assert_int_equal(err.code, 0);
}
