// SPDX-License-Identifier: BSD-2-Clause
/*
 * Text for people: tables whose columns are as wide as their cells, numbers to the right. A table
 * that is live is drawn over its last print when the output is a terminal.
 */
#include "report/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define ELLIPSIS      "\xe2\x80\xa6"
#define FRAME_MAX     16 /* live tables on one screen */
#define NARROWEST_CUT 8  /* columns that a cut text keeps */

struct cell {
	size_t at, size;           /* in text.pool */
	size_t flag_at, flag_size; /* "(scaled 37 %)" */
};

struct text_column {
	bool right;
	size_t width, flag_width;
};

struct text {
	struct nest nest;
	struct out pool;
	struct cell *cells; /* the header's first, then row by row */
	size_t ncells, cells_capacity;
	struct text_column *columns; /* a histogram takes several */
	size_t ncolumns, columns_capacity;
	const struct emit_column *column; /* the open cell's */
	bool filled;
	bool terminal;
	bool some; /* something was written: the next table is set off by an empty line */

	/* The live tables on the screen since the cursor's home. */
	const void *frame[FRAME_MAX];
	size_t nframe, frame_lines;
	const void *live; /* identity of the table under construction, NULL: not live */
};

static struct text *text_of(struct report *report)
{
	return report->state;
}

static int text_open(struct report *report)
{
	struct text *text = report->state = calloc(1, sizeof(*text));
	int fd = fileno(report->options.out);

	if (!text)
		return -ENOMEM;
	text->terminal = fd >= 0 && isatty(fd);
	return 0;
}

static void text_close(struct report *report)
{
	struct text *text = report->state;

	if (!text)
		return;
	nest_deinit(&text->nest);
	out_deinit(&text->pool);
	free(text->cells);
	free(text->columns);
	free(text);
	report->state = NULL;
}

/* Anything but a live table ends the picture: the next one is drawn below. */
static void end_frame(struct text *text)
{
	text->nframe = 0;
	text->frame_lines = 0;
}

static void add_cell(struct report *report, const char *data, size_t size, const char *flag,
		     size_t flag_size)
{
	struct text *text = text_of(report);
	struct cell *cell =
		array_grow(&text->cells, &text->ncells, &text->cells_capacity, sizeof(*cell));

	if (!cell) {
		report->out.error = -ENOMEM;
		return;
	}
	cell->at = text->pool.buf.size;
	cell->size = size;
	out_append(&text->pool, data, size);
	cell->flag_at = text->pool.buf.size;
	cell->flag_size = flag_size;
	out_append(&text->pool, flag, flag_size);
}

static void add_column(struct report *report, const char *name, const char *part, bool right)
{
	struct text *text = text_of(report);
	struct text_column *column = array_grow(&text->columns, &text->ncolumns,
						&text->columns_capacity, sizeof(*column));
	struct out full = { 0 };

	if (!column) {
		report->out.error = -ENOMEM;
		return;
	}
	column->right = right;
	out_visible(&full, name, strlen(name));
	if (part)
		out_printf(&full, ".%s", part);
	add_cell(report, out_text(&full), full.buf.size, "", 0);
	if (full.error)
		report->out.error = full.error;
	out_deinit(&full);
}

static void heading(struct report *report, const struct emit_table *table)
{
	struct out *out = &report->out;
	const char *name = table->title ? table->title : table->name;

	size_t i;

	out_visible(out, name, strlen(name));
	for (i = 0; i < table->nreplaced; i++)
		out_printf(out, "%s%s = %s%s", i ? ", " : " (", table->replaced[i]->member,
			   table->replaced[i]->event, i + 1 < table->nreplaced ? "" : ")");
	if (table->rows < table->total)
		out_printf(out, " (%zu of %zu rows)", table->rows, table->total);
	if (table->live) {
		time_t seconds = table->time_ns / 1000000000;
		struct tm when;
		char stamp[64] = "";

		if (localtime_r(&seconds, &when))
			strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &when);
		out_printf(out, " at %s.%03u", stamp,
			   (unsigned int)(table->time_ns / 1000000 % 1000));
	}
	out_putc(out, '\n');
}

