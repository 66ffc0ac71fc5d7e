// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cost of a pair of probes: programs are attached to functions that do nothing, in the kernel
 * or in this process, and these are called. See kern.h for the steps.
 */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kern/own.h"

#define EMPTY_KERNEL_FUNCTION "bpf_fentry_test1"

/*
 * The kernel carries out a probed instruction of a user program in one of several ways, and they
 * cost differently: some it emulates, others run out of line, with a trap of their own. So there is
 * an empty function for each class, and the kernel decides. NAME(first instruction, rest).
 */
#define EMPTY_FUNCTION(name, first, rest)                                                         \
	void name(void);                                                                          \
	__asm__(".pushsection .text\n\t.p2align 6\n\t.globl " #name "\n\t.type " #name            \
		", %function\n" #name ":\n\t" first "\n\t" rest "\n\t.size " #name ", . - " #name \
		"\n\t.popsection")

#if defined(__x86_64__)
EMPTY_FUNCTION(kern_empty_nop, "nop", "ret");
EMPTY_FUNCTION(kern_empty_push, "push %rbp", "pop %rbp\n\tret");
EMPTY_FUNCTION(kern_empty_other, "mov %rdi, %rdi", "ret");

static void (*empty_function_like(const uint8_t *code))(void)
{
	if (code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb)
		return kern_empty_nop;
	if (code[0] == 0x0f && (code[1] == 0x1f || (code[1] & 0xf0) == 0x80))
		return kern_empty_nop;
	if ((code[0] & 0xf8) == 0x50 || (code[0] == 0x41 && (code[1] & 0xf8) == 0x50))
		return kern_empty_push;
	return kern_empty_other;
}
#elif defined(__aarch64__)
EMPTY_FUNCTION(kern_empty_nop, "nop", "ret");
EMPTY_FUNCTION(kern_empty_branch, "b 1f\n1:", "ret");
EMPTY_FUNCTION(kern_empty_push, "stp x29, x30, [sp, #-16]!", "ldp x29, x30, [sp], #16\n\tret");
EMPTY_FUNCTION(kern_empty_other, "mov x0, x0", "ret");

/* Branches, and loads and addresses relative to the program counter. */
static bool depends_on_place(uint32_t insn)
{
	return (insn & 0x7c000000) == 0x14000000 || (insn & 0xff000010) == 0x54000000 ||
	       (insn & 0x7c000000) == 0x34000000 || (insn & 0xfe000000) == 0xd6000000 ||
	       (insn & 0x1f000000) == 0x10000000 || (insn & 0x3b000000) == 0x18000000;
}

static void (*empty_function_like(const uint8_t *code))(void)
{
	uint32_t insn;

	memcpy(&insn, code, sizeof(insn));
	if (depends_on_place(insn))
		return kern_empty_branch;
	if (insn == 0xd503201f)
		return kern_empty_nop;
	if ((insn & 0xffc07fff) == 0xa9807bfd)
		return kern_empty_push;
	return kern_empty_other;
}
#else
#error "tell here how this machine's kernel treats probed instructions"
#endif

static bool is_kernel_probe(const struct kern_program *program)
{
	switch (program->kind->id) {
	case KIND_KPROBE:
	case KIND_KRETPROBE:
	case KIND_FENTRY:
	case KIND_FEXIT:
		return true;
	default:
		return false;
	}
}

static bool is_user_probe(const struct kern_program *program)
{
	return program->kind->id == KIND_UPROBE || program->kind->id == KIND_URETPROBE;
}

bool kern_calibrates(const struct kern_program *program)
{
	return program->state != KERN_PROGRAM_DISABLED &&
	       (is_kernel_probe(program) || is_user_probe(program));
}

/* "KIND:BINARY:OFFSET" of an empty function of ours: the mapping that holds it. */
static int own_place(void (*function)(void), const char *kind, char *text, size_t size,
		     struct err *err)
{
	unsigned long address = (unsigned long)function, from, to, offset;
	CLEANUP(buf_deinit)
	struct buf maps = { 0 };
	int code = buf_read_file(&maps, "/proc/self/maps", err);
	char *line, *rest;

	if (code)
		return code;
	for (line = strtok_r(maps.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3)
			continue;
		if (address < from || address >= to)
			continue;
		/* The path in the line may have been deleted; this one always opens. */
		snprintf(text, size, "%s:/proc/%d/exe:0x%lx", kind, getpid(),
			 address - from + offset);
		return 0;
	}
	return err_set(err, -ENOENT, "calibration: our own function is not mapped");
}

/* The empty function for programs at @target; what cannot be looked at is like most functions. */
static void (*empty_function_for(const char *target))(void)
{
	uint8_t code[PROBED_BYTES] = { 0 };
	struct user_place place;
	struct err err = { 0 };

	if (!target || user_place_parse(target, &place, &err) ||
	    elfnames_code_at(place.path, place.symbol, place.offset, code, &err))
		return kern_empty_push;
	return empty_function_like(code);
}

