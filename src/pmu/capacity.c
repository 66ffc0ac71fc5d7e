// SPDX-License-Identifier: BSD-2-Clause
/*
 * How many counters are free, by trying: pinned events are opened until one of them finds no
 * counter. What others have pinned (the watchdog, another tool) is thereby taken off.
 */
#include "pmu/counter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#define TRIES 64 /* more counters than any CPU has */

/* First those that no CPU counts in a counter of their own; cycles and, on x86, instructions do. */
static const struct {
	const char *name;
	uint64_t config;
} candidates[] = {
	{ "branch-misses", PERF_COUNT_HW_BRANCH_MISSES },
	{ "cache-misses", PERF_COUNT_HW_CACHE_MISSES },
	{ "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "instructions", PERF_COUNT_HW_INSTRUCTIONS },
};

struct search {
	const struct pmu_system *system;
	struct pmu_capacity *found;
	size_t count, capacity;
	bool failed;
};

static int open_pinned(const struct pmu_system *system, uint64_t config, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = config,
		.pinned = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return system->open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A pinned event that found no counter is in an error state: it reads as end of file. */
static bool counts(const struct pmu_system *system, int fd)
{
	uint64_t values[8];

	return system->read(fd, values, sizeof(values)) > 0;
}

static unsigned int count_free(const struct pmu_system *system, uint64_t config, int cpu)
{
	unsigned int opened = 0, good = 0;
	int fds[TRIES];

	while (opened < TRIES) {
		fds[opened] = open_pinned(system, config, cpu);
		if (fds[opened] < 0)
			break;
		opened++;
		if (!counts(system, fds[opened - 1]))
			break;
		good++;
	}
	while (opened)
		close(fds[--opened]);
	return good;
}

/* Of a hybrid CPU the upper half of config says which of its PMUs is meant. */
static int choose_event(const struct pmu_system *system, uint64_t upper, int cpu)
{
	size_t i;

	for (i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		int fd = open_pinned(system, candidates[i].config | upper, cpu);

		if (fd < 0)
			continue;
		close(fd);
		return i;
	}
	return -1;
}

static void measure(void *context, const char *pmu)
{
	struct search *search = context;
	struct pmu_event event = { 0 };
	struct pmu_capacity *row;
	CLEANUP(free_pointer)
	int *cpus = NULL;
	size_t ncpus = 0;
	uint64_t upper;
	int chosen;

	if (search->failed || !pmu_sysfs_is_core(search->system, pmu) ||
	    pmu_sysfs_init(search->system, pmu, &event))
		return;
	if (*event.cpumask && pmu_cpu_list(event.cpumask, &cpus, &ncpus))
		return;
	upper = !strncmp(pmu, "cpu_", 4) ? (uint64_t)event.attr.type << 32 : 0;
	row = array_grow(&search->found, &search->count, &search->capacity, sizeof(*row));
	if (!row) {
		search->failed = true;
		return;
	}
	*row = (struct pmu_capacity){ .cpu = ncpus ? cpus[0] : 0 };
	snprintf(row->pmu, sizeof(row->pmu), "%s", pmu);
	chosen = choose_event(search->system, upper, row->cpu);
	if (chosen < 0)
		return;
	row->event = candidates[chosen].name;
	row->free = count_free(search->system, candidates[chosen].config | upper, row->cpu);
}

int pmu_capacities_on(const struct pmu_system *system, struct pmu_capacity **ret, size_t *count,
		      struct err *err)
{
	struct search search = { .system = pmu_system_or_this(system) };

	pmu_sysfs_each(search.system, "", measure, &search);
	if (search.failed) {
		free(search.found);
		return err_nomem(err);
	}
	*ret = search.found;
	*count = search.count;
	return 0;
}

int pmu_capacities(struct pmu_capacity **ret, size_t *count, struct err *err)
{
	return pmu_capacities_on(NULL, ret, count, err);
}

/* ---- whether a list of events fits --------------------------------------------------------------- */

/* An event that takes a counter of the CPU's cores. */
static bool is_core_event(const struct pmu_system *system, const struct pmu_event *event)
{
	return !event->software && !*event->missing &&
	       (pmu_is_generic(event) || pmu_sysfs_is_core(system, event->pmu));
}

/* Alone, pinned and running. 1: it counts, 0: it found no counter, -errno: it cannot be. */
static int try_pinned(const struct pmu_system *system, const struct pmu_event *event, int cpu,
		      struct pmu_counter **ret)
{
	struct pmu_event pinned = *event;
	struct err ignored = { 0 };
	int code;

	pinned.attr.pinned = 1;
	pinned.attr.exclusive = 0;
	code = pmu_open_on(system, &pinned, &cpu, 1, NULL, ret, &ignored);
	if (code)
		return code;
	if ((*ret)->state != PMU_OPEN)
		return -EOPNOTSUPP;
	code = pmu_enable(*ret);
	return code ? code : counts(system, (*ret)->places[0].fd);
}

struct core_name {
	const struct pmu_system *system;
	struct pmu_fit *fit;
};

static void name_core(void *context, const char *pmu)
{
	struct core_name *name = context;
	CLEANUP(free_pointer) int *cpus = NULL;
	struct pmu_event event = { 0 };
	size_t count = 0, i;

	if (!pmu_sysfs_is_core(name->system, pmu) || pmu_sysfs_init(name->system, pmu, &event))
		return;
	if (*event.cpumask && pmu_cpu_list(event.cpumask, &cpus, &count))
		return;
	for (i = 0; i < count && cpus[i] != name->fit->cpu; i++)
		;
	if (i < count || !*event.cpumask)
		snprintf(name->fit->pmu, sizeof(name->fit->pmu), "%s", pmu);
}

static int fit_on_cpu(const struct pmu_system *system, const struct pmu_event *const *events,
		      size_t count, int cpu, struct pmu_fit *ret)
{
	CLEANUP(free_pointer) struct pmu_counter **open = calloc(count + 1, sizeof(*open));
	struct pmu_fit fit = { .cpu = cpu };
	struct core_name name = { system, &fit };
	size_t i;

	if (!open)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		int code;

		if (!is_core_event(system, events[i]))
			continue;
		code = try_pinned(system, events[i], cpu, &open[i]);
		fit.asked += code >= 0;
		fit.fit += code > 0;
	}
	for (i = 0; i < count; i++)
		pmu_close(open[i]);
	if (fit.fit < fit.asked)
		pmu_sysfs_each(system, "", name_core, &name);
	*ret = fit;
	return 0;
}

int pmu_fit_on(const struct pmu_system *system, const struct pmu_event *const *events, size_t count,
	       const int *cpus, size_t ncpus, struct pmu_fit *ret)
{
	struct pmu_kind *kinds;
	size_t nkinds, kind, i;
	int code;

	system = pmu_system_or_this(system);
	code = pmu_kinds_find(system, &kinds, &nkinds);
	if (code)
		return code;
	code = fit_on_cpu(system, events, count, cpus[0], ret);
	/* One CPU for each other kind of cores: the tightest is told. */
	for (kind = 0; !code && kind < nkinds; kind++) {
		struct pmu_fit fit;

		for (i = 0; i < ncpus && !pmu_kind_has(&kinds[kind], cpus[i]); i++)
			;
		if (i == ncpus || !i)
			continue;
		code = fit_on_cpu(system, events, count, cpus[i], &fit);
		if (!code && fit.asked - fit.fit > ret->asked - ret->fit)
			*ret = fit;
	}
	pmu_kinds_free(kinds, nkinds);
	return code;
}

int pmu_fit(const struct pmu_event *const *events, size_t count, const int *cpus, size_t ncpus,
	    struct pmu_fit *ret)
{
	return pmu_fit_on(NULL, events, count, cpus, ncpus, ret);
}
