// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cost of a pair of probes: programs are attached where nothing happens between the two, in the
 * kernel or in this process, and these places are passed. See kern.h for the steps.
 */
#include "kern/calibrate_places.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "kern/own.h"

/* Tracepoints that we can pass: one has a number in its record; the other, when a thread is given a
 * name, two texts, which the kernel copies before a program runs. */
#define ROUND_SMALL "bpf_test_run:bpf_test_finish"
#define ROUND_LARGE "task:task_rename"
/* It does nothing for a length of 0, and its tracepoint has room for six arguments. */
#define EMPTY_SYSCALL "splice"

/* What prepare found out about a program. */
struct calibrated {
	char place[2][160];     /* where it lies as the one that begins calls, and that ends them */
	void (*empty[2])(void); /* our functions there, NULL: none */
	bool leaves;            /* ends calls */
};

/* Kinds of programs whose costs are of one sort: these can be a pair. */
enum family {
	FAMILY_NONE,
	FAMILY_KERNEL,
	FAMILY_TRAMPOLINE,
	FAMILY_USER,
	FAMILY_USDT,
	FAMILY_TRACE
};

static enum family family_of(const struct kern_program *program)
{
	switch (program->kind->id) {
	case KIND_KPROBE:
	case KIND_KRETPROBE:
	case KIND_FENTRY:
	case KIND_FEXIT:
		return FAMILY_KERNEL;
	case KIND_UPROBE:
	case KIND_URETPROBE:
		return FAMILY_USER;
	case KIND_USDT:
		return FAMILY_USDT;
	case KIND_TRACEPOINT:
	case KIND_TP_BTF:
		return FAMILY_TRACE;
	case KIND_RAW_TP: /* writable ones only where something can be written */
		return program->kind->type == BPF_PROG_TYPE_RAW_TRACEPOINT ? FAMILY_TRACE
									   : FAMILY_NONE;
	default:
		return FAMILY_NONE;
	}
}

bool kern_calibrates(const struct kern_program *program)
{
	return program->state != KERN_PROGRAM_DISABLED && family_of(program) != FAMILY_NONE;
}

bool kern_program_is_return(const struct kern_program *program)
{
	return program->kind->id == KIND_KRETPROBE || program->kind->id == KIND_FEXIT ||
	       program->kind->id == KIND_URETPROBE;
}

/* ---- where each program is calibrated ----------------------------------------------------------- */

/* "syscalls/sys_enter_read": the kernel hands these out itself, to those who want that call. */
static bool is_syscall(const struct kern_program *program, const char *what)
{
	const char *target = program->target;

	return program->kind->id == KIND_TRACEPOINT && !strncmp(target, "syscalls", 8) &&
	       !strncmp(target + 9, what, strlen(what));
}

static void trace_place(const struct kern_program *real, struct calibrated *ret)
{
	const char *prefix = real->kind->prefix;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (is_syscall(real, "sys_enter_"))
			snprintf(ret->place[i], sizeof(ret->place[i]),
				 "%s:syscalls:sys_enter_" EMPTY_SYSCALL, prefix);
		else if (is_syscall(real, "sys_exit_"))
			snprintf(ret->place[i], sizeof(ret->place[i]),
				 "%s:syscalls:sys_exit_" EMPTY_SYSCALL, prefix);
		else if (real->kind->id == KIND_TRACEPOINT)
			snprintf(ret->place[i], sizeof(ret->place[i]), "%s:" ROUND_SMALL, prefix);
		else /* as the large one */
			snprintf(ret->place[i], sizeof(ret->place[i]), "%s:task_rename", prefix);
	}
}

/* @second: as the one that ends calls. */
static int find_place(const struct kern_program *real, bool second, struct calibrated *ret,
		      struct err *err)
{
	const char *prefix = real->kind->prefix;
	char *place = ret->place[second];
	size_t size = sizeof(ret->place[second]);

