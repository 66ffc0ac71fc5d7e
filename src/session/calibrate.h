/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the calibration share. One thread. */
#pragma once

#include "session/internal.h"

#define CALIBRATE_PROGRAMS 8 /* of one pair: several may lie at the same function */

/* Programs that begin calls, and those that end them. */
struct calibrate_pair {
	size_t index[CALIBRATE_PROGRAMS]; /* in the kernel half, those first that begin calls */
	size_t count;
	enum kern_pair way;
	bool asked;        /* no entry and return of one function */
	bool large;        /* tracepoint programs: where the kernel writes a large record */
	bool raw_syscalls; /* begins and ends with all system calls */
	const char *where; /* the target of the first; the session's */
	bool failed;       /* and told */
};
struct calibrate_pairs {
	struct calibrate_pair *pair;
	size_t count, capacity, failed;
};

/* A throw-away instance of the kernel half. */
struct calibration {
	struct session *session;
	struct kern *kern;
	bool full;                     /* the second one: all that a pair costs */
	struct calibrate_pairs *pairs; /* found by the first */
	struct pmu_counter **counters;
	const struct user_variable *samples; /* __duet_calibration */
	struct kern_map *bss;
	uint8_t *bss_data; /* a copy of the instance's */
	uint32_t bss_size;
};

/* ---- calibrate.c ---- */
int calibrate_read_memory(struct calibration *calibration); /* into bss_data */
/* A clean page for what comes next. */
int calibrate_clear(struct calibration *calibration, struct err *err);
/* Of CALLS(@calls), as of the last reading; NULL: they are not in this memory. */
const struct duet_call_stats *calibrate_stats(struct calibration *calibration, const char *calls);
/* For qsort() of int64_t. */
int calibrate_compare(const void *a, const void *b);

/* ---- calibrate_pairs.c ---- */
int calibrate_find_pairs(struct calibration *calibration, struct err *err);
/* The programs of @pair in this instance, CALIBRATE_PROGRAMS at most. */
void calibrate_programs(struct calibration *calibration, const struct calibrate_pair *pair,
			struct kern_program **ret);

/* ---- calibrate_whole.c ---- */
/* @found += @times * @other by PMU slot; known is what both know. */
void calibrate_add(bool *has, int64_t *found, int times, const bool *has_other,
		   const int64_t *other);
/*
 * What a nested call with the probes of @programs costs the calls around it: medians by PMU slot into
 * @found where @has says so, both arrays of DUET_PMU_MAX. 0 or -errno.
 */
int calibrate_whole(struct session *session, const struct calibrate_pair *pair,
		    struct kern_program *const *programs, bool *has, int64_t *found,
		    struct err *err);
/* The same for one round of KERN_PAIR_ROUNDS, without probes. */
int calibrate_bare_round(struct session *session, const struct calibrate_pair *pair,
			 struct kern_program *const *programs, bool *has, int64_t *found,
			 struct err *err);
