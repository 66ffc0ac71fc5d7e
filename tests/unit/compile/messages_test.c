// SPDX-License-Identifier: BSD-2-Clause
/* What is said of scripts that do not compile. */
#include "compile_fixture.h"

static void test_compiler_is_missing(void **state)
{
	struct compile_result result = { 0 };
	struct err err = { 0 };

	write_text("none.c", "#include <duet.h>\nint none;\n");
	setenv("DUET_CLANG", "clang-that-is-not-there", 1);
	assert_int_equal(compile_path("none.c", &result, &err), -ENOENT);
	assert_non_null(strstr(err.text, "DUET_CLANG"));
	unsetenv("DUET_CLANG");
	assert_int_equal(compile_path("absent.c", &result, &err), -ENOENT);
	assert_string_equal(err.text, "absent.c: No such file or directory");
}

static void test_ordinary_errors_are_clangs_own(void **state)
{
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };
	struct err err = { 0 };

	write_text("syntax.c", "#include <duet.h>\nu64 a\nu64 b;\n");
	assert_int_equal(compile_path("syntax.c", &result, &err), -EINVAL);
	assert_string_equal(err.text, "syntax.c: does not compile: 1 error");
	assert_non_null(result.diagnostics.data);
	assert_non_null(strstr(result.diagnostics.data, "syntax.c:2:6: error: "));
}

/* Compares with bad/NAME.VERSION.expected, else bad/NAME.expected; neither: it compiles. */
static void check_message(const char *script, int version)
{
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };
	CLEANUP(buf_deinit)
	struct buf expected = { 0 };
	char path[300], text[1500];
	struct err err = { 0 };
	int code;

	snprintf(path, sizeof(path), "%.*s.%d.expected", (int)strlen(script) - 2, script, version);
	if (buf_read_file(&expected, path, NULL)) {
		snprintf(path, sizeof(path), "%.*s.expected", (int)strlen(script) - 2, script);
		buf_read_file(&expected, path, NULL);
	}
	code = compile_path(script, &result, &err);
	if (!expected.size) {
		assert_int_equal(code, 0);
		return;
	}
	assert_int_equal(code, -EINVAL);
	snprintf(text, sizeof(text), "%s:%s", script, expected.data);
	text[strcspn(text, "\n")] = 0;
	assert_string_equal(err.text, text);
	assert_int_equal(result.diagnostics.size, 0);
}

static void test_messages(void **state)
{
	struct dirent *entry;
	size_t i, checked = 0;
	DIR *directory;

	for (i = 0; i < 2; i++) {
		if (!have_clang(versions[i]))
			continue;
		directory = opendir(BAD_SCRIPTS);
		assert_non_null(directory);
		while ((entry = readdir(directory))) {
			char path[300];
			size_t size = strlen(entry->d_name);

			if (size < 3 || strcmp(entry->d_name + size - 2, ".c"))
				continue;
			snprintf(path, sizeof(path), BAD_SCRIPTS "/%.100s", entry->d_name);
			check_message(path, versions[i]);
			checked++;
		}
		closedir(directory);
	}
	unsetenv("DUET_CLANG");
	assert_true(checked >= 20);
}

static void test_verbose_keeps_the_original(void **state)
{
	struct compile_options options = { .path = BAD_SCRIPTS "/arguments-call.c",
					   .write_vmlinux = write_vmlinux,
					   .verbose = true };
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };

	assert_int_equal(compile_script(&options, &result, NULL), -EINVAL);
	assert_non_null(result.diagnostics.data);
	assert_non_null(strstr(result.diagnostics.data, "error:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiler_is_missing),
		cmocka_unit_test(test_ordinary_errors_are_clangs_own),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_verbose_keeps_the_original),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
