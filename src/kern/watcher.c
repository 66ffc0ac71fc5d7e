// SPDX-License-Identifier: BSD-2-Clause
#include "kern/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kern/internal.h"

/* 3: our end; 4: a pidfd of the parent, or nothing. All other descriptors would keep pipes open
 * that others wait for. */
static void keep_two_descriptors(int end, int parent)
{
	int null = open("/dev/null", O_RDWR);
	int i;

	end = fcntl(end, F_DUPFD, 10);
	parent = parent < 0 ? -1 : fcntl(parent, F_DUPFD, 10);
	for (i = 0; i < 3; i++)
		dup2(null, i);
	dup2(end, 3);
	if (parent < 0)
		close(4);
	else
		dup2(parent, 4);
	if (syscall(SYS_close_range, 5, ~0U, 0)) {
		for (i = 5; i < 65536; i++)
			close(i);
	}
}

static void ignore_signals(void)
{
	sigset_t none;
	int i;

	for (i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void watch(int end, int parent, const char *root, const char *owner)
{
	int tries;

	setsid();
	ignore_signals();
	prctl(PR_SET_NAME, "duet-watcher");
	if (chdir("/"))
		_exit(1);
	keep_two_descriptors(end, parent);
	/* Until now it held whatever the parent has open: probes that were closed would have stayed. */
	if (write(3, "", 1) != 1)
		_exit(1);
	/*
	 * The socket ends when the last process that holds the other end is gone: a child that was
	 * forked meanwhile may hold it, hence the pidfd too.
	 */
	struct pollfd wait[2] = { { .fd = 3, .events = POLLIN }, { .fd = 4, .events = POLLIN } };

	while (poll(wait, 2, -1) < 0 && errno == EINTR)
		;
	/* Entries are busy until the kernel has let go of the dead one's events. */
	for (tries = 0; tries < 100 && tracefs_count_owned(root, owner) > 0; tries++) {
		if (tries)
			usleep(tries < 20 ? 5000 : 50000);
		tracefs_remove_owned(root, owner);
	}
	_exit(0);
}

/* The watcher says that it has started. */
static bool has_started(int end)
{
	char byte;
	ssize_t n;

	do
		n = read(end, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

int watcher_start(struct watcher *watcher, const char *root, const char *owner)
{
	int ends[2], parent, status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	parent = syscall(SYS_pidfd_open, getpid(), 0);
	/* Twice, so that it is nobody's child: waits of ours for any child do not meet it. */
	child = fork();
	if (!child) {
		pid_t second = fork();

		if (!second)
			watch(ends[1], parent, root, owner);
		_exit(second < 0);
	}
	close(ends[1]);
	if (parent >= 0)
		close(parent);
	if (child < 0 || waitpid(child, &status, 0) != child || status || !has_started(ends[0])) {
		int code = child < 0 ? -errno : -EAGAIN;

		close(ends[0]);
		return code;
	}
	watcher->fd = ends[0];
	return 0;
}

void watcher_stop(struct watcher *watcher)
{
	struct pollfd gone = { .fd = watcher->fd, .events = POLLIN };

	shutdown(watcher->fd, SHUT_WR);
	/* It leaves at once: there is nothing for it to remove. */
	while (poll(&gone, 1, 2000) < 0 && errno == EINTR)
		;
	close(watcher->fd);
}
