// SPDX-License-Identifier: BSD-2-Clause
/* Counters of CPUs that come and go: see kernel.h. */
#include <errno.h>

#include "machine_fixture.h"

static void cpu_goes_and_comes_back(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *leader = open_on(fake, "cycles", 4, NULL);
	struct pmu_counter *member = open_on(fake, "instructions", 4, leader);
	struct pmu_reading reading;

	pmu_enable(leader);
	kernel_run(10000, rates);
	kernel_set_online(1, false);
	pmu_cpu_offline(member, 1);
	pmu_cpu_offline(leader, 1);
	pmu_cpu_offline(leader, 1); /* told twice */
	assert_int_equal(pmu_counter_fd(leader, 1), -1);
	assert_int_equal(count_of(leader), 100000);
	kernel_run(10000, rates);
	assert_int_equal(count_of(leader), 180000);
	assert_int_equal(pmu_read_cpu(leader, 1, &reading), 0);
	assert_int_equal(reading.count, 20000);
	assert_int_equal(reading.enabled, 10000);
	/* Nothing opens while it is away; that is no failure. */
	assert_int_equal(pmu_cpu_online(leader, NULL, 1), 0);
	assert_int_equal(pmu_counter_fd(leader, 1), -1);
	kernel_set_online(1, true);
	assert_int_equal(pmu_cpu_online(leader, NULL, 1), 0);
	assert_int_equal(pmu_cpu_online(member, leader, 1), 0);
	assert_true(pmu_counter_fd(member, 1) >= 0);
	kernel_run(10000, rates); /* disabled */
	assert_int_equal(count_of(member), 260000);
	assert_int_equal(pmu_enable_cpu(member, 1), 0);
	assert_int_equal(pmu_enable_cpu(leader, 1), 0);
	kernel_run(10000, rates);
	assert_int_equal(count_of(leader), 360000);
	assert_int_equal(count_of(member), 360000);
	assert_int_equal(pmu_read_cpu(member, 1, &reading), 0);
	assert_int_equal(reading.count, 40000);
	assert_int_equal(reading.running, 20000);
	pmu_close(member);
	pmu_close(leader);
}

/* Nobody may have told that a CPU went, but the time of its event stands still. */
static void the_time_of_an_ended_event_stands_still(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter = open_on(fake, "dummy", 4, NULL);
	uint64_t before, after;

	pmu_enable(counter);
	kernel_run(10000, rates);
	kernel_set_online(1, false);
	kernel_set_online(1, true);
	assert_int_equal(pmu_cpu_time(counter, 1, &before), 0);
	assert_int_equal(before, 10000);
	kernel_run(10000, rates);
	assert_int_equal(pmu_cpu_time(counter, 1, &after), 0);
	assert_int_equal(after, before);
	assert_int_equal(pmu_cpu_time(counter, 2, &after), 0);
	assert_int_equal(after, 20000);
	/* Opened anew, it begins at 0, whatever was kept. */
	assert_int_equal(pmu_cpu_online(counter, NULL, 1), 0);
	pmu_enable_cpu(counter, 1);
	kernel_run(5000, rates);
	assert_int_equal(pmu_cpu_time(counter, 1, &after), 0);
	assert_int_equal(after, 5000);
	pmu_cpu_offline(counter, 1);
	assert_int_equal(pmu_cpu_time(counter, 1, &after), -ENOENT);
	assert_int_equal(pmu_cpu_time(counter, 9, &after), -ENOENT);
	pmu_close(counter);
}

/* It was away for so short a time that only its coming back is told. */
static void cpu_that_was_away_unnoticed_counts_again(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter = open_on(fake, "cycles", 4, NULL);

	pmu_enable(counter);
	kernel_run(10000, rates);
	kernel_set_online(3, false);
	kernel_set_online(3, true);
	kernel_run(10000, rates);
	assert_int_equal(count_of(counter), 160000);
	assert_int_equal(pmu_cpu_online(counter, NULL, 3), 0);
	assert_int_equal(pmu_enable_cpu(counter, 3), 0);
	kernel_run(10000, rates);
	assert_int_equal(count_of(counter), 260000);
	pmu_close(counter);
}

static void new_cpu_is_opened_where_its_pmu_counts(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *all, *core;
	int cpu;

	kernel_make_hybrid(fake);
	all = open_on(fake, "cycles", 1, NULL);
	core = open_on(fake, "cpu_core/cycles/", 1, NULL);
	for (cpu = 1; cpu < 4; cpu++) {
		assert_int_equal(pmu_cpu_online(all, NULL, cpu), 0);
		assert_int_equal(pmu_cpu_online(core, NULL, cpu), 0);
	}
	attrs_are(all, 0, 4ULL << 32, 0, 10ULL << 32);
	attrs_are(core, 0, 4ULL << 32, NONE, 0);
	pmu_close(all);
	pmu_close(core);
}

static void uncore_events_move_by_themselves(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter = open_on(fake, "uncore_x/data_reads/", 4, NULL);
	int fd = pmu_counter_fd(counter, 1);

	pmu_enable(counter);
	kernel_run(10000, rates);
	kernel_set_online(1, false);
	pmu_cpu_offline(counter, 1);
	assert_int_equal(pmu_counter_fd(counter, 1), fd);
	kernel_run(10000, rates);
	kernel_set_online(1, true);
	assert_int_equal(pmu_cpu_online(counter, NULL, 1), 0);
	assert_int_equal(pmu_cpu_online(counter, NULL, 2), 0);
	assert_int_equal(count_of(counter), 30000); /* CPU 1's rate, then CPU 0's */
	assert_int_equal(kernel_opened(), 1);
	pmu_close(counter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(cpu_goes_and_comes_back),
		ON(the_time_of_an_ended_event_stands_still),
		ON(cpu_that_was_away_unnoticed_counts_again),
		ON(new_cpu_is_opened_where_its_pmu_counts),
		ON(uncore_events_move_by_themselves),
	};

	return cmocka_run_group_tests_name("pmu online", tests, NULL, NULL);
}
