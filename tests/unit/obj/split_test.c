// SPDX-License-Identifier: BSD-2-Clause
/* The split, by what it makes of small scripts from every compiler. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "obj/split.h"

#include "compile.h"

struct fixture {
	struct buf bytes;
	struct obj *obj;
	struct split split;
	struct err err;
};

static void fixture_deinit(struct fixture *fixture)
{
	split_deinit(&fixture->split);
	obj_close(fixture->obj);
	buf_deinit(&fixture->bytes);
}

/* Compiles and splits; the code of obj_split(). */
static int make(struct fixture *fixture, const struct compiler *compiler, const char *source)
{
	compile(compiler, source, &fixture->bytes);
	if (obj_open(fixture->bytes.data, fixture->bytes.size, "script.o", &fixture->obj,
		     &fixture->err))
		fail_msg("%s: %s", compiler->name, fixture->err.text);
	return obj_split(fixture->obj, NULL, &fixture->split, &fixture->err);
}

static void must_split(struct fixture *fixture, const struct compiler *compiler, const char *source)
{
	if (make(fixture, compiler, source))
		fail_msg("%s: refused: %s", compiler->name, fixture->err.text);
}

/* Refused, of every compiler at one level, with a message that holds @text. */
static void must_refuse(const char *source, const char *text)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		int code;

		if (!compilers[i].gcc && !strstr(compilers[i].name, "v3"))
			continue;
		code = make(&fixture, &compilers[i], source);
		if (code != -EINVAL || !strstr(fixture.err.text, text))
			fail_msg("%s: %d, \"%s\", wanted \"%s\"", compilers[i].name, code,
				 fixture.err.text, text);
		assert_int_equal(fixture.err.code, -EINVAL);
		assert_null(fixture.split.kernel);
		assert_null(fixture.split.user);
	}
}

/* "function cmp", "data arr", "data \"text\"" ...: what a reference is to the script's author. */
static void describe(const struct user_half *user, const struct user_ref *ref, char *text,
		     size_t size)
{
	const struct user_data *data;

	switch (ref->kind) {
	case USER_REF_MAP:
		snprintf(text, size, "map %s", user->maps[ref->index].name);
		return;
	case USER_REF_FUNCTION:
		snprintf(text, size, "function %s", user->functions[ref->index].name);
		return;
	case USER_REF_EXTERN:
		snprintf(text, size, "extern %s", user->externs[ref->index].name);
		return;
	case USER_REF_HELPER:
		snprintf(text, size, "helper %u", ref->index);
		return;
	case USER_REF_PROGRAM:
		snprintf(text, size, "program %s", user->programs[ref->index].name);
		return;
	case USER_REF_DATA:
		break;
	}
	data = &user->data[ref->index];
	for (size_t i = 0; i < user->nvariables; i++) {
		const struct user_variable *variable = &user->variables[i];

		if (variable->data == ref->index && ref->addend >= variable->offset &&
		    ref->addend < (int64_t)variable->offset + variable->size) {
			snprintf(text, size, "data %s", variable->name);
			return;
		}
	}
	assert_true(data->initial && ref->addend >= 0 && ref->addend < data->size);
	snprintf(text, size, "text %s", (const char *)data->initial + ref->addend);
}

static bool has_ref(const struct user_half *user, const struct user_ref *refs, size_t count,
		    uint32_t from, uint32_t to, const char *wanted)
{
	char text[256];

	for (size_t i = 0; i < count; i++) {
		if (refs[i].at < from || refs[i].at >= to)
			continue;
		describe(user, &refs[i], text, sizeof(text));
		if (!strcmp(text, wanted))
			return true;
	}
	return false;
}

static const struct user_function *find_function(const struct user_half *user, const char *name)
{
	for (size_t i = 0; i < user->nfunctions; i++)
		if (!strcmp(user->functions[i].name, name))
			return &user->functions[i];
	return NULL;
}

static void function_refers(const struct compiler *compiler, const struct user_half *user,
			    const char *name, const char *wanted)
{
	const struct user_function *function = find_function(user, name);

	if (!function)
		fail_msg("%s: no function %s", compiler->name, name);
	if (!has_ref(user, user->refs, user->nrefs, function->first,
		     function->first + function->count, wanted))
		fail_msg("%s: %s does not refer to %s", compiler->name, name, wanted);
}

static bool function_calls(const struct user_half *user, const char *name, const char *callee)
{
	const struct user_function *function = find_function(user, name),
				   *target = find_function(user, callee);

	for (uint32_t i = 0; i < function->count; i++) {
		const struct bpf_insn *insn = &user->code[function->first + i];

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL &&
		    function->first + i + 1 + insn->imm == target->first)
			return true;
	}
	return false;
}

