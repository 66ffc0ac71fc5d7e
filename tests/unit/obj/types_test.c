// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "obj/types.h"

/* BTF made by hand: words of the type section, and strings "\0one\0two\0tag:text\0". */
#define ONE              1
#define TWO              5
#define TAG              9
#define NOWHERE          1000
#define INFO(kind, vlen) ((kind) << 24 | (vlen))
#define FLAGGED          0x80000000U

static const char strings[] = "\0one\0two\0tag:text";

static void assemble(struct buf *buf, const uint32_t *words, size_t count)
{
	struct btf_header header = { BTF_MAGIC, BTF_VERSION, 0,         sizeof(header),
				     0,         count * 4,   count * 4, sizeof(strings) };

	assert_int_equal(buf_append(buf, &header, sizeof(header)), 0);
	assert_int_equal(buf_append(buf, words, count * 4), 0);
	assert_int_equal(buf_append(buf, strings, sizeof(strings)), 0);
}

static struct types *open_words(const uint32_t *words, size_t count, struct err *err)
{
	CLEANUP(buf_deinit) struct buf buf = { 0 };
	struct types *types = NULL;
	int code;

	assemble(&buf, words, count);
	code = types_open(buf.data, buf.size, &types, err);
	assert_int_equal(code, types ? 0 : -EINVAL);
	return types;
}

#define INT_OF(name) name, INFO(BTF_KIND_INT, 0), 4, 32

static void accepted_types_answer(void **state)
{
	static const uint32_t words[] = {
		INT_OF(ONE), /* 1 */
		TWO,         INFO(BTF_KIND_TYPEDEF, 0),
		1, /* 2 */
		0,           INFO(BTF_KIND_CONST, 0),
		2, /* 3 */
		0,           INFO(BTF_KIND_ARRAY, 0),
		0,           3,
		1,           6, /* 4: const two[6] */
		TWO,         INFO(BTF_KIND_STRUCT, 2),
		40,          ONE,
		4,           0,
		TWO,         6,
		256, /* 5 */
		0,           INFO(BTF_KIND_PTR, 0),
		5, /* 6 */
		TAG,         INFO(BTF_KIND_DECL_TAG, 0),
		5,           1, /* 7 */
		0,           INFO(BTF_KIND_FUNC_PROTO, 1),
		1,           ONE,
		6, /* 8 */
		ONE,         INFO(BTF_KIND_FUNC, BTF_FUNC_GLOBAL),
		8, /* 9 */
		ONE,         INFO(BTF_KIND_VAR, 0),
		4,           BTF_VAR_STATIC, /* 10 */
		TWO,         INFO(BTF_KIND_DATASEC, 1),
		24,          10,
		0,           24, /* 11 */
		ONE,         INFO(BTF_KIND_ENUM64, 1),
		8,           ONE,
		1,           2, /* 12 */
		ONE,         INFO(BTF_KIND_FLOAT, 0),
		8, /* 13 */
		TAG,         INFO(BTF_KIND_TYPE_TAG, 0),
		1, /* 14 */
		ONE,         FLAGGED | INFO(BTF_KIND_STRUCT, 1),
		4,           ONE,
		1,           3 << 24 | 5, /* 15 */
		ONE,         INFO(BTF_KIND_FWD, 0),
		0, /* 16 */
		TWO,         INFO(BTF_KIND_INT, 0),
		1,           3 << 24 | 8, /* 17: gcc's SIGNED|CHAR */
	};
	struct err err = { 0 };
	CLEANUP(types_close_cleanup)
	struct types *types = open_words(words, sizeof(words) / 4, &err);
	size_t size;

	assert_non_null(types);
	assert_int_equal(types_count(types), 18);
	assert_null(types_get(types, 0));
	assert_null(types_get(types, 18));
	assert_int_equal(types_kind(types, 0), BTF_KIND_UNKN);
	assert_int_equal(types_kind(types, 99), BTF_KIND_UNKN);
	assert_string_equal(types_name(types, 5), "two");
	assert_string_equal(types_name(types, 6), "");
	assert_string_equal(types_name(types, 99), "");
	assert_string_equal(types_string(types, NOWHERE), "");
	assert_int_equal(types_resolve(types, 3), 1);
	assert_int_equal(types_resolve(types, 14), 1);
	assert_int_equal(types_resolve(types, 0), 0);
	assert_int_equal(types_size(types, 4), 24);
	assert_int_equal(types_size(types, 10), 24);
	assert_int_equal(types_size(types, 5), 40);
	assert_int_equal(types_size(types, 6), 8);
	assert_int_equal(types_size(types, 12), 8);
	assert_int_equal(types_size(types, 9), -EINVAL);
	assert_int_equal(types_size(types, 0), -EINVAL);
	assert_int_equal(types_find(types, BTF_KIND_STRUCT, "two"), 5);
	assert_int_equal(types_find(types, BTF_KIND_UNION, "two"), 0);
	assert_string_equal(types_decl_tag(types, 5, 1, "tag:"), "text");
	assert_null(types_decl_tag(types, 5, -1, "tag:"));
	assert_null(types_decl_tag(types, 5, 1, "other:"));
	assert_non_null(types_data(types, &size));
	assert_int_equal(size, sizeof(struct btf_header) + sizeof(words) + sizeof(strings));
}

