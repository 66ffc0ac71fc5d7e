// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a pair of probes itself costs. Throw-away instances of the kernel half are attached where
 * nothing happens. Of the first, which keeps its raw deltas, the median is, per CALLS()
 * and PMU, what call_leave() will subtract. The second is what will run, to the instruction: what
 * an event of this thread gains by its probes is what the calls around one pay. The script's own
 * maps stay clean.
 */
#include "session/internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "session/calibrate.h"
#include "session/calibration_cache.h"

#define CALLS_PER_PAIR (DUET_CALIBRATION_SAMPLES / 4)

static bool any_overhead(const struct session *session)
{
	const struct user_half *user = session->split.user;
	char calls[128];
	size_t i;

	for (i = 0; i < user->nvariables; i++) {
		if (session_is_overhead(session, &user->variables[i], calls, sizeof(calls)))
			return true;
	}
	return false;
}

/*
 * The constants of an instance: raw deltas are kept by the first. Whom the run measures stays,
 * because what in_target() does is a part of the cost.
 */
static int hand_over_constants(struct calibration *calibration, struct err *err)
{
	struct session *session = calibration->session;
	uint32_t *on = session_variable_data(session, "__duet_calibrating", sizeof(*on));
	int code;

	if (on)
		*on = !calibration->full;
	code = session_hand_over_data(session, calibration->kern, err);
	if (on)
		*on = 0;
	return code;
}

/* in_target() must say yes to this thread, in the way in which it will to those of the run. */
static int become_target(struct calibration *calibration, struct err *err)
{
	struct kern_map *tasks = kern_map_find(calibration->kern, "__duet_tasks");
	uint32_t id = gettid();
	uint64_t unknown = 0;
	int code;

	if (!calibration->session->counted_tasks || !tasks || !kern_map_created(tasks))
		return 0;
	code = kern_map_update(tasks, &id, &unknown, 0);
	return code ? err_set(err, code, "map __duet_tasks: %s", strerror(-code)) : 0;
}

/* Goes to a CPU that is measured; @former is where this thread may run. */
static int go_to_measured_cpu(const struct session *session, cpu_set_t *former, struct err *err)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(session->cpus[0], &set);
	if (sched_getaffinity(0, sizeof(*former), former) ||
	    sched_setaffinity(0, sizeof(set), &set))
		return err_set(err, -errno, "CPU %d: %s", session->cpus[0], strerror(errno));
	return 0;
}

/* A set of counters of its own, so that the script's begin at nothing. */
static int open_counters(struct calibration *calibration, struct err *err)
{
	struct session *session = calibration->session;
	size_t i;

	calibration->counters = calloc(session->npmus + 1, sizeof(*calibration->counters));
	if (!calibration->counters)
		return err_nomem(err);
	for (i = 0; i < session->npmus; i++) {
		int code = pmu_open(&session->pmus[i].parsed, session->cpus, session->ncpus, NULL,
				    &calibration->counters[i], err);

		if (!code)
			code = session_fill_map(session, calibration->kern, session->pmus[i].name,
						calibration->counters[i], err);
		if (!code)
			code = pmu_enable(calibration->counters[i]);
		if (code)
			return code;
	}
	return session_start_totals(session, calibration->kern, calibration->counters, err);
}

int calibrate_read_memory(struct calibration *calibration)
{
	uint32_t zero = 0;

	return kern_map_lookup(calibration->bss, &zero, calibration->bss_data);
}

int calibrate_clear(struct calibration *calibration, struct err *err)
{
	uint32_t zero = 0;
	int code;

	memset(calibration->bss_data, 0, calibration->bss_size);
	code = kern_map_update(calibration->bss, &zero, calibration->bss_data, 0);
	return code ? err_set(err, code, "calibration: %s", strerror(-code)) : 0;
}

static struct duet_calibration *samples_of(struct calibration *calibration)
{
	return (struct duet_calibration *)(calibration->bss_data + calibration->samples->offset);
}

