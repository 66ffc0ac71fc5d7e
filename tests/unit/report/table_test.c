// SPDX-License-Identifier: BSD-2-Clause
/* Tables: what a person, a JSON reader and a spreadsheet get of the same rows. */
#include <string.h>

#include "fixture.h"

static const struct proc procs[] = { { 12, "busy" }, { 3, "idle" }, { 4567, "a\"b,c" } };
static const struct use uses[] = {
	{ { 1234567, 1000, 1000 }, { 2469134, 1000, 1000 }, 5 },
	{ { 0, 1000, 0 }, { 10, 1000, 1000 }, 1200 },
	{ { 100, 1000, 370 }, { 54, 1000, 370 }, 7 },
};

static struct report_map by_proc(const struct types *types)
{
	return (struct report_map){
		.name = "by_proc",
		.types = types,
		.key_type = fixture_struct(types, "proc"),
		.value_type = fixture_struct(types, "use"),
		.key_size = sizeof(struct proc),
		.value_size = sizeof(struct use),
		.cpus = 1,
		.count = 3,
		.keys = (const uint8_t *)procs,
		.values = (const uint8_t *)uses,
	};
}

static void text_table(void **state)
{
	struct report_map map = by_proc(*state);
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, "sort=-cycles ipc=insns/cycles:.2", NULL, 0),
			    "by_proc\n"
			    " pid  comm        cycles                    insns                "
			    "switches          ipc\n"
			    "  12  busy     1,234,567                2,469,134                "
			    "       5         2.00\n"
			    "4567  a\"b,c          270 (scaled 37 %)        145 (scaled 37 %)  "
			    "       7         0.54 (scaled 37 %)\n"
			    "   3  idle   not counted                       10                "
			    "   1,200  not counted\n");
	sink_close(&sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_table),
	};

	return cmocka_run_group_tests_name("report/table", tests, fixture_setup, fixture_teardown);
}
