// SPDX-License-Identifier: BSD-2-Clause
/*
 * tree_workload N: a process, its thread, a child forked later, that one's thread and a grandchild
 * that ends before the others: each spins N user instructions. At its end each process writes
 * `PID SPINS VOLUNTARY NONVOLUNTARY`: how often it spun and was switched out, all threads together.
 *
 * tree_workload spin [CPU]: spins for ever on a CPU, and never gives it up by itself.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void spin(uint64_t rounds)
{
#if defined(__x86_64__)
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds));
#else
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds));
#endif
}

static uint64_t instructions;

static void *thread(void *unused)
{
	spin(instructions / 2);
	return NULL;
}

static void tell(int spins)
{
	struct rusage use;
	char line[128];

	getrusage(RUSAGE_SELF, &use);
	snprintf(line, sizeof(line), "%d %d %ld %ld\n", getpid(), spins, use.ru_nvcsw,
		 use.ru_nivcsw);
	if (write(1, line, strlen(line)) < 0)
		_exit(1);
}

static void spin_in_thread(void)
{
	pthread_t other;

	pthread_create(&other, NULL, thread, NULL);
	spin(instructions / 2);
	pthread_join(other, NULL);
}

static void later(void)
{
	struct timespec pause = { 0, 30000000 };

	nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "spin")) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(argc > 2 ? atoi(argv[2]) : 0, &set);
		sched_setaffinity(0, sizeof(set), &set);
		spin(~0ULL);
	}
	instructions = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	later();
	if (!fork()) {
		if (!fork()) {
			spin(instructions / 2);
			tell(1);
			_exit(0);
		}
		later();
		spin_in_thread();
		wait(NULL);
		tell(2);
		_exit(0);
	}
	spin_in_thread();
	wait(NULL);
	tell(2);
	return 0;
}
