// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake.h"

static struct pmu_event parse(const char *text)
{
	struct pmu_event event;
	struct err err = { 0 };

	if (pmu_parse(text, &event, &err))
		fail_msg("%s", err.text);
	return event;
}

/* The CPU that this process is pinned to from here on. */
static int pin(void)
{
	cpu_set_t set;
	int cpu;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	return cpu;
}

/* Takes exactly @pages page faults. */
static void fault(size_t pages)
{
	size_t i, size = pages * 4096;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, size, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++)
		memory[i * 4096] = 1;
	munmap(memory, size);
}

static bool real_time(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO ? 1 : 0 };

	return !sched_setscheduler(0, policy, &param);
}

static void page_faults_of_this_cpu_are_exact(void **state)
{
	enum { PAGES = 1000 };
	CLEANUP(pmu_close_cleanup)
	struct pmu_counter *counter = NULL;
	struct pmu_event event = parse("page-faults:u");
	int cpu = pin(), attempt;
	uint64_t delta = 0;
	bool alone;

	assert_int_equal(pmu_open(&event, &cpu, 1, NULL, &counter, NULL), 0);
	assert_int_equal(pmu_counter_state(counter), PMU_OPEN);
	assert_int_equal(pmu_counter_fd(counter, cpu + 1), -1);
	fault(PAGES); /* disabled: not counted */
	assert_int_equal(pmu_enable(counter), 0);
	/* Others fault on this CPU too; in the real-time class they cannot run in between. */
	for (attempt = 0; attempt < 50; attempt++) {
		struct pmu_reading before, after;

		alone = real_time(SCHED_FIFO);
		assert_int_equal(pmu_read_cpu(counter, cpu, &before), 0);
		fault(PAGES);
		assert_int_equal(pmu_read_cpu(counter, cpu, &after), 0);
		real_time(SCHED_OTHER);
		delta = after.count - before.count;
		assert_true(delta >= PAGES);
		assert_true(after.enabled > before.enabled);
		assert_int_equal(after.enabled - before.enabled, after.running - before.running);
		if (!attempt)
			assert_true(before.count < PAGES);
		if (delta == PAGES)
			break;
	}
	if (alone)
		assert_int_equal(delta, PAGES);
	assert_int_equal(pmu_disable(counter), 0);
}

static void all_cpus_sum_up(void **state)
{
	CLEANUP(pmu_close_cleanup)
	struct pmu_counter *counter = NULL;
	CLEANUP(free_pointer)
	int *cpus = NULL;
	struct pmu_event event = parse("cpu-clock");
	struct pmu_reading all, one, sum = { 0 };
	size_t count, i;

	assert_int_equal(pmu_parse_cpus(NULL, &cpus, &count, NULL), 0);
	assert_int_equal(pmu_open(&event, cpus, count, NULL, &counter, NULL), 0);
	assert_int_equal(pmu_enable(counter), 0);
	usleep(20000);
	assert_int_equal(pmu_disable(counter), 0);
	assert_int_equal(pmu_read(counter, &all), 0);
	for (i = 0; i < count; i++) {
		assert_int_equal(pmu_read_cpu(counter, cpus[i], &one), 0);
		assert_true(one.count >= 20000000);
		sum.count += one.count;
		sum.enabled += one.enabled;
		sum.running += one.running;
	}
	assert_memory_equal(&all, &sum, sizeof(sum));
	assert_int_equal(pmu_read_cpu(counter, cpus[count - 1] + 1, &one), -ENOENT);
}

static bool has_pmu(void)
{
	return !pmu_probe("cycles", NULL);
}