/* @real: the same program as it will be attached. */
static int prepare_program(struct kern_program *program, struct kern_program *real, struct err *err)
{
	char place[160];
	int code;

	program->optional = false;
	program->empty = NULL;
	if (real->state == KERN_PROGRAM_DISABLED || real->state == KERN_PROGRAM_SKIPPED ||
	    (!is_kernel_probe(real) && !is_user_probe(real)))
		return kern_program_set_enabled(program, false, err);
	if (is_kernel_probe(real)) {
		snprintf(place, sizeof(place), "%s:" EMPTY_KERNEL_FUNCTION, real->kind->prefix);
		return kern_program_set_target(program, place, err);
	}
	program->empty = empty_function_for(real->target);
	code = own_place(program->empty, real->kind->prefix, place, sizeof(place), err);
	if (code)
		return code;
	return kern_program_set_target(program, place, err);
}

int kern_calibrate_prepare(struct kern *kern, struct kern *real, struct err *err)
{
	size_t i;
	int code = 0;

	for (i = 0; i < kern->nprograms && !code; i++)
		code = prepare_program(&kern->programs[i], &real->programs[i], err);
	return code;
}

struct trigger {
	const struct kern_calibrate_run *run;
	void (*empty)(void); /* of this process, NULL: none */
	struct own own;      /* makes the kernel call its empty function */
	int fd;              /* of its program, -1: none */
};

static int call_once(struct trigger *trigger, struct err *err)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int code = trigger->fd < 0 ? 0 : bpf_prog_test_run_opts(trigger->fd, &opts);

	if (trigger->empty)
		trigger->empty();
	return code ? err_set(err, code, "calibration: %s", kern_errno_text(code)) : 0;
}

static int pull(struct trigger *trigger, struct err *err)
{
	const struct kern_calibrate_run *run = trigger->run;
	unsigned int i;
	int code = 0;

	for (i = 0; i < run->calls && !code; i++) {
		if (run->before)
			run->before(run->context);
		code = call_once(trigger, err);
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
	int code = own_place((void (*)(void))pull_inside, program->kind->prefix, place,
			     sizeof(place), err);

	return code ? code : kern_program_attach_at(program, place, err);
}

/* A pair lies at one function, in the kernel or in this process. */
static int trigger_open(struct trigger *trigger, const struct kern_program *program,
			struct err *err)
{
	int code;

	trigger->fd = -1;
	trigger->empty = program->empty;
	if (program->empty)
		return 0;
	code = own_open(&trigger->own, OWN_TRIGGER, err);
	if (!code)
		code = own_load(&trigger->own, err);
	if (!code)
		trigger->fd = own_program_fd(&trigger->own, "duet_trigger");
	return code;
}

static bool is_return(const struct kern_program *program)
{
	return program->kind->id == KIND_KRETPROBE || program->kind->id == KIND_FEXIT ||
	       program->kind->id == KIND_URETPROBE;
}

static int attach_some(struct kern_program *const *programs, size_t count, bool returns,
		       bool with_outer, struct err *err)
{
	size_t i;
	int code = 0;

	for (i = 0; i < count && !code; i++) {
		if (is_return(programs[i]) != returns)
			continue;
		code = kern_program_attach(programs[i], err);
		if (!code && with_outer)
			code = attach_outer(programs[i], err);
	}
	return code;
}

static void detach_some(struct kern_program *const *programs, size_t count, bool returns)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (is_return(programs[i]) == returns)
			kern_program_detach(programs[i]);
	}
}

/*
 * No empty function of the kernel calls another one. But a call whose entry is seen and whose return
 * is not stays open, and those that follow are inside it; one whose return alone is seen ends it.
 */
static int run_probed(struct trigger *trigger, struct kern_program *const *programs, size_t count,
		      struct err *err)
{
	bool nested = trigger->run->nested, left_open = nested && !trigger->empty;
	struct err unused;
	int code;

	code = attach_some(programs, count, false, nested && trigger->empty, err);
	if (!code && left_open)
		code = call_once(trigger, err);
	if (!code)
		code = attach_some(programs, count, true, nested && trigger->empty, err);
	if (!code)
		code = nested ? pull_inside(trigger, err) : pull(trigger, err);
	detach_some(programs, count, false);
	if (left_open)
		call_once(trigger, &unused);
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
	code = trigger_open(&trigger, programs[0], err);
	if (!code && run->bare)
		code = run->nested ? pull_inside(&trigger, err) : pull(&trigger, err);
	else if (!code)
		code = run_probed(&trigger, programs, count, err);
	own_close(&trigger.own);
	programs[0]->kern->options = former;
	return code;
}
