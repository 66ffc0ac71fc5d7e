// SPDX-License-Identifier: BSD-2-Clause
/* Option strings: split into `name=value` words, then compiled against the map's columns. */
#include "report/view.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "report/emit.h"
#include "report/options.h"

/* Does an expression go on behind the blanks at @text? No option starts with one of these. */
static bool goes_on(const char *text)
{
	text += strspn(text, " \t\n");
	return *text && strchr("+-*/<>=!&|,):", *text);
}

static bool wants_more(const char *start, const char *end)
{
	return end > start && strchr("+-*/<>=!&|,(", end[-1]);
}

/* The end of a word: blanks inside brackets, quotes and around operators belong to it. */
static const char *word_end(const char *text)
{
	const char *at = text;
	unsigned int nesting = 0;

	while (*at) {
		if ((*at == '\'' || *at == '"') && strchr(at + 1, *at)) {
			at = strchr(at + 1, *at) + 1;
			continue;
		}
		if (*at == '(')
			nesting++;
		if (*at == ')' && nesting)
			nesting--;
		if (strchr(" \t\n", *at) && !nesting && !goes_on(at) && !wants_more(text, at))
			break;
		at++;
	}
	return at;
}

static bool is_text_option(const char *name, size_t size)
{
	return (size == 5 && !memcmp(name, "title", 5)) || (size == 3 && !memcmp(name, "key", 3));
}

/* A text value: quoted, or up to the next blank. */
static const char *text_end(const char *text)
{
	if ((*text == '\'' || *text == '"') && strchr(text + 1, *text))
		return strchr(text + 1, *text) + 1;
	return text + strcspn(text, " \t\n");
}

static char *text_value(const char *text, const char *end)
{
	if (end - text >= 2 && (*text == '\'' || *text == '"') && end[-1] == *text)
		return strndup(text + 1, end - text - 2);
	return strndup(text, end - text);
}

void options_deinit(struct options *options)
{
	size_t i;

	for (i = 0; i < options->count; i++) {
		free(options->words[i].name);
		free(options->words[i].value);
	}
	options->count = 0;
}

int options_split(const char *text, struct options *ret, struct err *err)
{
	while (text && *(text += strspn(text, " \t\n"))) {
		struct option_word *word = &ret->words[ret->count];
		size_t size = strcspn(text, " \t\n=");
		const char *end;

		if (ret->count == OPTIONS_MAX)
			return err_set(err, -EINVAL, "more than %d options", OPTIONS_MAX);
		*word = (struct option_word){ .name = strndup(text, size) };
		ret->count++;
		if (!word->name)
			return err_nomem(err);
		if (!size)
			return err_set(err, -EINVAL, "`%s`: a name is missing before `=`", text);
		text += size;
		if (*text != '=')
			continue;
		text++;
		end = is_text_option(word->name, size) ? text_end(text) : word_end(text);
		word->value = is_text_option(word->name, size) ? text_value(text, end)
							       : strndup(text, end - text);
		if (!word->value)
			return err_nomem(err);
		text = end;
	}
	return 0;
}

int option_unit(const struct option_word *word, enum value_unit *ret, struct err *err)
{
	if (word->value && !strcmp(word->value, "ns"))
		*ret = UNIT_NS;
	else if (word->value && !strcmp(word->value, "bytes"))
		*ret = UNIT_BYTES;
	else
		return err_set(err, -EINVAL, "unit=%s: no such unit: unit=ns or unit=bytes",
			       word->value ? word->value : "");
	return 0;
}

/* ---- one function per option ----------------------------------------------------------------- */
static int set_text(char **to, const char *value, struct err *err)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : err_nomem(err);
}

static int option_key(struct report_view *view, const struct option_word *word, struct err *err)
{
	if (!*word->value)
		return err_set(err, -EINVAL, "key= needs a name");
	return set_text(&view->key_name, word->value, err);
}

static int option_title(struct report_view *view, const struct option_word *word, struct err *err)
{
	return set_text(&view->title, word->value, err);
}

static int option_view_unit(struct report_view *view, const struct option_word *word,
			    struct err *err)
{
	return option_unit(word, &view->unit, err);
}

static int option_since_last(struct report_view *view, const struct option_word *word,
			     struct err *err)
{
	view->since_last = true;
	return 0;
}

static int option_percpu(struct report_view *view, const struct option_word *word, struct err *err)
{
	view->percpu = true;
	return 0;
}

static int option_live(struct report_view *view, const struct option_word *word, struct err *err)
{
	view->live = true;
	return 0;
}

static int option_top(struct report_view *view, const struct option_word *word, struct err *err)
{
	char *end;

	errno = 0;
	view->top = strtoull(word->value, &end, 10);
	if (!isdigit((unsigned char)*word->value) || *end || errno || !view->top)
		return err_set(err, -EINVAL, "top=%s: a number of rows from 1 is needed",
			       word->value);
	return 0;
}

