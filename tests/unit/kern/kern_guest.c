// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kernel probes: for guests (tests/guest/cases/kern.t), because the development machine has none.
 * No case may be skipped here: what a kernel cannot do must be told in the right words.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

#define SLEEPERS 64
#define SLEEPS   4

struct counts {
	uint64_t entered, returned, fentered, fexited, begun, ended;
};

struct fixture {
	struct kern *kern;
	struct counts *counts;
};

static struct kern_program *program(struct fixture *fixture, const char *name)
{
	struct kern_program *found = kern_program_find(fixture->kern, name);

	if (!found)
		fail_msg("no program %s", name);
	return found;
}

static int open_kern(void **state)
{
	CLEANUP(buf_deinit) struct buf image = { 0 };
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct err err = { 0 };

	compile("guest.bpf.c", "", &image);
	assert_ok(kern_open(image.data, image.size, "guest", NULL, &fixture->kern, &err));
	*state = fixture;
	return 0;
}

static int close_kern(void **state)
{
	struct fixture *fixture = *state;

	kern_close(fixture->kern);
	free(fixture);
	return 0;
}

static void load_only(struct fixture *fixture, const char *names)
{
	struct err err = { 0 };
	uint32_t pid = getpid();
	void *place;
	size_t i;

	for (i = 0; i < kern_program_count(fixture->kern); i++) {
		struct kern_program *p = kern_program_at(fixture->kern, i);

		if (!strstr(names, kern_program_name(p)))
			assert_ok(kern_program_set_enabled(p, false, &err));
	}
	assert_ok(kern_map_set_initial(kern_map_find(fixture->kern, ".rodata"), &pid, sizeof(pid),
				       &err));
	assert_ok(kern_load(fixture->kern, &err));
	assert_ok(kern_map_place(kern_map_find(fixture->kern, ".bss"), NULL, &place, &err));
	fixture->counts = place;
}

static void *sleep_often(void *argument)
{
	const struct timespec time = { .tv_nsec = 30000000 };
	int i;

	for (i = 0; i < SLEEPS; i++)
		nanosleep(&time, NULL);
	return NULL;
}

static void run_sleepers(void)
{
	pthread_t threads[SLEEPERS];
	int i;

	for (i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sleep_often, NULL), 0);
	for (i = 0; i < SLEEPERS; i++)
		pthread_join(threads[i], NULL);
}

/* Lines of kprobe_events that hold @part. */
static int count_entries(const char *part)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct err err = { 0 };
	char path[256], *line, *rest;
	int count = 0;

	snprintf(path, sizeof(path), "%s/kprobe_events", kern_tracefs(NULL));
	assert_ok(buf_read_file(&text, path, &err));
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		count += strstr(line, part) != NULL;
	return count;
}

static void test_no_return_missed(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };
	char mine[32];

	snprintf(mine, sizeof(mine), "/duet_%d_", getpid());
	load_only(fixture, "enter leave");
	assert_int_equal(count_entries("duet_"), 0);
	assert_ok(kern_attach(fixture->kern, NULL, &err));
	assert_int_equal(count_entries(mine), 1);
	run_sleepers();
	assert_int_equal(fixture->counts->entered, SLEEPERS * SLEEPS);
	assert_int_equal(fixture->counts->returned, SLEEPERS * SLEEPS);
	kern_detach(fixture->kern);
	assert_int_equal(count_entries("duet_"), 0);
	run_sleepers();
	assert_int_equal(fixture->counts->entered, SLEEPERS * SLEEPS);
	/* again, and at a second place */
	assert_ok(kern_attach(fixture->kern, NULL, &err));
	assert_ok(kern_program_attach_at(program(fixture, "leave"), "hrtimer_nanosleep", &err));
	assert_int_equal(count_entries(mine), 2);
	run_sleepers();
	assert_int_equal(fixture->counts->returned, 3 * SLEEPERS * SLEEPS);
	assert_int_equal(kern_program_detach(program(fixture, "leave")), 0);
	assert_int_equal(count_entries("duet_"), 0);
}

