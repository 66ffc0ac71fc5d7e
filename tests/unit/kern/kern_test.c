// SPDX-License-Identifier: BSD-2-Clause
/* Opening, loading, attaching: against this machine's kernel, on processes of the test's own. */
#include "kern/kern.h"
#include "obj/obj.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"
#include "usdt_note.h"

struct fixture {
	struct buf image;
	struct kern *kern;
};

long traced(long number);
__attribute__((noipa)) long traced(long number)
{
	__asm__ volatile("" : "+r"(number));
	USDT_PROBE("duet_test", "step", number);
	return number * 2;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	compile("kern.bpf.c", "", &fixture->image);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	if (fixture)
		buf_deinit(&fixture->image);
	free(fixture);
	return 0;
}

static int open_kern(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };

	assert_ok(kern_open(fixture->image.data, fixture->image.size, "/tmp/kern.test.o", NULL,
			    &fixture->kern, &err));
	return 0;
}

static int close_kern(void **state)
{
	struct fixture *fixture = *state;

	kern_close(fixture->kern);
	fixture->kern = NULL;
	return 0;
}

static struct kern_program *program(struct kern *kern, const char *name)
{
	struct kern_program *found = kern_program_find(kern, name);

	if (!found)
		fail_msg("no program %s", name);
	return found;
}

static struct kern_map *map(struct kern *kern, const char *name)
{
	struct kern_map *found = kern_map_find(kern, name);

	if (!found)
		fail_msg("no map %s", name);
	return found;
}

/* Only the named programs stay. */
static void keep_only(struct kern *kern, const char *names)
{
	struct err err = { 0 };
	size_t i;

	for (i = 0; i < kern_program_count(kern); i++) {
		struct kern_program *p = kern_program_at(kern, i);

		if (!strstr(names, kern_program_name(p)))
			assert_ok(kern_program_set_enabled(p, false, &err));
	}
}

static void set_pid(struct kern *kern)
{
	uint32_t rodata[2] = { getpid(), 7 };
	struct kern_map_info info;
	struct err err = { 0 };

	kern_map_get_info(map(kern, ".rodata"), &info);
	/* "limit" and "pid" come first; the rest is format strings. */
	char *data = calloc(1, info.value_size);
	assert_true(info.value_size >= sizeof(rodata));
	memcpy(data, rodata, sizeof(rodata));
	assert_ok(kern_map_set_initial(map(kern, ".rodata"), data, info.value_size, &err));
	free(data);
}

static void test_sections_and_states(void **state)
{
	struct fixture *fixture = *state;
	struct kern *kern = fixture->kern;
	struct err err = { 0 };

	assert_string_equal(kern_program_section(program(kern, "on_syscall")), "raw_tp/sys_enter");
	assert_string_equal(kern_program_target(program(kern, "on_enter")), "$BIN:$FUNC");
	assert_string_equal(kern_program_event_text(program(kern, "on_sample")), "cpu-clock@99");
	assert_null(kern_program_event_text(program(kern, "bare")));
	assert_int_equal(kern_program_state(program(kern, "bare")), KERN_PROGRAM_BARE);
	assert_int_equal(kern_program_state(program(kern, "on_fork")), KERN_PROGRAM_PLANNED);
	assert_true(kern_program_runnable(program(kern, "bare")));
	assert_false(kern_program_runnable(program(kern, "on_enter")));
	/* kinds that receive the same may be exchanged, others not */
	assert_ok(kern_program_set_target(program(kern, "on_return"), "uretprobe:/bin/sh:main",
					  &err));
	assert_string_equal(kern_program_section(program(kern, "on_return")),
			    "uretprobe//bin/sh:main");
	assert_int_equal(kern_program_state(program(kern, "on_return")), KERN_PROGRAM_PLANNED);
	assert_ok(kern_program_set_target(program(kern, "on_return"), NULL, &err));
	assert_int_equal(kern_program_state(program(kern, "on_return")), KERN_PROGRAM_BARE);
	assert_int_equal(
		kern_program_set_target(program(kern, "on_enter"), "raw_tp:sys_exit", &err),
		-EINVAL);
	assert_text(err.text, "on_enter");
	assert_null(kern_program_find(kern, "absent"));
}

