// SPDX-License-Identifier: BSD-2-Clause
/* Children, foreign processes, and what a loop leaves behind. */
#include "loop_fixture.h"

static struct loop_child *spawn(struct loop *loop, const char *script, int stdout_fd,
				struct seen *seen)
{
	char *argv[] = { "sh", "-c", (char *)script, NULL };
	struct loop_command command = { .argv = argv, .stdout_fd = stdout_fd };
	struct loop_child *child;

	assert_int_equal(loop_spawn(loop, &command, on_child, seen, &child, NULL), 0);
	return child;
}

static void child_waits_for_release_and_gives_its_status(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 1 };
	CLEANUP(buf_deinit)
	struct buf out = { 0 };
	struct loop_child *child;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = spawn(loop, "echo hello; exit 3", ends[1], &seen);
	close(ends[1]);
	assert_int_equal(loop_once(loop, 30), 0);
	assert_true(loop_child_running(child));
	assert_int_equal(loop_child_status(child), -ECHILD);
	assert_int_equal(loop_child_release(child, NULL), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(WEXITSTATUS(seen.value), 3);
	assert_int_equal(loop_child_status(child), 3);
	assert_false(loop_child_running(child));
	assert_int_equal(loop_child_kill(child, SIGTERM), -ESRCH);
	assert_int_equal(buf_read_fd(&out, ends[0]), 0);
	assert_string_equal(out.data, "hello\n");
	close(ends[0]);
	/* Reaped. */
	assert_int_equal(waitpid(loop_child_pid(child), NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
}

static void signal_death_is_128_plus_signal(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 1 };
	struct loop_child *child = spawn(loop, "kill -USR1 $$", -1, &seen);

	assert_int_equal(loop_child_release(child, NULL), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(loop_child_status(child), 128 + SIGUSR1);
}

static void exec_failure_is_told_with_its_errno(void **state)
{
	static const struct {
		const char *path;
		int code, status;
		const char *text;
	} rows[] = {
		{ "no-such-command-here", -ENOENT, 127, "not found in PATH" },
		{ "/etc/passwd/x", -ENOTDIR, 127, "Not a directory" },
		{ "/etc/passwd", -EACCES, 126, "chmod +x" },
		{ "/", -EACCES, 126, "Permission denied" },
	};
	struct loop *loop = *state;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *argv[] = { (char *)rows[i].path, NULL };
		struct loop_command command = { .argv = argv, .stdout_fd = -1 };
		struct seen seen = { .loop = loop };
		struct loop_child *child;
		struct err err = { 0 };

		assert_int_equal(loop_spawn(loop, &command, on_child, &seen, &child, &err), 0);
		assert_int_equal(loop_child_release(child, &err), rows[i].code);
		assert_int_equal(loop_child_status(child), rows[i].status);
		assert_non_null(strstr(err.text, rows[i].path));
		assert_non_null(strstr(err.text, rows[i].text));
		assert_int_equal(loop_once(loop, 0), 0);
		assert_int_equal(seen.calls, 0);
	}
}

static void child_killed_while_it_waits(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 1 };
	struct loop_child *child = spawn(loop, "exit 0", -1, &seen);

	assert_int_equal(loop_child_kill(child, SIGKILL), 0);
	/* Released before its end is known: no SIGPIPE, no error, the callback tells. */
	assert_int_equal(loop_child_release(child, NULL), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(loop_child_status(child), 128 + SIGKILL);
	assert_int_equal(loop_child_release(child, NULL), 0);
}

static void stop_ends_also_what_ignores_sigterm(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop };
	struct loop_child *meek = spawn(loop, "exec sleep 1000", -1, &seen);
	struct loop_child *waiting = spawn(loop, "exit 0", -1, &seen);
	struct loop_child *stubborn;
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	stubborn = spawn(loop, "trap '' TERM; echo x; while :; do sleep 1; done", ends[1], &seen);
	assert_int_equal(loop_child_release(meek, NULL), 0);
	assert_int_equal(loop_child_stop(meek, 10000), 128 + SIGTERM);
	assert_int_equal(loop_child_release(stubborn, NULL), 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(loop_child_stop(stubborn, 20), 128 + SIGKILL);
	assert_int_equal(loop_child_stop(waiting, 10000), 128 + SIGKILL);
	assert_int_equal(loop_once(loop, 0), 0);
	assert_int_equal(seen.calls, 0);
	close(ends[0]), close(ends[1]);
}

static void close_ends_living_children(void **state)
{
	struct loop *loop = *state;
	struct loop_child *child = spawn(loop, "exec sleep 1000", -1, NULL);
	pid_t pid = loop_child_pid(child), waiting = loop_child_pid(spawn(loop, "exit", -1, NULL));

	assert_int_equal(loop_child_release(child, NULL), 0);
	loop_close(loop);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(kill(waiting, 0), -1);
	assert_int_equal(loop_open((struct loop **)state, NULL), 0);
}

static uint64_t mask_of(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	assert_non_null(line);
	return strtoull(line + strlen(name), NULL, 16);
}

/* The command sees neither our dispositions, nor our mask, nor our file limit. */
static void child_gets_the_world_as_it_was(void **state)
{
	const uint64_t pipe_bit = 1ULL << (SIGPIPE - 1), alarm_bit = 1ULL << (SIGALRM - 1);
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 1 };
	CLEANUP(buf_deinit)
	struct buf out = { 0 };
	struct rlimit files, lower;
	struct loop_child *child;
	sigset_t mask;
	int ends[2];

	getrlimit(RLIMIT_NOFILE, &files);
	lower = (struct rlimit){ files.rlim_cur / 2, files.rlim_max };
	setrlimit(RLIMIT_NOFILE, &lower);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = spawn(loop, "ulimit -n; grep -E 'SigBlk|SigIgn' /proc/self/status", ends[1], &seen);
	close(ends[1]);
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	assert_int_equal(loop_child_release(child, NULL), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(buf_read_fd(&out, ends[0]), 0);
	assert_int_equal(strtoull(out.data, NULL, 10), files.rlim_cur);
	assert_int_equal(mask_of(out.data, "SigBlk:") & alarm_bit, 0);
	assert_int_equal(mask_of(out.data, "SigIgn:") & pipe_bit, 0);
	close(ends[0]);
}

/* When we are killed, a child that waits for its release exits; nobody holds its pipe then. */
static void waiting_child_exits_with_a_killed_parent(void **state)
{
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		struct loop *loop;
		struct loop_command command = { .argv = (char *[]){ "true", NULL },
						.stdout_fd = -1 };

		if (loop_open(&loop, NULL) || loop_spawn(loop, &command, NULL, NULL, NULL, NULL))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* both are gone */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ends[0]);
}

