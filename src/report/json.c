// SPDX-License-Identifier: BSD-2-Clause
/* JSON Lines: one object per table, value, histogram, note or script's line of text. */
#include "report/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

struct json {
	yajl_gen gen;
	struct out scratch;
	struct out line;   /* what the script printed since its last line break */
	struct out member; /* name of a cell's status */
	const char *name;  /* of the cell */
	const char *flag;  /* status to tell behind the cell */
};

static struct json *json_of(struct report *report)
{
	return report->state;
}

static void json_print(void *context, const char *text, size_t size)
{
	struct report *report = context;

	out_append(&report->out, text, size);
}

static void json_close(struct report *report)
{
	struct json *json = report->state;

	if (!json)
		return;
	if (json->gen)
		yajl_gen_free(json->gen);
	out_deinit(&json->scratch);
	out_deinit(&json->line);
	out_deinit(&json->member);
	free(json);
	report->state = NULL;
}

static int json_open(struct report *report)
{
	struct json *json = report->state = calloc(1, sizeof(*json));

	if (!json)
		return -ENOMEM;
	json->gen = yajl_gen_alloc(NULL);
	if (!json->gen || !yajl_gen_config(json->gen, yajl_gen_print_callback, json_print, report))
		return -ENOMEM;
	return 0;
}

/* Names come from types, titles from scripts: neither is sure to be UTF-8. */
static void string(struct json *json, const char *text, size_t size)
{
	out_clear(&json->scratch);
	out_utf8(&json->scratch, text, size);
	yajl_gen_string(json->gen, (const unsigned char *)out_text(&json->scratch),
			json->scratch.buf.size);
}

static void name(struct json *json, const char *text)
{
	string(json, text, strlen(text));
}

static void integer(struct json *json, __int128 value)
{
	out_clear(&json->scratch);
	out_integer(&json->scratch, value, false);
	yajl_gen_number(json->gen, out_text(&json->scratch), json->scratch.buf.size);
}

static void real(struct json *json, double value)
{
	out_clear(&json->scratch);
	out_exact(&json->scratch, value);
	yajl_gen_number(json->gen, out_text(&json->scratch), json->scratch.buf.size);
}

static void number(struct json *json, const struct number *value)
{
	if (!number_known(value))
		yajl_gen_null(json->gen);
	else if (value->is_real)
		real(json, value->real);
	else
		integer(json, value->integer);
}

static void document_begin(struct json *json, const char *type, const char *of)
{
	yajl_gen_reset(json->gen, NULL);
	yajl_gen_map_open(json->gen);
	name(json, "type");
	name(json, type);
	if (of) {
		name(json, "name");
		name(json, of);
	}
}

static void document_end(struct report *report)
{
	yajl_gen_map_close(json_of(report)->gen);
	out_putc(&report->out, '\n');
}

static void json_value_begin(struct report *report, const char *of)
{
	document_begin(json_of(report), "value", of);
	name(json_of(report), "value");
}

static void json_value_end(struct report *report)
{
	document_end(report);
}

/* "events":{"cycles":"cpu-clock"} */
static void replaced_events(struct json *json, const struct emit_table *table)
{
	size_t i;

	if (!table->nreplaced)
		return;
	name(json, "events");
	yajl_gen_map_open(json->gen);
	for (i = 0; i < table->nreplaced; i++) {
		name(json, table->replaced[i]->member);
		name(json, table->replaced[i]->event);
	}
	yajl_gen_map_close(json->gen);
}

static void json_table_begin(struct report *report, const struct emit_table *table)
{
	struct json *json = json_of(report);

	document_begin(json, "table", table->name);
	if (table->title) {
		name(json, "title");
		name(json, table->title);
	}
	if (table->live) {
		name(json, "time_ns");
		integer(json, table->time_ns);
	}
	replaced_events(json, table);
	if (table->rows < table->total) {
		name(json, "rows_in_map");
		integer(json, table->total);
	}
	name(json, "rows");
	yajl_gen_array_open(json->gen);
}

static void json_row_begin(struct report *report)
{
	yajl_gen_map_open(json_of(report)->gen);
}

static void json_cell_begin(struct report *report, const struct emit_column *column)
{
	struct json *json = json_of(report);

	json->name = column->name;
	json->flag = NULL;
	name(json, column->name);
}

/* A computed number stays a number, so that `.ipc` can be worked with; its status, when there is
 * something to tell, stands beside it. */
static void json_cell_end(struct report *report)
{
	struct json *json = json_of(report);

	if (!json->flag)
		return;
	out_clear(&json->member);
	out_printf(&json->member, "%s.status", json->name);
	name(json, out_text(&json->member));
	name(json, json->flag);
	json->flag = NULL;
}

static void json_row_end(struct report *report)
{
	yajl_gen_map_close(json_of(report)->gen);
}

static void json_table_end(struct report *report)
{
	yajl_gen_array_close(json_of(report)->gen);
	document_end(report);
}

static void counter(struct json *json, const struct value *value)
{
	const struct pmu_sum *sum = &value->counter;
	double share = 0;

	if (sum->enabled)
		share = (double)sum->running / (double)sum->enabled;
	yajl_gen_map_open(json->gen);
	name(json, "value");
	number(json, &value->number);
	name(json, "status");
	name(json, status_name(value->number.status));
	name(json, "running");
	real(json, share > 1 ? 1 : share);
	name(json, "enabled_ns");
	integer(json, sum->enabled);
	yajl_gen_map_close(json->gen);
}