static void test_load_and_globals(void **state)
{
	struct fixture *fixture = *state;
	struct kern *kern = fixture->kern;
	struct err err = { 0 };
	struct kern_map_info info;
	uint64_t *bss, *data;
	void *place, *reserved;
	int i;

	set_pid(kern);
	assert_ok(kern_map_set_unused(map(kern, "__duet_unused")));
	assert_ok(kern_load(kern, &err));
	assert_int_equal(kern_program_fd(program(kern, "no_target")), -1);
	assert_false(kern_map_created(map(kern, "__duet_unused")));
	assert_true(kern_map_created(map(kern, "hash")));
	assert_int_equal(kern_program_set_enabled(program(kern, "bare"), false, &err), -EBUSY);
	assert_int_equal(kern_map_set_max_entries(map(kern, "hash"), 5, &err), -EBUSY);

	/* one memory for both halves, at an address that we choose */
	reserved = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ok(kern_map_place(map(kern, ".bss"), reserved, &place, &err));
	assert_ptr_equal(place, reserved);
	bss = place;
	kern_map_get_info(map(kern, ".bss"), &info);
	assert_true(info.is_data && info.mapped);
	assert_int_equal(kern_program_run(program(kern, "call"), -1), 0);
	for (i = 0; i < (int)info.value_size / 8; i++) {
		if (bss[i] == 7)
			break;
	}
	assert_true(i < (int)info.value_size / 8); /* inner_seen = limit, which we had set */
	assert_ok(kern_map_place(map(kern, ".data"), NULL, &place, &err));
	data = place;
	assert_int_equal(data[0], 42);
	/* frozen: readable only */
	assert_ok(kern_map_place(map(kern, ".rodata"), NULL, &place, &err));
	assert_int_equal(((uint32_t *)place)[0] + ((uint32_t *)place)[1], getpid() + 7);
	assert_int_equal(kern_map_place(map(kern, "hash"), NULL, &place, &err), -EOPNOTSUPP);
	/* memory at our address stays mapped after close: it is ours */
	kern_close(fixture->kern);
	fixture->kern = NULL;
	assert_true(bss[0] != ~0ULL);
	munmap(reserved, 65536);
}

/* Reads variable @name: the tests know it by the order of clang's .bss only through BTF, so the
 * sum of all is compared instead where one program runs alone. */
static uint64_t bss_sum(struct kern *kern)
{
	struct kern_map_info info;
	uint64_t value[64] = { 0 }, sum = 0;
	uint32_t zero = 0, i;

	kern_map_get_info(map(kern, ".bss"), &info);
	assert_true(info.value_size <= sizeof(value));
	assert_int_equal(kern_map_lookup(map(kern, ".bss"), &zero, value), 0);
	for (i = 0; i < info.value_size / 8; i++)
		sum += value[i];
	return sum;
}

static void load_only(struct kern *kern, const char *names)
{
	struct err err = { 0 };

	keep_only(kern, names);
	set_pid(kern);
	assert_ok(kern_check_targets(kern, &err));
	assert_ok(kern_load(kern, &err));
	assert_ok(kern_attach(kern, NULL, &err));
}

static void test_raw_tp(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };
	uint64_t before, after;
	int i;

	load_only(fixture->kern, "on_syscall");
	assert_int_equal(kern_program_state(program(fixture->kern, "on_syscall")),
			 KERN_PROGRAM_ATTACHED);
	before = bss_sum(fixture->kern);
	for (i = 0; i < 100; i++)
		syscall(SYS_getppid);
	after = bss_sum(fixture->kern);
	assert_in_range(after - before, 100, 110);
	assert_int_equal(kern_program_detach(program(fixture->kern, "on_syscall")), 0);
	assert_int_equal(kern_program_state(program(fixture->kern, "on_syscall")),
			 KERN_PROGRAM_DETACHED);
	before = bss_sum(fixture->kern);
	for (i = 0; i < 100; i++)
		syscall(SYS_getppid);
	assert_int_equal(bss_sum(fixture->kern), before);
	assert_ok(kern_program_attach(program(fixture->kern, "on_syscall"), &err));
	syscall(SYS_getppid);
	assert_true(bss_sum(fixture->kern) > before);
	assert_int_equal(
		kern_program_attach_at(program(fixture->kern, "on_syscall"), "sys_exti", &err),
		-ENOENT);
	assert_text(err.text, "sys_exit");
}

static void test_uprobe(void **state)
{
	struct fixture *fixture = *state;
	struct kern *kern = fixture->kern;
	struct kern_attach_options options = { .pid = getpid() };
	struct err err = { 0 };
	char self[256], where[300];
	struct kern_map *array = map(kern, "array");
	struct {
		uint64_t count;
		char text[8];
	} * rows;
	void *place;
	int i;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	self[readlink("/proc/self/exe", self, sizeof(self) - 1)] = 0;
	keep_only(kern, "on_enter on_return on_step");
	snprintf(where, sizeof(where), "%s:traced", self);
	assert_ok(kern_program_set_target(program(kern, "on_enter"), where, &err));
	snprintf(where, sizeof(where), "%s:duet_test:step", self);
	assert_ok(kern_program_set_target(program(kern, "on_step"), where, &err));
	assert_int_equal(kern_map_make_mmapable(array), 0);
	assert_int_equal(kern_map_make_mmapable(map(kern, "locks")), -EOPNOTSUPP);
	assert_ok(kern_check_every_target(kern, &err));
	assert_ok(kern_load(kern, &err));
	assert_ok(kern_map_place(array, NULL, &place, &err));
	rows = place;
	assert_ok(kern_attach(kern, &options, &err));
	snprintf(where, sizeof(where), "uretprobe:%s:traced", self);
	assert_ok(kern_program_attach_at(program(kern, "on_return"), where, &err));
	for (i = 1; i <= 10; i++)
		traced(i);
	/* entered and usdt_sum: 55 each; returned: 110 */
	assert_int_equal(bss_sum(kern), 55 + 55 + 110);
	assert_int_equal(rows[5].count, 10);
	kern_detach(kern);
	traced(1);
	assert_int_equal(rows[5].count, 10);
	assert_ok(kern_attach(kern, &options, &err));
	traced(1);
	assert_int_equal(rows[5].count, 11);
}

