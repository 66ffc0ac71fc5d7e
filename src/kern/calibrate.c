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

void kern_calibration_target(void);

/* Nothing may be folded into it nor it into its caller. */
__attribute__((noipa, aligned(64))) void kern_calibration_target(void)
{
	__asm__ volatile("" ::: "memory");
}

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
	return is_kernel_probe(program) || is_user_probe(program);
}

/* "BINARY:OFFSET" of our empty function: the mapping that holds it. */
static int own_place(char *text, size_t size, struct err *err)
{
	unsigned long address = (unsigned long)&kern_calibration_target, from, to, offset;
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
		snprintf(text, size, "/proc/%d/exe:0x%lx", getpid(), address - from + offset);
		return 0;
	}
	return err_set(err, -ENOENT, "calibration: our own function is not mapped");
}

int kern_calibrate_prepare(struct kern *kern, struct err *err)
{
	char place[128];
	size_t i;
	int code = own_place(place, sizeof(place), err);

	for (i = 0; i < kern->nprograms && !code; i++) {
		struct kern_program *program = &kern->programs[i];

		program->optional = false;
		if (is_kernel_probe(program))
			code = kern_program_set_target(program, EMPTY_KERNEL_FUNCTION, err);
		else if (is_user_probe(program))
			code = kern_program_set_target(program, place, err);
		else
			code = kern_program_set_enabled(program, false, err);
	}
	return code;
}

static int trigger_kernel(unsigned int calls, struct err *err)
{
	struct own own = { 0 };
	int fd, code;

	LISTEN(NULL);
	code = own_open(&own, OWN_TRIGGER, err);
	if (!code)
		code = own_load(&own, err);
	fd = code ? -1 : own_program_fd(&own, "duet_trigger");
	while (!code && calls--) {
		LIBBPF_OPTS(bpf_test_run_opts, opts);

		code = bpf_prog_test_run_opts(fd, &opts);
		if (code)
			err_set(err, code, "calibration: %s", kern_errno_text(code));
	}
	own_close(&own);
	return code;
}

int kern_calibrate(struct kern_program *const *programs, size_t count, unsigned int calls,
		   struct err *err)
{
	struct kern_attach_options former, self = { .pid = getpid() };
	bool in_kernel = false, in_user = false;
	size_t attached;
	int code = 0;

	if (!count)
		return 0;
	former = programs[0]->kern->options;
	programs[0]->kern->options = self;
	for (attached = 0; attached < count; attached++) {
		in_kernel |= is_kernel_probe(programs[attached]);
		in_user |= is_user_probe(programs[attached]);
		code = kern_program_attach(programs[attached], err);
		if (code)
			break;
	}
	if (!code && in_kernel)
		code = trigger_kernel(calls, err);
	while (!code && in_user && calls--)
		kern_calibration_target();
	while (attached--)
		kern_program_detach(programs[attached]);
	programs[0]->kern->options = former;
	return code;
}
