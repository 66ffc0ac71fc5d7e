// SPDX-License-Identifier: BSD-2-Clause
/*
 * duet.h's kernel half in a kernel: inline.c is compiled by each clang, loaded, and its programs
 * run by BPF_PROG_TEST_RUN; results come back in global variables.
 *
 *	headers_test		compile, load, run
 *	headers_test OBJECT...	the same with objects that are compiled already (in a guest)
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include <duet/shared.h>

#include "compile/compile.h"

struct script {
	const char *path;
	int clang; /* 0: path is an object */
	struct bpf_object *object;
	int events[2];
};

/* ---- the object -------------------------------------------------------------------- */

static int write_vmlinux(void *context, const char *btf_path, int fd, struct err *err)
{
	char command[300];
	int status;

	snprintf(command, sizeof(command),
		 "PATH=/usr/sbin:/usr/bin:/bin bpftool btf dump file /sys/kernel/btf/vmlinux "
		 "format c "
		 ">/proc/%d/fd/%d",
		 getpid(), fd);
	status = system(command);
	return status ? err_set(err, -EIO, "bpftool failed") : 0;
}

static struct bpf_object *open_script(const struct script *script)
{
	struct compile_options options = { .path = script->path, .write_vmlinux = write_vmlinux };
	struct compile_result result = { 0 };
	struct err err = { 0 };
	struct bpf_object *object;
	char name[16];

	if (!script->clang)
		return bpf_object__open(script->path);
	snprintf(name, sizeof(name), "clang-%d", script->clang);
	setenv("DUET_CLANG", name, 1);
	if (compile_script(&options, &result, &err)) {
		print_error("%s: %s\n", name, err.text);
		return NULL;
	}
	if (result.diagnostics.size)
		print_error("%s", result.diagnostics.data);
	assert_int_equal(result.diagnostics.size, 0); /* the headers cause no warning */
	object = bpf_object__open_mem(result.object.data, result.object.size, NULL);
	compile_result_deinit(&result);
	return object;
}

/* A software event on CPU 0 into slot 0 of a PMU() map. */
static int open_event(struct bpf_object *object, const char *map, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	uint32_t zero = 0;

	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, map), &zero, &fd, BPF_ANY))
		return -errno;
	return fd;
}

static int load(void **state)
{
	struct script *script = *state;
	struct bpf_program *program;

	script->object = open_script(script);
	if (!script->object)
		return -1;
	bpf_object__for_each_program (program, script->object) {
		if (!strncmp(bpf_program__section_name(program), "user/", 5))
			bpf_program__set_autoload(program, false);
	}
	if (bpf_object__load(script->object))
		return -1;
	script->events[0] = open_event(script->object, "faults", PERF_COUNT_SW_PAGE_FAULTS);
	script->events[1] = open_event(script->object, "task_time", PERF_COUNT_SW_CPU_CLOCK);
	return script->events[0] < 0 || script->events[1] < 0 ? -1 : 0;
}

static int unload(void **state)
{
	struct script *script = *state;

	close(script->events[0]);
	close(script->events[1]);
	bpf_object__close(script->object);
	script->object = NULL;
	return 0;
}

/* The value of a global variable, read and written through its data map. */
static uint64_t variable(struct script *script, const char *name, size_t offset,
			 const uint64_t *set)
{
	const struct btf *btf = bpf_object__btf(script->object);
	static const char *const sections[] = { ".bss", ".data" };
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < 2; i++) {
		int id = btf__find_by_name_kind(btf, sections[i], BTF_KIND_DATASEC);
		const struct btf_type *section = btf__type_by_id(btf, id < 0 ? 0 : id);
		const struct btf_var_secinfo *info;
		struct bpf_map *map;
		size_t j, size;
		char *data;
		uint32_t zero = 0;

		if (id < 0)
			continue;
		info = btf_var_secinfos(section);
		for (j = 0; j < btf_vlen(section); j++) {
			const struct btf_type *type = btf__type_by_id(btf, info[j].type);

			if (strcmp(btf__name_by_offset(btf, type->name_off), name))
				continue;
			bpf_object__for_each_map (map, script->object) {
				const char *at = strstr(bpf_map__name(map), sections[i]);

				if (!at || strcmp(at, sections[i]))
					continue;
				size = bpf_map__value_size(map);
				data = malloc(size);
				bpf_map_lookup_elem(bpf_map__fd(map), &zero, data);
				if (set) {
					memcpy(data + info[j].offset + offset, set, 8);
					bpf_map_update_elem(bpf_map__fd(map), &zero, data, BPF_ANY);
				}
				memcpy(&value, data + info[j].offset + offset, 8);
				free(data);
				return value;
			}
		}
	}
	fail_msg("no variable %s", name);
	return 0;
}

#define GET(name, offset)        variable(script, name, offset, NULL)
#define RESULT(i)                GET("result", (i)*8)
#define ERROR(i)                 ((int64_t)GET("error", (i)*8))
#define SET(name, offset, value) variable(script, name, offset, &(uint64_t){ value })
#define STAT(member)             GET("calls_stats", offsetof(struct duet_call_stats, member))

