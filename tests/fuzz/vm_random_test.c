// SPDX-License-Identifier: BSD-2-Clause
/*
 * vm_random_test [INPUTS [SEED]]	vm_random_test FILE...
 *
 * Feeds vm_check() random bytes, or files: what libFuzzer found and kept. TAP. When it dies, it
 * says at which seed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "random.h"
#include "vm_check.h"

#if defined(__SANITIZE_ADDRESS__)
#define INPUTS 1000
#else
#define INPUTS 4000
#endif
#define LONGEST 900

static uint64_t current; /* seed */

static void on_end(int number)
{
	dprintf(1, "not ok 1 - signal %d at seed %llu\n", number, (unsigned long long)current);
	signal(number, SIG_DFL);
	raise(number);
}

static int run_files(int n, char **paths)
{
	printf("1..1\n");
	for (int i = 0; i < n; i++) {
		CLEANUP(buf_deinit) struct buf file = { 0 };
		struct err err = { 0 };

		printf("# %s\n", paths[i]);
		fflush(stdout);
		if (buf_read_file(&file, paths[i], &err)) {
			printf("# %s\n", err.text);
			return 1;
		}
		vm_check(file.data, file.size);
	}
	printf("ok 1 - %d files\n", n);
	return 0;
}

/* Bytes that make programs: registers and distances are small. */
static void fill(struct random *random, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t imm = random_edge(random);

		for (size_t k = 0; k < 4; k++)
			bytes[i + k] = random_next(random) >> 32;
		if (random_below(random,
				 4)) /* few registers, so that things depend on each other */
			bytes[i + 1] &= 0x33;
		memcpy(bytes + i + 4, &imm, 4);
	}
}

static int run_random(uint64_t inputs, uint64_t seed)
{
	uint64_t programs = 0;

	printf("1..1\n");
	fflush(stdout);
	signal(SIGABRT, on_end);
	signal(SIGSEGV, on_end);
	for (uint64_t i = 0; i < inputs; i++) {
		struct random random = { seed + i };
		size_t size = 8 + random_below(&random, LONGEST);
		uint8_t bytes[3 + LONGEST + 8] = { 0 };

		current = seed + i;
		fill(&random, bytes + 3, size);
		for (int k = 0; k < 3; k++)
			bytes[k] = random_next(&random) >> 32;
		if (random_below(&random, 8))
			bytes[0] |= 1;
		programs += vm_check(bytes, 3 + size);
	}
	printf("%sok 1 - %llu random inputs, %llu of them programs\n",
	       programs * 2 < inputs ? "not " : "", (unsigned long long)inputs,
	       (unsigned long long)programs);
	return programs * 2 < inputs;
}

int main(int argc, char **argv)
{
	if (argc > 1 && (argv[1][0] < '0' || argv[1][0] > '9'))
		return run_files(argc - 1, argv + 1);
	return run_random(argc > 1 ? strtoull(argv[1], NULL, 0) : INPUTS,
			  argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000003);
}