const struct duet_call_stats *calibrate_stats(struct calibration *calibration, const char *calls)
{
	const struct user_variable *stats;
	char name[160];

	snprintf(name, sizeof(name), "%s_stats", calls);
	stats = session_variable(calibration->session, name);
	if (stats->data != calibration->samples->data)
		return NULL;
	return (struct duet_call_stats *)(calibration->bss_data + stats->offset);
}

static uint64_t calls_left(struct calibration *calibration, const char *calls)
{
	const struct duet_call_stats *stats = calibrate_stats(calibration, calls);

	return stats ? stats->left : 0;
}

/* Median of the raw deltas of @slot; false: there are none. */
static bool median(struct calibration *calibration, uint32_t slot, int64_t *ret)
{
	struct duet_calibration *samples = samples_of(calibration);
	int64_t deltas[DUET_CALIBRATION_SAMPLES];
	size_t count = 0, i;

	for (i = 0; i < DUET_CALIBRATION_SAMPLES && i < samples->n; i++) {
		if (samples->raw[i].slot == slot)
			deltas[count++] = samples->raw[i].count;
	}
	if (!count)
		return false;
	qsort(deltas, count, sizeof(*deltas), calibrate_compare);
	*ret = deltas[count / 2];
	return true;
}

/* Tests prove that the calibration matters: DUET_TEST_CALIBRATION_PERCENT=50 must spoil them. */
static int64_t scaled_for_tests(int64_t overhead)
{
	const char *percent = getenv("DUET_TEST_CALIBRATION_PERCENT");

	return percent ? overhead * atoi(percent) / 100 : overhead;
}

/* The CALLS() that this pair used get their numbers: of @found where @has says so, by slot. */
static void note_overheads(struct calibration *calibration, const char *where,
			   enum duet_overhead part, const bool *has, const int64_t *found)
{
	static const char *const what[] = { "", ", inside others", ", to the calls around" };
	struct session *session = calibration->session;
	const struct user_half *user = session->split.user;
	char calls[128];
	size_t i, k;

	for (i = 0; i < user->nvariables; i++) {
		const struct user_variable *variable = &user->variables[i];
		int64_t *overhead;

		if (!session_is_overhead(session, variable, calls, sizeof(calls)) ||
		    !calls_left(calibration, calls))
			continue;
		overhead = (int64_t *)((char *)hook_half_data(session->half, variable->data) +
				       variable->offset);
		for (k = 0; k < session->npmus; k++) {
			int32_t slot = session->pmus[k].slot;

			if (slot < 0 || !has[slot])
				continue;
			overhead[part * DUET_PMU_MAX + slot] = found[slot];
			log_verbose("calibration: %s, %s: an empty call costs %lld %s%s", where,
				    calls, (long long)found[slot], session->pmus[k].event,
				    what[part]);
		}
	}
}

/* Raw deltas of one run at @run's places: medians by slot. */
static int measure_deltas(struct calibration *calibration, const struct calibrate_pair *pair,
			  struct kern_calibrate_run run, bool *has, int64_t *found, struct err *err)
{
	struct kern_program *programs[CALIBRATE_PROGRAMS];
	int32_t slot;
	int code;

	/* Rounds follow each other with nothing in between. */
	run.calls = run.way == KERN_PAIR_ROUNDS ? 1 : CALLS_PER_PAIR;
	run.passes = run.way == KERN_PAIR_ROUNDS ? CALLS_PER_PAIR : 1;
	run.large = pair->large;
	run.own_process = session_probe_pid(calibration->session) > 0;
	calibrate_programs(calibration, pair, programs);
	code = calibrate_clear(calibration, err);
	if (!code)
		code = kern_calibrate(programs, pair->count, &run, err);
	if (!code)
		code = calibrate_read_memory(calibration);
	for (slot = 0; slot < DUET_PMU_MAX && !code; slot++)
		has[slot] = median(calibration, slot, &found[slot]);
	return code;
}