static void test_fentry(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };
	int code;

	load_only(fixture, "fenter fleave");
	code = kern_attach(fixture->kern, NULL, &err);
	if (kern_feature(KERN_FEATURE_FENTRY, NULL) == 0) {
		assert_true(code < 0);
		assert_text(err.text, "fenter (fentry/do_nanosleep)");
		assert_text(err.text, "kprobe/do_nanosleep");
		return;
	}
	assert_ok(code);
	run_sleepers();
	assert_int_equal(fixture->counts->fentered, SLEEPERS * SLEEPS);
	assert_int_equal(fixture->counts->fexited, SLEEPERS * SLEEPS);
}

static void expect_refusal(struct fixture *fixture, const char *name, const char *target,
			   const char *part)
{
	struct err err = { 0 };

	assert_ok(kern_program_set_target(program(fixture, name), target, &err));
	load_only(fixture, name);
	assert_true(kern_attach(fixture->kern, NULL, &err) < 0);
	assert_text(err.text, name);
	assert_text(err.text, part);
	assert_int_equal(count_entries("duet_"), 0);
}

static void test_no_such_function(void **state)
{
	expect_refusal(*state, "enter", "do_nanoslep", "nearest: do_nanosleep");
}

static void test_no_such_function_return(void **state)
{
	expect_refusal(*state, "leave", "do_nanoslep", "nearest: do_nanosleep");
}

static void test_no_such_function_fentry(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };

	assert_ok(kern_program_set_target(program(fixture, "fenter"), "do_nanoslep", &err));
	assert_ok(kern_program_set_enabled(program(fixture, "fleave"), false, &err));
	assert_int_equal(kern_check_targets(fixture->kern, &err), -ENOENT);
	assert_text(err.text, "fenter (fentry/do_nanoslep)");
	assert_text(err.text, "do_nanosleep");
	/* the same, optional */
	kern_program_set_optional(program(fixture, "fenter"));
	load_only(fixture, "fenter enter");
	assert_ok(kern_attach(fixture->kern, NULL, &err));
	assert_int_equal(kern_program_state(program(fixture, "fenter")), KERN_PROGRAM_SKIPPED);
	assert_int_equal(kern_program_state(program(fixture, "enter")), KERN_PROGRAM_ATTACHED);
}

static void test_forbidden_function(void **state)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct err err = { 0 };
	const char *tab;
	char name[128];

	assert_ok(buf_read_file(&text, "/sys/kernel/debug/kprobes/blacklist", &err));
	tab = strchr(text.data, '\t');
	assert_non_null(tab);
	assert_int_equal(sscanf(tab, "%127s", name), 1);
	expect_refusal(*state, "enter", name, "forbids probes in it");
}

static void test_optional_kprobe(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };

	assert_ok(kern_program_set_target(program(fixture, "enter"), "do_nanoslep", &err));
	kern_program_set_optional(program(fixture, "enter"));
	assert_ok(kern_program_set_enabled(program(fixture, "fenter"), false, &err));
	assert_ok(kern_program_set_enabled(program(fixture, "fleave"), false, &err));
	assert_ok(kern_check_targets(fixture->kern, &err));
	load_only(fixture, "enter leave");
	assert_ok(kern_attach(fixture->kern, NULL, &err));
	assert_int_equal(kern_program_state(program(fixture, "enter")), KERN_PROGRAM_SKIPPED);
}

/* ---- nothing is left behind ---------------------------------------------------------------- */

