// SPDX-License-Identifier: BSD-2-Clause
#include "report/out.h"

#include <string.h>

/*
 * The code point at the start of @text, its length in @length; -1 for a byte that starts no valid
 * sequence (overlong forms, surrogates and values above U+10FFFF included, as in RFC 3629).
 */
static int32_t utf8_decode(const unsigned char *text, size_t size, size_t *length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t point;
	size_t need, i;

	*length = 1;
	if (text[0] < 0x80)
		return text[0];
	if (text[0] >= 0xf0 && text[0] < 0xf5)
		need = 4;
	else if (text[0] >= 0xe0 && text[0] < 0xf0)
		need = 3;
	else if (text[0] >= 0xc2 && text[0] < 0xe0)
		need = 2;
	else
		return -1;
	if (need > size)
		return -1;
	point = text[0] & (0xff >> (need + 1));
	for (i = 1; i < need; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return -1;
		point = point << 6 | (text[i] & 0x3f);
	}
	if (point < least[need] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return -1;
	*length = need;
	return point;
}

void out_utf8(struct out *out, const void *data, size_t size)
{
	const unsigned char *text = data;
	size_t at = 0, good = 0, length;

	for (; at < size; at += length) {
		if (utf8_decode(text + at, size - at, &length) >= 0)
			continue;
		out_append(out, text + good, at - good);
		out_puts(out, "\xef\xbf\xbd");
		good = at + 1;
	}
	out_append(out, text + good, size - good);
}

void out_visible(struct out *out, const char *text, size_t size)
{
	size_t i, good = 0;

	for (i = 0; i < size; i++) {
		unsigned char c = text[i];
		/* C1 controls are two bytes in UTF-8 */
		bool c1 = c == 0xc2 && i + 1 < size && (unsigned char)text[i + 1] < 0xa0;

		if (c >= 0x20 && c != 0x7f && !c1)
			continue;
		out_append(out, text + good, i - good);
		if (c == '\n')
			out_puts(out, "\\n");
		else if (c == '\t')
			out_puts(out, "\\t");
		else if (c == '\r')
			out_puts(out, "\\r");
		else
			out_printf(out, "\\x%02x", c1 ? (unsigned char)text[++i] : c);
		good = i + 1;
	}
	out_append(out, text + good, size - good);
}

struct range {
	int32_t first, last;
};

static bool inside(int32_t point, const struct range *ranges, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	}
	return false;
}

/*
 * wcwidth() answers for the process's locale, which is "C" unless somebody changed it, so the
 * large blocks are listed here: combining marks take no column, East Asian and emoji take two.
 */
static size_t point_width(int32_t point)
{
	static const struct range none[] = { { 0x300, 0x36f },   { 0x483, 0x489 },
					     { 0x591, 0x5bd },   { 0x64b, 0x65f },
					     { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
					     { 0x200b, 0x200f }, { 0x20d0, 0x20ff },
					     { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f } };
	static const struct range wide[] = { { 0x1100, 0x115f },   { 0x2e80, 0x303e },
					     { 0x3041, 0xa4cf },   { 0xac00, 0xd7a3 },
					     { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },
					     { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
					     { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
					     { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd } };

	if (point < 0x300)
		return 1;
	if (inside(point, none, sizeof(none) / sizeof(none[0])))
		return 0;
	return inside(point, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

size_t utf8_width(const char *text, size_t size)
{
	size_t at = 0, width = 0, length;

	while (at < size) {
		width += point_width(
			utf8_decode((const unsigned char *)text + at, size - at, &length));
		at += length;
	}
	return width;
}

size_t utf8_fit(const char *text, size_t size, size_t width)
{
	size_t at = 0, used = 0, length;

	while (at < size) {
		used += point_width(
			utf8_decode((const unsigned char *)text + at, size - at, &length));
		if (used > width)
			break;
		at += length;
	}
	return at;
}