	switch (family_of(real)) {
	case FAMILY_KERNEL:
		if (real->kind->id == KIND_KPROBE)
			return empty_kernel_place(real->target, second, place, size, err);
		snprintf(place, size, "%s:" EMPTY_KERNEL_FUNCTION, prefix);
		return 0;
	case FAMILY_USER:
		second &= !kern_program_is_return(real);
		ret->empty[second] = empty_function_for(real->target, second);
		if (kern_program_is_return(real))
			ret->empty[1] = ret->empty[0];
		return empty_place(ret->empty[second], prefix, place, size, err);
	case FAMILY_USDT:
		ret->empty[second] = empty_usdt(second, place, size);
		return 0;
	default:
		trace_place(real, ret);
		return 0;
	}
}

/* @real: the same program as it will be attached. */
static int prepare_program(struct kern_program *program, struct kern_program *real,
			   bool with_tp_btf, struct err *err)
{
	struct err why = { 0 };
	int code;

	program->optional = false;
	if (real->state == KERN_PROGRAM_DISABLED || real->state == KERN_PROGRAM_SKIPPED ||
	    !real->target || family_of(real) == FAMILY_NONE ||
	    (real->kind->id == KIND_TP_BTF && !with_tp_btf))
		return kern_program_set_enabled(program, false, err);
	program->calibrated = calloc(1, sizeof(*program->calibrated));
	if (!program->calibrated)
		return err_nomem(err);
	program->calibrated->leaves = kern_program_is_return(real);
	code = find_place(real, false, program->calibrated, &why);
	if (!code)
		code = find_place(real, true, program->calibrated, &why);
	if (!code)
		return kern_program_set_target(program, program->calibrated->place[0], err);
	log_verbose("calibration: %s: %s", real->section, why.text);
	return kern_program_set_enabled(program, false, err);
}

int kern_calibrate_prepare(struct kern *kern, struct kern *real, bool with_tp_btf, struct err *err)
{
	size_t i;
	int code = 0;

	for (i = 0; i < kern->nprograms && !code; i++)
		code = prepare_program(&kern->programs[i], &real->programs[i], with_tp_btf, err);
	return code;
}

enum kern_pair kern_pair_of(const struct kern_program *entry, const struct kern_program *leave)
{
	enum family family = family_of(entry);

	if (family == FAMILY_NONE || family != family_of(leave) || kern_program_is_return(entry))
		return KERN_PAIR_NONE;
	if (family == FAMILY_KERNEL && leave->kind->id == KIND_FENTRY)
		return KERN_PAIR_NONE; /* both would lie at one place */
	if (family != FAMILY_TRACE)
		return KERN_PAIR_CALLS;
	if (entry->kind->id != leave->kind->id)
		return KERN_PAIR_NONE;
	return is_syscall(entry, "sys_enter_") && is_syscall(leave, "sys_exit_")
		       ? KERN_PAIR_SYSCALLS
		       : KERN_PAIR_ROUNDS;
}

bool kern_pair_is_of_all_syscalls(const struct kern_program *entry,
				  const struct kern_program *leave)
{
	const char *prefix = entry->kind->id == KIND_TRACEPOINT ? "raw_syscalls" : "";
	size_t length = strlen(prefix), at = length ? length + 1 : 0;

	return (entry->kind->id == KIND_TRACEPOINT || entry->kind->id == KIND_RAW_TP) &&
	       entry->kind->id == leave->kind->id && !strncmp(entry->target, prefix, length) &&
	       !strncmp(leave->target, prefix, length) && strlen(entry->target) > at &&
	       strlen(leave->target) > at && !strcmp(entry->target + at, "sys_enter") &&
	       !strcmp(leave->target + at, "sys_exit");
}

bool kern_program_has_large_record(const struct kern_program *program)
{
	char category[128], name[128], path[512];
	const char *root = kern_tracefs(NULL);
	CLEANUP(buf_deinit) struct buf format = { 0 };

	if (program->kind->id != KIND_TRACEPOINT || is_syscall(program, "") || !root ||
	    sscanf(program->target, "%127[^:/]%*[:/]%127s", category, name) != 2)
		return false;
	snprintf(path, sizeof(path), "%s/events/%s/%s/format", root, category, name);
	return !buf_read_file(&format, path, NULL) && strchr(format.data, '[');
}

void kern_calibrate_leaves(struct kern_program *program)
{
	program->calibrated->leaves = true;
}

/* ---- passing the places ------------------------------------------------------------------------- */

