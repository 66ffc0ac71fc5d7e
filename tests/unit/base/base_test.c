// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/nearest.h"
#include "base/reader.h"

static void err_keeps_code_and_order(void **state)
{
	struct err err = { 0 };

	assert_int_equal(err_set(&err, -ENOENT, "no %s", "x"), -ENOENT);
	assert_int_equal(err_prepend(&err, -EINVAL, "map y"), -ENOENT);
	assert_int_equal(err_hint(&err, -EINVAL, "try z"), -ENOENT);
	assert_string_equal(err.text, "map y: no x: try z");
	assert_int_equal(err_prepend(NULL, -EINVAL, "map"), -EINVAL);
}

static void err_cuts_long_text(void **state)
{
	struct err err = { 0 };

	err_set(&err, -EINVAL, "%02000d", 1);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	err_hint(&err, -EINVAL, "never seen");
	err_prepend(&err, -EINVAL, "first");
	assert_memory_equal(err.text, "first: 0", 8);
}

static void buf_grows_and_stays_terminated(void **state)
{
	struct buf buf = { 0 };
	int i;

	for (i = 0; i < 1000; i++)
		assert_int_equal(buf_printf(&buf, "%d,", i), 0);
	assert_int_equal(strlen(buf.data), buf.size);
	assert_memory_equal(buf.data + buf.size - 4, "999,", 5);
	assert_int_equal(buf_reserve(&buf, SIZE_MAX), -ENOMEM);
	assert_memory_equal(buf.data, "0,1,", 4);
	buf_deinit(&buf);
	assert_null(buf.data);
}

static void reader_stops_at_the_end(void **state)
{
	const uint8_t bytes[] = { 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9 };
	struct reader reader = reader_over(bytes, sizeof(bytes));

	assert_int_equal(reader_u32(&reader), 1);
	assert_int_equal(reader_u64(&reader), 2);
	assert_int_equal(reader_u32(&reader), 0);
	assert_true(reader.failed);
	assert_null(reader_take(&reader, 1));
	assert_false(range_inside(UINT64_MAX, 2, 10));
	assert_true(range_inside(10, 0, 10));
	assert_null(string_at("abc", 3, 0));
	assert_string_equal(string_at("a\0b", 4, 2), "b");
	assert_null(string_at("a", 2, 2));
}

static void nearest_finds_typing_errors(void **state)
{
	struct nearest nearest;
	char text[256];

	nearest_init(&nearest, "vfs_raed");
	nearest_offer(&nearest, "vfs_write");
	nearest_offer(&nearest, "vfs_read");
	nearest_offer(&nearest, "tcp_sendmsg");
	nearest_offer(&nearest, "vfs_readv");
	nearest_offer(&nearest, "vfs_read");
	nearest_text(&nearest, text, sizeof(text));
	assert_memory_equal(text, "vfs_read, ", 10);
	assert_null(strstr(text, "tcp"));
	nearest_init(&nearest, "zzzzzzzz");
	nearest_offer(&nearest, "vfs_read");
	assert_string_equal(nearest_text(&nearest, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_keeps_code_and_order),
		cmocka_unit_test(err_cuts_long_text),
		cmocka_unit_test(buf_grows_and_stays_terminated),
		cmocka_unit_test(reader_stops_at_the_end),
		cmocka_unit_test(nearest_finds_typing_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
