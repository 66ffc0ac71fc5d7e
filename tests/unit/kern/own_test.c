// SPDX-License-Identifier: BSD-2-Clause
/* duet's own programs against this machine's kernel, on threads of the test's own. */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define MAX_CPUS 256

struct seen {
	uint64_t total[3];
	uint64_t enabled;
	uint64_t valid;
	int64_t error;
	uint64_t measured;
};

struct fixture {
	struct buf image;
	struct kern *kern;
	int cpus[MAX_CPUS], fds[2 * MAX_CPUS]; /* slot 0: page faults, slot 1: not open */
	size_t ncpus;
};

static struct kern_map *map(struct kern *kern, const char *name)
{
	struct kern_map *found = kern_map_find(kern, name);

	if (!found)
		fail_msg("no map %s", name);
	return found;
}

static int open_faults(int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_PAGE_FAULTS,
					.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
						       PERF_FORMAT_TOTAL_TIME_RUNNING };

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int setup_image(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char flags[128];

	snprintf(flags, sizeof(flags), "-I%s/../../../include -DNUMBER=%d", SOURCE_DIR,
		 (int)SYS_getpgid);
	compile("own.bpf.c", flags, &fixture->image);
	*state = fixture;
	return 0;
}

static int teardown_image(void **state)
{
	struct fixture *fixture = *state;

	if (fixture)
		buf_deinit(&fixture->image);
	free(fixture);
	return 0;
}

static int load_kern(void **state)
{
	struct fixture *fixture = *state;
	uint32_t pid = getpid();
	struct kern_map_info info;
	struct err err = { 0 };
	char *rodata;

	assert_ok(kern_open(fixture->image.data, fixture->image.size, "own", NULL, &fixture->kern,
			    &err));
	kern_map_get_info(map(fixture->kern, ".rodata"), &info);
	rodata = calloc(1, info.value_size);
	memcpy(rodata, &pid, sizeof(pid));
	/* the format string of talk() lies behind it */
	strcpy(rodata + sizeof(pid), "duet test %d says %d");
	assert_ok(
		kern_map_set_initial(map(fixture->kern, ".rodata"), rodata, info.value_size, &err));
	free(rodata);
	assert_ok(kern_load(fixture->kern, &err));
	return 0;
}

static int close_kern(void **state)
{
	struct fixture *fixture = *state;
	size_t i;

	kern_close(fixture->kern);
	fixture->kern = NULL;
	for (i = 0; i < fixture->ncpus; i++)
		close(fixture->fds[i]);
	fixture->ncpus = 0;
	return 0;
}

static void start_totals(struct fixture *fixture)
{
	struct err err = { 0 };
	int cpu, fd;
	size_t i;

	for (cpu = 0; cpu < kern_possible_cpus() && cpu < MAX_CPUS; cpu++) {
		fd = open_faults(cpu);
		if (fd < 0)
			continue;
		fixture->cpus[fixture->ncpus] = cpu;
		fixture->fds[fixture->ncpus++] = fd;
		assert_int_equal(kern_map_update(map(fixture->kern, "faults"), &cpu, &fd, 0), 0);
	}
	for (i = 0; i < fixture->ncpus; i++)
		fixture->fds[fixture->ncpus + i] = -1;
	assert_true(kern_totals_needed(fixture->kern));
	assert_ok(kern_totals_start(fixture->kern, fixture->fds, 2, fixture->cpus, fixture->ncpus,
				    &err));
	assert_ok(kern_attach(fixture->kern, NULL, &err));
}

/* This thread's totals as a kernel program sees them. */
static void look(struct fixture *fixture, struct seen *seen)
{
	uint32_t id = syscall(SYS_gettid);

	syscall(SYS_getpgid, 0);
	assert_int_equal(kern_map_lookup(map(fixture->kern, "seen"), &id, seen), 0);
}

static void move_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

struct toucher {
	struct fixture *fixture;
	pthread_t thread;
	int pages;
	uint64_t counted, rusage;
	struct seen before, after;
};