struct trigger {
	const struct kern_calibrate_run *run;
	void (*empty[2])(void); /* of this process, NULL: none */
	struct own own;         /* makes the kernel call its empty functions */
	int fd;                 /* of its program, -1: none */
	bool renames, calls;    /* this thread, the system call */
	char name[16];          /* of this thread */
};

static int pass_once(struct trigger *trigger, struct err *err)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int code = trigger->fd < 0 ? 0 : bpf_prog_test_run_opts(trigger->fd, &opts);

	if (trigger->empty[0])
		trigger->empty[0]();
	if (trigger->empty[1])
		trigger->empty[1]();
	if (trigger->renames)
		prctl(PR_SET_NAME, trigger->name);
	if (trigger->calls)
		splice(-1, NULL, -1, NULL, 0, 0);
	return code ? err_set(err, code, "calibration: %s", kern_errno_text(code)) : 0;
}

static int pass(struct trigger *trigger, unsigned int times, struct err *err)
{
	int code = 0;

	while (times-- && !code)
		code = pass_once(trigger, err);
	return code;
}

static int pull(struct trigger *trigger, struct err *err)
{
	const struct kern_calibrate_run *run = trigger->run;
	unsigned int i;
	int code = 0;

	for (i = 0; i < run->calls && !code; i++) {
		if (run->before)
			run->before(run->context);
		code = pass(trigger, run->passes ? run->passes : 1, err);
		if (run->after)
			run->after(run->context);
	}
	return code;
}

/* For nested calls: probed like the empty function that it calls. */
__attribute__((noipa)) static int pull_inside(struct trigger *trigger, struct err *err)
{
	int code = pull(trigger, err);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return code;
}

static int attach_outer(struct kern_program *program, struct err *err)
{
	char place[160];
	int code = empty_place((void (*)(void))pull_inside, program->kind->prefix, place,
			       sizeof(place), err);

	return code ? code : kern_program_attach_at(program, place, err);
}

static void choose_functions(struct trigger *trigger, struct kern_program *const *programs,
			     size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct calibrated *calibrated = programs[i]->calibrated;
		void (*empty)(void) = calibrated->empty[calibrated->leaves];

		if (!trigger->empty[0])
			trigger->empty[0] = empty;
		else if (empty != trigger->empty[0])
			trigger->empty[1] = empty;
	}
}

/* Once for all pairs. */
static int load_trigger(struct kern *kern, struct err *err)
{
	int code;

	if (kern->trigger)
		return 0;
	kern->trigger = calloc(1, sizeof(*kern->trigger));
	if (!kern->trigger)
		return err_nomem(err);
	code = own_open(kern->trigger, OWN_TRIGGER, err);
	if (!code)
		code = own_load(kern->trigger, err);
	if (code)
		kern_trigger_close(kern);
	return code;
}

void kern_trigger_close(struct kern *kern)
{
	if (!kern->trigger)
		return;
	own_close(kern->trigger);
	free(kern->trigger);
	kern->trigger = NULL;
}

static int trigger_open(struct trigger *trigger, struct kern_program *const *programs, size_t count,
			struct err *err)
{
	const struct kern_calibrate_run *run = trigger->run;
	const struct kern_program *program = programs[0];
	int code;

	trigger->fd = -1;
	choose_functions(trigger, programs, count);
	if (trigger->empty[0])
		return 0;
	if (family_of(program) == FAMILY_TRACE) {
		bool large = run->large || program->kind->id != KIND_TRACEPOINT;

		trigger->calls = run->way != KERN_PAIR_ROUNDS;
		trigger->renames = run->way != KERN_PAIR_SYSCALLS && large;
		if (prctl(PR_GET_NAME, trigger->name))
			return err_set(err, -errno, "prctl: %s", strerror(errno));
		if (run->way == KERN_PAIR_SYSCALLS || large)
			return 0;
	}
	code = load_trigger(program->kern, err);
	if (!code)
		trigger->fd = own_program_fd(program->kern->trigger, "duet_trigger");
	return code;
}

/* Where all system calls begin and end. */
static const char *raw_place(const struct kern_program *program)
{
	if (program->kind->id == KIND_RAW_TP)
		return program->calibrated->leaves ? "raw_tp:sys_exit" : "raw_tp:sys_enter";
	return program->calibrated->leaves ? "tracepoint:raw_syscalls:sys_exit"
					   : "tracepoint:raw_syscalls:sys_enter";
}

