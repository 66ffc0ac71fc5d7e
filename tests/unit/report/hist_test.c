// SPDX-License-Identifier: BSD-2-Clause
/* Histograms: bars, quantiles, one per key, in every format. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static unsigned int slot_of(uint64_t value)
{
	return value > 1 ? 63 - __builtin_clzll(value) : 0;
}

static void add(struct hist *hist, uint64_t value)
{
	hist->slot[slot_of(value)]++;
	hist->sum += value;
	hist->n++;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The slot must be the exact quantile's; inside it, evenly spread values are met closely. */
static void quantiles_are_in_the_right_slot(void **state)
{
	static const uint32_t per_milles[] = { 0, 1, 10, 250, 500, 900, 990, 999, 1000 };
	uint64_t values[1000], seed = 1;
	struct hist hist;
	size_t round, i;

	for (round = 0; round < 200; round++) {
		size_t count = 1 + round * 5 % 1000;

		memset(&hist, 0, sizeof(hist));
		for (i = 0; i < count; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			values[i] = (seed >> 1) >> (round % 63);
			if (round % 7 == 0)
				values[i] >>= seed % 60;
			add(&hist, values[i]);
		}
		qsort(values, count, sizeof(*values), compare);
		for (i = 0; i < sizeof(per_milles) / sizeof(per_milles[0]); i++) {
			size_t rank = (per_milles[i] * count + 999) / 1000;
			uint64_t exact = values[rank ? rank - 1 : 0];
			uint64_t got = report_hist_quantile(&hist, per_milles[i]);

			assert_int_equal(slot_of(got), slot_of(exact));
		}
	}
}

static void quantiles_interpolate(void **state)
{
	struct hist hist = { 0 };
	uint64_t value;

	assert_int_equal(report_hist_quantile(&hist, 500), 0);
	for (value = 1024; value < 2048; value++)
		add(&hist, value);
	assert_int_equal(report_hist_quantile(&hist, 0), 1024);
	assert_int_equal(report_hist_quantile(&hist, 250), 1024 + 256);
	assert_int_equal(report_hist_quantile(&hist, 500), 1024 + 512);
	assert_int_equal(report_hist_quantile(&hist, 1000), 2047);
	assert_int_equal(report_hist_quantile(&hist, 5000), 2047);
	memset(&hist, 0, sizeof(hist));
	hist.slot[63] = UINT64_MAX;
	assert_int_equal(report_hist_quantile(&hist, 1000), UINT64_MAX);
	assert_int_equal(report_hist_quantile(&hist, 0), 1ULL << 63);
}

static struct hist sample(void)
{
	struct hist hist = { 0 };
	unsigned int i;

	hist.slot[0] = 1;
	hist.sum = -5;
	hist.n = 1;
	for (i = 0; i < 1200; i++)
		add(&hist, 1000);
	for (i = 0; i < 600; i++)
		add(&hist, 3000);
	return hist;
}

static void bars(void **state)
{
	struct hist hist = sample();
	struct err err = { 0 };
	struct sink sink;

	hist.slot[1] = 7;
	hist.n += 7;
	memset(&hist.slot[2], 0, 7 * sizeof(hist.slot[0]));
	sink_open(&sink, (struct report_options){ .width = 40 });
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", "title='Read size'", &err),
			 0);
	assert_string_equal(sink_text(&sink),
			    "Read size\n"
			    "<= 1           1 |                     |\n"
			    "[2, 4)         7 |                     |\n"
			    "[4, 8)         0 |                     |\n"
			    "[8, 16)        0 |                     |\n"
			    "[16, 32)       0 |                     |\n"
			    "[32, 64)       0 |                     |\n"
			    "[64, 128)      0 |                     |\n"
			    "[128, 256)     0 |                     |\n"
			    "[256, 512)     0 |                     |\n"
			    "[512, 1K)  1,200 |@@@@@@@@@@@@@@@@@@@@@|\n"
			    "[1K, 2K)       0 |                     |\n"
			    "[2K, 4K)     600 |@@@@@@@@@@           |\n"
			    "n 1,808  mean 1,659.29  p50 894  p90 3,478  p99 4,034  "
			    "p99.9 4,089\n");
	sink_close(&sink);
}

static void units_and_errors(void **state)
{
	struct hist hist = { 0 };
	struct err err = { 0 };
	struct sink sink;

	add(&hist, 1500000);
	sink_open(&sink, (struct report_options){ .width = 46 });
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", "unit=ns", &err), 0);
	assert_string_equal(sink_text(&sink),
			    "lat\n"
			    "[1.05 ms, 2.10 ms) 1 |@@@@@@@@@@@@@@@@@@@@@@@|\n"
			    "n 1  mean 1.50 ms  p50 1.57 ms  p90 1.99 ms  p99 2.09 ms  "
			    "p99.9 2.10 ms\n");
	memset(&hist, 0, sizeof(hist));
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", NULL, &err), 0);
	assert_string_equal(sink_text(&sink), "\nlat\nempty\n");
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", "top=3", &err), -22);
	assert_string_equal(err.text, "print_hist(lat): no option `top`: options: title=, unit=");
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", "unit=miles", &err), -22);
	assert_string_equal(err.text,
			    "print_hist(lat): unit=miles: no such unit: unit=ns or unit=bytes");
	sink_close(&sink);
}