/* Touches fresh pages, sleeping, yielding and changing CPU in between. */
static void *touch(void *argument)
{
	struct toucher *toucher = argument;
	size_t page = sysconf(_SC_PAGESIZE), i;
	struct rusage before, after;
	char *memory = mmap(NULL, toucher->pages * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, toucher->pages * page, MADV_NOHUGEPAGE);
	look(toucher->fixture,
	     &toucher->before); /* makes the storage, and faults in what it needs */
	look(toucher->fixture, &toucher->before);
	getrusage(RUSAGE_THREAD, &before);
	look(toucher->fixture, &toucher->before);
	for (i = 0; i < (size_t)toucher->pages; i++) {
		memory[i * page] = 1;
		if (i % 7 == 3)
			sched_yield();
		if (i % 50 == 25)
			usleep(100);
		if (i % 40 == 20)
			move_to_cpu(toucher->fixture->cpus[i / 40 % toucher->fixture->ncpus]);
	}
	look(toucher->fixture, &toucher->after);
	getrusage(RUSAGE_THREAD, &after);
	toucher->counted = toucher->after.total[0] - toucher->before.total[0];
	toucher->rusage = after.ru_minflt - before.ru_minflt;
	munmap(memory, toucher->pages * page);
	return NULL;
}

static void test_totals(void **state)
{
	struct fixture *fixture = *state;
	struct toucher touchers[4];
	int i;

	start_totals(fixture);
	for (i = 0; i < 4; i++) {
		touchers[i] = (struct toucher){ .fixture = fixture, .pages = 500 * (i + 1) };
		pthread_create(&touchers[i].thread, NULL, touch, &touchers[i]);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(touchers[i].thread, NULL);
		assert_int_equal(touchers[i].after.error, 0);
		assert_true(touchers[i].counted >= (uint64_t)touchers[i].pages);
		/* The kernel's own count of the same thread, whose window is a little wider. */
		assert_in_range(touchers[i].rusage - touchers[i].counted, 0, 8);
		assert_true(touchers[i].after.total[2] > touchers[i].before.total[2]);
		assert_true(touchers[i].after.enabled > 0);
		/* slot 1 is not open: no base, and nothing counted */
		assert_int_equal(touchers[i].after.valid, 1);
		assert_int_equal(touchers[i].after.total[1], 0);
	}
	assert_int_equal(kern_totals_flush(fixture->kern), 0);
}

static void test_totals_refused(void **state)
{
	struct fixture *fixture = *state;
	struct err err = { 0 };

	assert_int_equal(kern_totals_start(fixture->kern, NULL, 17, NULL, 0, &err), -EINVAL);
	assert_int_equal(kern_totals_flush(fixture->kern), 0);
	kern_totals_stop(fixture->kern);
}

/* ---- target ------------------------------------------------------------------------------- */

struct events {
	char text[4096];
	int status;
};

static int take_child(void *context, const char *what, const struct duet_child *child)
{
	struct events *events = context;
	size_t used = strlen(events->text);

	snprintf(events->text + used, sizeof(events->text) - used, "%s:%u:%u:%d:%s\n", what,
		 child->pid, child->parent, child->status, child->comm);
	return 0;
}

static bool measured(struct kern *kern, uint32_t id)
{
	uint64_t value;

	return !kern_map_lookup(map(kern, "__duet_tasks"), &id, &value);
}

static void *report_id(void *argument)
{
	int *id = argument;

	id[0] = syscall(SYS_gettid);
	syscall(SYS_getpgid, 0);
	return NULL;
}

/* Ids go only when the kernel frees the task, a moment after the wait. */
static void assert_gone(struct kern *kern, uint32_t id)
{
	int tries;

	for (tries = 0; tries < 500 && measured(kern, id); tries++)
		usleep(10000);
	assert_false(measured(kern, id));
}

