/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMU events: from text to perf_event_attr, opened per CPU. No libbpf here. One thread.
 * Sources: perf_event_open(2), tools' event names as `perf list` shows them.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* One event as text asked for it: "cycles", "instructions:u", "LLC-load-misses", "r1a8:k",
 * "cpu/event=0x3c,umask=1/u", "page-faults", "cpu-clock" ... */
struct pmu_event {
	char text[128];	/* canonical, as reports name it */
	struct perf_event_attr attr;
	bool software;
	char unit[16];	/* "" or "ns" ... */
	double scale;
};

/* -EINVAL for bad syntax, -ENOENT for an unknown name; both with nearest names as hint. */
int pmu_parse(const char *text, struct pmu_event *ret, struct err *err);

/* The same event on a list of CPUs. */
struct pmu_counter;
enum pmu_state {
	PMU_OPEN,
	PMU_NOT_SUPPORTED, /* the machine lacks it: reported, the run goes on */
};
/*
 * Opens per CPU (pid -1), disabled. A missing event is not a failure: 0 with state
 * PMU_NOT_SUPPORTED and the reason in @err (errno ENOENT, ENODEV, EOPNOTSUPP, EINVAL of a
 * known-good attr); permission, EMFILE and the like fail with what, why and what to do.
 * @leader: counter that leads the group, or NULL. @cpus: array of @ncpus ids.
 */
int pmu_open(const struct pmu_event *event, const int *cpus, size_t ncpus,
	     const struct pmu_counter *leader, struct pmu_counter **ret, struct err *err);
void pmu_close(struct pmu_counter *counter);
DEFINE_CLEANUP(struct pmu_counter *, pmu_close);
enum pmu_state pmu_counter_state(const struct pmu_counter *counter);
const struct pmu_event *pmu_counter_event(const struct pmu_counter *counter);
/* The fd on @cpu, or -1. Owned by the counter. */
int pmu_counter_fd(const struct pmu_counter *counter, int cpu);
int pmu_enable(struct pmu_counter *counter);
int pmu_disable(struct pmu_counter *counter);
/* count, enabled, running of one CPU. -errno. */
struct pmu_reading { uint64_t count, enabled, running; };
int pmu_read_cpu(const struct pmu_counter *counter, int cpu, struct pmu_reading *ret);

/* "0-3,7" -> ids; online CPUs for NULL. Caller frees *ret. */
int pmu_parse_cpus(const char *text, int **ret, size_t *count, struct err *err);

/* For `duet list events` and `doctor`. Calls back with canonical names. */
typedef void (*pmu_name_fn)(void *context, const char *name, const char *kind, const char *description);
void pmu_list(pmu_name_fn fn, void *context);
/* Does it open (on CPU 0 or any)? 0, or -errno with the reason and the remedy in @err. */
int pmu_probe(const char *text, struct err *err);
/* fds that @events on @ncpus need; raises RLIMIT_NOFILE's soft (and, if allowed, hard) limit.
 * Tells needed and granted in @err when it is not enough (-EMFILE). */
int pmu_raise_file_limit(size_t needed, size_t *granted, struct err *err);
