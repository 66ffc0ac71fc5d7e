/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * duet's own kernel programs (src/kern/bpf/) and what the session needs of them. All belong to the
 * kern that they are started on and end with it. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kern/kern.h"

struct duet_child;

/* ---- task totals: call_enter()/call_leave() --------------------------------------------- */
/* Does the loaded script use __duet_task? (Otherwise nothing is started.) */
bool kern_totals_needed(const struct kern *kern);
/* @fds[slot * ncpus + i]: the event of @slot on cpus[i], -1 where it is not open. After load,
 * counters on, before kern_attach(). */
int kern_totals_start(struct kern *kern, const int *fds, size_t slots, const int *cpus,
		      size_t ncpus, struct err *err);

/* ---- in_target() -------------------------------------------------------------------------- */
struct kern_target_options {
	/* @what: "fork", "exec", "exit" (of a thread group of the target) */
	int (*child)(void *context, const char *what, const struct duet_child *child);
	void *context;
	bool want_children; /* false: child is never called */
};
/* After load. Nothing is loaded when the script has no in_target() and wants no children. */
int kern_target_start(struct kern *kern, const struct kern_target_options *options,
		      struct err *err);
/* All threads of @pid that there are, and (by the fork program) all later ones; -ESRCH. */
int kern_target_add_process(struct kern *kern, int pid, struct err *err);
int kern_target_add_thread(struct kern *kern, int tid, struct err *err);
int kern_target_fd(const struct kern *kern); /* -1: nothing to consume */
int kern_target_consume(struct kern *kern);  /* count, or what child() returned below 0 */

/* ---- bpf_printk --------------------------------------------------------------------------- */
struct kern_printk;
typedef void (*kern_printk_fn)(void *context, const char *line, size_t size);
int kern_printk_open(struct kern *kern, kern_printk_fn line, void *context,
		     struct kern_printk **ret, struct err *err);
int kern_printk_fd(const struct kern_printk *printk);
int kern_printk_consume(struct kern_printk *printk);
void kern_printk_close(struct kern_printk *printk);

/* ---- calibration ---------------------------------------------------------------------------- */
/*
 * @kern: a throw-away second instance, loaded with __duet_calibrating = 1, its counters on and
 * kern_totals_start() done. Attaches its function programs to a function that does nothing and
 * triggers that @times. Returns the triggers done, or -errno (-EOPNOTSUPP: nothing to calibrate).
 */
int kern_calibrate(struct kern *kern, unsigned int times, struct err *err);

/* ---- perf_event/EVENT@FREQ programs ----------------------------------------------------------- */
/* "EVENT@FREQ" of the section, or NULL for other programs. */
const char *kern_program_event_text(const struct kern_program *program);
/* The events that kern_attach() attaches it to; the fds stay the caller's. */
int kern_program_set_events(struct kern_program *program, const int *fds, size_t count,
			    struct err *err);

struct obj;
/* Where verifier messages find source lines; borrowed until kern_close(). */
void kern_set_object(struct kern *kern, const struct obj *obj);
/* Was a target set with kern_program_set_target()? */
bool kern_program_has_target(const struct kern_program *program);
/* Arrays whose values hold no lock, timer or kernel pointer become live memory for the user half.
 * Before load. */
void kern_map_make_mmapable(struct kern_map *map);
/* Counts run time of programs (BPF_ENABLE_STATS) until kern_close(). */
int kern_enable_statistics(struct kern *kern, struct err *err);
