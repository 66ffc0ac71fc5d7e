// SPDX-License-Identifier: BSD-2-Clause
/* Descriptors, timers, signals. */
#include "loop_fixture.h"

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
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