/* A table that is in the picture already: a new picture starts at its place. */
static void frame_begin(struct report *report, const void *identity)
{
	struct text *text = text_of(report);
	size_t i;

	for (i = 0; i < text->nframe && text->frame[i] != identity; i++)
		;
	if (i < text->nframe && text->frame_lines)
		out_printf(&report->out, "\r\x1b[%zuA\x1b[J", text->frame_lines);
	if (i < text->nframe || text->nframe == FRAME_MAX) {
		end_frame(text);
		text->some = false;
	}
	text->frame[text->nframe++] = identity;
}

static void text_table_begin(struct report *report, const struct emit_table *table)
{
	struct text *text = text_of(report);
	size_t i, part;

	text->live = table->live && text->terminal ? table->identity : NULL;
	if (text->live)
		frame_begin(report, text->live);
	else
		end_frame(text);
	if (text->some)
		out_putc(&report->out, '\n');
	heading(report, table);
	out_clear(&text->pool);
	text->ncells = text->ncolumns = 0;
	for (i = 0; i < table->ncolumns; i++) {
		const struct emit_column *column = &table->columns[i];

		if (column->layout != EMIT_HIST) {
			add_column(report, column->name, NULL, column->layout != EMIT_TEXT);
			continue;
		}
		for (part = 0; part < HISTOGRAM_PARTS; part++)
			add_column(report, column->name, histogram_part_name(part), true);
	}
}

static void text_row_begin(struct report *report)
{
}

static void text_cell_begin(struct report *report, const struct emit_column *column)
{
	struct text *text = text_of(report);

	nest_clear(&text->nest);
	text->column = column;
	text->filled = false;
}

static void add_nest(struct report *report)
{
	struct nest *nest = &text_of(report)->nest;

	if (nest->text.error || nest->flag.error)
		report->out.error = -ENOMEM;
	add_cell(report, out_text(&nest->text), nest->text.buf.size, out_text(&nest->flag),
		 nest->flag.buf.size);
}

static void text_value(struct report *report, const struct value *value)
{
	struct text *text = text_of(report);
	unsigned int i;

	if (!text->column || text->column->layout != EMIT_HIST || value->kind != VALUE_HIST) {
		nest_value(&text->nest, value);
		return;
	}
	text->filled = true;
	for (i = 0; i < HISTOGRAM_PARTS; i++) {
		struct value part = { 0 };

		histogram_part_value(value, i, &part);
		nest_clear(&text->nest);
		nest_value(&text->nest, &part);
		add_nest(report);
	}
}

static void text_cell_end(struct report *report)
{
	struct text *text = text_of(report);

	if (!text->filled)
		add_nest(report);
	text->column = NULL;
}

static void text_row_end(struct report *report)
{
}

static const char *cell_text(const struct text *text, size_t at)
{
	return out_text(&text->pool) + at;
}

static void measure(struct text *text)
{
	size_t i;

	for (i = 0; i < text->ncells; i++) {
		struct text_column *column = &text->columns[i % text->ncolumns];
		const struct cell *cell = &text->cells[i];
		size_t width = utf8_width(cell_text(text, cell->at), cell->size);
		size_t flag = utf8_width(cell_text(text, cell->flag_at), cell->flag_size);

		if (width > column->width)
			column->width = width;
		if (flag > column->flag_width)
			column->flag_width = flag;
	}
}

/* Makes the last text column so narrow that a line fits. */
static void narrow(struct text *text, size_t limit)
{
	struct text_column *last = NULL;
	size_t total = 0, i;

	for (i = 0; i < text->ncolumns; i++) {
		struct text_column *column = &text->columns[i];

		total += column->width + (i ? 2 : 0);
		total += column->flag_width ? column->flag_width + 1 : 0;
		if (!column->right)
			last = column;
	}
	if (!last || total <= limit)
		return;
	if (last->width > NARROWEST_CUT && last->width - NARROWEST_CUT > total - limit)
		last->width -= total - limit;
	else if (last->width > NARROWEST_CUT)
		last->width = NARROWEST_CUT;
}

static void padded(struct out *out, const char *data, size_t size, const struct text_column *column)
{
	size_t width = utf8_width(data, size);

	if (width > column->width) {
		size = utf8_fit(data, size, column->width - 1);
		width = utf8_width(data, size) + 1;
		out_append(out, data, size);
		out_puts(out, ELLIPSIS);
		out_fill(out, ' ', column->width - width);
		return;
	}
	if (column->right)
		out_fill(out, ' ', column->width - width);
	out_append(out, data, size);
	if (!column->right)
		out_fill(out, ' ', column->width - width);
}

