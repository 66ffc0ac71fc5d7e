// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "loop/loop.h"

#define MS 1000000ULL

/* What callbacks of a test saw. */
struct seen {
	struct loop *loop;
	struct loop_source *source;
	int calls;
	int value;
	int stop_after; /* calls; 0: never */
	int result;
	uint64_t missed;
	struct loop_tick tick;
};

static int setup(void **state)
{
	struct loop *loop;
	struct err err = { 0 };

	if (loop_open(&loop, &err))
		return -1;
	*state = loop;
	return 0;
}

static int teardown(void **state)
{
	loop_close(*state);
	return 0;
}

static int count_call(struct seen *seen)
{
	seen->calls++;
	if (seen->stop_after && seen->calls >= seen->stop_after)
		loop_stop(seen->loop);
	return seen->result;
}

static int on_fd(void *context, int fd, uint32_t events)
{
	struct seen *seen = context;
	char byte;

	seen->value = read(fd, &byte, 1) == 1 ? byte : -1;
	return count_call(seen);
}

static int on_tick(void *context, const struct loop_tick *tick)
{
	struct seen *seen = context;

	seen->tick = *tick;
	seen->missed += tick->missed;
	return count_call(seen);
}

static int on_signal(void *context, int signo)
{
	struct seen *seen = context;

	seen->value = signo;
	return count_call(seen);
}

static int on_child(void *context, struct loop_child *child, int wait_status)
{
	struct seen *seen = context;

	seen->value = wait_status;
	return count_call(seen);
}

static int on_task(void *context, pid_t id)
{
	struct seen *seen = context;

	seen->value = id;
	return count_call(seen);
}

static void sleep_ms(long ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void fd_is_served_until_removed(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 3 };
	struct loop_source *source;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(loop_fd(loop, ends[0], EPOLLIN, on_fd, &seen, &source, NULL), 0);
	assert_int_equal(write(ends[1], "abc", 3), 3);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.calls, 3);
	assert_int_equal(seen.value, 'c');
	assert_int_equal(loop_once(loop, 0), 0);
	assert_int_equal(write(ends[1], "d", 1), 1);
	loop_remove(source);
	assert_int_equal(loop_once(loop, 0), 0);
	assert_int_equal(seen.calls, 3);
	close(ends[0]);
	close(ends[1]);
}

static void callback_error_ends_the_run(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .result = -EXDEV };

	assert_int_equal(loop_timer(loop, MS, 0, on_tick, &seen, NULL, NULL), 0);
	assert_int_equal(loop_run(loop), -EXDEV);
	assert_int_equal(seen.calls, 1);
}

static void regular_file_is_refused(void **state)
{
	struct err err = { 0 };
	FILE *file = tmpfile();

	assert_int_equal(loop_fd(*state, fileno(file), EPOLLIN, on_fd, NULL, NULL, &err), -EPERM);
	assert_non_null(strstr(err.text, "not permitted"));
	fclose(file);
}

/* A removes B while both are ready in one round: B, already gathered, must not be called. */
static int remove_other(void *context, int fd, uint32_t events)
{
	struct seen *seen = context;

	loop_remove(seen->source);
	return on_fd(context, fd, events);
}

static void removed_source_of_the_same_round_is_not_called(void **state)
{
	struct loop *loop = *state;
	struct seen a = { .loop = loop }, b = { .loop = loop };
	int pa[2], pb[2];

	assert_int_equal(pipe(pa) | pipe(pb), 0);
	assert_int_equal(loop_fd(loop, pa[0], EPOLLIN, remove_other, &a, &b.source, NULL), 0);
	assert_int_equal(loop_fd(loop, pb[0], EPOLLIN, remove_other, &b, &a.source, NULL), 0);
	assert_int_equal(write(pa[1], "a", 1) + write(pb[1], "b", 1), 2);
	while (loop_once(loop, 0) > 0)
		;
	assert_int_equal(a.calls + b.calls, 1);
	close(pa[0]), close(pa[1]), close(pb[0]), close(pb[1]);
}

static int nest(void *context, int fd, uint32_t events)
{
	struct seen *seen = context;

	seen->value = read(fd, &(char){ 0 }, 1);
	loop_remove(seen->source);
	return loop_run(seen->loop); /* ended by the timer's loop_stop() */
}

static void nested_runs_end_together(void **state)
{
	struct loop *loop = *state;
	struct seen outer = { .loop = loop }, tick = { .loop = loop, .stop_after = 2 };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(loop_fd(loop, ends[0], EPOLLIN, nest, &outer, &outer.source, NULL), 0);
	assert_int_equal(loop_timer(loop, 0, MS, on_tick, &tick, NULL, NULL), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(outer.value, 1);
	assert_int_equal(tick.calls, 2);
	assert_false(loop_stopping(loop));
	close(ends[0]), close(ends[1]);
}

static void stop_before_run_is_kept(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop };

	assert_int_equal(loop_timer(loop, 1, 0, on_tick, &seen, NULL, NULL), 0);
	sleep_ms(2);
	loop_stop(loop);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.calls, 0);
	seen.stop_after = 1;
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.calls, 1);
}

