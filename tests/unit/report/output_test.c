// SPDX-License-Identifier: BSD-2-Clause
/* Where documents go: whole or not at all, valid JSON always, live tables in place. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "fixture.h"

#define ROWS 2000

struct rows {
	struct proc keys[ROWS];
	struct use values[ROWS];
};

static struct report_map many(const struct types *types, struct rows *rows, size_t count)
{
	size_t i;

	memset(rows, 0, sizeof(*rows));
	for (i = 0; i < ROWS; i++) {
		rows->keys[i].pid = i;
		memset(rows->keys[i].comm, (int)(i * 7), sizeof(rows->keys[i].comm));
		rows->values[i].cycles = (struct pmu_sum){ i * i * 1000003, i + 1, i };
		rows->values[i].switches = UINT64_MAX - i;
	}
	return (struct report_map){
		.name = "by_proc",
		.types = types,
		.key_type = fixture_struct(types, "proc"),
		.value_type = fixture_struct(types, "use"),
		.key_size = sizeof(struct proc),
		.value_size = sizeof(struct use),
		.count = count,
		.keys = (const uint8_t *)rows->keys,
		.values = (const uint8_t *)rows->values,
	};
}

static size_t parse_lines(char *text)
{
	size_t lines = 0;
	char *line, *rest = text, error[200];

	while ((line = strsep(&rest, "\n")) && *line) {
		yajl_val tree = yajl_tree_parse(line, error, sizeof(error));

		if (!tree)
			print_error("%s\n", error);
		assert_non_null(tree);
		assert_true(YAJL_IS_OBJECT(tree));
		assert_non_null(
			yajl_tree_get(tree, (const char *[]){ "type", NULL }, yajl_t_string));
		yajl_tree_free(tree);
		lines++;
	}
	return lines;
}

static void json_is_read_back(void **state)
{
	static struct rows rows;
	struct report_map map = many(*state, &rows, ROWS);
	struct err err = { 0 };
	struct hist hist = { { 1 }, -1, 1 };
	struct report_view *view = NULL;
	struct sink sink;
	char *text, error[200];
	yajl_val tree, list;
	size_t i;

	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_int_equal(report_view_compile(&map, "live title='a\"\xff'", NULL, 0, &view, &err),
			 0);
	assert_int_equal(report_map_print(sink.report, view, &map, &err), 0);
	assert_int_equal(report_note(sink.report, "cycles: no PMU\n\x01\xfe"), 0);
	assert_int_equal(report_text(sink.report, "half ", 5), 0);
	assert_int_equal(report_text(sink.report, "line\nand\0more\n\xffrest", 19), 0);
	assert_int_equal(report_hist_print(sink.report, &hist, "h\xff", NULL, &err), 0);
	text = strdup(sink_text(&sink));
	*strchr(text, '\n') = 0;
	tree = yajl_tree_parse(text, error, sizeof(error));
	assert_non_null(tree);
	list = yajl_tree_get(tree, (const char *[]){ "rows", NULL }, yajl_t_array);
	assert_non_null(list);
	assert_int_equal(YAJL_GET_ARRAY(list)->len, ROWS);
	assert_non_null(yajl_tree_get(tree, (const char *[]){ "time_ns", NULL }, yajl_t_number));
	for (i = 0; i < ROWS; i++) {
		yajl_val row = YAJL_GET_ARRAY(list)->values[i];
		yajl_val switches =
			yajl_tree_get(row, (const char *[]){ "switches", NULL }, yajl_t_number);
		char expected[30];

		snprintf(expected, sizeof(expected), "%llu", UINT64_MAX - i + 0ULL);
		assert_string_equal(YAJL_GET_NUMBER(switches), expected);
	}
	yajl_tree_free(tree);
	text[strlen(text)] = '\n';
	assert_int_equal(parse_lines(text), 6);
	free(text);
	report_view_free(view);
	sink_close(&sink);
}

static void script_text_in_json(void **state)
{
	struct sink sink;

	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	report_text(sink.report, "a", 1);
	report_text(sink.report, "b\n\nc", 4);
	assert_string_equal(sink_text(&sink), "{\"type\":\"text\",\"text\":\"ab\"}\n"
					      "{\"type\":\"text\",\"text\":\"\"}\n"
					      "{\"type\":\"text\",\"text\":\"c\"}\n");
	sink_close(&sink);
	sink_open(&sink, (struct report_options){ .format = REPORT_TEXT });
	report_text(sink.report, "a\0b", 3);
	report_note(sink.report, "note\tof events");
	assert_memory_equal(sink_text(&sink), "a\0bnote\\tof events\n", 19);
	sink_close(&sink);
}

static void a_full_disk_is_told(void **state)
{
	static struct rows rows;
	struct report_map map = many(*state, &rows, 10);
	struct report_options options = { .out = fopen("/dev/full", "w") };
	struct report_view *view = NULL;
	struct err err = { 0 };
	u32 value = 1;

	assert_non_null(options.out);
	assert_int_equal(report_view_compile(&map, "", NULL, 0, &view, &err), 0);
	for (options.format = REPORT_TEXT; options.format <= REPORT_CSV; options.format++) {
		struct report *report = NULL;

		assert_int_equal(report_create(&options, &report, &err), 0);
		assert_int_equal(report_map_print(report, view, &map, &err), -ENOSPC);
		assert_string_equal(err.text, "output: No space left on device");
		assert_int_equal(report_value_print(report, "x", *state,
						    fixture_typedef(*state, "u32"), &value, 4,
						    &err),
				 -ENOSPC);
		assert_int_equal(report_note(report, "note"), -ENOSPC);
		if (options.format != REPORT_CSV)
			assert_int_equal(report_text(report, "text\n", 5), -ENOSPC);
		report_destroy(report);
	}
	report_view_free(view);
	fclose(options.out);
}

/* A disk that fills up in the middle of a document: what was whole before stays, no half line. */
static void no_half_lines(void **state)
{
	static struct rows rows;
	struct report_map map = many(*state, &rows, ROWS);
	struct rlimit before, limit;
	struct report_view *view = NULL;
	struct err err = { 0 };
	struct sink sink;
	struct stat status;
	off_t whole;
	ssize_t size;
	char text[256];
	int code, finished;

	sink_open(&sink, (struct report_options){ .format = REPORT_JSON });
	assert_int_equal(report_view_compile(&map, "", NULL, 0, &view, &err), 0);
	assert_int_equal(report_note(sink.report, "first"), 0);
	assert_int_equal(fstat(fileno(sink.file), &status), 0);
	whole = status.st_size;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = whole + 10000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	code = report_map_print(sink.report, view, &map, &err);
	finished = report_note(sink.report, "last");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(code, -EFBIG);
	assert_int_equal(finished, 0);
	/* What was lost is not forgotten: the run ends with it. */
	assert_int_equal(report_finish(sink.report, &err), -EFBIG);
	size = pread(fileno(sink.file), text, sizeof(text) - 1, 0);
	text[size < 0 ? 0 : size] = 0;
	assert_string_equal(text, "{\"type\":\"note\",\"text\":\"first\"}\n"
				  "{\"type\":\"note\",\"text\":\"last\"}\n");
	report_view_free(view);
	sink_close(&sink);
}

