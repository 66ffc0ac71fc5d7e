// SPDX-License-Identifier: BSD-2-Clause
/* Option strings: what they may say, how they fail, what changes between two prints. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static const struct proc procs[] = { { 1, "one" }, { 2, "two" }, { 3, "three" }, { 4, "four" } };

static struct report_map map_of(const struct types *types, const struct use *uses, size_t count)
{
	return (struct report_map){
		.name = "by_proc",
		.types = types,
		.key_type = fixture_struct(types, "proc"),
		.value_type = fixture_struct(types, "use"),
		.key_size = sizeof(struct proc),
		.value_size = sizeof(struct use),
		.count = count,
		.keys = (const uint8_t *)procs,
		.values = (const uint8_t *)uses,
	};
}

static const struct use four[] = {
	{ { 100, 10, 10 }, { 50, 10, 10 }, 7 },
	{ { 300, 10, 10 }, { 60, 10, 10 }, 5 },
	{ { 0, 10, 0 }, { 70, 10, 10 }, 7 },
	{ { 200, 10, 5 }, { 0, 10, 10 }, 5 },
};

/* A compiled print of four rows as CSV, or the error. */
static void check(void **state, const char *options, const char *expected)
{
	struct report_map map = map_of(*state, four, 4);
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(sink_print(&sink, &map, options, NULL, 0), expected);
	sink_close(&sink);
}

static void errors_name_the_way_out(void **state)
{
	static const struct {
		const char *options, *error;
	} cases[] = {
		{ "sort=-cyclse", "no column `cyclse`: did you mean cycles?: columns: pid, comm, "
				  "cycles, insns, switches" },
		{ "cols=pid,comn",
		  "no column `comn`: did you mean comm?: columns: pid, comm, cycles, insns, "
		  "switches" },
		{ "x=zzzzzzzz",
		  "no column `zzzzzzzz`: columns: pid, comm, cycles, insns, switches" },
		{ "cols=pid.x", "no column `pid.x`: did you mean pid?: columns: pid, comm, cycles, "
				"insns, switches" },
		{ "tpo", "no option `tpo`: did you mean top?: options: sort=, top=, where=, cols=, "
			 "key=, title=, unit=, since-last, percpu, live, NAME=EXPRESSION" },
		{ "top", "top needs a value" },
		{ "percpu=1", "percpu takes no value" },
		{ "top=0", "top=0: a number of rows from 1 is needed" },
		{ "top=-3", "top=-3: a number of rows from 1 is needed" },
		{ "top=99999999999999999999",
		  "top=99999999999999999999: a number of rows from 1 is "
		  "needed" },
		{ "=3", "`=3`: a name is missing before `=`" },
		{ "cols=pid,", "cols=pid,: a name is missing" },
		{ "key=who", "key=who: the key has 2 columns (pid, ...): rename none of them" },
		{ "pid=cycles", "pid=: there is a column of this name already" },
		{ "x=cycles x=insns", "x=: there is a column of this name already" },
		{ "x=comm", "x=comm: this is no number: use cols= to show it" },
		{ "x=comm+1", "`comm+1`: a text, array or struct is no number at character 6" },
		{ "x=cycles+", "`cycles+`: the expression ends too early at character 8" },
		{ "x=(cycles", "`(cycles`: `)` is missing at character 8" },
		{ "x=cycles)", "x=cycles): `)` is not understood" },
		{ "x=cycles:.x", "`:.x`: no such format: .2 (decimals), .1% (per cent), d, ns, "
				 "bytes" },
		{ "x=foo(1)", "`foo(1)`: no such function (total, mean, min, max, p) at character "
			      "1" },
		{ "x=p(cycles,500)",
		  "`p(cycles,500)`: p() needs a histogram column at character 9" },
		{ "x=total(total(cycles))",
		  "`total(total(cycles))`: a function over all rows inside "
		  "another one at character 21" },
		{ "a=total(cycles) b=total(a)",
		  "`total(a)`: a function over all rows inside another "
		  "one at character 9" },
		{ "x=total(cycles,insns)",
		  "`total(cycles,insns)`: this function takes one argument, "
		  "then `)` at character 13" },
		{ "where=comm", "where=comm: this is no condition: compare it" },
		{ "where=comm=='one", "`comm=='one`: the text has no closing quote at character "
				      "7" },
		{ "x=99999999999999999999", "`99999999999999999999`: the number is too large at "
					    "character 1" },
		{ "unit=miles", "unit=miles: no such unit: unit=ns or unit=bytes" },
	};
	char expected[600];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(expected, sizeof(expected), "print_map(by_proc): %s", cases[i].error);
		check(state, cases[i].options, expected);
	}
}

