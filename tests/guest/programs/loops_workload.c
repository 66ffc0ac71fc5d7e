// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of known size for the call tools:
 *
 *	loops_workload CALLS N [DEPTH [THREADS]]
 *	loops_workload levels CALLS N [THREADS]
 *	loops_workload marks|range|parent CALLS N [DEPTH [THREADS]]
 *
 * Each thread calls DEPTH times recursively, CALLS times, a function of N rounds of two
 * instructions: loops() runs its rounds and then calls itself. `levels`: level1() calls level2()
 * and so on to level8(), N rounds each. `marks`: like loops(), between the USDT probes loops:begin and
 * loops:end. `range`: between two instructions of ranged(). `parent`: a system call that does next to
 * nothing, DEPTH of them in each call of parents(). `mux N` runs N instructions in all.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* As <sys/sdt.h> writes it, at this place. */
#define MARK(name)                                                                  \
	__asm__ volatile("990:\tnop\n\t"                                            \
			 ".pushsection .note.stapsdt, \"\", %note\n\t.balign 4\n\t" \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"                     \
			 "991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n"              \
			 "993:\t.8byte 990b, 0, 0\n\t"                              \
			 ".asciz \"loops\"\n\t.asciz \"" name "\"\n\t"              \
			 ".asciz \"\"\n994:\t.balign 4\n\t.popsection")

void marks(uint64_t rounds, unsigned int depth);
__attribute__((noipa)) void marks(uint64_t rounds, unsigned int depth)
{
	MARK("begin");
	spin(rounds);
	if (depth > 1)
		marks(rounds, depth - 1);
	MARK("end");
}

/*
 * From +0x8 on (arm64) or from +0x4 on (x86-64), up to +0x28 and +0x1c: ROUNDS of two instructions, and
 * ranged() again for DEPTH > 1. Four bytes further are branches.
 */
void ranged(uint64_t rounds, unsigned int depth);
#if defined(__x86_64__)
__asm__(".pushsection .text\n\t.globl ranged\n\t.type ranged, %function\nranged:\n\t"
	"push %rdi\n\tpush %rsi\n\tnopw (%rax)\n\tjmp 1f\n\tnopw (%rax)\n"
	"1:\tdec %rdi\n\tjnz 1b\n\tpop %rsi\n\tpop %rdi\n\tdec %esi\n\tjz 2f\n\tcall ranged\n"
	"2:\tmov %rdi, %rdi\n\tjmp 3f\n3:\tret\n\t.size ranged, . - ranged\n\t.popsection");
#else
__asm__(".pushsection .text\n\t.p2align 4\n\t.globl ranged\n\t.type ranged, %function\n"
	"ranged:\tstp x29, x30, [sp, #-32]!\n\tstp x0, x1, [sp, #16]\n\t"
	"mov x0, x0\n\tb 1f\n1:\tsubs x0, x0, #1\n\tb.ne 1b\n\tldp x0, x1, [sp, #16]\n\t"
	"subs w1, w1, #1\n\tb.eq 2f\n\tbl ranged\n"
	"2:\tmov x0, x0\n\tb 3f\n3:\tldp x29, x30, [sp], #32\n\tret\n\t"
	".size ranged, . - ranged\n\t.popsection");
#endif

void parents(uint64_t unused, unsigned int count);
__attribute__((noipa)) void parents(uint64_t unused, unsigned int count)
{
	(void)unused;
	while (count--)
		syscall(SYS_getppid);
}

static uint64_t calls, rounds;
static unsigned int depth = 1, levels;
static void (*body)(uint64_t rounds, unsigned int depth) = loops;

static const struct {
	const char *name;
	void (*body)(uint64_t rounds, unsigned int depth);
} kinds[] = { { "marks", marks }, { "range", ranged }, { "parent", parents } };

static void *work(void *unused)
{
	uint64_t i;

	(void)unused;
	for (i = 0; i < calls && levels; i++)
		level1(rounds);
	for (i = 0; i < calls && !levels; i++)
		body(rounds, depth);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int threads = 1, i;
	pthread_t thread[64];
	bool named;

	if (argc == 3 && !strcmp(argv[1], "mux")) {
		spin(strtoull(argv[2], NULL, 0) / 2);
		return 0;
	}
	levels = argc > 3 && !strcmp(argv[1], "levels");
	named = levels;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && argc > 3; i++) {
		if (!strcmp(argv[1], kinds[i].name)) {
			body = kinds[i].body;
			named = true;
		}
	}
	argv += named;
	argc -= named;
	if (argc < 3) {
		fprintf(stderr, "usage: loops_workload [KIND] CALLS N [DEPTH [THREADS]] | mux N\n");
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
