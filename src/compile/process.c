// SPDX-License-Identifier: BSD-2-Clause
/* Runs the compiler. */
#include "compile/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

extern char **environ;

/* Variables that would change what is compiled without being part of the cache's key. */
static bool is_hidden(const char *variable)
{
	static const char *const names[] = { "CPATH=", "C_INCLUDE_PATH=", "CCC_OVERRIDE_OPTIONS=",
					     "DEPENDENCIES_OUTPUT=", "SUNPRO_DEPENDENCIES=" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

/* The caller frees the array, not the strings. */
static char **visible_environment(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		return NULL;
	for (count = 0; environ[count]; count++) {
		if (!is_hidden(environ[count]))
			copy[kept++] = environ[count];
	}
	return copy;
}

/* The compiler takes the signals that we hold. */
static int take_no_mask(posix_spawnattr_t *attributes)
{
	sigset_t none;
	int code = posix_spawnattr_init(attributes);

	sigemptyset(&none);
	if (!code)
		code = posix_spawnattr_setsigmask(attributes, &none);
	if (!code)
		code = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
	return code;
}

static int spawn(char *const *argv, int input, int output, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char **environment = visible_environment();
	int code;

	if (!environment)
		return -ENOMEM;
	code = posix_spawn_file_actions_init(&actions);
	if (!code)
		code = take_no_mask(&attributes);
	if (code) {
		free(environment);
		return -code;
	}
	if (input >= 0)
		code = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	else
		code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
							O_RDONLY, 0);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
	if (!code)
		code = posix_spawn(ret, argv[0], &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	return -code;
}

void process_hold_signals(sigset_t *old)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &held, old);
}

int process_release_signals(const sigset_t *old)
{
	const struct timespec now = { 0 };
	sigset_t held;
	int came = 0, signo;

	sigemptyset(&held);
	for (signo = 1; signo < NSIG; signo++) {
		if ((signo == SIGINT || signo == SIGTERM) && !sigismember(old, signo))
			sigaddset(&held, signo);
	}
	while ((signo = sigtimedwait(&held, NULL, &now)) > 0)
		came = signo;
	pthread_sigmask(SIG_SETMASK, old, NULL);
	return came;
}

/* All that the compiler prints; it is ended when a held signal comes. */
static int collect(int fd, pid_t pid, struct buf *output)
{
	struct pollfd wait[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	CLEANUP(close_fd) int signal_fd = -1;
	sigset_t held;
	bool ended = false;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	wait[1].fd = signal_fd = signalfd(-1, &held, SFD_CLOEXEC);
	for (;;) {
		char text[4096];
		ssize_t got;

		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (wait[1].revents) { /* it stays pending: process_release_signals() takes it */
			kill(pid, SIGTERM);
			ended = true;
			wait[1].fd = -1;
			wait[1].revents = 0;
		}
		if (!wait[0].revents)
			continue;
		got = read(fd, text, sizeof(text));
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			return ended ? -EINTR : 0;
		if (got > 0 && buf_append(output, text, got))
			return -ENOMEM;
	}
}

int process_run(char *const *argv, int input, struct buf *output)
{
	int pipe_fds[2], status, code, read_code;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	code = spawn(argv, input, pipe_fds[1], &pid);
	close(pipe_fds[1]);
	if (code) {
		close(pipe_fds[0]);
		return code;
	}
	read_code = collect(pipe_fds[0], pid, output);
	close(pipe_fds[0]);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (read_code)
		return read_code;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