/* From one passing of a tracepoint to the next, less what a round takes without probes. */
static int measure_round(struct calibration *calibration, const struct calibrate_pair *pair,
			 bool nested, bool *has, int64_t *found, struct err *err)
{
	const struct kern_calibrate_run run = { .way = KERN_PAIR_ROUNDS, .nested = nested };
	struct kern_program *programs[CALIBRATE_PROGRAMS];
	int64_t round[DUET_PMU_MAX];
	bool has_round[DUET_PMU_MAX];
	int code;

	calibrate_programs(calibration, pair, programs);
	code = calibrate_bare_round(calibration->session, pair, programs, has_round, round, err);
	if (!code)
		code = measure_deltas(calibration, pair, run, has, found, err);
	if (!code)
		calibrate_add(has, found, -1, has_round, round);
	return code;
}

/*
 * A system call lies between its two tracepoints. It is the same between raw_syscalls:sys_enter and
 * sys_exit, and what programs cost there is known from any other tracepoint.
 */
static int measure_syscall(struct calibration *calibration, const struct calibrate_pair *pair,
			   bool nested, bool *has, int64_t *found, struct err *err)
{
	struct kern_calibrate_run run = { .way = KERN_PAIR_SYSCALLS, .nested = nested };
	int64_t raw[DUET_PMU_MAX], own[DUET_PMU_MAX];
	bool has_raw[DUET_PMU_MAX], has_own[DUET_PMU_MAX];
	int code = measure_round(calibration, pair, nested, has, found, err);

	run.raw_syscalls = true;
	if (!code)
		code = measure_deltas(calibration, pair, run, has_raw, raw, err);
	run.raw_syscalls = false;
	if (!code)
		code = measure_deltas(calibration, pair, run, has_own, own, err);
	if (code)
		return code;
	calibrate_add(has, found, -1, has_raw, raw);
	calibrate_add(has, found, 1, has_own, own);
	return 0;
}

/* What lies inside the call, as call_leave() sees it. */
static int measure_inside(struct calibration *calibration, const struct calibrate_pair *pair,
			  enum duet_overhead part, struct err *err)
{
	struct kern_calibrate_run run = { .way = pair->way };
	int64_t found[DUET_PMU_MAX];
	bool has[DUET_PMU_MAX];
	int code;

	run.nested = part == DUET_OVERHEAD_NESTED;
	if (pair->way == KERN_PAIR_ROUNDS)
		code = measure_round(calibration, pair, run.nested, has, found, err);
	else if (pair->way == KERN_PAIR_SYSCALLS)
		code = measure_syscall(calibration, pair, run.nested, has, found, err);
	else
		code = measure_deltas(calibration, pair, run, has, found, err);
	if (code)
		return code;
	note_overheads(calibration, pair->where, part, has, found);
	/* Until all of it is known; and for good where no event of this thread can tell. */
	if (part == DUET_OVERHEAD_NESTED)
		note_overheads(calibration, pair->where, DUET_OVERHEAD_ALL, has, found);
	return 0;
}

static int measure_full(struct calibration *calibration, const struct calibrate_pair *pair,
			struct err *err)
{
	struct kern_program *programs[CALIBRATE_PROGRAMS];
	int64_t found[DUET_PMU_MAX];
	bool has[DUET_PMU_MAX];
	int code;

	calibrate_programs(calibration, pair, programs);
	code = calibrate_clear(calibration, err);
	if (!code)
		code = calibrate_whole(calibration->session, pair, programs, has, found, err);
	if (!code)
		code = calibrate_read_memory(calibration);
	if (!code)
		note_overheads(calibration, pair->where, DUET_OVERHEAD_ALL, has, found);
	return code;
}

static int measure_pair(struct calibration *calibration, const struct calibrate_pair *pair,
			struct err *err)
{
	int code;

	if (calibration->full)
		return measure_full(calibration, pair, err);
	code = measure_inside(calibration, pair, DUET_OVERHEAD_ALONE, err);
	if (!code)
		code = measure_inside(calibration, pair, DUET_OVERHEAD_NESTED, err);
	return code;
}