static void expressions(void **state)
{
	static const struct {
		const char *expression, *value;
	} cases[] = {
		{ "1+2*3", "7" },
		{ "(1+2)*3", "9" },
		{ "10-2-3", "5" },
		{ "2 * 3 + 4 ", "10" },
		{ "-2*-3", "6" },
		{ "7/2", "3.5" },
		{ "8/2/2", "2" },
		{ ".5+1.25", "1.75" },
		{ "1/0", "" },
		{ "1/(pid-1)+1", "" },
		{ "9223372036854775807*9223372036854775807/9223372036854775807",
		  "9223372036854775807" },
		{ "18446744073709551615+1", "18446744073709551616" },
		{ "9223372036854775807*9223372036854775807*9223372036854775807/"
		  "9223372036854775807/9223372036854775807/9223372036854775807",
		  "1" },
		{ "min(3,1,2)", "1" },
		{ "max(3, 1, 2)", "3" },
		{ "min(pid)", "1" },
		{ "max(switches)", "7" },
		{ "mean(switches)", "6" },
		{ "total(switches)", "24" },
		{ "total(pid*switches)", "58" },
		{ "min(total(pid),5)", "5" },
		{ "pid<2", "1" },
		{ "pid>=2", "0" },
		{ "pid!=1", "0" },
		{ "1<=1 && !(2<1) || 1/0", "" },
		{ "comm=='one'", "1" },
		{ "comm!='one'", "0" },
		{ "key.pid+value.switches", "8" },
		{ "-pid", "-1" },
		{ "!pid", "0" },
	};
	char options[300], expected[100];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(options, sizeof(options), "cols=x top=1 x=%s", cases[i].expression);
		snprintf(expected, sizeof(expected), "x\n%s\n", cases[i].value);
		check(state, options, expected);
	}
}

static void formats_are_for_people(void **state)
{
	static const struct {
		const char *expression, *value;
	} cases[] = {
		{ "1234567/2:.2", "617,283.50" },
		{ "1/3:.1%", "33.3 %" },
		{ "2/3:%", "66.7 %" },
		{ "10000/3:d", "3,333" },
		{ "1250000:ns", "1.25 ms" },
		{ "999996:ns", "1.00 ms" },
		{ "1536:bytes", "1.50 KiB" },
		{ "1000", "1,000" },
		{ "1/3", "0.33" },
		{ "1/0:.2", "-" },
		{ "0-1250000:ns", "-1.25 ms" },
		{ "18446744073709551615:d", "18,446,744,073,709,551,615" },
	};
	struct report_map map = map_of(*state, four, 4);
	char options[300], expected[100];
	struct sink sink;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *line;

		snprintf(options, sizeof(options), "cols=x top=1 x=%s", cases[i].expression);
		snprintf(expected, sizeof(expected), "%s\n", cases[i].value);
		sink_open(&sink, (struct report_options){ 0 });
		line = strrchr(sink_print(&sink, &map, options, NULL, 0), 'x');
		line = strchr(line, '\n') + 1;
		assert_string_equal(line + strspn(line, " "), expected);
		sink_close(&sink);
	}
}

static void flags_travel(void **state)
{
	check(state, "cols=pid,ipc ipc=insns/cycles",
	      "pid,ipc,ipc.status\n"
	      "1,0.5,ok\n"
	      "2,0.2,ok\n"
	      "3,,not counted\n"
	      "4,0,scaled\n");
	check(state, "cols=pid,x a=cycles+1 x=a*2 where=pid>2",
	      "pid,x,x.status\n3,,not counted\n4,802,scaled\n");
	check(state, "cols=pid,cycles.running,cycles.enabled top=1",
	      "pid,cycles.running,cycles.enabled\n1,10,10\n");
}

