/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our side of the comparison: the engines, and what a generated program needs around it in this
 * process. A struct host belongs to one thread and must not move while it has a vm.
 */
#pragma once

#include <duet/vm.h>

#include "generate.h"

/* Every way to run a program that exists. An engine that has landed and does not start is a
 * failure. */
struct engine {
	const char *name;
	enum vm_engine_kind kind;
	bool checked;
	bool budget; /* counts instructions */
	bool landed;
	uint32_t passes_off;
};

extern const struct engine engines[];
extern const size_t nengines;

/* Several programs in one vm. */
#define HOST_PROGRAMS  32
#define HOST_CODE      (HOST_PROGRAMS * 256)
#define HOST_FUNCTIONS (HOST_PROGRAMS * GENERATE_FUNCTIONS)

struct host {
	struct generate_memory memory; /* that the programs work on */
	struct bpf_insn code[HOST_CODE];
	size_t ncode;
	struct vm_function functions[HOST_FUNCTIONS];
	size_t nfunctions;
	uint32_t main[HOST_PROGRAMS]; /* function that a program starts with */
	size_t nprograms;
	struct vm_array arrays[GENERATE_ARRAYS];
	struct vm *vm;
};

/* Is there room for a program more? */
bool host_has_room(const struct host *host, const struct generated *program);
void host_clear(struct host *host);
void host_add(struct host *host, const struct generated *program);

/* Makes host->vm of the programs. 0, or -1 with the reason in @why. */
int host_create(struct host *host, const struct engine *engine, char *why, size_t why_size);
/* Runs a program on @start: 0 with what it left in host->memory, or -1 with the fault in @why. */
int host_run(struct host *host, uint32_t program, const struct generate_memory *start, char *why,
	     size_t why_size);
void host_destroy(struct host *host);
