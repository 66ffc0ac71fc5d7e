/* SPDX-License-Identifier: BSD-2-Clause */
/* Measuring one program on all sides. */
#pragma once

#include "bench.h"

enum side { SIDE_NATIVE, SIDE_JIT, SIDE_CHECKED, SIDE_INTERPRETER, SIDE_KERNEL, SIDES };

struct result {
	const struct bench_program *program;
	double ns[SIDES];    /* medians, of one pass; 0: not measured */
	double ratio[SIDES]; /* medians of the ratios to native of each round */
	double bytes, native_bytes;
	double compile_us;
	char no_kernel[128]; /* why there is no number of the kernel's */
};

#define MAX_ROUNDS 101
double now_ns(void); /* CPU time of this thread */
double median(const double *values, unsigned int n);

#define PASSES 15
extern const char *const pass_names[PASSES];

const struct bench_program *program_find(const char *name);
/* DIRECTORY/NAME@suffix.o and the name of its entry. */
void program_paths(const char *directory, const struct bench_program *program, const char *suffix,
		   char *path, size_t path_size, char *entry, size_t entry_size);
void pin(void);
/* 0, or -1 after saying on stderr what went wrong: a side that gives another result, too few
 * instructions a round, ... */
int measure_program(const char *directory, const struct bench_program *program, unsigned int rounds,
		    bool smoke, struct result *ret);
int measure_passes(const char *directory, const struct bench_program *program, unsigned int rounds,
		   double *ratio);
/* us from instructions to machine code, 0: there is no JIT; and of all of vm_create(). */
double compile_us(const struct vm_image *image, unsigned int rounds, double *create_us);
double measure_compile(size_t ninsns, unsigned int rounds, double *create_us);
int measure_once(struct vm *vm, const struct bench_image *image,
		 const struct bench_program *program);
long peak_kb(void);
long measure_peak(const char *directory);
/* What @counter of @fd gains by @passes passes of native code and of the JIT's. */
int count_program(const char *directory, const struct bench_program *program, uint32_t passes,
		  uint64_t (*counter)(int fd), int fd, uint64_t *native, uint64_t *jit);
/* count.c: instructions in place of time, where a PMU counts them exactly. */
int count_instructions(const char *directory, const struct bench_program *const *programs,
		       size_t n);