static int option_where(struct report_view *view, const struct option_word *word, struct err *err)
{
	const char *end;
	int code = view_expression(view, word->value, true, &view->where, &end, err);
	const struct view_node *node;

	if (code)
		return code;
	if (*end)
		return err_set(err, -EINVAL, "where=%s: `%s` is not understood", word->value, end);
	node = &view->nodes[view->where];
	if (node->kind == NODE_PLACE && !place_has_number(&node->place))
		return err_set(err, -EINVAL, "where=%s: this is no condition: compare it",
			       word->value);
	return 0;
}

static int sort_key(struct report_view *view, const char **text, struct err *err)
{
	struct view_sort *sort;
	const struct view_node *node;
	bool descending = **text == '-';
	uint32_t root;
	int code;

	if (**text == '-' || **text == '+')
		(*text)++;
	code = view_expression(view, *text, false, &root, text, err);
	if (code)
		return code;
	node = &view->nodes[root];
	if (node->kind == NODE_PLACE && !place_has_number(&node->place) &&
	    node->place.class != PLACE_STRING && node->place.class != PLACE_BYTES)
		return err_set(err, -EINVAL,
			       "rows cannot be sorted by a whole array, struct or histogram: "
			       "sort by a part of it, as in sort=-HIST.p99");
	sort = array_grow(&view->sorts, &view->nsorts, &view->sorts_capacity, sizeof(*sort));
	if (!sort)
		return err_nomem(err);
	sort->root = root;
	sort->descending = descending;
	sort->text = node->kind == NODE_PLACE && !place_has_number(&node->place);
	return 0;
}

static int option_sort(struct report_view *view, const struct option_word *word, struct err *err)
{
	const char *text = word->value;
	int code;

	for (;;) {
		code = sort_key(view, &text, err);
		if (code)
			return code;
		if (!*text)
			return 0;
		if (*text++ != ',')
			return err_set(err, -EINVAL, "sort=%s: `%s` is not understood", word->value,
				       text - 1);
		text += strspn(text, " \t\n");
	}
}

static int show(struct report_view *view, size_t column, struct err *err)
{
	uint32_t *shown =
		array_grow(&view->shown, &view->nshown, &view->shown_capacity, sizeof(*shown));

	if (!shown)
		return err_nomem(err);
	*shown = column;
	return 0;
}

/* A part that is no column yet (`misses.p99`, `counts[2]`) becomes one. */
static int column_of_part(struct report_view *view, const char *name, size_t size, struct err *err)
{
	struct view_column *column;
	CLEANUP(free_pointer)
	char *path = strndup(name, size);
	struct view_node *node;
	const char *end, *rest;
	struct place place;
	uint32_t root;
	int code;

	if (!path)
		return err_nomem(err);
	if (view_path(view, path, size, &place, &rest))
		return view_no_column(view, name, size, err);
	column = NULL;
	if (*rest) {
		code = view_expression(view, path, false, &root, &end, err);
		if (code)
			return code;
		column = view_column_add(view, path);
		if (!column)
			return err_nomem(err);
		node = &view->nodes[root];
		column->computed = true;
		column->root = root;
		column->unit = node->hist == HIST_N ? UNIT_COUNT : view->unit;
		return 0;
	}
	column = view_column_add(view, path);
	if (!column)
		return err_nomem(err);
	column->place = place;
	return 0;
}

static int option_cols(struct report_view *view, const struct option_word *word, struct err *err)
{
	const char *text = word->value;
	size_t size;

	for (;;) {
		struct view_column *column;

		text += strspn(text, " \t\n");
		size = strcspn(text, ", \t\n");
		if (!size)
			return err_set(err, -EINVAL, "cols=%s: a name is missing", word->value);
		column = view_column_find(view, text, size);
		if (!column) {
			int code = column_of_part(view, text, size, err);

			if (code)
				return code;
			column = &view->columns[view->ncolumns - 1];
		}
		if (show(view, column - view->columns, err))
			return -ENOMEM;
		text += size;
		text += strspn(text, " \t\n");
		if (!*text)
			return 0;
		if (*text++ != ',')
			return err_set(err, -EINVAL, "cols=%s: a comma is missing", word->value);
	}
}

/* ---- computed columns ------------------------------------------------------------------------ */
static int column_format(struct view_column *column, const char *format, struct err *err)
{
	if (!strcmp(format, "ns"))
		column->unit = UNIT_NS;
	else if (!strcmp(format, "bytes"))
		column->unit = UNIT_BYTES;
	else if (!strcmp(format, "d"))
		column->digits = 0;
	else if (!strcmp(format, "%"))
		column->unit = UNIT_PERCENT;
	else if (format[0] == '.' && isdigit((unsigned char)format[1]) &&
		 (!format[2] || (format[2] == '%' && !format[3]))) {
		column->digits = format[1] - '0';
		column->unit = format[2] ? UNIT_PERCENT : UNIT_COUNT;
	} else {
		return err_set(
			err, -EINVAL,
			"`:%s`: no such format: .2 (decimals), .1%% (per cent), d, ns, bytes",
			format);
	}
	return 0;
}