static void end_of_foreign_process_is_seen(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 1 };
	struct err err = { 0 };
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(loop_watch_task(loop, pid, false, on_task, &seen, NULL, NULL), 0);
	assert_int_equal(loop_once(loop, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.value, pid);
	assert_int_equal(loop_once(loop, 0), 0); /* told once only */
	waitpid(pid, NULL, 0);
	assert_int_equal(loop_watch_task(loop, pid, false, on_task, &seen, NULL, &err), -ESRCH);
	assert_non_null(strstr(err.text, "there is no such process"));
	assert_int_equal(loop_watch_task(loop, -5, false, on_task, &seen, NULL, &err), -ESRCH);
}

struct mortal {
	atomic_int tid;
	atomic_int end;
};

static void *mortal_main(void *context)
{
	struct mortal *mortal = context;

	mortal->tid = gettid();
	while (!mortal->end)
		sleep_ms(1);
	return NULL;
}

static void end_of_one_thread_is_seen(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 1 };
	struct mortal mortal = { 0 };
	struct err err = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, mortal_main, &mortal), 0);
	while (!mortal.tid)
		sleep_ms(1);
	assert_int_equal(loop_watch_task(loop, mortal.tid, false, on_task, &seen, NULL, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "use -t"));
	assert_int_equal(loop_watch_task(loop, mortal.tid, true, on_task, &seen, NULL, NULL), 0);
	assert_int_equal(loop_once(loop, 60), 0);
	mortal.end = 1;
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.value, mortal.tid);
	pthread_join(thread, NULL);
}

static int open_files(void)
{
	int fd, count = 0;

	for (fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void close_leaves_no_descriptor(void **state)
{
	int before = open_files();
	struct seen seen = { 0 };
	struct loop *loop;

	assert_int_equal(loop_open(&loop, NULL), 0);
	seen.loop = loop;
	assert_int_equal(loop_timer(loop, 0, MS, on_tick, &seen, NULL, NULL), 0);
	assert_int_equal(loop_signal(loop, SIGUSR1, 0, on_signal, &seen, NULL), 0);
	assert_int_equal(loop_watch_task(loop, getppid(), false, on_task, &seen, NULL, NULL), 0);
	loop_child_release(spawn(loop, "exit 0", -1, &seen), NULL);
	spawn(loop, "exit 0", -1, &seen);
	loop_close(loop);
	assert_int_equal(open_files(), before);
	loop_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(child_waits_for_release_and_gives_its_status),
		TEST(signal_death_is_128_plus_signal),
		TEST(exec_failure_is_told_with_its_errno),
		TEST(child_killed_while_it_waits),
		TEST(stop_ends_also_what_ignores_sigterm),
		TEST(close_ends_living_children),
		TEST(child_gets_the_world_as_it_was),
		cmocka_unit_test(waiting_child_exits_with_a_killed_parent),
		TEST(end_of_foreign_process_is_seen),
		TEST(end_of_one_thread_is_seen),
		cmocka_unit_test(close_leaves_no_descriptor),
	};

	return cmocka_run_group_tests_name("loop-child", tests, NULL, NULL);
}
