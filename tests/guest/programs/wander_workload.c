// SPDX-License-Identifier: BSD-2-Clause
/*
 * wander_workload THREADS CALLS: each thread calls wander() that often. A call touches new pages, a
 * number that changes from call to call, and goes to another CPU in the middle. At the end, from one
 * sum that all threads add to atomically: `calls N pages N faults N`. faults is what the kernel
 * charged the threads for (getrusage): the pages, and what the probes' own pages took.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE      4096
#define PAGES_MAX 8 /* of a call */

static long ncalls, calls, pages_touched, faults;
static int cpus;

static void go_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

void wander(volatile char *pages, unsigned int count, int cpu);
__attribute__((noipa)) void wander(volatile char *pages, unsigned int count, int cpu)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (i == count / 2)
			go_to_cpu((cpu + 1) % cpus);
		pages[i * PAGE] = 1;
	}
}

static long faults_so_far(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return use.ru_minflt + use.ru_majflt;
}

static void *wander_often(void *number)
{
	unsigned int seed = (uintptr_t)number + 1;
	size_t size = ncalls * PAGES_MAX * PAGE;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long i;

	if (pages == MAP_FAILED)
		return (void *)1;
	for (i = 0; i < ncalls; i++) {
		unsigned int count = 1 + rand_r(&seed) % PAGES_MAX;
		int cpu = (i + (uintptr_t)number) % cpus;
		long before;

		go_to_cpu(cpu);
		before = faults_so_far();
		wander(pages + i * PAGES_MAX * PAGE, count, cpu);
		__atomic_add_fetch(&faults, faults_so_far() - before, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&pages_touched, count, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[64];
	uintptr_t i, threads = argc > 2 ? atoi(argv[1]) : 0;
	void *bad = NULL, *result;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (!threads || threads > 64)
		return 2;
	/*
	 * A huge page of one thread's stack would reach into the pages of another, between its mmap(2)
	 * and an madvise(2).
	 */
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return 1;
	ncalls = atol(argv[2]);
	for (i = 0; i < threads; i++) {
		if (pthread_create(&thread[i], NULL, wander_often, (void *)i))
			return 1;
	}
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], &result);
		bad = bad ? bad : result;
	}
	fprintf(stderr, "calls %ld pages %ld faults %ld\n", calls, pages_touched, faults);
	return bad ? 1 : 0;
}