static void missing_event_is_a_state_with_a_reason(void **state)
{
	CLEANUP(pmu_close_cleanup)
	struct pmu_counter *counter = NULL;
	struct pmu_event event = parse("cycles");
	struct pmu_reading reading = { .count = 7 };
	struct err err = { 0 };
	int cpu = pin();

	if (has_pmu()) {
		print_message("this machine has a PMU\n");
		return;
	}
	assert_int_equal(pmu_open(&event, &cpu, 1, NULL, &counter, &err), 0);
	assert_int_equal(pmu_counter_state(counter), PMU_NOT_SUPPORTED);
	assert_string_equal(pmu_counter_reason(counter),
			    "this machine has no hardware PMU (a VM without vPMU?)");
	assert_string_equal(err.text, "event 'cycles': not supported: this machine has no hardware "
				      "PMU (a VM without vPMU?)");
	assert_int_equal(pmu_counter_fd(counter, cpu), -1);
	assert_int_equal(pmu_enable(counter), 0);
	assert_int_equal(pmu_read(counter, &reading), -EOPNOTSUPP);
	assert_int_equal(pmu_read_cpu(counter, cpu, &reading), -ENOENT);
	assert_int_equal(reading.count, 7);
	assert_int_equal(pmu_probe("cycles", &err), -EOPNOTSUPP);
	assert_int_equal(pmu_probe("page-faults", &err), 0);
	assert_int_equal(pmu_probe("page-falts", &err), -ENOENT);
	assert_int_equal(pmu_probe("no_such_thing/x/", &err), -ENOENT);
}

/* A group whose first member is missing on most test machines: the others form it. */
static void group_goes_on_without_missing_members(void **state)
{
	struct pmu_event events[] = { parse("cpu_atom/event=0xff/"), parse("page-faults"),
				      parse("r77777"), parse("minor-faults") };
	struct pmu_counter *counters[4], *leader = NULL;
	struct pmu_reading major, minor;
	struct err err = { 0 };
	int cpu = pin(), i;

	if (has_pmu()) {
		print_message("this machine has a PMU\n");
		return;
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(pmu_open(&events[i], &cpu, 1, leader, &counters[i], &err), 0);
		if (!i)
			assert_non_null(strstr(err.text, "there is no PMU cpu_atom here"));
		if (!leader && pmu_counter_state(counters[i]) == PMU_OPEN)
			leader = counters[i];
	}
	assert_int_equal(pmu_counter_state(counters[0]), PMU_NOT_SUPPORTED);
	assert_int_equal(pmu_counter_state(counters[1]), PMU_OPEN);
	assert_int_equal(pmu_counter_state(counters[2]), PMU_NOT_SUPPORTED);
	assert_int_equal(pmu_counter_state(counters[3]), PMU_OPEN);
	assert_false(pmu_counter_grouped(counters[1]));
	assert_true(pmu_counter_grouped(counters[3]));
	/* The leader takes its member along, for the same time to the nanosecond. */
	assert_int_equal(pmu_enable(counters[1]), 0);
	fault(100);
	assert_int_equal(pmu_disable(counters[1]), 0);
	fault(100);
	assert_int_equal(pmu_read(counters[1], &major), 0);
	assert_int_equal(pmu_read(counters[3], &minor), 0);
	assert_true(minor.count >= 100);
	assert_true(major.count >= minor.count);
	assert_int_equal(major.enabled, minor.enabled);
	assert_int_equal(major.running, minor.running);
	for (i = 0; i < 4; i++)
		pmu_close(counters[i]);
}

