// SPDX-License-Identifier: BSD-2-Clause
/* All that a pair of probes costs: this thread's own events around calls, with probes and without. */
#include "session/calibrate.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WATCHED_CALLS 65
#define CALLS_AT_ONCE (DUET_CALL_DEPTH - 4) /* that only begin */

struct samples {
	size_t count;
	int64_t delta[WATCHED_CALLS];
};

/* Events of this thread, by slot. */
struct watch {
	struct session *session;
	int fd[DUET_PMU_MAX]; /* -1: not counted */
	struct pmu_reading before[DUET_PMU_MAX];
	struct samples *samples; /* what is added to: DUET_PMU_MAX of them */
};

static void watch_before(void *context)
{
	struct watch *watch = context;
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct pmu_reading *before = &watch->before[i];

		if (watch->fd[i] >= 0 && read(watch->fd[i], before, sizeof(*before)) < 0)
			before->running = 0;
	}
}

static void watch_after(void *context)
{
	struct watch *watch = context;
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		const struct pmu_reading *before = &watch->before[i];
		struct samples *samples = &watch->samples[i];
		struct pmu_reading now;

		if (watch->fd[i] < 0 || read(watch->fd[i], &now, sizeof(now)) != sizeof(now))
			continue;
		if (now.running - before->running == now.enabled - before->enabled &&
		    samples->count < WATCHED_CALLS)
			samples->delta[samples->count++] = now.count - before->count;
	}
}

int calibrate_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void calibrate_add(bool *has, int64_t *found, int times, const bool *has_other,
		   const int64_t *other)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		has[i] &= has_other[i];
		found[i] += times * other[i];
	}
}

static bool has_enough(const struct watch *watch, size_t wanted)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		if (watch->fd[i] >= 0 && watch->samples[i].count < wanted)
			return false;
	}
	return true;
}

static void medians(struct samples *samples, bool *has, int64_t *found)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct samples *one = &samples[i];

		has[i] = one->count > 0;
		qsort(one->delta, one->count, sizeof(one->delta[0]), calibrate_compare);
		found[i] = has[i] ? one->delta[one->count / 2] : 0;
	}
}

static struct kern_calibrate_run watched_run(struct watch *watch, enum kern_pair way, bool large)
{
	return (struct kern_calibrate_run){
		.calls = WATCHED_CALLS,
		.way = way,
		.large = large,
		.nested = true,
		.own_process = session_probe_pid(watch->session) > 0,
		.before = watch_before,
		.after = watch_after,
		.context = watch,
	};
}

/* The medians of a run, by slot. With too few counters the events take turns: then again, later. */
static int watch_run(struct watch *watch, struct kern_program *const *programs, size_t count,
		     const struct kern_calibrate_run *run, bool *has, int64_t *found,
		     struct err *err)
{
	const struct timespec turn = { 0, 5000000 };
	struct samples samples[DUET_PMU_MAX] = { 0 };
	int code, tries = 0;

	watch->samples = samples;
	code = kern_calibrate(programs, count, run, err);
	while (!code && !has_enough(watch, WATCHED_CALLS / 4) && tries++ < 8) {
		nanosleep(&turn, NULL);
		code = kern_calibrate(programs, count, run, err);
	}
	medians(samples, has, found);
	return code;
}

/* @entry begins calls, and after some of them @leave ends as many; so on, until there is enough. */
static int watch_each(struct watch *watch, struct kern_program *entry, struct kern_program *leave,
		      bool large, bool *has, int64_t *found, struct err *err)
{
	struct kern_calibrate_run run = watched_run(watch, KERN_PAIR_ROUNDS, large);
	struct samples samples[2][DUET_PMU_MAX] = { 0 };
	int64_t second[DUET_PMU_MAX];
	bool has_second[DUET_PMU_MAX];
	int code = 0, tries;

	run.calls = CALLS_AT_ONCE;
	for (tries = 0; tries < 16 && !code; tries++) {
		watch->samples = samples[0];
		code = kern_calibrate(&entry, 1, &run, err);
		watch->samples = samples[1];
		if (!code)
			code = kern_calibrate(&leave, 1, &run, err);
		if (has_enough(watch, WATCHED_CALLS / 2) && tries > 1)
			break;
	}
	medians(samples[0], has, found);
	medians(samples[1], has_second, second);
	calibrate_add(has, found, 1, has_second, second);
	return code;
}

