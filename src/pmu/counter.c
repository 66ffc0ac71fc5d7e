// SPDX-License-Identifier: BSD-2-Clause
/* What can be done with an open counter. */
#include "pmu/counter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define GROUP_MAX 64 /* more members than a group of the hardware's can have; software events too */

void pmu_place_close(const struct pmu_counter *counter, struct pmu_place *place)
{
	if (place->page)
		counter->system->unmap(place->page);
	if (place->fd >= 0)
		close(place->fd);
	*place = (struct pmu_place){ .cpu = place->cpu, .fd = -1, .kept = place->kept };
}

void pmu_close(struct pmu_counter *counter)
{
	size_t i;

	if (!counter)
		return;
	for (i = 0; i < counter->count; i++)
		pmu_place_close(counter, &counter->places[i]);
	pmu_kinds_free(counter->kinds, counter->nkinds);
	free(counter->places);
	free(counter);
}

enum pmu_state pmu_counter_state(const struct pmu_counter *counter)
{
	return counter->state;
}

const struct pmu_event *pmu_counter_event(const struct pmu_counter *counter)
{
	return &counter->event;
}

const char *pmu_counter_reason(const struct pmu_counter *counter)
{
	return counter->reason;
}

bool pmu_counter_grouped(const struct pmu_counter *counter)
{
	return counter->grouped;
}

struct pmu_place *pmu_place_of(const struct pmu_counter *counter, int cpu)
{
	size_t i;

	for (i = 0; i < counter->count; i++) {
		if (counter->places[i].cpu == cpu)
			return &counter->places[i];
	}
	return NULL;
}

int pmu_counter_fd(const struct pmu_counter *counter, int cpu)
{
	const struct pmu_place *place = pmu_place_of(counter, cpu);

	return place ? place->fd : -1;
}

static int request(const struct pmu_counter *counter, const struct pmu_place *place,
		   unsigned long request, unsigned long argument)
{
	return place->fd < 0 ? 0 : counter->system->control(place->fd, request, argument);
}

/* The request on every CPU: 0 or the first error, but every CPU is asked. */
static int request_all(struct pmu_counter *counter, unsigned long what, unsigned long argument)
{
	int first = 0;
	size_t i;

	for (i = 0; i < counter->count; i++) {
		int code = request(counter, &counter->places[i], what, argument);

		if (code < 0 && !first)
			first = code;
	}
	return first;
}

int pmu_enable(struct pmu_counter *counter)
{
	return request_all(counter, PERF_EVENT_IOC_ENABLE, 0);
}

int pmu_enable_cpu(struct pmu_counter *counter, int cpu)
{
	const struct pmu_place *place = pmu_place_of(counter, cpu);

	return place ? request(counter, place, PERF_EVENT_IOC_ENABLE, 0) : 0;
}

int pmu_disable(struct pmu_counter *counter)
{
	return request_all(counter, PERF_EVENT_IOC_DISABLE, 0);
}

int pmu_set_rate(struct pmu_counter *counter, const struct pmu_rate *rate)
{
	uint64_t value = counter->attr.freq ? rate->freq : rate->period;

	if (!value || !counter->attr.sample_period)
		return -EINVAL;
	return request_all(counter, PERF_EVENT_IOC_PERIOD, (unsigned long)&value);
}

/* ---- values --------------------------------------------------------------------------------- */

/* What read(2) gives for PERF_FORMAT_GROUP | PERF_FORMAT_ID and both times. */
struct group {
	uint64_t count, enabled, running;
	struct {
		uint64_t value, id;
	} members[GROUP_MAX];
};

/* All values of the group that @place is in (alone, it is a group of one), by one read(2). */
static int read_group(const struct pmu_counter *counter, const struct pmu_place *place,
		      struct group *ret)
{
	ssize_t got = counter->system->read(place->fd, ret, sizeof(*ret));

	if (got < 0)
		return got;
	/* Nothing to read: a pinned event that got no counter. */
	if (!got)
		*ret = (struct group){ 0 };
	else if (got < 24 || ret->count > GROUP_MAX ||
		 (uint64_t)got != 24 + ret->count * sizeof(ret->members[0]))
		return -EIO;
	return 0;
}

/* The value of @place's event among those of its group. */
static int pick(const struct pmu_counter *counter, struct pmu_place *place,
		const struct group *group, struct pmu_reading *ret)
{
	uint64_t i;
	int code;

	*ret = (struct pmu_reading){ 0, group->enabled, group->running };
	if (!group->count)
		return 0;
	if (group->count == 1) { /* itself, or a leader that is not asked for here */
		ret->count = group->members[0].value;
		return 0;
	}
	if (!place->id) {
		code = counter->system->control(place->fd, PERF_EVENT_IOC_ID,
						(unsigned long)&place->id);
		if (code < 0)
			return code;
	}
	for (i = 0; i < group->count; i++) {
		if (group->members[i].id == place->id) {
			ret->count = group->members[i].value;
			return 0;
		}
	}
	return -ENOENT;
}