static const struct user_data *find_data(const struct user_half *user, const char *name)
{
	for (size_t i = 0; i < user->ndata; i++)
		if (!strcmp(user->data[i].name, name))
			return &user->data[i];
	return NULL;
}

static const struct user_variable *find_variable(const struct user_half *user, const char *name)
{
	for (size_t i = 0; i < user->nvariables; i++)
		if (!strcmp(user->variables[i].name, name))
			return &user->variables[i];
	return NULL;
}

static const char both_halves[] =
	"extern int printf(const char *, ...);\n"
	"extern int puts(const char *);\n"
	"extern int sort(void *, u64, u64, int (*)(const void *, const void *));\n"
	"extern void *stdout; extern int probe(void *);\n"
	"MAP(counts, 2, 4, u32, u64);\n"
	"MAP(unused, 2, 4, u32, u64);\n"
	"u64 total; const volatile u32 limit = 7; static u64 before[5]; u64 padding[3] = { 1, 2, 3 "
	"};\n"
	"static u64 twice[2] = { 5, 6 };\n"
	"static NOINLINE u64 shared(u64 v) { return v * 3 + limit; }\n"
	"static NOINLINE u64 user_only(u64 v) { return puts(\"only\") + v; }\n"
	"NOINLINE u64 global_one(u64 v) { return shared(v) + 2; }\n"
	"static NOINLINE int compare(const void *a, const void *b) { return *(const int *)a - "
	"*(const int *)b; }\n"
	"SEC(\"raw_tp/sys_enter\") int on_enter(void *ctx)\n"
	"{ u32 k = 0; u64 *v = lookup(&counts, &k); if (v) *v += shared(*v); total += "
	"global_one(3); return 0; }\n"
	"const char *const names[] = { \"one\", \"two\", \"three\" };\n"
	"void *things[] = { &counts, on_enter, &total, (void *)&stdout, (void *)puts, &before[2], "
	"&padding[1] };\n"
	"int (*const calls[])(const void *, const void *) = { compare };\n"
	"SEC(\"user/init\") int set_up(void *opts)\n"
	"{ u32 k = 1; before[0]++; twice[total & 1] = limit; return sort(before, 5, 8, compare) + "
	"(lookup(&counts, &k) != 0) +\n"
	"  printf(\"%d %s\\n\", limit, names[total & 1]) + probe(on_enter) + twice[1]; }\n"
	"SEC(\"user/exit\") NOINLINE int report(void *e)\n"
	"{ puts(names[1]); return user_only(total) + shared(1) + global_one(2) + (things[total & "
	"3] == stdout)\n"
	"  + padding[2] + (u64)calls[total & 1] + twice[0]; }\n"
	"const char lua_text[] SEC(\"lua/exit\") = \"print(1)\";\n"
	"SEC(\"user/exit\") int again(void *e) { return report(e) + 1; }\n"
	"#ifdef __clang__\n" /* to gcc's assembler a semicolon ends the line */
	"const char old_text[] SEC(\"UBPF-lua;perf_record_exit\") = \"print(2)\";\n"
	"SEC(\"UBPF;perf_record_start\") int old(void *c) { return 4; }\n"
	"#endif\n";

static void check_code(const struct compiler *compiler, const struct user_half *user)
{
	static const char *const functions[] = { "set_up",    "report",     "again",   "shared",
						 "user_only", "global_one", "compare", "old" };
	size_t count = compiler->gcc ? 7 : 8;

	assert_int_equal(user->nfunctions, count);
	for (size_t i = 0; i < count; i++)
		assert_non_null(find_function(user, functions[i]));
	function_refers(compiler, user, "set_up", "function compare");
	function_refers(compiler, user, "set_up", "extern sort");
	function_refers(compiler, user, "set_up", "extern printf");
	function_refers(compiler, user, "set_up", "map counts");
	function_refers(compiler, user, "set_up", "helper 1");
	function_refers(compiler, user, "set_up", "program on_enter");
	function_refers(compiler, user, "set_up", "data before");
	function_refers(compiler, user, "set_up", "data limit");
	function_refers(compiler, user, "set_up", "data twice");
	function_refers(compiler, user, "set_up", "text %d %s\n");
	function_refers(compiler, user, "report", "extern stdout");
	function_refers(compiler, user, "report", "data things");
	function_refers(compiler, user, "report", "data padding");
	function_refers(compiler, user, "user_only", "text only");
	assert_true(function_calls(user, "report", "user_only"));
	assert_true(function_calls(user, "report", "shared"));
	assert_true(function_calls(user, "report", "global_one"));
	assert_true(function_calls(user, "global_one", "shared"));
	assert_true(function_calls(user, "again", "report"));
}

