// SPDX-License-Identifier: BSD-2-Clause
/*
 * Numbers of expressions, row by row. Integers stay exact as long as they fit into 128 bits; what
 * is no number (not supported, not counted, divided by zero) makes everything that uses it no
 * number either, and an estimate makes it an estimate.
 */
#include "report/view.h"

#include <string.h>

#include "report/histogram.h"

void view_scan_row(struct view_scan *scan, const struct view_row *row)
{
	const struct report_map *map = scan->map;
	size_t bytes = view_value_bytes(map), stride = view_value_stride(map), offset = 0;
	const uint8_t *previous = scan->previous ? scan->previous[row->index] : NULL;

	scan->cpu = row->cpu;
	if (row->cpu != VIEW_NONE)
		offset = row->cpu * stride;
	scan->key = (struct source){ .size = map->key_size, .cpus = 1 };
	if (map->keys)
		scan->key.data = map->keys + (size_t)row->index * map->key_size;
	scan->value = (struct source){
		.data = map->values + row->index * bytes + offset,
		.previous = previous ? previous + offset : NULL,
		.size = map->value_size,
		.stride = stride,
		.cpus = row->cpu != VIEW_NONE || !map->cpus ? 1 : map->cpus,
	};
}

/* Of which counters both are: of a group, whose members count at the same times, or mixed. */
static uint8_t window_of(const struct number *a, const struct number *b)
{
	if (!a->window || !b->window)
		return a->window | b->window;
	return a->window == b->window ? a->window : WINDOW_MIXED;
}

static struct number flags_of(const struct number *a, const struct number *b)
{
	struct number result = number_flag(a->status > b->status ? a->status : b->status);

	if (a->status == STATUS_SCALED)
		result.share = a->share;
	if (b->status == STATUS_SCALED && b->share < result.share)
		result.share = b->share;
	result.window = window_of(a, b);
	return result;
}

static struct number with_flags(struct number number, const struct number *flags)
{
	if (number_known(&number)) {
		number.status = flags->status;
		number.share = flags->share;
		number.window = flags->window;
	}
	return number;
}

/*
 * Two estimates from different windows of time say nothing of each other: what a program did while
 * one event counted, it may not have done while the other one did.
 */
static bool are_apart(const struct number *a, const struct number *b)
{
	return a->status == STATUS_SCALED && b->status == STATUS_SCALED && a->window && b->window &&
	       window_of(a, b) == WINDOW_MIXED;
}

/* false: not exact in 128 bits (or not integers at all). */
static bool exact(enum node_kind kind, const struct number *a, const struct number *b,
		  __int128 *ret)
{
	if (a->is_real || b->is_real)
		return false;
	switch (kind) {
	case NODE_ADD:
		return !__builtin_add_overflow(a->integer, b->integer, ret);
	case NODE_SUBTRACT:
		return !__builtin_sub_overflow(a->integer, b->integer, ret);
	case NODE_MULTIPLY:
		return !__builtin_mul_overflow(a->integer, b->integer, ret);
	case NODE_DIVIDE:
		/* INT128_MIN / -1 is the one that overflows */
		if (b->integer == -1 || a->integer % b->integer)
			return false;
		*ret = a->integer / b->integer;
		return true;
	default:
		return false;
	}
}

static struct number arithmetic(enum node_kind kind, const struct number *a, const struct number *b)
{
	struct number flags = flags_of(a, b);
	double x, y;
	__int128 integer;

	if (!number_known(&flags))
		return flags;
	x = number_double(a);
	y = number_double(b);
	if (kind == NODE_DIVIDE && y == 0)
		return number_flag(STATUS_MISSING);
	if (kind == NODE_DIVIDE && are_apart(a, b))
		return number_flag(STATUS_APART);
	if (exact(kind, a, b, &integer))
		return with_flags(number_integer(integer), &flags);
	switch (kind) {
	case NODE_ADD:
		return with_flags(number_real(x + y), &flags);
	case NODE_SUBTRACT:
		return with_flags(number_real(x - y), &flags);
	case NODE_MULTIPLY:
		return with_flags(number_real(x * y), &flags);
	default:
		return with_flags(number_real(x / y), &flags);
	}
}

static struct number logic(enum node_kind kind, const struct number *a, const struct number *b)
{
	struct number flags = flags_of(a, b);
	int order;

