// SPDX-License-Identifier: BSD-2-Clause
#include "loop/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "loop/internal.h"

#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND      127

struct loop_child {
	struct loop *loop;
	struct loop_child *next;
	struct loop_source *source; /* NULL once it has ended */
	loop_child_fn fn;
	void *context;
	char *name;
	pid_t pid;
	int pidfd;
	int gate; /* socket: a byte lets the child go; it answers with errno, or EOF at its exec */
	bool running;
	int status; /* as loop_child_status() */
};

/* Runs in the forked child, signals blocked: async-signal-safe calls only. Never returns. */
static void child_main(const struct loop *loop, const struct loop_command *command, int gate,
		       int parents_end)
{
	const char *slash = strrchr(command->argv[0], '/');
	char go;
	int code;

	/* What it runs until its exec is counted too, and belongs to CMD. */
	prctl(PR_SET_NAME, slash ? slash + 1 : command->argv[0]);
	signals_restore_child(loop);
	close(parents_end);
	setrlimit(RLIMIT_NOFILE, &loop->files);
	/* End of file: our parent is gone, and nobody would measure this run. */
	if (TEMP_FAILURE_RETRY(recv(gate, &go, 1, 0)) != 1)
		_exit(EXIT_CANNOT_EXECUTE);
	if (command->stdout_fd >= 0 && command->stdout_fd != STDOUT_FILENO)
		TEMP_FAILURE_RETRY(dup2(command->stdout_fd, STDOUT_FILENO));
	execvp(command->argv[0], command->argv);
	code = errno;
	send(gate, &code, sizeof(code), MSG_NOSIGNAL);
	_exit(code == ENOENT || code == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE);
}

static int shell_status(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : -ECHILD;
}

/* Reaps it and returns the wait status, or -1 if somebody else did (a script's wait(), say). */
static int child_reap(struct loop_child *child)
{
	int wait_status;
	pid_t got = TEMP_FAILURE_RETRY(waitpid(child->pid, &wait_status, 0));

	loop_remove(child->source);
	child->source = NULL;
	child->running = false;
	if (child->pidfd >= 0)
		close(child->pidfd);
	child->pidfd = -1;
	if (child->gate >= 0)
		close(child->gate);
	child->gate = -1;
	child->status = got == child->pid ? shell_status(wait_status) : -ECHILD;
	return got == child->pid ? wait_status : -1;
}

static int serve_child(struct loop_source *source, uint32_t events)
{
	struct loop_child *child = source->child;
	int wait_status = child_reap(child);

	return child->fn ? child->fn(child->context, child, wait_status) : 0;
}

/* fork() with every signal blocked, so that a handler never runs in the child: it would write
 * into descriptors that it shares with us. */
static pid_t fork_child(struct loop *loop, const struct loop_command *command, const int gate[2])
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (!pid)
		child_main(loop, command, gate[1], gate[0]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static void child_free(struct loop_child *child)
{
	free(child->name);
	free(child);
}

static int child_start(struct loop_child *child, const struct loop_command *command,
		       struct err *err)
{
	int gate[2];
	int code;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate))
		return err_set(err, -errno, "%s: %s", child->name, strerror(errno));
	child->pid = fork_child(child->loop, command, gate);
	code = errno;
	close(gate[1]);
	child->gate = gate[0];
	if (child->pid < 0)
		return err_set(err, -code, "%s: cannot start a process: %s", child->name,
			       strerror(code));
	child->running = true;
	child->pidfd = pidfd_of(child->pid, false);
	if (child->pidfd < 0)
		return err_set(err, child->pidfd, "%s: pidfd_open: %s", child->name,
			       strerror(-child->pidfd));
	return 0;
}

int loop_spawn(struct loop *loop, const struct loop_command *command, loop_child_fn fn,
	       void *context, struct loop_child **ret, struct err *err)
{
	struct loop_child *child = calloc(1, sizeof(*child));
	int code;

	if (!child || !(child->name = strdup(command->argv[0]))) {
		free(child);
		return err_nomem(err);
	}
	child->loop = loop;
	child->fn = fn;
	child->context = context;
	child->pidfd = child->gate = -1;
	child->status = -ECHILD;
	code = child_start(child, command, err);
	if (!code)
		code = source_add(loop, child->pidfd, false, EPOLLIN, serve_child, child,
				  &child->source, err);
	if (code) {
		if (child->running)
			loop_child_stop(child, 0);
		if (child->gate >= 0)
			close(child->gate);
		child_free(child);
		return code;
	}
	child->source->child = child;
	child->next = loop->children;
	loop->children = child;
	if (ret)
		*ret = child;
	return 0;
}

static const char *exec_hint(int code)
{
	switch (code) {
	case ENOENT:
		return "not found in PATH";
	case EACCES:
		return "is it executable (chmod +x)?";
	case ENOEXEC:
		return "not a program of this machine, or a script without #! line";
	}
	return NULL;
}

int loop_child_release(struct loop_child *child, struct err *err)
{
	const char go = 1;
	ssize_t got;
	int code;

	if (child->gate < 0) /* ended before, or released already */
		return 0;
	/* Fails when the child was killed while it waited: its end is told by the callback. */
	send(child->gate, &go, 1, MSG_NOSIGNAL);
	got = TEMP_FAILURE_RETRY(recv(child->gate, &code, sizeof(code), MSG_WAITALL));
	close(child->gate);
	child->gate = -1;
	if (got != sizeof(code))
		return 0;
	child_reap(child);
	err_set(err, -code, "%s: %s", child->name, strerror(code));
	if (exec_hint(code))
		err_hint(err, -code, "%s", exec_hint(code));
	return -code;
}

pid_t loop_child_pid(const struct loop_child *child)
{
	return child->pid;
}

bool loop_child_running(const struct loop_child *child)
{
	return child->running;
}

int loop_child_status(const struct loop_child *child)
{
	return child->status;
}

int loop_child_kill(struct loop_child *child, int signo)
{
	if (!child->running)
		return -ESRCH;
	if (child->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, child->pidfd, signo, NULL, 0) ? -errno : 0;
	return kill(child->pid, signo) ? -errno : 0;
}

/* Waits for its end without reaping; true when it has ended. */
static bool child_wait(const struct loop_child *child, unsigned int timeout_ms)
{
	uint64_t end = loop_now() + timeout_ms * 1000000ULL;
	struct pollfd poll_fd = { .fd = child->pidfd, .events = POLLIN };

	for (;;) {
		uint64_t now = loop_now();
		int left = now < end ? (end - now + 999999) / 1000000 : 0;
		int got = poll(&poll_fd, 1, left);

		if (got > 0)
			return true;
		if (!left)
			return false;
	}
}

int loop_child_stop(struct loop_child *child, unsigned int grace_ms)
{
	if (!child->running)
		return child->status;
	if (child->gate < 0 && child->pidfd >= 0) {
		loop_child_kill(child, SIGTERM);
		loop_child_kill(child, SIGCONT); /* a stopped process takes no SIGTERM */
		if (child_wait(child, grace_ms)) {
			child_reap(child);
			return child->status;
		}
	}
	loop_child_kill(child, SIGKILL);
	child_reap(child);
	return child->status;
}

void children_release(struct loop *loop)
{
	struct loop_child *child;

	while ((child = loop->children)) {
		loop->children = child->next;
		loop_child_stop(child, LOOP_CHILD_GRACE_MS);
		child_free(child);
	}
}
