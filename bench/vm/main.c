// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-vm DIRECTORY [--rounds N] [--smoke] [--ablate] [PROGRAM]...
 *
 * Measures the programs whose objects lie in DIRECTORY beside the same source compiled by gcc -O2,
 * in turn, in one process on one CPU, and prints tables. ../README.md says what they mean.
 */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure.h"

/* Limits: ratios to native code, us, kB. */
#define LIMIT_JIT         1.00
#define LIMIT_ANY         1.30
#define LIMIT_INTERPRETER 9.0
#define LIMIT_CHECKED     2.0
#define LIMIT_SMALL_US    30.0
#define LIMIT_4000_US     1000.0
#define LIMIT_LINEAR      1.5
#define LIMIT_PEAK_KB     8192
#define FLOOR             0.8 /* what counts at most as faster than native */

static const char *verdict(bool met)
{
	return met ? "met" : "MISSED";
}

static void cell(double value, const char *format)
{
	char text[32];

	if (value > 0)
		snprintf(text, sizeof(text), format, value);
	else
		snprintf(text, sizeof(text), "-");
	printf(" %8s", text);
}

/* Geometric mean over the ten of side / other, and the worst of all programs. */
struct summary {
	double sum, worst;
	const char *worst_title;
	unsigned int n, missing;
};

static void summarise(struct summary *summary, const struct result *result, double ratio)
{
	if (ratio > summary->worst) {
		summary->worst = ratio;
		summary->worst_title = result->program->title;
	}
	if (!result->program->ten)
		return;
	if (ratio > 0) {
		summary->sum += log(ratio < FLOOR ? FLOOR : ratio);
		summary->n++;
	} else {
		summary->missing++;
	}
}

static double mean(const struct summary *summary)
{
	return summary->n ? exp(summary->sum / summary->n) : 0;
}

static void print_row(const struct result *result)
{
	printf("  %-22s", result->program->title);
	cell(result->ns[SIDE_NATIVE] / 1000, "%.2f");
	for (int side = SIDE_NATIVE + 1; side < SIDES; side++)
		cell(result->ratio[side], side == SIDE_INTERPRETER ? "%.1f" : "%.2f");
	cell(result->bytes, "%.0f");
	cell(result->native_bytes, "%.0f");
	cell(result->compile_us, "%.1f");
	printf("\n");
	fflush(stdout);
}

static void print_limit(const char *what, const struct summary *summary, double limit)
{
	if (!summary->n)
		printf("  %-46s %8s %8.2f  -\n", what, "-", limit);
	else
		printf("  %-46s %8.3f %8.2f  %s%s\n", what, mean(summary), limit,
		       verdict(mean(summary) <= limit && !summary->missing),
		       summary->missing ? " (not all of them)" : "");
}

static void print_summary(const struct result *results, size_t n)
{
	struct summary sides[SIDES] = { 0 }, checked = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct result *result = &results[i];
		double jit = result->ratio[SIDE_JIT];

		for (int side = SIDE_NATIVE + 1; side < SIDES; side++)
			summarise(&sides[side], result, result->ratio[side]);
		/* Here JIT is what it is compared with: no floor. */
		summarise(&checked, result, jit > 0 ? result->ratio[SIDE_CHECKED] / jit : 0);
	}
	printf("\n  %-46s %8s %8s\n", "geometric means of the ten upper programs", "", "limit");
	print_limit("JIT / native", &sides[SIDE_JIT], LIMIT_JIT);
	if (sides[SIDE_JIT].n)
		printf("  %-46s %8.3f %8.2f  %s (%s)\n", "JIT / native, the worst of all programs",
		       sides[SIDE_JIT].worst, LIMIT_ANY,
		       verdict(sides[SIDE_JIT].worst <= LIMIT_ANY), sides[SIDE_JIT].worst_title);
	print_limit("interpreter / native", &sides[SIDE_INTERPRETER], LIMIT_INTERPRETER);
	print_limit("checked JIT / JIT", &checked, LIMIT_CHECKED);
	if (sides[SIDE_KERNEL].n)
		printf("  %-46s %8.3f %8s  (of %u)\n", "kernel's JIT / native",
		       mean(&sides[SIDE_KERNEL]), "", sides[SIDE_KERNEL].n);
}

static void print_reasons(const struct result *results, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (results[i].no_kernel[0])
			printf("  kernel: %s: %s\n", results[i].program->title,
			       results[i].no_kernel);
}

static void print_compile(unsigned int rounds)
{
	static const size_t lengths[] = { 10, 1000, 2000, 4000, 8000 };
	double us[5], create[5] = { 0 }, linear = 0;

	printf("\n  %-46s", "instructions");
	for (int i = 0; i < 5; i++) {
		us[i] = measure_compile(lengths[i], rounds, &create[i]);
		printf(" %8zu", lengths[i]);
	}
	printf("\n  %-46s", "us from instructions to machine code");
	for (int i = 0; i < 5; i++)
		cell(us[i], "%.1f");
	printf("\n  %-46s", "us of all of vm_create()");
	for (int i = 0; i < 5; i++)
		cell(create[i], "%.1f");
	printf("\n");
	if (us[3] <= 0)
		return;
	/* What an instruction costs must not grow but for what no longer fits into caches. */
	linear = (us[4] / 8000) / (us[1] / 1000);
	printf("  %-46s %8.1f %8.0f  %s\n", "a small program, us", us[0], LIMIT_SMALL_US,
	       verdict(us[0] <= LIMIT_SMALL_US));
	printf("  %-46s %8.1f %8.0f  %s\n", "4,000 instructions, us", us[3], LIMIT_4000_US,
	       verdict(us[3] <= LIMIT_4000_US));
	printf("  %-46s %8.2f %8.2f  %s\n", "an instruction of 8,000 / of 1,000", linear,
	       LIMIT_LINEAR, verdict(linear <= LIMIT_LINEAR));
}

