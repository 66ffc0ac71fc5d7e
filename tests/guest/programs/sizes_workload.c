// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads and processes of known size, in user instructions:
 *
 *	sizes_workload threads T N STEP		T threads at the same time; the I-th runs N + I * STEP
 *	sizes_workload brief-threads T N STEP	the same, each alone and ended before the next begins
 *	sizes_workload brief-processes T N STEP
 *	sizes_workload chain T N STEP		each process forks the next and then runs its loop
 *
 * N and STEP are even. Beside its loop each has what starting and ending takes, some hundred.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 1000

static uint64_t first, step;

/* Two instructions a round on both architectures. */
__attribute__((noinline)) static void spin(uint64_t rounds)
{
#if defined(__x86_64__)
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds));
#else
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds));
#endif
}

static void *work(void *number)
{
	spin((first + (uintptr_t)number * step) / 2);
	return NULL;
}

static int run_threads(unsigned int count, int brief)
{
	static pthread_t thread[THREADS];
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i))
			return 1;
		if (brief)
			pthread_join(thread[i], NULL);
	}
	while (!brief && i--)
		pthread_join(thread[i], NULL);
	return 0;
}

static int run_processes(unsigned int count)
{
	unsigned int i;
	int status, bad = 0;

	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (!child) {
			work((void *)(uintptr_t)i);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			bad = 1;
	}
	return bad;
}

static int run_chain(unsigned int count)
{
	unsigned int i;
	int status = 0;
	pid_t child = 0;

	for (i = 0; i < count; i++) {
		child = fork();
		if (child)
			break;
	}
	/* The first process is number 0 and has the whole chain below it. */
	work((void *)(uintptr_t)i);
	if (child > 0)
		wait(&status);
	if (i)
		_exit(child < 0 || status);
	return child < 0 || status;
}

int main(int argc, char **argv)
{
	unsigned int count = argc == 5 ? atoi(argv[2]) : 0;

	if (!count || count > THREADS)
		return 2;
	first = strtoull(argv[3], NULL, 0);
	step = strtoull(argv[4], NULL, 0);
	if (!strcmp(argv[1], "threads"))
		return run_threads(count, 0);
	if (!strcmp(argv[1], "brief-threads"))
		return run_threads(count, 1);
	if (!strcmp(argv[1], "brief-processes"))
		return run_processes(count);
	if (!strcmp(argv[1], "chain"))
		return run_chain(count - 1);
	return 2;
}