static void run(struct script *script, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(script->object, name);
	uint64_t context[8] = { 5 };
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = sizeof(context),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = 0);

	assert_non_null(program);
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(program), &options), 0);
}

/* ---- cases --------------------------------------------------------------------------- */

static void test_division(void **state)
{
	static const int64_t pairs[][2] = {
		{ 7, 2 }, { -7, 2 },        { 7, -2 },        { -7, -2 },
		{ 0, 5 }, { INT64_MIN, 3 }, { 1, INT64_MIN },
	};
	struct script *script = *state;
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		SET("input", 0, pairs[i][0]);
		SET("divisor", 0, pairs[i][1]);
		run(script, "numbers");
		assert_int_equal((int64_t)RESULT(1), pairs[i][0] / pairs[i][1]);
		assert_int_equal((int64_t)RESULT(2), pairs[i][0] % pairs[i][1]);
	}
	SET("divisor", 0, 0);
	run(script, "numbers");
	assert_int_equal(RESULT(1), 0);
	assert_int_equal(RESULT(2), 1);
	assert_int_equal(RESULT(3), 1); /* in_target(): everybody */
}

static void test_histogram(void **state)
{
	struct script *script = *state;
	uint64_t before = GET("hist", offsetof(struct hist, n)), sum;
	int bit;

	for (bit = 0; bit < 63; bit++) {
		SET("input", 0, 1ULL << bit);
		run(script, "numbers");
		assert_int_equal(RESULT(0), bit);
		SET("input", 0, (2ULL << bit) - 1);
		run(script, "numbers");
		assert_int_equal(RESULT(0), bit);
	}
	sum = GET("hist", offsetof(struct hist, sum));
	SET("input", 0, -5);
	run(script, "numbers");
	assert_int_equal(RESULT(0), 0);
	assert_int_equal(GET("hist", offsetof(struct hist, sum)), sum - 5);
	assert_int_equal(GET("hist", offsetof(struct hist, n)), before + 2 * 63 + 1);
}

/* The same in floating point with 64 bits of mantissa. */
static void check_scaling(struct script *script, int64_t count, uint64_t enabled, uint64_t running)
{
	long double exact = (long double)count * enabled / running, got, bound;

	SET("sum", 0, count);
	SET("sum", 8, enabled);
	SET("sum", 16, running);
	run(script, "scaled");
	got = (int64_t)RESULT(0);
	bound = (exact < 0 ? -exact : exact) / (1 << 27) + 1;
	if (got < exact - bound || got > exact + bound)
		fail_msg("%lld * %llu / %llu: %.1Lf instead of %.1Lf", (long long)count,
			 (unsigned long long)enabled, (unsigned long long)running, got, exact);
}

static void test_scaling(void **state)
{
	struct script *script = *state;
	uint64_t hour = 3600ULL * 1000000000;

	check_scaling(script, 1000, 500, 500);
	check_scaling(script, 1000, 1000, 500);
	check_scaling(script, -1000, 1000, 500);
	check_scaling(script, 7, 3, 2);
	check_scaling(script, 100000000000000, 24 * hour, 18 * hour);
	check_scaling(script, 100000000000000, 24 * 365 * hour, 24 * 365 * hour / 16);
	check_scaling(script, 0xffffffffffff, 0xffffffff, 0x80000001);
	check_scaling(script, -123456789, 2 * hour, hour + 1);
	SET("sum", 0, 12345);
	SET("sum", 8, 1000);
	SET("sum", 16, 0);
	run(script, "scaled");
	assert_int_equal(RESULT(0), ~0ULL);
	SET("sum", 16, 0);
}

static void test_laps(void **state)
{
	struct script *script = *state;
	size_t i;

	for (i = 0; i < 24; i += 8)
		SET("sum", i, 0);
	run(script, "counters");
	assert_int_equal(ERROR(0), 0);
	assert_true(ERROR(1) == -EAGAIN); /* nothing to subtract from */
	run(script, "counters");
	assert_int_equal(ERROR(1), 0);
	assert_true(GET("sum", 16) > 0);
}

static void test_map_at_counts_what_did_not_fit(void **state)
{
	struct script *script = *state;
	struct bpf_map *map, *data = NULL;
	const struct duet_failure *failure;
	uint64_t full = 0, ring = 0;
	char buffer[512];
	uint32_t zero = 0;
	size_t at;
	int i;

	for (i = 0; i < 10; i++) {
		SET("input", 0, i);
		run(script, "lookups");
	}
	bpf_object__for_each_map (map, script->object) {
		if (!strcmp(bpf_map__name(map), ".data.duet"))
			data = map;
	}
	assert_non_null(data);
	assert_true(bpf_map__value_size(data) <= sizeof(buffer));
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(data), &zero, buffer), 0);
	for (at = 0; at < bpf_map__value_size(data); at += sizeof(*failure) + failure->size) {
		const char *name;

		failure = (const struct duet_failure *)(buffer + at);
		name = (const char *)(failure + 1);
		if (!strcmp(name, "&by_pid")) {
			assert_int_equal(failure->kind, DUET_FAILURE_FULL);
			full += failure->failed;
		} else if (!strcmp(name, "&ring")) {
			assert_int_equal(failure->kind, DUET_FAILURE_RING);
			ring += failure->failed;
		}
	}
	assert_int_equal(full, 6); /* 4 of 10 fit */
	assert_true(ring > 0);
}