/* A histogram whose quantiles are columns of their own is not repeated beside them. */
static void mark_summarised(struct report_view *view, size_t from)
{
	size_t i, j;

	for (i = from; i < view->nnodes; i++) {
		const struct view_node *node = &view->nodes[i];

		for (j = 0; j < view->ncolumns; j++) {
			struct view_column *column = &view->columns[j];

			if (node->kind == NODE_HIST && node->hist == HIST_QUANTILE &&
			    column->place.class == PLACE_HIST && !column->computed &&
			    column->place.bit_offset == node->place.bit_offset)
				column->summarised = true;
		}
	}
}

static int computed_column(struct report_view *view, const struct option_word *word,
			   struct err *err)
{
	size_t before = view->nnodes;
	struct view_column *column;
	struct view_node *node;
	const char *end;
	uint32_t root;
	int code;

	if (view_column_find(view, word->name, strlen(word->name)))
		return err_set(err, -EINVAL, "%s=: there is a column of this name already",
			       word->name);
	code = view_expression(view, word->value, true, &root, &end, err);
	if (code)
		return code;
	if (*end && *end != ':')
		return err_set(err, -EINVAL, "%s=%s: `%s` is not understood", word->name,
			       word->value, end);
	node = &view->nodes[root];
	if (node->kind == NODE_PLACE && !place_has_number(&node->place))
		return err_set(err, -EINVAL, "%s=%s: this is no number: use cols= to show it",
			       word->name, word->value);
	/* A nameless counter (the map's whole value) that is named by its column. */
	if (node->kind == NODE_PLACE && node->place.class == PLACE_COUNTER)
		counter_mark(&node->place, view->counters, view->ncounters, word->name);
	mark_summarised(view, before);
	column = view_column_add(view, word->name);
	if (!column)
		return err_nomem(err);
	column->computed = true;
	column->root = root;
	if (view->nodes[root].kind == NODE_HIST && view->nodes[root].hist != HIST_N)
		column->unit = view->unit;
	return *end ? column_format(column, end + 1, err) : 0;
}

/* ---- the table of options -------------------------------------------------------------------- */
enum phase { PHASE_SHAPE, PHASE_COLUMNS, PHASE_ROWS };

/* In the phase before columns exist, with them, and with the computed ones too. */
static const struct {
	const char *name;
	bool valued;
	enum phase phase;
	int (*set)(struct report_view *view, const struct option_word *word, struct err *err);
} known[] = {
	{ "sort", true, PHASE_ROWS, option_sort },
	{ "top", true, PHASE_SHAPE, option_top },
	{ "where", true, PHASE_ROWS, option_where },
	{ "cols", true, PHASE_ROWS, option_cols },
	{ "key", true, PHASE_SHAPE, option_key },
	{ "title", true, PHASE_SHAPE, option_title },
	{ "unit", true, PHASE_SHAPE, option_view_unit },
	{ "since-last", false, PHASE_SHAPE, option_since_last },
	{ "percpu", false, PHASE_SHAPE, option_percpu },
	{ "live", false, PHASE_SHAPE, option_live },
};

static int unknown_option(const char *name, struct err *err)
{
	char near[256], list[256] = "";
	struct nearest nearest;
	size_t i, used = 0;

	nearest_init(&nearest, name);
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		nearest_offer(&nearest, known[i].name);
		used += snprintf(list + used, sizeof(list) - used, "%s%s%s", i ? ", " : "",
				 known[i].name, known[i].valued ? "=" : "");
	}
	nearest_text(&nearest, near, sizeof(near));
	return err_set(err, -EINVAL, "no option `%s`%s%s%s: options: %s, NAME=EXPRESSION", name,
		       *near ? ": did you mean " : "", near, *near ? "?" : "", list);
}

static int apply(struct report_view *view, const struct option_word *word, enum phase phase,
		 struct err *err)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(word->name, known[i].name))
			continue;
		if (known[i].valued != !!word->value)
			return err_set(err, -EINVAL, "%s %s", word->name,
				       known[i].valued ? "needs a value" : "takes no value");
		return known[i].phase == phase ? known[i].set(view, word, err) : 0;
	}
	if (!word->value)
		return unknown_option(word->name, err);
	return phase == PHASE_COLUMNS ? computed_column(view, word, err) : 0;
}

static int apply_all(struct report_view *view, const struct options *options, enum phase phase,
		     struct err *err)
{
	size_t i;
	int code;

	for (i = 0; i < options->count; i++) {
		code = apply(view, &options->words[i], phase, err);
		if (code)
			return code;
	}
	return 0;
}

int view_options_apply(struct report_view *view, const char *text, struct err *err)
{
	CLEANUP(options_deinit)
	struct options options = { 0 };
	size_t i;
	int code = options_split(text, &options, err);

	if (code)
		return code;
	code = apply_all(view, &options, PHASE_SHAPE, err);
	if (code)
		return code;
	code = view_columns_build(view, err);
	if (code)
		return code;
	code = apply_all(view, &options, PHASE_COLUMNS, err);
	if (code)
		return code;
	code = apply_all(view, &options, PHASE_ROWS, err);
	if (code || view->nshown)
		return code;
	for (i = 0; i < view->ncolumns; i++) {
		if (!view->columns[i].summarised && show(view, i, err))
			return -ENOMEM;
	}
	return 0;
}
