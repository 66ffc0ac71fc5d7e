// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of known size for the call tools:
 *
 *	loops_workload CALLS N [DEPTH [THREADS]]
 *	loops_workload levels CALLS N [THREADS]
 *
 * Each thread calls DEPTH times recursively, CALLS times, a function of N rounds of two
 * instructions: loops() runs its rounds and then calls itself. `levels`: level1() calls level2()
 * and so on to level8(), N rounds each. `mux N` runs N instructions in all.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void spin(uint64_t rounds)
{
	if (!rounds)
		return;
#if defined(__x86_64__)
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds));
#elif defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds));
#else
#error "tell here how to loop in two instructions"
#endif
}

void loops(uint64_t rounds, unsigned int depth);
__attribute__((noipa)) void loops(uint64_t rounds, unsigned int depth)
{
	spin(rounds);
	if (depth > 1)
		loops(rounds, depth - 1);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

#define LEVEL(name, inner)                                            \
	void name(uint64_t rounds);                                   \
	__attribute__((noipa)) void name(uint64_t rounds)             \
	{                                                             \
		spin(rounds);                                         \
		inner(rounds);                                        \
		__asm__ volatile("" ::: "memory"); /* no tail call */ \
	}
#define NOTHING(rounds)
LEVEL(level8, NOTHING)
LEVEL(level7, level8)
LEVEL(level6, level7)
LEVEL(level5, level6)
LEVEL(level4, level5)
LEVEL(level3, level4)
LEVEL(level2, level3)
LEVEL(level1, level2)

static uint64_t calls, rounds;
static unsigned int depth = 1, levels;

static void *work(void *unused)
{
	uint64_t i;

	(void)unused;
	for (i = 0; i < calls && levels; i++)
		level1(rounds);
	for (i = 0; i < calls && !levels; i++)
		loops(rounds, depth);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int threads = 1, i;
	pthread_t thread[64];

	if (argc == 3 && !strcmp(argv[1], "mux")) {
		spin(strtoull(argv[2], NULL, 0) / 2);
		return 0;
	}
	levels = argc > 3 && !strcmp(argv[1], "levels");
	argv += levels;
	argc -= levels;
	if (argc < 3) {
		fprintf(stderr, "usage: loops_workload CALLS N [DEPTH [THREADS]] | mux N\n");
		return 2;
	}
	calls = strtoull(argv[1], NULL, 0);
	rounds = strtoull(argv[2], NULL, 0);
	depth = argc > 3 ? atoi(argv[3]) : 1;
	if (levels)
		threads = depth;
	else if (argc > 4)
		threads = atoi(argv[4]);
	for (i = 0; i < threads && i < 64; i++) {
		if (pthread_create(&thread[i], NULL, work, NULL))
			return 1;
	}
	while (i--)
		pthread_join(thread[i], NULL);
	return 0;
}