/* Opens and ends calls; everything lies in this thread's storage. */
static void test_calls(void **state)
{
	struct script *script = *state;
	int i;

	SET("input", 0, 100);
	run(script, "leave");
	assert_true(ERROR(0) == -ENOENT);
	assert_int_equal(STAT(no_entry), 1);
	run(script, "enter"); /* no base on this CPU yet */
	assert_true(ERROR(0) == -EAGAIN);
	run(script, "leave");
	assert_true(ERROR(0) < 0);
	assert_int_equal(STAT(no_value), 1);
	assert_int_equal(GET("delta", 16), 0);

	run(script, "prime");
	run(script, "enter");
	assert_int_equal(ERROR(0), 0);
	run(script, "leave");
	assert_int_equal(ERROR(0), 0);
	assert_true(GET("delta", 16) > 0);
	assert_int_equal(GET("delta", 8), GET("delta", 16));
	run(script, "enter2");
	assert_int_equal(ERROR(0), 0);
	run(script, "leave2");
	assert_int_equal(ERROR(0), 0);
	assert_true(GET("other", 0) > 0); /* the clock went on */
	assert_int_equal(STAT(entered), 3);
	assert_int_equal(STAT(left), 3);

	for (i = 0; i < DUET_CALL_DEPTH + 2; i++) {
		SET("input", 0, 1000 + i);
		run(script, "enter");
		if (i >= DUET_CALL_DEPTH)
			assert_true(ERROR(0) == -E2BIG);
		else
			assert_int_equal(ERROR(0), 0);
	}
	assert_int_equal(STAT(too_deep), 2);
	for (i = 0; i < 2; i++) {
		run(script, "leave");
		assert_true(ERROR(0) == -E2BIG);
	}
	SET("input", 0, 1003); /* the returns of twelve inner calls were missed */
	run(script, "leave_ip");
	assert_int_equal(ERROR(0), 0);
	assert_int_equal(STAT(unmatched), DUET_CALL_DEPTH - 4);
	SET("input", 0, 77);
	run(script, "leave_ip");
	assert_true(ERROR(0) == -ENOENT);
	for (i = 0; i < 3; i++) {
		run(script, "leave");
		assert_int_equal(ERROR(0), 0);
	}
	run(script, "leave");
	assert_true(ERROR(0) == -ENOENT);
	assert_int_equal(STAT(entered), STAT(left) + STAT(unmatched));
}

static void test_one_of_two_counters(void **state)
{
	struct script *script = *state;
	int map = bpf_object__find_map_fd_by_name(script->object, "faults");
	uint32_t zero = 0;

	assert_int_equal(bpf_map_delete_elem(map, &zero), 0); /* not supported from here on */
	run(script, "enter2");
	assert_int_equal(ERROR(0), 0);
	run(script, "leave2");
	assert_int_equal(ERROR(0), 0);
	assert_int_equal(GET("delta", 16), 0);
	assert_true(GET("other", 16) > 0);
	run(script, "counters");
	assert_true(ERROR(0) == -ENOENT);
	assert_int_equal(ERROR(1), 0); /* pmu_lap(): not counted, the rest of the script goes on */
	assert_int_equal(RESULT(0), ~0ULL);
	run(script, "enter");
	assert_true(ERROR(0) == -ENOENT);
	run(script, "leave");
	assert_true(ERROR(0) == -ENOENT);
	run(script, "on_stack");
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int test_script(const char *path, int clang)
{
	struct script script = { .path = path, .clang = clang };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_division, &script),
		cmocka_unit_test_prestate(test_histogram, &script),
		cmocka_unit_test_prestate(test_scaling, &script),
		cmocka_unit_test_prestate(test_laps, &script),
		cmocka_unit_test_prestate(test_map_at_counts_what_did_not_fit, &script),
		cmocka_unit_test_prestate(test_calls, &script),
		cmocka_unit_test_prestate(test_one_of_two_counters, &script),
	};
	void *state = &script;
	int failed;

	if (load(&state)) {
		print_error("%s (clang %d): does not load\n", path, clang);
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unload(&state);
	return failed;
}

int main(int argc, char **argv)
{
	static const int clangs[] = { 14, 19 };
	struct compile_compiler compiler;
	cpu_set_t first = { 0 };
	int failed = 0, i;
	char name[16];

	libbpf_set_print(quiet);
	/* A program that runs on another CPU runs in whatever thread is there. */
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		return 1;
	for (i = 1; i < argc; i++)
		failed += test_script(argv[i], 0);
	for (i = 0; argc == 1 && i < 2; i++) {
		snprintf(name, sizeof(name), "clang-%d", clangs[i]);
		setenv("DUET_CLANG", name, 1);
		if (!compile_find_compiler(&compiler, NULL))
			failed += test_script(INLINE_SCRIPT, clangs[i]);
	}
	return failed ? 1 : 0;
}
