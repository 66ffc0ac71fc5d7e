/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs run in every engine and in the kernel, from equal memory, and must leave equal
 * memory and registers. Programs that use what the kernel does not have are compared with the
 * interpreter.
 */
#pragma once

#include "host.h"
#include "kernel.h"

struct oracle_tally {
	uint64_t accepted, refused; /* by the verifier */
	uint64_t alone;             /* not shown to it */
	uint64_t rows[ISA_NOPS];    /* operations in the accepted and the alone */
	uint64_t runs[64];          /* programs that each engine ran */
	/* What is going on, for whoever finds this process dead. */
	uint64_t seed;
	int engine; /* -1: the kernel */
};

struct oracle {
	struct kernel kernel; /* no arrays: there is none; programs are compared with ours alone */
	struct host host;
	struct oracle_tally *tally;
	uint64_t engines; /* bit n: engines[n] takes part */
	bool quiet;       /* says less of a difference, and does not minimise */
	/* Of the programs in host: */
	struct generated programs[HOST_PROGRAMS];
	struct generate_memory start[HOST_PROGRAMS], expected[HOST_PROGRAMS];
	bool refused[HOST_PROGRAMS];
	uint64_t seeds[HOST_PROGRAMS];
	struct generate_memory left; /* what the last comparison saw */
	char why[256];               /* ... or the fault that ended it */
};

/* The maps. 0 or -errno. */
int oracle_open(struct oracle *oracle);
void oracle_close(struct oracle *oracle);

/* Programs of the seeds @seed to @seed + @n - 1. 0, or -1 with all about the difference on
 * stdout. */
int oracle_compare(struct oracle *oracle, uint64_t seed, uint64_t n);

/* ---- oracle_kernel.c ---- */
/* Runs what is in oracle->programs and fills in expected and refused. */
void oracle_ask_kernel(struct oracle *oracle, size_t n);
/* One program. -1: refused. @log may be NULL. */
int oracle_ask_one(struct oracle *oracle, const struct generated *program,
		   const struct generate_memory *start, struct generate_memory *ret, char *log,
		   size_t log_size);

/* ---- minimise.c ---- */
typedef bool program_differs(void *context, const struct generated *program);
/* Drops instructions of @program as long as @differs. */
void minimise(struct generated *program, program_differs *differs, void *context);
