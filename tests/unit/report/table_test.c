// SPDX-License-Identifier: BSD-2-Clause
/* Tables: what a person, a JSON reader and a spreadsheet get of the same rows. */
#include <stdlib.h>
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

static void check(void **state, enum report_format format, const char *options,
		  const char *expected)
{
	struct report_map map = by_proc(*state);
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = format });
	assert_string_equal(sink_print(&sink, &map, options, NULL, 0), expected);
	sink_close(&sink);
}

static void text_table(void **state)
{
	check(state, REPORT_TEXT, "sort=-cycles ipc=insns/cycles:.2",
	      "by_proc\n"
	      " pid  comm        cycles                    insns                "
	      "switches          ipc\n"
	      "  12  busy     1,234,567                2,469,134                "
	      "       5         2.00\n"
	      "4567  a\"b,c          270 (scaled 37 %)        145 (scaled 37 %)  "
	      "       7         0.54 (scaled 37 %)\n"
	      "   3  idle   not counted                       10                "
	      "   1,200  not counted\n");
}

static void json_table(void **state)
{
	check(state, REPORT_JSON, "sort=-cycles ipc=insns/cycles:.2 cols=pid,comm,cycles,ipc",
	      "{\"type\":\"table\",\"name\":\"by_proc\",\"rows\":["
	      "{\"pid\":12,\"comm\":\"busy\",\"cycles\":{\"value\":1234567,\"status\":\"ok\","
	      "\"running\":1,\"enabled_ns\":1000},\"ipc\":2},"
	      "{\"pid\":4567,\"comm\":\"a\\\"b,c\",\"cycles\":{\"value\":270,\"status\":\"scaled\","
	      "\"running\":0.37,\"enabled_ns\":1000},\"ipc\":0.5370370370370371,"
	      "\"ipc.status\":\"scaled\"},"
	      "{\"pid\":3,\"comm\":\"idle\",\"cycles\":{\"value\":null,\"status\":\"not counted\","
	      "\"running\":0,\"enabled_ns\":1000},\"ipc\":null,\"ipc.status\":\"not "
	      "counted\"}]}\n");
}

static void csv_table(void **state)
{
	check(state, REPORT_CSV, "sort=-cycles ipc=insns/cycles:.2 cols=pid,comm,cycles,ipc",
	      "pid,comm,cycles,cycles.status,ipc,ipc.status\n"
	      "12,busy,1234567,ok,2,ok\n"
	      "4567,\"a\"\"b,c\",270,scaled,0.5370370370370371,scaled\n"
	      "3,idle,,not counted,,not counted\n");
}

static void csv_takes_any_separator(void **state)
{
	struct report_map map = by_proc(*state);
	struct report_options options = { .format = REPORT_CSV, .separator = '"' };
	struct report *report = NULL;
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV, .separator = 'i' });
	assert_string_equal(sink_print(&sink, &map, "sort=pid cols=pid,comm", NULL, 0),
			    "\"pid\"icomm\n3i\"idle\"\n12ibusy\n4567i\"a\"\"b,c\"\n");
	options.out = sink.file;
	assert_int_equal(report_create(&options, &report, &err), -22);
	assert_null(report);
	sink_close(&sink);
}

static void csv_repeats_no_header(void **state)
{
	struct report_map map = by_proc(*state), other = map;
	struct sink sink;
	char all[400];

	other.name = "second";
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	strcpy(all, sink_print(&sink, &map, "cols=pid top=1", NULL, 0));
	strcat(all, sink_print(&sink, &map, "cols=pid top=1", NULL, 0));
	strcat(all, sink_print(&sink, &other, "cols=pid top=1", NULL, 0));
	assert_string_equal(all, "pid\n3\n3\n\n# second\npid\n3\n");
	sink_close(&sink);
}

static void rows_without_order_come_by_key(void **state)
{
	check(state, REPORT_TEXT, "cols=pid,switches",
	      "by_proc\n pid  switches\n   3     1,200\n  12         5\n4567         7\n");
}