static void sorts_are_stable(void **state)
{
	check(state, "cols=pid sort=switches", "pid\n2\n4\n1\n3\n");
	check(state, "cols=pid sort=-switches", "pid\n1\n3\n2\n4\n");
	check(state, "cols=pid sort=-switches,-pid", "pid\n3\n1\n4\n2\n");
	check(state, "cols=pid sort=-switches, -pid", "pid\n3\n1\n4\n2\n");
	/* What was not counted comes last either way. */
	check(state, "cols=pid sort=-cycles", "pid\n4\n2\n1\n3\n");
	check(state, "cols=pid sort=cycles", "pid\n1\n2\n4\n3\n");
	check(state, "cols=comm sort=comm", "comm\nfour\none\nthree\ntwo\n");
	check(state, "cols=comm sort=-comm", "comm\ntwo\nthree\none\nfour\n");
	check(state, "cols=comm sort=-x x=pid*pid top=2", "comm\nfour\nthree\n");
}

static void filters(void **state)
{
	check(state, "cols=pid where=switches==7", "pid\n1\n3\n");
	check(state, "cols=pid where=cycles>100", "pid\n2\n4\n");
	check(state, "cols=pid where=comm=='two'||pid==4", "pid\n2\n4\n");
	check(state, "cols=pid where=share>0.27 share=switches/total(switches)", "pid\n1\n3\n");
}

/* The option string of a script, percent sign and all. */
static void names_with_percent(void **state)
{
	check(state,
	      "since-last sort=-cycles top=20 cpu%=cycles/total(cycles):.1% ipc=insns/cycles:.2 "
	      "mpki=switches*1000/insns:.1 cols=pid,cpu%,ipc,mpki where=pid<3",
	      "pid,cpu%,cpu%.status,ipc,ipc.status,mpki,mpki.status\n"
	      "2,0.375,scaled,0.2,ok,83.33333333333333,ok\n"
	      "1,0.125,scaled,0.5,ok,140,ok\n"
	      "# by_proc: total(cycles) leaves out 1 of 4 rows: not counted\n");
}

/* Estimates of two events may be divided when they counted at the same times: in one group. */
static void ratios_of_one_window(void **state)
{
	static const struct use uses[] = {
		{ { 100, 10, 5 }, { 50, 10, 5 }, 7 },   /* both share their counter */
		{ { 100, 10, 10 }, { 50, 10, 5 }, 7 },  /* one does */
		{ { 100, 10, 10 }, { 50, 10, 10 }, 7 }, /* none */
	};
	static const struct {
		uint8_t cycles, insns;
		const char *expected;
	} cases[] = {
		{ 1, 1, "1,0.5,scaled,0.5,scaled\n2,1,scaled,1,scaled\n3,0.5,ok,0.5,ok\n" },
		{ 1, 2, "1,,not together,,not together\n2,1,scaled,1,scaled\n3,0.5,ok,0.5,ok\n" },
		{ 0, 0, "1,0.5,scaled,0.5,scaled\n2,1,scaled,1,scaled\n3,0.5,ok,0.5,ok\n" },
	};
	struct report_map map = map_of(*state, uses, 3);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct report_counter counters[] = {
			{ .member = "cycles", .supported = true, .window = cases[i].cycles },
			{ .member = "insns", .supported = true, .window = cases[i].insns },
		};
		struct sink sink;
		const char *text;

		sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
		text = sink_print(&sink, &map,
				  "cols=pid,ipc,same ipc=insns/cycles same=(insns+insns)/cycles/2",
				  counters, 2);
		assert_string_equal(strchr(text, '\n') + 1, cases[i].expected);
		sink_close(&sink);
	}
}

/* ... of all rows, too; products and sums are estimates as before. */
static void ratios_of_totals(void **state)
{
	static const struct use uses[] = { { { 100, 10, 5 }, { 50, 10, 5 }, 7 } };
	const struct report_counter counters[] = {
		{ .member = "cycles", .supported = true, .window = 1 },
		{ .member = "insns", .supported = true, .window = 2 },
	};
	struct report_map map = map_of(*state, uses, 1);
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_string_equal(sink_print(&sink, &map,
				       "cols=part,all,sum part=cycles/total(cycles) "
				       "all=total(insns)/total(cycles) sum=insns+cycles",
				       counters, 2),
			    "part,part.status,all,all.status,sum,sum.status\n"
			    "1,scaled,,not together,300,scaled\n");
	sink_close(&sink);
}