/* Each pass off alone: time beside that with all of them, and the same for the code's bytes. */
static void print_ablation(const char *directory, const struct bench_program *const *programs,
			   size_t n, unsigned int rounds)
{
	double sum[PASSES] = { 0 };

	printf("\nvm, ablation: time with one pass off / with all (checked programs: checks)\n  "
	       "%-22s",
	       "");
	for (int pass = 0; pass < PASSES; pass++)
		printf(" %8s", pass_names[pass]);
	printf("\n");
	for (size_t i = 0; i < n; i++) {
		double ratio[PASSES];

		if (measure_passes(directory, programs[i], rounds, ratio))
			return;
		printf("  %-22s", programs[i]->title);
		for (int pass = 0; pass < PASSES; pass++) {
			cell(ratio[pass], "%.2f");
			sum[pass] += log(ratio[pass]);
		}
		printf("\n");
		fflush(stdout);
	}
	printf("  %-22s", "geometric mean");
	for (int pass = 0; pass < PASSES; pass++)
		cell(exp(sum[pass] / n), "%.3f");
	printf("\n");
}

/* A process that opens a program, compiles it and runs it, and nothing else. */
static int run_once(const char *directory, const struct bench_program *program)
{
	struct bench_image image;
	struct err err = { 0 };
	struct vm *vm;
	char path[512], name[64];

	program_paths(directory, program, "", path, sizeof(path), name, sizeof(name));
	if (image_open(path, name, &image, &err) ||
	    image_vm(&image, VM_ENGINE_BEST, false, 0, NULL, 0, &vm, &err)) {
		fprintf(stderr, "bench-vm: %s\n", err.text);
		return 1;
	}
	measure_once(vm, &image, program);
	printf("%ld\n", peak_kb());
	return 0;
}

struct arguments {
	const char *directory;
	unsigned int rounds;
	bool smoke, ablate, once, count, list;
	const struct bench_program *programs[32];
	size_t nprograms;
};

static int parse(int argc, char **argv, struct arguments *ret)
{
	*ret = (struct arguments){ .rounds = 15 };
	for (int i = 1; i < argc; i++) {
		const struct bench_program *program;

		if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			ret->rounds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--smoke"))
			ret->smoke = true;
		else if (!strcmp(argv[i], "--ablate"))
			ret->ablate = true;
		else if (!strcmp(argv[i], "--once"))
			ret->once = true;
		else if (!strcmp(argv[i], "--count"))
			ret->count = true;
		else if (!strcmp(argv[i], "--list"))
			ret->list = true;
		else if (!ret->directory)
			ret->directory = argv[i];
		else if ((program = program_find(argv[i])) && ret->nprograms < 32)
			ret->programs[ret->nprograms++] = program;
		else
			return -1;
	}
	if (!ret->nprograms) {
		ret->nprograms = bench_nprograms;
		for (size_t i = 0; i < bench_nprograms; i++)
			ret->programs[i] = &bench_programs[i];
	}
	if (ret->smoke)
		ret->rounds = 1;
	return (ret->directory || ret->list) && ret->rounds && ret->rounds <= MAX_ROUNDS ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct result results[32];
	struct arguments arguments;
	long peak;

	if (parse(argc, argv, &arguments)) {
		fprintf(stderr,
			"usage: bench-vm DIRECTORY [--rounds N] [--smoke] [--ablate | --count] "
			"[PROGRAM]...\n");
		return 2;
	}
	for (size_t i = 0; arguments.list && i < bench_nprograms; i++)
		printf("%s %u %s\n", bench_programs[i].name, bench_programs[i].size,
		       bench_programs[i].no_kernel ? "" : "kernel");
	if (arguments.list)
		return 0;
	if (arguments.once)
		return run_once(arguments.directory, arguments.programs[0]);
	pin();
	if (arguments.count)
		return count_instructions(arguments.directory, arguments.programs,
					  arguments.nprograms);
	printf("vm: time / time of the same source by gcc -O2; medians of %u interleaved rounds, "
	       "one "
	       "CPU%s\n",
	       arguments.rounds, arguments.smoke ? " (smoke: the numbers mean nothing)" : "");
	printf("  %-22s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "us", "JIT", "checked", "interp",
	       "kernel", "bytes", "native", "compile");
	printf("  %-22s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "a pass", "/native", "/native",
	       "/native", "/native", "of code", "bytes", "us");
	for (size_t i = 0; i < arguments.nprograms; i++) {
		if (measure_program(arguments.directory, arguments.programs[i], arguments.rounds,
				    arguments.smoke, &results[i]))
			return 1;
		print_row(&results[i]);
	}
	print_summary(results, arguments.nprograms);
	print_compile(arguments.smoke ? 1 : 31);
	peak = measure_peak(arguments.directory);
	printf("  %-46s %8ld %8d  %s\n", "peak memory of a process that runs one, kB", peak,
	       LIMIT_PEAK_KB, peak > 0 ? verdict(peak < LIMIT_PEAK_KB) : "-");
	print_reasons(results, arguments.nprograms);
	if (arguments.ablate)
		print_ablation(arguments.directory, arguments.programs, arguments.nprograms,
			       arguments.rounds);
	return 0;
}
