// SPDX-License-Identifier: BSD-2-Clause
/* Events opened and put where the kernel half reads them. */
#include "session/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"

/* The "EVENT@FREQ" of a perf_event/... program. */
static int open_sampler(struct session *session, struct kern_program *program, struct err *err)
{
	const char *text = kern_program_event_text(program);
	CLEANUP(free_pointer) int *fds = NULL;
	struct session_sampler *sampler;
	struct pmu_event event;
	struct pmu_rate rate;
	size_t i, count = 0;
	int code;

	if (!text)
		return 0;
	code = pmu_parse_sampling(text, &event, &rate, err);
	if (code)
		return err_prepend(err, code, "SEC(\"%s\")", kern_program_section(program));
	sampler = array_grow(&session->samplers, &session->nsamplers, &session->samplers_capacity,
			     sizeof(*sampler));
	fds = malloc(session->ncpus * sizeof(*fds));
	if (!sampler || !fds)
		return err_nomem(err);
	sampler->program = program;
	code = pmu_open_sampling(&event, &rate, session->cpus, session->ncpus, &sampler->counter,
				 err);
	if (code)
		return code;
	if (pmu_counter_state(sampler->counter) == PMU_NOT_SUPPORTED)
		return err_set(err, -ENOENT, "%s: %s: %s", kern_program_section(program),
			       event.text, pmu_counter_reason(sampler->counter));
	for (i = 0; i < session->ncpus; i++) {
		fds[count] = pmu_counter_fd(sampler->counter, session->cpus[i]);
		count += fds[count] >= 0;
	}
	return kern_program_set_events(program, fds, count, err);
}

int session_fill_slot(struct kern *kern, const char *name, const struct pmu_counter *counter,
		      int cpu, struct err *err)
{
	struct kern_map *map = kern_map_find(kern, name);
	int fd = pmu_counter_fd(counter, cpu), code;

	if (!map || !kern_map_created(map) || fd < 0)
		return 0;
	code = kern_map_update(map, &cpu, &fd, 0);
	return code ? err_set(err, code, "map %s: event %s on CPU %d: %s", name,
			      pmu_counter_event(counter)->text, cpu, strerror(-code))
		    : 0;
}

int session_fill_map(struct session *session, struct kern *kern, const char *name,
		     const struct pmu_counter *counter, struct err *err)
{
	int code = 0;
	size_t i;

	for (i = 0; !code && i < session->ncpus; i++)
		code = session_fill_slot(kern, name, counter, session->cpus[i], err);
	return code;
}

const struct pmu_counter *session_group_leader(const struct session *session,
					       const struct session_pmu *pmu)
{
	const struct session_pmu *other;

	for (other = session->pmus; pmu->group && other < pmu; other++) {
		if (other->group && !strcmp(other->group, pmu->group) && other->counter &&
		    pmu_counter_state(other->counter) == PMU_OPEN)
			return other->counter;
	}
	return NULL;
}

/* Events that count at the same times have the same number: a group's leader's, or their own. */
static uint8_t window_of(const struct session *session, const struct session_pmu *pmu,
			 const struct pmu_counter *leader)
{
	const struct session_pmu *first = session->pmus;

	while (first < pmu && !(pmu_counter_grouped(pmu->counter) && first->counter == leader))
		first++;
	return first - session->pmus + 1;
}

static int open_pmu(struct session *session, struct session_pmu *pmu, struct err *err)
{
	const struct pmu_counter *leader = session_group_leader(session, pmu);
	int code;

	code = pmu_open(&pmu->parsed, session->cpus, session->ncpus, leader, &pmu->counter, err);
	if (code)
		return err_prepend(err, code, "%s", pmu->name);
	session->counters[pmu - session->pmus].window = window_of(session, pmu, leader);
	if (pmu_counter_state(pmu->counter) == PMU_NOT_SUPPORTED) {
		session->counters[pmu - session->pmus].supported = false;
		if (!session->options->quiet)
			log_note("%s: %s is not supported: %s", pmu->name, pmu->event,
				 pmu_counter_reason(pmu->counter));
		return 0;
	}
	return session_fill_map(session, session->kern, pmu->name, pmu->counter, err);
}

static bool is_open(const struct session_pmu *pmu)
{
	return pmu->counter && pmu_counter_state(pmu->counter) == PMU_OPEN;
}

/* In a group, but counted alone. */
static bool is_apart(const struct session *session, const struct session_pmu *pmu)
{
	return is_open(pmu) && session_group_leader(session, pmu) &&
	       !pmu_counter_grouped(pmu->counter);
}

