// SPDX-License-Identifier: BSD-2-Clause
/* Text and numbers as every format writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "report/out.h"

#define FFFD "\xef\xbf\xbd"

static void utf8_is_made_valid(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "plain", "plain" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "a\x80z", "a" FFFD "z" },                  /* a continuation alone */
		{ "\xc0\x80", FFFD FFFD },                   /* overlong, two bytes */
		{ "\xe0\x80\xaf", FFFD FFFD FFFD },          /* overlong, three */
		{ "\xf0\x80\x80\xaf", FFFD FFFD FFFD FFFD }, /* overlong, four */
		{ "\xed\xa0\x80", FFFD FFFD FFFD },          /* a surrogate */
		{ "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80" }, /* its neighbours */
		{ "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD },                /* above U+10FFFF */
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
		{ "\xf5\x80\x80\x80", FFFD FFFD FFFD FFFD },
		{ "\xe2\x82", FFFD FFFD }, /* cut */
		{ "\xff\xfe", FFFD FFFD },
	};
	struct out out = { 0 };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		out_clear(&out);
		out_utf8(&out, cases[i].bytes, strlen(cases[i].bytes));
		assert_string_equal(out_text(&out), cases[i].text);
	}
	out_deinit(&out);
}

static void widths(void **state)
{
	/* e + combining accent, two wide ideographs, an emoji */
	const char *text = "e\xcc\x81\xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x98\x80";

	assert_int_equal(utf8_width(text, strlen(text)), 7);
	assert_int_equal(utf8_fit(text, strlen(text), 0), 0);
	assert_int_equal(utf8_fit(text, strlen(text), 1), 3);
	assert_int_equal(utf8_fit(text, strlen(text), 2), 3);
	assert_int_equal(utf8_fit(text, strlen(text), 3), 6);
	assert_int_equal(utf8_fit(text, strlen(text), 100), strlen(text));
}

static void controls_are_seen(void **state)
{
	struct out out = { 0 };

	out_visible(&out, "a\n\t\r\x1b[2J\x7f\xc2\x9b\xc2\xa0", 13);
	assert_string_equal(out_text(&out), "a\\n\\t\\r\\x1b[2J\\x7f\\x9b\xc2\xa0");
	out_deinit(&out);
}

static void numbers(void **state)
{
	struct out out = { 0 };
	__int128 lowest = (__int128)1 << 126;

	out_integer(&out, 0, true);
	out_puts(&out, " ");
	out_integer(&out, -999, true);
	out_puts(&out, " ");
	out_integer(&out, -1000, true);
	out_puts(&out, " ");
	out_integer(&out, -lowest - lowest, false);
	out_puts(&out, " ");
	out_real(&out, -1234.5, 1, true);
	out_puts(&out, " ");
	out_real(&out, -123.25, 2, true);
	out_puts(&out, " ");
	out_exact(&out, 0.1);
	out_puts(&out, " ");
	out_exact(&out, 5e-324);
	assert_string_equal(out_text(&out),
			    "0 -999 -1,000 -170141183460469231731687303715884105728 "
			    "-1,234.5 -123.25 0.1 4.94065645841247e-324");
	assert_true(strtod(strrchr(out_text(&out), ' '), NULL) == 5e-324);
	out_deinit(&out);
}

static void units(void **state)
{
	struct out out = { 0 };
	static const double ns[] = { 0, 999, 1000, 999994, 999996, 1.25e6, 60e9, 3.6e12, -1500 };
	static const double bytes[] = { 0, 1023, 1024, 1536, 0x1p40, 0x1p64 };
	size_t i;

	for (i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		out_ns(&out, ns[i]);
		out_putc(&out, ' ');
	}
	assert_string_equal(out_text(&out), "0 ns 999 ns 1.00 us 999.99 us 1.00 ms 1.25 ms 60.00 s "
					    "3,600.00 s -1.50 us ");
	out_clear(&out);
	for (i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		out_bytes(&out, bytes[i]);
		out_putc(&out, ' ');
	}
	assert_string_equal(out_text(&out), "0 B 1,023 B 1.00 KiB 1.50 KiB 1.00 TiB 16.00 EiB ");
	out_clear(&out);
	for (i = 0; i <= 64; i += 16) {
		out_power(&out, i);
		out_putc(&out, ' ');
	}
	assert_string_equal(out_text(&out), "1 64K 4G 256T 16E ");
	out_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_made_valid),
		cmocka_unit_test(widths),
		cmocka_unit_test(controls_are_seen),
		cmocka_unit_test(numbers),
		cmocka_unit_test(units),
	};

	return cmocka_run_group_tests_name("report/out", tests, NULL, NULL);
}
