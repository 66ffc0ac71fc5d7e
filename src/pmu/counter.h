/* SPDX-License-Identifier: BSD-2-Clause */
/* An event that is open on CPUs: shared by open.c, follow.c, counter.c and capacity.c. */
#pragma once

#include "pmu/internal.h"
#include "pmu/page.h"

/* On one CPU. */
struct pmu_place {
	int cpu;
	int fd; /* -1: not here, or the CPU is offline */
	bool grouped;
	uint64_t id; /* the kernel's, by which a group tells its values; 0: not asked for yet */
	bool page_tried, page_refused;
	struct perf_event_mmap_page *page; /* NULL: none */
	struct pmu_reading kept;           /* what it counted before the CPU was offline */
};

struct pmu_counter {
	const struct pmu_system *system;
	struct pmu_event event;
	struct perf_event_attr attr; /* as opened, for a leader or a lone event */
	enum pmu_state state;
	bool grouped;
	char reason[320];
	struct pmu_place *places;
	size_t count;
	struct pmu_kind *kinds; /* of a generic event */
	size_t nkinds;
};

/* Parses "0-3,7": ids ascending, each once. -EINVAL. */
int pmu_cpu_list(const char *text, int **ret, size_t *count);

/* ---- open.c ---- */
/* Opens @place of @counter, in the group of @leader if it can be. The descriptor or -errno. */
int pmu_open_place(const struct pmu_counter *counter, const struct pmu_counter *leader,
		   struct pmu_place *place);
bool pmu_means_not_supported(int code);

/* ---- counter.c ---- */
struct pmu_place *pmu_place_of(const struct pmu_counter *counter, int cpu);
void pmu_place_close(const struct pmu_counter *counter, struct pmu_place *place);

/* ---- hybrid.c ---- */
/* The PMUs of the CPU's cores where there are several kinds; none elsewhere. */
struct pmu_kind {
	uint32_t type;
	int *cpus;
	size_t ncpus;
};
int pmu_kinds_find(const struct pmu_system *system, struct pmu_kind **ret, size_t *count);
void pmu_kinds_free(struct pmu_kind *kinds, size_t count);
bool pmu_kind_has(const struct pmu_kind *kind, int cpu);
/* Makes of a generic event that of the PMU of @cpu's core; false: it has none. */
bool pmu_kinds_attr(const struct pmu_kind *kinds, size_t count, int cpu,
		    struct perf_event_attr *attr);
/* A generic name, cache event or rHEX, without a PMU. */
bool pmu_is_generic(const struct pmu_event *event);