static void missed_ticks_are_counted_not_queued(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop };
	struct loop_source *timer;
	uint64_t start = loop_now(), ticks;

	assert_int_equal(loop_timer(loop, 0, 5 * MS, on_tick, &seen, &timer, NULL), 0);
	sleep_ms(52);
	assert_int_equal(loop_once(loop, -1), 1);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.tick.n, 1);
	assert_true(seen.tick.missed >= 9);
	ticks = (loop_now() - start) / (5 * MS);
	assert_true(seen.tick.missed + 1 <= ticks);
	assert_true(seen.tick.since_last >= 50 * MS);
	/* Calls and missed ticks together are all ticks. */
	while (seen.calls < 5)
		assert_true(loop_once(loop, -1) >= 0);
	ticks = (loop_now() - start) / (5 * MS);
	assert_true(seen.calls + seen.missed <= ticks);
	assert_true(seen.calls + seen.missed + 3 >= (seen.tick.now - start) / (5 * MS));
	assert_int_equal(loop_timer_set(timer, 0, 0), 0);
	assert_int_equal(loop_once(loop, 15), 0);
}

static void single_shot_fires_once(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop };

	assert_int_equal(loop_timer(loop, MS, 0, on_tick, &seen, NULL, NULL), 0);
	assert_int_equal(loop_once(loop, -1), 1);
	assert_int_equal(loop_once(loop, 10), 0);
	assert_int_equal(seen.calls, 1);
}

struct hook_seen {
	volatile sig_atomic_t calls, signo;
};

static void hook(void *context, int signo)
{
	struct hook_seen *seen = context;

	seen->calls++;
	seen->signo = signo;
}

static void signal_reaches_hook_at_once_and_callback_later(void **state)
{
	struct loop *loop = *state;
	struct seen seen = { .loop = loop, .stop_after = 2 };
	struct hook_seen hooked = { 0 };

	assert_int_equal(loop_signal(loop, SIGUSR1, 0, on_signal, &seen, NULL), 0);
	loop_set_signal_hook(loop, hook, &hooked);
	raise(SIGUSR1);
	raise(SIGUSR1);
	assert_int_equal(hooked.calls, 2);
	assert_int_equal(hooked.signo, SIGUSR1);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(loop_signal_count(loop, SIGUSR1), 2);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.value, SIGUSR1);
	loop_set_signal_hook(loop, NULL, NULL);
	raise(SIGUSR1);
	assert_int_equal(hooked.calls, 2);
}

static void *interrupt_later(void *thread)
{
	int i;

	/* More than one, in case the first comes before the read. */
	for (i = 0; i < 20; i++) {
		sleep_ms(10);
		pthread_kill(*(pthread_t *)thread, SIGINT);
	}
	return NULL;
}

static void interrupting_signal_ends_a_blocking_read(void **state)
{
	struct loop *loop = *state;
	pthread_t self = pthread_self(), thread;
	struct hook_seen hooked = { 0 };
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(loop_signal(loop, SIGINT, LOOP_SIGNAL_INTERRUPTS, NULL, NULL, NULL), 0);
	loop_set_signal_hook(loop, hook, &hooked);
	assert_int_equal(pthread_create(&thread, NULL, interrupt_later, &self), 0);
	assert_int_equal(read(ends[0], &byte, 1), -1);
	assert_int_equal(errno, EINTR);
	/* An endless loop of a script ends through the hook as well. */
	while (hooked.calls < 3)
		;
	pthread_join(thread, NULL);
	close(ends[0]), close(ends[1]);
}

static void second_owner_of_signals_is_refused_and_dispositions_return(void **state)
{
	struct loop *loop = *state, *second;
	struct sigaction now;
	struct err err = { 0 };

	signal(SIGUSR2, SIG_IGN);
	assert_int_equal(loop_signal(loop, SIGUSR2, 0, NULL, NULL, NULL), 0);
	assert_int_equal(loop_open(&second, NULL), 0);
	assert_int_equal(loop_signal(second, SIGUSR2, 0, NULL, NULL, &err), -EBUSY);
	loop_close(second);
	assert_int_equal(loop_signal(loop, SIGKILL, 0, NULL, NULL, &err), -EINVAL);
	assert_int_equal(loop_signal(loop, 0, 0, NULL, NULL, &err), -EINVAL);
	loop_close(loop);
	sigaction(SIGUSR2, NULL, &now);
	assert_true(now.sa_handler == SIG_IGN);
	signal(SIGUSR2, SIG_DFL);
	assert_int_equal(loop_open((struct loop **)state, NULL), 0);
	/* Owned by nobody now. */
	assert_int_equal(loop_signal(*state, SIGUSR2, 0, NULL, NULL, NULL), 0);
}

static void signal_behind_a_failed_one_stays(void **state)
{
	struct loop *loop = *state;
	struct seen bad = { .loop = loop, .result = -EIO }, good = { .loop = loop };

	assert_int_equal(loop_signal(loop, SIGUSR1, 0, on_signal, &bad, NULL), 0);
	assert_int_equal(loop_signal(loop, SIGUSR2, 0, on_signal, &good, NULL), 0);
	raise(SIGUSR2);
	raise(SIGUSR1);
	assert_int_equal(loop_run(loop), -EIO);
	assert_int_equal(good.calls, 0);
	assert_int_equal(loop_once(loop, 0), 1);
	assert_int_equal(good.calls, 1);
}

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fd_is_served_until_removed),
		TEST(callback_error_ends_the_run),
		TEST(regular_file_is_refused),
		TEST(removed_source_of_the_same_round_is_not_called),
		TEST(nested_runs_end_together),
		TEST(stop_before_run_is_kept),
		TEST(missed_ticks_are_counted_not_queued),
		TEST(single_shot_fires_once),
		TEST(signal_reaches_hook_at_once_and_callback_later),
		TEST(interrupting_signal_ends_a_blocking_read),
		TEST(second_owner_of_signals_is_refused_and_dispositions_return),
		TEST(signal_behind_a_failed_one_stays),
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

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
