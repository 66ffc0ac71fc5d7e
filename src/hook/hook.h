/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user half while it runs: its memory, its functions (ours, and the C library's), its hooks.
 * One half belongs to one thread. It borrows everything in `struct hook_options`.
 *
 * Life: hook_half_open -> hook_run(OPEN) -> [session loads the kernel half]
 * -> hook_half_connect -> hook_run(INIT) ... hook_run(EXIT) -> hook_half_close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "obj/split.h"

struct hook_half;
struct kern;
struct report;
struct report_counter;

enum hook_kind {
	HOOK_OPEN,
	HOOK_INIT,
	HOOK_START,
	HOOK_INTERVAL,
	HOOK_EVENT,
	HOOK_SAMPLE,
	HOOK_LOST,
	HOOK_CHILD_FORK,
	HOOK_CHILD_EXEC,
	HOOK_CHILD_EXIT,
	HOOK_SIGNAL,
	HOOK_EXIT,
	HOOK_KIND_COUNT,
};

/* A row of the table of hooks. */
struct hook_row {
	enum hook_kind kind;
	const char *section;  /* "user/interval" */
	bool parameter;       /* more text may or must follow a '/' */
	bool must;            /* ... must */
	const char *argument; /* structure that the program receives, NULL: typed by the script */
	const char *when;     /* for `duet list hooks` */
};
extern const struct hook_row hook_rows[HOOK_KIND_COUNT];

/* One program of the user half that a hook runs, in file order. */
struct hook_program {
	enum hook_kind kind;
	const char *section; /* as written */
	const char *name;
	const char *parameter; /* "1s", map name, signal name; NULL: none */
	uint64_t interval_ns;  /* HOOK_INTERVAL; 0: -I or its default */
	int signal;            /* HOOK_SIGNAL */
	bool ubpf;             /* UBPF;... : any non-zero return stops the chain */
};

/* What scripts may ask of the run; implemented by the session. All return 0 or -errno. */
struct hook_ops {
	int (*stop)(void *run, int status);
	int (*probe_run)(void *run, const char *program, int cpu);
	int (*probe_attach)(void *run, const char *program, const char *where);
	int (*probe_enable)(void *run, const char *program, bool enable);
	int (*program_target)(void *run, const char *program, const char *target);
	int (*map_entries)(void *run, const char *map, uint32_t entries);
	int (*event_text)(void *run, const char *pmu, const char *event);
	/* count, enabled, running of PMU() @pmu on @cpu (-1: all CPUs) */
	int (*pmu_read)(void *run, const char *pmu, int cpu, uint64_t values[3]);
	/* of two in one group, of the same time, over all CPUs; -EXDEV: they are in none */
	int (*pmu_together)(void *run, const char *const pmus[2], uint64_t *const values[2]);
	int (*cost)(void *run, uint64_t values[4]); /* struct duet_cost */
	uint32_t (*cpus)(void *run);
	int (*event_supported)(const char *event);      /* 0 or 1 */
	int (*event_bound)(void *run, const char *pmu); /* has it got an event? 0 or 1 */
};

struct hook_options {
	const struct obj *obj;
	const struct user_half *user;
	const struct hook_ops *ops;
	void *run;             /* handed to ops */
	struct report *report; /* tables and the script's text go here */
	FILE *out;             /* where the report writes: flushed after each hook */
	const struct report_counter *counters;
	size_t ncounters;
	bool link_only; /* for listings of machine code: nothing will run or print */
	bool checked; /* every access of the script is checked, and it may call safe functions only */
};

/* Links the user half: externs resolved, hooks checked by BTF, views compiled. -EINVAL with
 * `FILE:LINE: what: why: hint`. */
int hook_half_open(const struct hook_options *options, struct hook_half **ret, struct err *err);
void hook_half_close(struct hook_half *half);
DEFINE_CLEANUP(struct hook_half *, hook_half_close);

/* The kernel half was loaded: data sections become the kernel's memory (at the same addresses),
 * maps answer from now on. */
int hook_half_connect(struct hook_half *half, struct kern *kern, struct err *err);

/* The counters' `supported` is final: views are compiled anew. Before the first print. */
int hook_half_counters_known(struct hook_half *half, struct err *err);

/* Memory of a data section (user_half.data index), for --set and for initial contents. */
void *hook_half_data(struct hook_half *half, uint32_t data);

/* The vm that runs the half, for listings of its code; NULL: there is no code. */
struct vm;
const struct vm *hook_half_vm(const struct hook_half *half);
/* The instruction of user_half.code that instruction @insn of the vm's code is or belongs to. */
uint32_t hook_half_insn(const struct hook_half *half, uint32_t insn);

size_t hook_program_count(const struct hook_half *half);
const struct hook_program *hook_program_at(const struct hook_half *half, size_t index);
bool hook_any(const struct hook_half *half, enum hook_kind kind);

/*
 * Runs one program: its return value in *@ret. -EFAULT with `FILE:LINE: SECTION: fault` and a
 * back trace in @err; afterwards hook_half_dead() tells whether further programs may run.
 */
int hook_call(struct hook_half *half, size_t index, const void *argument, uint64_t size,
	      int64_t *ret, struct err *err);
/*
 * Runs every program of @kind for which @match is NULL or true, in order, until one returns
 * positive (UBPF: non-zero). 0, or a negative return or fault with the reason.
 */
int hook_run(struct hook_half *half, enum hook_kind kind,
	     bool (*match)(const struct hook_program *program, const void *context),
	     const void *context, const void *argument, uint64_t size, struct err *err);
/*
 * Many events in a row at little more than the cost of their program: the vm is entered once, then
 * @drive(@context) is called, within which hook_batch_run() runs the programs of @kind that
 * @match, like hook_run(), for one event. What the programs print is passed on when @drive returns.
 * 0 and what @drive returned in @ret, or a fault with the reason. Not for checked mode.
 */
struct hook_batch {
	/* The only program, compiled: may be called in place of hook_batch_run(), which then needs
	 * to be told by hook_batch_after() when it gave other than 0 or *@attention is set. */
	uint64_t (*direct)(uint64_t argument, uint64_t size);
	const uint32_t *attention;
	/* inner */
	struct hook_half *half;
	enum hook_kind kind;
	bool (*match)(const struct hook_program *program, const void *context);
	const void *match_context;
	int (*drive)(void *context, struct hook_batch *batch);
	void *context;
	size_t only; /* index of the program of @direct */
	struct err *err;
};
int hook_run_batch(struct hook_half *half, struct hook_batch *batch, int *ret, struct err *err);
/* For one event, within drive: what hook_run() returns. */
int hook_batch_run(struct hook_batch *batch, const void *argument, uint64_t size);
int hook_batch_after(struct hook_batch *batch, uint64_t result);
/* A fault inside the C library happened: no further program may run. */
bool hook_half_dead(const struct hook_half *half);
/* Async-signal-safe: ends the program that runs. @sticky: and every later one at once. */
void hook_interrupt(struct hook_half *half, bool sticky);
bool hook_running(const struct hook_half *half);

/* Prints every map and variable by BTF: the report of a script without one. */
int hook_dump(struct hook_half *half, struct err *err);

/* "500us", "1s", "2m" -> ns; 0 when it is no duration. Plain numbers are refused. */
uint64_t hook_parse_duration(const char *text);
/* "USR1", "SIGUSR1", "10" -> number; 0: unknown. */
int hook_parse_signal(const char *text);

/* For `duet list functions`. */
typedef void (*hook_function_fn)(void *context, const char *name, const char *theme);
void hook_list_functions(hook_function_fn fn, void *context);
/* Functions of the C library that scripts may call in checked mode, beside those of duet. */
void hook_list_safe_functions(hook_function_fn fn, void *context);