static void trim(struct out *out)
{
	while (out->buf.size && out->buf.data[out->buf.size - 1] == ' ')
		out->buf.data[--out->buf.size] = 0;
}

/* Lines that a live table may take: what scrolls off the screen cannot be drawn over. */
static size_t lines_left(struct report *report)
{
	const struct text *text = text_of(report);
	struct winsize size = { 0 };
	size_t used = text->frame_lines + 3; /* heading, empty line, where the cursor stays */

	if (!text->live || ioctl(fileno(report->options.out), TIOCGWINSZ, &size) || !size.ws_row)
		return SIZE_MAX;
	return size.ws_row > used + 2 ? size.ws_row - used : 2;
}

static void text_table_end(struct report *report)
{
	struct text *text = text_of(report);
	struct out *out = &report->out;
	size_t i, lines = 0, most = lines_left(report);

	if (text->pool.error || (text->ncolumns && text->ncells % text->ncolumns))
		out->error = -ENOMEM;
	if (out->error)
		return;
	measure(text);
	if (report->options.width > 0)
		narrow(text, report->options.width);
	for (i = 0; i < text->ncells && lines < most; i++) {
		const struct text_column *column = &text->columns[i % text->ncolumns];
		const struct cell *cell = &text->cells[i];
		size_t flag = utf8_width(cell_text(text, cell->flag_at), cell->flag_size);

		if (i % text->ncolumns)
			out_puts(out, "  ");
		padded(out, cell_text(text, cell->at), cell->size, column);
		if (column->flag_width) {
			out_putc(out, ' ');
			out_append(out, cell_text(text, cell->flag_at), cell->flag_size);
			out_fill(out, ' ', column->flag_width - flag);
		}
		if (i % text->ncolumns != text->ncolumns - 1)
			continue;
		trim(out);
		out_putc(out, '\n');
		lines++;
	}
	if (text->live)
		text->frame_lines += lines + 1 + (text->some ? 1 : 0);
	text->some = true;
}

static void text_value_begin(struct report *report, const char *name)
{
	struct text *text = text_of(report);

	end_frame(text);
	nest_clear(&text->nest);
	text->column = NULL;
	out_visible(&report->out, name, strlen(name));
	out_puts(&report->out, " = ");
}

static void put_nest(struct report *report)
{
	struct nest *nest = &text_of(report)->nest;

	if (nest->text.error || nest->flag.error)
		report->out.error = -ENOMEM;
	out_puts(&report->out, out_text(&nest->text));
	if (nest->flag.buf.size) {
		out_putc(&report->out, ' ');
		out_puts(&report->out, out_text(&nest->flag));
	}
}

static void text_value_end(struct report *report)
{
	put_nest(report);
	out_putc(&report->out, '\n');
	text_of(report)->some = true;
}

static void text_struct_begin(struct report *report, bool lines)
{
	nest_struct_begin(&text_of(report)->nest, lines);
}

static void text_member(struct report *report, const char *name)
{
	nest_member(&text_of(report)->nest, name);
}

static void text_struct_end(struct report *report)
{
	nest_struct_end(&text_of(report)->nest);
}

static size_t text_array_begin(struct report *report, size_t count)
{
	return nest_array_begin(&text_of(report)->nest, count);
}

static void text_array_end(struct report *report)
{
	nest_array_end(&text_of(report)->nest);
}

static void text_hist_begin(struct report *report, const struct emit_hist *hist)
{
	struct text *text = text_of(report);
	const char *name = hist->title ? hist->title : hist->name;

	end_frame(text);
	if (text->some)
		out_putc(&report->out, '\n');
	text->some = true;
	text->column = NULL;
	nest_clear(&text->nest);
	out_visible(&report->out, name, strlen(name));
	if (hist->keyed)
		out_putc(&report->out, '[');
}

static void hist_footer(struct out *out, const struct emit_hist *hist)
{
	static const struct {
		const char *name;
		uint32_t per_mille;
	} quantiles[] = { { "p50", 500 }, { "p90", 900 }, { "p99", 990 }, { "p99.9", 999 } };
	struct value value = { .kind = VALUE_NUMBER, .unit = UNIT_COUNT, .digits = -1 };
	size_t i;

	out_puts(out, "n ");
	value.number = number_integer(histogram_count(hist->hist));
	value_text(&value, out, out);
	out_puts(out, "  mean ");
	value.unit = hist->unit;
	value.number = histogram_mean(hist->hist);
	value_text(&value, out, out);
	for (i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		out_printf(out, "  %s ", quantiles[i].name);
		value.number = histogram_quantile(hist->hist, quantiles[i].per_mille);
		value_text(&value, out, out);
	}
	out_putc(out, '\n');
}

