// SPDX-License-Identifier: BSD-2-Clause
/* The kernel image, judged by libbpf and by the kernel that runs the test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "base/buf.h"
#include "obj/split.h"

#include "compile.h"

struct fixture {
	struct buf bytes, kernel_bytes;
	struct obj *obj;
	struct types *kernel_types;
	struct split split;
	struct bpf_object *kernel;
	struct err err;
};

static void fixture_deinit(struct fixture *fixture)
{
	bpf_object__close(fixture->kernel);
	split_deinit(&fixture->split);
	obj_close(fixture->obj);
	types_close(fixture->kernel_types);
	buf_deinit(&fixture->bytes);
	buf_deinit(&fixture->kernel_bytes);
}

static char warnings[4096];

static int collect_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t used = strlen(warnings);

	if (level == LIBBPF_WARN)
		vsnprintf(warnings + used, sizeof(warnings) - used, format, args);
	return 0;
}

static int split(struct fixture *fixture, const struct compiler *compiler, const char *source)
{
	compile(compiler, source, &fixture->bytes);
	if (obj_open(fixture->bytes.data, fixture->bytes.size, "script.o", &fixture->obj,
		     &fixture->err))
		fail_msg("%s: %s", compiler->name, fixture->err.text);
	if (!buf_read_file(&fixture->kernel_bytes, "/sys/kernel/btf/vmlinux", &fixture->err))
		assert_int_equal(types_open(fixture->kernel_bytes.data, fixture->kernel_bytes.size,
					    &fixture->kernel_types, &fixture->err),
				 0);
	return obj_split(fixture->obj, fixture->kernel_types, &fixture->split, &fixture->err);
}

static void load(struct fixture *fixture, const struct compiler *compiler, const char *source)
{
	if (split(fixture, compiler, source))
		fail_msg("%s: refused: %s", compiler->name, fixture->err.text);
	warnings[0] = 0;
	fixture->kernel =
		bpf_object__open_mem(fixture->split.kernel, fixture->split.kernel_size, NULL);
	if (!fixture->kernel)
		fail_msg("%s: libbpf does not open it: %s", compiler->name, warnings);
	if (bpf_object__load(fixture->kernel))
		fail_msg("%s: libbpf does not load it: %s", compiler->name, warnings);
	/* That gcc writes no .BTF.ext functions is told, and harmless. */
	if (warnings[0] && !compiler->gcc)
		fail_msg("%s: %s", compiler->name, warnings);
}

/* Signed division came with the rest of v4. */
static bool kernel_takes(const struct compiler *compiler)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 7 },
		{ .code = BPF_ALU64 | BPF_DIV | BPF_K, .off = 1, .imm = 3 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int program;

	if (!strstr(compiler->name, "v4"))
		return true;
	program = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NULL, "GPL", insns, 3, NULL);
	if (program >= 0)
		close(program);
	return program >= 0;
}

static uint32_t map_btf_id(const struct bpf_map *map)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &size), 0);
	return info.btf_id;
}

