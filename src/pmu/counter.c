// SPDX-License-Identifier: BSD-2-Clause
/* What can be done with an open counter. */
#include "pmu/counter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void pmu_close(struct pmu_counter *counter)
{
	size_t i;

	for (i = 0; counter && i < counter->count; i++) {
		if (counter->at[i].fd >= 0)
			close(counter->at[i].fd);
	}
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

int pmu_counter_fd(const struct pmu_counter *counter, int cpu)
{
	size_t i;

	for (i = 0; i < counter->count; i++) {
		if (counter->at[i].cpu == cpu)
			return counter->at[i].fd;
	}
	return -1;
}

/* The request on every CPU: 0 or the first error, but every CPU is asked. */
static int request_all(struct pmu_counter *counter, unsigned long request, unsigned long argument)
{
	int code = 0;
	size_t i;

	for (i = 0; i < counter->count; i++) {
		if (counter->at[i].fd >= 0 && ioctl(counter->at[i].fd, request, argument) && !code)
			code = -errno;
	}
	return code;
}

int pmu_enable(struct pmu_counter *counter)
{
	return request_all(counter, PERF_EVENT_IOC_ENABLE, 0);
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

static int read_fd(int fd, struct pmu_reading *ret)
{
	struct pmu_reading reading = { 0 };
	ssize_t got = read(fd, &reading, sizeof(reading));

	if (got < 0)
		return -errno;
	/* Nothing to read: a pinned event that got no counter. */
	if (!got)
		reading = (struct pmu_reading){ 0 };
	else if (got != sizeof(reading))
		return -EIO;
	*ret = reading;
	return 0;
}

int pmu_read_cpu(const struct pmu_counter *counter, int cpu, struct pmu_reading *ret)
{
	int fd = pmu_counter_fd(counter, cpu);

	return fd < 0 ? -ENOENT : read_fd(fd, ret);
}

int pmu_read(const struct pmu_counter *counter, struct pmu_reading *ret)
{
	struct pmu_reading sum = { 0 };
	size_t i;

	if (counter->state != PMU_OPEN)
		return -EOPNOTSUPP;
	for (i = 0; i < counter->count; i++) {
		struct pmu_reading one;
		int code;

		if (counter->at[i].fd < 0)
			continue;
		code = read_fd(counter->at[i].fd, &one);
		if (code)
			return code;
		sum.count += one.count;
		sum.enabled += one.enabled;
		sum.running += one.running;
	}
	*ret = sum;
	return 0;
}
