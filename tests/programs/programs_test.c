// SPDX-License-Identifier: BSD-2-Clause
/* Each program is loaded, attached, and finds in its workload exactly what that did. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "kern/kern.h"

#define STEPS 50 /* of each of the workload's two threads */

#define assert_ok(call)                                                  \
	do {                                                             \
		int __code = (call);                                     \
		if (__code < 0)                                          \
			fail_msg("%s: %d: %s", #call, __code, err.text); \
	} while (0)

struct fixture {
	struct kern *kern;
	pid_t pid; /* of the workload, stopped before its first step */
	int input;
};

static void start_workload(struct fixture *fixture)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	fixture->pid = fork();
	if (!fixture->pid) {
		char count[16];

		dup2(ends[0], 0);
		close(ends[0]);
		close(ends[1]);
		snprintf(count, sizeof(count), "%d", STEPS);
		execl(WORKLOAD, "workload", count, "-", NULL);
		_exit(127);
	}
	close(ends[0]);
	fixture->input = ends[1];
}

/* Lets it begin; it stays until end_workload(). */
static void release_workload(struct fixture *fixture)
{
	assert_int_equal(write(fixture->input, "\n", 1), 1);
}

static void end_workload(struct fixture *fixture)
{
	int status;

	if (!fixture->pid)
		return;
	close(fixture->input);
	assert_int_equal(waitpid(fixture->pid, &status, 0), fixture->pid);
	assert_int_equal(status, 0);
	fixture->pid = 0;
}

/* Opened, limited to the workload, loaded, attached. Every map must keep its types. */
static void start(struct fixture *fixture, const char *name)
{
	CLEANUP(buf_deinit) struct buf image = { 0 };
	struct kern_map *rodata;
	struct kern_map_info info;
	struct err err = { 0 };
	char path[512];
	size_t i;

	snprintf(path, sizeof(path), "%s/%s.bpf.o", OBJECTS, name);
	assert_ok(buf_read_file(&image, path, &err));
	assert_ok(kern_open(image.data, image.size, path, NULL, &fixture->kern, &err));
	rodata = kern_map_find(fixture->kern, ".rodata");
	kern_map_get_info(rodata, &info);
	char initial[64] = { 0 };
	assert_true(info.value_size <= sizeof(initial));
	memcpy(initial, &fixture->pid, 4);
	if (!strcmp(name, "bpf_iter"))
		strcpy(initial + 4, "%d %d\n");
	assert_ok(kern_map_set_initial(rodata, initial, info.value_size, &err));
	assert_ok(kern_check_targets(fixture->kern, &err));
	assert_ok(kern_load(fixture->kern, &err));
	assert_ok(kern_attach(fixture->kern, NULL, &err));
	for (i = 0; i < kern_program_count(fixture->kern); i++)
		assert_int_equal(kern_program_state(kern_program_at(fixture->kern, i)),
				 KERN_PROGRAM_ATTACHED);
	for (i = 0; i < kern_map_count(fixture->kern); i++) {
		struct bpf_map_info kernel = { 0 };
		__u32 size = sizeof(kernel);

		assert_int_equal(bpf_obj_get_info_by_fd(kern_map_fd(kern_map_at(fixture->kern, i)),
							&kernel, &size),
				 0);
		if (!kernel.btf_id)
			fail_msg("map %s: no types in the kernel",
				 kern_map_name(kern_map_at(fixture->kern, i)));
	}
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	start_workload(*state);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	end_workload(fixture);
	kern_close(fixture->kern);
	free(fixture);
	return 0;
}

static void lookup(struct fixture *fixture, const char *map, uint32_t key, void *value)
{
	assert_int_equal(kern_map_lookup(kern_map_find(fixture->kern, map), &key, value), 0);
}

static void test_kprobe_counter(void **state)
{
	struct fixture *fixture = *state;
	struct {
		uint64_t calls;
		char comm[16];
	} sleeper;
	pid_t pid = fixture->pid;

	start(fixture, "kprobe_counter");
	release_workload(fixture);
	end_workload(fixture);
	lookup(fixture, "sleepers", pid, &sleeper);
	assert_int_equal(sleeper.calls, 2 * STEPS);
	assert_string_equal(sleeper.comm, "workload");
	assert_int_equal(kern_map_entries(kern_map_find(fixture->kern, "sleepers")), 1);
}

