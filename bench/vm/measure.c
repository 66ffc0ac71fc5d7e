// SPDX-License-Identifier: BSD-2-Clause
#include "measure.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEAST_INSTRUCTIONS 10000000 /* of a round */

const char *const pass_names[PASSES] = { "copy",   "dead",     "address", "modify", "divide",
					 "inline", "layout",   "align",   "short",  "shift",
					 "narrow", "prologue", "near",    "switch", "checks" };

/* What one measurement runs: a native function, a vm, or the kernel. */
struct runner {
	struct vm *vm;
	uint32_t entry;
	const struct bench_kernel *kernel;
	double ns[MAX_ROUNDS];
};

static uint8_t *program_memory(void)
{
	static uint8_t *memory; /* the same addresses for all */

	if (!memory) {
		memory = mmap(NULL, BENCH_MAX_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			abort();
	}
	return memory;
}

double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static int complain(const struct bench_program *program, const char *side, const char *why)
{
	fprintf(stderr, "bench-vm: %s: %s: %s\n", program->name, side, why);
	return -1;
}

const struct bench_program *program_find(const char *name)
{
	for (size_t i = 0; i < bench_nprograms; i++)
		if (!strcmp(bench_programs[i].name, name))
			return &bench_programs[i];
	return NULL;
}

void program_paths(const char *directory, const struct bench_program *program, const char *suffix,
		   char *path, size_t path_size, char *entry, size_t entry_size)
{
	snprintf(path, path_size, "%s/%s%s.o", directory, program->name, suffix);
	snprintf(entry, entry_size, "bench_%s", program->entry);
}

/* The CPU that we are on: the scheduler has put us where it is quiet. */
void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static uint64_t hash(const uint8_t *memory, size_t size, uint64_t start)
{
	for (size_t i = 0; i < size; i++)
		start = (start ^ memory[i]) * 0x100000001b3ULL;
	return start;
}

static void prepare(const struct bench_program *program)
{
	bench_random_seed(program->size);
	program->prepare(program_memory(), program->size);
	memset(bench_values, 0, sizeof(bench_values));
}

static int run_vm(const struct bench_program *program, struct runner *runner, uint32_t rounds,
		  uint64_t *result)
{
	uint64_t args[] = { rounds, (uintptr_t)program_memory(), program->size };
	struct vm_fault fault;
	char text[256];

	if (!vm_call(runner->vm, runner->entry, args, 3, result, &fault))
		return 0;
	return complain(program, "fault", vm_fault_text(&fault, text, sizeof(text)));
}

/* Runs it once: time in @ns, what came out in @sum. */
static int run(const struct bench_program *program, struct runner *runner, uint32_t rounds,
	       double *ns, uint64_t *sum)
{
	uint64_t result = 0;
	double start;
	int rc = 0;

	prepare(program);
	if (runner->kernel) {
		memcpy(runner->kernel->memory, program_memory(), program->size);
		return kernel_run(runner->kernel, rounds, ns);
	}
	start = now_ns();
	if (runner->vm)
		rc = run_vm(program, runner, rounds, &result);
	else
		result = program->native(rounds, program_memory(), program->size);
	*ns = (now_ns() - start) / rounds;
	*sum = hash(program_memory(), program->size, result);
	*sum = hash((const uint8_t *)bench_values, sizeof(bench_values), *sum);
	return rc;
}

/* One pass gives the same in the kernel. */
static int compare_kernel(const struct bench_program *program, struct runner *runner)
{
	uint64_t native;
	double ns;

	prepare(program);
	native = program->native(1, program_memory(), program->size);
	if (run(program, runner, 1, &ns, NULL))
		return complain(program, "kernel", "does not run");
	prepare(program);
	program->native(1, program_memory(), program->size);
	if (*runner->kernel->result != native ||
	    memcmp(runner->kernel->memory, program_memory(), program->size))
		return complain(program, "kernel", "another result than native code");
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double median(const double *values, unsigned int n)
{
	double sorted[MAX_ROUNDS] = { 0 };

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static double median_ratio(const struct runner *a, const struct runner *b, unsigned int n)
{
	double ratios[MAX_ROUNDS] = { 0 };

	for (unsigned int i = 0; i < n && i < MAX_ROUNDS; i++)
		ratios[i] = a->ns[i] / b->ns[i];
	return median(ratios, n);
}

/* All runners in turn, @rounds times; results must be the same (the kernel's is compared apart). */
static int run_all(const struct bench_program *program, struct runner *const *runners,
		   size_t nrunners, unsigned int rounds, uint32_t passes)
{
	uint64_t first = 0, sum = 0;

	/* The first round meets cold caches: it is not counted. */
	for (unsigned int round = 0; round <= rounds; round++) {
		for (size_t i = 0; i < nrunners; i++) {
			/* Each round begins with another, so that none always follows the same. */
			struct runner *runner = runners[(i + round) % nrunners];
			double ns;

			if (run(program, runner, passes, &ns, &sum))
				return -1;
			if (round)
				runner->ns[round - 1] = ns;
			if (runner->kernel)
				continue;
			if (!first)
				first = sum;
			if (first != sum)
				return complain(program,
						runner->vm ? vm_engine_name(runner->vm) : "native",
						"results differ from native code's");
		}
	}
	return 0;
}

/* A round that is too short says little: it must use up a budget. On an image of its own, whose
 * data is left as it then is. */
static int check_length(const struct bench_program *program, const char *path, const char *entry)
{
	struct vm_options options = { .size = sizeof(options),
				      .engine = VM_ENGINE_INTERPRETER,
				      .instruction_budget = LEAST_INSTRUCTIONS };
	uint64_t args[] = { program->rounds, (uintptr_t)program_memory(), program->size }, result;
	struct bench_image image;
	struct vm_fault fault;
	struct err err = { 0 };
	struct vm *vm;
	int rc;

	if (image_open(path, entry, &image, &err))
		return complain(program, path, err.text);
	if (vm_create(&image.vm, &options, &vm, NULL, 0, NULL))
		return complain(program, "interpreter", "no vm with a budget");
	prepare(program);
	rc = vm_call(vm, image.entry, args, 3, &result, &fault);
	vm_destroy(vm);
	if (rc != -EFAULT || fault.kind != VM_FAULT_BUDGET)
		return complain(program, "rounds", "fewer than 10^7 instructions");
	return 0;
}

static double code_bytes(struct vm *vm, const struct bench_image *image)
{
	double sum = 0;
	size_t size;

	for (uint32_t i = 0; i < image->vm.nfunctions; i++)
		if (vm_machine_code(vm, i, &size))
			sum += size;
	return sum;
}

static int open_side(const struct bench_program *program, const struct bench_image *image,
		     enum side side, struct runner *runner)
{
	struct err err = { 0 };
	int rc;

	runner->entry = image->entry;
	rc = image_vm(image, side == SIDE_INTERPRETER ? VM_ENGINE_INTERPRETER : VM_ENGINE_JIT,
		      side == SIDE_CHECKED, 0, program_memory(), program->size, &runner->vm, &err);
	if (rc && rc != -ENOTSUP)
		complain(program, "vm", err.text);
	return rc;
}

static void open_kernel(const char *directory, const struct bench_program *program,
			struct bench_kernel *kernel, struct runner *runner, struct result *result)
{
	char path[512], entry[64];

	snprintf(result->no_kernel, sizeof(result->no_kernel), "%s", program->no_kernel ?: "");
	if (program->no_kernel)
		return;
	program_paths(directory, program, ".kernel", path, sizeof(path), entry, sizeof(entry));
	if (!kernel_open(path, entry, kernel, result->no_kernel, sizeof(result->no_kernel)))
		runner->kernel = kernel;
}

int measure_program(const char *directory, const struct bench_program *program, unsigned int rounds,
		    bool smoke, struct result *ret)
{
	static struct runner sides[SIDES];
	struct runner *runners[SIDES];
	struct bench_kernel kernel;
	struct bench_image image;
	char path[512], entry[64];
	struct err err = { 0 };
	size_t n = 0;
	int rc;

	memset(sides, 0, sizeof(sides));
	*ret = (struct result){ .program = program };
	program_paths(directory, program, "", path, sizeof(path), entry, sizeof(entry));
	if (image_open(path, entry, &image, &err))
		return complain(program, path, err.text);
	if (!smoke && check_length(program, path, entry))
		return -1;
	runners[n++] = &sides[SIDE_NATIVE];
	for (enum side side = SIDE_JIT; side <= SIDE_INTERPRETER; side++) {
		rc = open_side(program, &image, side, &sides[side]);
		if (rc && rc != -ENOTSUP)
			return -1;
		if (!rc)
			runners[n++] = &sides[side];
	}
	open_kernel(directory, program, &kernel, &sides[SIDE_KERNEL], ret);
	if (sides[SIDE_KERNEL].kernel) {
		if (compare_kernel(program, &sides[SIDE_KERNEL]))
			return -1;
		runners[n++] = &sides[SIDE_KERNEL];
	}
	rc = run_all(program, runners, n, rounds, smoke ? 1 : program->rounds);
	for (enum side side = 0; !rc && side < SIDES; side++) {
		if (!sides[side].ns[0])
			continue;
		ret->ns[side] = median(sides[side].ns, rounds);
		ret->ratio[side] = median_ratio(&sides[side], &sides[SIDE_NATIVE], rounds);
	}
	ret->native_bytes = program->end - program->start;
	if (sides[SIDE_JIT].vm) {
		ret->bytes = code_bytes(sides[SIDE_JIT].vm, &image);
		ret->compile_us = compile_us(&image.vm, smoke ? 1 : 31, NULL);
	}
	for (enum side side = 0; side < SIDES; side++)
		vm_destroy(sides[side].vm);
	return rc;
}

int measure_passes(const char *directory, const struct bench_program *program, unsigned int rounds,
		   double *ratio)
{
	static struct runner all[PASSES + 2];
	struct runner *runners[PASSES + 2];
	char path[512], entry[64];
	struct bench_image image;
	struct err err = { 0 };
	int rc = 0;

	memset(all, 0, sizeof(all));
	program_paths(directory, program, "", path, sizeof(path), entry, sizeof(entry));
	if (image_open(path, entry, &image, &err))
		return complain(program, path, err.text);
	/* One with all passes, one with each of them off, and a checked one with all of them. */
	for (int i = 0; i < PASSES + 2 && !rc; i++) {
		bool checks = i >= PASSES;

		runners[i] = &all[i];
		all[i].entry = image.entry;
		rc = image_vm(&image, VM_ENGINE_JIT, checks, i && i <= PASSES ? 1u << (i - 1) : 0,
			      program_memory(), program->size, &all[i].vm, &err);
	}
	if (rc)
		return complain(program, "JIT", err.text);
	rc = run_all(program, runners, PASSES + 2, rounds, program->rounds);
	for (int i = 0; i < PASSES && !rc; i++)
		ratio[i] =
			median_ratio(&all[i + 1], &all[i == PASSES - 1 ? PASSES + 1 : 0], rounds);
	for (int i = 0; i < PASSES + 2; i++)
		vm_destroy(all[i].vm);
	return rc;
}

int count_program(const char *directory, const struct bench_program *program, uint32_t passes,
		  uint64_t (*counter)(int fd), int fd, uint64_t *native, uint64_t *jit)
{
	struct runner runner = { 0 };
	struct bench_image image;
	char path[512], entry[64];
	struct err err = { 0 };
	uint64_t start, expected, result = 0;
	int rc;

	program_paths(directory, program, "", path, sizeof(path), entry, sizeof(entry));
	if (image_open(path, entry, &image, &err))
		return complain(program, path, err.text);
	if (open_side(program, &image, SIDE_JIT, &runner))
		return complain(program, "JIT", "there is none");
	prepare(program);
	start = counter(fd);
	expected = program->native(passes, program_memory(), program->size);
	*native = counter(fd) - start;
	prepare(program);
	start = counter(fd);
	rc = run_vm(program, &runner, passes, &result);
	*jit = counter(fd) - start;
	vm_destroy(runner.vm);
	if (!rc && result != expected)
		rc = complain(program, "JIT", "another result than native code");
	return rc;
}

int measure_once(struct vm *vm, const struct bench_image *image,
		 const struct bench_program *program)
{
	struct runner runner = { .vm = vm, .entry = image->entry };
	uint64_t sum;
	double ns;

	return run(program, &runner, 1, &ns, &sum);
}

long peak_kb(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld", &kb) == 1)
			break;
	if (file)
		fclose(file);
	return kb;
}

/* In a process of its own, whose memory is nobody else's. */
long measure_peak(const char *directory)
{
	char command[1024];
	FILE *pipe;
	long kb = 0;

	snprintf(command, sizeof(command), "/proc/%d/exe '%s' --once event", getpid(), directory);
	pipe = popen(command, "r");
	if (!pipe)
		return 0;
	if (fscanf(pipe, "%ld", &kb) != 1)
		kb = 0;
	pclose(pipe);
	return kb;
}
