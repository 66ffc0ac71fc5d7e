// SPDX-License-Identifier: BSD-2-Clause
/* What the programs of this folder observe: see README.md. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/kern/usdt_note.h"

long work_step(long number);

__attribute__((noipa)) long work_step(long number)
{
	__asm__ volatile("" : "+r"(number));
	return number * 2;
}

static void *work(void *argument)
{
	const struct timespec millisecond = { .tv_nsec = 1000000 };
	long count = *(long *)argument, i;

	for (i = 1; i <= count; i++) {
		if (work_step(i) != 2 * i)
			abort();
		USDT_PROBE("workload", "step", i);
		nanosleep(&millisecond, NULL);
	}
	return NULL;
}

/* workload N [-]: with "-" it waits for a line on stdin before it begins, and for the end of
 * stdin before it ends. */
int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 100;
	pthread_t thread;
	char line[16];

	if (argc > 2 && !fgets(line, sizeof(line), stdin))
		return 1;
	if (pthread_create(&thread, NULL, work, &count))
		return 1;
	work(&count);
	pthread_join(thread, NULL);
	while (argc > 2 && fgets(line, sizeof(line), stdin))
		;
	return 0;
}