static void expect_missing(struct kern *kern, const char *name, const char *target,
			   const char *part)
{
	struct err err = { 0 };

	assert_ok(kern_program_set_target(program(kern, name), target, &err));
	assert_true(kern_program_fd(program(kern, name)) < 0);
	keep_only(kern, name);
	if (kern_check_every_target(kern, &err) != -ENOENT)
		fail_msg("%s was found", target);
	assert_text(err.text, name);
	assert_text(err.text, part);
}

static void test_missing_targets(void **state)
{
	struct fixture *fixture = *state;
	char self[256] = "", where[300];
	struct err err = { 0 };

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(where, sizeof(where), "%s:tracde", self);
	expect_missing(fixture->kern, "on_enter", where, "nearest: traced");
	close_kern(state);
	open_kern(state);
	expect_missing(fixture->kern, "on_enter", "/no/such/file:main", "No such file");
	close_kern(state);
	open_kern(state);
	snprintf(where, sizeof(where), "%s:duet_test:stepp", self);
	expect_missing(fixture->kern, "on_step", where, "duet_test:step");
	close_kern(state);
	open_kern(state);
	expect_missing(fixture->kern, "on_syscall", "sys_entre", "sys_enter");
	close_kern(state);
	open_kern(state);
	if (kern_feature(KERN_FEATURE_TRACEFS, NULL) == 1) {
		expect_missing(fixture->kern, "on_fork", "sched/sched_proces_fork",
			       "sched/sched_process_fork");
		close_kern(state);
		open_kern(state);
	}
	/* the same, optional: the others go on */
	keep_only(fixture->kern, "on_syscall bare");
	assert_ok(kern_program_set_target(program(fixture->kern, "on_syscall"), "no_such", &err));
	kern_program_set_optional(program(fixture->kern, "on_syscall"));
	assert_ok(kern_check_targets(fixture->kern, &err));
	assert_int_equal(kern_program_state(program(fixture->kern, "on_syscall")),
			 KERN_PROGRAM_SKIPPED);
	assert_ok(kern_load(fixture->kern, &err));
	assert_ok(kern_attach(fixture->kern, NULL, &err));
	assert_int_equal(kern_program_attach(program(fixture->kern, "on_syscall"), &err), -ENOENT);
}

static void test_tracepoint(void **state)
{
	struct fixture *fixture = *state;
	pid_t child;

	if (kern_feature(KERN_FEATURE_TRACEFS, NULL) != 1)
		skip();
	load_only(fixture->kern, "on_fork");
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(bss_sum(fixture->kern), 1);
}

struct records {
	uint64_t count, sum, lost;
	uint64_t stop_at;
};

static int take_record(void *context, const void *record, size_t size)
{
	struct records *records = context;
	uint64_t value;

	assert_true(size >= 8);
	memcpy(&value, record, sizeof(value)); /* perf-event arrays align to 4 only */
	records->sum += value;
	records->count++;
	return records->stop_at && records->count == records->stop_at ? -EINTR : 0;
}

static void take_lost(void *context, int cpu, uint64_t count)
{
	((struct records *)context)->lost += count;
}

static void run(struct kern *kern, unsigned int times)
{
	while (times--)
		assert_int_equal(kern_program_run(program(kern, "bare"), 0), 0);
}

