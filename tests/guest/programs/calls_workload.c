// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the call tests measure:
 *
 *	calls_workload getppid N	N calls of getppid()
 *	calls_workload sleep N US	N nanosleeps of US microseconds
 *	calls_workload spin		a loop without an end, pinned to the last CPU
 *	calls_workload sleepers T K	T threads that sleep K times, then for long; when all do,
 *					SIGINT goes to the parent
 *	calls_workload nested N DEPTH	two threads, each N times: nest(DEPTH), see there
 *	calls_workload wait K		sleeps until SIGUSR1, then K times 1 ms
 *	calls_workload zero N		N reads of /dev/zero into ZERO_PAGES pages never touched
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE           4096
#define PAGES_PER_CALL 3
#define ZERO_PAGES     5

static void sleep_us(long us)
{
	struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	syscall(SYS_nanosleep, &pause, NULL);
}

static void go_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Touches PAGES_PER_CALL new pages at each level, on the way in and out of the inner call, and
 * changes the CPU meanwhile: nest(d) costs exactly (d + 1) * PAGES_PER_CALL page faults of its
 * own thread.
 */
void nest(unsigned int depth, volatile char *pages, int cpus);
__attribute__((noipa)) void nest(unsigned int depth, volatile char *pages, int cpus)
{
	pages[0] = 1;
	if (cpus > 1)
		go_to_cpu(depth % cpus);
	pages[PAGE] = 1;
	if (depth)
		nest(depth - 1, pages + PAGES_PER_CALL * PAGE, cpus);
	pages[2 * PAGE] = 1;
}

static unsigned int nest_calls, nest_depth;

static void *nest_often(void *unused)
{
	size_t size = (nest_depth + 1) * PAGES_PER_CALL * PAGE;
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int i;

	for (i = 0; i < nest_calls; i++) {
		char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		madvise(pages, size, MADV_NOHUGEPAGE);
		nest(nest_depth, pages, cpus);
		munmap(pages, size);
	}
	return NULL;
}

/* ---- threads that sleep ------------------------------------------------------------------------- */
static unsigned int sleeper_calls;
static int sleepers_ready;

static void *sleep_often(void *unused)
{
	unsigned int i;

	for (i = 0; i < sleeper_calls; i++)
		sleep_us(20000);
	__atomic_add_fetch(&sleepers_ready, 1, __ATOMIC_SEQ_CST);
	sleep_us(1000000000L);
	return NULL;
}

/* All threads but the first are in the system call nanosleep. */
static int all_sleep(const int *tids, int count)
{
	char path[64], text[64];
	int i;

	for (i = 0; i < count; i++) {
		FILE *file;
		int number = -1;

		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tids[i]);
		file = fopen(path, "r");
		if (!file || !fgets(text, sizeof(text), file) || sscanf(text, "%d", &number) != 1)
			number = -1;
		if (file)
			fclose(file);
		if (number != SYS_nanosleep)
			return 0;
	}
	return 1;
}

static int tids[1024];

static void *sleeper(void *index)
{
	tids[(intptr_t)index] = syscall(SYS_gettid);
	return sleep_often(NULL);
}

static int sleepers(int count)
{
	pthread_t thread;
	intptr_t i;

	for (i = 0; i < count; i++)
		pthread_create(&thread, NULL, sleeper, (void *)i);
	/* Not in the function that is measured. */
	while (__atomic_load_n(&sleepers_ready, __ATOMIC_SEQ_CST) < count ||
	       !all_sleep(tids, count))
		poll(NULL, 0, 20);
	kill(getppid(), SIGINT);
	poll(NULL, 0, 60000);
	return 0;
}

static void nothing(int number)
{
}

/* A read costs its thread ZERO_PAGES page faults, all inside the kernel. */
static int read_zeros(long n)
{
	size_t size = ZERO_PAGES * PAGE;
	int fd = open("/dev/zero", O_RDONLY);

	while (n--) {
		char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		madvise(pages, size, MADV_NOHUGEPAGE);
		if (read(fd, pages, size) != (ssize_t)size)
			return 1;
		munmap(pages, size);
	}
	return 0;
}

/* A number of the command line. */
static long number(char **argv, int i)
{
	return argv[1] && argv[2] && (i == 2 || argv[3]) ? atol(argv[i]) : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long i, n;

	if (!strcmp(what, "getppid")) {
		for (i = 0, n = number(argv, 2); i < n; i++)
			syscall(SYS_getppid);
	} else if (!strcmp(what, "sleep")) {
		for (i = 0, n = number(argv, 2); i < n; i++)
			sleep_us(number(argv, 3));
	} else if (!strcmp(what, "wait")) {
		signal(SIGUSR1, nothing);
		sleep_us(600000000L);
		for (i = 0, n = number(argv, 2); i < n; i++)
			sleep_us(1000);
	} else if (!strcmp(what, "zero")) {
		return read_zeros(number(argv, 2));
	} else if (!strcmp(what, "spin")) {
		go_to_cpu(sysconf(_SC_NPROCESSORS_ONLN) - 1);
		for (;;)
			__asm__ volatile("");
	} else if (!strcmp(what, "sleepers")) {
		sleeper_calls = number(argv, 3);
		return sleepers(number(argv, 2));
	} else if (!strcmp(what, "nested")) {
		pthread_t threads[2];

		nest_calls = number(argv, 2);
		nest_depth = number(argv, 3);
		for (i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, nest_often, NULL);
		for (i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
	} else {
		fprintf(stderr, "calls_workload: see its source for what to write\n");
		return 2;
	}
	return 0;
}