static void check_hooks(const struct compiler *compiler, const struct user_half *user)
{
	uint32_t c = 0, lua = 0;

	for (size_t i = 0; i < user->nhooks; i++) {
		const struct user_hook *hook = &user->hooks[i];

		if (hook->lua) {
			assert_int_equal(hook->function, UINT32_MAX);
			assert_string_equal(hook->lua, !strcmp(hook->section, "lua/exit")
							       ? "print(1)"
							       : "print(2)");
			lua++;
		} else {
			assert_string_equal(user->functions[hook->function].name, hook->name);
			assert_int_not_equal(user->functions[hook->function].type, 0);
			c++;
		}
	}
	assert_int_equal(c, compiler->gcc ? 3 : 4);
	assert_int_equal(lua, compiler->gcc ? 1 : 2);
	/* Two of one section: in the order of the source. */
	for (size_t i = 0; i + 1 < user->nhooks; i++)
		if (!strcmp(user->hooks[i].name, "report"))
			assert_string_equal(user->hooks[i + 1].name, "again");
}

static void check_data(const struct compiler *compiler, const struct user_half *user)
{
	static const char *const things[] = { "map counts",    "program on_enter", "data total",
					      "extern stdout", "extern puts",      "data before",
					      "data padding" };
	static const char *const names[] = { "text one", "text two", "text three" };
	const struct user_variable *variable = find_variable(user, "things");
	const struct user_data *data = &user->data[variable->data];

	for (uint32_t i = 0; i < 7; i++)
		if (!has_ref(user, data->refs, data->nrefs, variable->offset + i * 8,
			     variable->offset + i * 8 + 1, things[i]))
			fail_msg("%s: things[%u] is not %s", compiler->name, i, things[i]);
	variable = find_variable(user, "names");
	data = &user->data[variable->data];
	for (uint32_t i = 0; i < 3; i++)
		if (!has_ref(user, data->refs, data->nrefs, variable->offset + i * 8,
			     variable->offset + i * 8 + 1, names[i]))
			fail_msg("%s: names[%u] is not %s", compiler->name, i, names[i]);
	variable = find_variable(user, "calls");
	data = &user->data[variable->data];
	assert_true(has_ref(user, data->refs, data->nrefs, variable->offset, variable->offset + 1,
			    "function compare"));
	/* &before[2] and &padding[1] keep their distance. */
	variable = find_variable(user, "things");
	data = &user->data[variable->data];
	for (size_t i = 0; i < data->nrefs; i++) {
		if (data->refs[i].at == variable->offset + 40)
			assert_int_equal(data->refs[i].addend,
					 find_variable(user, "before")->offset + 16);
		if (data->refs[i].at == variable->offset + 48)
			assert_int_equal(data->refs[i].addend,
					 find_variable(user, "padding")->offset + 8);
	}
	assert_true(find_data(user, ".bss")->in_kernel);
	assert_null(find_data(user, ".bss")->initial);
	assert_true(find_data(user, ".data")->in_kernel);
	assert_true(find_data(user, ".rodata")->in_kernel);
	assert_true(find_data(user, ".rodata")->readonly);
	assert_false(find_data(user, ".rodata.str1.1")->in_kernel);
	assert_true(find_data(user, ".rodata.str1.1")->readonly);
}

static void check_tables(const struct compiler *compiler, const struct user_half *user)
{
	const struct user_variable *limit = find_variable(user, "limit");

	assert_int_equal(user->nprograms, 1);
	assert_string_equal(user->programs[0].name, "on_enter");
	assert_string_equal(user->programs[0].section, "raw_tp/sys_enter");
	assert_int_equal(user->nmaps, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(user->maps[i].kernel_uses, !strcmp(user->maps[i].name, "counts"));
	assert_int_equal(limit->readonly, !compiler->gcc);
	assert_true(limit->is_volatile && !limit->is_static && limit->size == 4);
	assert_int_equal(
		*(const uint32_t *)((const char *)user->data[limit->data].initial + limit->offset),
		7);
	assert_true(find_variable(user, "before")->is_static);
	assert_int_equal(find_variable(user, "before")->size, 40);
	assert_false(find_variable(user, "total")->readonly);
	assert_int_equal(user->nexterns, 5);
	for (size_t i = 0; i < user->nexterns; i++) {
		assert_int_equal(user->externs[i].variable,
				 !strcmp(user->externs[i].name, "stdout"));
		assert_int_equal(user->externs[i].proto != 0, !user->externs[i].variable);
	}
}

static void script_is_taken_apart(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };

		must_split(&fixture, &compilers[i], both_halves);
		check_code(&compilers[i], fixture.split.user);
		check_hooks(&compilers[i], fixture.split.user);
		check_data(&compilers[i], fixture.split.user);
		check_tables(&compilers[i], fixture.split.user);
	}
}

