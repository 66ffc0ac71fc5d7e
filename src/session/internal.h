/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share. Not for others. */
#pragma once

#include "session/session.h"

#include <duet/shared.h>

#include "base/buf.h"
#include "hook/hook.h"
#include "kern/kern.h"
#include "loop/loop.h"
#include "obj/split.h"
#include "pmu/pmu.h"

/* One PMU() of the script, or a map bound with --map NAME.event. */
struct session_pmu {
	const char *name;
	const char *declared; /* the script's event text; NULL: none */
	char event[128];      /* text: the script's, or -e's */
	const char *group;
	int32_t slot; /* index for task totals; -1: a bare map */
	struct pmu_event parsed;
	struct pmu_counter *counter; /* NULL until opened */
};

/* A perf_event/EVENT@FREQ program's events. */
struct session_sampler {
	struct kern_program *program;
	struct pmu_counter *counter;
};

struct session_ring {
	struct session *session;
	const char *map;
	struct kern_ring *ring;
	uint64_t lost;
	struct hook_batch *batch; /* while it is consumed with the vm entered */
	size_t limit;             /* of that consume */
	struct session_ring *next;
};

enum session_phase {
	PHASE_OPEN, /* nothing loaded */
	PHASE_INIT, /* loaded, nothing attached */
	PHASE_RUN,
	PHASE_EXIT, /* detached, counters stopped, user/exit runs */
};

struct session {
	const struct session_options *options;
	enum session_phase phase;
	struct obj *obj;
	struct types *kernel_types;
	struct split split;
	struct loop *loop;
	struct kern *kern;
	struct report *report;
	struct hook_half *half;
	FILE *out;
	char *out_temporary; /* -o writes here until the end, then renames; NULL: none */

	int *cpus;
	size_t ncpus;
	int uevents; /* socket on which the kernel tells of CPUs; 0: none */
	struct loop_source *uevents_source;
	int clock; /* readable when the clock was set, as after a suspend; 0: none */
	struct loop_source *clock_source;
	struct pmu_counter *witness; /* counts nothing, on each CPU; ends with the others there */
	struct session_pmu *pmus;
	size_t npmus;
	uint64_t overhead_since; /* ns */
	struct buf overhead;     /* the table of --overhead */
	size_t ncounters;        /* for reports: npmus, and those that were bound to no event */
	size_t event_groups;     /* {a,b} in -e so far */
	struct report_counter *counters; /* one per pmu, kept true for the report */
	struct session_sampler *samplers;
	size_t nsamplers, samplers_capacity;

	struct loop_child *child;
	bool counted_tasks; /* in_target() asks the map of threads */
	size_t watched;     /* -p/-t tasks still alive */
	struct interval *intervals;
	struct session_ring *rings;
	struct kern_printk *printk;
	struct sym *sym; /* names for reports, NULL until the first is asked for */
	char name[512];  /* the last one */

	volatile bool signalled; /* SIGINT or SIGTERM came in this phase */
	int stop_status;
	bool stop_asked;
	bool draining;      /* the last records are served */
	bool exec_failed;   /* CMD could not be executed */
	bool released;      /* probes are there and CMD runs: something may have been measured */
	uint64_t lost_told; /* failed reservations that user/lost knows of */
	struct duet_exit exit;
	struct err failure; /* first failure of a hook or of ours while running */
	struct duet_cost cost_last;
};

/* ---- setup.c: notes, PMUs, arguments ---- */
int session_check_arch(struct session *session, struct err *err);
int session_setup_pmus(struct session *session, struct err *err);
int session_apply_arguments(struct session *session, struct err *err);
const struct user_note *session_note(const struct session *session, const char *kind, size_t *from);
struct session_pmu *session_find_pmu(struct session *session, const char *name);
/* ---- set.c: --set, --map ---- */
int session_apply_sets(struct session *session, struct err *err);
int session_set_variable(struct session *session, const char *name, const char *value,
			 struct err *err);
const struct user_variable *session_variable(const struct session *session, const char *name);
/* "calls_overhead" of CALLS(calls): is it one? Then @calls, if given, gets its prefix. */
bool session_is_overhead(const struct session *session, const struct user_variable *variable,
			 char *calls, size_t size);
/* Memory of a variable in the half, or NULL. */
void *session_variable_data(const struct session *session, const char *name, size_t size);
/* ---- lost.c: what the kernel half could not do ---- */
/* Failed reservations since the last time go to user/lost. */
void session_tell_lost(struct session *session);
/* At the end: that, and a note for each full map and ring. */
void session_tell_failures(struct session *session);
/* The only process whose user code is probed; -1: any may be. */
static inline int session_probe_pid(const struct session *session)
{
	const struct session_options *options = session->options;

	return options->npids == 1 && !options->ntids && !options->all ? options->pids[0] : -1;
}