static void sampling_opens_and_changes_its_rate(void **state)
{
	CLEANUP(pmu_close_cleanup)
	struct pmu_counter *counter = NULL, *counting = NULL;
	struct pmu_event event = parse("cpu-clock:P");
	struct pmu_rate rate = { .freq = 99 }, both = { 1, 1 }, none = { 0 },
			fast = { .freq = 1u << 31 };
	struct err err = { 0 };
	int cpu = pin();

	assert_int_equal(pmu_open_sampling(&event, &both, &cpu, 1, &counter, &err), -EINVAL);
	assert_int_equal(pmu_open_sampling(&event, &none, &cpu, 1, &counter, &err), -EINVAL);
	assert_int_equal(pmu_open_sampling(&event, &fast, &cpu, 1, &counter, &err), -EINVAL);
	assert_non_null(strstr(err.text, "perf_event_max_sample_rate"));
	assert_null(counter);
	assert_int_equal(pmu_open_sampling(&event, &rate, &cpu, 1, &counter, &err), 0);
	assert_true(pmu_counter_fd(counter, cpu) >= 0);
	assert_int_equal(pmu_enable(counter), 0);
	rate.freq = 199;
	assert_int_equal(pmu_set_rate(counter, &rate), 0);
	rate = (struct pmu_rate){ .period = 5 };
	assert_int_equal(pmu_set_rate(counter, &rate), -EINVAL);
	assert_int_equal(pmu_open(&event, &cpu, 1, NULL, &counting, NULL), 0);
	rate = (struct pmu_rate){ .freq = 5 };
	assert_int_equal(pmu_set_rate(counting, &rate), -EINVAL);
}

/* ---- failures of the kernel, made by a shim ---------------------------------------------- */

/* What the shim does: by CPU, alone and as a member of a group; 0 opens /dev/null. */
static struct {
	int alone[4], member[4];
	int opened;
	struct perf_event_attr last;
	int precise_from; /* precise_ip above this is refused */
} plan;

static int shim_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		     unsigned long flags)
{
	int code = group_fd >= 0 ? plan.member[cpu] : plan.alone[cpu];

	assert_int_equal(pid, -1);
	assert_int_equal(flags, PERF_FLAG_FD_CLOEXEC);
	if (attr->precise_ip > plan.precise_from)
		return -EOPNOTSUPP;
	if (code)
		return code;
	plan.last = *attr;
	plan.opened++;
	return dup(STDERR_FILENO);
}

static const int four[] = { 0, 1, 2, 3 };

static int setup_fake(void **state)
{
	struct fake *fake = malloc(sizeof(*fake));

	fake_create(fake);
	fake->system.open = shim_open;
	memset(&plan, 0, sizeof(plan));
	*state = fake;
	return 0;
}

static int teardown_fake(void **state)
{
	fake_destroy(*state);
	free(*state);
	return 0;
}

static int open_on(struct fake *fake, const char *text, const struct pmu_counter *leader,
		   struct pmu_counter **ret, struct err *err)
{
	struct pmu_event event;

	*err = (struct err){ 0 };
	if (pmu_parse_on(&fake->system, text, &event, err))
		fail_msg("%s", err->text);
	return pmu_open_on(&fake->system, &event, four, 4, leader, ret, err);
}

static int open_descriptors(void)
{
	int fd, count = 0;

	for (fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void real_failures_say_what_to_do(void **state)
{
	static const struct {
		int code;
		const char *says;
	} failures[] = {
		{ -EACCES, "perf_event_paranoid is 2" },
		{ -EPERM, "sysctl" },
		{ -EMFILE, "ulimit -n" },
		{ -EBUSY, "another tool" },
		{ -ENOSPC, "reserved" },
		{ -ENOMEM, "CPU 2" },
	};
	int before = open_descriptors();
	size_t i;

	for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct pmu_counter *counter = NULL;
		struct err err;

		plan.alone[2] = failures[i].code;
		assert_int_equal(open_on(*state, "cycles", NULL, &counter, &err), failures[i].code);
		assert_null(counter);
		assert_memory_equal(err.text, "event 'cycles': ", 16);
		if (!strstr(err.text, failures[i].says))
			fail_msg("%s", err.text);
		/* The CPUs that did open are closed again. */
		assert_int_equal(open_descriptors(), before);
	}
}

static void missing_on_some_cpus_is_open_on_the_others(void **state)
{
	struct pmu_counter *counter;
	struct err err;

	plan.alone[1] = plan.alone[2] = -ENODEV;
	assert_int_equal(open_on(*state, "cycles", NULL, &counter, &err), 0);
	assert_int_equal(pmu_counter_state(counter), PMU_OPEN);
	assert_true(pmu_counter_fd(counter, 0) >= 0 && pmu_counter_fd(counter, 3) >= 0);
	assert_int_equal(pmu_counter_fd(counter, 1), -1);
	assert_int_equal(err.code, 0);
	pmu_close(counter);
}

static void missing_on_all_cpus_is_not_supported(void **state)
{
	static const struct {
		int code;
		const char *text, *says;
	} rows[] = {
		{ -ENOENT, "cache-misses", "the CPU has no such event" },
		{ -EINVAL, "cpu/event=1/", "the CPU has no such event" },
		{ -EINVAL, "uncore_x/event=1/", "the PMU has no such event" },
		{ -EOPNOTSUPP, "cycles:pp", "leave out :p" },
		{ -ENODEV, "cycles", "no CPU that is measured" },
		{ -ENOSYS, "cpu-clock", "no perf events" },
	};
	size_t i, cpu;

	plan.precise_from = 3;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pmu_counter *counter;
		struct err err;

		for (cpu = 0; cpu < 4; cpu++)
			plan.alone[cpu] = rows[i].code;
		assert_int_equal(open_on(*state, rows[i].text, NULL, &counter, &err), 0);
		assert_int_equal(pmu_counter_state(counter), PMU_NOT_SUPPORTED);
		if (!strstr(err.text, rows[i].says) ||
		    !strstr(pmu_counter_reason(counter), rows[i].says))
			fail_msg("%s", err.text);
		pmu_close(counter);
	}
}