static void unsound_types_are_refused(void **state)
{
	static const struct {
		const char *why;
		uint32_t count;
		uint32_t words[24];
	} rows[] = {
		{ "unknown kind", 3, { ONE, INFO(20, 0), 0 } },
		{ "unknown kind", 3, { ONE, INFO(0, 0), 0 } },
		{ "cut short", 2, { ONE, INFO(BTF_KIND_PTR, 0) } },
		{ "cut short", 3, { ONE, INFO(BTF_KIND_INT, 0), 4 } },
		{ "cut short", 5, { ONE, INFO(BTF_KIND_STRUCT, 65535), 4, 0, 0 } },
		{ "reserved bits", 3, { ONE, INFO(BTF_KIND_PTR, 0) | 0x60000000, 0 } },
		{ "name outside", 4, { INT_OF(NOWHERE) } },
		{ "bad size", 4, { ONE, INFO(BTF_KIND_INT, 0), 3, 8 } },
		{ "bad size", 4, { ONE, INFO(BTF_KIND_INT, 0), 0, 8 } },
		{ "bad size", 4, { ONE, INFO(BTF_KIND_INT, 0), 32, 8 } },
		{ "bits outside", 4, { ONE, INFO(BTF_KIND_INT, 0), 4, 33 } },
		{ "bits outside", 4, { ONE, INFO(BTF_KIND_INT, 0), 4, 16 << 16 | 17 } },
		{ "refers to no type", 3, { 0, INFO(BTF_KIND_PTR, 0), 2 } },
		{ "refers to no type", 3, { 0, INFO(BTF_KIND_CONST, 0), 0xffffffff } },
		{ "no such element", 6, { 0, INFO(BTF_KIND_ARRAY, 0), 0, 9, 1, 2 } },
		{ "no such element", 6, { 0, INFO(BTF_KIND_ARRAY, 0), 0, 0, 1, 2 } },
		{ "member of no type", 6, { ONE, INFO(BTF_KIND_STRUCT, 1), 4, ONE, 7, 0 } },
		{ "member name", 6, { ONE, INFO(BTF_KIND_STRUCT, 1), 4, NOWHERE, 1, 0 } },
		{ "member outside",
		  10,
		  { INT_OF(ONE), ONE, INFO(BTF_KIND_STRUCT, 1), 4, ONE, 1, 8 } },
		{ "member outside",
		  10,
		  { INT_OF(ONE), ONE, INFO(BTF_KIND_UNION, 1), 2, ONE, 1, 0 } },
		{ "member outside",
		  10,
		  { INT_OF(ONE), ONE, FLAGGED | INFO(BTF_KIND_STRUCT, 1), 4, ONE, 1,
		    3 << 24 | 30 } },
		{ "bit field wider",
		  10,
		  { INT_OF(ONE), ONE, FLAGGED | INFO(BTF_KIND_STRUCT, 1), 64, ONE, 1, 33 << 24 } },
		{ "member without a size",
		  9,
		  { ONE, INFO(BTF_KIND_FWD, 0), 0, ONE, INFO(BTF_KIND_STRUCT, 1), 4, ONE, 1, 0 } },
		{ "holds itself", 6, { ONE, INFO(BTF_KIND_STRUCT, 1), 4, ONE, 1, 0 } },
		{ "holds itself", 3, { ONE, INFO(BTF_KIND_TYPEDEF, 0), 1 } },
		{ "holds itself",
		  6,
		  { 0, INFO(BTF_KIND_CONST, 0), 2, 0, INFO(BTF_KIND_VOLATILE, 0), 1 } },
		{ "holds itself",
		  9,
		  { 0, INFO(BTF_KIND_ARRAY, 0), 0, 2, 2, 4, ONE, INFO(BTF_KIND_TYPEDEF, 0), 1 } },
		{ "too large",
		  16,
		  { INT_OF(ONE), 0, INFO(BTF_KIND_ARRAY, 0), 0, 1, 1, 0xffffffff, 0,
		    INFO(BTF_KIND_ARRAY, 0), 0, 2, 1, 0xffffffff } },
		{ "has no prototype", 7, { INT_OF(ONE), ONE, INFO(BTF_KIND_FUNC, 0), 1 } },
		{ "has no prototype", 3, { ONE, INFO(BTF_KIND_FUNC, 0), 1 } },
		{ "unknown linkage",
		  6,
		  { 0, INFO(BTF_KIND_FUNC_PROTO, 0), 0, ONE, INFO(BTF_KIND_FUNC, 3), 1 } },
		{ "unknown linkage", 8, { INT_OF(ONE), ONE, INFO(BTF_KIND_VAR, 0), 1, 3 } },
		{ "parameter of no type", 5, { 0, INFO(BTF_KIND_FUNC_PROTO, 1), 0, ONE, 9 } },
		{ "parameter name", 5, { 0, INFO(BTF_KIND_FUNC_PROTO, 1), 0, NOWHERE, 0 } },
		{ "no such result", 3, { 0, INFO(BTF_KIND_FUNC_PROTO, 0), 9 } },
		{ "holds something",
		  10,
		  { INT_OF(ONE), ONE, INFO(BTF_KIND_DATASEC, 1), 4, 1, 0, 4 } },
		{ "variable outside",
		  14,
		  { INT_OF(ONE), ONE, INFO(BTF_KIND_VAR, 0), 1, 0, ONE, INFO(BTF_KIND_DATASEC, 1),
		    4, 2, 1, 4 } },
		{ "takes no tag", 8, { INT_OF(ONE), TAG, INFO(BTF_KIND_DECL_TAG, 0), 1, -1 } },
		{ "no such component",
		  12,
		  { INT_OF(ONE), ONE, INFO(BTF_KIND_VAR, 0), 1, 0, TAG, INFO(BTF_KIND_DECL_TAG, 0),
		    2, 0 } },
		{ "no such component",
		  12,
		  { INT_OF(ONE), ONE, INFO(BTF_KIND_VAR, 0), 1, 0, TAG, INFO(BTF_KIND_DECL_TAG, 0),
		    2, -2 } },
		{ "value name", 5, { ONE, INFO(BTF_KIND_ENUM, 1), 4, NOWHERE, 1 } },
		{ "bad size", 5, { ONE, INFO(BTF_KIND_ENUM, 1), 3, ONE, 1 } },
		{ "bad size", 3, { ONE, INFO(BTF_KIND_FLOAT, 0), 0 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { 0 };

		assert_null(open_words(rows[i].words, rows[i].count, &err));
		if (strncmp(err.text, "BTF: type ", 10) || !strstr(err.text, rows[i].why))
			fail_msg("row %zu: \"%s\", wanted \"%s\"", i, err.text, rows[i].why);
	}
}

/* 70 structures, each inside the next: legal, but recursions over types need an end. */
static void deep_nesting_is_refused(void **state)
{
	uint32_t words[4 + 70 * 6] = { INT_OF(ONE) };
	struct err err = { 0 };

	for (uint32_t i = 0; i < 70; i++) {
		uint32_t *at = words + 4 + i * 6;

		at[0] = ONE;
		at[1] = INFO(BTF_KIND_STRUCT, 1);
		at[2] = 4;
		at[3] = ONE;
		at[4] = i + 1;
	}
	assert_null(open_words(words, 4 + 70 * 6, &err));
	assert_non_null(strstr(err.text, "nested too deeply"));
	assert_null(open_words(words, 4 + 65 * 6, &err));
	types_close(open_words(words, 4 + 60 * 6, &err));
}

static void headers_are_checked(void **state)
{
	static const uint32_t words[] = { INT_OF(ONE) };
	static const struct {
		size_t offset, size;
		uint32_t value;
		const char *why;
	} rows[] = {
		{ 0, 2, 0x9feb, "other byte order" },
		{ 0, 2, 0x1234, "no BTF" },
		{ 2, 1, 2, "unknown version" },
		{ 3, 1, 1, "unknown version" },
		{ 4, 4, 20, "header length" },
		{ 4, 4, 0xfffffff0, "header length" },
		{ 8, 4, 2, "types outside" },
		{ 12, 4, 0xfffffff0, "types outside" },
		{ 16, 4, 0xfffffff0, "strings outside" },
		{ 16, 4, 12, "overlap" },
		{ 20, 4, 0, "not terminated" },
		{ 20, 4, sizeof(strings) - 1, "not terminated" },
		{ 20, 4, 0x7fffffff, "strings outside" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP(buf_deinit) struct buf buf = { 0 };
		struct types *types = NULL;
		struct err err = { 0 };

		assemble(&buf, words, 4);
		memcpy(buf.data + rows[i].offset, &rows[i].value, rows[i].size);
		assert_int_equal(types_open(buf.data, buf.size, &types, &err), -EINVAL);
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: \"%s\", wanted \"%s\"", i, err.text, rows[i].why);
	}
}

static void every_cut_is_refused(void **state)
{
	static const uint32_t words[] = { INT_OF(ONE) };
	CLEANUP(buf_deinit) struct buf buf = { 0 };

	assemble(&buf, words, 4);
	for (size_t size = 0; size < buf.size; size++) {
		struct types *types = NULL;

		assert_int_equal(types_open(buf.data, size, &types, NULL), -EINVAL);
	}
}

static void this_kernels_types_are_sound(void **state)
{
	CLEANUP(buf_deinit) struct buf buf = { 0 };
	CLEANUP(types_close_cleanup) struct types *types = NULL;
	struct err err = { 0 };

	if (buf_read_file(&buf, "/sys/kernel/btf/vmlinux", &err)) {
		print_message("%s: nothing to check\n", err.text);
		return;
	}
	if (types_open(buf.data, buf.size, &types, &err))
		fail_msg("%s", err.text);
	assert_true(types_size(types, types_find(types, BTF_KIND_STRUCT, "task_struct")) > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted_types_answer),
		cmocka_unit_test(unsound_types_are_refused),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(headers_are_checked),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(this_kernels_types_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
