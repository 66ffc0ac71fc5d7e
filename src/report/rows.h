/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of one print: which, in which order. Owned by the caller until view_rows_deinit(). */
#pragma once

#include "report/emit.h"
#include "report/view.h"

struct view_rows {
	struct view_scan scan;
	struct view_row *rows;
	size_t count;       /* to be printed */
	size_t total;       /* of the map, before where= and top= */
	uint64_t *left_out; /* per aggregate: rows that had no value to add */
};

/* Decides on everything that needs all rows: totals, filter, order. 0 or -errno. */
int view_rows_select(struct report_view *view, const struct report_map *map,
		     const struct report_names *names, struct view_rows *ret, struct err *err);
void view_rows_deinit(struct view_rows *rows);
/* Makes scan the row's: sources and computed columns. */
void view_rows_enter(struct view_rows *rows, size_t index);

/* "print_hists" and kin: as report_view_compile(), with the name for messages. */
int view_compile(const char *function, const struct report_map *shape, const char *options,
		 const struct report_counter *counters, size_t ncounters, struct report_view **ret,
		 struct err *err);
