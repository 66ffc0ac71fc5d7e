// SPDX-License-Identifier: BSD-2-Clause
/* sleepers N: that many processes, each of which wakes up once a second. Ends with its parent. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void sleep_for_ever(int number)
{
	struct timespec pause = { 0, number % 100 * 10000000L }; /* not all at once */

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	nanosleep(&pause, NULL);
	pause = (struct timespec){ 1, 0 };
	for (;;)
		nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	int i, count = argc > 1 ? atoi(argv[1]) : 0;

	for (i = 0; i < count; i++) {
		if (!fork())
			sleep_for_ever(i);
	}
	sleep_for_ever(0);
}