/* ---- overhead.c: --overhead ---- */
int session_overhead_start(struct session *session, struct err *err);
void session_overhead_take(struct session *session);
void session_overhead_tell(struct session *session);
/* ---- events.c: -e ---- */
int session_rebind_events(struct session *session, struct err *err);
int session_bind_event(struct session_pmu *pmu, const char *event, struct err *err);
int session_drop_unbound_pmus(struct session *session, struct err *err);
/* PMU_ANY(): takes whatever event -e or user/open gives it. */
static inline bool session_pmu_is_open_to_all(const struct session_pmu *pmu)
{
	return pmu->declared && !pmu->declared[0];
}

int session_check_maps(struct session *session, struct err *err); /* names, before load */
int session_apply_map_values(struct session *session, struct err *err);
/* ---- target.c: who is measured, where programs attach ---- */
uint32_t session_target_kind(const struct session *session); /* enum duet_target_kind */
int session_setup_target(struct session *session, struct err *err);
int session_substitute_targets(struct session *session, struct err *err);
int session_start_target(struct session *session, struct err *err);
/* ---- counters.c ---- */
int session_parse_events(struct session *session, struct err *err);
int session_open_counters(struct session *session, struct err *err);
/* Puts a counter's fds where programs of @kern read them, by CPU. */
int session_fill_map(struct session *session, struct kern *kern, const char *map,
		     const struct pmu_counter *counter, struct err *err);
/* The same on one CPU. */
int session_fill_slot(struct kern *kern, const char *map, const struct pmu_counter *counter,
		      int cpu, struct err *err);
/* The open counter that leads @pmu's group; NULL: none, or it is @pmu's own. */
const struct pmu_counter *session_group_leader(const struct session *session,
					       const struct session_pmu *pmu);
/* @counters: one per PMU. */
int session_start_totals(struct session *session, struct kern *kern,
			 struct pmu_counter *const *counters, struct err *err);
/* All that are open, on @cpu (-1: on all). */
int session_enable_pmus(struct session *session, int cpu, struct err *err);
int session_enable_counters(struct session *session, struct err *err);
int session_resume_counters(struct session *session, struct err *err);
void session_disable_counters(struct session *session);
void session_close_counters(struct session *session);
/* ---- hotplug.c ---- */
int session_follow_cpus(struct session *session, struct err *err);
bool session_measures(const struct session *session, int cpu);
/* @cpu is online, and what was open there has ended: all of it is opened anew. */
void session_cpu_came(struct session *session, int cpu);
/* ---- suspend.c ---- */
/* After a suspend the counters that it ended are opened anew. */
int session_follow_sleep(struct session *session, struct err *err);
/* While the counters are still open: a note for each CPU whose counters ended and nobody told. */
void session_tell_ended(struct session *session);
/* ---- calibrate.c ---- */
int session_calibrate(struct session *session, struct err *err);
void session_calibrate_switches(struct session *session);
/* ---- ops.c ---- */
extern const struct hook_ops session_ops;
/* ---- rings.c ---- */
/* Before load: every user/event/MAP has its map. */
int session_check_rings(struct session *session, struct err *err);
int session_open_rings(struct session *session, struct err *err);
void session_drain_rings(struct session *session);
void session_close_rings(struct session *session);
/* Their buffers of one CPU, when it goes and comes. 0, or -errno of a buffer. */
void session_rings_cpu_went(struct session *session, int cpu);
int session_rings_cpu_came(struct session *session, int cpu);
int session_open_printk(struct session *session, struct err *err);
/* Runs every SEC("iter/...") program once; what it writes is the script's text. */
int session_print_iterators(struct session *session, struct err *err);
/* Reports lost records to user/lost and counts them. */
int session_lost(struct session *session, uint32_t what, uint32_t cpu, uint64_t count);
/* ---- run.c ---- */
int session_run_hook(struct session *session, enum hook_kind kind, const void *argument,
		     uint64_t size);
/* Notes the first failure and stops the loop. Returns 0, so that the loop ends in order. */
int session_fail(struct session *session, const struct err *err);
int session_take_signals(struct session *session, struct err *err);
int session_take_script_signals(struct session *session, struct err *err);
void session_free_intervals(struct session *session);
int session_loop(struct session *session, struct err *err);
int session_finish(struct session *session);
/* ---- names.c ---- */
struct report_names session_names(struct session *session);
/* ---- session.c ---- */
/* Initial contents of every data section, and which maps are needed, for one kernel half. */
int session_hand_over_data(struct session *session, struct kern *kern, struct err *err);
