// SPDX-License-Identifier: BSD-2-Clause
/* All that a pair of probes costs: this thread's own events around calls, with probes and without. */
#include "session/calibrate.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WATCHED_CALLS 65

struct watched {
	int fd; /* -1: not counted */
	struct pmu_reading before;
	size_t count;
	int64_t delta[WATCHED_CALLS];
};

struct watch {
	struct session *session;
	struct watched slot[DUET_PMU_MAX];
};

static void watch_before(void *context)
{
	struct watch *watch = context;
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct watched *one = &watch->slot[i];

		if (one->fd >= 0 && read(one->fd, &one->before, sizeof(one->before)) < 0)
			one->before.running = 0;
	}
}

static void watch_after(void *context)
{
	struct watch *watch = context;
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct watched *one = &watch->slot[i];
		struct pmu_reading now;

		if (one->fd < 0 || read(one->fd, &now, sizeof(now)) != sizeof(now))
			continue;
		if (now.running - one->before.running == now.enabled - one->before.enabled &&
		    one->count < WATCHED_CALLS)
			one->delta[one->count++] = now.count - one->before.count;
	}
}

int calibrate_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static bool watch_has_enough(const struct watch *watch)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		if (watch->slot[i].fd >= 0 && watch->slot[i].count < WATCHED_CALLS / 4)
			return false;
	}
	return true;
}

/* The medians of a run, by slot. With too few counters the events take turns: then again, later. */
static int watch_run(struct watch *watch, struct kern_program *const *pair, size_t count, bool bare,
		     bool *has, int64_t *found, struct err *err)
{
	const struct kern_calibrate_run run = {
		.calls = WATCHED_CALLS,
		.bare = bare,
		.nested = true,
		.own_process = session_probe_pid(watch->session) > 0,
		.before = watch_before,
		.after = watch_after,
		.context = watch,
	};
	const struct timespec turn = { 0, 5000000 };
	int code, tries = 0;
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++)
		watch->slot[i].count = 0;
	code = kern_calibrate(pair, count, &run, err);
	while (!code && !watch_has_enough(watch) && tries++ < 8) {
		nanosleep(&turn, NULL);
		code = kern_calibrate(pair, count, &run, err);
	}
	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct watched *one = &watch->slot[i];

		has[i] = one->count > 0;
		qsort(one->delta, one->count, sizeof(one->delta[0]), calibrate_compare);
		found[i] = has[i] ? one->delta[one->count / 2] : 0;
	}
	return code;
}

static void watch_open(struct watch *watch)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++)
		watch->slot[i].fd = -1;
	for (i = 0; i < watch->session->npmus; i++) {
		const struct session_pmu *pmu = &watch->session->pmus[i];

		if (pmu->slot >= 0)
			watch->slot[pmu->slot].fd = pmu_open_self(&pmu->parsed);
	}
}

int calibrate_whole(struct session *session, struct kern_program *const *pair, size_t count,
		    bool *has, int64_t *found, struct err *err)
{
	struct watch watch = { .session = session };
	int64_t bare[DUET_PMU_MAX];
	bool has_bare[DUET_PMU_MAX];
	size_t i;
	int code;

	watch_open(&watch);
	code = watch_run(&watch, pair, count, true, has_bare, bare, err);
	if (!code)
		code = watch_run(&watch, pair, count, false, has, found, err);
	for (i = 0; i < DUET_PMU_MAX; i++) {
		if (!code) {
			has[i] &= has_bare[i];
			found[i] -= bare[i];
		}
		if (watch.slot[i].fd >= 0)
			close(watch.slot[i].fd);
	}
	return code;
}