static int attach_one(struct kern_program *program, const struct kern_calibrate_run *run,
		      struct err *err)
{
	const struct calibrated *calibrated = program->calibrated;
	const char *place = calibrated->place[calibrated->leaves];

	if (program->kind->fixed)
		return kern_program_attach(program, err);
	if (run->raw_syscalls)
		place = raw_place(program);
	else if (program->kind->id == KIND_TRACEPOINT &&
		 (run->way == KERN_PAIR_ROUNDS || strstr(place, ROUND_SMALL)))
		place = run->large ? "tracepoint:" ROUND_LARGE : "tracepoint:" ROUND_SMALL;
	return kern_program_attach_at(program, place, err);
}

static int attach_some(struct kern_program *const *programs, size_t count, bool leaves,
		       const struct kern_calibrate_run *run, bool with_outer, struct err *err)
{
	size_t i;
	int code = 0;

	for (i = 0; i < count && !code; i++) {
		if (programs[i]->calibrated->leaves != leaves)
			continue;
		code = attach_one(programs[i], run, err);
		if (!code && with_outer)
			code = attach_outer(programs[i], err);
	}
	return code;
}

static void detach_some(struct kern_program *const *programs, size_t count, bool leaves)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (programs[i]->calibrated->leaves == leaves)
			kern_program_detach(programs[i]);
	}
}

/* Can this function of ours that makes the calls be a call around them? */
static bool has_outer(struct kern_program *const *programs, size_t count)
{
	size_t i;
	bool any = false;

	for (i = 0; i < count; i++)
		any |= programs[i]->kind->id == KIND_URETPROBE;
	return any;
}

/*
 * A call whose entry is seen and whose return is not stays open, and those that follow are inside
 * it; one whose return alone is seen ends it.
 */
static int run_calls(struct trigger *trigger, struct kern_program *const *programs, size_t count,
		     struct err *err)
{
	const struct kern_calibrate_run *run = trigger->run;
	bool outer = run->nested && has_outer(programs, count), left_open = run->nested && !outer;
	struct err unused;
	int code;

	code = attach_some(programs, count, false, run, outer, err);
	if (!code && left_open)
		code = pass_once(trigger, err);
	if (!code)
		code = attach_some(programs, count, true, run, outer, err);
	if (!code)
		code = run->nested ? pull_inside(trigger, err) : pull(trigger, err);
	detach_some(programs, count, false);
	if (left_open)
		pass_once(trigger, &unused);
	detach_some(programs, count, true);
	return code;
}

/*
 * All at one tracepoint, where those run first that were attached first: each round ends the call
 * that the one before began.
 */
static int run_rounds(struct trigger *trigger, struct kern_program *const *programs, size_t count,
		      struct err *err)
{
	const struct kern_calibrate_run *run = trigger->run;
	struct err unused;
	int code = 0;

	if (run->nested) {
		code = attach_some(programs, count, false, run, false, err);
		if (!code)
			code = pass(trigger, 2, err);
		detach_some(programs, count, false);
	}
	if (!code)
		code = attach_some(programs, count, true, run, false, err);
	if (!code)
		code = attach_some(programs, count, false, run, false, err);
	if (!code)
		code = pull(trigger, err);
	detach_some(programs, count, false);
	pass(trigger, 2, &unused);
	detach_some(programs, count, true);
	return code;
}

int kern_calibrate(struct kern_program *const *programs, size_t count,
		   const struct kern_calibrate_run *run, struct err *err)
{
	struct kern_attach_options former, options = { .pid = run->own_process ? getpid() : 0 };
	struct trigger trigger = { .run = run };
	int code;

	if (!count)
		return 0;
	LISTEN(NULL);
	former = programs[0]->kern->options;
	programs[0]->kern->options = options;
	code = trigger_open(&trigger, programs, count, err);
	if (!code && run->bare)
		code = run->nested ? pull_inside(&trigger, err) : pull(&trigger, err);
	else if (!code && count > 1 && run->way == KERN_PAIR_ROUNDS)
		code = run_rounds(&trigger, programs, count, err);
	else if (!code)
		code = run_calls(&trigger, programs, count, err);
	programs[0]->kern->options = former;
	return code;
}