static void uncore_opens_on_its_cpumask_only(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter;
	struct pmu_event event;
	struct err err;

	assert_int_equal(open_on(fake, "uncore_x/data_reads/", NULL, &counter, &err), 0);
	assert_int_equal(plan.opened, 1);
	assert_true(pmu_counter_fd(counter, 1) >= 0);
	assert_int_equal(pmu_counter_fd(counter, 0), -1);
	pmu_close(counter);
	assert_int_equal(pmu_parse_on(&fake->system, "uncore_x/event=1/", &event, NULL), 0);
	assert_int_equal(pmu_open_on(&fake->system, &event, four, 1, NULL, &counter, &err), 0);
	assert_int_equal(pmu_counter_state(counter), PMU_NOT_SUPPORTED);
	assert_non_null(strstr(err.text, "counts on CPU 1 only"));
	pmu_close(counter);
}

static void member_that_fits_in_no_group_is_alone(void **state)
{
	struct pmu_counter *leader, *member;
	struct err err;
	int cpu;

	assert_int_equal(open_on(*state, "cycles:D", NULL, &leader, &err), 0);
	assert_true(plan.last.disabled && plan.last.pinned);
	assert_int_equal(open_on(*state, "instructions:De", leader, &member, &err), 0);
	assert_true(pmu_counter_grouped(member));
	assert_false(plan.last.disabled || plan.last.pinned || plan.last.exclusive);
	pmu_close(member);
	for (cpu = 0; cpu < 4; cpu++)
		plan.member[cpu] = -EINVAL;
	assert_int_equal(open_on(*state, "branches", leader, &member, &err), 0);
	assert_int_equal(pmu_counter_state(member), PMU_OPEN);
	assert_false(pmu_counter_grouped(member));
	assert_true(plan.last.disabled);
	assert_non_null(strstr(err.text, "cannot be in one group with 'cycles:D'"));
	pmu_close(member);
	pmu_close(leader);
}

