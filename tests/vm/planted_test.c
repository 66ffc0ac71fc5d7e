// SPDX-License-Identifier: BSD-2-Clause
/*
 * planted_test [PROGRAMS [FIRST [LAST]]]
 *
 * The random programs find bugs: one after the other is planted in the compiler (PLANT(n) in
 * src/vm/jit), and the compiler must then differ from the interpreter, or die, within fewer programs
 * than the oracle runs. TAP; each bug in a process of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code.h"
#include "oracle.h"
#include "vm/jit/plant.h"

#define PROGRAMS 40000 /* the oracle runs five times as many */
#define GROUP    64
#define PATIENCE 10 /* seconds of processor time for a group: a program that does not end */
#define SEED     424242

int vm_planted;

/* By number. */
static const char *const bugs[] = {
	"none: the engines agree",
	"sign extension of bytes stops at 32 bits",
	"32-bit moves keep the upper half",
	"constant shifts are masked to 31",
	"<= is <",
	"a signed > is unsigned",
	"division loses r3",
	"the unsigned multiplier is one too small",
	"signed division by a power of two rounds down",
	"modulo zero is zero",
	"compare-and-exchange does not read r0",
	"an atomic that fetches does not write its register",
	"a 32-bit change of 64 bits in memory is done on 64",
	"the address may change between load and store",
	"a comparison of 32 bits with 0 takes the flags of 64",
	"an address is put together from registers that have changed",
	"an offset below a scaled index is not scaled",
	"an array has one element more",
	"a 32-bit compare-and-exchange keeps the upper half of r0",
	"r8 is not saved",
	"constants are shifted right arithmetically on 64 bits",
	"a 16-bit swap keeps the next 16 bits",
	"fetching atomics lose r0",
	"short jumps reach one byte too far",
	"short results of C are extended to 32 bits only",
	"a multiplier of 65 bits shifts one bit too far",
	"a loop that has lost its counter runs at least twice",
	"a table of a switch has one entry less",
};

struct found {
	uint64_t programs;
	bool clean; /* ran to its end without a difference */
};

static int run(struct found *found, int bug, uint64_t programs)
{
	const struct itimerval timer = { .it_value.tv_sec = PATIENCE };
	static struct oracle_tally tally;
	static struct oracle oracle;

	vm_planted = bug;
	oracle.tally = &tally;
	oracle.quiet = true;
	for (size_t i = 0; i < nengines; i++)
		if (!engines[i].checked && !engines[i].budget && !engines[i].passes_off)
			oracle.engines |= 1ull << i;
	while (found->programs < programs) {
		setitimer(ITIMER_PROF, &timer, NULL);
		if (oracle_compare(&oracle, SEED + found->programs, GROUP))
			return 1;
		found->programs += GROUP;
	}
	found->clean = true;
	return 0;
}

static bool is_found(struct found *found, int bug, uint64_t programs)
{
	int status = 0, out;
	pid_t child;

	memset(found, 0, sizeof(*found));
	fflush(stdout);
	child = fork();
	if (!child) {
		out = run(found, bug, programs);
		fflush(stdout);
		_exit(out);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		printf("# died by signal %d\n", WTERMSIG(status));
	return !found->clean;
}

int main(int argc, char **argv)
{
	uint64_t programs = argc > 1 ? strtoull(argv[1], NULL, 0) : PROGRAMS;
	int first = argc > 2 ? atoi(argv[2]) : 0;
	int last = argc > 3 ? atoi(argv[3]) : (int)COUNT_OF(bugs) - 1, bad = 0;
	struct found *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (found == MAP_FAILED)
		return 1;
	printf("1..%d\n", last - first + 1);
	for (int bug = first; bug <= last; bug++) {
		bool ok = is_found(found, bug, programs) == (bug > 0);

		printf("%sok %d - %s (%llu programs)\n", ok ? "" : "not ", bug - first + 1,
		       bugs[bug], (unsigned long long)found->programs);
		bad |= !ok;
	}
	return bad;
}
