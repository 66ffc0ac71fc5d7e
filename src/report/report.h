/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of maps by BTF: one emitter interface (text, JSON, CSV), tables, histograms.
 * Works on bytes that the caller collected: no kernel access here. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "obj/types.h"

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_CSV };

/* What the values of a column stand for when the machine cannot count them. */
struct report_counter {
	const char *member; /* name of the pmu_sum member or variable: "cycles" */
	const char *event;  /* "instructions:u", or the text of the substitute */
	bool supported;     /* false: every value prints as `not supported` */
	bool replaced;      /* the script asked for another event: tables tell in their header */
	uint8_t window;     /* equal numbers: counted at the same times (one group); 0: not known */
	bool by_event; /* the script names no event: columns of `member` and of names that begin
			     * with it and '_' carry the event's text in its place; @event "": left out */
};

/* Names that a number can be turned into (all optional; NULL: print the number). Results are
 * valid until the next call. */
struct report_names {
	void *context;
	const char *(*cgroup)(void *context, uint64_t id);
	const char *(*kernel_address)(void *context, uint64_t address);
	size_t (*stack)(void *context, int32_t id, bool user, uint64_t *addresses, size_t max);
	/* Of the process of the row's duet_pid column; @pid 0 when it has none. */
	const char *(*user_address)(void *context, uint32_t pid, uint64_t address);
};

struct report;
struct report_options {
	enum report_format format;
	FILE *out;      /* borrowed */
	char separator; /* CSV; 0: ',' */
	int width;      /* columns of the terminal, tables are cut to it; 0: nothing is cut */
	struct report_names names;
	const struct report_counter *counters; /* borrowed */
	size_t ncounters;
};
/* Tables printed from now on have at most @rows rows; 0: as many as their options say. */
void report_limit_rows(struct report *report, size_t rows);
int report_create(const struct report_options *options, struct report **ret, struct err *err);
void report_destroy(struct report *report);
DEFINE_CLEANUP(struct report *, report_destroy);

/* A map's contents. */
struct report_map {
	const char *name;
	const struct types *types;
	uint32_t key_type, value_type; /* BTF ids, 0: unknown (printed as hex) */
	uint32_t key_size, value_size; /* bytes of one key, of one CPU's value */
	uint32_t cpus; /* values hold that many copies, each rounded up to 8 bytes; summed */
	size_t count;
	const uint8_t *keys, *values;
};

/*
 * An option string, compiled. Words are set apart by blanks:
 *	sort=-a,b	by column or expression, - is descending; ties keep the map's order; rows
 *			without a number come last; without sort= rows come by key
 *	top=N		the first N rows
 *	where=EXPR	rows for which it is not 0 (totals still count all rows)
 *	cols=a,b[2],h.p99	which columns, in which order; parts of columns too
 *	NAME=EXPR[:FORMAT]	a computed column; FORMAT: .2  .1%  d  ns  bytes
 *	key=NAME	renames a key that is one column
 *	title='TEXT'	instead of the map's name
 *	unit=ns|bytes	of the values in histograms
 *	since-last	what came since the last print of this view; rows in which nothing happened
 *			are left out, a counter that is smaller than before `went backwards`
 *	percpu		a row per CPU instead of sums
 *	live		redrawn in place on a terminal, else with a time
 * EXPR: numbers, columns, + - * / ( ), < <= > >= == != && || !, COLUMN == 'text',
 * total(x) mean(x) min(x) max(x) over all rows, min(x,y,..) max(x,y,..), and of a histogram h:
 * h.n h.sum h.mean h.min h.max h.p50 h.p99 h.p999 p(h, PER_MILLE). What is `not supported`, `not
 * counted` or divided by zero makes its result likewise, an estimate makes it an estimate.
 */
struct report_view;
/* -EINVAL with "print_map(NAME): no column `x`: columns: a, b, c". Of @shape only name, types and
 * sizes are used, no rows. The types must outlive the view, @counters need not. */
int report_view_compile(const struct report_map *shape, const char *options,
			const struct report_counter *counters, size_t ncounters,
			struct report_view **ret, struct err *err);
void report_view_free(struct report_view *view);
DEFINE_CLEANUP(struct report_view *, report_view_free);

/* One table. 0 or -errno (also of the stream: a full disk is -ENOSPC); -EINVAL when @map's sizes
 * are not those that the view was compiled for. */
int report_map_print(struct report *report, struct report_view *view, const struct report_map *map,
		     struct err *err);
/* Any value by its BTF type, as `name = {...}` text or a JSON member. */
int report_value_print(struct report *report, const char *name, const struct types *types,
		       uint32_t type, const void *data, size_t size, struct err *err);
/* One `struct hist` (struct layout of duet/shared.h). options: "title=... unit=ns". */
struct hist;
int report_hist_print(struct report *report, const struct hist *hist, const char *name,
		      const char *options, struct err *err);
/* Quantile of a log2 histogram by linear interpolation inside the slot; @per_mille 0..1000.
 * 0 for an empty one. */
uint64_t report_hist_quantile(const struct hist *hist, uint32_t per_mille);
/* A header line before a table: events and what they stand for. */
int report_note(struct report *report, const char *text);
/* Text that the script printed, any bytes: as it is in text format, as {"type": "text"} lines in
 * JSON (whole lines; the rest waits), to stderr in CSV. */
int report_text(struct report *report, const char *data, size_t size);
/* Tables that follow may be redrawn in place (`table()`), where the output is a terminal. */
void report_set_live(struct report *report, bool live);
/* Options as of a view; the columns that are shown and no histogram are ignored.
 * One histogram per key of a map whose values are, or hold as a member, a struct hist. */
int report_hists_print(struct report *report, const struct report_map *map, const char *options,
		       struct err *err);
/* What the first output that failed failed with (-ENOSPC, -EPIPE), 0: none did. */
int report_failed(const struct report *report);
/* Flushes; ends a JSON document. */
int report_finish(struct report *report, struct err *err);
