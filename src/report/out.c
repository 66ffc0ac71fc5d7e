// SPDX-License-Identifier: BSD-2-Clause
#include "report/out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void out_deinit(struct out *out)
{
	buf_deinit(&out->buf);
}

void out_clear(struct out *out)
{
	out->buf.size = 0;
	if (out->buf.data)
		out->buf.data[0] = 0;
	out->error = 0;
}

void out_append(struct out *out, const void *data, size_t size)
{
	if (!out->error)
		out->error = buf_append(&out->buf, data, size);
}

void out_puts(struct out *out, const char *text)
{
	out_append(out, text, strlen(text));
}

void out_putc(struct out *out, char c)
{
	out_append(out, &c, 1);
}

void out_fill(struct out *out, char c, size_t count)
{
	if (out->error)
		return;
	out->error = buf_reserve(&out->buf, count);
	if (out->error)
		return;
	memset(out->buf.data + out->buf.size, c, count);
	out->buf.size += count;
	out->buf.data[out->buf.size] = 0;
}

void out_printf(struct out *out, const char *format, ...)
{
	va_list args;

	if (out->error)
		return;
	va_start(args, format);
	out->error = buf_vprintf(&out->buf, format, args);
	va_end(args);
}

const char *out_text(const struct out *out)
{
	return out->buf.data ? out->buf.data : "";
}

void out_integer(struct out *out, __int128 value, bool thousands)
{
	unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
	char text[64];
	size_t at = sizeof(text);
	unsigned int digits = 0;

	do {
		if (thousands && digits && digits % 3 == 0)
			text[--at] = ',';
		text[--at] = '0' + (unsigned int)(rest % 10);
		rest /= 10;
		digits++;
	} while (rest);
	if (value < 0)
		text[--at] = '-';
	out_append(out, text + at, sizeof(text) - at);
}

/* A script may have called setlocale(): whatever the decimal point is, it becomes '.'. */
static void normalise_point(char *text)
{
	char *from = text, *to = text;
	bool point = false;

	for (; *from; from++) {
		if (strchr("0123456789+-e", *from)) {
			*to++ = *from;
		} else if (!point) {
			*to++ = '.';
			point = true;
		}
	}
	*to = 0;
}

void out_real(struct out *out, double value, int digits, bool thousands)
{
	char text[400], *point;
	size_t whole, i;

	snprintf(text, sizeof(text), "%.*f", digits, value);
	normalise_point(text);
	point = strchr(text, '.');
	whole = point ? (size_t)(point - text) : strlen(text);
	for (i = 0; i < whole; i++) {
		size_t left = whole - i;

		if (thousands && i && left % 3 == 0 && text[i - 1] != '-')
			out_putc(out, ',');
		out_putc(out, text[i]);
	}
	out_puts(out, text + whole);
}

void out_exact(struct out *out, double value)
{
	char text[64];
	int digits;

	for (digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	normalise_point(text);
	out_puts(out, text);
}

void out_short(struct out *out, double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.3g", value);
	normalise_point(text);
	out_puts(out, text);
}

struct scale {
	double unit;
	const char *name;
};

/* Two decimals above the base unit, so that a column of them lines up. */
static void out_scaled(struct out *out, double value, const struct scale *scales, size_t count)
{
	double size = fabs(value);
	size_t at = 0;

	/* 999.996 would print as 1000.00 */
	while (at + 1 < count && size >= scales[at + 1].unit * (at ? 0.999995 : 1))
		at++;
	out_real(out, value / scales[at].unit, at || value != floor(value) ? 2 : 0, true);
	out_printf(out, " %s", scales[at].name);
}

void out_ns(struct out *out, double value)
{
	static const struct scale scales[] = {
		{ 1, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" }
	};

	out_scaled(out, value, scales, sizeof(scales) / sizeof(scales[0]));
}

void out_bytes(struct out *out, double value)
{
	static const struct scale scales[] = { { 1, "B" },        { 0x1p10, "KiB" },
					       { 0x1p20, "MiB" }, { 0x1p30, "GiB" },
					       { 0x1p40, "TiB" }, { 0x1p50, "PiB" },
					       { 0x1p60, "EiB" } };

	out_scaled(out, value, scales, sizeof(scales) / sizeof(scales[0]));
}

void out_power(struct out *out, unsigned int exponent)
{
	static const char letters[] = " KMGTPE";
	unsigned int thousands = exponent / 10;

	if (thousands > 6)
		thousands = 6;
	out_printf(out, "%u", 1U << (exponent - thousands * 10));
	if (thousands)
		out_putc(out, letters[thousands]);
}