	if (!number_known(&flags))
		return flags;
	order = number_compare(a, b);
	switch (kind) {
	case NODE_LESS:
		return with_flags(number_integer(order < 0), &flags);
	case NODE_LESS_EQUAL:
		return with_flags(number_integer(order <= 0), &flags);
	case NODE_EQUAL:
		return with_flags(number_integer(order == 0), &flags);
	case NODE_UNEQUAL:
		return with_flags(number_integer(order != 0), &flags);
	case NODE_AND:
		return with_flags(number_integer(number_double(a) != 0 && number_double(b) != 0),
				  &flags);
	case NODE_OR:
		return with_flags(number_integer(number_double(a) != 0 || number_double(b) != 0),
				  &flags);
	case NODE_MIN:
		return with_flags(order <= 0 ? *a : *b, &flags);
	default:
		return with_flags(order >= 0 ? *a : *b, &flags);
	}
}

static const struct source *source_of(const struct view_scan *scan, const struct place *place)
{
	return place->key ? &scan->key : &scan->value;
}

static struct number hist_number(struct view_scan *scan, const struct view_node *node)
{
	unsigned int first, last;
	struct hist hist;

	if (node->place.unsupported)
		return number_flag(STATUS_NOT_SUPPORTED);
	if (!place_hist(&node->place, source_of(scan, &node->place), &hist))
		return number_flag(STATUS_BACKWARDS);
	switch (node->hist) {
	case HIST_N:
		return number_integer(hist.n);
	case HIST_SUM:
		return number_integer((int64_t)hist.sum);
	case HIST_MEAN:
		return histogram_mean(&hist);
	case HIST_QUANTILE:
		return histogram_quantile(&hist, node->per_mille);
	default:
		if (!histogram_range(&hist, &first, &last))
			return number_flag(STATUS_MISSING);
		return number_integer(node->hist == HIST_MIN ? histogram_low(first)
							     : histogram_high(last));
	}
}

static struct number text_is(struct view_scan *scan, const struct view_node *node)
{
	struct out text = { 0 }, flag = { 0 };
	bool same;

	place_value(scan->view->types, &node->place, source_of(scan, &node->place), scan->names,
		    &scan->scratch);
	value_text(&scan->scratch, &text, &flag);
	same = !strcmp(out_text(&text), node->text);
	out_deinit(&text);
	out_deinit(&flag);
	return number_integer(same);
}

static struct number sign(enum node_kind kind, struct number number)
{
	if (!number_known(&number))
		return number;
	if (kind == NODE_NOT) {
		number.integer = number_double(&number) == 0;
		number.is_real = false;
	} else if (number.is_real) {
		number.real = -number.real;
	} else {
		number.integer = -(unsigned __int128)number.integer;
	}
	return number;
}

/* The tree's depth is at most VIEW_DEPTH_MAX, so is that of the calls. */
struct number view_evaluate(struct view_scan *scan, uint32_t root)
{
	const struct view_node *node = &scan->view->nodes[root];
	struct number left, right;

	switch (node->kind) {
	case NODE_NUMBER:
		return node->number;
	case NODE_CPU:
		return scan->cpu == VIEW_NONE ? number_flag(STATUS_MISSING)
					      : number_integer(scan->cpu);
	case NODE_PLACE:
		return place_number(scan->view->types, &node->place, source_of(scan, &node->place));
	case NODE_COMPUTED:
		return scan->computed[node->index];
	case NODE_TEXT_IS:
		return text_is(scan, node);
	case NODE_HIST:
		return hist_number(scan, node);
	case NODE_AGGREGATE:
		return scan->aggregates[node->index];
	case NODE_NEGATE:
	case NODE_NOT:
		return sign(node->kind, view_evaluate(scan, node->left));
	default:
		left = view_evaluate(scan, node->left);
		right = view_evaluate(scan, node->right);
		return node->kind <= NODE_DIVIDE ? arithmetic(node->kind, &left, &right)
						 : logic(node->kind, &left, &right);
	}
}

void view_compute(struct view_scan *scan, bool aggregates)
{
	const struct report_view *view = scan->view;
	size_t i;

	for (i = 0; i < view->ncolumns; i++) {
		const struct view_column *column = &view->columns[i];

		if (column->computed && (aggregates || !view->nodes[column->root].aggregates))
			scan->computed[i] = view_evaluate(scan, column->root);
	}
}
