/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of bench-vm share. One thread; everything lives until the process ends. */
#pragma once

#include <duet/vm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define BENCH_VALUES 1024 /* elements of the map of programs/map.c */

/* A row of the table of programs. */
struct bench_program {
	const char *name;  /* of its files: programs/NAME.c, NAME.o, NAME.kernel.o */
	const char *entry; /* bench_ENTRY is its function */
	uint64_t (*native)(uint64_t rounds, void *memory, uint64_t size);
	const char *start, *end; /* its native code */
	const char *title;       /* in the table */
	bool ten;                /* one of the ten that the geometric mean is over */
	uint32_t size;           /* bytes of memory */
	uint32_t rounds;         /* passes that are one measurement: 10^7 instructions at least */
	void (*prepare)(uint8_t *memory, uint32_t size);
	const char *no_kernel; /* why the kernel cannot run it; NULL: it can */
};
extern const struct bench_program bench_programs[];
extern const size_t bench_nprograms;
/* What prepare() fills in is a function of this. */
void bench_random_seed(uint64_t seed);
#define BENCH_MAX_SIZE (512 << 10)

/* ---- helpers.c: C functions that programs call, and what they work on ---- */
extern uint64_t bench_values[BENCH_VALUES];
uint64_t bench_mix(uint64_t a, uint64_t b);
uint64_t bench_call_many(uint64_t (*function)(uint64_t), uint64_t count, uint64_t first);
uint64_t bench_print_row(char *line, uint64_t size, uint64_t key, uint64_t count, uint64_t mean);
uint64_t bench_each_record(const void *records, uint64_t size,
			   int (*handler)(const void *, uint64_t));
/* The row of one by its name, or NULL. */
const struct vm_native *bench_native(const char *name);

/* ---- image.c: an object, linked for our VM ---- */
struct bench_image {
	struct vm_image vm;
	uint32_t entry; /* function of vm */
	/* What checked mode must know besides the program's memory. */
	struct bench_region {
		void *address;
		size_t size;
	} regions[16];
	size_t nregions;
};
int image_open(const char *path, const char *entry, struct bench_image *ret, struct err *err);
/* A vm of it; @memory is what the program works on. -ENOTSUP: no such engine here. */
int image_vm(const struct bench_image *image, enum vm_engine_kind engine, bool checked,
	     uint32_t passes_off, void *memory, size_t size, struct vm **ret, struct err *err);
/* A made-up function of about @ninsns instructions: branches, loops, memory, divisions, calls. */
int image_make(size_t ninsns, struct bench_image *ret);

/* ---- kernel.c: the kernel's JIT ---- */
struct bench_kernel {
	int program;
	uint8_t *memory; /* of the program, mapped */
	size_t memory_size;
	uint64_t *result;
};
int kernel_open(const char *path, const char *entry, struct bench_kernel *ret, char *why,
		size_t why_size);
/* @repeat passes: ns of one. */
int kernel_run(const struct bench_kernel *kernel, uint32_t repeat, double *ns);
