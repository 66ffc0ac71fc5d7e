// SPDX-License-Identifier: BSD-2-Clause
/* Compiling scripts: the cache, the compilers, input and output. */
#include "compile_fixture.h"

/* ---- the cache ------------------------------------------------------------------------------ */

static void test_second_run_starts_no_compiler(void **state)
{
	CLEANUP(free_pointer)
	char *path = strdup(getenv("PATH"));

	unsetenv("DUET_CLANG");
	must_compile("good.c", false);
	must_compile("good.c", true);
	setenv("PATH", "/nowhere", 1);
	must_compile("good.c", true);
	setenv("PATH", path, 1);
}

static void test_edits_are_seen(void **state)
{
	char text[sizeof(good) + 100];

	snprintf(text, sizeof(text), "%s// edited\n", good);
	write_text("edited.c", text);
	must_compile("edited.c", false);
	text[strlen(text) - 2] = 'D';
	write_text("edited.c", text);
	must_compile("edited.c", false);
	must_compile("edited.c", true);
}

static void test_included_files_are_seen(void **state)
{
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };

	mkdir("a folder", 0755);
	write_text("a folder/my own.h", "#define ANSWER 1\n");
	write_text("a folder/inc.c",
		   "#include <duet.h>\n#include \"my own.h\"\nu64 answer = ANSWER;\n");
	must_compile("a folder/inc.c", false);
	must_compile("a folder/inc.c", true);
	write_text("a folder/my own.h", "#define ANSWER 2\n");
	must_compile("a folder/inc.c", false);
	must_compile("a folder/inc.c", true);
	unlink("a folder/my own.h");
	assert_int_equal(compile_path("a folder/inc.c", &result, NULL), -EINVAL);
}

static void test_compilers_do_not_share(void **state)
{
	if (!have_clang(14) || !have_clang(19))
		skip();
	use_clang(14);
	write_text("two.c", good);
	must_compile("two.c", false);
	use_clang(19);
	must_compile("two.c", false);
	use_clang(14);
	must_compile("two.c", true);
	unsetenv("DUET_CLANG");
}

static void test_flags_are_part_of_the_key(void **state)
{
	struct compile_options options = { .path = "flag.c", .write_vmlinux = write_vmlinux };
	struct compile_result results[3] = { 0 };
	size_t i;

	write_text("flag.c", "#include <duet.h>\nu64 value = VALUE;\nchar text[] = TEXT;\n");
	for (i = 0; i < 3; i++) {
		options.cflags =
			i == 1 ? "-DVALUE=2 '-DTEXT=\"a b\"'" : "-DVALUE=1 -DTEXT=\\\"ab\\\"";
		assert_int_equal(compile_script(&options, &results[i], NULL), 0);
	}
	assert_false(results[1].cached);
	assert_true(results[2].cached);
	assert_int_equal(results[0].object.size, results[2].object.size);
	assert_non_null(memmem(results[1].object.data, results[1].object.size, "a b", 4));
	for (i = 0; i < 3; i++)
		compile_result_deinit(&results[i]);
	options.cflags = "-D'X";
	assert_int_equal(compile_script(&options, &results[0], NULL), -EINVAL);
}

static void damage(const char *prefix, bool cut)
{
	char path[200], name[256];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/cache/duet/compile", folder);
	directory = opendir(path);
	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		struct stat status;
		int fd;

		if (strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		snprintf(name, sizeof(name), "%s", entry->d_name);
		fd = openat(dirfd(directory), name, O_RDWR);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &status), 0);
		if (cut)
			assert_int_equal(ftruncate(fd, status.st_size / 2), 0);
		else
			assert_int_equal(pwrite(fd, "X", 1, status.st_size - 10), 1);
		close(fd);
	}
	closedir(directory);
}

static void test_damaged_entries_are_made_again(void **state)
{
	char text[sizeof(good) + 100];

	must_compile("good.c", true);
	damage("object-", false);
	must_compile("good.c", false);
	must_compile("good.c", true);
	damage("object-", true);
	must_compile("good.c", false);
	snprintf(text, sizeof(text), "%s// precompiled header is cut\n", good);
	write_text("again.c", text);
	damage("pch-", true);
	must_compile("again.c", false);
}

static void test_works_without_a_cache(void **state)
{
	CLEANUP(free_pointer)
	char *cache = strdup(getenv("XDG_CACHE_HOME"));
	CLEANUP(free_pointer)
	char *home = strdup(getenv("HOME"));

	/* For root everything can be written to but what is no folder. */
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	setenv("HOME", "/proc/1", 1);
	write_text("uncached.c", good);
	if (geteuid()) {
		must_compile("uncached.c", false);
		must_compile("uncached.c", false);
	} else {
		CLEANUP(compile_result_deinit)
		struct compile_result result = { 0 };

		assert_int_equal(compile_path("uncached.c", &result, NULL), 0);
	}
	setenv("XDG_CACHE_HOME", cache, 1);
	setenv("HOME", home, 1);
}

