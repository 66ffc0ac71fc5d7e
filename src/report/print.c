// SPDX-License-Identifier: BSD-2-Clause
/* print_map(), table(), print_hist() and print_hists(): views and rows into an emitter. */
#include "report/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/options.h"
#include "report/rows.h"
#include "report/titles.h"

/* Does a name stand in for the number? Then the column is text. */
static bool is_named(const struct place *place, const struct report_names *names)
{
	switch (place->meaning) {
	case MEANING_CGROUP:
		return names->cgroup;
	case MEANING_KSTACK:
	case MEANING_USTACK:
		return names->stack;
	case MEANING_KADDR:
		return true;
	default:
		return place->class != PLACE_INTEGER && place->class != PLACE_REAL;
	}
}

static enum emit_layout layout_of(const struct report_view *view, const struct view_column *column,
				  const struct report_names *names)
{
	const struct place *place = &column->place;

	if (column->cpu)
		return EMIT_NUMBER;
	if (column->computed)
		return view->nodes[column->root].counters ? EMIT_COUNTER : EMIT_NUMBER;
	if (place->class == PLACE_HIST)
		return EMIT_HIST;
	if (place->class == PLACE_COUNTER || place->unsupported)
		return EMIT_COUNTER;
	return is_named(place, names) ? EMIT_TEXT : EMIT_NUMBER;
}

/* Columns and, behind them, their titles. */
static struct emit_column *layout(struct report *report, const struct report_view *view,
				  size_t *count)
{
	struct emit_column *columns = calloc(view->nshown + 1, sizeof(*columns) + TITLE_MAX);
	char *title = (char *)(columns + view->nshown + 1);
	size_t i;

	*count = 0;
	for (i = 0; i < view->nshown && columns; i++) {
		const struct view_column *column = &view->columns[view->shown[i]];

		if (!title_of(&report->options, column->name, title, TITLE_MAX))
			continue;
		columns[(*count)++] = (struct emit_column){
			.name = title,
			.layout = layout_of(view, column, &report->options.names),
			.index = view->shown[i],
		};
		title += TITLE_MAX;
	}
	return columns;
}

/* User stacks need to know whose they are. */
static void find_pid(struct view_scan *scan)
{
	const struct report_view *view = scan->view;
	size_t i;

	for (i = 0; i < view->ncolumns; i++) {
		const struct place *place = &view->columns[i].place;
		struct number pid;

		if (place->meaning != MEANING_PID || !place_has_number(place))
			continue;
		pid = place_number(view->types, place, place->key ? &scan->key : &scan->value);
		scan->key.pid = scan->value.pid = pid.integer;
		return;
	}
}

static void print_cell(struct report *report, struct view_scan *scan, uint32_t index)
{
	const struct view_column *column = &scan->view->columns[index];
	struct value *value = &report->value;

	if (!column->cpu && !column->computed) {
		emit_place(report, scan->view->types, &column->place,
			   column->place.key ? &scan->key : &scan->value);
		return;
	}
	value->kind = VALUE_NUMBER;
	value->unit = column->cpu ? UNIT_PLAIN : column->unit;
	value->digits = column->digits;
	if (column->computed)
		value->number = scan->computed[index];
	else
		value->number = scan->cpu == VIEW_NONE ? number_flag(STATUS_MISSING)
						       : number_integer(scan->cpu);
	report->ops->value(report, value);
}

static void print_table(struct report *report, struct view_rows *rows,
			const struct emit_table *table)
{
	const struct emit_ops *ops = report->ops;
	size_t i, j;

	ops->table_begin(report, table);
	for (i = 0; i < rows->count; i++) {
		view_rows_enter(rows, i);
		find_pid(&rows->scan);
		ops->row_begin(report);
		for (j = 0; j < table->ncolumns; j++) {
			ops->cell_begin(report, &table->columns[j]);
			print_cell(report, &rows->scan, table->columns[j].index);
			ops->cell_end(report);
		}
		ops->row_end(report);
	}
	ops->table_end(report);
}

/* A total that misses rows must say so: a share of it would be too large. */
static void print_left_out(struct report *report, const struct view_rows *rows)
{
	const struct report_view *view = rows->scan.view;
	struct out text = { 0 };
	size_t i;

	for (i = 0; i < view->naggregates; i++) {
		if (!rows->left_out[i])
			continue;
		out_clear(&text);
		out_printf(&text, "%s: %s leaves out %llu of %zu rows: not counted", view->name,
			   view->aggregates[i].source, (unsigned long long)rows->left_out[i],
			   rows->total);
		report->ops->note(report, out_text(&text));
		if (text.error)
			report->out.error = text.error;
	}
	out_deinit(&text);
}

static uint64_t clock_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Does the table show @counter, in a column of its own or a member of one? */
static bool shows(const struct report_view *view, const struct report_counter *counter)
{
	size_t i;

	for (i = 0; i < view->ncolumns; i++) {
		const char *name = view->columns[i].name, *dot = strrchr(name, '.');

		if (!strcmp(dot ? dot + 1 : name, counter->member))
			return true;
	}
	return false;
}

/* The counters of the table whose event is not the one that the script names. */
static const struct report_counter **replaced_counters(const struct report *report,
						       const struct report_view *view, size_t *ret)
{
	const struct report_options *options = &report->options;
	const struct report_counter **replaced = calloc(options->ncounters + 1, sizeof(*replaced));
	size_t i;

	*ret = 0;
	for (i = 0; i < options->ncounters && replaced; i++) {
		const struct report_counter *counter = &options->counters[i];

		if (counter->member && counter->event && counter->replaced && shows(view, counter))
			replaced[(*ret)++] = counter;
	}
	return replaced;
}

