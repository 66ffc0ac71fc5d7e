// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "hook/heap.h"
#include "hook/hook.h"
#include "hook/internal.h"

/* ---- the private heap ---------------------------------------------------------------------- */
static void heap_gives_distinct_aligned_blocks(void **state)
{
	struct hook_heap *heap = hook_heap_create(1 << 20);
	uint8_t *blocks[64];
	size_t i;

	for (i = 0; i < 64; i++) {
		blocks[i] = hook_heap_alloc(heap, i * 7);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		assert_true(hook_heap_size(heap, blocks[i]) >= i * 7);
		memset(blocks[i], i, i * 7);
	}
	for (i = 1; i < 64; i++) {
		assert_int_equal(blocks[i][0], i);
		assert_int_equal(blocks[i][i * 7 - 1], i);
	}
	hook_heap_destroy(heap);
}

static void heap_refuses_what_it_did_not_give(void **state)
{
	struct hook_heap *heap = hook_heap_create(1 << 16);
	char *block = hook_heap_alloc(heap, 100);
	int outside;

	assert_false(hook_heap_free(heap, block + 16));
	assert_false(hook_heap_free(heap, &outside));
	assert_true(hook_heap_free(heap, block));
	assert_false(hook_heap_free(heap, block));
	assert_ptr_equal(hook_heap_alloc(heap, 100), block);
	assert_null(hook_heap_alloc(heap, 1 << 20));
	assert_null(hook_heap_alloc(heap, SIZE_MAX));
	hook_heap_destroy(heap);
}

/* ---- sections ------------------------------------------------------------------------------- */
static void sections_are_parsed(void **state)
{
	struct hook_program program = { 0 };
	struct err err = { 0 };

	assert_int_equal(hook_parse_section("user/interval/250ms", &program, &err), 0);
	assert_int_equal(program.kind, HOOK_INTERVAL);
	assert_int_equal(program.interval_ns, 250000000);
	program = (struct hook_program){ 0 };
	assert_int_equal(hook_parse_section("user/signal/USR1", &program, &err), 0);
	assert_int_equal(program.signal, SIGUSR1);
	program = (struct hook_program){ 0 };
	assert_int_equal(hook_parse_section("user/event/events", &program, &err), 0);
	assert_string_equal(program.parameter, "events");
	program = (struct hook_program){ 0 };
	assert_int_equal(hook_parse_section("UBPF;perf_record_exit", &program, &err), 0);
	assert_int_equal(program.kind, HOOK_EXIT);
	assert_true(program.ubpf);
}

static void bad_sections_are_refused(void **state)
{
	static const char *const bad[] = { "user/exti",       "user/event",
					   "user/event/",     "user/exit/x",
					   "user/interval/1", "user/interval/1ns",
					   "user/signal/XX",  "user/signal/KILL",
					   "UBPF;perf" };
	struct hook_program program;
	struct err err;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		program = (struct hook_program){ 0 };
		err = (struct err){ 0 };
		assert_int_equal(hook_parse_section(bad[i], &program, &err), -EINVAL);
		assert_non_null(strstr(err.text, bad[i]));
	}
	assert_int_equal(hook_parse_section("user/exti", &program, &err), -EINVAL);
	assert_non_null(strstr(err.text, "user/exit"));
}

static void durations_need_a_unit(void **state)
{
	assert_int_equal(hook_parse_duration("500us"), 500000);
	assert_int_equal(hook_parse_duration("1.5s"), 1500000000);
	assert_int_equal(hook_parse_duration("2m"), 120000000000);
	assert_int_equal(hook_parse_duration("7"), 0);
	assert_int_equal(hook_parse_duration("s"), 0);
	assert_int_equal(hook_parse_duration("-1s"), 0);
	assert_int_equal(hook_parse_duration("1h"), 0);
}

/* ---- the table of functions against the headers ---------------------------------------------- */
struct names {
	const char *wanted;
	bool found;
};

static void compare_name(void *context, const char *name, const char *theme)
{
	struct names *names = context;

	names->found |= !strcmp(names->wanted, name);
}

/* The word in front of the first '(' of an `extern ...;` line. */
static bool declared_function(char *line, char *name, size_t size)
{
	char *end = strchr(line, '('), *start = end;

	if (strncmp(line, "extern ", 7) || !end)
		return false;
	while (start > line && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
		start--;
	snprintf(name, size, "%.*s", (int)(end - start), start);
	return name[0] && strcmp(name, "SEC");
}

static void check_header(const char *path)
{
	struct buf text = { 0 };
	char *line, *rest = NULL, name[128];

	assert_int_equal(buf_read_file(&text, path, NULL), 0);
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct names names = { .wanted = name };

		if (!declared_function(line, name, sizeof(name)))
			continue;
		hook_list_functions(compare_name, &names);
		if (!names.found && !dlsym(RTLD_DEFAULT, name) && !strstr(path, "libc"))
			fail_msg("%s: %s() is declared and nobody has it", path, name);
	}
	buf_deinit(&text);
}

static void every_declared_function_exists(void **state)
{
	struct dirent *entry;
	DIR *folder = opendir(DUET_SOURCE_DIR "/include/duet");
	char path[1024];

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		size_t size = strlen(entry->d_name);

		if (size < 3 || strcmp(entry->d_name + size - 2, ".h"))
			continue;
		snprintf(path, sizeof(path), DUET_SOURCE_DIR "/include/duet/%s", entry->d_name);
		check_header(path);
	}
	closedir(folder);
}

static void helpers_have_names(void **state)
{
	assert_string_equal(hook_helper_name(1), "map_lookup_elem");
	assert_null(hook_helper_name(0x7fffffff));
	assert_non_null(hook_helper(5));
	assert_null(hook_helper(35)); /* bpf_get_current_task */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_gives_distinct_aligned_blocks),
		cmocka_unit_test(heap_refuses_what_it_did_not_give),
		cmocka_unit_test(sections_are_parsed),
		cmocka_unit_test(bad_sections_are_refused),
		cmocka_unit_test(durations_need_a_unit),
		cmocka_unit_test(every_declared_function_exists),
		cmocka_unit_test(helpers_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