static void instructions_know_their_lines(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		const struct user_function *function;
		struct obj_line line;

		must_split(&fixture, &compilers[i],
			   "extern int puts(const char *);\n"
			   "SEC(\"user/init\") int f(void *c)\n"
			   "{\n"
			   "	return puts(\"x\");\n"
			   "}\n");
		function = &fixture.split.user->functions[0];
		if (compilers[i].gcc) { /* bpf-gcc 12 writes no lines */
			assert_false(obj_line_of(
				fixture.obj, fixture.split.user->origin[function->first].section,
				fixture.split.user->origin[function->first].offset, &line));
			continue;
		}
		assert_true(obj_line_of(fixture.obj,
					fixture.split.user->origin[function->first].section,
					fixture.split.user->origin[function->first].offset, &line));
		assert_string_equal(line.file + strlen(line.file) - 8, "script.c");
		assert_int_equal(line.line, 4);
		assert_string_equal(line.text, "return puts(\"x\");");
		assert_false(obj_line_of(fixture.obj, 9999, 0, &line));
	}
}

static void notes_are_text(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		const struct user_half *user;

		must_split(&fixture, &compilers[i],
			   "extern int print(const char *);\n"
			   "const char first[] SEC(\".duet.group\") = \"g={a,b}\";\n"
			   "const char cut[3] SEC(\".duet.options\") = { 'a', 'b', 'c' };\n"
			   "SEC(\"user/exit\") int f(void *c)\n"
			   "{ static const char two[] SEC(\".duet.print\") = \"map\\0columns\"; "
			   "return print(two + 4); }\n");
		user = fixture.split.user;
		assert_int_equal(user->nnotes, 3);
		for (size_t n = 0; n < 3; n++) {
			const struct user_note *note = &user->notes[n];

			if (!strcmp(note->kind, "group")) {
				assert_string_equal(note->name, "first");
				assert_string_equal(note->text, "g={a,b}");
				assert_int_equal(note->size, 8);
			} else if (!strcmp(note->kind, "options")) {
				assert_string_equal(note->text, "abc");
				assert_int_equal(note->size, 4);
			} else {
				assert_string_equal(note->kind, "print");
				assert_memory_equal(note->text, "map\0columns", 12);
				assert_int_equal(note->size, 12);
			}
		}
		assert_false(find_data(user, ".duet.print")->in_kernel);
		assert_null(find_data(user, ".duet.group"));
		assert_int_equal(user->nprograms, 0);
	}
}

static void without_kernel_half_all_is_private(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		const struct user_half *user;

		must_split(&fixture, &compilers[i],
			   "int a, b = 3; const volatile int c = 4;\n"
			   "SEC(\"user/exit\") int f(void *x) { a += b; return c; }\n");
		user = fixture.split.user;
		/* gcc has no .rodata for volatile constants */
		assert_int_equal(user->ndata, compilers[i].gcc ? 2 : 3);
		for (size_t d = 0; d < user->ndata; d++)
			assert_false(user->data[d].in_kernel);
	}
}

static void plain_object_has_an_empty_user_half(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };
		const struct user_half *user;

		must_split(&fixture, &compilers[i],
			   "MAP(m, 2, 1, u32, u64); int seen;\n"
			   "SEC(\"raw_tp/sys_enter\") int p(void *x) { u32 k = 0; seen += "
			   "lookup(&m, &k) != 0; return 0; }\n");
		user = fixture.split.user;
		assert_int_equal(user->ncode + user->nhooks + user->nfunctions + user->nexterns, 0);
		assert_int_equal(user->nmaps, 1);
		assert_true(user->maps[0].kernel_uses);
		assert_non_null(find_variable(user, "seen"));
		assert_false(obj_user_needs_kernel_types(fixture.obj));
	}
}