static void watch_open(struct watch *watch)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++)
		watch->fd[i] = -1;
	for (i = 0; i < watch->session->npmus; i++) {
		const struct session_pmu *pmu = &watch->session->pmus[i];

		if (pmu->slot >= 0)
			watch->fd[pmu->slot] = pmu_open_self(&pmu->parsed);
	}
}

static void watch_close(struct watch *watch)
{
	size_t i;

	for (i = 0; i < DUET_PMU_MAX; i++) {
		if (watch->fd[i] >= 0)
			close(watch->fd[i]);
	}
}

/* What the second of two passings in a row takes: nothing of what reading the events does. */
static int watch_second(struct watch *watch, struct kern_program *const *programs, size_t count,
			struct kern_calibrate_run run, bool *has, int64_t *found, struct err *err)
{
	int64_t once[DUET_PMU_MAX];
	bool has_once[DUET_PMU_MAX];
	int code = watch_run(watch, programs, count, &run, has_once, once, err);

	run.passes = 2;
	if (!code)
		code = watch_run(watch, programs, count, &run, has, found, err);
	if (!code)
		calibrate_add(has, found, -1, has_once, once);
	return code;
}

/* System calls are traced: those that read the events pass the same tracepoints, in vain. */
static int watch_syscalls(struct watch *watch, const struct calibrate_pair *pair,
			  struct kern_program *const *programs, bool *has, int64_t *found,
			  struct err *err)
{
	struct kern_calibrate_run run = watched_run(watch, KERN_PAIR_SYSCALLS, pair->large);
	int64_t bare[DUET_PMU_MAX];
	bool has_bare[DUET_PMU_MAX];
	int code;

	run.raw_syscalls = pair->raw_syscalls;
	run.bare = true;
	code = watch_second(watch, programs, pair->count, run, has_bare, bare, err);
	run.bare = false;
	if (!code)
		code = watch_second(watch, programs, pair->count, run, has, found, err);
	if (!code)
		calibrate_add(has, found, -1, has_bare, bare);
	return code;
}

static int watch_rounds(struct watch *watch, const struct calibrate_pair *pair,
			struct kern_program *const *programs, bool *has, int64_t *found,
			struct err *err)
{
	struct kern_calibrate_run run = watched_run(watch, KERN_PAIR_ROUNDS, pair->large);
	int64_t bare[DUET_PMU_MAX];
	bool has_bare[DUET_PMU_MAX];
	int code;

	run.bare = true;
	code = watch_run(watch, programs, pair->count, &run, has_bare, bare, err);
	if (!code)
		code = watch_each(watch, programs[0], programs[1], pair->large, has, found, err);
	if (!code)
		calibrate_add(has, found, -2, has_bare, bare);
	return code;
}

static int watch_calls(struct watch *watch, const struct calibrate_pair *pair,
		       struct kern_program *const *programs, bool *has, int64_t *found,
		       struct err *err)
{
	struct kern_calibrate_run run = watched_run(watch, KERN_PAIR_CALLS, false);
	int64_t bare[DUET_PMU_MAX];
	bool has_bare[DUET_PMU_MAX];
	int code;

	run.bare = true;
	code = watch_run(watch, programs, pair->count, &run, has_bare, bare, err);
	run.bare = false;
	if (!code)
		code = watch_run(watch, programs, pair->count, &run, has, found, err);
	if (!code)
		calibrate_add(has, found, -1, has_bare, bare);
	return code;
}

int calibrate_whole(struct session *session, const struct calibrate_pair *pair,
		    struct kern_program *const *programs, bool *has, int64_t *found,
		    struct err *err)
{
	struct watch watch = { .session = session };
	int code;

	watch_open(&watch);
	if (pair->raw_syscalls || pair->way == KERN_PAIR_SYSCALLS)
		code = watch_syscalls(&watch, pair, programs, has, found, err);
	else if (pair->way == KERN_PAIR_ROUNDS)
		code = watch_rounds(&watch, pair, programs, has, found, err);
	else
		code = watch_calls(&watch, pair, programs, has, found, err);
	watch_close(&watch);
	return code;
}

int calibrate_bare_round(struct session *session, const struct calibrate_pair *pair,
			 struct kern_program *const *programs, bool *has, int64_t *found,
			 struct err *err)
{
	struct watch watch = { .session = session };
	struct kern_calibrate_run run = watched_run(&watch, KERN_PAIR_ROUNDS, pair->large);
	int code;

	watch_open(&watch);
	run.bare = true;
	code = watch_second(&watch, programs, 1, run, has, found, err);
	watch_close(&watch);
	return code;
}
