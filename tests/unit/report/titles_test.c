// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "report/titles.h"

static void columns_carry_the_event(void **state)
{
	static const struct report_counter counters[] = {
		{ .member = "one", .event = "cycles:u", .by_event = true },
		{ .member = "two", .event = "", .by_event = true },
		{ .member = "three", .event = "cycles:u", .by_event = true },
		{ .member = "named", .event = "faults" },
	};
	static const struct report_options options = { .counters = counters, .ncounters = 4 };
	static const struct {
		const char *column, *title; /* NULL: not shown */
	} cases[] = {
		{ "one", "cycles:u" },         { "one_mean", "cycles:u_mean" },
		{ "use.one", "use.cycles:u" }, { "one_call.p99", "cycles:u_call.p99" },
		{ "onerous", "onerous" },      { "two", NULL },
		{ "two_self", NULL },          { "two_call.p50", NULL },
		{ "three", "cycles:u#2" },     { "three_self", "cycles:u#2_self" },
		{ "named", "named" },          { "pid", "pid" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char title[TITLE_MAX];
		bool shown = title_of(&options, cases[i].column, title, sizeof(title));

		assert_int_equal(shown, cases[i].title != NULL);
		if (shown)
			assert_string_equal(title, cases[i].title);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_carry_the_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