static const char *print(struct sink *sink, struct report_view *view, const struct report_map *map)
{
	struct err err = { 0 };

	assert_int_equal(report_map_print(sink->report, view, map, &err), 0);
	return sink_text(sink);
}

static void since_last_subtracts(void **state)
{
	struct use uses[4] = { 0 };
	struct report_map map = map_of(*state, uses, 3);
	struct report_view *view = NULL;
	struct err err = { 0 };
	struct sink sink;

	memcpy(uses, four, sizeof(uses));
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_int_equal(report_view_compile(&map, "since-last cols=pid,cycles,switches", NULL, 0,
					     &view, &err),
			 0);
	assert_string_equal(print(&sink, view, &map), "pid,cycles,cycles.status,switches\n"
						      "1,100,ok,7\n2,300,ok,5\n3,,not counted,7\n");
	/* 1 is unchanged, 2 grew, 3 went, 4 is new. */
	uses[1].cycles = (struct pmu_sum){ 310, 30, 20 };
	uses[1].switches = 6;
	uses[2] = uses[3];
	memcpy(&((struct proc *)(map.keys = calloc(3, sizeof(procs[0]))))[0], procs,
	       2 * sizeof(procs[0]));
	((struct proc *)map.keys)[2] = procs[3];
	assert_string_equal(print(&sink, view, &map), "2,20,scaled,1\n4,400,scaled,5\n");
	assert_string_equal(print(&sink, view, &map), "");
	/* An entry that was replaced: its counters are smaller. */
	uses[1].cycles = (struct pmu_sum){ 1, 1, 1 };
	uses[1].switches = 2;
	uses[0].switches = 8;
	assert_string_equal(print(&sink, view, &map), "1,,not counted,1\n2,,went backwards,\n");
	report_view_free(view);
	free((void *)map.keys);
	sink_close(&sink);
}

static void since_last_of_hists(void **state)
{
	struct cost cost = { 5, 6, { { 0, 4, 2 }, 20, 6 } };
	u32 key = 1;
	struct report_map map = { .name = "m",
				  .types = *state,
				  .key_type = fixture_typedef(*state, "u32"),
				  .value_type = fixture_struct(*state, "cost"),
				  .key_size = 4,
				  .value_size = sizeof(cost),
				  .count = 1,
				  .keys = (const uint8_t *)&key,
				  .values = (const uint8_t *)&cost };
	struct report_view *view = NULL;
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_int_equal(report_view_compile(&map, "since-last cols=misses,p p=p(misses,500)", NULL,
					     0, &view, &err),
			 0);
	print(&sink, view, &map);
	cost.misses.slot[2] += 1;
	cost.misses.n += 1;
	cost.misses.sum += 5;
	assert_string_equal(
		print(&sink, view, &map),
		"{\"type\":\"table\",\"name\":\"m\",\"rows\":[{\"misses\":{"
		"\"status\":\"ok\",\"n\":1,\"mean\":5,\"p50\":6,\"p99\":7,\"max\":7,"
		"\"sum\":5,\"slots\":[{\"low\":4,\"high\":7,\"count\":1}]},\"p\":6}]}\n");
	cost.misses.slot[1] -= 1;
	assert_string_equal(print(&sink, view, &map),
			    "{\"type\":\"table\",\"name\":\"m\",\"rows\":[{\"misses\":{"
			    "\"status\":\"went backwards\",\"n\":null,\"mean\":null,\"p50\":null,"
			    "\"p99\":null,\"max\":null,\"sum\":null},\"p\":null,"
			    "\"p.status\":\"went backwards\"}]}\n");
	report_view_free(view);
	sink_close(&sink);
}

