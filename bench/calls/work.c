// SPDX-License-Identifier: BSD-2-Clause
/*
 * work BATCHES CALLS SWITCHES: what a call of getppid() and what a context switch between two
 * threads take, in instructions of user and kernel mode. Prints `call N` and `switch N`, the least
 * of the batches, because timer ticks and kernel threads fall into some.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS };
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);

	if (fd < 0) {
		perror("work: instructions");
		exit(1);
	}
	return fd;
}

static uint64_t read_counter(int fd)
{
	uint64_t value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		exit(1);
	return value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_least(const char *name, double *values, int count)
{
	qsort(values, count, sizeof(*values), compare);
	printf("%s %.1f\n", name, values[0]);
}

static void count_calls(double *costs, int batches, int calls)
{
	int counter = open_counter(0, -1), batch, i;

	for (batch = 0; batch < batches; batch++) {
		uint64_t from = read_counter(counter);

		for (i = 0; i < calls; i++)
			syscall(SYS_getppid);
		costs[batch] = (double)(read_counter(counter) - from) / calls;
	}
	close(counter);
}

struct pair {
	int there[2], back[2];
};

static void pass(int from, int to)
{
	char token;

	if (read(from, &token, 1) == 1 && write(to, &token, 1) != 1)
		exit(1);
}

/* A call first: only threads that somebody asked about have a total. */
static void *partner(void *argument)
{
	struct pair *pair = argument;
	char token;

	syscall(SYS_getppid);
	while (read(pair->there[0], &token, 1) == 1 && token == 'g') {
		if (write(pair->back[1], &token, 1) != 1)
			exit(1);
	}
	return NULL;
}

static void count_switches(double *costs, int batches, int switches)
{
	int counter = open_counter(-1, 0), batch, i;
	struct pair pair;
	struct sched_param priority = { .sched_priority = 1 };
	pthread_t thread;

	/* The other classes decide by virtual time, not twice in the same number of instructions. */
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		perror("work: SCHED_FIFO");
	if (pipe(pair.there) || pipe(pair.back) || pthread_create(&thread, NULL, partner, &pair) ||
	    write(pair.there[1], "g", 1) != 1)
		exit(1);
	for (batch = 0; batch < batches; batch++) {
		uint64_t from = read_counter(counter);

		for (i = 0; i < switches / 2; i++)
			pass(pair.back[0], pair.there[1]);
		costs[batch] = (double)(read_counter(counter) - from) / (switches / 2 * 2);
	}
	if (write(pair.there[1], "e", 1) != 1)
		exit(1);
	pthread_join(thread, NULL);
	close(counter);
}

int main(int argc, char **argv)
{
	int batches = argc == 4 ? atoi(argv[1]) : 0;
	cpu_set_t first;
	double *costs;

	if (batches < 1) {
		fprintf(stderr, "usage: work BATCHES CALLS SWITCHES\n");
		return 2;
	}
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	costs = calloc(batches, sizeof(*costs));
	if (!costs || sched_setaffinity(0, sizeof(first), &first))
		return 1;
	count_calls(costs, batches, atoi(argv[2]));
	print_least("call", costs, batches);
	count_switches(costs, batches, atoi(argv[3]));
	print_least("switch", costs, batches);
	free(costs);
	return 0;
}
