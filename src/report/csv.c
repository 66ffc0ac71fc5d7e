// SPDX-License-Identifier: BSD-2-Clause
/*
 * CSV, quoted as in RFC 4180, lines end in \n. A counter has two columns, its value and its
 * status; a histogram one per part. The header comes once as long as the same table is printed
 * again and again; another table starts with an empty line and `# NAME`.
 */
#include "report/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct csv {
	struct nest nest;
	struct out header; /* as last written, its table's name in front */
	struct out next;
	const struct emit_column *column;
	bool first;                /* cell of the row */
	bool filled;               /* the cell has written its fields itself */
	enum value_status flagged; /* status of the cell's value */
	uint64_t time_ns;          /* 0: no time column */
};

static struct csv *csv_of(struct report *report)
{
	return report->state;
}

static int csv_open(struct report *report)
{
	struct csv *csv = report->state = calloc(1, sizeof(*csv));

	if (!csv)
		return -ENOMEM;
	csv->nest.exact = true;
	return 0;
}

static void csv_close(struct report *report)
{
	struct csv *csv = report->state;

	if (!csv)
		return;
	nest_deinit(&csv->nest);
	out_deinit(&csv->header);
	out_deinit(&csv->next);
	free(csv);
	report->state = NULL;
}

static void quote(struct out *out, const char *text, size_t size, char separator)
{
	bool plain = size == 0 || (text[0] != ' ' && text[0] != '#' && text[size - 1] != ' ');
	size_t i;

	for (i = 0; i < size && plain; i++)
		plain = text[i] != separator && !strchr("\"\r\n", text[i]);
	if (plain) {
		out_append(out, text, size);
		return;
	}
	out_putc(out, '"');
	for (i = 0; i < size; i++) {
		if (text[i] == '"')
			out_putc(out, '"');
		out_putc(out, text[i]);
	}
	out_putc(out, '"');
}

static void field(struct report *report, const char *text, size_t size)
{
	struct csv *csv = csv_of(report);

	if (!csv->first)
		out_putc(&report->out, report->options.separator);
	csv->first = false;
	quote(&report->out, text, size, report->options.separator);
}

static void field_text(struct report *report, const char *text)
{
	field(report, text, strlen(text));
}

static void field_value(struct report *report, const struct value *value)
{
	struct csv *csv = csv_of(report);

	nest_clear(&csv->nest);
	nest_value(&csv->nest, value);
	field(report, out_text(&csv->nest.text), csv->nest.text.buf.size);
}

static void header_name(struct csv *csv, char separator, const char *name, const char *part)
{
	struct out full = { 0 };

	if (!csv->first)
		out_putc(&csv->next, separator);
	csv->first = false;
	out_puts(&full, name);
	if (part)
		out_printf(&full, ".%s", part);
	quote(&csv->next, out_text(&full), full.buf.size, separator);
	if (full.error)
		csv->next.error = full.error;
	out_deinit(&full);
}

/* Writes csv->next ("NAME\nheader\n") unless it is what the last rows were under. */
static void header(struct report *report, const char *name)
{
	struct csv *csv = csv_of(report);
	struct out swap;

	if (csv->next.error)
		report->out.error = csv->next.error;
	if (csv->header.buf.size && !strcmp(out_text(&csv->header), out_text(&csv->next)))
		return;
	if (csv->header.buf.size) {
		out_puts(&report->out, "\n# ");
		out_visible(&report->out, name, strlen(name));
		out_putc(&report->out, '\n');
	}
	out_puts(&report->out, strchr(out_text(&csv->next), '\n') + 1);
	swap = csv->header;
	csv->header = csv->next;
	csv->next = swap;
}

static void header_begin(struct csv *csv, const char *name)
{
	out_clear(&csv->next);
	out_visible(&csv->next, name, strlen(name));
	out_putc(&csv->next, '\n');
	csv->first = true;
}

static void csv_table_begin(struct report *report, const struct emit_table *table)
{
	struct csv *csv = csv_of(report);
	char separator = report->options.separator;
	unsigned int part;
	size_t i;

	header_begin(csv, table->name);
	csv->time_ns = table->live ? table->time_ns : 0;
	if (csv->time_ns)
		header_name(csv, separator, "time", NULL);
	for (i = 0; i < table->ncolumns; i++) {
		const struct emit_column *column = &table->columns[i];

		if (column->layout == EMIT_HIST) {
			for (part = 0; part < HISTOGRAM_PARTS; part++)
				header_name(csv, separator, column->name,
					    histogram_part_name(part));
			continue;
		}
		header_name(csv, separator, column->name, NULL);
		if (column->layout == EMIT_COUNTER)
			header_name(csv, separator, column->name, "status");
	}
	out_putc(&csv->next, '\n');
	header(report, table->name);
}

static void csv_row_begin(struct report *report)
{
	struct csv *csv = csv_of(report);

	csv->first = true;
	if (csv->time_ns) {
		out_printf(&report->out, "%llu.%09llu",
			   (unsigned long long)(csv->time_ns / 1000000000),
			   (unsigned long long)(csv->time_ns % 1000000000));
		csv->first = false;
	}
}

static void csv_cell_begin(struct report *report, const struct emit_column *column)
{
	struct csv *csv = csv_of(report);

	nest_clear(&csv->nest);
	csv->column = column;
	csv->filled = false;
	csv->flagged = STATUS_OK;
}

