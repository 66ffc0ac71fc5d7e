// SPDX-License-Identifier: BSD-2-Clause
#include "report/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/emit.h"
#include "report/options.h"
#include "report/rows.h"

/* Types that do not fit the bytes that come are not believed. */
static struct place part_place(const struct types *types, uint32_t type, uint32_t size, bool key)
{
	struct place place = { .class = PLACE_BYTES, .bits = size * 8 };

	if (types && types_get(types, type)) {
		int64_t bytes = types_size(types, type);

		if (bytes > 0 && bytes <= size)
			place = place_of(types, type, 0, 0);
		if (place.class == PLACE_NOTHING)
			place = (struct place){ .class = PLACE_BYTES, .bits = size * 8 };
	}
	place.key = key;
	return place;
}

/* Rows without an order of their own come by key: a hash table's order tells nobody anything. */
static int sort_by_key(struct report_view *view, struct err *err)
{
	size_t i;

	for (i = 0; i < view->ncolumns; i++) {
		const struct place *place = &view->columns[i].place;
		struct view_sort *sort;
		struct view_node *node;

		if (view->columns[i].computed || view->columns[i].cpu || !place->key)
			continue;
		if (!place_has_number(place) && place->class != PLACE_STRING &&
		    place->class != PLACE_BYTES)
			continue;
		node = array_grow(&view->nodes, &view->nnodes, &view->nodes_capacity,
				  sizeof(*node));
		sort = array_grow(&view->sorts, &view->nsorts, &view->sorts_capacity,
				  sizeof(*sort));
		if (!node || !sort)
			return err_nomem(err);
		*node = (struct view_node){ .kind = NODE_PLACE, .depth = 1, .place = *place };
		sort->root = view->nnodes - 1;
		sort->text = !place_has_number(place);
	}
	return 0;
}

int view_compile(const char *function, const struct report_map *shape, const char *options,
		 const struct report_counter *counters, size_t ncounters, struct report_view **ret,
		 struct err *err)
{
	CLEANUP(report_view_free_cleanup)
	struct report_view *view = calloc(1, sizeof(*view));
	int code;

	if (!view || !(view->name = strdup(shape->name)))
		return err_nomem(err);
	view->function = function;
	view->types = shape->types;
	view->key_size = shape->key_size;
	view->value_size = shape->value_size;
	view->key = part_place(shape->types, shape->key_type, shape->key_size, true);
	view->value = part_place(shape->types, shape->value_type, shape->value_size, false);
	view->where = VIEW_NONE;
	view->counters = counters;
	view->ncounters = ncounters;
	code = view_options_apply(view, options, err);
	if (!code && !view->nsorts)
		code = sort_by_key(view, err);
	view->counters = NULL;
	view->ncounters = 0;
	if (code)
		return err_prepend(err, code, "%s(%s)", function, shape->name);
	*ret = take_pointer(view);
	return 0;
}

int report_view_compile(const struct report_map *shape, const char *options,
			const struct report_counter *counters, size_t ncounters,
			struct report_view **ret, struct err *err)
{
	return view_compile("print_map", shape, options, counters, ncounters, ret, err);
}

void report_view_free(struct report_view *view)
{
	size_t i;

	if (!view)
		return;
	for (i = 0; i < view->ncolumns; i++)
		free(view->columns[i].name);
	for (i = 0; i < view->nnodes; i++)
		free(view->nodes[i].text);
	for (i = 0; i < view->naggregates; i++)
		free(view->aggregates[i].source);
	free(view->columns);
	free(view->nodes);
	free(view->aggregates);
	free(view->sorts);
	free(view->shown);
	view_past_deinit(&view->past);
	free(view->name);
	free(view->title);
	free(view->key_name);
	free(view);
}
