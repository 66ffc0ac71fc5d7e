// SPDX-License-Identifier: BSD-2-Clause
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "loop/internal.h"

#define NS_PER_S     1000000000ULL
#define ROUND_EVENTS 16

int loop_open(struct loop **ret, struct err *err)
{
	CLEANUP(loop_close_cleanup)
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return err_nomem(err);
	loop->wake_fd = -1;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return err_set(err, -errno, "event loop: %s", strerror(errno));
	pthread_sigmask(SIG_SETMASK, NULL, &loop->mask);
	sigaction(SIGPIPE, NULL, &loop->pipe_action);
	getrlimit(RLIMIT_NOFILE, &loop->files);
	*ret = take_pointer(loop);
	return 0;
}

static void source_free(struct loop_source *source)
{
	if (source->release)
		source->release(source);
	if (source->owns_fd && source->fd >= 0)
		close(source->fd);
	free(source);
}

static void sources_free(struct loop_source **list)
{
	struct loop_source *source;

	while ((source = *list)) {
		*list = source->next;
		source_free(source);
	}
}

void loop_close(struct loop *loop)
{
	if (!loop)
		return;
	children_release(loop);
	while (loop->sources)
		loop_remove(loop->sources);
	sources_free(&loop->dead);
	signals_release(loop);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	free(loop);
}

int source_add(struct loop *loop, int fd, bool owns_fd, uint32_t events,
	       int (*serve)(struct loop_source *source, uint32_t events), void *context,
	       struct loop_source **ret, struct err *err)
{
	struct loop_source *source = calloc(1, sizeof(*source));
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (!source)
		return err_nomem(err);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		int code = -errno;

		free(source);
		return err_set(err, code, "event loop: file descriptor %d: %s", fd,
			       strerror(-code));
	}
	*source = (struct loop_source){
		.loop = loop,
		.next = loop->sources,
		.fd = fd,
		.owns_fd = owns_fd,
		.serve = serve,
		.context = context,
	};
	loop->sources = source;
	*ret = source;
	return 0;
}

void loop_remove(struct loop_source *source)
{
	struct loop_source **link;
	struct loop *loop;

	if (!source || source->removed)
		return;
	loop = source->loop;
	for (link = &loop->sources; *link != source; link = &(*link)->next)
		;
	*link = source->next;
	source->removed = true;
	/* Fails harmlessly when the caller has closed the descriptor already. */
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	if (!loop->depth) {
		source_free(source);
		return;
	}
	source->next = loop->dead;
	loop->dead = source;
}

int loop_once(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[ROUND_EVENTS];
	int count, i, served = 0, result = 0;

	count = epoll_wait(loop->epoll_fd, events, ROUND_EVENTS, timeout_ms);
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	loop->depth++;
	for (i = 0; i < count && result >= 0; i++) {
		struct loop_source *source = events[i].data.ptr;

		/* What a stop leaves unserved stays ready: all sources are level-triggered. */
		if (source->removed)
			continue;
		if (loop->stop && served)
			break;
		result = source->serve(source, events[i].events);
		served++;
	}
	if (!--loop->depth)
		sources_free(&loop->dead);
	return result < 0 ? result : served;
}

int loop_run(struct loop *loop)
{
	int result = 0;

	loop->runs++;
	while (!loop->stop && result >= 0)
		result = loop_once(loop, -1);
	if (!--loop->runs)
		loop->stop = false;
	return result < 0 ? result : 0;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}

bool loop_stopping(const struct loop *loop)
{
	return loop->stop;
}

static int serve_fd(struct loop_source *source, uint32_t events)
{
	return source->on_fd(source->context, source->fd, events);
}

int loop_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *context,
	    struct loop_source **ret, struct err *err)
{
	struct loop_source *source;
	int code = source_add(loop, fd, false, events, serve_fd, context, &source, err);

	if (code)
		return code;
	source->on_fd = fn;
	if (ret)
		*ret = source;
	return 0;
}

uint64_t loop_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int serve_timer(struct loop_source *source, uint32_t events)
{
	struct loop_tick tick;
	uint64_t expired;

	/* Set anew between the wait and this read: nothing to serve yet. */
	if (read(source->fd, &expired, sizeof(expired)) != sizeof(expired))
		return 0;
	tick.n = ++source->timer.n;
	tick.missed = expired - 1;
	tick.now = loop_now();
	tick.since_last = tick.now - source->timer.last;
	source->timer.last = tick.now;
	return source->on_timer(source->context, &tick);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

int loop_timer_set(struct loop_source *timer, uint64_t first_ns, uint64_t interval_ns)
{
	struct itimerspec when = {
		.it_value = timespec_of(first_ns ? first_ns : interval_ns),
		.it_interval = timespec_of(interval_ns),
	};

	timer->timer.last = loop_now();
	return timerfd_settime(timer->fd, 0, &when, NULL) ? -errno : 0;
}

int loop_timer(struct loop *loop, uint64_t first_ns, uint64_t interval_ns, loop_timer_fn fn,
	       void *context, struct loop_source **ret, struct err *err)
{
	CLEANUP(close_fd)
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct loop_source *source;
	int code;

	if (fd < 0)
		return err_set(err, -errno, "timer: %s", strerror(errno));
	code = source_add(loop, fd, true, EPOLLIN, serve_timer, context, &source, err);
	if (code)
		return code;
	fd = -1;
	source->on_timer = fn;
	code = loop_timer_set(source, first_ns, interval_ns);
	if (code) {
		loop_remove(source);
		return err_set(err, code, "timer: %s", strerror(-code));
	}
	if (ret)
		*ret = source;
	return 0;
}