/* One that cannot be measured (a program that reads more than our tracepoint has) is not subtracted. */
static int measure_pairs(struct calibration *calibration, struct err *err)
{
	struct err why;
	size_t i;
	int code = calibration->full ? 0 : calibrate_find_pairs(calibration, err);

	for (i = 0; i < calibration->pairs->count && !code; i++) {
		struct calibrate_pair *pair = &calibration->pairs->pair[i];

		why = (struct err){ 0 };
		if (pair->failed || !measure_pair(calibration, pair, &why))
			continue;
		pair->failed = true;
		calibration->pairs->failed++;
		log_note("the cost of the probes at %s is not known and not subtracted: %s",
			 pair->where, why.text);
	}
	return code;
}

static int find_samples(struct calibration *calibration, struct err *err)
{
	struct session *session = calibration->session;
	struct kern_map_info info;

	calibration->samples = session_variable(session, "__duet_calibration");
	if (!calibration->samples || calibration->samples->size != sizeof(struct duet_calibration))
		return err_set(err, -EINVAL, "built with another version of duet.h");
	calibration->bss = kern_map_find(
		calibration->kern, session->split.user->data[calibration->samples->data].name);
	if (!calibration->bss)
		return err_set(err, -EINVAL, "its memory is no map");
	kern_map_get_info(calibration->bss, &info);
	calibration->bss_size = info.value_size;
	calibration->bss_data = calloc(1, info.value_size);
	return calibration->bss_data ? 0 : err_nomem(err);
}

static int load_with(struct calibration *calibration, bool tp_btf, struct err *err)
{
	struct session *session = calibration->session;
	int code;

	code = kern_open(session->split.kernel, session->split.kernel_size, session->options->name,
			 obj_types(session->obj), &calibration->kern, err);
	if (!code)
		code = hand_over_constants(calibration, err);
	if (!code)
		code = kern_calibrate_prepare(calibration->kern, session->kern, tp_btf, err);
	if (!code)
		code = kern_load(calibration->kern, err);
	return code;
}

/* A tp_btf program that reads arguments does not load where it is calibrated. */
static int load(struct calibration *calibration, struct err *err)
{
	struct err why = { 0 };
	int code = load_with(calibration, true, &why);

	if (!code)
		return 0;
	kern_close(calibration->kern);
	calibration->kern = NULL;
	log_verbose("calibration, tried again without tp_btf programs: %s", why.text);
	return load_with(calibration, false, err);
}

static int calibrate(struct calibration *calibration, struct err *err)
{
	struct session *session = calibration->session;
	cpu_set_t former;
	int code;

	code = load(calibration, err);
	if (!code)
		code = open_counters(calibration, err);
	if (!code)
		code = find_samples(calibration, err);
	if (!code)
		code = become_target(calibration, err);
	if (!code)
		code = go_to_measured_cpu(session, &former, err);
	if (code)
		return code;
	code = measure_pairs(calibration, err);
	sched_setaffinity(0, sizeof(former), &former);
	return code;
}

static void calibration_deinit(struct calibration *calibration)
{
	size_t i;

	kern_close(calibration->kern);
	for (i = 0; calibration->counters && i < calibration->session->npmus; i++)
		pmu_close(calibration->counters[i]);
	free(calibration->counters);
	free(calibration->bss_data);
}

/* True: all is known, and worth keeping. */
static bool calibrate_all(struct session *session)
{
	struct calibrate_pairs pairs = { 0 };
	struct err reason = { 0 };
	int code = 0, full;

	for (full = 0; full < 2 && !code; full++) {
		struct calibration calibration = { .session = session,
						   .full = full,
						   .pairs = &pairs };

		code = calibrate(&calibration, &reason);
		calibration_deinit(&calibration);
	}
	free(pairs.pair);
	if (code)
		log_note("the cost of the probes is not known and not subtracted: %s", reason.text);
	return !code && !pairs.failed;
}