static void add(struct pmu_reading *sum, const struct pmu_reading *one)
{
	sum->count += one->count;
	sum->enabled += one->enabled;
	sum->running += one->running;
}

/* Without a system call, where that can be. Software events count in the kernel alone. */
static int read_page(const struct pmu_counter *counter, struct pmu_place *place,
		     struct pmu_reading *ret)
{
	const struct pmu_system *system = counter->system;
	int code;

	if (counter->event.software)
		return -EAGAIN;
	if (!place->page_tried) {
		place->page_tried = true;
		place->page = system->map(place->fd);
		if (place->page && !pmu_page_is_useful(place->page)) {
			system->unmap(place->page);
			place->page = NULL;
		}
	}
	/* Another thread may read the page: it stays mapped. */
	if (!place->page || __atomic_load_n(&place->page_refused, __ATOMIC_RELAXED))
		return -EAGAIN;
	code = pmu_page_read(system->machine, place->page, place->cpu, ret);
	if (code == -EPERM)
		__atomic_store_n(&place->page_refused, true, __ATOMIC_RELAXED);
	return code;
}

static int read_place(const struct pmu_counter *counter, struct pmu_place *place,
		      struct pmu_reading *ret)
{
	struct pmu_reading now = { 0 };
	struct group group;
	int code = 0;

	if (place->fd >= 0 && read_page(counter, place, &now)) {
		code = read_group(counter, place, &group);
		if (!code)
			code = pick(counter, place, &group, &now);
	}
	if (code)
		return code;
	*ret = place->kept;
	add(ret, &now);
	return 0;
}

int pmu_read_cpu(const struct pmu_counter *counter, int cpu, struct pmu_reading *ret)
{
	struct pmu_place *place = pmu_place_of(counter, cpu);

	if (!place || (place->fd < 0 && !place->kept.enabled))
		return -ENOENT;
	return read_place(counter, place, ret);
}

int pmu_cpu_time(const struct pmu_counter *counter, int cpu, uint64_t *ret)
{
	const struct pmu_place *place = pmu_place_of(counter, cpu);
	struct group group;
	int code;

	if (!place || place->fd < 0)
		return -ENOENT;
	code = read_group(counter, place, &group);
	if (!code)
		*ret = group.enabled;
	return code;
}

int pmu_read(const struct pmu_counter *counter, struct pmu_reading *ret)
{
	struct pmu_reading sum = { 0 };
	size_t i;

	if (counter->state != PMU_OPEN)
		return -EOPNOTSUPP;
	for (i = 0; i < counter->count; i++) {
		struct pmu_reading one;
		int code = read_place(counter, &counter->places[i], &one);

		if (code)
			return code;
		add(&sum, &one);
	}
	*ret = sum;
	return 0;
}

/* On one CPU: 0, -EXDEV when they are not in one group there. */
static int read_together(const struct pmu_counter *const *counters, size_t count, int cpu,
			 struct pmu_reading *sums)
{
	const struct pmu_place *first = pmu_place_of(counters[0], cpu);
	struct group group;
	size_t i;
	int code = first->fd < 0 ? 0 : read_group(counters[0], first, &group);

	for (i = 0; !code && i < count; i++) {
		struct pmu_place *place = pmu_place_of(counters[i], cpu);
		struct pmu_reading one = { 0 };

		if (!place || (place->fd < 0) != (first->fd < 0))
			return -EXDEV;
		if (place->fd >= 0 && i && group.count == 1)
			return -EXDEV;
		if (place->fd >= 0)
			code = pick(counters[i], place, &group, &one);
		add(&sums[i], &one);
		add(&sums[i], &place->kept);
	}
	return code == -ENOENT ? -EXDEV : code;
}

int pmu_read_together(const struct pmu_counter *const *counters, size_t count,
		      struct pmu_reading *ret)
{
	CLEANUP(free_pointer) struct pmu_reading *sums = calloc(count, sizeof(*sums));
	size_t i;
	int code;

	if (!sums)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (counters[i]->state != PMU_OPEN)
			return -EOPNOTSUPP;
		if (counters[i]->count != counters[0]->count)
			return -EXDEV;
	}
	for (i = 0; i < counters[0]->count; i++) {
		code = read_together(counters, count, counters[0]->places[i].cpu, sums);
		if (code)
			return code;
	}
	memcpy(ret, sums, count * sizeof(*ret));
	return 0;
}
