// SPDX-License-Identifier: BSD-2-Clause
/* While the programs are attached: timers, signals, children; then the way out. */
#include "session/internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* A hook that still runs this long after SIGINT is ended. */
#define INTERRUPT_GRACE_SECONDS 1

int session_fail(struct session *session, const struct err *err)
{
	if (!session->failure.code)
		session->failure = *err;
	else if (strcmp(session->failure.text, err->text))
		log_note("%s", err->text);
	loop_stop(session->loop);
	return 0;
}

int session_run_hook(struct session *session, enum hook_kind kind, const void *argument,
		     uint64_t size)
{
	struct err err = { 0 };

	if (hook_half_dead(session->half))
		return 0;
	if (hook_run(session->half, kind, NULL, NULL, argument, size, &err))
		return session_fail(session, &err);
	return 0;
}

/* ---- intervals -------------------------------------------------------------------------------- */
static bool same_interval(const struct hook_program *program, const void *interval)
{
	return program->interval_ns == *(const uint64_t *)interval;
}

static int run_interval(struct session *session, uint64_t interval, const struct loop_tick *tick)
{
	struct duet_tick argument = { .n = tick->n,
				      .missed = tick->missed,
				      .now = tick->now,
				      .since_last = tick->since_last };
	struct err err = { 0 };

	if (hook_half_dead(session->half))
		return 0;
	if (hook_run(session->half, HOOK_INTERVAL, same_interval, &interval, &argument,
		     sizeof(argument), &err))
		return session_fail(session, &err);
	return 0;
}

struct interval {
	struct session *session;
	uint64_t ns; /* as the section says: 0 is -I */
	struct interval *next;
};

static int tick(void *context, const struct loop_tick *loop_tick)
{
	struct interval *interval = context;

	return run_interval(interval->session, interval->ns, loop_tick);
}

static int start_intervals(struct session *session, struct err *err)
{
	size_t i, k;

	for (i = 0; i < hook_program_count(session->half); i++) {
		const struct hook_program *program = hook_program_at(session->half, i);
		struct interval *interval;
		uint64_t ns = program->interval_ns;
		int code;

		if (program->kind != HOOK_INTERVAL)
			continue;
		for (k = 0; k < i; k++) {
			const struct hook_program *other = hook_program_at(session->half, k);

			if (other->kind == HOOK_INTERVAL && other->interval_ns == ns)
				break;
		}
		if (k < i)
			continue;
		interval = calloc(1, sizeof(*interval));
		if (!interval)
			return err_nomem(err);
		*interval = (struct interval){ session, ns, session->intervals };
		session->intervals = interval;
		if (!ns)
			ns = session->options->interval_ns ?: 1000000000;
		code = loop_timer(session->loop, ns, ns, tick, interval, NULL, err);
		if (code)
			return code;
	}
	return 0;
}

void session_free_intervals(struct session *session)
{
	while (session->intervals) {
		struct interval *next = session->intervals->next;

		free(session->intervals);
		session->intervals = next;
	}
}

static int duration_over(void *context, const struct loop_tick *loop_tick)
{
	struct session *session = context;

	session->exit.reason = DUET_REASON_DURATION;
	loop_stop(session->loop);
	return 0;
}

/* ---- signals ------------------------------------------------------------------------------------ */

/* Inside the handler. The first SIGINT lets a hook end by itself, for a while; the next does not. */
static void signal_hook(void *context, int signo)
{
	struct session *session = context;
	bool hook_runs = session->half && hook_running(session->half);

	if (signo == SIGALRM) {
		if (session->signalled && hook_runs)
			hook_interrupt(session->half, false);
		return;
	}
	if (signo != SIGINT && signo != SIGTERM)
		return;
	if (session->signalled && hook_runs)
		hook_interrupt(session->half, false);
	session->signalled = true;
	alarm(INTERRUPT_GRACE_SECONDS);
}

static int end_asked(void *context, int signo)
{
	struct session *session = context;

	loop_stop(session->loop);
	return 0;
}

static bool same_signal(const struct hook_program *program, const void *signo)
{
	return program->signal == *(const int *)signo;
}

static int script_signal(void *context, int signo)
{
	struct session *session = context;
	struct duet_signal argument = { .number = signo };
	struct err err = { 0 };

	if (!hook_half_dead(session->half) && hook_run(session->half, HOOK_SIGNAL, same_signal,
						       &signo, &argument, sizeof(argument), &err))
		return session_fail(session, &err);
	/* A hook of SIGINT or SIGTERM runs before the end; it does not prevent it. */
	return signo == SIGINT || signo == SIGTERM ? end_asked(session, signo) : 0;
}

