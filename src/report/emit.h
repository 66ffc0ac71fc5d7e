/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an output format does. Callers speak in tables, values, histograms and notes; an emitter
 * composes each as one document in report->out and report_commit() writes it in one go, so a
 * reader never sees half of one. Emitters return nothing: a failed allocation sticks to the out.
 * A new format is one file and one row of emitters[] in report.c. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/histogram.h"
#include "report/out.h"
#include "report/report.h"
#include "report/value.h"

enum emit_layout {
	EMIT_TEXT,    /* left-aligned */
	EMIT_NUMBER,  /* right-aligned */
	EMIT_COUNTER, /* a pmu_sum, or computed from one: has a status */
	EMIT_HIST,    /* struct hist: several numbers */
};

struct emit_column {
	const char *name;
	enum emit_layout layout;
	uint32_t index; /* in view_column */
};

struct emit_table {
	const char *name;
	const char *title; /* NULL: none given */
	const struct emit_column *columns;
	size_t ncolumns;
	const struct report_counter *const *replaced; /* counters with another event */
	size_t nreplaced;
	size_t rows, total; /* shown, and in the map */
	bool live;
	uint64_t time_ns;     /* CLOCK_REALTIME, when live */
	const void *identity; /* the same table at the next print has the same one */
};

struct emit_hist {
	const char *name;
	const char *title; /* NULL: none given */
	enum value_unit unit;
	bool keyed;
	enum value_status status;
	const struct hist *hist;
};

#define EMIT_DEPTH_MAX 32 /* of nested structs and arrays */

struct emit_ops {
	const char *name;
	int (*open)(struct report *report); /* 0 or -ENOMEM; report->state */
	void (*close)(struct report *report);

	/* A value on its own: between them one emit_place(). */
	void (*value_begin)(struct report *report, const char *name);
	void (*value_end)(struct report *report);

	/* A cell is one value, struct or array. */
	void (*table_begin)(struct report *report, const struct emit_table *table);
	void (*row_begin)(struct report *report);
	void (*cell_begin)(struct report *report, const struct emit_column *column);
	void (*cell_end)(struct report *report);
	void (*row_end)(struct report *report);
	void (*table_end)(struct report *report);

	void (*value)(struct report *report, const struct value *value);
	/* @lines: large enough for a line per member. */
	void (*struct_begin)(struct report *report, bool lines);
	void (*member)(struct report *report, const char *name);
	void (*struct_end)(struct report *report);
	/* Returns how many of the @count elements will be shown. */
	size_t (*array_begin)(struct report *report, size_t count);
	void (*array_end)(struct report *report);

	/* When keyed, one emit_place() comes between them: the key. */
	void (*hist_begin)(struct report *report, const struct emit_hist *hist);
	void (*hist_end)(struct report *report, const struct emit_hist *hist);

	void (*note)(struct report *report, const char *text);
	/* What the script printed. */
	void (*text)(struct report *report, const char *data, size_t size);
	void (*finish)(struct report *report);
};

extern const struct emit_ops emit_text, emit_json, emit_csv;

struct report {
	struct report_options options;
	const struct emit_ops *ops;
	void *state;
	struct out out;            /* the document under construction */
	struct value value;        /* scratch of emit_place() */
	enum value_unit hist_unit; /* of the values in the histograms of this document */
	size_t most_rows;          /* of a table; 0: all */
	bool live;
	int failed; /* -errno of the first document that could not be written; 0: none */
};

/* Writes what is in report->out, all or (on a regular file) nothing, and empties it. -errno. */
int report_commit(struct report *report, struct err *err);

/* Is @name, or what follows its last dot, an event that this machine lacks? */
bool counter_unsupported(const struct report_counter *counters, size_t ncounters, const char *name);
/* What is known of the event of that name becomes the place's. */
void counter_mark(struct place *place, const struct report_counter *counters, size_t ncounters,
		  const char *name);

/* Walks any place: scalars, structs, arrays, sections. */
void emit_place(struct report *report, const struct types *types, const struct place *place,
		const struct source *source);

/* ---- nested values as one line of text, for formats whose cells are text ------------------ */
struct nest {
	struct out text, flag;
	unsigned int depth;
	bool exact; /* numbers for programs */
	bool lines; /* the outermost struct has a line per member */
	bool after_name;
	size_t hidden; /* elements left out of the array that is open */
	bool some[EMIT_DEPTH_MAX + 2];
};
void nest_clear(struct nest *nest);
void nest_deinit(struct nest *nest);
void nest_value(struct nest *nest, const struct value *value);
void nest_struct_begin(struct nest *nest, bool lines);
void nest_member(struct nest *nest, const char *name);
void nest_struct_end(struct nest *nest);
size_t nest_array_begin(struct nest *nest, size_t count);
void nest_array_end(struct nest *nest);
