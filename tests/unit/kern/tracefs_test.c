// SPDX-License-Identifier: BSD-2-Clause
/* Left-over probes, in a folder that looks like tracefs; and what needs no kernel at all. */
#include "kern/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kern/offsets.h"
#include "kern/watcher.h"
#include "support.h"

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void read_file(const char *folder, const char *name, struct buf *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	text->size = 0;
	assert_int_equal(buf_read_file(text, path, NULL), 0);
}

static int make_folder(void **state)
{
	char *folder = strdup("/tmp/duet-tracefs-XXXXXX");

	assert_non_null(mkdtemp(folder));
	*state = folder;
	return 0;
}

static int remove_folder(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/kprobe_events", (char *)*state);
	unlink(path);
	snprintf(path, sizeof(path), "%s/uprobe_events", (char *)*state);
	unlink(path);
	rmdir(*state);
	free(*state);
	return 0;
}

/* A PID that was in use and is not any more. */
static int dead_pid(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return child;
}

static void test_sweep(void **state)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	char owner[64], reused[64], lines[1024], expected[128];
	int dead = dead_pid();

	tracefs_owner_name(owner, sizeof(owner), getpid());
	/* this PID, but another process had it */
	snprintf(reused, sizeof(reused), "duet_%d_1", getpid());
	snprintf(lines, sizeof(lines),
		 "r4096:kprobes/%s_1 do_nanosleep\n"
		 "p:kprobes/mine vfs_read\n"
		 "r4096:kprobes/duet_%d_12345_1 do_nanosleep\n"
		 "r4096:kprobes/%s_7 do_nanosleep\n"
		 "p:kprobes/duetting vfs_read\n",
		 owner, dead, reused);
	write_file(*state, "kprobe_events", lines);
	snprintf(lines, sizeof(lines), "p:uprobes/duet_%d_99_2 /bin/sh:0x10\n", dead);
	write_file(*state, "uprobe_events", lines);
	assert_int_equal(tracefs_sweep_in(*state), 3);
	read_file(*state, "kprobe_events", &text);
	snprintf(expected, sizeof(expected), "\n-:kprobes/duet_%d_12345_1\n-:kprobes/%s_7\n", dead,
		 reused);
	assert_text(text.data, expected);
	snprintf(expected, sizeof(expected), "-:kprobes/%s", owner);
	assert_null(strstr(text.data, expected));
	assert_null(strstr(text.data, "-:kprobes/mine"));
	assert_null(strstr(text.data, "-:kprobes/duetting"));
	read_file(*state, "uprobe_events", &text);
	snprintf(expected, sizeof(expected), "-:uprobes/duet_%d_99_2\n", dead);
	assert_text(text.data, expected);
}

static void wait_for_text(const char *folder, const char *part)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	int tries;

	for (tries = 0; tries < 500; tries++) {
		read_file(folder, "kprobe_events", &text);
		if (strstr(text.data, part))
			return;
		usleep(10000);
	}
	fail_msg("no \"%s\" in: %s", part, text.data);
}

/* The owner is killed: the watcher removes, though the owner's child still holds descriptors. */
static void test_watcher_after_kill(void **state)
{
	char line[128], expected[200], byte;
	int ready[2], hold[2], status;
	pid_t owner;

	write_file(*state, "kprobe_events", "");
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(hold), 0);
	owner = fork();
	if (!owner) {
		struct watcher watcher;
		char name[64];

		tracefs_owner_name(name, sizeof(name), getpid());
		snprintf(line, sizeof(line), "r4096:kprobes/%s_1 f\n", name);
		write_file(*state, "kprobe_events", line);
		if (watcher_start(&watcher, *state, name))
			_exit(1);
		close(hold[1]);
		if (!fork())
			_exit(read(hold[0], &byte, 1)); /* until the test ends it */
		byte = write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	tracefs_owner_name(line, sizeof(line), owner);
	snprintf(expected, sizeof(expected), "-:kprobes/%s_1\n", line);
	kill(owner, SIGKILL);
	waitpid(owner, &status, 0);
	wait_for_text(*state, expected);
	close(hold[0]);
	close(hold[1]);
	close(ready[0]);
}

static void test_watcher_leaves(void **state)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct watcher watcher;

	write_file(*state, "kprobe_events", "p:kprobes/mine f\n");
	assert_int_equal(watcher_start(&watcher, *state, "duet_1_2"), 0);
	watcher_stop(&watcher);
	read_file(*state, "kprobe_events", &text);
	assert_string_equal(text.data, "p:kprobes/mine f\n");
}