int session_calibrate(struct session *session, struct err *err)
{
	const struct user_half *user = session->split.user;
	char calls[128];
	int64_t *overhead;
	size_t i, k;

	if (!any_overhead(session) || session->options->dry_run)
		return 0;
	if (!calibration_cache_read(session) && calibrate_all(session))
		calibration_cache_write(session);
	for (i = 0; i < user->nvariables; i++) {
		if (!session_is_overhead(session, &user->variables[i], calls, sizeof(calls)))
			continue;
		overhead =
			(int64_t *)((char *)hook_half_data(session->half, user->variables[i].data) +
				    user->variables[i].offset);
		for (k = 0; k < DUET_OVERHEADS * DUET_PMU_MAX; k++)
			overhead[k] = scaled_for_tests(overhead[k]);
	}
	return 0;
}

/* ---- context switches --------------------------------------------------------------------------- */
#define SWITCHES    8 /* sleeps per comparison */
#define COMPARISONS 9

static int read_both(struct session *session, int fd, int32_t slot, uint64_t *event,
		     uint64_t *total)
{
	struct duet_task_totals totals;
	struct pmu_reading now;

	if (read(fd, &now, sizeof(now)) != sizeof(now) || now.running != now.enabled ||
	    kern_totals_read_self(session->kern, &totals))
		return -EAGAIN;
	*event = now.count;
	*total = totals.total[slot].count;
	return 0;
}

/*
 * This thread sleeps a few times; an event of its own says what that cost it, and its total, from
 * one switch to the corresponding one, what is charged. Interrupts are in both, and so is what
 * duet's own program costs.
 */
static bool compare_switches(struct session *session, int fd, int32_t slot, int64_t *ret)
{
	const struct timespec pause = { 0, 1000 };
	uint64_t event[2], total[2];
	int i;

	nanosleep(&pause, NULL);
	if (read_both(session, fd, slot, &event[0], &total[0]))
		return false;
	for (i = 0; i < SWITCHES; i++)
		nanosleep(&pause, NULL);
	if (read_both(session, fd, slot, &event[1], &total[1]))
		return false;
	*ret = (int64_t)(total[1] - total[0] - (event[1] - event[0])) / SWITCHES;
	return true;
}

static void measure_switch(struct session *session, struct session_pmu *pmu, int64_t *cost)
{
	int64_t found[COMPARISONS];
	size_t count = 0, i;
	int fd = pmu_open_self(&pmu->parsed);

	if (fd < 0)
		return;
	for (i = 0; i < COMPARISONS; i++)
		count += compare_switches(session, fd, pmu->slot, &found[count]);
	close(fd);
	if (!count)
		return;
	qsort(found, count, sizeof(*found), calibrate_compare);
	cost[pmu->slot] += found[count / 2];
	log_verbose("calibration: a context switch adds %lld %s that are not the thread's",
		    (long long)cost[pmu->slot], pmu->event);
}

/* With totals started and counters on, nothing of the script attached. */
void session_calibrate_switches(struct session *session)
{
	int64_t cost[DUET_PMU_MAX] = { 0 };
	struct err err = { 0 };
	cpu_set_t former;
	size_t i;

	if (kern_totals_follow_self(session->kern, &err) ||
	    go_to_measured_cpu(session, &former, &err) ||
	    kern_totals_own_cost(session->kern, session->cpus[0], cost)) {
		log_verbose("calibration of context switches: %s", err.text);
		kern_totals_forget_self(session->kern);
		return;
	}
	for (i = 0; i < session->npmus; i++) {
		if (session->pmus[i].slot >= 0 &&
		    pmu_counter_state(session->pmus[i].counter) == PMU_OPEN)
			measure_switch(session, &session->pmus[i], cost);
	}
	sched_setaffinity(0, sizeof(former), &former);
	kern_totals_forget_self(session->kern);
	kern_totals_set_cost(session->kern, cost);
}
