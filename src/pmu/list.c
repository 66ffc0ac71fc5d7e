// SPDX-License-Identifier: BSD-2-Clause
/* All event names of this machine. */
#include "pmu/internal.h"

#include <stdio.h>

struct listing {
	const struct pmu_system *system;
	pmu_name_fn fn;
	void *context;
	const char *pmu;
};

static void list_cache(void *context, const char *name)
{
	struct listing *listing = context;

	listing->fn(listing->context, name, "cache", "");
}

static void list_pmu_event(void *context, const char *event)
{
	struct listing *listing = context;
	struct pmu_event parsed = { .unit = "" };
	char name[400], terms[512];

	if (pmu_sysfs_is_detail(event))
		return;
	if (pmu_sysfs_alias(listing->system, listing->pmu, event, terms, sizeof(terms), &parsed) <
	    0)
		return;
	snprintf(name, sizeof(name), "%s/%s/", listing->pmu, event);
	listing->fn(listing->context, name, listing->pmu, terms);
}

static void list_pmu(void *context, const char *pmu)
{
	struct listing *listing = context;
	char directory[320];

	listing->pmu = pmu;
	snprintf(directory, sizeof(directory), "%s/events", pmu);
	pmu_sysfs_each(listing->system, directory, list_pmu_event, listing);
}

void pmu_list_on(const struct pmu_system *system, pmu_name_fn fn, void *context)
{
	struct listing listing = { pmu_system_or_this(system), fn, context, NULL };
	const struct pmu_name *row;

	for (row = pmu_names; row->name; row++)
		fn(context, row->name, row->type == PERF_TYPE_SOFTWARE ? "software" : "hardware",
		   row->description);
	pmu_cache_each(list_cache, &listing);
	pmu_sysfs_each(listing.system, "", list_pmu, &listing);
}

void pmu_list(pmu_name_fn fn, void *context)
{
	pmu_list_on(NULL, fn, context);
	pmu_pfm_each(fn, context);
}