/* Before anything is made that would have to be removed. */
int session_take_signals(struct session *session, struct err *err)
{
	static const int ours[] = { SIGINT, SIGTERM, SIGALRM };
	size_t i;
	int code;

	signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write */
	loop_set_signal_hook(session->loop, signal_hook, session);
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		code = loop_signal(session->loop, ours[i], LOOP_SIGNAL_INTERRUPTS,
				   ours[i] == SIGALRM ? NULL : end_asked, session, err);
		if (code)
			return code;
	}
	return 0;
}

/* Before CMD may send one: what comes early is served once the loop runs. */
int session_take_script_signals(struct session *session, struct err *err)
{
	size_t i;

	for (i = 0; i < hook_program_count(session->half); i++) {
		const struct hook_program *program = hook_program_at(session->half, i);
		int code, flags;

		if (program->kind != HOOK_SIGNAL)
			continue;
		flags = program->signal == SIGINT || program->signal == SIGTERM
				? LOOP_SIGNAL_INTERRUPTS
				: 0;
		code = loop_signal(session->loop, program->signal, flags, script_signal, session,
				   err);
		if (code)
			return err_prepend(err, code, "%s", program->section);
	}
	return 0;
}

/* ---- the run ---------------------------------------------------------------------------------- */

int session_loop(struct session *session, struct err *err)
{
	uint64_t duration = session->options->duration_ns;
	int code;

	code = start_intervals(session, err);
	if (!code && duration)
		code = loop_timer(session->loop, duration, 0, duration_over, session, NULL, err);
	if (code)
		return code;
	if (session->stop_asked || session->failure.code)
		return 0;
	code = loop_run(session->loop);
	if (code < 0 && !session->failure.code)
		return err_set(err, code, "waiting for events: %s", strerror(-code));
	return 0;
}

/*
 * Every bare raw_tp program runs once on each CPU while the counters are still on: the slice that
 * runs now is charged like those before it.
 */
static void flush_slices(struct session *session)
{
	size_t i;

	for (i = 0; i < kern_program_count(session->kern); i++) {
		struct kern_program *program = kern_program_at(session->kern, i);
		int code;

		if (kern_program_state(program) != KERN_PROGRAM_BARE ||
		    strncmp(kern_program_section(program), "raw_t", 5))
			continue;
		code = kern_program_run(program, -1);
		if (code < 0)
			log_note("%s: the last slice is missing: %s", kern_program_name(program),
				 strerror(-code));
	}
}

static int exit_status(const struct session *session)
{
	if (session->failure.code)
		return 1;
	if (session->stop_asked)
		return session->stop_status;
	if (session->exit.reason == DUET_REASON_SIGNAL)
		return 0;
	if (session->child && !loop_child_running(session->child))
		return loop_child_status(session->child);
	return 0;
}

/* A script without a report, or one that could not give it. */
static bool needs_dump(const struct session *session)
{
	return hook_half_dead(session->half) || session->failure.code == -EFAULT ||
	       (session->released && !hook_program_count(session->half));
}

static void dump(struct session *session)
{
	struct err err = { 0 };

	if (session->failure.code)
		log_note("the maps as they are now:");
	if (hook_dump(session->half, &err) && !session->failure.code)
		session_fail(session, &err);
}

/* The way out, on every path once the programs may be attached. Returns 0 or -errno of reports. */
int session_finish(struct session *session)
{
	struct err err = { 0 };
	bool was_running = session->phase == PHASE_RUN;

	if (session->signalled)
		session->exit.reason = DUET_REASON_SIGNAL;
	session->signalled = false;
	if (session->kern && was_running) {
		flush_slices(session);
		if (session->released && !session->failure.code &&
		    session_print_iterators(session, &err))
			session_fail(session, &err);
	}
	if (session->kern && was_running)
		session_overhead_take(session);
	if (session->kern)
		kern_detach(session->kern);
	if (was_running) {
		if (session->printk)
			kern_printk_consume(session->printk);
		/* After a fault no hook runs but user/exit: it would meet the same state again. */
		if (!session->failure.code) {
			session_drain_rings(session);
			/* CMD's own end may have stopped the loop before its record was served. */
			kern_target_consume(session->kern);
		}
		session_tell_failures(session);
		session_tell_ended(session);
	}
	session_disable_counters(session);
	session->phase = PHASE_EXIT;
	if (session->failure.code)
		session->exit.reason = DUET_REASON_ERROR;
	else if (session->stop_asked)
		session->exit.reason = DUET_REASON_STOP;
	session->exit.status = exit_status(session);
	if (!hook_half_dead(session->half))
		session_run_hook(session, HOOK_EXIT, &session->exit, sizeof(session->exit));
	if (needs_dump(session))
		dump(session);
	if (report_finish(session->report, &err) < 0 && !session->failure.code)
		session_fail(session, &err);
	session_overhead_tell(session);
	session->exit.status = exit_status(session); /* user/exit may have stopped with another */
	return session->failure.code;
}
