// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle_test [PROGRAMS [SEED]]
 *
 * Random programs in the kernel and in every engine (oracle.h), in two processes. Prints the seed;
 * the first difference is printed with its program and with the smallest part of it that differs,
 * and ends it. Without bpf(2) (or with DUET_ORACLE_ALONE set) engines are compared with the
 * interpreter.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

#if defined(__SANITIZE_ADDRESS__)
#define PROGRAMS 500
#elif defined(__aarch64__)
#define PROGRAMS 2000 /* emulated, mostly */
#else
#define PROGRAMS 200000
#endif
#define LEAST_ACCEPTED    70 /* per cent */
#define LEAST_OF_EACH_ROW 1000
#define MOST_FOR_ROWS     20000 /* programs from which on each operation must have occurred */
#define PROCESSES         2
#define SLICE             (8 * HOST_PROGRAMS) /* programs of one process in a row */
#define PATIENCE          60 /* seconds of processor time for a slice: nobody else counts */

static struct oracle oracle;

static volatile sig_atomic_t interrupted;

static void have_patience(void)
{
	const struct itimerval timer = { .it_value.tv_sec = PATIENCE };

	setitimer(ITIMER_PROF, &timer, NULL);
}

/* A program that does not end is interrupted, which is a difference; the second time something else
 * than a program hangs. */
static void on_time(int number)
{
	static const char text[] = "# no end in sight\n";

	(void)number;
	if (oracle.host.vm && !interrupted) {
		interrupted = 1;
		vm_interrupt(oracle.host.vm, false);
		have_patience();
	} else if (write(1, text, sizeof(text) - 1) >= 0) {
		_exit(1);
	}
}

static int work(uint64_t programs, uint64_t seed, unsigned int process, struct oracle_tally *tally)
{
	oracle.tally = tally;
	for (uint64_t at = process * SLICE; at < programs; at += PROCESSES * SLICE) {
		signal(SIGPROF, on_time);
		have_patience();
		if (oracle_compare(&oracle, seed + at,
				   programs - at < SLICE ? programs - at : SLICE))
			return 1;
	}
	return 0;
}

/* All processes; true when none saw a difference. */
static bool work_all(uint64_t programs, uint64_t seed, struct oracle_tally *tallies)
{
	pid_t children[PROCESSES];
	bool all = true;

	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		/* Each its own maps. */
		kernel_close(&oracle.kernel);
		if (!getenv("DUET_ORACLE_ALONE"))
			oracle_open(&oracle);
		i = work(programs, seed, i, &tallies[i]);
		fflush(stdout);
		_exit(i);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;

		waitpid(children[i], &status, 0);
		if (WIFSIGNALED(status))
			printf("# a process died by signal %d at seed %llu, %s\n", WTERMSIG(status),
			       (unsigned long long)tallies[i].seed,
			       tallies[i].engine < 0 ? "kernel" : engines[tallies[i].engine].name);
		all &= status == 0;
	}
	return all;
}

static void add(struct oracle_tally *sum, const struct oracle_tally *tally)
{
	sum->accepted += tally->accepted;
	sum->refused += tally->refused;
	sum->alone += tally->alone;
	for (int op = 0; op < ISA_NOPS; op++)
		sum->rows[op] += tally->rows[op];
	for (size_t i = 0; i < nengines; i++)
		sum->runs[i] += tally->runs[i];
}

static bool judge_rows(const struct oracle_tally *tally)
{
	uint64_t least = ~0ull;
	int rarest = 0;

	for (int op = 0; op < ISA_NOPS; op++) {
		if (!generates(op) || tally->rows[op] >= least)
			continue;
		least = tally->rows[op];
		rarest = op;
	}
	printf("# rarest operation: %s, %llu times\n", isa_row(rarest)->name,
	       (unsigned long long)least);
	return least >= LEAST_OF_EACH_ROW;
}

static int judge(const struct oracle_tally *tally, uint64_t programs)
{
	uint64_t shown = tally->accepted + tally->refused;
	bool accepted = tally->accepted * 100 >= shown * LEAST_ACCEPTED;
	bool often = judge_rows(tally) || programs < MOST_FOR_ROWS;

	printf("# %llu programs for the kernel, %llu accepted by its verifier; %llu for the vm "
	       "alone\n",
	       (unsigned long long)shown, (unsigned long long)tally->accepted,
	       (unsigned long long)tally->alone);
	for (size_t i = 0; i < nengines; i++)
		if (engines[i].landed)
			printf("# %9llu in: %s\n", (unsigned long long)tally->runs[i],
			       engines[i].name);
	printf("%sok 2 - at least %d %% are accepted\n", accepted ? "" : "not ", LEAST_ACCEPTED);
	printf("%sok 3 - every operation occurs at least %d times\n", often ? "" : "not ",
	       LEAST_OF_EACH_ROW);
	return !accepted || !often;
}

int main(int argc, char **argv)
{
	uint64_t programs = argc > 1 ? strtoull(argv[1], NULL, 0) : PROGRAMS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000003;
	struct oracle_tally *tallies, sum = { 0 };
	bool same;

	tallies = mmap(NULL, PROCESSES * sizeof(*tallies), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tallies == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < nengines; i++)
		if (engines[i].landed)
			oracle.engines |= 1ull << i;
	if (!getenv("DUET_ORACLE_ALONE")) {
		int rc = oracle_open(&oracle);

		if (rc) {
			printf("1..0 # SKIP bpf(2): %s\n", strerror(-rc));
			return 77;
		}
	}
	printf("1..3\n# seed %llu\n", (unsigned long long)seed);
	same = work_all(programs, seed, tallies);
	for (int i = 0; i < PROCESSES; i++)
		add(&sum, &tallies[i]);
	printf("%sok 1 - all engines and the kernel agree\n", same ? "" : "not ");
	oracle_close(&oracle);
	return judge(&sum, programs) || !same;
}
