// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPUs that come and go. The kernel ends the events of a CPU that goes offline for good: what they
 * counted can still be read, but they never count again.
 */
#include "pmu/counter.h"

#include <errno.h>
#include <stdlib.h>

/* Of a PMU outside the cores: the kernel takes its events along to another CPU. */
static bool is_uncore(const struct pmu_counter *counter)
{
	return *counter->event.cpumask && !pmu_sysfs_is_core(counter->system, counter->event.pmu);
}

void pmu_cpu_offline(struct pmu_counter *counter, int cpu)
{
	struct pmu_place *place = pmu_place_of(counter, cpu);
	struct pmu_reading last;

	if (!place || place->fd < 0 || is_uncore(counter))
		return;
	if (!pmu_read_cpu(counter, cpu, &last)) /* with what was kept before */
		place->kept = last;
	pmu_place_close(counter, place);
}

static struct pmu_place *add_place(struct pmu_counter *counter, int cpu)
{
	struct pmu_place *places =
		realloc(counter->places, (counter->count + 1) * sizeof(*counter->places));

	if (!places)
		return NULL;
	counter->places = places;
	places[counter->count] = (struct pmu_place){ .cpu = cpu, .fd = -1 };
	return &places[counter->count++];
}

/* Does the event's PMU count on @cpu? 0 or 1, -errno. */
static int counts_on(const struct pmu_counter *counter, int cpu)
{
	CLEANUP(free_pointer) int *mask = NULL;
	size_t i, count;
	int code;

	if (!*counter->event.cpumask)
		return 1;
	code = pmu_cpu_list(counter->event.cpumask, &mask, &count);
	if (code)
		return code;
	for (i = 0; i < count && mask[i] != cpu; i++)
		;
	return i < count;
}

int pmu_cpu_online(struct pmu_counter *counter, const struct pmu_counter *leader, int cpu)
{
	struct pmu_place *place;
	int code;

	if (counter->state != PMU_OPEN || is_uncore(counter))
		return 0;
	/* It was away for so short a time that nobody told: the event is over nevertheless. */
	pmu_cpu_offline(counter, cpu);
	place = pmu_place_of(counter, cpu);
	if (!place) {
		code = counts_on(counter, cpu);
		if (code <= 0)
			return code;
		place = add_place(counter, cpu);
		if (!place)
			return -ENOMEM;
	}
	code = pmu_open_place(counter, leader, place);
	if (code >= 0)
		place->fd = code;
	return code >= 0 || pmu_means_not_supported(code) ? 0 : code;
}
