// SPDX-License-Identifier: BSD-2-Clause
/*
 * race ROUNDS MARKER -- CMD ... [-- CMD ...]: starts the commands in turn, ROUNDS times, each until
 * a line of its stdout or stderr contains MARKER, then sends SIGINT. Prints a line per command:
 *	NUMBER WALL_MS CPU_MS PEAK_KB
 * medians of the time and the CPU time up to the marker, and of the peak memory of the whole run.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS   1000
#define MAX_COMMANDS 8

/* The one uprobe target. Never called here: this program is only the file that is probed. */
void bench_work(void);
__attribute__((noipa)) void bench_work(void)
{
	__asm__ volatile("");
}

struct result {
	double wall[MAX_ROUNDS], cpu[MAX_ROUNDS], peak[MAX_ROUNDS];
};

static double now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Reads up to the marker, in whatever pieces it comes. */
static int wait_for(int fd, const char *marker, char *text, size_t size)
{
	size_t length = 0;

	while (length + 1 < size) {
		ssize_t got = read(fd, text + length, size - 1 - length);

		if (got <= 0)
			break;
		length += got;
		text[length] = 0;
		if (strstr(text, marker))
			return 0;
	}
	text[length] = 0;
	return -1;
}

static int run_once(char **argv, const char *marker, double *wall, double *cpu, double *peak)
{
	char text[8192];
	struct rusage usage;
	double from = now_ms(CLOCK_MONOTONIC);
	clockid_t clock;
	int ends[2], status, bad;
	pid_t child;

	if (pipe(ends))
		return -1;
	child = vfork();
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	bad = child < 0 || wait_for(ends[0], marker, text, sizeof(text));
	*wall = now_ms(CLOCK_MONOTONIC) - from;
	*cpu = child < 0 || clock_getcpuclockid(child, &clock) ? 0 : now_ms(clock);
	if (bad)
		fprintf(stderr, "race: %s said no `%s`: %s\n", argv[0], marker, text);
	if (child > 0)
		kill(child, SIGINT);
	while (read(ends[0], text, sizeof(text)) > 0)
		continue;
	close(ends[0]);
	if (child > 0)
		wait4(child, &status, 0, &usage);
	*peak = usage.ru_maxrss;
	return bad ? -1 : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int main(int argc, char **argv)
{
	static struct result results[MAX_COMMANDS];
	char **commands[MAX_COMMANDS];
	int rounds = argc > 2 ? atoi(argv[1]) : 0, count = 0, i, round;

	for (i = 3; i < argc && count < MAX_COMMANDS; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		argv[i] = NULL;
		if (i + 1 < argc)
			commands[count++] = &argv[i + 1];
	}
	if (rounds < 1 || rounds > MAX_ROUNDS || !count) {
		fprintf(stderr, "usage: race ROUNDS MARKER -- CMD ... [-- CMD ...]\n");
		return 2;
	}
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < count; i++) {
			struct result *result = &results[i];

			if (run_once(commands[i], argv[2], &result->wall[round],
				     &result->cpu[round], &result->peak[round]))
				return 1;
		}
	}
	for (i = 0; i < count; i++)
		printf("%d %.2f %.2f %.0f\n", i, median(results[i].wall, rounds),
		       median(results[i].cpu, rounds), median(results[i].peak, rounds));
	return 0;
}
