// SPDX-License-Identifier: BSD-2-Clause
#include "kern/internal.h"
#include "kern/own.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void program_deinit(struct kern_program *program)
{
	while (program->nevents)
		close(program->events[--program->nevents]);
	free(program->events);
	free(program->section);
	free(program->links);
	free(program->calibrated);
}

size_t kern_program_count(const struct kern *kern)
{
	return kern->nprograms;
}

struct kern_program *kern_program_at(struct kern *kern, size_t index)
{
	return index < kern->nprograms ? &kern->programs[index] : NULL;
}

struct kern_program *kern_program_find(struct kern *kern, const char *name)
{
	size_t i;

	for (i = 0; i < kern->nprograms; i++) {
		if (!strcmp(kern_program_name(&kern->programs[i]), name))
			return &kern->programs[i];
	}
	return NULL;
}

const char *kern_program_name(const struct kern_program *program)
{
	return bpf_program__name(program->program);
}

const char *kern_program_section(const struct kern_program *program)
{
	return program->section;
}

const char *kern_program_target(const struct kern_program *program)
{
	return program->target;
}

enum kern_program_state kern_program_state(const struct kern_program *program)
{
	return program->state;
}

const char *kern_program_event_text(const struct kern_program *program)
{
	return program->kind->id == KIND_PERF_EVENT ? program->target : NULL;
}

bool kern_program_runnable(const struct kern_program *program)
{
	return program->kind->id == KIND_RAW_TP || program->kind->id == KIND_SYSCALL;
}

int kern_program_fd(const struct kern_program *program)
{
	int fd = bpf_program__fd(program->program);

	return fd < 0 ? -1 : fd;
}

bool kern_program_uses(const struct kern_program *program, const struct kern_map *map)
{
	__u32 ids[64], size, i;
	struct bpf_map_info map_info = { 0 };
	struct bpf_prog_info info = { .nr_map_ids = sizeof(ids) / sizeof(ids[0]),
				      .map_ids = (uintptr_t)ids };

	size = sizeof(map_info);
	if (bpf_obj_get_info_by_fd(kern_map_fd(map), &map_info, &size))
		return false;
	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(kern_program_fd(program), &info, &size))
		return false;
	for (i = 0; i < info.nr_map_ids && i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (ids[i] == map_info.id)
			return true;
	}
	return false;
}

/* May a program written for one kind be attached as another? What it finds in its context must
 * be the same. */
static bool kinds_agree(const struct section_kind *a, const struct section_kind *b)
{
	return a == b || (a->id != KIND_OTHER && b->id != KIND_OTHER && a->type == b->type &&
			  a->fixed == b->fixed && a->id != KIND_TP_BTF && b->id != KIND_TP_BTF &&
			  a->id != KIND_ITER && b->id != KIND_ITER);
}

/*
 * "kprobe:vfs_read", "kprobe/vfs_read" or only "vfs_read" -> a section text of its own. Only a
 * known kind counts as one: "/bin/x:func" and "sched:sched_switch" are targets.
 */
static int make_section(const struct kern_program *program, const char *text, char **ret,
			struct err *err)
{
	CLEANUP(buf_deinit)
	struct buf section = { 0 };
	const struct section_kind *kind;
	const char *target;
	int code;

	kind = section_parse(text, &target);
	if (kind->id == KIND_OTHER || !target) {
		kind = program->kind;
		target = text;
	}
	if (!kinds_agree(program->kind, kind))
		return err_set(err, -EINVAL,
			       "program %s: a %s program cannot be attached as %s: the two receive "
			       "different arguments",
			       kern_program_name(program), program->kind->prefix, kind->prefix);
	code = buf_printf(&section, "%s/%s", kind->prefix, target);
	if (code)
		return err_nomem(err);
	*ret = take_pointer(section.data);
	return 0;
}

static int too_late(const struct kern_program *program, const char *what, struct err *err)
{
	return err_set(err, -EBUSY, "program %s: %s after it was loaded: do it in user/open",
		       kern_program_name(program), what);
}

int kern_program_set_target(struct kern_program *program, const char *text, struct err *err)
{
	const struct section_kind *former = program->kind;
	char *section;
	int code = 0;

	if (program->kern->loaded)
		return too_late(program, "no other target", err);
	if (text) {
		code = make_section(program, text, &section, err);
	} else {
		section = strdup(bpf_program__section_name(program->program));
		code = section ? 0 : err_nomem(err);
	}
	if (code)
		return code;
	free(program->section);
	program->section = section;
	program->kind = section_parse(section, &program->target);
	program->target_set = false;
	program->retargeted = text != NULL;
	if (former != program->kind && program->kind->fixed) {
		enum bpf_attach_type type;

		if (!libbpf_attach_type_by_name(program->kind->prefix, &type))
			bpf_program__set_expected_attach_type(program->program, type);
	}
	if (program->state == KERN_PROGRAM_PLANNED || program->state == KERN_PROGRAM_BARE)
		program->state = program->target ? KERN_PROGRAM_PLANNED : KERN_PROGRAM_BARE;
	return 0;
}

int kern_program_set_enabled(struct kern_program *program, bool enabled, struct err *err)
{
	if (program->kern->loaded)
		return too_late(program, "cannot be switched off or on", err);
	bpf_program__set_autoload(program->program, enabled);
	if (!enabled)
		program->state = KERN_PROGRAM_DISABLED;
	else if (program->target || program->kind->id == KIND_OTHER)
		program->state = KERN_PROGRAM_PLANNED;
	else
		program->state = KERN_PROGRAM_BARE;
	return 0;
}