static void into_memory(void **state)
{
	struct report *report = NULL;
	struct err err = { 0 };
	char *text = NULL;
	size_t size = 0;
	struct report_options options = { .format = REPORT_CSV,
					  .out = open_memstream(&text, &size) };

	assert_int_equal(report_create(&options, &report, &err), 0);
	assert_int_equal(report_note(report, "note"), 0);
	assert_int_equal(report_finish(report, &err), 0);
	assert_string_equal(text, "# note\n");
	report_destroy(report);
	fclose(options.out);
	free(text);
}

/* What reached the terminal so far: up to a mark that is put there now. */
static void read_terminal(int master, int slave, char *text, size_t size)
{
	size_t used = 0;

	assert_int_equal(write(slave, "#", 1), 1);
	do {
		ssize_t got = read(master, text + used, size - 1 - used);

		assert_true(got > 0);
		used += got;
	} while (text[used - 1] != '#');
	text[used - 1] = 0;
}

/* Cuts "NAME at 2026-01-02 03:04:05.678" lines down to "NAME at T". */
static void drop_time(char *text)
{
	char *at = text;

	while ((at = strstr(at, " at 2"))) {
		char *end = at + strcspn(at, "\r\n");

		at[4] = 'T';
		memmove(at + 5, end, strlen(end) + 1);
		at += 4;
	}
}