/* All of @group, which its leader allows (:W): each is opened anew, alone. */
static int break_up(struct session *session, const char *group, struct err *err)
{
	size_t i, first = session->npmus;
	int code = 0;

	for (i = session->npmus; i-- > 0;) {
		struct session_pmu *pmu = &session->pmus[i];

		if (!pmu->group || strcmp(pmu->group, group))
			continue;
		pmu_close(take_pointer(pmu->counter));
		pmu->group = NULL;
		first = i;
	}
	for (i = first; !code && i < session->npmus; i++) {
		if (!session->pmus[i].counter)
			code = open_pmu(session, &session->pmus[i], err);
	}
	return code;
}

/* What could not be in its group is told, or takes the group with it. */
static int look_at_groups(struct session *session, struct err *err)
{
	size_t i;
	int code = 0;

	for (i = 0; !code && i < session->npmus; i++) {
		struct session_pmu *pmu = &session->pmus[i];
		const struct pmu_counter *leader = session_group_leader(session, pmu);

		if (!is_apart(session, pmu))
			continue;
		if (!session->options->quiet)
			log_note("%s: %s %s%s", pmu->name, pmu->event,
				 pmu_counter_reason(pmu->counter),
				 pmu_counter_event(leader)->weak
					 ? ", and so are the others (:W breaks the group up)"
					 : "");
		if (pmu_counter_event(leader)->weak)
			code = break_up(session, pmu->group, err);
	}
	return code;
}

static int raise_file_limit(struct session *session, struct err *err)
{
	/* One more for the witness. */
	size_t events = session->npmus + kern_program_count(session->kern) + 1;
	size_t needed = events * session->ncpus + 256, granted;

	return pmu_raise_file_limit(needed, &granted, err);
}

/* The texts are checked before anything is loaded. */
int session_parse_events(struct session *session, struct err *err)
{
	size_t i;
	int code;

	for (i = 0; i < session->npmus; i++) {
		struct session_pmu *pmu = &session->pmus[i];

		code = pmu->event[0] ? pmu_parse(pmu->event, &pmu->parsed, err) : 0;
		if (code)
			return err_prepend(err, code, "PMU(%s)", pmu->name);
		session->counters[i] = (struct report_counter){
			.member = pmu->name,
			.event = pmu->event,
			.supported = true,
			.replaced = pmu->declared && pmu->declared[0] &&
				    strcmp(pmu->declared, pmu->event),
			.by_event = session_pmu_is_open_to_all(pmu),
		};
	}
	return 0;
}

/* Told once, before anything is measured: what will have to take turns. */
static void warn_of_turns(struct session *session)
{
	const struct pmu_event *events[DUET_PMU_MAX + 1];
	struct pmu_fit fit;
	size_t i, count = 0;

	for (i = 0; i < session->npmus && count < sizeof(events) / sizeof(events[0]); i++)
		events[count++] = &session->pmus[i].parsed;
	if (count < 2 || session->options->quiet ||
	    pmu_fit(events, count, session->cpus, session->ncpus, &fit) || fit.fit >= fit.asked)
		return;
	log_note("%u hardware events asked, %u fit at once on %s: values will be scaled: ask for "
		 "fewer, or pin (:D) those that must be exact",
		 fit.asked, fit.fit, *fit.pmu ? fit.pmu : "this CPU");
}

int session_open_counters(struct session *session, struct err *err)
{
	size_t i;
	int code;

	warn_of_turns(session);
	code = raise_file_limit(session, err);
	for (i = 0; !code && i < session->npmus; i++)
		code = open_pmu(session, &session->pmus[i], err);
	if (!code)
		code = look_at_groups(session, err);
	for (i = 0; !code && i < kern_program_count(session->kern); i++)
		code = open_sampler(session, kern_program_at(session->kern, i), err);
	return code ? code : hook_half_counters_known(session->half, err);
}

/* A lap needs something to subtract from: what the counter shows now, on each CPU. */
static int prime_lap(struct session *session, struct session_pmu *pmu)
{
	CLEANUP(free_pointer) struct pmu_sum *laps = NULL;
	struct kern_map *map;
	uint32_t zero = 0;
	char name[160];
	size_t i;

	snprintf(name, sizeof(name), "__duet_lap_%s", pmu->name);
	map = kern_map_find(session->kern, name);
	if (!map || !kern_map_created(map))
		return 0;
	laps = calloc(kern_possible_cpus(), sizeof(*laps));
	if (!laps)
		return -ENOMEM;
	for (i = 0; i < session->ncpus; i++) {
		struct pmu_reading now;

		if (pmu_read_cpu(pmu->counter, session->cpus[i], &now))
			continue;
		laps[session->cpus[i]] =
			(struct pmu_sum){ now.count, now.enabled ?: 1, now.running };
	}
	return kern_map_update(map, &zero, laps, 0);
}