static void test_rings(void **state)
{
	struct fixture *fixture = *state;
	struct kern *kern = fixture->kern;
	struct records records = { 0 }, perf_records = { 0 };
	CLEANUP(kern_ring_close_cleanup)
	struct kern_ring *ring = NULL, *perf = NULL;
	struct err err = { 0 };
	uint64_t failed;

	load_only(kern, "bare");
	assert_ok(kern_ring_open(map(kern, "ring"), take_record, take_lost, &records, &ring, &err));
	assert_ok(kern_ring_open(map(kern, "perf"), take_record, take_lost, &perf_records, &perf,
				 &err));
	assert_int_equal(kern_ring_open(map(kern, "hash"), take_record, NULL, NULL, &ring, &err),
			 -EINVAL);
	run(kern, 20);
	assert_int_equal(kern_ring_consume(ring, 5), 5);
	assert_int_equal(kern_ring_consume(ring, 0), 15);
	assert_int_equal(records.sum, 190);
	assert_int_equal(kern_ring_consume(ring, 0), 0);
	assert_int_equal(kern_ring_consume(perf, 0), 20);
	assert_int_equal(perf_records.sum, 190);
	/* 4,096 bytes hold 255 records of 16 bytes and never more: produced = handled + failed */
	run(kern, 600);
	failed = bss_sum(kern) - 620;
	assert_true(failed > 0);
	records.stop_at = 30;
	assert_int_equal(kern_ring_consume(ring, 0), -EINTR);
	assert_int_equal(records.count, 30);
	records.stop_at = 0;
	assert_int_equal(kern_ring_consume(ring, 0), 620 - failed - 30);
	assert_int_equal(records.count + failed, 620);
	/* room again after all was read */
	run(kern, 255);
	assert_int_equal(bss_sum(kern) - 875, failed);
	assert_int_equal(kern_ring_consume(ring, 0), 255);
}

static void test_perf_lost(void **state)
{
	struct fixture *fixture = *state;
	struct records records = { 0 };
	CLEANUP(kern_ring_close_cleanup)
	struct kern_ring *perf = NULL;
	struct err err = { 0 };
	int handled;

	load_only(fixture->kern, "bare");
	assert_ok(kern_ring_open(map(fixture->kern, "perf"), take_record, take_lost, &records,
				 &perf, &err));
	run(fixture->kern, 20000);
	handled = kern_ring_consume(perf, 0);
	assert_true(handled > 0);
	run(fixture->kern, 1); /* the kernel tells losses with the next record */
	handled += kern_ring_consume(perf, 0);
	assert_true(records.lost > 0);
	assert_int_equal(records.lost + handled, 20001);
}

static void test_run(void **state)
{
	struct fixture *fixture = *state;
	struct kern *kern = fixture->kern;
	struct kern_program_info info;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	load_only(kern, "bare on_fork call");
	assert_int_equal(kern_program_run(program(kern, "bare"), -1), 0);
	assert_int_equal(bss_sum(kern), cpus);
	assert_int_equal(kern_program_run(program(kern, "bare"), 4000), -ENXIO);
	assert_int_equal(kern_program_run(program(kern, "on_fork"), 0), -EOPNOTSUPP);
	assert_int_equal(kern_program_get_info(program(kern, "bare"), &info), 0);
}

static const char *const refusals[] = { "line NULL", "line SCALAR", "line IN_CALL", "line GPL" };
static const char *const refusal_hints[] = { "test the pointer", "BPF_CORE_READ",
					     "test the pointer", "GPL" };

/* Number of the source line that holds @text. */
static int line_of(const char *source, const char *text)
{
	char path[512], line[256];
	int number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", SOURCE_DIR, source);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		number++;
		if (strstr(line, text))
			break;
	}
	fclose(file);
	return number;
}

static void test_refused(void **state)
{
	size_t i;

	for (i = 0; i < 4; i++) {
		CLEANUP(buf_deinit)
		struct buf image = { 0 };
		CLEANUP(kern_close_cleanup)
		struct kern *kern = NULL;
		CLEANUP(obj_close_cleanup) struct obj *obj = NULL;
		struct err err = { 0 };
		char flags[32], place[64];

		snprintf(flags, sizeof(flags), "-DCASE=%zu", i);
		compile("refused.bpf.c", flags, &image);
		assert_ok(obj_open(image.data, image.size, "refused", &obj, &err));
		assert_ok(kern_open(image.data, image.size, "refused", NULL, &kern, &err));
		kern_set_object(kern, obj);
		assert_true(kern_load(kern, &err) < 0);
		snprintf(place, sizeof(place), "refused.bpf.c:%d: program refused: ",
			 line_of("refused.bpf.c", refusals[i]));
		assert_text(err.text, place);
		assert_text(err.text, refusals[i]);
		assert_text(err.text, refusal_hints[i]);
		assert_null(strchr(err.text, '\n'));
	}
}

static void test_bad_image(void **state)
{
	struct kern *kern = NULL;
	struct err err = { 0 };

	assert_true(kern_open("not an object file at all", 25, "x.o", NULL, &kern, &err) < 0);
	assert_text(err.text, "x.o: ");
	assert_null(kern);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_kern, close_kern)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sections_and_states),
		TEST(load_and_globals),
		TEST(raw_tp),
		TEST(uprobe),
		TEST(missing_targets),
		TEST(tracepoint),
		TEST(rings),
		TEST(perf_lost),
		TEST(run),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bad_image),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
