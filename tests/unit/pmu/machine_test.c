// SPDX-License-Identifier: BSD-2-Clause
/* Counters on machines that no guest is: see kernel.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine_fixture.h"

/* ---- kinds of cores ------------------------------------------------------------------------------ */

static void generic_events_count_on_each_kind(void **state)
{
	struct fake *fake = *state;
	static const struct {
		const char *text;
		uint32_t type01;
		uint64_t config01;
		uint32_t type23;
		uint64_t config23;
	} rows[] = {
		{ "cycles", 0, 4ULL << 32, 0, 10ULL << 32 },
		{ "instructions:u", 0, 4ULL << 32 | 1, 0, 10ULL << 32 | 1 },
		{ "LLC-loads", 3, 4ULL << 32 | 2, 3, 10ULL << 32 | 2 },
		{ "r1a8", 4, 0x1a8, 10, 0x1a8 },
		{ "cpu_core/cycles/", 0, 4ULL << 32, NONE, 0 },
		{ "cpu_atom/cycles/", NONE, 0, 0, 10ULL << 32 },
		{ "cpu_atom/instructions,name=x/u", NONE, 0, 0, 10ULL << 32 | 1 },
		{ "cpu_core/LLC-load-misses/", 3, 4ULL << 32 | 0x10002, NONE, 0 },
		{ "cpu_atom/event=0x3c/", NONE, 0, 10, 0x3c },
		{ "cpu-clock", 1, 0, 1, 0 },
	};
	size_t i;

	kernel_make_hybrid(fake);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP(pmu_close_cleanup)
		struct pmu_counter *counter = open_on(fake, rows[i].text, 4, NULL);

		assert_int_equal(pmu_counter_state(counter), PMU_OPEN);
		attrs_are(counter, rows[i].type01, rows[i].config01, rows[i].type23,
			  rows[i].config23);
	}
}

static void kinds_are_summed_or_shown_apart(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *all, *core, *atom;

	kernel_make_hybrid(fake);
	all = open_on(fake, "cycles", 4, NULL);
	core = open_on(fake, "cpu_core/cycles/", 4, NULL);
	atom = open_on(fake, "cpu_atom/cycles/", 4, NULL);
	pmu_enable(all);
	pmu_enable(core);
	pmu_enable(atom);
	kernel_run(100000, rates);
	assert_int_equal(count_of(all), 1000000);
	assert_int_equal(count_of(core), 300000);
	assert_int_equal(count_of(atom), 700000);
	pmu_close(all);
	pmu_close(core);
	pmu_close(atom);
}

/* On a PMU of one kind only, names stay those of its events/. */
static void one_kind_is_as_ever(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter = open_on(fake, "cycles", 4, NULL);
	struct pmu_event event;

	attrs_are(counter, 0, 0, 0, 0);
	pmu_close(counter);
	assert_int_equal(pmu_parse_on(&fake->system, "cpu/cycles/", &event, NULL), -ENOENT);
	kernel_make_hybrid(fake);
	assert_int_equal(pmu_parse_on(&fake->system, "cpu_atom/cyclesx/", &event, NULL), -ENOENT);
	assert_int_equal(pmu_parse_on(&fake->system, "cpu_atom/cpu-clock/", &event, NULL), -ENOENT);
}

static void older_kernels_choose_by_the_cpu(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter;

	kernel_make_hybrid(fake);
	kernel_make_old();
	counter = open_on(fake, "cycles", 4, NULL);
	assert_int_equal(pmu_counter_state(counter), PMU_OPEN);
	attrs_are(counter, 0, 0, 0, 0);
	pmu_close(counter);
}

/* ---- wrap-around ---------------------------------------------------------------------------------- */