int session_start_totals(struct session *session, struct kern *kern,
			 struct pmu_counter *const *counters, struct err *err)
{
	size_t slots = 0, i, k;
	CLEANUP(free_pointer) int *fds = NULL;

	for (i = 0; i < session->npmus; i++)
		slots += session->pmus[i].slot >= 0;
	if (!slots || !kern_totals_needed(kern))
		return 0;
	fds = malloc(slots * session->ncpus * sizeof(*fds));
	if (!fds)
		return err_nomem(err);
	for (i = 0; i < session->npmus; i++) {
		for (k = 0; session->pmus[i].slot >= 0 && k < session->ncpus; k++)
			fds[session->pmus[i].slot * session->ncpus + k] =
				pmu_counter_fd(counters[i], session->cpus[k]);
	}
	return kern_totals_start(kern, fds, slots, session->cpus, session->ncpus, err);
}

static int start_script_totals(struct session *session, struct err *err)
{
	struct pmu_counter *counters[DUET_PMU_MAX];
	size_t i;
	int code;

	/* Slots are numbered first: a bare map behind them has none. */
	for (i = 0; i < session->npmus && i < DUET_PMU_MAX; i++)
		counters[i] = session->pmus[i].counter;
	code = session_start_totals(session, session->kern, counters, err);
	if (!code && kern_totals_needed(session->kern) && session->npmus)
		session_calibrate_switches(session);
	return code;
}

static int enable_some(struct session *session, bool members, int cpu, struct err *err)
{
	size_t i;

	for (i = 0; i < session->npmus; i++) {
		struct session_pmu *pmu = &session->pmus[i];
		int code;

		if (pmu_counter_state(pmu->counter) != PMU_OPEN ||
		    pmu_counter_grouped(pmu->counter) != members)
			continue;
		code = cpu < 0 ? pmu_enable(pmu->counter) : pmu_enable_cpu(pmu->counter, cpu);
		if (code)
			return err_set(err, code, "%s: %s: cannot be enabled: %s", pmu->name,
				       pmu->event, strerror(-code));
	}
	return 0;
}

/*
 * Leaders last: a group begins to count when its leader does. Else in their order, so that of pinned
 * events the later ones find no counter, from the first moment on.
 */
int session_enable_pmus(struct session *session, int cpu, struct err *err)
{
	int code = enable_some(session, true, cpu, err);

	return code ? code : enable_some(session, false, cpu, err);
}

/*
 * Before attach. Calls find counters that run, whenever they are entered. Without calls the
 * counters only show a base to subtract from, and stand still until everything is attached: what
 * attaching takes is not measured.
 */
int session_enable_counters(struct session *session, struct err *err)
{
	size_t i;
	int code;

	code = session_enable_pmus(session, -1, err);
	if (code)
		return code;
	if (!kern_totals_needed(session->kern))
		session_disable_counters(session);
	for (i = 0; i < session->npmus; i++) {
		if (pmu_counter_state(session->pmus[i].counter) != PMU_OPEN)
			continue;
		code = prime_lap(session, &session->pmus[i]);
		if (code)
			return err_set(err, code, "%s: first lap: %s", session->pmus[i].name,
				       strerror(-code));
	}
	for (i = 0; i < session->nsamplers; i++)
		pmu_enable(session->samplers[i].counter);
	return start_script_totals(session, err);
}

/* After attach. */
int session_resume_counters(struct session *session, struct err *err)
{
	return kern_totals_needed(session->kern) ? 0 : session_enable_pmus(session, -1, err);
}

void session_disable_counters(struct session *session)
{
	size_t i;

	for (i = 0; i < session->npmus; i++) {
		if (session->pmus[i].counter)
			pmu_disable(session->pmus[i].counter);
	}
}

void session_close_counters(struct session *session)
{
	size_t i;

	loop_remove(session->uevents_source);
	if (session->uevents)
		close(session->uevents);
	loop_remove(session->clock_source);
	if (session->clock)
		close(session->clock);
	pmu_close(session->witness);
	for (i = session->npmus; i-- > 0;)
		pmu_close(session->pmus[i].counter);
	for (i = 0; i < session->nsamplers; i++)
		pmu_close(session->samplers[i].counter);
	free(session->samplers);
	free(session->pmus);
	free(session->counters);
	free(session->cpus);
}
