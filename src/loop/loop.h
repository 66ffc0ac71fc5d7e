/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread's event loop: file descriptors, timers, signals, children, foreign processes.
 *
 * Callbacks get the context that was given with them and return 0 (or more) to go on, or -errno,
 * which ends loop_run() with that value. A callback may add and remove sources, itself too, and
 * may run the loop again (nested); a removed source is never called again.
 *
 * Ownership: everything that is made on a loop belongs to it and is released by loop_close();
 * contexts are borrowed. One thread; only the signal hook runs elsewhere (in the handler).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct loop;
struct loop_source; /* anything that calls back; until loop_remove() or loop_close() */
struct loop_child;  /* until loop_close() */

/* Remembers the signal mask, SIGPIPE's disposition and RLIMIT_NOFILE, which children get back:
 * open the loop before changing them. */
int loop_open(struct loop **ret, struct err *err);
/* Ends living children (see loop_child_stop()), closes, gives signals their old dispositions. */
void loop_close(struct loop *loop);
DEFINE_CLEANUP(struct loop *, loop_close);

/*
 * Serves sources until loop_stop(): 0, or the negative value of a callback. A stop asked for
 * before the run ends it at once. Nested runs end together with the outermost; then the stop is
 * forgotten and the loop can be run again.
 */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
bool loop_stopping(const struct loop *loop);
/* One round: waits at most @timeout_ms (-1: for ever, 0: not at all), serves what is ready. The
 * number of sources served (0: none, or a signal came first), or -errno of a callback. */
int loop_once(struct loop *loop, int timeout_ms);

/* Also for children's own end: NULL is accepted. Does not close a descriptor of loop_fd(). */
void loop_remove(struct loop_source *source);

/* ---- file descriptors: level-triggered; the descriptor stays the caller's ---------------- */
typedef int (*loop_fd_fn)(void *context, int fd, uint32_t events); /* EPOLLIN ... */
/* @ret may be NULL everywhere below. -EPERM: a regular file, which is always ready. */
int loop_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *context,
	    struct loop_source **ret, struct err *err);

/* ---- timers (CLOCK_MONOTONIC, ns) -------------------------------------------------------- */
struct loop_tick {
	uint64_t n;      /* calls so far: 1, 2, 3 ... */
	uint64_t missed; /* ticks that passed unserved since the last call: counted, not queued */
	uint64_t now;    /* ns */
	uint64_t since_last; /* ns since the last call, or since the timer was set */
};
typedef int (*loop_timer_fn)(void *context, const struct loop_tick *tick);
/* First tick after @first_ns (0: after @interval_ns), then each @interval_ns (0: one tick only).
 * Both 0: not armed until loop_timer_set(). */
int loop_timer(struct loop *loop, uint64_t first_ns, uint64_t interval_ns, loop_timer_fn fn,
	       void *context, struct loop_source **ret, struct err *err);
/* Sets it anew from now on; both 0 disarm it. */
int loop_timer_set(struct loop_source *timer, uint64_t first_ns, uint64_t interval_ns);
uint64_t loop_now(void); /* CLOCK_MONOTONIC, ns */

/* ---- signals: one loop of a process may own them (-EBUSY for a second) ------------------- */
typedef int (*loop_signal_fn)(void *context, int signo);
enum {
	/* System calls return EINTR on this signal instead of going on: for SIGINT and SIGTERM,
	 * so that a script that sleeps or reads is woken. */
	LOOP_SIGNAL_INTERRUPTS = 1,
};
/* A real handler notes the signal; @fn (may be NULL) is called once per arrival from the loop. */
int loop_signal(struct loop *loop, int signo, int flags, loop_signal_fn fn, void *context,
		struct err *err);
/* Called inside the handler, on whatever thread it interrupts: async-signal-safe only
 * (vm_interrupt() is). It never runs in children. NULL takes it away. */
typedef void (*loop_signal_hook_fn)(void *context, int signo);
void loop_set_signal_hook(struct loop *loop, loop_signal_hook_fn hook, void *context);
/* Arrivals of @signo since loop_signal(), served or not. */
unsigned int loop_signal_count(const struct loop *loop, int signo);

/* ---- children ---------------------------------------------------------------------------- */
struct loop_command {
	char *const *argv; /* NULL-terminated, looked up in PATH as execvp(3) does */
	int stdout_fd;     /* becomes the child's standard output (2: join stderr); -1: unchanged */
};
/* The child has ended. @wait_status as wait(2) gives it; -1 if somebody else reaped it. */
typedef int (*loop_child_fn)(void *context, struct loop_child *child, int wait_status);
/*
 * Forks a child that waits for loop_child_release() before it executes the command. It has our
 * mask, dispositions and file limit as they were at loop_open(). If we die first, it exits.
 * A child that is killed while it waits is reported to @fn like any other.
 */
int loop_spawn(struct loop *loop, const struct loop_command *command, loop_child_fn fn,
	       void *context, struct loop_child **ret, struct err *err);
/* Lets the child go and waits for its exec. -errno of the exec with `CMD: why: hint`: the child is
 * then reaped, its status is 127 (not found) or 126, and @fn is not called. */
int loop_child_release(struct loop_child *child, struct err *err);
pid_t loop_child_pid(const struct loop_child *child); /* stays known after its end */
bool loop_child_running(const struct loop_child *child);
/* As a shell tells it: exit code, or 128 + signal; -ECHILD while it runs or if unknown. */
int loop_child_status(const struct loop_child *child);
/* -ESRCH when it has ended. */
int loop_child_kill(struct loop_child *child, int signo);
/*
 * Ends it: SIGTERM, at most @grace_ms of waiting, SIGKILL; then as loop_child_status(). @fn is not
 * called. A child that was not released is killed at once. (A terminal's SIGINT reaches the child
 * without us.) loop_close() does this with LOOP_CHILD_GRACE_MS.
 */
#define LOOP_CHILD_GRACE_MS 2000
int loop_child_stop(struct loop_child *child, unsigned int grace_ms);

/* ---- foreign processes -------------------------------------------------------------------- */
typedef int (*loop_task_fn)(void *context, pid_t id);
/*
 * Calls @fn once when process @id (or, with @thread, that one thread) has ended; then the source is
 * removed. -ESRCH when there is none. Threads are polled each 50 ms by kernels before 6.9.
 */
int loop_watch_task(struct loop *loop, pid_t id, bool thread, loop_task_fn fn, void *context,
		    struct loop_source **ret, struct err *err);
