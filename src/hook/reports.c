// SPDX-License-Identifier: BSD-2-Clause
/* print_map() and kin: maps are read in one go, then printed by BTF (report/). */
#include "hook/checked.h"
#include "hook/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <duet/shared.h>

#include "base/buf.h"
#include "base/log.h"
#include "hook/shape.h"

static int compile_view(struct hook_half *half, const struct hook_map *map, const char *options,
			struct hook_view **ret, struct err *err)
{
	struct report_map shape;
	struct hook_view *view;
	struct report_view *compiled;
	int code;

	hook_map_shape(half, map, &shape);
	code = report_view_compile(&shape, options, half->options.counters, half->options.ncounters,
				   &compiled, err);
	if (code)
		return code;
	view = array_grow(&half->views, &half->nviews, &half->views_capacity, sizeof(*view));
	if (view)
		view->options = strdup(options);
	if (!view || !view->options) {
		report_view_free(compiled);
		return err_nomem(err);
	}
	view->map = map;
	view->view = compiled;
	*ret = view;
	return 0;
}

static struct hook_view *find_view(struct hook_half *half, const struct hook_map *map,
				   const char *options)
{
	size_t i;

	for (i = 0; i < half->nviews; i++) {
		if (half->views[i].map == map && !strcmp(half->views[i].options, options))
			return &half->views[i];
	}
	return NULL;
}

static const struct hook_map *map_by_text(const struct hook_half *half, const char *text)
{
	size_t i;

	while (*text == '&' || *text == ' ' || *text == '(')
		text++;
	for (i = 0; i < half->options.user->nmaps; i++) {
		size_t size = strlen(half->maps[i].name);

		if (!strncmp(half->maps[i].name, text, size) &&
		    (!text[size] || strchr(" )", text[size])))
			return &half->maps[i];
	}
	return NULL;
}

/* Option strings are literals in a section, so a wrong column is told before anything starts. */
int hook_compile_views(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t i;

	for (i = 0; i < user->nnotes; i++) {
		const struct user_note *note = &user->notes[i];
		const struct hook_map *map;
		struct hook_view *view;
		size_t first;
		int code;

		if (strcmp(note->kind, "print"))
			continue;
		first = strnlen(note->text, note->size);
		map = map_by_text(half, note->text);
		if (!map || first + 1 >= note->size || find_view(half, map, note->text + first + 1))
			continue;
		code = compile_view(half, map, note->text + first + 1, &view, err);
		if (code)
			return code;
	}
	return 0;
}

int hook_half_counters_known(struct hook_half *half, struct err *err)
{
	hook_free_views(half);
	return hook_compile_views(half, err);
}

void hook_free_views(struct hook_half *half)
{
	size_t i;

	for (i = 0; i < half->nviews; i++) {
		report_view_free(half->views[i].view);
		free(half->views[i].options);
	}
	free(half->views);
	half->views = NULL;
	half->nviews = half->views_capacity = 0;
}

/* Rows of a map as report/ wants them; the caller frees @rows. */
static int read_rows(struct hook_half *half, const struct hook_map *map, struct report_map *ret,
		     struct kern_rows *rows)
{
	int code;

	hook_map_shape(half, map, ret);
	if (!map->kern)
		return -ENOENT;
	code = kern_map_read_all(map->kern, rows);
	if (code)
		return code;
	ret->cpus = rows->cpus;
	ret->count = rows->count;
	ret->keys = rows->keys;
	ret->values = rows->values;
	return 0;
}

static int print_rows(struct hook_half *half, struct hook_map *map, const char *options, bool live)
{
	CLEANUP(kern_rows_deinit) struct kern_rows rows = { 0 };
	struct hook_view *view;
	struct report_map table;
	struct err err = { 0 };
	int code = 0;

	hook_flush_text(half);
	view = find_view(half, map, options);
	if (!view)
		code = compile_view(half, map, options, &view, &err);
	if (code) {
		log_note("%s", err.text);
		return code;
	}
	code = read_rows(half, map, &table, &rows);
	if (code) {
		log_note("print_map(%s): %s", map->name, strerror(-code));
		return code;
	}
	report_set_live(half->options.report, live);
	code = report_map_print(half->options.report, view->view, &table, &err);
	if (code)
		log_note("print_map(%s): %s", map->name, err.text);
	return code;
}

NATIVE(fn_print_map)
{
	RETURN_ERROR(print_rows(context, hook_map_argument(context, a1), a2 ? (const char *)a2 : "",
				false));
}

NATIVE(fn_table)
{
	RETURN_ERROR(print_rows(context, hook_map_argument(context, a1), a2 ? (const char *)a2 : "",
				true));
}

NATIVE(fn_print_hists)
{
	struct hook_half *half = context;
	struct hook_map *map = hook_map_argument(half, a1);
	CLEANUP(kern_rows_deinit) struct kern_rows rows = { 0 };
	struct report_map table;
	struct err err = { 0 };
	int code;

	hook_flush_text(half);
	code = read_rows(half, map, &table, &rows);
	if (!code)
		code = report_hists_print(half->options.report, &table, (const char *)a2, &err);
	if (code)
		log_note("print_hists(%s): %s", map->name,
			 err.text[0] ? err.text : strerror(-code));
	RETURN_ERROR(code);
}

NATIVE(fn_print_hist)
{
	struct hook_half *half = context;
	struct err err = { 0 };
	struct hist copy;
	int code;

	hook_flush_text(half);
	memcpy(&copy, (const void *)a1, sizeof(copy));
	code = report_hist_print(half->options.report, &copy, hook_variable_name(half, a1),
				 (const char *)a2, &err);
	if (code)
		log_note("print_hist(): %s", err.text);
	RETURN_ERROR(code);
}

static const struct vm_contract hist_and_text = {
	.args = { { VM_READ, .bytes = sizeof(struct hist) }, { VM_STRING } }
};

NATIVE(fn_report_top)
{
	struct hook_half *half = context;

	report_limit_rows(half->options.report, a1);
	return 0;
}

const struct hook_function hook_functions_reports[] = {
	{ "print_map", fn_print_map, &hook_contract_maybe_second_text },
	{ "__print_map", fn_print_map, &hook_contract_maybe_second_text },
	{ "table", fn_table, &hook_contract_maybe_second_text },
	{ "__table", fn_table, &hook_contract_maybe_second_text },
	{ "print_hist", fn_print_hist, &hist_and_text },
	{ "__print_hist", fn_print_hist, &hist_and_text },
	{ "report_top", fn_report_top, &hook_contract_none },
	{ "print_hists", fn_print_hists, &hook_contract_second_text },
	{ "__print_hists", fn_print_hists, &hook_contract_second_text },
	{ NULL },
};

/* ---- every map, when the script has no report of its own, or cannot give it ------------- */
int hook_dump(struct hook_half *half, struct err *err)
{
	size_t i;

	for (i = 0; i < half->options.user->nmaps; i++) {
		struct hook_map *map = &half->maps[i];
		CLEANUP(kern_rows_deinit) struct kern_rows rows = { 0 };
		CLEANUP(report_view_free_cleanup) struct report_view *view = NULL;
		struct report_map table;
		int code;

		if (!hook_map_printable(map))
			continue;
		code = read_rows(half, map, &table, &rows);
		if (!code)
			code = report_view_compile(&table, "", half->options.counters,
						   half->options.ncounters, &view, err);
		if (!code)
			code = report_map_print(half->options.report, view, &table, err);
		if (code)
			return err_prepend(err, code, "map %s", map->name);
	}
	return hook_dump_variables(half, err);
}