void kern_program_set_optional(struct kern_program *program)
{
	program->optional = true;
}

/* 0: there (or cannot be told before load), 1: absent and optional, so skipped from now on. */
int kern_program_check(struct kern_program *program, struct err *err)
{
	struct err why = { 0 };
	int code;

	LISTEN(&program->kern->messages);
	if (!program->kind->check || !program->target)
		return 0;
	code = program->kind->check(program, program->target, &why);
	if (!code)
		return 0;
	if (code == -ENOENT && program->optional) {
		program->state = KERN_PROGRAM_SKIPPED;
		bpf_program__set_autoload(program->program, false);
		log_note("program %s (%s) is skipped: %s", kern_program_name(program),
			 program->section, why.text);
		return 1;
	}
	return err_set(err, code, "program %s (%s): %s", kern_program_name(program),
		       program->section, why.text);
}

/* libbpf's table has kinds that ours has not: it is asked. */
static int check_kind(const struct kern_program *program, struct err *err)
{
	char near[256];

	if (bpf_program__type(program->program) != BPF_PROG_TYPE_UNSPEC ||
	    bpf_program__expected_attach_type(program->program))
		return 0;
	err_set(err, -EINVAL, "program %s: SEC(\"%s\"): there is no such kind of program",
		kern_program_name(program), program->section);
	section_nearest(program->section, near, sizeof(near));
	return near[0] ? err_hint(err, -EINVAL, "did you mean %s?", near) : -EINVAL;
}

static int check_targets(struct kern *kern, bool every, struct err *err)
{
	size_t i;

	/* Before what only root may read looks as if it were not there. */
	if (kern->nprograms && !may_load())
		return err_set(err, -EPERM,
			       "%s: not permitted: run as root, or with the capabilities bpf, "
			       "perfmon and dac_read_search",
			       kern->name);
	for (i = 0; i < kern->nprograms; i++) {
		struct kern_program *program = &kern->programs[i];
		int code;

		if (program->state != KERN_PROGRAM_PLANNED)
			continue;
		code = check_kind(program, err);
		if (code)
			return code;
		/* Reading 120,000 kernel symbols takes longer than the rest of the start: attaching
		 * tells soon enough. */
		if (!every && !program->optional && program->kind->check == check_kprobe)
			continue;
		code = kern_program_check(program, err);
		if (code < 0)
			return code;
	}
	return 0;
}

int kern_check_targets(struct kern *kern, struct err *err)
{
	return check_targets(kern, false, err);
}

int kern_check_every_target(struct kern *kern, struct err *err)
{
	return check_targets(kern, true, err);
}

static int run_once(int fd, bool on_cpu, int cpu)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	uint64_t arguments[12] = { 0 }; /* MAX_BPF_FUNC_ARGS of the kernel */

	if (on_cpu) {
		opts.ctx_in = arguments;
		opts.ctx_size_in = sizeof(arguments);
		opts.flags = BPF_F_TEST_RUN_ON_CPU;
		opts.cpu = cpu;
	}
	return bpf_prog_test_run_opts(fd, &opts);
}

int kern_run_on_cpus(int fd, int cpu)
{
	int i, code, cpus = kern_possible_cpus();

	if (cpu >= 0)
		return run_once(fd, true, cpu);
	for (i = 0; i < cpus; i++) {
		code = run_once(fd, true, i);
		if (code && code != -ENXIO) /* ENXIO: that CPU is offline */
			return code;
	}
	return 0;
}

int kern_program_run(struct kern_program *program, int cpu)
{
	int fd = kern_program_fd(program);

	if (!kern_program_runnable(program))
		return -EOPNOTSUPP;
	if (fd < 0)
		return -ENOENT;
	LISTEN(&program->kern->messages);
	if (program->kind->id == KIND_SYSCALL)
		return run_once(fd, false, 0);
	return kern_run_on_cpus(fd, cpu);
}

static int info_of(int fd, struct kern_program_info *ret)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);
	int code;

	if (fd < 0)
		return -ENOENT;
	code = bpf_obj_get_info_by_fd(fd, &info, &size);
	if (code)
		return code;
	*ret = (struct kern_program_info){ .run_ns = info.run_time_ns,
					   .run_count = info.run_cnt,
					   .recursion_misses = info.recursion_misses };
	return 0;
}

int kern_program_get_info(const struct kern_program *program, struct kern_program_info *ret)
{
	return info_of(kern_program_fd(program), ret);
}

static void visit_own(const struct own *own, kern_cost_fn fn, void *context)
{
	struct kern_program_info info;
	struct bpf_program *program;

	bpf_object__for_each_program (program, own->object)
		if (!info_of(bpf_program__fd(program), &info))
			fn(context, bpf_program__name(program), bpf_program__section_name(program),
			   &info);
}

void kern_visit_costs(struct kern *kern, kern_cost_fn fn, void *context)
{
	const struct own *own[] = { totals_own(kern), target_tree_own(kern) };
	struct kern_program_info info;
	size_t i;

	for (i = 0; i < kern_program_count(kern); i++) {
		struct kern_program *program = kern_program_at(kern, i);

		if (!kern_program_get_info(program, &info))
			fn(context, kern_program_name(program), program->section, &info);
	}
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (own[i])
			visit_own(own[i], fn, context);
	}
}