static void slots(struct json *json, const struct hist *hist)
{
	unsigned int first = 1, last = 0, i;

	name(json, "slots");
	yajl_gen_array_open(json->gen);
	if (!histogram_range(hist, &first, &last))
		first = 1, last = 0;
	for (i = first; i <= last; i++) {
		yajl_gen_map_open(json->gen);
		name(json, "low");
		integer(json, histogram_low(i));
		name(json, "high");
		integer(json, histogram_high(i));
		name(json, "count");
		integer(json, hist->slot[i]);
		yajl_gen_map_close(json->gen);
	}
	yajl_gen_array_close(json->gen);
}

/* Members of an object that is open. */
static void hist_members(struct json *json, const struct hist *hist, enum value_status status)
{
	struct value whole = { .kind = VALUE_HIST, .number = number_flag(status) }, part = { 0 };
	unsigned int i;

	name(json, "status");
	name(json, status_name(status));
	whole.hist = *hist;
	for (i = 0; i < HISTOGRAM_PARTS; i++) {
		histogram_part_value(&whole, i, &part);
		name(json, histogram_part_name(i));
		number(json, &part.number);
	}
	name(json, "sum");
	if (number_known(&whole.number)) {
		integer(json, (int64_t)hist->sum);
		slots(json, hist);
	} else {
		yajl_gen_null(json->gen);
	}
}

static void stack(struct json *json, const struct value *value)
{
	const char *frame = out_text(&value->text), *end = frame + value->text.buf.size;

	yajl_gen_array_open(json->gen);
	for (; frame < end; frame += strlen(frame) + 1)
		name(json, frame);
	yajl_gen_array_close(json->gen);
}

static void json_value(struct report *report, const struct value *value)
{
	struct json *json = json_of(report);

	switch (value->kind) {
	case VALUE_NONE:
		yajl_gen_null(json->gen);
		break;
	case VALUE_TEXT:
		string(json, out_text(&value->text), value->text.buf.size);
		break;
	case VALUE_STACK:
		stack(json, value);
		break;
	case VALUE_COUNTER:
		counter(json, value);
		break;
	case VALUE_HIST:
		yajl_gen_map_open(json->gen);
		hist_members(json, &value->hist, value->number.status);
		yajl_gen_map_close(json->gen);
		break;
	case VALUE_NUMBER:
		if (value->unit == UNIT_BOOL && number_known(&value->number))
			yajl_gen_bool(json->gen, value->number.integer != 0);
		else
			number(json, &value->number);
		if (value->number.status != STATUS_OK)
			json->flag = status_name(value->number.status);
		break;
	}
}

static void json_struct_begin(struct report *report, bool lines)
{
	yajl_gen_map_open(json_of(report)->gen);
}

static void json_member(struct report *report, const char *of)
{
	name(json_of(report), of);
}

static void json_struct_end(struct report *report)
{
	yajl_gen_map_close(json_of(report)->gen);
	json_of(report)->flag = NULL;
}

static size_t json_array_begin(struct report *report, size_t count)
{
	yajl_gen_array_open(json_of(report)->gen);
	return count;
}

static void json_array_end(struct report *report)
{
	yajl_gen_array_close(json_of(report)->gen);
	json_of(report)->flag = NULL;
}

static void json_hist_begin(struct report *report, const struct emit_hist *hist)
{
	struct json *json = json_of(report);

	document_begin(json, "hist", hist->name);
	if (hist->title) {
		name(json, "title");
		name(json, hist->title);
	}
	if (hist->keyed)
		name(json, "key");
}

static void json_hist_end(struct report *report, const struct emit_hist *hist)
{
	struct json *json = json_of(report);

	name(json, "unit");
	name(json, hist->unit == UNIT_NS ? "ns" : hist->unit == UNIT_BYTES ? "bytes" : "");
	hist_members(json, hist->hist, hist->status);
	document_end(report);
}

static void json_note(struct report *report, const char *text)
{
	document_begin(json_of(report), "note", NULL);
	name(json_of(report), "text");
	name(json_of(report), text);
	document_end(report);
}

static void text_line(struct report *report, const char *data, size_t size)
{
	document_begin(json_of(report), "text", NULL);
	name(json_of(report), "text");
	string(json_of(report), data, size);
	document_end(report);
}

static void json_text(struct report *report, const char *data, size_t size)
{
	struct json *json = json_of(report);
	const char *end;

	while ((end = memchr(data, '\n', size))) {
		out_append(&json->line, data, end - data);
		text_line(report, out_text(&json->line), json->line.buf.size);
		out_clear(&json->line);
		size -= end + 1 - data;
		data = end + 1;
	}
	out_append(&json->line, data, size);
}

static void json_finish(struct report *report)
{
	struct json *json = json_of(report);

	if (json->line.buf.size)
		text_line(report, out_text(&json->line), json->line.buf.size);
	out_clear(&json->line);
}

const struct emit_ops emit_json = {
	.name = "json",
	.open = json_open,
	.close = json_close,
	.value_begin = json_value_begin,
	.value_end = json_value_end,
	.table_begin = json_table_begin,
	.row_begin = json_row_begin,
	.cell_begin = json_cell_begin,
	.cell_end = json_cell_end,
	.row_end = json_row_end,
	.table_end = json_table_end,
	.value = json_value,
	.struct_begin = json_struct_begin,
	.member = json_member,
	.struct_end = json_struct_end,
	.array_begin = json_array_begin,
	.array_end = json_array_end,
	.hist_begin = json_hist_begin,
	.hist_end = json_hist_end,
	.note = json_note,
	.text = json_text,
	.finish = json_finish,
};