/* 48 bits are full between two readings, in user space and through the kernel. */
static void wrapping_counters_never_go_back(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter;
	uint64_t last = 0;
	unsigned int reads;
	int i;

	kernel_allow_user_reads(1);
	counter = open_on(fake, "instructions", 4, NULL);
	kernel_set_counter(pmu_counter_fd(counter, 1), 0xffffffffffff - 5000);
	kernel_set_counter(pmu_counter_fd(counter, 2), 0xffffffffffff - 5000);
	pmu_enable(counter);
	kernel_run(1000, rates);
	reads = kernel_reads();
	for (i = 2; i < 12; i++) {
		struct pmu_reading here, there;

		kernel_run(1000, rates);
		assert_int_equal(pmu_read_cpu(counter, 1, &here), 0);
		assert_int_equal(kernel_reads(), reads + i - 2);
		assert_int_equal(pmu_read_cpu(counter, 2, &there), 0);
		assert_int_equal(kernel_reads(), reads + i - 1);
		assert_int_equal(here.count, i * 2000);
		assert_int_equal(there.count, i * 3000);
		assert_int_equal(here.enabled, i * 1000);
		assert_int_equal(here.running, i * 1000);
		assert_true(here.count > last);
		last = here.count;
	}
	pmu_close(counter);
}

static void software_events_and_those_that_wait_are_read_by_call(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counters[2];
	struct pmu_reading reading;
	unsigned int reads;

	kernel_start(fake, 0); /* no counter is free */
	kernel_allow_user_reads(0);
	counters[0] = open_on(fake, "instructions", 4, NULL);
	counters[1] = open_on(fake, "page-faults", 4, NULL);
	pmu_enable(counters[0]);
	pmu_enable(counters[1]);
	kernel_run(5000, rates);
	reads = kernel_reads();
	assert_int_equal(pmu_read_cpu(counters[0], 0, &reading), 0);
	assert_int_equal(reading.enabled, 5000);
	assert_int_equal(reading.running, 0);
	assert_int_equal(pmu_read_cpu(counters[1], 0, &reading), 0);
	assert_int_equal(reading.count, 5000);
	assert_int_equal(kernel_reads(), reads + 2);
	pmu_close(counters[1]);
	pmu_close(counters[0]);
}

static void what_user_space_may_no_longer_read_is_read_by_call(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *counter;
	struct pmu_reading reading;
	unsigned int i, reads;

	kernel_allow_user_reads(1);
	counter = open_on(fake, "instructions", 4, NULL);
	pmu_enable(counter);
	kernel_run(1000, rates);
	reads = kernel_reads();
	assert_int_equal(pmu_read_cpu(counter, 1, &reading), 0);
	assert_int_equal(reading.count, 2000);
	assert_int_equal(kernel_reads(), reads);
	assert_int_equal(kernel_user_reads(), 1);
	kernel_forbid_user_reads();
	for (i = 1; i < 4; i++) {
		kernel_run(1000, rates);
		assert_int_equal(pmu_read_cpu(counter, 1, &reading), 0);
		assert_int_equal(reading.count, 2000 + i * 2000);
		assert_int_equal(reading.running, 1000 + i * 1000);
		assert_int_equal(kernel_reads(), reads + i);
	}
	assert_int_equal(kernel_user_reads(), 2); /* tried once more, and never again */
	pmu_close(counter);
}

/* ---- a virtual machine ----------------------------------------------------------------------------- */

