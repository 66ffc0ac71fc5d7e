// SPDX-License-Identifier: BSD-2-Clause
/*
 * A machine that sleeps: to suspend it, the kernel takes all CPUs but one offline and back, with the
 * counters that they had, and no uevent tells. But the clock is set when it wakes up. Whether a CPU's
 * counters are over, an event that counts nothing says: the witness, whose time then stands still.
 */
#include "session/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define FAR_SECONDS 4000000000 /* of the Unix epoch: 2096 */

/* On how many CPUs is the time that which @times says? The others' is written there. */
static int look(const struct session *session, int ncpus, uint64_t *times)
{
	int cpu, standing = 0;

	for (cpu = 0; cpu < ncpus; cpu++) {
		uint64_t before = times[cpu];

		if (pmu_cpu_time(session->witness, cpu, &times[cpu]))
			times[cpu] = 0;
		standing += times[cpu] && times[cpu] == before;
	}
	return standing;
}

/* The CPUs whose events the kernel has ended, *@count of them; the caller's to free. NULL: none, or
 * nobody knows. */
static int *find_ended(const struct session *session, size_t *count)
{
	const struct timespec moment = { 0, 10000000 };
	int cpu, ncpus = kern_possible_cpus();
	CLEANUP(free_pointer) uint64_t *times = calloc(ncpus, sizeof(*times));
	CLEANUP(free_pointer) uint64_t *before = calloc(ncpus, sizeof(*before));
	CLEANUP(free_pointer) int *ended = calloc(ncpus, sizeof(*ended));

	*count = 0;
	if (!session->witness || !times || !before || !ended)
		return NULL;
	look(session, ncpus, times);
	memcpy(before, times, ncpus * sizeof(*before));
	if (!look(session, ncpus, times))
		return NULL;
	/* Where the kernel's clock is coarse, this says it. */
	nanosleep(&moment, NULL);
	if (!look(session, ncpus, times))
		return NULL;
	for (cpu = 0; cpu < ncpus; cpu++) {
		if (times[cpu] && times[cpu] == before[cpu])
			ended[(*count)++] = cpu;
	}
	return *count ? take_pointer(ended) : NULL;
}

static void arm(int fd)
{
	const struct itimerspec far = { .it_value.tv_sec = FAR_SECONDS };

	/* (It says so when the clock was set meanwhile, and is armed nevertheless.) */
	timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

static int clock_was_set(void *context, int fd, uint32_t events)
{
	struct session *session = context;
	CLEANUP(free_pointer) int *ended = NULL;
	uint64_t expirations;
	size_t i, count, measured = 0;

	if (read(fd, &expirations, sizeof(expirations)) < 0 && errno == EAGAIN)
		return 0;
	arm(fd);
	ended = find_ended(session, &count);
	for (i = 0; i < count; i++) {
		session_cpu_came(session, ended[i]);
		measured += session_measures(session, ended[i]);
	}
	if (measured)
		log_note("the machine was suspended: the counters of %zu CPU%s were opened anew: "
			 "what was counted before is kept",
			 measured, measured == 1 ? "" : "s");
	return 0;
}

void session_tell_ended(struct session *session)
{
	CLEANUP(free_pointer) int *ended = NULL;
	size_t i, count;

	ended = find_ended(session, &count);
	for (i = 0; i < count; i++) {
		if (session_measures(session, ended[i]))
			log_note("CPU %d was offline for a time, unnoticed: what it did from then "
				 "on is not "
				 "counted",
				 ended[i]);
	}
}

static void start_witness(struct session *session)
{
	CLEANUP(free_pointer) int *cpus = NULL;
	struct pmu_event nothing;
	size_t count;
	struct err ignored = { 0 };

	if (pmu_parse("dummy", &nothing, &ignored) ||
	    pmu_parse_cpus(NULL, &cpus, &count, &ignored) ||
	    pmu_open(&nothing, cpus, count, NULL, &session->witness, &ignored) ||
	    pmu_enable(session->witness))
		log_verbose("a suspend of the machine is not noticed: %s", ignored.text);
}

int session_follow_sleep(struct session *session, struct err *err)
{
	CLEANUP(close_fd)
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	int code;

	if (fd < 0) {
		log_verbose("a suspend of the machine is not noticed: %s", strerror(errno));
		return 0;
	}
	start_witness(session);
	arm(fd);
	code = loop_fd(session->loop, fd, EPOLLIN, clock_was_set, session, &session->clock_source,
		       err);
	if (!code)
		session->clock = take_fd(fd);
	return code;
}