struct bars {
	const struct emit_hist *hist;
	size_t label_width, count_width, bar_width;
	uint64_t most;
};

static void bar_line(struct out *out, const struct bars *bars, unsigned int slot)
{
	uint64_t count = bars->hist->hist->slot[slot];
	struct out label = { 0 }, number = { 0 };
	size_t filled = (unsigned __int128)count * bars->bar_width / bars->most;

	histogram_label(slot, bars->hist->unit, &label);
	out_integer(&number, count, true);
	out_append(out, out_text(&label), label.buf.size);
	out_fill(out, ' ', bars->label_width - label.buf.size + 1);
	out_fill(out, ' ', bars->count_width - number.buf.size);
	out_append(out, out_text(&number), number.buf.size);
	out_puts(out, " |");
	out_fill(out, '@', filled);
	out_fill(out, ' ', bars->bar_width - filled);
	out_puts(out, "|\n");
	if (label.error || number.error)
		out->error = -ENOMEM;
	out_deinit(&label);
	out_deinit(&number);
}

static void hist_bars(struct report *report, const struct emit_hist *hist, unsigned int first,
		      unsigned int last)
{
	size_t limit = report->options.width > 0 ? report->options.width : 80;
	struct bars bars = { .hist = hist };
	struct out scratch = { 0 };
	unsigned int i;

	for (i = first; i <= last; i++) {
		out_clear(&scratch);
		histogram_label(i, hist->unit, &scratch);
		if (scratch.buf.size > bars.label_width)
			bars.label_width = scratch.buf.size;
		out_clear(&scratch);
		out_integer(&scratch, hist->hist->slot[i], true);
		if (scratch.buf.size > bars.count_width)
			bars.count_width = scratch.buf.size;
		if (hist->hist->slot[i] > bars.most)
			bars.most = hist->hist->slot[i];
	}
	out_deinit(&scratch);
	bars.bar_width = 52;
	if (bars.label_width + bars.count_width + 4 + bars.bar_width > limit)
		bars.bar_width = limit > bars.label_width + bars.count_width + 14
					 ? limit - bars.label_width - bars.count_width - 4
					 : 10;
	for (i = first; i <= last && !report->out.error; i++)
		bar_line(&report->out, &bars, i);
}

static void text_hist_end(struct report *report, const struct emit_hist *hist)
{
	struct out *out = &report->out;
	unsigned int first, last;

	if (hist->keyed) {
		put_nest(report);
		out_putc(out, ']');
	}
	out_putc(out, '\n');
	if (hist->status > STATUS_SCALED) {
		out_printf(out, "%s\n", status_name(hist->status));
		return;
	}
	if (!histogram_range(hist->hist, &first, &last)) {
		out_puts(out, "empty\n");
		return;
	}
	hist_bars(report, hist, first, last);
	hist_footer(out, hist);
}

static void text_note(struct report *report, const char *note)
{
	end_frame(text_of(report));
	out_visible(&report->out, note, strlen(note));
	out_putc(&report->out, '\n');
}

static void text_text(struct report *report, const char *data, size_t size)
{
	end_frame(text_of(report));
	out_append(&report->out, data, size);
}

static void text_finish(struct report *report)
{
}

const struct emit_ops emit_text = {
	.name = "text",
	.open = text_open,
	.close = text_close,
	.value_begin = text_value_begin,
	.value_end = text_value_end,
	.table_begin = text_table_begin,
	.row_begin = text_row_begin,
	.cell_begin = text_cell_begin,
	.cell_end = text_cell_end,
	.row_end = text_row_end,
	.table_end = text_table_end,
	.value = text_value,
	.struct_begin = text_struct_begin,
	.member = text_member,
	.struct_end = text_struct_end,
	.array_begin = text_array_begin,
	.array_end = text_array_end,
	.hist_begin = text_hist_begin,
	.hist_end = text_hist_end,
	.note = text_note,
	.text = text_text,
	.finish = text_finish,
};