static void title_and_cut_are_told(void **state)
{
	check(state, REPORT_TEXT, "cols=pid top=1 title='Who works?'",
	      "Who works? (1 of 3 rows)\npid\n  3\n");
	check(state, REPORT_JSON, "cols=pid top=1 title='Who works?'",
	      "{\"type\":\"table\",\"name\":\"by_proc\",\"title\":\"Who works?\","
	      "\"rows_in_map\":3,\"rows\":[{\"pid\":3}]}\n");
}

static void unsupported_is_never_a_number(void **state)
{
	static const struct report_counter counters[] = { { "cycles", "cycles", true },
							  { "insns", "instructions", false } };
	struct report_map map = by_proc(*state);
	const char *options = "cols=pid,insns,ipc ipc=insns/cycles:.2 top=1";
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, options, counters, 2),
			    "by_proc (1 of 3 rows)\n"
			    "pid          insns            ipc\n"
			    "  3  not supported  not supported\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(sink_print(&sink, &map, options, counters, 2),
			    "pid,insns,insns.status,ipc,ipc.status\n"
			    "3,,not supported,,not supported\n");
	sink_close(&sink);
	/* A counter without a name of its own has that of its column. */
	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, "cols=pid,lacking lacking=cycles top=1",
				       &(struct report_counter){ "lacking", "cycles", false }, 1),
			    "by_proc (1 of 3 rows)\n"
			    "pid        lacking\n"
			    "  3  not supported\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_string_equal(
		sink_print(&sink, &map, "cols=insns,share share=insns/total(insns) top=1", counters,
			   2),
		"{\"type\":\"table\",\"name\":\"by_proc\",\"rows_in_map\":3,\"rows\":[{\"insns\":"
		"{\"value\":null,\"status\":\"not supported\",\"running\":1,\"enabled_ns\":1000},"
		"\"share\":null,\"share.status\":\"not supported\"}]}\n");
	sink_close(&sink);
}

static void another_event_is_named_in_the_header(void **state)
{
	static const struct report_counter counters[] = {
		{ "cycles", "cpu-clock", true, true },
		{ "insns", "instructions:u", true, false },
		{ "elsewhere", "page-faults", true, true },
	};
	struct report_map map = by_proc(*state);
	const char *options = "cols=pid,ipc ipc=insns/cycles:.2 top=1";
	struct sink sink;

	sink_open(&sink, (struct report_options){
				 .format = REPORT_TEXT, .counters = counters, .ncounters = 3 });
	assert_memory_equal(sink_print(&sink, &map, options, counters, 3),
			    "by_proc (cycles = cpu-clock) (1 of 3 rows)\n", 43);
	sink_close(&sink);
	sink_open(&sink, (struct report_options){
				 .format = REPORT_JSON, .counters = counters, .ncounters = 3 });
	assert_non_null(strstr(sink_print(&sink, &map, options, counters, 3),
			       "\"name\":\"by_proc\",\"events\":{\"cycles\":\"cpu-clock\"},"));
	sink_close(&sink);
}

static void totals_tell_what_they_leave_out(void **state)
{
	check(state, REPORT_TEXT, "cols=pid,share share=switches/total(cycles):.3 sort=pid top=1",
	      "by_proc (1 of 3 rows)\n"
	      "pid  share\n"
	      "  3  0.001 (scaled 37 %)\n"
	      "by_proc: total(cycles) leaves out 1 of 3 rows: not counted\n");
	check(state, REPORT_TEXT, "cols=pid,share share=switches/total(switches):.1%",
	      "by_proc\n pid   share\n   3  99.0 %\n  12   0.4 %\n4567   0.6 %\n");
}

static void empty_map(void **state)
{
	struct report_map map = by_proc(*state);
	struct sink sink;

	map.count = 0;
	map.keys = map.values = NULL;
	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, "cols=pid,a a=pid/total(pid)", NULL, 0),
			    "by_proc\npid  a\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0),
			    "{\"type\":\"table\",\"name\":\"by_proc\",\"rows\":[]}\n");
	sink_close(&sink);
}

