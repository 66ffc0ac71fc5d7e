// SPDX-License-Identifier: BSD-2-Clause
/* Runs the compiler. */
#include "compile/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

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

static int spawn(char *const *argv, int input, int output, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	char **environment = visible_environment();
	int code;

	if (!environment)
		return -ENOMEM;
	code = posix_spawn_file_actions_init(&actions);
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
		code = posix_spawn(ret, argv[0], &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	return -code;
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
	read_code = buf_read_fd(output, pipe_fds[0]);
	close(pipe_fds[0]);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (read_code)
		return read_code;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