static const char rich[] =
	"struct state; extern const struct state handle;\n"
	"extern int printf(const char *, ...); extern int sort(void *, int (*)(const void *, const "
	"void *));\n"
	"extern void *stdout; extern double ratio(u64, u64);\n"
	"extern const int missing WEAK;\n"
	"MAP(counts, 1, 4, u32, u64); MAP(user_side, 2, 1, u32, u64);\n"
	"u64 pad = 1, total = 2; u64 zero_pad, zero; static u64 hidden_one; const volatile u32 "
	"limit = 7, limit2 = 9;\n"
	"int custom SEC(\".data.mine\") = 3; int other SEC(\"foo/bar\") = 4;\n"
	"static NOINLINE u64 unused_in_kernel(u64 v) { return printf(\"x\") + v; }\n"
	"NOINLINE u64 add(u64 a) { return a + limit2; }\n"
	"static NOINLINE u64 twice(u64 a) { return add(a) * 2; }\n"
	"static NOINLINE long each(u32 i, void *sum) { *(u64 *)sum += i; return 0; }\n"
	"WEAK NOINLINE u64 also_unused(u64 v) { return printf(\"y\") * v; }\n"
	"static NOINLINE int compare(const void *a, const void *b) { return *(const int *)a - "
	"*(const int *)b; }\n"
	"SEC(\"raw_tp/sys_enter\") int on_enter(void *ctx)\n"
	"{ u32 k = 0; u64 *v = lookup(&counts, &k); if (v) *v += 1; total += twice(limit); zero += "
	"pad;\n"
	"  hidden_one += zero_pad; return 0; }\n"
	"SEC(\"raw_tp\") int flush(void *ctx)\n"
	"{ u64 sum = 0;\n"
	"#ifdef __clang__\n" /* a callback needs the func_info that bpf-gcc 12 does not write */
	"  loop(4, each, &sum, 0);\n"
	"#endif\n"
	"  total += add(sum); return 0; }\n"
	"void *table[] = { &counts, on_enter, (void *)&stdout, &total, compare, (void *)&limit2 "
	"};\n"
	"const char *const names[] = { \"one\", \"two\" };\n"
	"SEC(\"user/interval/1s\") int tick(void *c)\n"
	"{ static u64 last; last += total; u32 k = 0; sort(table, compare); custom++; other++;\n"
	"  return printf(names[total & 1], last) + unused_in_kernel(1) + also_unused(2) + "
	"(lookup(&user_side, &k) != 0)\n"
	"  + twice(3) + (table[total & 1] == &handle); }\n"
	"const char text[] SEC(\"lua/interval/1s\") = \"print(1)\";\n"
	"const char note[] SEC(\".duet.group\") = \"g={a}\";\n"
	"#ifdef __clang__\n"
	"const char text2[] SEC(\"UBPF-lua;perf_record_exit\") = \"print(2)\";\n"
	"#endif\n";

static void libbpf_and_kernel_take_the_image(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		struct bpf_program *program;
		struct bpf_map *map;
		size_t programs = 0, maps = 0;

		if (!kernel_takes(&compilers[i]))
			continue;
		load(&fixture, &compilers[i], rich);
		bpf_object__for_each_program (program, fixture.kernel) {
			assert_true(!strcmp(bpf_program__name(program), "on_enter") ||
				    !strcmp(bpf_program__name(program), "flush"));
			programs++;
		}
		assert_int_equal(programs, 2);
		bpf_object__for_each_map (map, fixture.kernel) {
			/* A refused BTF shows here: the map has none. */
			if (!map_btf_id(map))
				fail_msg("%s: map %s has no BTF", compilers[i].name,
					 bpf_map__name(map));
			maps++;
		}
		/* counts, user_side, .bss, .data, and (not gcc) .rodata; .data.mine is the user half's */
		assert_int_equal(maps, 5);
	}
}

/* Sets off on_enter and returns what it left in the data map that ends with @suffix. */
static uint64_t run_and_read(struct fixture *fixture, const char *suffix, const char *variable)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct bpf_program *program = bpf_object__find_program_by_name(fixture->kernel, "on_enter");
	const struct user_half *user = fixture->split.user;
	char value[256];
	uint32_t key = 0;
	struct bpf_map *map;

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(program), &options), 0);
	bpf_object__for_each_map (map, fixture->kernel) {
		const char *name = bpf_map__name(map);

		if (strlen(name) < strlen(suffix) ||
		    strcmp(name + strlen(name) - strlen(suffix), suffix))
			continue;
		assert_true(bpf_map__value_size(map) <= sizeof(value));
		assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(map), &key, value), 0);
		for (size_t i = 0; i < user->nvariables; i++)
			if (!strcmp(user->variables[i].name, variable) &&
			    !strcmp(user->data[user->variables[i].data].name, suffix))
				return *(uint64_t *)(value + user->variables[i].offset);
	}
	fail_msg("no %s in %s", variable, suffix);
	return 0;
}