static void live_tables_stay_in_place(void **state)
{
	static struct rows rows;
	struct report_map map = many(*state, &rows, 2), other = map;
	struct report_view *first = NULL, *second = NULL;
	struct report_options options = { 0 };
	struct report *report = NULL;
	struct err err = { 0 };
	char text[4096];
	int master, slave;

	other.name = "other";
	if (openpty(&master, &slave, NULL, NULL, NULL))
		fail_msg("openpty: %s", strerror(errno));
	options.out = fdopen(slave, "w");
	assert_int_equal(report_create(&options, &report, &err), 0);
	assert_int_equal(report_view_compile(&map, "cols=pid", NULL, 0, &first, &err), 0);
	assert_int_equal(report_view_compile(&other, "cols=pid top=1", NULL, 0, &second, &err), 0);
	report_set_live(report, true);
	assert_int_equal(report_map_print(report, first, &map, &err), 0);
	assert_int_equal(report_map_print(report, second, &other, &err), 0);
	read_terminal(master, slave, text, sizeof(text));
	drop_time(text);
	assert_string_equal(text, "by_proc at T\r\npid\r\n  0\r\n  1\r\n\r\n"
				  "other (1 of 2 rows) at T\r\npid\r\n  0\r\n");
	assert_int_equal(report_map_print(report, first, &map, &err), 0);
	read_terminal(master, slave, text, sizeof(text));
	drop_time(text);
	assert_string_equal(text, "\r\x1b[8A\x1b[Jby_proc at T\r\npid\r\n  0\r\n  1\r\n");
	/* Something else was printed: a new picture below it. */
	report_text(report, "hello\n", 6);
	assert_int_equal(report_map_print(report, first, &map, &err), 0);
	read_terminal(master, slave, text, sizeof(text));
	drop_time(text);
	assert_string_equal(text, "hello\r\n\r\nby_proc at T\r\npid\r\n  0\r\n  1\r\n");
	report_view_free(first);
	report_view_free(second);
	report_destroy(report);
	fclose(options.out);
	close(master);
}

static void live_tables_fit_the_terminal(void **state)
{
	static struct rows rows;
	struct report_map map = many(*state, &rows, 100);
	struct winsize size = { .ws_row = 10, .ws_col = 80 };
	struct report_options options = { 0 };
	struct report_view *view = NULL;
	struct report *report = NULL;
	struct err err = { 0 };
	char text[4096];
	int master, slave;

	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	options.out = fdopen(slave, "w");
	assert_int_equal(report_create(&options, &report, &err), 0);
	assert_int_equal(report_view_compile(&map, "cols=pid live", NULL, 0, &view, &err), 0);
	assert_int_equal(report_map_print(report, view, &map, &err), 0);
	read_terminal(master, slave, text, sizeof(text));
	drop_time(text);
	assert_string_equal(text,
			    "by_proc at T\r\npid\r\n  0\r\n  1\r\n  2\r\n  3\r\n  4\r\n  5\r\n");
	report_view_free(view);
	report_destroy(report);
	fclose(options.out);
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_read_back),
		cmocka_unit_test(script_text_in_json),
		cmocka_unit_test(a_full_disk_is_told),
		cmocka_unit_test(no_half_lines),
		cmocka_unit_test(into_memory),
		cmocka_unit_test(live_tables_stay_in_place),
		cmocka_unit_test(live_tables_fit_the_terminal),
	};

	return cmocka_run_group_tests_name("report/output", tests, fixture_setup, fixture_teardown);
}
