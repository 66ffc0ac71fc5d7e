// SPDX-License-Identifier: BSD-2-Clause
/* What scripts may ask of the run (hook_ops). */
#include "session/internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

/* A script gets a number; the reason is for its author. */
static int tell(const char *what, int code, const struct err *err)
{
	if (code < 0)
		log_note("%s: %s", what, err->text[0] ? err->text : strerror(-code));
	return code;
}

static int op_stop(void *run, int status)
{
	struct session *session = run;

	session->stop_asked = true;
	session->stop_status = status & 0xff;
	loop_stop(session->loop);
	return 0;
}

static struct kern_program *find_program(struct session *session, const char *name)
{
	return session->kern ? kern_program_find(session->kern, name) : NULL;
}

static int op_probe_run(void *run, const char *name, int cpu)
{
	struct session *session = run;
	struct kern_program *program = find_program(session, name);

	if (!program || session->phase < PHASE_INIT)
		return -ENOENT;
	/* The exit order has taken the last slice already, while the counters were on. */
	if (session->phase == PHASE_EXIT)
		return kern_program_state(program) == KERN_PROGRAM_BARE ? 0 : -ESHUTDOWN;
	return kern_program_run(program, cpu);
}

static int op_probe_attach(void *run, const char *name, const char *where)
{
	struct session *session = run;
	struct kern_program *program = find_program(session, name);
	struct err err = { 0 };

	if (!program)
		return -ENOENT;
	if (session->phase != PHASE_RUN && session->phase != PHASE_INIT)
		return -EBUSY;
	return tell("probe_attach", kern_program_attach_at(program, where, &err), &err);
}

static int op_probe_enable(void *run, const char *name, bool enable)
{
	struct session *session = run;
	struct kern_program *program = find_program(session, name);
	struct err err = { 0 };

	if (!program)
		return -ENOENT;
	if (session->phase == PHASE_OPEN)
		return tell("prog_enable", kern_program_set_enabled(program, enable, &err), &err);
	if (session->phase != PHASE_RUN)
		return -EBUSY;
	return enable ? tell("probe_enable", kern_program_attach(program, &err), &err)
		      : kern_program_detach(program);
}

static int op_program_target(void *run, const char *name, const char *target)
{
	struct session *session = run;
	struct kern_program *program = find_program(session, name);
	struct err err = { 0 };

	if (!program)
		return -ENOENT;
	if (session->phase != PHASE_OPEN)
		return -EBUSY;
	return tell("prog_target", kern_program_set_target(program, target, &err), &err);
}

static int op_map_entries(void *run, const char *name, uint32_t entries)
{
	struct session *session = run;
	struct kern_map *map = session->kern ? kern_map_find(session->kern, name) : NULL;
	struct err err = { 0 };

	if (!map)
		return -ENOENT;
	if (session->phase != PHASE_OPEN)
		return -EBUSY;
	return tell("map_max_entries", kern_map_set_max_entries(map, entries, &err), &err);
}

static int op_event_supported(const char *event)
{
	return !pmu_probe(event, NULL);
}

static int op_event_bound(void *run, const char *name)
{
	struct session_pmu *pmu = session_find_pmu(run, name);

	return pmu && pmu->event[0];
}

static int op_event_text(void *run, const char *name, const char *event)
{
	struct session *session = run;
	struct session_pmu *pmu = session_find_pmu(session, name);

	if (!pmu)
		return -ENOENT;
	if (session->phase != PHASE_OPEN)
		return -EBUSY;
	if (strlen(event) >= sizeof(pmu->event))
		return -E2BIG;
	strcpy(pmu->event, event);
	return 0;
}

static void put_sum(uint64_t values[3], const struct pmu_reading *reading)
{
	values[0] = reading->count;
	values[1] = reading->enabled;
	values[2] = reading->running;
}

static int find_counter(struct session *session, const char *name, struct pmu_counter **ret)
{
	struct session_pmu *pmu = session_find_pmu(session, name);

	if (!pmu || !pmu->counter)
		return -ENOENT;
	*ret = pmu->counter;
	return pmu_counter_state(pmu->counter) == PMU_OPEN ? 0 : -EOPNOTSUPP;
}

static int op_pmu_read(void *run, const char *name, int cpu, uint64_t values[3])
{
	struct pmu_counter *counter;
	struct pmu_reading reading;
	int code = find_counter(run, name, &counter);

	if (!code)
		code = cpu < 0 ? pmu_read(counter, &reading) : pmu_read_cpu(counter, cpu, &reading);
	if (!code)
		put_sum(values, &reading);
	return code;
}

static int op_pmu_together(void *run, const char *const names[2], uint64_t *const values[2])
{
	struct pmu_counter *counters[2];
	struct pmu_reading readings[2];
	int i, code = 0;

	for (i = 0; !code && i < 2; i++)
		code = find_counter(run, names[i], &counters[i]);
	if (!code)
		code = pmu_read_together((const struct pmu_counter *const *)counters, 2, readings);
	for (i = 0; !code && i < 2; i++)
		put_sum(values[i], &readings[i]);
	return code;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int op_cost(void *run, uint64_t values[4])
{
	struct session *session = run;
	struct duet_cost now = { .wall = clock_ns(CLOCK_MONOTONIC),
				 .cpu_self = clock_ns(CLOCK_PROCESS_CPUTIME_ID) },
			 delta;
	struct err err = { 0 };
	size_t i;
	int code;

	memset(values, 0, sizeof(delta));
	/* Statistics cost a little: they are on from the first question on. */
	code = session->kern ? kern_enable_statistics(session->kern, &err) : -ENOENT;
	if (code)
		return tell("duet_cost", code, &err);
	for (i = 0; i < kern_program_count(session->kern); i++) {
		struct kern_program_info info;

		if (!kern_program_get_info(kern_program_at(session->kern, i), &info))
			now.cpu_probes += info.run_ns;
	}
	delta = (struct duet_cost){ .wall = now.wall - session->cost_last.wall,
				    .cpu_self = now.cpu_self - session->cost_last.cpu_self,
				    .cpu_probes = now.cpu_probes - session->cost_last.cpu_probes };
	session->cost_last = now;
	memcpy(values, &delta, sizeof(delta));
	return 0;
}

static uint32_t op_cpus(void *run)
{
	return ((struct session *)run)->ncpus;
}

const struct hook_ops session_ops = {
	.stop = op_stop,
	.probe_run = op_probe_run,
	.probe_attach = op_probe_attach,
	.probe_enable = op_probe_enable,
	.program_target = op_program_target,
	.map_entries = op_map_entries,
	.event_text = op_event_text,
	.pmu_read = op_pmu_read,
	.pmu_together = op_pmu_together,
	.cost = op_cost,
	.cpus = op_cpus,
	.event_supported = op_event_supported,
	.event_bound = op_event_bound,
};