/* Right addends: variables that are not first in their section, called functions likewise. */
static void image_computes_what_the_source_says(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };

		if (!kernel_takes(&compilers[i]))
			continue;
		load(&fixture, &compilers[i], rich);
		assert_int_equal(run_and_read(&fixture, ".data", "total"), 2 + (7 + 9) * 2);
		assert_int_equal(run_and_read(&fixture, ".data", "total"), 2 + (7 + 9) * 2 * 2);
		assert_int_equal(run_and_read(&fixture, ".bss", "zero"), 3);
	}
}

static void kernel_externs_stay(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		static const char source[] =
			"extern u32 LINUX_KERNEL_VERSION FROM(\".kconfig\");\n"
			"extern _Bool LINUX_HAS_BPF_COOKIE FROM(\".kconfig\");\n"
			"extern int not_used_by_kernel FROM(\".kconfig\") WEAK;\n"
			"extern const void bpf_prog_active FROM(\".ksyms\") WEAK;\n"
			"extern int printf(const char *, ...); u64 version, total;\n"
			"SEC(\"raw_tp/sys_enter\") int on_enter(void *ctx)\n"
			"{ version = LINUX_KERNEL_VERSION; if (&bpf_prog_active) total++;\n"
			"  return LINUX_HAS_BPF_COOKIE; }\n"
			"SEC(\"user/exit\") int f(void *c) { return printf(\"%llu\", version); }\n";

		if (compilers[i].gcc || !kernel_takes(&compilers[i]))
			continue; /* bpf-gcc 12 puts externs into no DATASEC */
		load(&fixture, &compilers[i], source);
		assert_true(run_and_read(&fixture, ".bss", "version") >= 5 << 16);
	}
}

static void kernel_externs_are_not_the_users(void **state)
{
	CLEANUP(fixture_deinit) struct fixture fixture = { 0 };

	assert_int_equal(split(&fixture, &compilers[0],
			       "extern u32 LINUX_KERNEL_VERSION FROM(\".kconfig\");\n"
			       "SEC(\"user/exit\") int f(void *c)\n"
			       "{ return LINUX_KERNEL_VERSION; }\n"),
			 -EINVAL);
	assert_non_null(
		strstr(fixture.err.text,
		       "script.c:3: user half: `f` uses `LINUX_KERNEL_VERSION`, which exists only "
		       "in the kernel half"));
}

static void objects_without_kernel_programs_load(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		struct bpf_map *map;
		size_t maps = 0;

		if (!kernel_takes(&compilers[i]))
			continue;
		load(&fixture, &compilers[i],
		     "MAP(m, 1, 4, u32, u64); int seen; extern int puts(const char *);\n"
		     "static NOINLINE int help(int v) { return puts(\"a\") + v; }\n"
		     "SEC(\"user/exit\") int f(void *c) { u32 k = 0; seen++; return help(3) + "
		     "(lookup(&m, &k) != 0); }\n");
		bpf_object__for_each_map (map, fixture.kernel)
			maps += map_btf_id(map) != 0;
		assert_int_equal(maps, 1);
	}
}

/*
 * CO-RE: the same function in both halves. libbpf relocates the kernel's, the split the user's, so
 * instruction by instruction they must agree.
 */
