/* SPDX-License-Identifier: BSD-2-Clause */
/* An event that is open on CPUs: shared by open.c and counter.c. */
#pragma once

#include "pmu/internal.h"

struct pmu_counter {
	const struct pmu_system *system;
	struct pmu_event event;
	struct perf_event_attr attr; /* as opened, for a leader or a lone event */
	enum pmu_state state;
	bool grouped;
	char reason[320];
	size_t count;
	struct {
		int cpu;
		int fd; /* -1: not here */
	} at[];
};

/* Parses "0-3,7": ids ascending, each once. -EINVAL. */
int pmu_cpu_list(const char *text, int **ret, size_t *count);
