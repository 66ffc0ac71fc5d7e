// SPDX-License-Identifier: BSD-2-Clause
/*
 * Objects cut at every 64-byte boundary, and with every byte of their headers, symbols,
 * relocations, BTF and BTF.ext corrupted in turn: each is accepted, or refused with one message.
 *
 *	object_mutate			objects of every compiler, as a test
 *	object_mutate FILE.o		that object
 *	object_mutate FILE.o AT PATTERN	one mutation (what a failure names), for a debugger
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"

#include "compile.h"
#include "object_check.h"

enum pattern { PATTERN_ZERO, PATTERN_ONES, PATTERN_LOW, PATTERN_HIGH, NPATTERNS, PATTERN_CUT };

/* Shared with the child that does the work, so that its death tells where. */
struct progress {
	size_t at;
	enum pattern pattern;
	size_t accepted, refused;
};

static const char script[] =
	"extern int printf(const char *, ...); extern int sort(void *, int (*)(const void *, const "
	"void *));\n"
	"extern void *stdout; extern u32 LINUX_KERNEL_VERSION FROM(\".kconfig\");\n"
	"MAP(counts, 1, 4, u32, u64); struct pair { u32 a : 3, b : 9; u64 c; } pair;\n"
	"enum kind { KIND_A, KIND_B } kind; typedef struct pair pair_t; pair_t pairs[3];\n"
	"u64 total = 2; static u64 hidden; const volatile u32 limit = 7; int custom "
	"SEC(\".data.mine\") = 3;\n"
	"struct task_struct { int pid; void *mm; } CORE;\n"
	"static NOINLINE u64 user_only(u64 v) { return printf(\"x\") + v; }\n"
	"static NOINLINE u64 twice(u64 a) { return a * 2 + limit; }\n"
	"static NOINLINE int compare(const void *a, const void *b) { return *(const int *)a - "
	"*(const int *)b; }\n"
	"SEC(\"raw_tp/sys_enter\") int on_enter(struct task_struct *t)\n"
	"{ u32 k = 0; u64 *v = lookup(&counts, &k); if (v) *v += t->pid; total += twice(limit); "
	"hidden++;\n"
	"#ifdef __clang__\n"
	"  total += LINUX_KERNEL_VERSION;\n"
	"#endif\n"
	"  pair.b = 3; kind = KIND_B; return 0; }\n"
	"void *table[] = { &counts, on_enter, (void *)&stdout, &total, compare };\n"
	"const char *const names[] = { \"one\", \"two\" };\n"
	"SEC(\"user/interval/1s\") int tick(void *c)\n"
	"{ sort(table, compare); custom++; pairs[total & 1].c++;\n"
	"  return printf(names[total & 1], hidden) + user_only(1) + twice(3); }\n"
	"const char text[] SEC(\"lua/exit\") = \"print(1)\";\n"
	"const char note[] SEC(\".duet.group\") = \"g={a}\";\n";

static void mutate(const struct buf *object, size_t at, enum pattern pattern,
		   struct progress *progress)
{
	/* Of exactly the size, so that the sanitizer sees every byte too many. */
	size_t size = pattern == PATTERN_CUT ? at : object->size;
	CLEANUP(free_pointer) char *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, object->data, size);
	switch (pattern) {
	case PATTERN_ZERO:
		copy[at] = 0;
		break;
	case PATTERN_ONES:
		copy[at] = 0xff;
		break;
	case PATTERN_LOW:
		copy[at] ^= 1;
		break;
	case PATTERN_HIGH:
		copy[at] ^= 0x80;
		break;
	default:
		break;
	}
	progress->at = at;
	progress->pattern = pattern;
	if (object_check(copy, size))
		progress->accepted++;
	else
		progress->refused++;
}

/* Sections whose bytes are structure, not content. */
static bool is_structure(const Elf64_Shdr *section, const char *name)
{
	if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_STRTAB)
		return true;
	if (!strncmp(name, ".rel.debug", 10) || !strncmp(name, ".rel.BTF", 8))
		return false;
	return section->sh_type == SHT_REL || !strcmp(name, ".BTF") || !strcmp(name, ".BTF.ext") ||
	       (section->sh_flags & SHF_EXECINSTR);
}

static void mutate_range(const struct buf *object, size_t from, size_t size,
			 struct progress *progress)
{
	for (size_t at = from; at < from + size; at++)
		for (int pattern = 0; pattern < NPATTERNS; pattern++)
			mutate(object, at, pattern, progress);
}

static void mutate_all(const struct buf *object, struct progress *progress)
{
	const Elf64_Ehdr *header = (const void *)object->data;
	const Elf64_Shdr *sections = (const void *)(object->data + header->e_shoff);
	const char *names = object->data + sections[header->e_shstrndx].sh_offset;

	if (!object_check(object->data, object->size))
		abort(); /* the sound one */
	for (size_t at = 0; at < object->size; at += 64)
		mutate(object, at, PATTERN_CUT, progress);
	mutate_range(object, 0, sizeof(*header), progress);
	mutate_range(object, header->e_shoff, header->e_shnum * sizeof(*sections), progress);
	for (int i = 1; i < header->e_shnum; i++)
		if (sections[i].sh_type != SHT_NOBITS &&
		    is_structure(&sections[i], names + sections[i].sh_name))
			mutate_range(object, sections[i].sh_offset, sections[i].sh_size, progress);
}

/* In a child: a crash of libbpf is a failure like any other. */
static bool survives(const struct buf *object, const char *name)
{
	struct progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	if (progress == MAP_FAILED)
		abort();
	fflush(NULL);
	child = fork();
	if (!child) {
		mutate_all(object, progress);
		exit(0); /* where the sanitizer looks for leaks */
	}
	waitpid(child, &status, 0);
	printf("# %s: %zu accepted, %zu refused\n", name, progress->accepted, progress->refused);
	if (status)
		printf("# %s: died (status %#x) at byte %#zx, pattern %d\n", name, status,
		       progress->at, progress->pattern);
	munmap(progress, sizeof(*progress));
	return !status;
}

static void objects_survive(void **state)
{
	bool all = true;

	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(buf_deinit) struct buf object = { 0 };

		if (!compilers[i].gcc && strcmp(compilers[i].name, "clang-14 v3") &&
		    strcmp(compilers[i].name, "clang-19 v4"))
			continue;
		compile(&compilers[i], script, &object);
		all &= survives(&object, compilers[i].name);
	}
	assert_true(all);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(objects_survive) };
	CLEANUP(buf_deinit) struct buf object = { 0 };
	struct progress progress = { 0 };
	struct err err = { 0 };

	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	if (buf_read_file(&object, argv[1], &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (argc == 4)
		mutate(&object, strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0), &progress);
	else
		return !survives(&object, argv[1]);
	printf("%s\n", progress.accepted ? "accepted" : "refused");
	return 0;
}
