// SPDX-License-Identifier: BSD-2-Clause
/*
 * A workload of known size: `workload NAME=INSTRUCTIONS ...` runs one process per argument, at the
 * same time, each named NAME, and each in a loop of that many user instructions (plus a few
 * hundred to get there). A number may end in k, M or G. --parallel is the default; --serial runs
 * them one after the other. --sleep MS puts a pause after each tenth of the loop.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Two instructions a round on both architectures. */
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

static uint64_t parse_count(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	switch (*end) {
	case 'k':
		return value * 1e3;
	case 'M':
		return value * 1e6;
	case 'G':
		return value * 1e9;
	case 0:
		return value;
	default:
		fprintf(stderr, "workload: `%s` is no number\n", text);
		exit(2);
	}
}

static void work(const char *text, unsigned int sleep_ms)
{
	const char *equals = strchr(text, '=');
	struct timespec pause = { sleep_ms / 1000, sleep_ms % 1000 * 1000000L };
	uint64_t instructions;
	char name[16];
	int i;

	if (!equals) {
		fprintf(stderr, "workload: write NAME=INSTRUCTIONS, not `%s`\n", text);
		exit(2);
	}
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	instructions = parse_count(equals + 1);
	prctl(PR_SET_NAME, name);
	if (!sleep_ms) {
		spin(instructions / 2);
		_exit(0);
	}
	for (i = 0; i < 10; i++) {
		spin(instructions / 20);
		nanosleep(&pause, NULL);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned int sleep_ms = 0;
	int serial = 0, bad = 0, status, i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--serial")) {
			serial = 1;
		} else if (!strcmp(argv[i], "--parallel")) {
			serial = 0;
		} else if (!strcmp(argv[i], "--sleep") && i + 1 < argc) {
			sleep_ms = atoi(argv[++i]);
		} else {
			pid_t child = fork();

			if (!child)
				work(argv[i], sleep_ms);
			if (child < 0)
				return 1;
			if (serial) {
				waitpid(child, &status, 0);
				bad |= status;
			}
		}
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}