static void test_places(void **state)
{
	struct user_place user;
	struct usdt_place usdt;
	struct err err = { 0 };

	assert_ok(user_place_parse("/bin/sh:main+0x10", &user, &err));
	assert_string_equal(user.path, "/bin/sh");
	assert_string_equal(user.symbol, "main");
	assert_int_equal(user.offset, 16);
	assert_ok(user_place_parse("/bin/sh:0x1234", &user, &err));
	assert_string_equal(user.symbol, "");
	assert_int_equal(user.offset, 0x1234);
	assert_ok(user_place_parse("sh:main", &user, &err));
	assert_text(user.path, "/sh");
	assert_ok(user_place_parse("libc.so.6:malloc", &user, &err));
	assert_text(user.path, "/libc.so.6");
	assert_int_equal(user_place_parse("/bin/sh", &user, &err), -EINVAL);
	assert_int_equal(user_place_parse("/bin/sh:", &user, &err), -EINVAL);
	assert_int_equal(user_place_parse("/bin/sh:main+x", &user, &err), -EINVAL);
	assert_int_equal(user_place_parse(":main", &user, &err), -EINVAL);
	assert_int_equal(user_place_parse("no-such-binary:main", &user, &err), -ENOENT);
	assert_ok(usdt_place_parse("/bin/sh:provider:name", &usdt, &err));
	assert_string_equal(usdt.path, "/bin/sh");
	assert_string_equal(usdt.provider, "provider");
	assert_string_equal(usdt.name, "name");
	assert_int_equal(usdt_place_parse("/bin/sh:name", &usdt, &err), -EINVAL);
	assert_int_equal(usdt_place_parse("name", &usdt, &err), -EINVAL);
}

static void test_offsets(void **state)
{
	struct field_offset fields[] = { { "task_struct", "pid" },
					 { "task_struct", "tgid" },
					 { "signal_struct", "live", FIELD_STRUCT },
					 { "task_struct", "comm", FIELD_ARRAY },
					 { "task_struct", "group_leader", FIELD_POINTER } };
	struct field_offset asked[5];
	struct field_offset absent[] = { { "task_struct", "no_such_field" } };
	size_t i;
	struct err err = { 0 };
	char path[256];

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	memcpy(asked, fields, sizeof(fields));
	assert_ok(offsets_find("/sys/kernel/btf/vmlinux", fields, 5, &err));
	if (kern_feature(KERN_FEATURE_RAW_TRACEPOINT, NULL) > 0) {
		assert_ok(offsets_ask(asked, 5));
		for (i = 0; i < 5; i++)
			assert_int_equal(asked[i].offset, fields[i].offset);
		assert_true(offsets_ask(absent, 1) < 0);
	}
	assert_int_equal(fields[1].offset, fields[0].offset + 4);
	assert_true(fields[2].offset > 0);
	assert_int_equal(offsets_find(NULL, absent, 1, &err), -ENOENT);
	assert_text(err.text, "no_such_field");
	write_file(*state, "kprobe_events", "this is no BTF, it only pretends to be a file");
	snprintf(path, sizeof(path), "%s/kprobe_events", (char *)*state);
	assert_int_equal(offsets_find(path, fields, 3, &err), -EINVAL);
}

static void test_features(void **state)
{
	int i;

	for (i = 0; i < KERN_FEATURE_COUNT; i++) {
		const struct kern_feature_row *row = kern_feature_row(i);
		struct err err = { 0 };
		int answer = kern_feature(i, &err);

		assert_true(row->name && row->purpose && row->remedy);
		if (answer != 1 && !err.text[0])
			fail_msg("%s: no reason for %d", row->name, answer);
	}
	assert_null(kern_feature_row(KERN_FEATURE_COUNT));
	assert_int_equal(kern_feature(KERN_FEATURE_RAW_TRACEPOINT, NULL), 1);
	assert_int_equal(kern_feature(KERN_FEATURE_RINGBUF, NULL), 1);
}

static void test_vmlinux_header(void **state)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct err err = { 0 };
	char path[256];
	int fd;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	snprintf(path, sizeof(path), "%s/uprobe_events", (char *)*state);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_ok(kern_write_vmlinux_header(NULL, fd, &err));
	close(fd);
	read_file(*state, "uprobe_events", &text);
	assert_text(text.data, "struct task_struct {");
	assert_int_equal(kern_write_vmlinux_header("/dev/null", 1, &err) < 0, 1);
	assert_text(err.text, "/dev/null");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sweep),   TEST(watcher_after_kill), TEST(watcher_leaves), TEST(places),
		TEST(offsets), TEST(features),           TEST(vmlinux_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