static void core_agrees_with_libbpf(void **state)
{
	static const char *const parts[] = {
		"struct sched_entity { u64 exec_start; } CORE;\n"
		"struct not_there { int x; } CORE;\n"
		"enum pid_type { PIDTYPE_PID, PIDTYPE_MAX = 77 };\n"
		"struct task_struct { int wrong[3]; int pid; void *mm; char comm[16]; struct "
		"sched_entity se; u64 nothing;\n"
		"  u32 before : 3, sched_migrated : 1; } CORE;\n"
		"struct task_struct___old { char wrong; int tgid; } CORE;\n",
		"{ struct task_struct *t = (void *)*(u64 *)ctx; u64 sum = 0;\n"
		"#define F(field, what) sum = sum * 3 + __builtin_preserve_field_info(field, "
		"what);\n"
		"  F(t->pid, 0) F(t->mm, 0) F(t->comm[3], 0) F(t->se.exec_start, 0)\n"
		"  F(t->nothing, 2) F(t->pid, 2) F(t->pid, 3)\n"
		"  F(t->sched_migrated, 0) F(t->sched_migrated, 1) F(t->sched_migrated, 4) "
		"F(t->sched_migrated, 5)\n"
		"  F(((struct task_struct___old *)t)->tgid, 0)\n"
		"  sum = sum * 3 + __builtin_preserve_type_info(*(struct task_struct *)0, 1);\n"
		"  sum = sum * 3 + __builtin_preserve_type_info(*(struct task_struct *)0, 0);\n"
		"  sum = sum * 3 + __builtin_preserve_type_info(*(struct not_there *)0, 0);\n"
		"  sum = sum * 3 + __builtin_preserve_enum_value(*(enum pid_type *)PIDTYPE_MAX, "
		"1);\n"
		"  sum = sum * 3 + __builtin_preserve_enum_value(*(enum pid_type *)PIDTYPE_MAX, "
		"0);\n"
		"  return sum >> 32 ^ sum; }\n",
	};
	char source[8192];

	snprintf(source, sizeof(source),
		 "%sSEC(\"raw_tp/sys_enter\") int in_kernel(void *ctx)\n%sSEC(\"user/exit\") int "
		 "in_user(void *ctx)\n%s",
		 parts[0], parts[1], parts[1]);
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		const struct bpf_insn *kernel;
		const struct user_half *user;
		struct bpf_program *program;

		if (compilers[i].gcc || !kernel_takes(&compilers[i]))
			continue; /* bpf-gcc 12 lacks the built-ins */
		load(&fixture, &compilers[i], source);
		assert_true(obj_user_needs_kernel_types(fixture.obj));
		user = fixture.split.user;
		program = bpf_object__find_program_by_name(fixture.kernel, "in_kernel");
		kernel = bpf_program__insns(program);
		assert_int_equal(bpf_program__insn_cnt(program), user->ncode);
		for (size_t n = 0; n < user->ncode; n++)
			if (memcmp(&kernel[n], &user->code[n], sizeof(*kernel)))
				fail_msg("%s: instruction %zu: code %#x off %d imm %#x, libbpf: "
					 "%#x %d %#x",
					 compilers[i].name, n, user->code[n].code,
					 user->code[n].off, user->code[n].imm, kernel[n].code,
					 kernel[n].off, kernel[n].imm);
	}
}

static void missing_fields_are_refused_by_name(void **state)
{
	static const char source[] =
		"struct task_struct { int pid; struct { int no_such_thing; } in[2]; } CORE;\n"
		"SEC(\"user/exit\") int f(struct task_struct *t)\n"
		"{\n"
		"	return t->in[1].no_such_thing;\n"
		"}\n";
	static const char guarded[] = "struct task_struct { int pid; u64 no_such_thing; } CORE;\n"
				      "SEC(\"user/exit\") int f(struct task_struct *t)\n"
				      "{ return __builtin_preserve_field_info(t->no_such_thing, 2) "
				      "? t->no_such_thing : -7; }\n";

	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		CLEANUP(fixture_deinit) struct fixture second = { 0 };

		assert_int_equal(split(&fixture, &compilers[i], source), -EINVAL);
		if (!strstr(fixture.err.text, "field struct task_struct.in[1].no_such_thing: this "
					      "kernel's type has no such "
					      "member"))
			fail_msg("%s: %s", compilers[i].name, fixture.err.text);
		if (!compilers[i].gcc)
			assert_non_null(strstr(fixture.err.text, "script.c:4: "));
		if (!compilers[i].gcc)
			assert_int_equal(split(&second, &compilers[i], guarded), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libbpf_and_kernel_take_the_image),
		cmocka_unit_test(image_computes_what_the_source_says),
		cmocka_unit_test(kernel_externs_stay),
		cmocka_unit_test(kernel_externs_are_not_the_users),
		cmocka_unit_test(objects_without_kernel_programs_load),
		cmocka_unit_test(core_agrees_with_libbpf),
		cmocka_unit_test(missing_fields_are_refused_by_name),
	};

	libbpf_set_print(collect_warnings);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