int report_map_print(struct report *report, struct report_view *view, const struct report_map *map,
		     struct err *err)
{
	CLEANUP(view_rows_deinit)
	struct view_rows rows = { 0 };
	size_t ncolumns, nreplaced;
	CLEANUP(free_pointer)
	struct emit_column *columns = layout(report, view, &ncolumns);
	CLEANUP(free_pointer)
	const struct report_counter **replaced = replaced_counters(report, view, &nreplaced);
	struct emit_table table = {
		.name = view->name,
		.title = view->title,
		.columns = columns,
		.ncolumns = ncolumns,
		.replaced = replaced,
		.nreplaced = nreplaced,
		.live = view->live || report->live,
		.identity = view,
	};
	int code;

	if (!columns || !replaced)
		return err_nomem(err);
	code = view_rows_select(view, map, &report->options.names, &rows, err);
	if (code)
		return code;
	if (report->most_rows && rows.count > report->most_rows)
		rows.count = report->most_rows;
	table.rows = rows.count;
	table.total = rows.total;
	if (table.live)
		table.time_ns = clock_ns();
	report->hist_unit = view->unit;
	print_table(report, &rows, &table);
	print_left_out(report, &rows);
	code = report_commit(report, err);
	if (view->since_last && view_past_keep(&view->past, map) && !code)
		return err_nomem(err);
	return code;
}

/* ---- histograms ------------------------------------------------------------------------------ */
static void print_row_hists(struct report *report, struct view_rows *rows)
{
	const struct report_view *view = rows->scan.view;
	struct out name = { 0 };
	struct value whole = { 0 };
	size_t i;

	for (i = 0; i < view->nshown; i++) {
		const struct view_column *column = &view->columns[view->shown[i]];
		struct emit_hist hist = { .title = view->title, .unit = view->unit, .keyed = true };
		char title[TITLE_MAX];

		if (column->computed || column->cpu || column->place.class != PLACE_HIST ||
		    !title_of(&report->options, column->name, title, sizeof(title)))
			continue;
		out_clear(&name);
		out_puts(&name, view->name);
		if (view->value.class != PLACE_HIST)
			out_printf(&name, ".%s", title);
		place_value(view->types, &column->place,
			    column->place.key ? &rows->scan.key : &rows->scan.value, NULL, &whole);
		hist.name = out_text(&name);
		hist.hist = &whole.hist;
		hist.status = whole.number.status;
		report->ops->hist_begin(report, &hist);
		emit_place(report, view->types, &view->key, &rows->scan.key);
		report->ops->hist_end(report, &hist);
	}
	if (name.error)
		report->out.error = name.error;
	out_deinit(&name);
	value_deinit(&whole);
}

static int need_hists(struct report_view *view, struct err *err)
{
	size_t i;

	for (i = 0; i < view->nshown; i++) {
		const struct view_column *column = &view->columns[view->shown[i]];

		if (!column->computed && !column->cpu && column->place.class == PLACE_HIST)
			return 0;
	}
	return err_set(err, -EINVAL,
		       "print_hists(%s): no column is a struct hist: use print_map() to show it",
		       view->name);
}

int report_hists_print(struct report *report, const struct report_map *map, const char *options,
		       struct err *err)
{
	CLEANUP(report_view_free_cleanup)
	struct report_view *view = NULL;
	CLEANUP(view_rows_deinit)
	struct view_rows rows = { 0 };
	size_t i;
	int code;

	code = view_compile("print_hists", map, options, report->options.counters,
			    report->options.ncounters, &view, err);
	if (code)
		return code;
	code = need_hists(view, err);
	if (code)
		return code;
	code = view_rows_select(view, map, &report->options.names, &rows, err);
	if (code)
		return code;
	for (i = 0; i < rows.count; i++) {
		view_rows_enter(&rows, i);
		print_row_hists(report, &rows);
	}
	print_left_out(report, &rows);
	return report_commit(report, err);
}

static int hist_options(const struct options *options, struct emit_hist *hist, struct err *err)
{
	size_t i;
	int code;

	for (i = 0; i < options->count; i++) {
		const struct option_word *word = &options->words[i];

		if (!strcmp(word->name, "title") && word->value) {
			hist->title = word->value;
		} else if (!strcmp(word->name, "unit")) {
			code = option_unit(word, &hist->unit, err);
			if (code)
				return code;
		} else {
			return err_set(err, -EINVAL,
				       "no option `%s`: options: title=, unit=", word->name);
		}
	}
	return 0;
}

int report_hist_print(struct report *report, const struct hist *hist, const char *name,
		      const char *options, struct err *err)
{
	CLEANUP(options_deinit)
	struct options words = { 0 };
	struct emit_hist emit = { .name = name, .hist = hist };
	int code = options_split(options, &words, err);

	if (!code)
		code = hist_options(&words, &emit, err);
	if (code)
		return err_prepend(err, code, "print_hist(%s)", name);
	if (counter_unsupported(report->options.counters, report->options.ncounters, name))
		emit.status = STATUS_NOT_SUPPORTED;
	report->ops->hist_begin(report, &emit);
	report->ops->hist_end(report, &emit);
	return report_commit(report, err);
}
