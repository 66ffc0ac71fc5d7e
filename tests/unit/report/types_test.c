// SPDX-License-Identifier: BSD-2-Clause
/* Every kind of type that BTF has, as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static struct zoo next_zoo;

static struct zoo filled(void)
{
	struct zoo zoo = {
		.tiny = -1,
		.byte = 255,
		.short_ = -2,
		.plain = -1234567,
		.big = INT64_MIN,
		.ubig = UINT64_MAX,
		.flag = 1,
		.color = BLUE,
		.large = LARGE,
		.name = "unended", /* and filled to the brim below */
		.raw = { 1, 2, 3, 4 },
		.pointer = (const void *)0x1000,
		.inner = { 7, { 8 } },
		.pair = { { 1, { 2 } }, { 3, { 4 } } },
		.either = { .first = 99 },
		.hidden = 5,
		.low = 5,
		.high = -16,
		.paint = GREEN,
		.single = 0.5f,
		.twice = 1e300,
		.time = 1250000,
		.size = 1536,
		.group = 42,
		.where = 0xffffffff81000010,
		.cpu = 12345,
		.qualified = 999,
		.times = { 1, 2000000000 },
	};

	memcpy(zoo.name, "12345678", 8);
	return zoo;
}

static const char *cgroup(void *context, uint64_t id)
{
	return id == 42 ? "/system.slice" : NULL;
}

static const char *kernel_address(void *context, uint64_t address)
{
	return address == 0xffffffff81000010 ? "vfs_read+0x10" : NULL;
}

static const char *user_address(void *context, uint32_t pid, uint64_t address)
{
	return pid == 77 && address == 2 ? "main+0x2" : NULL;
}

static size_t stack(void *context, int32_t id, bool user, uint64_t *addresses, size_t max)
{
	if (id < 0)
		return 0;
	addresses[0] = user ? 2 : 0xffffffff81000010;
	addresses[1] = 0x20;
	return 2;
}

static const struct report_names names = { NULL, cgroup, kernel_address, stack, user_address };

static void zoo_as_text(void **state)
{
	struct zoo zoo = filled();
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .names = names });
	assert_int_equal(report_value_print(sink.report, "zoo", *state,
					    fixture_struct(*state, "zoo"), &zoo, sizeof(zoo), &err),
			 0);
	assert_string_equal(
		sink_text(&sink),
		"zoo = {tiny = -1, byte = 255, short_ = -2, plain = -1,234,567, "
		"big = -9,223,372,036,854,775,808, ubig = 18,446,744,073,709,551,615, flag = true, "
		"color = BLUE, large = LARGE, name = 12345678, raw = [1, 2, 3, 4], "
		"pointer = 0x1000, inner = {x = 7, deep = {y = 8}}, "
		"pair = [{x = 1, deep = {y = 2}}, {x = 3, deep = {y = 4}}], "
		"either = {first = 99, other = 1.39e-43}, hidden = 5, low = 5, high = -16, "
		"paint = GREEN, single = 0.50, twice = 1e+300, "
		"time = 1.25 ms, size = 1.50 KiB, group = /system.slice, where = vfs_read+0x10, "
		"cpu = 12345, qualified = 999 ns, times = [1 ns, 2.00 s], next = 0x0}\n");
	sink_close(&sink);
}

static void zoo_as_json(void **state)
{
	struct zoo zoo = filled();
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	zoo.next = &next_zoo;
	zoo.next = (struct zoo *)0xabc;
	assert_int_equal(report_value_print(sink.report, "zoo", *state,
					    fixture_struct(*state, "zoo"), &zoo, sizeof(zoo), &err),
			 0);
	assert_string_equal(
		sink_text(&sink),
		"{\"type\":\"value\",\"name\":\"zoo\",\"value\":{\"tiny\":-1,\"byte\":255,"
		"\"short_\":-2,\"plain\":-1234567,\"big\":-9223372036854775808,"
		"\"ubig\":18446744073709551615,\"flag\":true,\"color\":\"BLUE\",\"large\":"
		"\"LARGE\","
		"\"name\":\"12345678\",\"raw\":[1,2,3,4],\"pointer\":\"0x1000\","
		"\"inner\":{\"x\":7,\"deep\":{\"y\":8}},\"pair\":[{\"x\":1,\"deep\":{\"y\":2}},"
		"{\"x\":3,\"deep\":{\"y\":4}}],\"either\":{\"first\":99,"
		"\"other\":1.3872854796815689e-43},\"hidden\":5,\"low\":5,\"high\":-16,"
		"\"paint\":\"GREEN\",\"single\":0.5,\"twice\":1e+300,\"time\":1250000,\"size\":"
		"1536,"
		"\"group\":42,\"where\":\"0xffffffff81000010\",\"cpu\":12345,\"qualified\":999,"
		"\"times\":[1,2000000000],\"next\":\"0xabc\"}}\n");
	sink_close(&sink);
}

