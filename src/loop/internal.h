/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share. */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "loop/loop.h"

/* Every kind of source is a struct with this first, made by source_add(). */
struct loop_source {
	struct loop *loop;
	struct loop_source *next; /* in loop->sources, or in loop->dead */
	int fd;
	bool owns_fd;
	bool removed;
	int (*serve)(struct loop_source *source, uint32_t events);
	void (*release)(struct loop_source *source); /* may be NULL: frees what hangs off it */
	void *context;
	union {
		loop_fd_fn on_fd;
		loop_timer_fn on_timer;
		loop_task_fn on_task;
		struct loop_child *child;
	};
	union {
		struct {
			uint64_t n, last;
		} timer;
		pid_t task;
	};
};

struct loop_signal_entry {
	bool used;
	loop_signal_fn fn;
	void *context;
	struct sigaction old;
};

struct loop {
	int epoll_fd;
	unsigned int depth; /* loop_once() calls that are under way */
	unsigned int runs;  /* loop_run() calls that are under way */
	bool stop;
	struct loop_source *sources;
	struct loop_source *dead; /* removed, but an outer round may still hold a pointer */
	struct loop_child *children;

	/* what children get back */
	sigset_t mask;
	struct sigaction pipe_action;
	struct rlimit files;

	/* signals; the handler touches the atomics, wake_fd and the hook only */
	int wake_fd; /* eventfd, -1 until the first loop_signal() */
	bool owns_signals;
	struct loop_signal_entry signals[NSIG];
	atomic_uint pending[NSIG];
	atomic_uint arrived[NSIG];
	_Atomic(loop_signal_hook_fn) hook;
	_Atomic(void *) hook_context;
};

/* A new source for @fd, in the epoll set for @events. On failure @fd stays the caller's. */
int source_add(struct loop *loop, int fd, bool owns_fd, uint32_t events,
	       int (*serve)(struct loop_source *source, uint32_t events), void *context,
	       struct loop_source **ret, struct err *err);
void signals_release(struct loop *loop);
/* In a forked child: gives every signal its disposition of before loop_open(). */
void signals_restore_child(const struct loop *loop);
void children_release(struct loop *loop);
int pidfd_of(pid_t id, bool thread);
