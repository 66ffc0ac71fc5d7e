/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An option string, compiled against the types of a map: columns, computed columns, sort keys and
 * a filter as expression trees. Owned by its maker; the types are borrowed. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"
#include "report/value.h"

#define VIEW_NODES_MAX   4096
#define VIEW_DEPTH_MAX   200 /* of an expression tree */
#define VIEW_NESTING_MAX 64  /* of brackets and signs, as the parser recurses on them */
#define VIEW_NONE        UINT32_MAX

enum node_kind {
	NODE_NUMBER,
	NODE_PLACE,    /* a column or a part of one */
	NODE_CPU,      /* the row's CPU */
	NODE_COMPUTED, /* a computed column, by its index */
	NODE_TEXT_IS,  /* place equals text: 0 or 1 */
	NODE_HIST,     /* a number out of a histogram place */
	NODE_AGGREGATE,
	NODE_NEGATE,
	NODE_NOT,
	NODE_ADD,
	NODE_SUBTRACT,
	NODE_MULTIPLY,
	NODE_DIVIDE,
	NODE_LESS,
	NODE_LESS_EQUAL,
	NODE_EQUAL,
	NODE_UNEQUAL,
	NODE_AND,
	NODE_OR,
	NODE_MIN,
	NODE_MAX,
};

enum hist_number { HIST_N, HIST_SUM, HIST_MEAN, HIST_MIN, HIST_MAX, HIST_QUANTILE };

struct view_node {
	enum node_kind kind;
	uint32_t left, right; /* nodes */
	uint32_t depth;
	uint32_t index; /* of a computed column, an aggregate */
	enum hist_number hist;
	uint32_t per_mille;
	bool counters;   /* a counter is among the operands: the result may be flagged */
	bool aggregates; /* needs the pass over all rows */
	struct number number;
	struct place place;
	char *text; /* owned */
};

enum aggregate_kind { AGGREGATE_TOTAL, AGGREGATE_MEAN, AGGREGATE_MIN, AGGREGATE_MAX };

struct view_aggregate {
	enum aggregate_kind kind;
	uint32_t root;
	char *source; /* "total(cycles)", for notes; owned */
};

struct view_column {
	char *name;
	struct place place; /* unless cpu or computed */
	bool cpu;
	bool summarised; /* a histogram whose quantiles are columns of their own */
	bool computed;
	uint32_t root;
	enum value_unit unit;
	int digits;
};

struct view_sort {
	uint32_t root;
	bool descending;
	bool text; /* root is a place whose text is compared */
};

/* The rows of the last print, for since-last. */
struct view_past {
	uint8_t *keys, *values;
	size_t count, key_size, value_size; /* bytes of a key; of all copies of a value */
	uint32_t *slots;                    /* hash table of row + 1; 0: free */
	size_t nslots;                      /* a power of two */
};

struct report_view {
	const char *function; /* "print_map", for messages */
	char *name, *title, *key_name;
	const struct types *types;
	struct place key, value;
	uint32_t key_size, value_size;
	const struct report_counter *counters; /* only while compiling */
	size_t ncounters;

	struct view_column *columns;
	size_t ncolumns, columns_capacity;
	struct view_node *nodes;
	size_t nnodes, nodes_capacity;
	struct view_aggregate *aggregates;
	size_t naggregates, aggregates_capacity;
	struct view_sort *sorts;
	size_t nsorts, sorts_capacity;
	uint32_t *shown; /* columns in the order of printing */
	size_t nshown, shown_capacity;

	uint32_t where; /* node, or VIEW_NONE */
	uint64_t top;   /* rows; 0: all */
	enum value_unit unit;
	bool since_last, percpu, live;
	struct view_past past;
};

/* ---- columns.c ---- */
int view_columns_build(struct report_view *view, struct err *err);
struct view_column *view_column_find(struct report_view *view, const char *name, size_t size);
/* Adds a column; the name is made unique. NULL when out of memory. */
struct view_column *view_column_add(struct report_view *view, const char *name);
/*
 * Where a dotted path leads: 0, or -ENOENT. A path that goes on inside a histogram stops there
 * and leaves the rest in @rest ("p99"); otherwise @rest is "".
 */
int view_path(struct report_view *view, const char *path, size_t size, struct place *ret,
	      const char **rest);
/* "print_map(NAME): no column `x`: did you mean y?: columns: ..." and -EINVAL. */
int view_no_column(const struct report_view *view, const char *name, size_t size, struct err *err);

/* ---- expression.c ---- */
/*
 * Parses @text as far as it is an expression; its node in @root, what follows in @end. @boolean:
 * comparisons too. -EINVAL with the reason.
 */
int view_expression(struct report_view *view, const char *text, bool boolean, uint32_t *root,
		    const char **end, struct err *err);

/* ---- evaluate.c ---- */
struct view_row {
	uint32_t index; /* in the map */
	uint32_t cpu;   /* of a percpu view; VIEW_NONE: all */
};

struct view_scan {
	struct report_view *view;
	const struct report_map *map;
	const struct report_names *names;
	const uint8_t **previous;  /* per row of the map, NULL: new; NULL array: no since-last */
	struct number *computed;   /* of the row, per column */
	struct number *aggregates; /* per aggregate */
	struct source key, value;  /* of the row */
	uint32_t cpu;
	struct value scratch;
};
void view_scan_row(struct view_scan *scan, const struct view_row *row);
struct number view_evaluate(struct view_scan *scan, uint32_t root);
/* Fills scan->computed in column order; @aggregates: also those that need them. */
void view_compute(struct view_scan *scan, bool aggregates);

/* ---- past.c ---- */
int view_past_keep(struct view_past *past, const struct report_map *map);
/* The bytes of the value that @key had, or NULL. */
const uint8_t *view_past_find(const struct view_past *past, const uint8_t *key);
void view_past_deinit(struct view_past *past);
size_t view_value_stride(const struct report_map *map);
size_t view_value_bytes(const struct report_map *map);
