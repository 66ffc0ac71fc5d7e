// SPDX-License-Identifier: BSD-2-Clause
#include "report/value.h"

#include <math.h>
#include <string.h>

#include "report/histogram.h"

const char *status_name(enum value_status status)
{
	static const char *const names[] = {
		[STATUS_OK] = "ok",
		[STATUS_SCALED] = "scaled",
		[STATUS_MISSING] = "missing",
		[STATUS_BACKWARDS] = "went backwards",
		[STATUS_APART] = "not together",
		[STATUS_NOT_COUNTED] = "not counted",
		[STATUS_NOT_SUPPORTED] = "not supported",
	};

	return names[status];
}

struct number number_real(double real)
{
	if (!isfinite(real))
		return number_flag(STATUS_MISSING);
	return (struct number){ .is_real = true, .real = real, .share = 1 };
}

double number_double(const struct number *number)
{
	return number->is_real ? number->real : (double)number->integer;
}

int number_compare(const struct number *a, const struct number *b)
{
	double x, y;

	if (!number_known(a) || !number_known(b))
		return number_known(a) - number_known(b);
	if (!a->is_real && !b->is_real)
		return (a->integer > b->integer) - (a->integer < b->integer);
	x = number_double(a);
	y = number_double(b);
	return (x > y) - (x < y);
}

void value_deinit(struct value *value)
{
	out_deinit(&value->text);
}

static void number_text(const struct value *value, struct out *text)
{
	const struct number *number = &value->number;
	double real = number_double(number), size = fabs(real);

	switch (value->unit) {
	case UNIT_BOOL:
		out_puts(text, number->integer ? "true" : "false");
		break;
	case UNIT_NS:
		out_ns(text, real);
		break;
	case UNIT_BYTES:
		out_bytes(text, real);
		break;
	case UNIT_PERCENT:
		out_real(text, real * 100, value->digits < 0 ? 1 : value->digits, true);
		out_puts(text, " %");
		break;
	case UNIT_COUNT:
	case UNIT_PLAIN:
		if (value->digits < 0 && number->is_real &&
		    (size >= 1e18 || (size > 0 && size < 0.005)))
			out_short(text, real);
		else if (value->digits > 0 || number->is_real)
			out_real(text, real, value->digits < 0 ? 2 : value->digits,
				 value->unit == UNIT_COUNT);
		else
			out_integer(text, number->integer, value->unit == UNIT_COUNT);
		break;
	}
}

static void stack_text(const struct value *value, const char *between, struct out *text)
{
	const char *frame = out_text(&value->text), *end = frame + value->text.buf.size;

	for (; frame < end; frame += strlen(frame) + 1) {
		if (frame != out_text(&value->text))
			out_puts(text, between);
		out_visible(text, frame, strlen(frame));
	}
}

void value_text(const struct value *value, struct out *text, struct out *flag)
{
	switch (value->kind) {
	case VALUE_NONE:
		out_putc(text, '-');
		break;
	case VALUE_TEXT:
		out_visible(text, out_text(&value->text), value->text.buf.size);
		break;
	case VALUE_STACK:
		stack_text(value, " < ", text);
		break;
	case VALUE_HIST:
		if (number_known(&value->number))
			histogram_summary(&value->hist, text);
		else
			out_puts(text, status_name(value->number.status));
		break;
	case VALUE_NUMBER:
	case VALUE_COUNTER:
		if (value->number.status == STATUS_MISSING)
			out_putc(text, '-');
		else if (number_known(&value->number))
			number_text(value, text);
		else
			out_puts(text, status_name(value->number.status));
		if (value->number.status == STATUS_SCALED) {
			out_puts(flag, "(scaled ");
			out_real(flag, value->number.share * 100, 0, false);
			out_puts(flag, " %)");
		}
		break;
	}
}

void value_exact(const struct value *value, struct out *text)
{
	switch (value->kind) {
	case VALUE_NONE:
	case VALUE_HIST:
		break;
	case VALUE_TEXT:
		out_append(text, out_text(&value->text), value->text.buf.size);
		break;
	case VALUE_STACK:
		stack_text(value, ";", text);
		break;
	case VALUE_NUMBER:
	case VALUE_COUNTER:
		if (!number_known(&value->number))
			break;
		if (value->unit == UNIT_BOOL)
			out_puts(text, value->number.integer ? "true" : "false");
		else if (value->number.is_real)
			out_exact(text, value->number.real);
		else
			out_integer(text, value->number.integer, false);
		break;
	}
}
