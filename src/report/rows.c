// SPDX-License-Identifier: BSD-2-Clause
#include "report/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sort_key {
	struct number number;
	char *text;
};

struct sort_row {
	struct view_row row;
	struct sort_key *keys;
	size_t position; /* ties keep the order of the map */
};

void view_rows_deinit(struct view_rows *rows)
{
	free(rows->scan.previous);
	free(rows->scan.computed);
	free(rows->scan.aggregates);
	value_deinit(&rows->scan.scratch);
	free(rows->rows);
	free(rows->left_out);
}

void view_rows_enter(struct view_rows *rows, size_t index)
{
	view_scan_row(&rows->scan, &rows->rows[index]);
	view_compute(&rows->scan, true);
}

static int find_previous(struct view_rows *rows, struct report_view *view,
			 const struct report_map *map)
{
	const struct view_past *past = &view->past;
	size_t i;

	if (!view->since_last)
		return 0;
	rows->scan.previous = calloc(map->count + 1, sizeof(*rows->scan.previous));
	if (!rows->scan.previous)
		return -ENOMEM;
	if (past->key_size != map->key_size || past->value_size != view_value_bytes(map))
		return 0;
	for (i = 0; i < map->count; i++)
		rows->scan.previous[i] = view_past_find(past, map->keys + i * map->key_size);
	return 0;
}

/* Every row, or every CPU's copy of it; not those in which nothing happened since the last print. */
static int list_rows(struct view_rows *rows, const struct report_view *view,
		     const struct report_map *map)
{
	uint32_t copies = view->percpu && map->cpus > 1 ? map->cpus : 1, cpu;
	size_t bytes = view_value_bytes(map), total, i;

	if (__builtin_mul_overflow(map->count, (size_t)copies, &total) ||
	    !(rows->rows = calloc(total + 1, sizeof(*rows->rows))))
		return -ENOMEM;
	for (i = 0; i < map->count; i++) {
		const uint8_t *previous = rows->scan.previous ? rows->scan.previous[i] : NULL;

		if (previous && !memcmp(previous, map->values + i * bytes, bytes))
			continue;
		for (cpu = 0; cpu < copies; cpu++)
			rows->rows[rows->count++] = (struct view_row){
				.index = i,
				.cpu = copies > 1 ? cpu : VIEW_NONE,
			};
	}
	rows->total = rows->count;
	return 0;
}

/* ---- totals ---------------------------------------------------------------------------------- */
struct sum {
	struct number number; /* so far */
	enum value_status worst;
	size_t counted;
};

static void add_up(struct sum *sum, enum aggregate_kind kind, const struct number *next)
{
	struct number *all = &sum->number;
	enum value_status status;
	double share = all->share < next->share ? all->share : next->share;
	__int128 exact;

	status = all->status > next->status ? all->status : next->status;
	if (kind == AGGREGATE_MIN || kind == AGGREGATE_MAX) {
		int order = number_compare(next, all);

		if (!sum->counted || (kind == AGGREGATE_MIN ? order < 0 : order > 0))
			*all = *next;
	} else if (!all->is_real && !next->is_real &&
		   !__builtin_add_overflow(all->integer, next->integer, &exact)) {
		all->integer = exact;
	} else {
		*all = number_real(number_double(all) + number_double(next));
	}
	/* An estimate among the addends makes the whole an estimate. */
	all->status = status;
	all->share = share;
	all->window = next->window;
	sum->counted++;
}

static struct number sum_result(const struct sum *sum, enum aggregate_kind kind)
{
	struct number result = sum->number;

	if (!sum->counted)
		return number_flag(sum->worst ? sum->worst : STATUS_MISSING);
	if (kind == AGGREGATE_MEAN && number_known(&result)) {
		result = number_real(number_double(&result) / (double)sum->counted);
		result.status = sum->number.status;
		result.share = sum->number.share;
		result.window = sum->number.window;
	}
	return result;
}

static int aggregate(struct view_rows *rows, const struct report_view *view)
{
	struct view_scan *scan = &rows->scan;
	CLEANUP(free_pointer)
	struct sum *sums = calloc(view->naggregates + 1, sizeof(*sums));
	size_t i, j;

	scan->aggregates = calloc(view->naggregates + 1, sizeof(*scan->aggregates));
	rows->left_out = calloc(view->naggregates + 1, sizeof(*rows->left_out));
	if (!sums || !scan->aggregates || !rows->left_out)
		return -ENOMEM;
	for (j = 0; j < view->naggregates; j++)
		sums[j].number = number_integer(0);
	for (i = 0; i < rows->count && view->naggregates; i++) {
		view_scan_row(scan, &rows->rows[i]);
		view_compute(scan, false);
		for (j = 0; j < view->naggregates; j++) {
			struct number next = view_evaluate(scan, view->aggregates[j].root);

			if (number_known(&next)) {
				add_up(&sums[j], view->aggregates[j].kind, &next);
				continue;
			}
			if (next.status > sums[j].worst)
				sums[j].worst = next.status;
			rows->left_out[j] += next.status != STATUS_MISSING;
		}
	}
	for (j = 0; j < view->naggregates; j++) {
		scan->aggregates[j] = sum_result(&sums[j], view->aggregates[j].kind);
		if (!sums[j].counted)
			rows->left_out[j] = 0; /* the result itself says so */
	}
	return 0;
}

