// SPDX-License-Identifier: BSD-2-Clause
/* Any value, walked; and nested values as text: `{a = 1, b = [1, 2]}`. */
#include "report/emit.h"

#include <string.h>

#define ELEMENTS_SHOWN 64 /* of one array, to a person */

void nest_clear(struct nest *nest)
{
	out_clear(&nest->text);
	out_clear(&nest->flag);
	nest->depth = 0;
	nest->after_name = false;
	nest->lines = false;
	nest->hidden = 0;
	nest->some[0] = false;
}

void nest_deinit(struct nest *nest)
{
	out_deinit(&nest->text);
	out_deinit(&nest->flag);
}

static void separate(struct nest *nest)
{
	if (nest->after_name) {
		nest->after_name = false;
		return;
	}
	if (nest->lines && nest->depth == 1)
		out_puts(&nest->text, "\n\t");
	else if (nest->some[nest->depth])
		out_puts(&nest->text, ", ");
	nest->some[nest->depth] = true;
}

void nest_value(struct nest *nest, const struct value *value)
{
	struct out *flag = &nest->flag;

	separate(nest);
	if (nest->depth)
		flag = &nest->text;
	if (nest->exact && value->kind != VALUE_HIST && value->kind != VALUE_NONE)
		value_exact(value, &nest->text);
	else
		value_text(value, &nest->text, flag);
}

static void open_level(struct nest *nest, char bracket)
{
	separate(nest);
	out_putc(&nest->text, bracket);
	nest->depth++;
	nest->some[nest->depth] = false;
}

void nest_struct_begin(struct nest *nest, bool lines)
{
	open_level(nest, '{');
	if (nest->depth == 1)
		nest->lines = lines;
}

void nest_member(struct nest *nest, const char *name)
{
	separate(nest);
	out_visible(&nest->text, name, strlen(name));
	out_puts(&nest->text, " = ");
	nest->after_name = true;
}

void nest_struct_end(struct nest *nest)
{
	if (nest->lines && nest->depth == 1)
		out_putc(&nest->text, '\n');
	nest->depth--;
	out_putc(&nest->text, '}');
}

size_t nest_array_begin(struct nest *nest, size_t count)
{
	open_level(nest, '[');
	nest->hidden = 0;
	if (nest->exact || count <= ELEMENTS_SHOWN)
		return count;
	nest->hidden = count - ELEMENTS_SHOWN;
	return ELEMENTS_SHOWN;
}

void nest_array_end(struct nest *nest)
{
	if (nest->hidden)
		out_printf(&nest->text, ", ... %zu more", nest->hidden);
	nest->hidden = 0;
	nest->depth--;
	out_putc(&nest->text, ']');
}

/* ---- the walk ------------------------------------------------------------------------------ */
#define WALK_MAX (1U << 24)

struct walk {
	struct report *report;
	unsigned int left; /* values: types that nest empty structs would go on for ever */
	const struct types *types;
	const struct source *source;
	unsigned int depth;
};

static void walk_place(struct walk *walk, const struct place *place);

static void walk_members(struct walk *walk, const struct place *place)
{
	const struct report_options *options = &walk->report->options;
	uint32_t count = place_members(walk->types, place), i;
	const char *name;

	for (i = 0; i < count; i++) {
		struct place member = place_member(walk->types, place, i, &name);
		bool composite = member.class == PLACE_STRUCT || member.class == PLACE_UNION;

		if (!*name && composite && walk->depth < EMIT_DEPTH_MAX && walk->left) {
			walk->left--;
			walk->depth++;
			walk_members(walk, &member);
			walk->depth--;
			continue;
		}
		if (!*name)
			continue; /* padding */
		counter_mark(&member, options->counters, options->ncounters, name);
		walk->report->ops->member(walk->report, name);
		walk_place(walk, &member);
	}
}

static void walk_elements(struct walk *walk, const struct place *place)
{
	const struct emit_ops *ops = walk->report->ops;
	size_t shown = ops->array_begin(walk->report, place_elements(walk->types, place)), i;

	for (i = 0; i < shown; i++) {
		struct place element = place_element(walk->types, place, i);

		/* An array that claims more than its bytes (types that lie) ends with them. */
		if (element.bit_offset / 8 >= walk->source->size || (i && !element.bits))
			break;
		walk_place(walk, &element);
	}
	ops->array_end(walk->report);
}

static void walk_place(struct walk *walk, const struct place *place)
{
	struct report *report = walk->report;
	struct value *value = &report->value;

	if (place->class < PLACE_ARRAY || place->class > PLACE_SECTION) {
		place_value(walk->types, place, walk->source, &report->options.names, value);
		if (value->kind == VALUE_HIST)
			value->unit = report->hist_unit;
		report->ops->value(report, value);
		return;
	}
	if (walk->depth >= EMIT_DEPTH_MAX || !walk->left) {
		out_clear(&value->text);
		out_puts(&value->text, "...");
		value->kind = VALUE_TEXT;
		report->ops->value(report, value);
		return;
	}
	walk->left--;
	walk->depth++;
	if (place->class == PLACE_ARRAY) {
		walk_elements(walk, place);
	} else {
		report->ops->struct_begin(report, place->class == PLACE_SECTION);
		walk_members(walk, place);
		report->ops->struct_end(report);
	}
	walk->depth--;
}

void emit_place(struct report *report, const struct types *types, const struct place *place,
		const struct source *source)
{
	struct walk walk = { .report = report, .types = types, .source = source, .left = WALK_MAX };

	walk_place(&walk, place);
}