static void test_a_folder_of_somebody_else_is_not_used(void **state)
{
	CLEANUP(free_pointer)
	char *cache = strdup(getenv("XDG_CACHE_HOME"));
	char path[160];

	snprintf(path, sizeof(path), "%s/open/duet/compile", folder);
	mkdir("open", 0755);
	mkdir("open/duet", 0755);
	mkdir("open/duet/compile", 0755);
	chmod("open/duet/compile", 0777);
	path[strlen(path) - strlen("/duet/compile")] = 0;
	setenv("XDG_CACHE_HOME", path, 1);
	{
		CLEANUP(compile_result_deinit)
		struct compile_result result = { 0 };

		assert_int_equal(compile_path("good.c", &result, NULL), 0);
	}
	assert_int_equal(rmdir("open/duet/compile"), 0); /* nothing was put there */
	setenv("XDG_CACHE_HOME", cache, 1);
}

static void test_at_the_same_time(void **state)
{
	CLEANUP(free_pointer)
	char *cache = strdup(getenv("XDG_CACHE_HOME"));
	char path[160];
	pid_t pids[4];
	size_t i;
	int status;

	snprintf(path, sizeof(path), "%s/together", folder);
	setenv("XDG_CACHE_HOME", path, 1); /* so that all of them make vmlinux.h, too */
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			struct compile_result result = { 0 };

			_exit(compile_path("good.c", &result, NULL) || result.object.size < 64);
		}
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	must_compile("good.c", true);
	setenv("XDG_CACHE_HOME", cache, 1);
}

static void test_kernel_types_are_made_once(void **state)
{
	struct compile_options options = { .path = "types.c", .write_vmlinux = write_vmlinux };
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };
	struct err err = { 0 };
	int calls = 0;

	options.context = &calls;
	write_text("types.c", "#include <duet.h>\nu64 types;\n");
	assert_int_equal(compile_script(&options, &result, NULL), 0);
	assert_int_equal(calls, 0); /* an earlier test did */
	compile_result_deinit(&result);
	options.arch = strcmp(compile_host_arch(), "arm64") ? "arm64" : "x86_64";
	assert_int_equal(compile_script(&options, &result, &err), -ENOENT);
	assert_non_null(strstr(err.text, "--btf FILE"));
	options.btf_path =
		"/sys/kernel/btf/vmlinux"; /* the wrong one, but good enough to compile */
	assert_int_equal(compile_script(&options, &result, &err), 0);
	assert_int_equal(calls, 1);
	options.arch = "riscv";
	assert_int_equal(compile_script(&options, &result, &err), -EINVAL);
}

/* ---- input and output -------------------------------------------------------------------- */

static void test_standard_input(void **state)
{
	int saved = dup(STDIN_FILENO), fd = open("good.c", O_RDONLY);

	assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	must_compile("-", false);
	lseek(fd, 0, SEEK_SET);
	must_compile("-", true);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(fd);
}

static void test_plain_libbpf_script(void **state)
{
	size_t i;

	write_text("plain.c",
		   "#include \"vmlinux.h\"\n#include <bpf/bpf_helpers.h>\n#include "
		   "<bpf/bpf_tracing.h>\n"
		   "char LICENSE[] SEC(\"license\") = \"GPL\";\nu64 n;\n"
		   "SEC(\"kprobe/vfs_read\") int BPF_KPROBE(enter) { n++; return 0; }\n");
	write_text("uapi.c",
		   "#include <linux/bpf.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
		   "#include <bpf/bpf_helpers.h>\nchar LICENSE[] SEC(\"license\") = \"GPL\";\n"
		   "bool on = true; size_t n;\nSEC(\"raw_tp\") int f(void *c) { return on; }\n");
	for (i = 0; i < 2; i++) {
		if (!have_clang(versions[i]))
			continue;
		must_compile("plain.c", false);
		must_compile("uapi.c", false);
	}
	unsetenv("DUET_CLANG");
}