/* ---- filter and order ------------------------------------------------------------------------ */
static void filter(struct view_rows *rows, const struct report_view *view)
{
	size_t kept = 0, i;

	if (view->where == VIEW_NONE)
		return;
	for (i = 0; i < rows->count; i++) {
		struct number truth;

		view_rows_enter(rows, i);
		truth = view_evaluate(&rows->scan, view->where);
		if (number_known(&truth) && number_double(&truth) != 0)
			rows->rows[kept++] = rows->rows[i];
	}
	rows->count = kept;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct report_view *view = context;
	const struct sort_row *a = left, *b = right;
	size_t i;

	for (i = 0; i < view->nsorts; i++) {
		const struct sort_key *x = &a->keys[i], *y = &b->keys[i];
		bool known = number_known(&x->number);
		int order;

		/* Rows without a number come last, whichever way the others are sorted. */
		if (known != number_known(&y->number))
			return known ? -1 : 1;
		order = view->sorts[i].text ? strcmp(x->text, y->text)
					    : number_compare(&x->number, &y->number);
		if (order)
			return view->sorts[i].descending ? -order : order;
	}
	return (a->position > b->position) - (a->position < b->position);
}

static int sort_key(struct view_scan *scan, const struct view_sort *sort, struct sort_key *ret)
{
	const struct view_node *node = &scan->view->nodes[sort->root];

	ret->number = number_integer(0);
	if (!sort->text) {
		ret->number = view_evaluate(scan, sort->root);
		return 0;
	}
	place_value(scan->view->types, &node->place, node->place.key ? &scan->key : &scan->value,
		    scan->names, &scan->scratch);
	ret->text = strdup(out_text(&scan->scratch.text));
	return ret->text ? 0 : -ENOMEM;
}

static int sort_filled(struct view_rows *rows, struct report_view *view, struct sort_row *sorted,
		       struct sort_key *keys)
{
	size_t i, j;

	for (i = 0; i < rows->count; i++) {
		view_rows_enter(rows, i);
		sorted[i] = (struct sort_row){ .row = rows->rows[i],
					       .keys = keys + i * view->nsorts,
					       .position = i };
		for (j = 0; j < view->nsorts; j++) {
			if (sort_key(&rows->scan, &view->sorts[j], &sorted[i].keys[j]))
				return -ENOMEM;
		}
	}
	qsort_r(sorted, rows->count, sizeof(*sorted), compare_rows, view);
	for (i = 0; i < rows->count; i++)
		rows->rows[i] = sorted[i].row;
	return 0;
}

static int sort(struct view_rows *rows, struct report_view *view)
{
	CLEANUP(free_pointer)
	struct sort_row *sorted = NULL;
	CLEANUP(free_pointer)
	struct sort_key *keys = NULL;
	size_t i;
	int code;

	if (!view->nsorts || rows->count < 2)
		return 0;
	sorted = calloc(rows->count, sizeof(*sorted));
	keys = calloc(rows->count, view->nsorts * sizeof(*keys));
	if (!sorted || !keys)
		return -ENOMEM;
	code = sort_filled(rows, view, sorted, keys);
	for (i = 0; i < rows->count * view->nsorts; i++)
		free(keys[i].text);
	return code;
}

int view_rows_select(struct report_view *view, const struct report_map *map,
		     const struct report_names *names, struct view_rows *ret, struct err *err)
{
	if (map->key_size != view->key_size || map->value_size != view->value_size)
		return err_set(err, -EINVAL, "%s(%s): the map has changed its shape",
			       view->function, view->name);
	ret->scan.view = view;
	ret->scan.map = map;
	ret->scan.names = names;
	ret->scan.computed = calloc(view->ncolumns + 1, sizeof(*ret->scan.computed));
	if (!ret->scan.computed || find_previous(ret, view, map) || list_rows(ret, view, map) ||
	    aggregate(ret, view))
		return err_nomem(err);
	filter(ret, view);
	if (sort(ret, view))
		return err_nomem(err);
	if (view->top && ret->count > view->top)
		ret->count = view->top;
	return 0;
}