static void test_tracepoint_hist(void **state)
{
	struct fixture *fixture = *state;
	uint64_t count, long_ones = 0, slot;

	start(fixture, "tracepoint_hist");
	release_workload(fixture);
	end_workload(fixture);
	/* a sleep of 1 ms takes at least 2^19 ns */
	for (slot = 19; slot < 40; slot++) {
		lookup(fixture, "latency", slot, &count);
		long_ones += count;
	}
	assert_in_range(long_ones, 2 * STEPS, 2 * STEPS + 100);
}

static void test_uprobe(void **state)
{
	struct fixture *fixture = *state;
	struct {
		uint64_t calls, returns, sum;
	} steps;

	start(fixture, "uprobe");
	release_workload(fixture);
	end_workload(fixture);
	lookup(fixture, "steps", 0, &steps);
	assert_int_equal(steps.calls, 2 * STEPS);
	assert_int_equal(steps.returns, 2 * STEPS);
	assert_int_equal(steps.sum, 2 * STEPS * (STEPS + 1));
}

static void test_usdt(void **state)
{
	struct fixture *fixture = *state;
	struct {
		uint64_t count, sum;
	} * steps;
	struct kern_rows rows;

	start(fixture, "usdt");
	release_workload(fixture);
	end_workload(fixture);
	assert_int_equal(kern_map_read_all(kern_map_find(fixture->kern, "usdt_steps"), &rows), 0);
	assert_int_equal(rows.count, 2);
	steps = (void *)rows.values;
	assert_int_equal(steps[0].count, STEPS);
	assert_int_equal(steps[0].sum, STEPS * (STEPS + 1) / 2);
	assert_int_equal(steps[1].sum, STEPS * (STEPS + 1) / 2);
	kern_rows_deinit(&rows);
}

static void test_bpf_iter(void **state)
{
	struct fixture *fixture = *state;
	CLEANUP(buf_deinit) struct buf text = { 0 };
	CLEANUP(close_fd) int fd = -1;
	char expected[64];
	uint64_t count;

	start(fixture, "bpf_iter");
	fd = kern_program_iter_fd(kern_program_find(fixture->kern, "list"));
	assert_true(fd >= 0);
	assert_int_equal(buf_read_fd(&text, fd), 0);
	snprintf(expected, sizeof(expected), "%d %d\n", fixture->pid, fixture->pid);
	assert_string_equal(text.data, expected);
	lookup(fixture, "threads", 0, &count);
	assert_int_equal(count, 1);
	release_workload(fixture);
}

static void test_timer(void **state)
{
	struct fixture *fixture = *state;
	uint64_t count = 0, later = 0;
	int tries;

	start(fixture, "timer");
	release_workload(fixture);
	for (tries = 0; tries < 1000 && count < 3; tries++) {
		usleep(1000);
		lookup(fixture, "ticks", 0, &count);
	}
	assert_true(count >= 3);
	for (tries = 0; tries < 1000 && later <= count; tries++) {
		usleep(1000);
		lookup(fixture, "ticks", 0, &later);
	}
	assert_true(later > count);
	/* a lock or timer in the value: such an array is not live memory */
	assert_int_equal(kern_map_place_size(kern_map_find(fixture->kern, "clock")), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

/* What this kernel cannot do at all is no case here: guests must have every one. */
int main(int argc, char **argv)
{
	const struct CMUnitTest common[] = { TEST(tracepoint_hist), TEST(uprobe), TEST(usdt),
					     TEST(bpf_iter) };
	const struct CMUnitTest kprobe[] = { TEST(kprobe_counter) };
	const struct CMUnitTest fentry[] = { TEST(timer) };
	int failed;

	signal(SIGPIPE, SIG_IGN); /* of a workload that could not start */
	failed = cmocka_run_group_tests(common, NULL, NULL);

	if (kern_feature(KERN_FEATURE_KPROBE, NULL) == 1)
		failed += cmocka_run_group_tests(kprobe, NULL, NULL);
	if (kern_feature(KERN_FEATURE_FENTRY, NULL) == 1)
		failed += cmocka_run_group_tests(fentry, NULL, NULL);
	return failed;
}