static void bars_for_machines(void **state)
{
	struct hist hist = { .slot = { 1, 0, 2 }, .sum = -3, .n = 3 };
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", "unit=ns", &err), 0);
	assert_string_equal(
		sink_text(&sink),
		"{\"type\":\"hist\",\"name\":\"lat\",\"unit\":\"ns\",\"status\":\"ok\","
		"\"n\":3,\"mean\":-1,\"p50\":5,\"p99\":7,\"max\":7,\"sum\":-3,\"slots\":["
		"{\"low\":0,\"high\":1,\"count\":1},{\"low\":2,\"high\":3,\"count\":0},"
		"{\"low\":4,\"high\":7,\"count\":2}]}\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV, .separator = ';' });
	assert_int_equal(report_hist_print(sink.report, &hist, "lat", "", &err), 0);
	assert_string_equal(sink_text(&sink),
			    "name;low;high;count\nlat;0;1;1\nlat;2;3;0\nlat;4;7;2\n");
	sink_close(&sink);
}

static const struct proc keys[] = { { 1, "a" }, { 2, "b" } };

static struct report_map by_query(const struct types *types, const struct cost *costs)
{
	return (struct report_map){ .name = "by_query",
				    .types = types,
				    .key_type = fixture_struct(types, "proc"),
				    .value_type = fixture_struct(types, "cost"),
				    .key_size = sizeof(keys[0]),
				    .value_size = sizeof(costs[0]),
				    .count = 2,
				    .keys = (const uint8_t *)keys,
				    .values = (const uint8_t *)costs };
}

static void one_per_key(void **state)
{
	struct cost costs[2] = { { 1, 2, { { 1 }, 0, 1 } }, { 3, 4, { { 0, 4 }, 9, 4 } } };
	struct report_map map = by_query(*state, costs);
	struct err err = { 0 };
	struct sink sink;

	sink_open(&sink, (struct report_options){ .width = 20 });
	assert_int_equal(report_hists_print(sink.report, &map, "sort=-misses.n", &err), 0);
	assert_string_equal(sink_text(&sink), "by_query.misses[{pid = 2, comm = b}]\n"
					      "[2, 4) 4 |@@@@@@@@@@|\n"
					      "n 4  mean 2.25  p50 3  p90 3  p99 3  p99.9 3\n"
					      "\n"
					      "by_query.misses[{pid = 1, comm = a}]\n"
					      "<= 1 1 |@@@@@@@@@@@|\n"
					      "n 1  mean 0.00  p50 1  p90 1  p99 1  p99.9 1\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_int_equal(report_hists_print(sink.report, &map, "top=1", &err), 0);
	assert_string_equal(sink_text(&sink),
			    "{\"type\":\"hist\",\"name\":\"by_query.misses\","
			    "\"key\":{\"pid\":1,\"comm\":\"a\"},\"unit\":\"\",\"status\":\"ok\","
			    "\"n\":1,\"mean\":0,\"p50\":1,\"p99\":1,\"max\":1,\"sum\":0,\"slots\":["
			    "{\"low\":0,\"high\":1,\"count\":1}]}\n");
	assert_int_equal(report_hists_print(sink.report, &map, "cols=calls", &err), -22);
	assert_string_equal(err.text, "print_hists(by_query): no column is a struct hist: use "
				      "print_map() to show it");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_CSV });
	assert_int_equal(report_hists_print(sink.report, &map, "", &err), 0);
	assert_string_equal(sink_text(&sink), "name,key,low,high,count\n"
					      "by_query.misses,\"{pid = 1, comm = a}\",0,1,1\n"
					      "by_query.misses,\"{pid = 2, comm = b}\",2,3,4\n");
	sink_close(&sink);
}

/* The option string of a script that wants quantiles of misses per query. */
static void hist_columns(void **state)
{
	static const struct report_counter lacking = { "misses", "cache-misses", false };
	struct cost costs[2] = { { .calls = 1, .moved = 2 }, { 3, 4, { { 0, 4 }, 9, 4 } } };
	struct report_map map = by_query(*state, costs);
	const char *options = "sort=-misses.sum top=10 p50=p(misses,500) p99=p(misses,990) "
			      "mean=misses.sum/misses.n:.1";
	struct sink sink;

	sink_open(&sink, (struct report_options){ 0 });
	assert_string_equal(sink_print(&sink, &map, options, NULL, 0),
			    "by_query\n"
			    "pid  comm  calls  moved  p50  p99  mean\n"
			    "  2  b         3      4    3    3   2.2\n"
			    "  1  a         1      2    -    -     -\n");
	assert_string_equal(sink_print(&sink, &map, "cols=pid,misses unit=ns", NULL, 0),
			    "\n"
			    "by_query\n"
			    "pid  misses.n  misses.mean  misses.p50  misses.p99  misses.max\n"
			    "  1         0            -           -           -           -\n"
			    "  2         4      2.25 ns        3 ns        3 ns        3 ns\n");
	assert_string_equal(sink_print(&sink, &map,
				       "cols=misses.p999,misses.max,mean "
				       "mean=mean(misses):.3 where=misses.n",
				       NULL, 0),
			    "\nby_query (1 of 2 rows)\nmisses.p999  misses.max   mean\n          3 "
			    "          3  "
			    "2.250\n");
	assert_string_equal(
		sink_print(&sink, &map, "cols=misses,p where=pid==2 p=p(misses,1)", &lacking, 1),
		"\n"
		"by_query (1 of 2 rows)\n"
		"     misses.n    misses.mean     misses.p50     misses.p99     misses.max"
		"              p\n"
		"not supported  not supported  not supported  not supported  not supported"
		"  not supported\n");
	sink_close(&sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_in_the_right_slot),
		cmocka_unit_test(quantiles_interpolate),
		cmocka_unit_test(bars),
		cmocka_unit_test(units_and_errors),
		cmocka_unit_test(bars_for_machines),
		cmocka_unit_test(one_per_key),
		cmocka_unit_test(hist_columns),
	};

	return cmocka_run_group_tests_name("report/hist", tests, fixture_setup, fixture_teardown);
}