static void depth_is_bounded(void **state)
{
	struct report_map map = map_of(*state, four, 4);
	char options[100000];
	struct sink sink;
	const char *text;
	size_t i;

	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	strcpy(options, "x=");
	memset(options + 2, '(', 90000);
	options[90002] = 0;
	text = sink_print(&sink, &map, options, NULL, 0);
	assert_non_null(strstr(text, "too deep"));
	memset(options + 2, '-', 90000);
	text = sink_print(&sink, &map, options, NULL, 0);
	assert_non_null(strstr(text, "too deep"));
	strcpy(options, "x=1");
	for (i = 3; i < 90000; i += 2)
		memcpy(options + i, "+1", 3);
	text = sink_print(&sink, &map, options, NULL, 0);
	assert_non_null(strstr(text, "too deep"));
	/* Columns made of columns double in cost, unless each is computed once. */
	strcpy(options, "c0=1");
	for (i = 1; i < 60; i++)
		sprintf(options + strlen(options), " c%zu=c%zu+c%zu", i, i - 1, i - 1);
	strcat(options, " cols=c59 top=1");
	text = sink_print(&sink, &map, options, NULL, 0);
	assert_string_equal(text, "c59\n576460752303423488\n");
	sink_close(&sink);
}

/* Anything may stand in an option string: an answer or an error, never a crash. */
static void random_strings(void **state)
{
	static const char *const words[] = {
		"sort=",    "top=",    "where=", "cols=", "key=", "title=", "since-last", "percpu",
		"live",     "unit=ns", "x=",     "y%=",   "pid",  "comm",   "cycles",     "insns",
		"switches", "misses",  "total(", "p(",    "min(", "max(",   "mean(",      ")",
		"(",        "+",       "-",      "*",     "/",    ",",      ":.2",        ":.1%",
		":d",       ":ns",     ":bytes", "1",     "0",    "1000",   ".5",         "'a'",
		"\"",       "'",       " ",      " ",     " ",    "<",      ">",          "==",
		"!",        "&&",      "||",     "[",     "]",    "[1]",    ".",          "\xff",
		"=",        "%",       "key",    "value", ".sum", ".p99",   ".n",
	};
	struct report_map map = map_of(*state, four, 4);
	struct cost cost = { 1, 2, { { 1 }, 1, 1 } };
	u32 key = 1;
	struct report_map hists = { .name = "h",
				    .types = *state,
				    .key_type = fixture_typedef(*state, "u32"),
				    .value_type = fixture_struct(*state, "cost"),
				    .key_size = 4,
				    .value_size = sizeof(cost),
				    .count = 1,
				    .keys = (const uint8_t *)&key,
				    .values = (const uint8_t *)&cost };
	struct sink sinks[3];
	uint64_t seed = 42;
	size_t round, i, compiled = 0;

	for (i = 0; i < 3; i++)
		sink_open(&sinks[i], (struct report_options){ .format = i });
	for (round = 0; round < 20000; round++) {
		const struct report_map *one = round % 2 ? &map : &hists;
		char options[600] = "";
		struct report_view *view = NULL;
		struct err err = { 0 };
		size_t count;

		seed = seed * 6364136223846793005 + 1442695040888963407;
		count = (seed >> 33) % 14;
		for (i = 0; i < count; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			strcat(options, words[(seed >> 33) % (sizeof(words) / sizeof(words[0]))]);
		}
		if (report_view_compile(one, options, NULL, 0, &view, &err)) {
			assert_null(view);
			assert_int_equal(err.code, -22);
			assert_true(strlen(err.text) > 10);
			continue;
		}
		compiled++;
		for (i = 0; i < 3; i++)
			assert_int_equal(report_map_print(sinks[i].report, view, one, &err), 0);
		report_view_free(view);
	}
	assert_true(compiled > 1000);
	for (i = 0; i < 3; i++)
		sink_close(&sinks[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_name_the_way_out), cmocka_unit_test(expressions),
		cmocka_unit_test(formats_are_for_people),  cmocka_unit_test(flags_travel),
		cmocka_unit_test(sorts_are_stable),        cmocka_unit_test(filters),
		cmocka_unit_test(names_with_percent),      cmocka_unit_test(ratios_of_one_window),
		cmocka_unit_test(ratios_of_totals),        cmocka_unit_test(since_last_subtracts),
		cmocka_unit_test(since_last_of_hists),     cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(random_strings),
	};

	return cmocka_run_group_tests_name("report/options", tests, fixture_setup,
					   fixture_teardown);
}
