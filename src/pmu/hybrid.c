// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPUs with several kinds of cores have a PMU for each kind. A generic event ("cycles") is then one
 * event per PMU: the upper half of config says which. Source: PERF_PMU_TYPE_SHIFT in
 * linux/perf_event.h.
 */
#include "pmu/counter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define TYPE_SHIFT 32

struct kinds {
	const struct pmu_system *system;
	struct pmu_kind *found;
	size_t count, capacity;
	int code;
};

void pmu_kinds_free(struct pmu_kind *kinds, size_t count)
{
	while (count)
		free(kinds[--count].cpus);
	free(kinds);
}

static void find_kind(void *context, const char *pmu)
{
	struct kinds *kinds = context;
	struct pmu_event event = { 0 };
	struct pmu_kind *kind;
	int *cpus;
	size_t ncpus;

	if (kinds->code || !pmu_sysfs_is_core(kinds->system, pmu) ||
	    pmu_sysfs_init(kinds->system, pmu, &event) || !*event.cpumask ||
	    pmu_cpu_list(event.cpumask, &cpus, &ncpus))
		return;
	kind = array_grow(&kinds->found, &kinds->count, &kinds->capacity, sizeof(*kind));
	if (kind)
		*kind = (struct pmu_kind){ event.attr.type, cpus, ncpus };
	else
		free(cpus);
	kinds->code = kind ? 0 : -ENOMEM;
}

int pmu_kinds_find(const struct pmu_system *system, struct pmu_kind **ret, size_t *count)
{
	struct kinds kinds = { .system = system };

	*ret = NULL;
	*count = 0;
	pmu_sysfs_each(system, "", find_kind, &kinds);
	if (kinds.code || kinds.count < 2) {
		pmu_kinds_free(kinds.found, kinds.count);
		return kinds.code;
	}
	*ret = kinds.found;
	*count = kinds.count;
	return 0;
}

bool pmu_is_generic(const struct pmu_event *event)
{
	uint32_t type = event->attr.type;

	return !*event->pmu &&
	       (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW);
}

bool pmu_kind_has(const struct pmu_kind *kind, int cpu)
{
	size_t i;

	for (i = 0; i < kind->ncpus && kind->cpus[i] != cpu; i++)
		;
	return i < kind->ncpus;
}

bool pmu_kinds_attr(const struct pmu_kind *kinds, size_t count, int cpu,
		    struct perf_event_attr *attr)
{
	size_t i;

	for (i = 0; i < count && !pmu_kind_has(&kinds[i], cpu); i++)
		;
	if (i == count)
		return false;
	if (attr->type == PERF_TYPE_RAW)
		attr->type = kinds[i].type;
	else
		attr->config |= (uint64_t)kinds[i].type << TYPE_SHIFT;
	return true;
}

/* ---- PMU/NAME/ --------------------------------------------------------------------------------- */

int pmu_generic_of(const struct pmu_system *system, const char *pmu, const char *name,
		   struct perf_event_attr *attr)
{
	const struct pmu_name *row = pmu_name_find(name, strlen(name));
	struct pmu_event event = { 0 };
	struct pmu_kind *kinds;
	uint64_t config;
	char canonical[64];
	size_t count;
	int code;

	if (!pmu_sysfs_is_core(system, pmu) || pmu_sysfs_init(system, pmu, &event))
		return -ENOENT;
	code = pmu_kinds_find(system, &kinds, &count);
	pmu_kinds_free(kinds, count);
	if (code || !count)
		return code ? code : -ENOENT;
	if (row && row->type == PERF_TYPE_HARDWARE) {
		attr->type = PERF_TYPE_HARDWARE;
		config = row->config;
	} else if (!pmu_cache_find(name, strlen(name), &config, canonical, sizeof(canonical),
				   NULL)) {
		attr->type = PERF_TYPE_HW_CACHE;
	} else {
		return -ENOENT;
	}
	attr->config = config | (uint64_t)event.attr.type << TYPE_SHIFT;
	return 0;
}
