/* SPDX-License-Identifier: BSD-2-Clause */
/* A loop for each test, and callbacks that note what they saw. */
#pragma once

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

static inline int setup(void **state)
{
	struct loop *loop;
	struct err err = { 0 };

	if (loop_open(&loop, &err))
		return -1;
	*state = loop;
	return 0;
}

static inline int teardown(void **state)
{
	loop_close(*state);
	return 0;
}

static inline int count_call(struct seen *seen)
{
	seen->calls++;
	if (seen->stop_after && seen->calls >= seen->stop_after)
		loop_stop(seen->loop);
	return seen->result;
}

static inline int on_fd(void *context, int fd, uint32_t events)
{
	struct seen *seen = context;
	char byte;

	seen->value = read(fd, &byte, 1) == 1 ? byte : -1;
	return count_call(seen);
}

static inline int on_tick(void *context, const struct loop_tick *tick)
{
	struct seen *seen = context;

	seen->tick = *tick;
	seen->missed += tick->missed;
	return count_call(seen);
}

static inline int on_signal(void *context, int signo)
{
	struct seen *seen = context;

	seen->value = signo;
	return count_call(seen);
}

static inline int on_child(void *context, struct loop_child *child, int wait_status)
{
	struct seen *seen = context;

	seen->value = wait_status;
	return count_call(seen);
}

static inline int on_task(void *context, pid_t id)
{
	struct seen *seen = context;

	seen->value = id;
	return count_call(seen);
}

static inline void sleep_ms(long ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