static void csv_value(struct report *report, const struct value *value)
{
	struct csv *csv = csv_of(report);
	unsigned int i;

	if (!csv->column || csv->column->layout != EMIT_HIST || value->kind != VALUE_HIST) {
		if (value->kind == VALUE_NUMBER || value->kind == VALUE_COUNTER)
			csv->flagged = value->number.status;
		nest_value(&csv->nest, value);
		return;
	}
	csv->filled = true;
	for (i = 0; i < HISTOGRAM_PARTS; i++) {
		struct value part = { 0 };

		histogram_part_value(value, i, &part);
		field_value(report, &part);
	}
}

static void csv_cell_end(struct report *report)
{
	struct csv *csv = csv_of(report);

	if (csv->nest.text.error)
		report->out.error = csv->nest.text.error;
	if (!csv->filled)
		field(report, out_text(&csv->nest.text), csv->nest.text.buf.size);
	if (csv->column->layout == EMIT_COUNTER)
		field_text(report, status_name(csv->flagged));
	csv->column = NULL;
}

static void csv_row_end(struct report *report)
{
	out_putc(&report->out, '\n');
}

static void csv_table_end(struct report *report)
{
}

static void csv_value_begin(struct report *report, const char *name)
{
	struct csv *csv = csv_of(report);
	char separator = report->options.separator;

	header_begin(csv, "variables");
	header_name(csv, separator, "name", NULL);
	header_name(csv, separator, "value", NULL);
	out_putc(&csv->next, '\n');
	header(report, "variables");
	csv->first = true;
	field_text(report, name);
	nest_clear(&csv->nest);
	csv->column = NULL;
}

static void csv_value_end(struct report *report)
{
	struct csv *csv = csv_of(report);

	if (csv->nest.text.error)
		report->out.error = csv->nest.text.error;
	field(report, out_text(&csv->nest.text), csv->nest.text.buf.size);
	out_putc(&report->out, '\n');
}

static void csv_struct_begin(struct report *report, bool lines)
{
	nest_struct_begin(&csv_of(report)->nest, false);
}

static void csv_member(struct report *report, const char *name)
{
	nest_member(&csv_of(report)->nest, name);
}

static void csv_struct_end(struct report *report)
{
	nest_struct_end(&csv_of(report)->nest);
}

static size_t csv_array_begin(struct report *report, size_t count)
{
	return nest_array_begin(&csv_of(report)->nest, count);
}

static void csv_array_end(struct report *report)
{
	nest_array_end(&csv_of(report)->nest);
}

static void csv_hist_begin(struct report *report, const struct emit_hist *hist)
{
	static const char *const names[] = { "name", "key", "low", "high", "count" };
	struct csv *csv = csv_of(report);
	size_t i;

	header_begin(csv, "histograms");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (i != 1 || hist->keyed)
			header_name(csv, report->options.separator, names[i], NULL);
	}
	out_putc(&csv->next, '\n');
	header(report, "histograms");
	nest_clear(&csv->nest);
	csv->column = NULL;
}

static void csv_hist_end(struct report *report, const struct emit_hist *hist)
{
	struct csv *csv = csv_of(report);
	unsigned int first = 1, last = 0, i;

	if (csv->nest.text.error)
		report->out.error = csv->nest.text.error;
	if (hist->status > STATUS_SCALED || !histogram_range(hist->hist, &first, &last))
		return;
	for (i = first; i <= last; i++) {
		char separator = report->options.separator;

		csv->first = true;
		field_text(report, hist->name);
		if (hist->keyed)
			field(report, out_text(&csv->nest.text), csv->nest.text.buf.size);
		out_printf(&report->out, "%c%llu%c%llu%c%llu\n", separator,
			   (unsigned long long)histogram_low(i), separator,
			   (unsigned long long)histogram_high(i), separator,
			   (unsigned long long)hist->hist->slot[i]);
	}
}

static void csv_note(struct report *report, const char *text)
{
	out_puts(&report->out, "# ");
	out_visible(&report->out, text, strlen(text));
	out_putc(&report->out, '\n');
}

/* Rows own stdout; what the script says goes where diagnostics go. */
static void csv_text(struct report *report, const char *data, size_t size)
{
	if (fwrite(data, 1, size, stderr) != size || fflush(stderr))
		clearerr(stderr);
}

static void csv_finish(struct report *report)
{
}

const struct emit_ops emit_csv = {
	.name = "csv",
	.open = csv_open,
	.close = csv_close,
	.value_begin = csv_value_begin,
	.value_end = csv_value_end,
	.table_begin = csv_table_begin,
	.row_begin = csv_row_begin,
	.cell_begin = csv_cell_begin,
	.cell_end = csv_cell_end,
	.row_end = csv_row_end,
	.table_end = csv_table_end,
	.value = csv_value,
	.struct_begin = csv_struct_begin,
	.member = csv_member,
	.struct_end = csv_struct_end,
	.array_begin = csv_array_begin,
	.array_end = csv_array_end,
	.hist_begin = csv_hist_begin,
	.hist_end = csv_hist_end,
	.note = csv_note,
	.text = csv_text,
	.finish = csv_finish,
};