static void wrong_scripts_are_refused(void **state)
{
	must_refuse("extern int printf(const char *, ...);\n"
		    "static NOINLINE int inner(int v) { return printf(\"x\") + v; }\n"
		    "static NOINLINE int charge(int v) { return inner(v) + 1; }\n"
		    "SEC(\"raw_tp/sys_enter\") int on_switch(void *c) { return charge(1); }\n",
		    "kernel program `on_switch` calls `printf` (through `charge`, `inner`), which "
		    "exists only in the user "
		    "half");
	must_refuse("SEC(\"user/exit\") NOINLINE int f(void *c) { return *(volatile int *)c; }\n"
		    "SEC(\"raw_tp/sys_enter\") int p(void *c) { return f(c); }\n",
		    "kernel program `p` calls `f`, which exists only in the user half");
	must_refuse("const char text[] SEC(\".duet.print\") = \"abc\";\n"
		    "SEC(\"raw_tp/sys_enter\") int p(void *c) { return *(volatile const char "
		    "*)text; }\n",
		    "kernel program `p` uses `text`, which exists only in the user half");
	must_refuse("int mine SEC(\"foo\");\n"
		    "SEC(\"raw_tp/sys_enter\") int p(void *c) { return mine; }\n",
		    "kernel program `p` uses `mine`, whose section the kernel half cannot have");
	must_refuse(
		"SEC(\"raw_tp/sys_enter\") NOINLINE int p(void *c) { return *(volatile int *)c; }\n"
		"SEC(\"user/exit\") int f(void *c) { return p(c); }\n",
		"user half: `f` calls `p`, which is a kernel program");
	must_refuse("static SEC(\"user/exit\") int f(void *c) { return 0; }\n",
		    "hook `f` is static");
	must_refuse("static SEC(\"raw_tp/sys_enter\") int f(void *c) { return 0; }\n",
		    "kernel program `f` is static");
	must_refuse("SEC(\"lua/exit\") int f(void *c) { return 0; }\n",
		    "section lua/exit: holds a function, not Lua text");
	must_refuse("const char x[] SEC(\"user/exit\") = \"print(1)\";\n",
		    "section user/exit: holds data, not a function");
	must_refuse("const char *x SEC(\"lua/exit\") = \"print(1)\";\n",
		    "section lua/exit: holds a pointer, not text");
	must_refuse("static int f(void) { return 0; } void *x SEC(\".init_array\") = f;\n",
		    "section .init_array: nothing");
	must_refuse(
		"static MAP(m, 2, 1, u32, u64);\n"
		"SEC(\"user/exit\") int f(void *c) { u32 k = 0; return lookup(&m, &k) != 0; }\n",
		"map `m`: static");
}

static void messages_name_the_line(void **state)
{
	for (size_t i = 0; i < ncompilers; i++) {
		CLEANUP(fixture_deinit) struct fixture fixture = { 0 };

		assert_int_equal(make(&fixture, &compilers[i],
				      "extern int printf(const char *, ...);\n"
				      "SEC(\"raw_tp/sys_enter\") int on_switch(void *c)\n"
				      "{\n"
				      "	return printf(\"x\");\n"
				      "}\n"),
				 -EINVAL);
		assert_non_null(strstr(fixture.err.text, compilers[i].gcc
								 ? "script.o: kernel program"
								 : "script.c:4: kernel program"));
	}
}

static void common_symbols_are_refused(void **state)
{
	static const struct compiler common = { "bpf-gcc -fcommon", "bpf-gcc -gbtf -O2 -fcommon",
						true };
	CLEANUP(fixture_deinit) struct fixture fixture = { 0 };

	compile(&common,
		"int shared_one; SEC(\"user/exit\") int f(void *c) { return shared_one; }\n",
		&fixture.bytes);
	assert_int_equal(
		obj_open(fixture.bytes.data, fixture.bytes.size, "x", &fixture.obj, &fixture.err),
		-EINVAL);
	assert_string_equal(fixture.err.text,
			    "x: variable `shared_one`: a common symbol: compile with -fno-common");
}

static void objects_without_btf_are_refused(void **state)
{
	static const struct compiler bare = { "clang-14, no -g", "clang-14 -target bpf -O2",
					      false };
	CLEANUP(fixture_deinit) struct fixture fixture = { 0 };

	assert_int_equal(make(&fixture, &bare, "SEC(\"user/exit\") int f(void *c) { return 0; }\n"),
			 -EINVAL);
	assert_string_equal(fixture.err.text, "script.o: no BTF: compile it with -g");
	assert_null(obj_types(fixture.obj));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(script_is_taken_apart),
		cmocka_unit_test(instructions_know_their_lines),
		cmocka_unit_test(notes_are_text),
		cmocka_unit_test(without_kernel_half_all_is_private),
		cmocka_unit_test(plain_object_has_an_empty_user_half),
		cmocka_unit_test(wrong_scripts_are_refused),
		cmocka_unit_test(messages_name_the_line),
		cmocka_unit_test(common_symbols_are_refused),
		cmocka_unit_test(objects_without_btf_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
