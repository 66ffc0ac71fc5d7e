/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Actions: what the user half can do to the running measurement. Part of duet.h. All return 0 or
 * a count, or a negative errno; -EOPNOTSUPP: not in this command (recording under `duet run`).
 * @program is a kernel program of the script, by its function name.
 */
#pragma once

/* ---- programs --------------------------------------------------------------------------------- */

/* prog_target: user/open only: attaches @program to "kprobe:vfs_read", "uprobe:/bin/x:func",
 * "usdt:/bin/x:provider:name", "tracepoint:sched:sched_switch" ... instead of what its SEC() says. */
extern int prog_target(const void *program, const char *target);
/* prog_enable, prog_disable: user/open only: whether @program is loaded and attached at all. */
extern int prog_enable(const void *program);
extern int prog_disable(const void *program);
/* probe_enable, probe_disable: attaches or detaches a loaded program while running. */
extern int probe_enable(const void *program);
extern int probe_disable(const void *program);
/* probe_attach: a further instance at another place ("kprobe:vfs_write", "/bin/x:func"). */
extern int probe_attach(const void *program, const char *where);
/* probe_run: runs a bare SEC("raw_tp") program once on CPU @cpu (-1: on each CPU), for the last
 * slice before a report. In user/exit duet has done that already: 0. */
extern int probe_run(const void *program, int cpu);

/* ---- counters and maps ------------------------------------------------------------------------ */

/* pmu_event: user/open only: binds a PMU() to another event text, as -e NAME=EVENT does. */
extern int pmu_event(const void *pmu, const char *event);
/* pmu_bound: has it an event, by its declaration, -e or pmu_event()? 0 or 1: for PMU_ANY(). */
extern int pmu_bound(const void *pmu);
/* event_supported: does this machine count the event? 0 or 1; no message when not. */
extern int event_supported(const char *event);
/* pmu_total: what the event counted since start, all measured CPUs together. Zeroed when < 0. */
extern int pmu_total(const void *pmu, struct pmu_sum *sum);
/* pmu_together: the totals of two PMU()s of one group, read at once: enabled and running are equal,
 * and the ratio of the two is true. -EXDEV: they are not in one group. Zeroed when < 0. */
extern int pmu_together(const void *pmu_a, struct pmu_sum *sum_a, const void *pmu_b,
			struct pmu_sum *sum_b);
/* map_max_entries: user/open only: sets the size of a map, as --map NAME.max_entries=N does. */
extern int map_max_entries(const void *map, __u32 entries);

/* ---- sampling (duet record) ------------------------------------------------------------------- */

/* event_period: one sample per @period events, from now on. */
extern int event_period(const struct duet_event *event, __u64 period);
/* event_freq: @hz samples per second and CPU. */
extern int event_freq(const struct duet_event *event, __u64 hz);
/* event_enable, event_disable: goes on or pauses. */
extern int event_enable(const struct duet_event *event);
extern int event_disable(const struct duet_event *event);
/* event_samples: samples taken so far. */
extern __u64 event_samples(const struct duet_event *event);

/* record_start, record_stop: begins or ends writing samples. */
extern int record_start(void);
extern int record_stop(void);
/* record_snapshot: writes the flight recorder's last seconds; @why goes into the file. */
extern int record_snapshot(const char *why);
/* record_rotate: ends this file and begins the next. */
extern int record_rotate(void);
/* record_mark: puts a text into the file at this moment. */
extern int record_mark(const char *text);

/* ---- the run ---------------------------------------------------------------------------------- */

/* duet_stop: ends the run after this hook, with user/exit; duet exits with @status. */
extern int duet_stop(int status);
/* duet_cost: CPU time spent since the last call, in ns (see struct duet_cost); zeroed when < 0. */
extern int duet_cost(struct duet_cost *cost);
/* duet_cpus: CPUs that are measured. */
extern __u32 duet_cpus(void);
/* duet_verbose: was -v given? 0 or 1. */
extern int duet_verbose(void);