static void test_target(void **state)
{
	struct fixture *fixture = *state;
	struct events events = { 0 };
	struct kern_target_options options = { .child = take_child,
					       .context = &events,
					       .want_children = true };
	struct err err = { 0 };
	char expected[128];
	pthread_t thread;
	int id = 0, stranger_pipe[2], status;
	pid_t child, stranger;

	assert_int_equal(pipe(stranger_pipe), 0);
	stranger = fork();
	if (!stranger) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
		_exit(read(stranger_pipe[0], &byte, 1) < 0);
	}
	start_totals(fixture);
	assert_ok(kern_target_start(fixture->kern, &options, &err));
	assert_int_equal(kern_target_add_process(fixture->kern, 0x3ffffff, &err), -ESRCH);
	assert_ok(kern_target_add_process(fixture->kern, getpid(), &err));
	assert_true(measured(fixture->kern, getpid()));
	assert_false(measured(fixture->kern, stranger));

	pthread_create(&thread, NULL, report_id, &id);
	pthread_join(thread, NULL);
	assert_true(id > 0);
	struct seen seen;
	assert_int_equal(kern_map_lookup(map(fixture->kern, "seen"), &id, &seen), 0);
	assert_int_equal(seen.measured, 1);
	assert_gone(fixture->kern, id);

	child = fork();
	if (!child) {
		pid_t grandchild = fork();

		if (!grandchild) {
			execl("/bin/sh", "sh", "-c", "exit 3", NULL);
			_exit(9);
		}
		waitpid(grandchild, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) + 4 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_gone(fixture->kern, child);
	struct pollfd ready = { .fd = kern_target_fd(fixture->kern), .events = POLLIN };
	assert_int_equal(poll(&ready, 1, 1000), 1);
	assert_int_equal(kern_target_consume(fixture->kern), 5);
	snprintf(expected, sizeof(expected), "fork:%d:%d:0:", child, getpid());
	assert_text(events.text, expected);
	snprintf(expected, sizeof(expected), ":%d:0:own_test", child);
	assert_text(events.text, expected);
	assert_text(events.text, ":0:0:sh\n");
	snprintf(expected, sizeof(expected), "exit:%d:0:%d:", child, 7 << 8);
	assert_text(events.text, expected);
	assert_text(events.text, ":0:768:sh\n");
	kern_detach(fixture->kern);

	kill(stranger, 9);
	waitpid(stranger, NULL, 0);
	close(stranger_pipe[0]);
	close(stranger_pipe[1]);
	assert_true(measured(fixture->kern, getpid()));
}

static void *exec_from_thread(void *argument)
{
	execl("/bin/sh", "sh", "-c", "exit 5", NULL);
	return NULL;
}