/* A process that attaches a return probe and waits to be killed. */
static pid_t start_victim(struct fixture *fixture)
{
	int ready[2];
	pid_t victim;
	char byte;

	assert_int_equal(pipe(ready), 0);
	victim = fork();
	if (!victim) {
		struct err err = { 0 };

		if (kern_attach(fixture->kern, NULL, &err) < 0)
			_exit(1);
		byte = write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return victim;
}

static void expect_no_entry(const char *part)
{
	int tries;

	for (tries = 0; tries < 1000 && count_entries(part); tries++)
		usleep(10000);
	assert_int_equal(count_entries(part), 0);
}

static void kill_watchers(void)
{
	assert_int_equal(
		system("for p in /proc/[0-9]*; do read -r c <$p/comm && "
		       "[ \"$c\" = duet-watcher ] && kill -9 ${p#/proc/}; done 2>/dev/null; "
		       "true"),
		0);
}

static void test_sigkill(void **state)
{
	struct fixture *fixture = *state;
	char theirs[32];
	pid_t victim;

	load_only(fixture, "leave");
	victim = start_victim(fixture);
	snprintf(theirs, sizeof(theirs), "/duet_%d_", victim);
	assert_int_equal(count_entries(theirs), 1);
	/* somebody else's start does not touch it */
	assert_int_equal(kern_tracefs_sweep(), 0);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	expect_no_entry(theirs);
}

static void test_sigkill_of_both(void **state)
{
	struct fixture *fixture = *state;
	char theirs[32];
	pid_t victim;
	int tries, swept = 0;

	load_only(fixture, "leave");
	victim = start_victim(fixture);
	snprintf(theirs, sizeof(theirs), "/duet_%d_", victim);
	kill_watchers();
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	usleep(300000);
	assert_int_equal(count_entries(theirs), 1);
	for (tries = 0; tries < 100 && !swept; tries++) {
		swept = kern_tracefs_sweep();
		if (!swept)
			usleep(50000);
	}
	assert_int_equal(swept, 1);
	assert_int_equal(count_entries("duet_"), 0);
}

/* ---- calibration ------------------------------------------------------------------------------ */

static void calibrate(struct fixture *fixture, const char *first, const char *second)
{
	struct kern_program *pair[2] = { program(fixture, first), program(fixture, second) };
	const struct kern_calibrate_run run = { .calls = 100 };
	struct err err = { 0 };
	char names[64];

	snprintf(names, sizeof(names), "%s %s", first, second);
	assert_ok(kern_calibrate_prepare(fixture->kern, fixture->kern, true, &err));
	load_only(fixture, names);
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(count_entries("duet_"), 0);
}

static void test_calibrate_kprobe(void **state)
{
	struct fixture *fixture = *state;

	calibrate(fixture, "enter", "leave");
	assert_int_equal(fixture->counts->entered, 100);
	assert_int_equal(fixture->counts->returned, 100);
}

/* One more entry before, whose return is seen at the end. */
static void test_calibrate_nested(void **state)
{
	struct fixture *fixture = *state;
	struct kern_program *pair[2] = { program(fixture, "enter"), program(fixture, "leave") };
	const struct kern_calibrate_run run = { .calls = 100, .nested = true };
	struct err err = { 0 };

	assert_ok(kern_calibrate_prepare(fixture->kern, fixture->kern, true, &err));
	load_only(fixture, "enter leave");
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(fixture->counts->entered, 101);
	assert_int_equal(fixture->counts->returned, 101);
	assert_int_equal(count_entries("duet_"), 0);
}

static void test_calibrate_fentry(void **state)
{
	struct fixture *fixture = *state;

	if (kern_feature(KERN_FEATURE_FENTRY, NULL) == 0)
		return; /* test_fentry says how that is told */
	calibrate(fixture, "fenter", "fleave");
	assert_int_equal(fixture->counts->fentered, 100);
	assert_int_equal(fixture->counts->fexited, 100);
}

/* Two places in the kernel, passed one after the other; another instance is what will run. */
static void test_calibrate_kernel_range(void **state)
{
	struct fixture *fixture = *state;
	struct kern_program *pair[2] = { program(fixture, "enter"), program(fixture, "leave") };
	struct kern_calibrate_run run = { .calls = 100, .way = KERN_PAIR_CALLS };
	CLEANUP(buf_deinit) struct buf image = { 0 };
	CLEANUP(kern_close_cleanup) struct kern *real = NULL;
	struct err err = { 0 };

	compile("guest.bpf.c", "", &image);
	assert_ok(kern_open(image.data, image.size, "guest", NULL, &real, &err));
	assert_ok(kern_program_set_target(kern_program_find(real, "enter"), "vfs_read+0x4", &err));
	assert_ok(kern_program_set_target(kern_program_find(real, "leave"), "kprobe:vfs_write+0x4",
					  &err));
	assert_int_equal(
		kern_pair_of(kern_program_find(real, "enter"), kern_program_find(real, "leave")),
		KERN_PAIR_CALLS);
	assert_ok(kern_calibrate_prepare(fixture->kern, real, true, &err));
	kern_calibrate_leaves(pair[1]);
	load_only(fixture, "enter leave");
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(fixture->counts->entered, 100);
	assert_int_equal(fixture->counts->returned, 100);
	run.nested = true;
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(fixture->counts->entered, 201);
	assert_int_equal(fixture->counts->returned, 201);
}

static void calibrate_rounds(struct fixture *fixture, const char *first, const char *second,
			     struct kern_calibrate_run run)
{
	struct kern_program *pair[2] = { program(fixture, first), program(fixture, second) };
	struct err err = { 0 };

	run.calls = 1;
	run.passes = 100;
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	/* Two more passings of the second program end what the first began. */
	assert_int_equal(fixture->counts->begun, 100);
	assert_int_equal(fixture->counts->ended, 102);
	fixture->counts->begun = fixture->counts->ended = 0;
	run.nested = true;
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(fixture->counts->begun, 102);
	assert_int_equal(fixture->counts->ended, 102);
	fixture->counts->begun = fixture->counts->ended = 0;
}

static void test_calibrate_tracepoints(void **state)
{
	struct fixture *fixture = *state;
	struct kern_program *pair[2] = { program(fixture, "begin_tp"), program(fixture, "end_tp") };
	struct kern_calibrate_run run = { .calls = 100, .way = KERN_PAIR_SYSCALLS };
	struct err err = { 0 };

	assert_int_equal(kern_pair_of(pair[0], pair[1]), KERN_PAIR_SYSCALLS);
	assert_int_equal(kern_pair_of(pair[1], pair[0]), KERN_PAIR_ROUNDS);
	assert_ok(kern_calibrate_prepare(fixture->kern, fixture->kern, true, &err));
	kern_calibrate_leaves(pair[1]);
	load_only(fixture, "begin_tp end_tp");
	/* The system call, at its own tracepoints and at those of all. */
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(fixture->counts->begun, 100);
	assert_int_equal(fixture->counts->ended, 100);
	run.raw_syscalls = true;
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_true(fixture->counts->begun >= 200);
	assert_true(fixture->counts->ended >= 200);
	fixture->counts->begun = fixture->counts->ended = 0;
	run = (struct kern_calibrate_run){ .way = KERN_PAIR_ROUNDS };
	calibrate_rounds(fixture, "begin_tp", "end_tp", run);
	run.large = true;
	calibrate_rounds(fixture, "begin_tp", "end_tp", run);
}

static void test_calibrate_tp_btf(void **state)
{
	struct fixture *fixture = *state;
	struct kern_calibrate_run run = { .way = KERN_PAIR_ROUNDS };
	struct err err = { 0 };

	assert_ok(kern_calibrate_prepare(fixture->kern, fixture->kern, true, &err));
	kern_calibrate_leaves(program(fixture, "end_tp_btf"));
	load_only(fixture, "begin_tp_btf end_tp_btf");
	calibrate_rounds(fixture, "begin_tp_btf", "end_tp_btf", run);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_kern, close_kern)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_return_missed),        TEST(fentry),
		TEST(no_such_function),        TEST(no_such_function_return),
		TEST(no_such_function_fentry), TEST(forbidden_function),
		TEST(optional_kprobe),         TEST(sigkill),
		TEST(sigkill_of_both),         TEST(calibrate_kprobe),
		TEST(calibrate_nested),        TEST(calibrate_fentry),
		TEST(calibrate_kernel_range),  TEST(calibrate_tracepoints),
		TEST(calibrate_tp_btf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