/* 2^64-1 counts over 2^63 ns enabled, 2^62+1 running: 64-bit products would be rubbish. */
static void scaling_is_exact(void **state)
{
	static const struct pmu_sum huge[] = {
		{ UINT64_MAX, 1ULL << 63, (1ULL << 62) + 1 },
		{ UINT64_MAX, UINT64_MAX, 1 },
		{ 3, 2, 2 },
		{ 3, 2, 5 },
		{ 10, 3, 2 },
		{ 5, 0, 0 },
	};
	static const u32 keys[] = { 0, 1, 2, 3, 4, 5 };
	struct report_map map = { .name = "counts",
				  .types = *state,
				  .key_size = 4,
				  .value_size = sizeof(huge[0]),
				  .count = 6,
				  .keys = (const uint8_t *)keys,
				  .values = (const uint8_t *)huge };
	struct sink sink;

	map.key_type = fixture_typedef(*state, "u32");
	map.value_type = fixture_struct(*state, "pmu_sum");
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0),
			    "key,value,value.status\n"
			    "0,36893488147419103222,scaled\n"
			    "1,170141183460469231731687303715884105727,scaled\n"
			    "2,3,ok\n"
			    "3,3,ok\n"
			    "4,15,scaled\n"
			    "5,,not counted\n");
	sink_close(&sink);
}

static void scalars_and_renamed_key(void **state)
{
	static const u32 keys[] = { 70000, 2 }, values[] = { 1000000, 3 };
	struct report_map map = { .name = "m",
				  .types = *state,
				  .key_type = fixture_typedef(*state, "u32"),
				  .value_type = fixture_typedef(*state, "u32"),
				  .key_size = 4,
				  .value_size = 4,
				  .count = 2,
				  .keys = (const uint8_t *)keys,
				  .values = (const uint8_t *)values };
	static const struct report_counter lacking = { "m", "x", false };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, "key=qid sort=-value", NULL, 0),
			    "m\n  qid      value\n70000  1,000,000\n    2          3\n");
	assert_string_equal(sink_print(&sink, &map, "top=1", &lacking, 1),
			    "\nm (1 of 2 rows)\nkey          value\n  2  not supported\n");
	sink_close(&sink);
}

static void unknown_types_are_hex(void **state)
{
	static const uint8_t keys[] = { 1, 2, 0xff }, values[] = { 0, 0x10, 9, 1, 2, 3 };
	struct report_map map = { .name = "m",
				  .key_size = 3,
				  .value_size = 6,
				  .count = 1,
				  .keys = keys,
				  .values = values };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0),
			    "m\nkey       value\n01 02 ff  00 10 09 01 02 03\n");
	/* A type larger than the bytes is not believed. */
	map.types = *state;
	map.key_type = fixture_struct(*state, "zoo");
	map.value_type = fixture_struct(*state, "zoo");
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0),
			    "\nm\nkey       value\n01 02 ff  00 10 09 01 02 03\n");
	sink_close(&sink);
}

static void cpus_are_summed(void **state)
{
	struct {
		u32 value, pad;
	} values[2][3] = { { { 4000000000u, 1 }, { 4000000000u, 1 }, { 1, 1 } }, { { 7, 0 } } };
	static const u32 keys[] = { 1, 2 };
	struct report_map map = { .name = "m",
				  .types = *state,
				  .key_type = fixture_typedef(*state, "u32"),
				  .value_type = fixture_typedef(*state, "u32"),
				  .key_size = 4,
				  .value_size = 4,
				  .cpus = 3,
				  .count = 2,
				  .keys = (const uint8_t *)keys,
				  .values = (const uint8_t *)values };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0), "key,value\n1,8000000001\n2,7\n");
	assert_string_equal(sink_print(&sink, &map, "percpu where=value", NULL, 0),
			    "\n# m\nkey,cpu,value\n1,0,4000000000\n1,1,4000000000\n1,2,1\n2,0,7\n");
	sink_close(&sink);
}