static void virtual_machines_are_told_from_others(void **state)
{
	static const struct {
		const char *file, *text, *who; /* who: NULL, it is none */
	} rows[] = {
		{ "proc/cpuinfo", "flags\t\t: fpu vme\n\nflags\t\t: hypervisor\n", NULL },
		{ "proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n",
		  "the CPU says so" },
		{ "proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\n", NULL },
		{ "sys/firmware/devicetree/base/compatible", "linux,dummy-virt",
		  "linux,dummy-virt" },
		{ "sys/firmware/devicetree/base/compatible", "raspberrypi,4-model-b", NULL },
		{ "sys/firmware/devicetree/base/hypervisor/compatible", "xen,xen-4.17",
		  "xen,xen-4.17" },
		{ "sys/class/dmi/id/sys_vendor", "QEMU\n", "QEMU" },
		{ "sys/class/dmi/id/sys_vendor", "Dell Inc.\n", NULL },
		{ "sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n", NULL },
		{ "sys/class/dmi/id/product_name", "Google Compute Engine\n",
		  "Google Compute Engine" },
		{ "sys/hypervisor/type", "xen\n", "xen" },
	};
	struct fake *fake = *state;
	char who[128];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool yes;

		fake_write(fake, rows[i].file, rows[i].text);
		yes = pmu_is_virtual(&fake->system, who, sizeof(who));
		if (yes != (rows[i].who != NULL) || strcmp(who, rows[i].who ?: ""))
			fail_msg("row %zu: %d '%s'", i, yes, who);
		fake_remove(fake, rows[i].file);
	}
	/* Two files that only together say it, or say that it is not. */
	fake_write(fake, "sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
	fake_write(fake, "sys/class/dmi/id/product_name", "Virtual Machine\n");
	assert_true(pmu_is_virtual(&fake->system, who, sizeof(who)));
	fake_write(fake, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
	fake_write(fake, "sys/class/dmi/id/product_name", "m7g.large\n");
	assert_true(pmu_is_virtual(&fake->system, who, sizeof(who)));
	fake_write(fake, "sys/class/dmi/id/product_name", "m7g.metal\n");
	assert_false(pmu_is_virtual(&fake->system, who, sizeof(who)));
}

/* ---- groups -------------------------------------------------------------------------------------- */

static void group_is_read_at_once(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *group[3], *alone[2];
	struct pmu_reading sums[3], one;
	unsigned int reads, i;

	group[0] = open_on(fake, "cycles", 4, NULL);
	group[1] = open_on(fake, "instructions", 4, group[0]);
	group[2] = open_on(fake, "page-faults", 4, group[0]);
	alone[0] = open_on(fake, "branches", 4, NULL);
	alone[1] = open_on(fake, "cache-misses", 4, NULL);
	pmu_enable(group[0]);
	pmu_enable(alone[0]);
	pmu_enable(alone[1]);
	kernel_run(80000, rates); /* four counters asked, three there: they take turns */
	reads = kernel_reads();
	assert_int_equal(pmu_read_together((const struct pmu_counter **)group, 3, sums), 0);
	assert_int_equal(kernel_reads(), reads + 4); /* one a CPU */
	for (i = 0; i < 3; i++) {
		assert_int_equal(sums[i].enabled, 320000);
		assert_true(sums[i].running < sums[i].enabled);
		assert_int_equal(sums[i].running, sums[0].running);
		assert_int_equal(sums[i].count, sums[0].count);
		assert_int_equal(pmu_read(group[i], &one), 0);
		assert_memory_equal(&one, &sums[i], sizeof(one));
	}
	/* From a member on, in any order, and a part of the group. */
	assert_int_equal(
		pmu_read_together((const struct pmu_counter *[]){ group[2], group[0] }, 2, sums),
		0);
	assert_int_equal(sums[0].count, sums[1].count);
	sums[0].count = 7;
	assert_int_equal(
		pmu_read_together((const struct pmu_counter *[]){ group[0], alone[0] }, 2, sums),
		-EXDEV);
	assert_int_equal(pmu_read_together((const struct pmu_counter **)alone, 2, sums), -EXDEV);
	assert_int_equal(sums[0].count, 7);
	assert_int_equal(pmu_read_together((const struct pmu_counter **)alone, 1, sums), 0);
	for (i = 3; i--;)
		pmu_close(group[i]);
	pmu_close(alone[0]);
	pmu_close(alone[1]);
}

/* What went with a CPU stays part of the group's sums; in a group on some CPUs only is in none. */
static void group_over_a_cpu_that_went(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *group[2];
	struct pmu_reading sums[2];

	group[0] = open_on(fake, "cycles", 4, NULL);
	group[1] = open_on(fake, "instructions", 4, group[0]);
	pmu_enable(group[0]);
	kernel_run(10000, rates);
	kernel_set_online(3, false);
	pmu_cpu_offline(group[1], 3);
	pmu_cpu_offline(group[0], 3);
	kernel_run(10000, rates);
	assert_int_equal(pmu_read_together((const struct pmu_counter **)group, 2, sums), 0);
	assert_int_equal(sums[0].count, 160000);
	assert_int_equal(sums[1].count, 160000);
	assert_int_equal(sums[0].enabled, 70000);
	assert_int_equal(sums[1].enabled, 70000);
	kernel_set_online(3, true);
	assert_int_equal(pmu_cpu_online(group[0], NULL, 3), 0);
	assert_int_equal(pmu_cpu_online(group[1], NULL, 3), 0);
	assert_int_equal(pmu_read_together((const struct pmu_counter **)group, 2, sums), -EXDEV);
	pmu_close(group[1]);
	pmu_close(group[0]);
}

static void pinned_group_without_counters_is_not_counted(void **state)
{
	struct fake *fake = *state;
	struct pmu_counter *group[2];
	struct pmu_reading sums[2];

	kernel_start(fake, 2);
	group[0] = open_on(fake, "cycles:D", 4, NULL);
	group[1] = open_on(fake, "instructions", 4, group[0]);
	pmu_enable(group[0]);
	kernel_run(1000, rates);
	assert_int_equal(pmu_read_together((const struct pmu_counter **)group, 2, sums), 0);
	assert_int_equal(sums[1].running, 4000);
	pmu_close(group[1]);
	pmu_close(group[0]);
	kernel_start(fake, 1);
	group[0] = open_on(fake, "cycles:D", 4, NULL);
	group[1] = open_on(fake, "branches:D", 4, NULL);
	pmu_enable(group[0]);
	pmu_enable(group[1]);
	kernel_run(4000, rates);
	assert_int_equal(pmu_read(group[0], &sums[0]), 0);
	assert_int_equal(pmu_read(group[1], &sums[1]), 0);
	assert_true(!sums[0].running != !sums[1].running);
	pmu_close(group[1]);
	pmu_close(group[0]);
}

/* ---- what fits, and who else is there --------------------------------------------------------------- */

static void fit_of(struct fake *fake, const char *const *texts, size_t count, const int *cpus,
		   size_t ncpus, struct pmu_fit *ret)
{
	const struct pmu_event *events[8];
	struct pmu_event parsed[8];
	size_t i;

	for (i = 0; i < count; i++) {
		events[i] = &parsed[i];
		assert_int_equal(pmu_parse_on(&fake->system, texts[i], &parsed[i], NULL), 0);
	}
	assert_int_equal(pmu_fit_on(&fake->system, events, count, cpus, ncpus, ret), 0);
}

static void what_fits_is_found_by_trying(void **state)
{
	static const char *const texts[] = { "cycles",   "page-faults",  "instructions:u",
					     "branches", "cache-misses", "uncore_x/event=1/",
					     "r1a8" };
	static const char *const kinds[] = { "cycles", "cpu_atom/cycles/", "instructions",
					     "cpu_atom/event=1/" };
	struct fake *fake = *state;
	struct pmu_fit fit;
	int before = dup(STDERR_FILENO), after;

	close(before);
	fit_of(fake, texts, 7, four, 4, &fit);
	assert_int_equal(fit.asked, 5);
	assert_int_equal(fit.fit, 3);
	assert_string_equal(fit.pmu, "cpu");
	kernel_start(fake, 6);
	fit_of(fake, texts, 7, four, 4, &fit);
	assert_int_equal(fit.fit, 5);
	kernel_start(fake, 2);
	kernel_make_hybrid(fake);
	fit_of(fake, texts, 7, four + 3, 1, &fit);
	assert_int_equal(fit.asked, 5);
	assert_int_equal(fit.fit, 2);
	assert_string_equal(fit.pmu, "cpu_atom");
	fit_of(fake, texts + 1, 1, four, 4, &fit);
	assert_int_equal(fit.asked, 0);
	/* Two on every core, two more on one kind of them. */
	kernel_start(fake, 3);
	kernel_make_hybrid(fake);
	fit_of(fake, kinds, 4, four, 4, &fit);
	assert_int_equal(fit.asked, 4);
	assert_int_equal(fit.fit, 3);
	assert_int_equal(fit.cpu, 2);
	assert_string_equal(fit.pmu, "cpu_atom");
	fit_of(fake, kinds, 4, four, 2, &fit);
	assert_int_equal(fit.asked, 2);
	assert_int_equal(fit.fit, 2);
	after = dup(STDERR_FILENO); /* nothing is left open */
	assert_int_equal(after, before);
	close(after);
}

static void users_are_those_with_events(void **state)
{
	struct fake *fake = *state;
	struct pmu_user *users;
	char path[256];
	size_t count;

	fake_write(fake, "proc/77/comm", "other tool\n");
	fake_write(fake, "proc/77/fd/3", "");
	snprintf(path, sizeof(path), "%s/77/fd/4", fake->procfs);
	assert_int_equal(symlink("anon_inode:[perf_event]", path), 0);
	path[strlen(path) - 1] = '5';
	assert_int_equal(symlink("anon_inode:[perf_event]", path), 0);
	path[strlen(path) - 1] = '6';
	assert_int_equal(symlink("anon_inode:[eventpoll]", path), 0);
	fake_write(fake, "proc/78/comm", "none\n");
	fake_write(fake, "proc/78/fd/3", "");
	assert_int_equal(pmu_users_on(&fake->system, &users, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(users[0].pid, 77);
	assert_int_equal(users[0].events, 2);
	assert_string_equal(users[0].comm, "other tool");
	free(users);
}

/* The real /proc: a child holds two events. */
static void child_with_events_is_seen(void **state)
{
	int to_child[2], from_child[2];
	struct pmu_user *users;
	size_t count, i, found = 0;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(to_child) + pipe(from_child), 0);
	pid = fork();
	if (!pid) {
		struct pmu_event event;
		bool good = !pmu_parse("page-faults:u", &event, NULL) &&
			    pmu_open_self(&event) >= 0 && pmu_open_self(&event) >= 0;

		close(to_child[1]);
		_exit(write(from_child[1], &"01"[good], 1) != 1 || read(to_child[0], &byte, 1));
	}
	assert_int_equal(read(from_child[0], &byte, 1), 1);
	assert_int_equal(byte, '1');
	assert_int_equal(pmu_users(&users, &count), 0);
	for (i = 0; i < count; i++) {
		if (users[i].pid != pid)
			continue;
		found++;
		assert_int_equal(users[i].events, 2);
		assert_string_equal(users[i].comm, "pmu_machine_tes");
	}
	assert_int_equal(found, 1);
	free(users);
	close(to_child[0]);
	close(to_child[1]);
	close(from_child[0]);
	close(from_child[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(generic_events_count_on_each_kind),
		ON(kinds_are_summed_or_shown_apart),
		ON(one_kind_is_as_ever),
		ON(older_kernels_choose_by_the_cpu),
		ON(wrapping_counters_never_go_back),
		ON(what_user_space_may_no_longer_read_is_read_by_call),
		ON(virtual_machines_are_told_from_others),
		ON(software_events_and_those_that_wait_are_read_by_call),
		ON(group_is_read_at_once),
		ON(group_over_a_cpu_that_went),
		ON(pinned_group_without_counters_is_not_counted),
		ON(what_fits_is_found_by_trying),
		ON(users_are_those_with_events),
		cmocka_unit_test(child_with_events_is_seen),
	};

	return cmocka_run_group_tests_name("pmu machine", tests, NULL, NULL);
}