static void cpu_lists(void **state)
{
	static const struct {
		const char *text;
		int code;
		size_t count;
		int ids[4];
	} rows[] = {
		{ NULL, 0, 4, { 0, 1, 2, 3 } },
		{ "0-3", 0, 4, { 0, 1, 2, 3 } },
		{ "2", 0, 1, { 2 } },
		{ "3,0-1,1", 0, 3, { 0, 1, 3 } },
		{ "", -EINVAL },
		{ "1,", -EINVAL },
		{ ",1", -EINVAL },
		{ "3-1", -EINVAL },
		{ "1-", -EINVAL },
		{ "-1", -EINVAL },
		{ "x", -EINVAL },
		{ "1 ", -EINVAL },
		{ "0-99999999999", -EINVAL },
		{ "4", -ENODEV },
		{ "0-7", -ENODEV },
	};
	struct fake *fake = *state;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP(free_pointer)
		int *ids = NULL;
		struct err err = { 0 };
		size_t count = 77;

		assert_int_equal(pmu_parse_cpus_on(&fake->system, rows[i].text, &ids, &count, &err),
				 rows[i].code);
		if (rows[i].code) {
			assert_int_equal(count, 77);
			assert_non_null(strstr(err.text, rows[i].text));
			continue;
		}
		assert_int_equal(count, rows[i].count);
		assert_memory_equal(ids, rows[i].ids, count * sizeof(*ids));
	}
}

static void file_limit_is_raised_and_told(void **state)
{
	pid_t pid = fork();
	int status;

	/* In a child, whose limits are nobody else's. */
	if (!pid) {
		struct rlimit limit;
		struct err err = { 0 };
		size_t granted = 0;
		bool good;

		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = 40;
		limit.rlim_max = 200;
		setrlimit(RLIMIT_NOFILE, &limit);
		good = !pmu_raise_file_limit(100, &granted, &err) && granted >= 100;
		getrlimit(RLIMIT_NOFILE, &limit);
		good = good && limit.rlim_cur >= 100 && limit.rlim_max == 200;
		/* Root may raise the hard limit as far as fs.nr_open; beyond it nobody may. */
		good = good && pmu_raise_file_limit(1UL << 40, &granted, &err) == -EMFILE;
		good = good && granted < 1UL << 40 && strstr(err.text, "1099511627776 needed");
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define FAKE(name) cmocka_unit_test_setup_teardown(name, setup_fake, teardown_fake)

/* A CPU with three counters, of which others have pinned one: the third event reads nothing. */
static unsigned int opened, room;

static int open_counted(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			unsigned long flags)
{
	(void)pid;
	(void)cpu;
	(void)group_fd;
	(void)flags;
	if (attr->type != PERF_TYPE_HARDWARE || attr->config != PERF_COUNT_HW_CACHE_MISSES)
		return -ENOENT;
	assert_true(attr->pinned && !attr->disabled);
	return open(opened++ <= room ? "/dev/zero" : "/dev/null", O_RDONLY | O_CLOEXEC);
}

static void test_capacity(void **state)
{
	struct pmu_capacity *rows = NULL;
	struct err err = { 0 };
	struct fake fake;
	size_t count = 0;

	(void)state;
	fake_create(&fake);
	fake.system.open = open_counted;
	for (room = 0; room < 4; room++) {
		opened = 0; /* the first only says whether the event is there */
		assert_int_equal(pmu_capacities_on(&fake.system, &rows, &count, &err), 0);
		assert_int_equal(count, 1);
		assert_string_equal(rows[0].pmu, "cpu");
		assert_string_equal(rows[0].event, "cache-misses");
		assert_int_equal(rows[0].free, room);
		free(rows);
	}
	fake_destroy(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(page_faults_of_this_cpu_are_exact),
		cmocka_unit_test(all_cpus_sum_up),
		cmocka_unit_test(missing_event_is_a_state_with_a_reason),
		cmocka_unit_test(group_goes_on_without_missing_members),
		cmocka_unit_test(sampling_opens_and_changes_its_rate),
		FAKE(real_failures_say_what_to_do),
		FAKE(missing_on_some_cpus_is_open_on_the_others),
		FAKE(missing_on_all_cpus_is_not_supported),
		FAKE(uncore_opens_on_its_cpumask_only),
		FAKE(member_that_fits_in_no_group_is_alone),
		FAKE(cpu_lists),
		cmocka_unit_test(file_limit_is_raised_and_told),
	};

	return cmocka_run_group_tests_name("pmu open", tests, NULL, NULL);
}