static void counters_and_hists_are_summed(void **state)
{
	struct cost costs[2] = { { 1, 2, { .slot = { 1, 2 }, .sum = 7, .n = 3 } },
				 { 10, 20, { .slot = { 0, 1, 1 }, .sum = 8, .n = 2 } } };
	static const u32 key = 9;
	struct report_map map = { .name = "m",
				  .types = *state,
				  .key_type = fixture_typedef(*state, "u32"),
				  .value_type = fixture_struct(*state, "cost"),
				  .key_size = 4,
				  .value_size = sizeof(costs[0]),
				  .cpus = 2,
				  .count = 1,
				  .keys = (const uint8_t *)&key,
				  .values = (const uint8_t *)costs };
	struct use both[2] = { { { 10, 100, 100 }, { 1, 100, 50 }, 1 },
			       { { 20, 100, 100 }, { 2, 100, 50 }, 2 } };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(
		sink_print(&sink, &map, "", NULL, 0),
		"key,calls,moved,misses.n,misses.mean,misses.p50,misses.p99,misses.max\n"
		"9,11,22,5,3,3,7,7\n");
	map.value_type = fixture_struct(*state, "use");
	map.value_size = sizeof(both[0]);
	map.values = (const uint8_t *)both;
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0),
			    "\n# m\nkey,cycles,cycles.status,insns,insns.status,switches\n"
			    "9,30,ok,6,scaled,3\n");
	sink_close(&sink);
}

static void width_cuts_the_last_text(void **state)
{
	static const struct proc keys[] = { { 1, "a\xc3\xa9\xe6\x97\xa5\xe6\x9c\xac-long" },
					    { 2, "plain-and-longer" } };
	static const u32 values[] = { 1, 2 };
	struct report_map map = { .name = "m",
				  .types = *state,
				  .key_type = fixture_struct(*state, "proc"),
				  .value_type = fixture_typedef(*state, "u32"),
				  .key_size = sizeof(keys[0]),
				  .value_size = 4,
				  .count = 2,
				  .keys = (const uint8_t *)keys,
				  .values = (const uint8_t *)values };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT, .width = 20 });
	assert_string_equal(sink_print(&sink, &map, "", NULL, 0),
			    "m\n"
			    "pid  comm      value\n"
			    "  1  a\xc3\xa9\xe6\x97\xa5\xe6\x9c\xac-\xe2\x80\xa6      1\n"
			    "  2  plain-a\xe2\x80\xa6      2\n");
	sink_close(&sink);
}

static void bad_bytes_stay_valid(void **state)
{
	static const struct proc keys[] = { { 1, "a\xff\x01\n\xc3" } };
	static const u32 values[] = { 1 };
	struct report_map map = { .name = "m",
				  .types = *state,
				  .key_type = fixture_struct(*state, "proc"),
				  .value_type = fixture_typedef(*state, "u32"),
				  .key_size = sizeof(keys[0]),
				  .value_size = 4,
				  .count = 1,
				  .keys = (const uint8_t *)keys,
				  .values = (const uint8_t *)values };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	assert_string_equal(sink_print(&sink, &map, "cols=comm", NULL, 0),
			    "m\ncomm\na\xef\xbf\xbd\\x01\\n\xef\xbf\xbd\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_string_equal(sink_print(&sink, &map, "cols=comm", NULL, 0),
			    "{\"type\":\"table\",\"name\":\"m\",\"rows\":[{\"comm\":"
			    "\"a\xef\xbf\xbd\\u0001\\n\xef\xbf\xbd\"}]}\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(sink_print(&sink, &map, "cols=comm,pid", NULL, 0),
			    "comm,pid\n\"a\xef\xbf\xbd\x01\n\xef\xbf\xbd\",1\n");
	sink_close(&sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_table),
		cmocka_unit_test(json_table),
		cmocka_unit_test(csv_table),
		cmocka_unit_test(csv_takes_any_separator),
		cmocka_unit_test(csv_repeats_no_header),
		cmocka_unit_test(rows_without_order_come_by_key),
		cmocka_unit_test(title_and_cut_are_told),
		cmocka_unit_test(unsupported_is_never_a_number),
		cmocka_unit_test(another_event_is_named_in_the_header),
		cmocka_unit_test(totals_tell_what_they_leave_out),
		cmocka_unit_test(empty_map),
		cmocka_unit_test(scaling_is_exact),
		cmocka_unit_test(scalars_and_renamed_key),
		cmocka_unit_test(unknown_types_are_hex),
		cmocka_unit_test(cpus_are_summed),
		cmocka_unit_test(counters_and_hists_are_summed),
		cmocka_unit_test(width_cuts_the_last_text),
		cmocka_unit_test(bad_bytes_stay_valid),
	};

	return cmocka_run_group_tests_name("report/table", tests, fixture_setup, fixture_teardown);
}
