// SPDX-License-Identifier: BSD-2-Clause
/* Watching processes and threads that are not our children. */
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "loop/internal.h"

#define POLL_NS 50000000ULL

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

int pidfd_of(pid_t id, bool thread)
{
	int fd = syscall(SYS_pidfd_open, id, thread ? PIDFD_THREAD : 0);

	return fd < 0 ? -errno : fd;
}

static int task_ended(struct loop_source *source)
{
	loop_task_fn fn = source->on_task;
	void *context = source->context;
	pid_t id = source->task;

	loop_remove(source);
	return fn(context, id);
}

static int serve_task(struct loop_source *source, uint32_t events)
{
	return task_ended(source);
}

static int serve_polled_task(struct loop_source *source, uint32_t events)
{
	uint64_t expired;

	if (read(source->fd, &expired, sizeof(expired)) < 0)
		return 0;
	/* tkill with signal 0 asks whether the thread is there; EPERM says yes. */
	if (!syscall(SYS_tkill, source->task, 0) || errno != ESRCH)
		return 0;
	return task_ended(source);
}

static int polling_timer(void)
{
	struct itimerspec when = { .it_value.tv_nsec = POLL_NS, .it_interval.tv_nsec = POLL_NS };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd >= 0)
		timerfd_settime(fd, 0, &when, NULL);
	return fd < 0 ? -errno : fd;
}

int loop_watch_task(struct loop *loop, pid_t id, bool thread, loop_task_fn fn, void *context,
		    struct loop_source **ret, struct err *err)
{
	const char *what = thread ? "thread" : "process";
	CLEANUP(close_fd)
	int fd = -1;
	struct loop_source *source;
	bool polled = false;
	int code;

	if (id <= 0 || (syscall(SYS_tkill, id, 0) && errno == ESRCH))
		return err_set(err, -ESRCH, "%s %d: there is no such %s", what, id, what);
	fd = pidfd_of(id, thread);
	if (fd == -EINVAL && thread) {
		polled = true;
		fd = polling_timer();
	}
	if (fd == -EINVAL || fd == -ENOENT)
		return err_set(err, -EINVAL, "process %d: it is a thread, not a process: use -t %d",
			       id, id);
	if (fd < 0)
		return err_set(err, fd, "%s %d: %s", what, id, strerror(-fd));
	code = source_add(loop, fd, true, EPOLLIN, polled ? serve_polled_task : serve_task, context,
			  &source, err);
	if (code)
		return code;
	fd = -1;
	source->on_task = fn;
	source->task = id;
	if (ret)
		*ret = source;
	return 0;
}