/* The thread that executes takes over the process id: no id may be left behind. */
static void test_exec_from_thread(void **state)
{
	struct fixture *fixture = *state;
	struct kern_target_options options = { 0 };
	struct kern_rows rows;
	struct err err = { 0 };
	int status, tries;
	size_t count = 0;
	pid_t child;

	assert_ok(kern_target_start(fixture->kern, &options, &err));
	assert_int_equal(kern_target_fd(fixture->kern), -1);
	assert_ok(kern_target_add_process(fixture->kern, getpid(), &err));
	child = fork();
	if (!child) {
		pthread_t thread;

		pthread_create(&thread, NULL, exec_from_thread, NULL);
		pause();
		_exit(1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 5);
	for (tries = 0; tries < 500; tries++) {
		assert_int_equal(kern_map_read_all(map(fixture->kern, "__duet_tasks"), &rows), 0);
		count = rows.count;
		kern_rows_deinit(&rows);
		if (count == 1)
			break;
		usleep(10000);
	}
	assert_int_equal(count, 1); /* this process */
}

/* ---- calibration, printk --------------------------------------------------------------------- */

static void count_call(void *context)
{
	++*(int *)context;
}

static void test_calibrate_user(void **state)
{
	struct fixture *fixture = *state;
	int before = 0;
	const struct kern_calibrate_run run = { .calls = 100, .own_process = true };
	const struct kern_calibrate_run bare = {
		.calls = 10,
		.bare = true,
		.before = count_call,
		.context = &before,
	};
	struct kern_program *pair[2];
	CLEANUP(kern_close_cleanup) struct kern *kern = NULL;
	struct err err = { 0 };
	struct {
		int entered, left;
	} * bss;
	void *place;

	assert_ok(kern_open(fixture->image.data, fixture->image.size, "own", NULL, &kern, &err));
	assert_ok(kern_program_set_target(kern_program_find(kern, "on_enter"),
					  "/proc/self/exe:main", &err));
	assert_ok(kern_program_set_target(kern_program_find(kern, "on_return"),
					  "/proc/self/exe:main", &err));
	assert_ok(kern_calibrate_prepare(kern, kern, true, &err));
	assert_ok(kern_load(kern, &err));
	assert_ok(kern_map_place(map(kern, ".bss"), NULL, &place, &err));
	bss = place;
	pair[0] = kern_program_find(kern, "on_enter");
	pair[1] = kern_program_find(kern, "on_return");
	assert_true(kern_calibrates(pair[0]));
	assert_false(kern_calibrates(kern_program_find(kern, "talk")));
	assert_ok(kern_calibrate(pair, 2, &bare, &err));
	assert_int_equal(before, 10);
	assert_int_equal(bss->entered, 0);
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	assert_int_equal(bss->entered, 100);
	assert_int_equal(bss->left, 100);
}

/* What lies between two instructions of a program, and between two USDT probes. */
static void test_calibrate_places(void **state)
{
	struct fixture *fixture = *state;
	const struct kern_calibrate_run run = {
		.calls = 100, .way = KERN_PAIR_CALLS, .nested = true, .own_process = true
	};
	CLEANUP(kern_close_cleanup) struct kern *kern = NULL, *real = NULL;
	struct kern_program *pair[2];
	struct err err = { 0 };
	struct {
		int entered, left;
	} * bss;
	void *place;

	assert_ok(kern_open(fixture->image.data, fixture->image.size, "own", NULL, &real, &err));
	assert_ok(kern_open(fixture->image.data, fixture->image.size, "own", NULL, &kern, &err));
	assert_ok(kern_program_set_target(kern_program_find(real, "on_enter"),
					  "/proc/self/exe:main+0x4", &err));
	assert_ok(kern_program_set_target(kern_program_find(real, "on_return"),
					  "uprobe:/proc/self/exe:main+0x4", &err));
	assert_int_equal(kern_pair_of(kern_program_find(real, "on_enter"),
				      kern_program_find(real, "on_return")),
			 KERN_PAIR_CALLS);
	assert_int_equal(
		kern_pair_of(kern_program_find(real, "on_enter"), kern_program_find(real, "talk")),
		KERN_PAIR_NONE);
	assert_ok(kern_calibrate_prepare(kern, real, true, &err));
	assert_ok(kern_load(kern, &err));
	assert_ok(kern_map_place(map(kern, ".bss"), NULL, &place, &err));
	bss = place;
	pair[0] = kern_program_find(kern, "on_enter");
	pair[1] = kern_program_find(kern, "on_return");
	kern_calibrate_leaves(pair[1]);
	assert_ok(kern_calibrate(pair, 2, &run, &err));
	/* One stays open around them. */
	assert_int_equal(bss->entered, 101);
	assert_int_equal(bss->left, 101);
}

static void take_line(void *context, const char *line, size_t size)
{
	struct buf *lines = context;

	assert_int_equal(strlen(line), size);
	buf_printf(lines, "%s\n", line);
}

static void test_printk(void **state)
{
	struct fixture *fixture = *state;
	CLEANUP(kern_printk_close_cleanup) struct kern_printk *printk = NULL;
	CLEANUP(buf_deinit) struct buf lines = { 0 };
	struct err err = { 0 };
	char expected[64];
	int i, code;

	code = kern_printk_open(take_line, &lines, &printk, &err);
	if (code == -ENOENT || code == -EPERM)
		skip();
	assert_ok(code);
	for (i = 0; i < 3; i++)
		assert_int_equal(kern_program_run(kern_program_find(fixture->kern, "talk"), -1), 0);
	struct pollfd ready = { .fd = kern_printk_fd(printk), .events = POLLIN };
	assert_int_equal(poll(&ready, 1, 1000), 1);
	assert_true(kern_printk_consume(printk) >= 3 * sysconf(_SC_NPROCESSORS_ONLN));
	snprintf(expected, sizeof(expected), "duet test %d says 42\n", getpid());
	assert_text(lines.data, expected);
	assert_int_equal(kern_printk_consume(printk), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, load_kern, close_kern)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(totals),         TEST(totals_refused),   TEST(target), TEST(exec_from_thread),
		TEST(calibrate_user), TEST(calibrate_places), TEST(printk),
	};

	return cmocka_run_group_tests(tests, setup_image, teardown_image);
}
