// SPDX-License-Identifier: BSD-2-Clause
#include "kern/kern.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kern/internal.h"

/* libbpf prefixes the names of data maps with the object's name up to its first dot. */
static void make_object_name(const char *name, char *text, size_t size)
{
	const char *base = strrchr(name, '/');
	size_t i;

	snprintf(text, size, "%s", base ? base + 1 : name);
	for (i = 0; text[i]; i++) {
		if (text[i] == '.') {
			text[i] = 0;
			break;
		}
		if (!isalnum((unsigned char)text[i]))
			text[i] = '_';
	}
	if (!text[0])
		snprintf(text, size, "duet");
}

static int collect_programs(struct kern *kern)
{
	struct bpf_program *program;
	size_t count = 0;

	bpf_object__for_each_program (program, kern->object)
		count++;
	kern->programs = calloc(count ? count : 1, sizeof(*kern->programs));
	if (!kern->programs)
		return -ENOMEM;
	bpf_object__for_each_program (program, kern->object) {
		struct kern_program *p = &kern->programs[kern->nprograms++];

		p->kern = kern;
		p->program = program;
		p->section = strdup(bpf_program__section_name(program));
		if (!p->section)
			return -ENOMEM;
		p->kind = section_parse(p->section, &p->target);
		/* libbpf knows bare "perf_event" only. */
		if (p->kind->id == KIND_PERF_EVENT)
			bpf_program__set_type(program, BPF_PROG_TYPE_PERF_EVENT);
		p->state = KERN_PROGRAM_PLANNED;
		if (!bpf_program__autoload(program))
			p->state = KERN_PROGRAM_DISABLED;
		else if (!p->target && p->kind->id != KIND_OTHER)
			p->state = KERN_PROGRAM_BARE;
	}
	return 0;
}

static int collect_maps(struct kern *kern)
{
	struct bpf_map *map;
	size_t count = 0;

	bpf_object__for_each_map (map, kern->object)
		count++;
	kern->maps = calloc(count ? count : 1, sizeof(*kern->maps));
	if (!kern->maps)
		return -ENOMEM;
	bpf_object__for_each_map (map, kern->object) {
		struct kern_map *m = &kern->maps[kern->nmaps++];
		const char *dot;

		m->kern = kern;
		m->map = map;
		m->name = bpf_map__name(map);
		m->fd = -1;
		dot = strchr(m->name, '.');
		if (bpf_map__is_internal(map) && dot)
			m->name = dot;
		kern_map_refresh(m);
	}
	return 0;
}

static int open_failed(struct kern *kern, const char *name, int code, struct err *err)
{
	const char *reason = kern->messages.reason;

	return err_set(err, code, "%s: libbpf cannot open it: %s", name,
		       reason[0] ? reason : kern_errno_text(code));
}

int kern_open(const void *image, size_t size, const char *name, const struct types *types,
	      struct kern **ret, struct err *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	CLEANUP(kern_close_cleanup)
	struct kern *kern = calloc(1, sizeof(*kern));
	int code;

	if (!kern)
		return err_nomem(err);
	LISTEN(&kern->messages);
	kern->types = types;
	kern->options.pid = -1;
	make_object_name(name, kern->name, sizeof(kern->name));
	opts.object_name = kern->name;
	kern->object = bpf_object__open_mem(image, size, &opts);
	if (!kern->object)
		return open_failed(kern, name, -errno, err);
	code = collect_programs(kern);
	if (!code)
		code = collect_maps(kern);
	if (code)
		return err_nomem(err);
	*ret = take_pointer(kern);
	return 0;
}

void kern_close(struct kern *kern)
{
	size_t i;

	if (!kern)
		return;
	LISTEN(&kern->messages);
	kern_detach(kern);
	kern_target_stop(kern);
	for (i = 0; i < kern->nmaps; i++)
		kern_map_deinit(&kern->maps[i]);
	kern_trigger_close(kern);
	bpf_object__close(kern->object);
	for (i = 0; i < kern->nprograms; i++)
		program_deinit(&kern->programs[i]);
	if (kern->statistics > 0)
		close(kern->statistics);
	free(kern->programs);
	free(kern->maps);
	messages_deinit(&kern->messages);
	free(kern);
}

void kern_set_object(struct kern *kern, const struct obj *object)
{
	kern->source = object;
}

/* Programs of BTF kinds have their target before they are loaded; without one they cannot be. */
static int choose_targets(struct kern *kern, struct err *err)
{
	size_t i;

	for (i = 0; i < kern->nprograms; i++) {
		struct kern_program *program = &kern->programs[i];
		int code = 0;

		if (!program->kind->fixed)
			continue;
		if (program->state == KERN_PROGRAM_BARE)
			bpf_program__set_autoload(program->program, false);
		else if (program->state == KERN_PROGRAM_PLANNED && program->kind->check)
			code = kern_program_check(program, err);
		if (code < 0)
			return code;
	}
	return 0;
}

int kern_load(struct kern *kern, struct err *err)
{
	size_t i;
	int code;

	LISTEN(&kern->messages);
	code = choose_targets(kern, err);
	if (code)
		return code;
	messages_clear(&kern->messages);
	code = bpf_object__load(kern->object);
	if (code)
		return verifier_explain(kern, code, err);
	kern->loaded = true;
	for (i = 0; i < kern->nmaps; i++)
		kern_map_refresh(&kern->maps[i]);
	return 0;
}

int kern_attach(struct kern *kern, const struct kern_attach_options *options, struct err *err)
{
	size_t i;

	if (options)
		kern->options = *options;
	kern_tracefs_sweep();
	for (i = 0; i < kern->nprograms; i++) {
		struct kern_program *program = &kern->programs[i];
		int code;

		if (program->kind->id == KIND_PERF_EVENT
			    ? program->state == KERN_PROGRAM_DETACHED || !program->nevents
			    : program->state != KERN_PROGRAM_PLANNED)
			continue;
		code = kern_program_attach(program, err);
		if (code < 0) {
			kern_detach(kern);
			return code;
		}
	}
	return 0;
}

void kern_detach(struct kern *kern)
{
	size_t i;

	for (i = kern->nprograms; i-- > 0;) {
		struct kern_program *program = &kern->programs[i];

		program_release_links(program);
		if (program->state == KERN_PROGRAM_ATTACHED)
			program->state = program->target || program->kind->id == KIND_OTHER
						 ? KERN_PROGRAM_PLANNED
						 : KERN_PROGRAM_BARE;
	}
	kern_totals_stop(kern);
	kern_target_detach(kern);
	tracefs_probes_close(kern->probes);
	kern->probes = NULL;
}

int kern_enable_statistics(struct kern *kern, struct err *err)
{
	int fd;

	if (kern->statistics > 0)
		return 0;
	fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (fd < 0)
		return err_set(err, fd, "statistics of kernel programs: %s", kern_errno_text(fd));
	kern->statistics = fd;
	return 0;
}