/* The columns of a table: flat, a union by its first member; the rest by path. */
static void zoo_as_columns(void **state)
{
	struct zoo zoo = filled();
	static const u32 key = 1;
	struct report_map map = { .name = "zoos",
				  .types = *state,
				  .key_type = fixture_typedef(*state, "u32"),
				  .value_type = fixture_struct(*state, "zoo"),
				  .key_size = 4,
				  .value_size = sizeof(zoo),
				  .count = 1,
				  .keys = (const uint8_t *)&key,
				  .values = (const uint8_t *)&zoo };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV, .names = names });
	assert_string_equal(
		sink_print(&sink, &map, "", NULL, 0),
		"key,tiny,byte,short_,plain,big,ubig,flag,color,large,name,raw,pointer,inner.x,"
		"inner.deep.y,pair,either.first,hidden,low,high,paint,single,twice,time,size,group,"
		"where,cpu,qualified,times,next\n"
		"1,-1,255,-2,-1234567,-9223372036854775808,18446744073709551615,true,BLUE,LARGE,"
		"12345678,\"[1, 2, 3, 4]\",0x1000,7,8,"
		"\"[{x = 1, deep = {y = 2}}, {x = 3, deep = {y = "
		"4}}]\",99,5,5,-16,GREEN,0.5,1e+300,"
		"1250000,1536,/system.slice,vfs_read+0x10,12345,999,\"[1, 2000000000]\",0x0\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(
		sink_print(&sink, &map,
			   "cols=pair[1].deep.y,raw[3],either.other,value.plain,key,sum "
			   "sum=times[1]+raw[0]+color",
			   NULL, 0),
		"pair[1].deep.y,raw[3],either.other,value.plain,key,sum\n"
		"4,4,1.3872854796815689e-43,-1234567,1,2000000000\n");
	sink_close(&sink);
}

static void stacks_have_names(void **state)
{
	struct {
		struct wide_value value;
	} rows[2] = { { { .kernel = 3, .user = 4, .giant = (unsigned __int128)1 << 100 } },
		      { { .kernel = -14, .user = -14 } } };
	static const struct proc keys[2] = { { 77, "x" }, { 78, "y" } };
	struct report_map map = { .name = "stacks",
				  .types = *state,
				  .key_type = fixture_struct(*state, "proc"),
				  .value_type = fixture_struct(*state, "wide_value"),
				  .key_size = sizeof(keys[0]),
				  .value_size = sizeof(rows[0]),
				  .count = 2,
				  .keys = (const uint8_t *)keys,
				  .values = (const uint8_t *)rows };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .names = names });
	assert_string_equal(
		sink_print(&sink, &map, "cols=kernel,user,giant", NULL, 0),
		"stacks\n"
		"kernel                user                                              "
		"   giant\n"
		"vfs_read+0x10 < 0x20  main+0x2 < 0x20  "
		"1,267,650,600,228,229,401,496,703,205,376\n"
		"-14                   -14                                               "
		"       0\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_JSON, .names = names });
	assert_string_equal(sink_print(&sink, &map, "cols=kernel,giant top=1", NULL, 0),
			    "{\"type\":\"table\",\"name\":\"stacks\",\"rows_in_map\":2,\"rows\":["
			    "{\"kernel\":[\"vfs_read+0x10\",\"0x20\"],"
			    "\"giant\":1267650600228229401496703205376}]}\n");
	sink_close(&sink);
}