static void test_library_headers(void **state)
{
	write_text(
		"headers.c",
		"#include <duet.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
		"#include <math.h>\n#include <time.h>\n#include <errno.h>\n#include <ctype.h>\n"
		"#include <unistd.h>\n#include <fcntl.h>\n#include <sys/stat.h>\n#include "
		"<stdint.h>\n"
		"#include <stdbool.h>\n#include <stddef.h>\n#include <limits.h>\n#include "
		"<dirent.h>\n"
		"#include <inttypes.h>\n#include <assert.h>\n#include <signal.h>\n#include "
		"<stdarg.h>\n"
		"SEC(\"user/exit\") int end(const struct duet_exit *e)\n{\n"
		"\tstruct stat status;\n\tstruct tm tm;\n\ttime_t now = time(NULL);\n"
		"\tchar text[32];\n"
		"\tif (stat(\"/\", &status) || !localtime_r(&now, &tm))\n\t\treturn -errno;\n"
		"\tstrftime(text, sizeof(text), \"%F\", &tm);\n"
		"\tassert(S_ISDIR(status.st_mode));\n"
		"\tfprintf(stderr, \"%s %zu %\" PRIu64 \" %f\\n\", text, strlen(text), (uint64_t)1,"
		" sqrt(2.0));\n"
		"\treturn 0;\n}\n");
	must_compile("headers.c", false);
}

static void test_output_is_whole_or_absent(void **state)
{
	CLEANUP(compile_result_deinit)
	struct compile_result result = { 0 };
	struct rlimit old, small;
	struct err err = { 0 };
	struct stat status;

	assert_int_equal(compile_path("good.c", &result, NULL), 0);
	write_text("out.o", "old");
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = result.object.size - 100;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	assert_true(compile_write_object(&result.object, "out.o", &err) < 0);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(err.text, "out.o: cannot be written"));
	assert_int_equal(stat("out.o", &status), 0);
	assert_int_equal(status.st_size, 3); /* what was there is still there */
	assert_int_equal(run("test \"$(ls | grep -c '^out.o')\" = 1"), 0);
	assert_int_equal(compile_write_object(&result.object, "out.o", &err), 0);
	assert_int_equal(stat("out.o", &status), 0);
	assert_int_equal(status.st_size, result.object.size);
	assert_int_equal(compile_write_object(&result.object, "no/such/out.o", &err), -ENOENT);
}

static void test_warnings_are_repeated(void **state)
{
	size_t i;

	write_text("warn.c", "#include <duet.h>\n"
			     "SEC(\"user/exit\") int end(const struct duet_exit *e)\n"
			     "{\n\tprintf(\"%s\\n\", e->samples);\n\treturn 0;\n}\n");
	for (i = 0; i < 2; i++) {
		CLEANUP(compile_result_deinit)
		struct compile_result result = { 0 };

		assert_int_equal(compile_path("warn.c", &result, NULL), 0);
		assert_int_equal(result.cached, i == 1);
		assert_non_null(result.diagnostics.data);
		assert_non_null(strstr(result.diagnostics.data, "warn.c:4:"));
		assert_non_null(strstr(result.diagnostics.data, "-Wformat"));
	}
}

static void test_cflags_are_what_is_used(void **state)
{
	struct compile_options options = { .write_vmlinux = write_vmlinux };
	CLEANUP(buf_deinit)
	struct buf flags = { 0 };
	char command[8192];

	unsetenv("DUET_CLANG");
	assert_int_equal(compile_cflags(&options, &flags, NULL), 0);
	assert_null(strchr(flags.data, '\n'));
	snprintf(command, sizeof(command), "%s %s -Werror -c good.c -o flags.o",
		 have_clang(19) ? "clang-19" : "clang", flags.data);
	assert_int_equal(run(command), 0);
	unsetenv("DUET_CLANG");
}

static void test_new_script(void **state)
{
	struct err err = { 0 };
	size_t i;

	assert_int_equal(compile_new("first.c", &err), 0);
	for (i = 0; i < 2; i++) {
		if (have_clang(versions[i]))
			must_compile("first.c", false);
	}
	unsetenv("DUET_CLANG");
	write_text("first.c", "mine");
	assert_int_equal(compile_new("first.c", &err), -EEXIST);
	assert_non_null(strstr(err.text, "exists already"));
	assert_int_equal(run("test \"$(cat first.c)\" = mine"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_run_starts_no_compiler),
		cmocka_unit_test(test_edits_are_seen),
		cmocka_unit_test(test_included_files_are_seen),
		cmocka_unit_test(test_compilers_do_not_share),
		cmocka_unit_test(test_flags_are_part_of_the_key),
		cmocka_unit_test(test_damaged_entries_are_made_again),
		cmocka_unit_test(test_works_without_a_cache),
		cmocka_unit_test(test_a_folder_of_somebody_else_is_not_used),
		cmocka_unit_test(test_at_the_same_time),
		cmocka_unit_test(test_kernel_types_are_made_once),
		cmocka_unit_test(test_standard_input),
		cmocka_unit_test(test_plain_libbpf_script),
		cmocka_unit_test(test_library_headers),
		cmocka_unit_test(test_output_is_whole_or_absent),
		cmocka_unit_test(test_warnings_are_repeated),
		cmocka_unit_test(test_cflags_are_what_is_used),
		cmocka_unit_test(test_new_script),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