static void a_section_has_a_line_per_variable(void **state)
{
	uint32_t id = types_find(*state, BTF_KIND_DATASEC, ".data");
	uint8_t bytes[8192] = { 0 };
	struct err err = { 0 };
	struct sink sink;
	const char *text;

	assert_int_not_equal(id, 0);
	sink_open(&sink, (struct report_options){ 0 });
	assert_int_equal(
		report_value_print(sink.report, ".data", *state, id, bytes, sizeof(bytes), &err),
		0);
	text = sink_text(&sink);
	assert_memory_equal(text, ".data = {\n\t", 11);
	assert_non_null(strstr(text, "\n\tnumber = 0"));
	assert_non_null(strstr(text, "\n\tproc_key = {pid = 0, comm = }"));
	assert_non_null(strstr(text, "cycles = not counted"));
	assert_string_equal(text + strlen(text) - 3, "\n}\n");
	sink_close(&sink);
}

static void a_variable_of_a_missing_event(void **state)
{
	static const struct report_counter lacking = { "insns", "instructions", false };
	uint32_t id = types_find(*state, BTF_KIND_VAR, "insns");
	uint64_t value = 0;
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .counters = &lacking, .ncounters = 1 });
	assert_int_equal(report_value_print(sink.report, "insns", *state, id, &value, 8, &err), 0);
	assert_string_equal(sink_text(&sink), "insns = not supported\n");
	assert_int_equal(report_value_print(sink.report, "short", *state,
					    fixture_struct(*state, "zoo"), &value, 3, &err),
			 0);
	assert_string_equal(sink_text(&sink), "short = 00 00 00\n");
	sink_close(&sink);
}

/* Types of a damaged file that still pass validation may lie about everything but their shape. */
static void damaged_types(void **state)
{
	static const char *const structs[] = { "zoo", "use", "cost", "wide_value", "proc" };
	size_t size, round, accepted = 0, i;
	const uint8_t *whole = types_data(*state, &size);
	uint8_t *copy = malloc(size), *bytes = calloc(1, 600);
	uint64_t seed = 7;
	struct sink sinks[3];

	for (i = 0; i < 3; i++)
		sink_open(&sinks[i], (struct report_options){ .format = i, .names = names });
	for (round = 0; round < 4000; round++) {
		struct types *types = NULL;
		struct err err = { 0 };

		memcpy(copy, whole, size);
		for (i = 0; i <= round % 3; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			copy[24 + (seed >> 33) % (size - 24)] = seed >> 20;
		}
		if (types_open(copy, size, &types, &err))
			continue;
		accepted++;
		for (i = 0; i < 5; i++) {
			uint32_t id = types_find(types, BTF_KIND_STRUCT, structs[i]);
			struct report_map map = { .name = "m",
						  .types = types,
						  .key_type = id,
						  .value_type = id,
						  .key_size = 600,
						  .value_size = 600,
						  .count = 1,
						  .keys = bytes,
						  .values = bytes };
			struct report_view *view = NULL;

			assert_int_equal(report_value_print(sinks[round % 3].report, "v", types, id,
							    bytes, 600, &err),
					 0);
			assert_int_equal(
				report_view_compile(&map, "since-last", NULL, 0, &view, &err), 0);
			assert_int_equal(
				report_map_print(sinks[round % 3].report, view, &map, &err), 0);
			report_view_free(view);
		}
		types_close(types);
	}
	assert_true(accepted > 100);
	for (i = 0; i < 3; i++)
		sink_close(&sinks[i]);
	free(copy);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zoo_as_text),
		cmocka_unit_test(zoo_as_json),
		cmocka_unit_test(zoo_as_columns),
		cmocka_unit_test(stacks_have_names),
		cmocka_unit_test(a_section_has_a_line_per_variable),
		cmocka_unit_test(a_variable_of_a_missing_event),
		cmocka_unit_test(damaged_types),
	};

	return cmocka_run_group_tests_name("report/types", tests, fixture_setup, fixture_teardown);
}
