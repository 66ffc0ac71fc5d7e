// SPDX-License-Identifier: BSD-2-Clause
/* Who is measured: duet's own programs follow the target's threads and children. */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kern/bpf/target_event.h"
#include "kern/offsets.h"
#include "kern/own.h"

struct target_tree {
	struct own own;
	struct kern_target_options options;
	struct kern_map ring_map; /* a stand-in: rings are opened on a kern_map */
	struct kern_ring *ring;
	int tasks; /* map of threads; borrowed */
};

static int set_offsets(struct own *own, struct err *err)
{
	struct field_offset fields[] = {
		{ "task_struct", "pid" },
		{ "task_struct", "tgid" },
		{ "task_struct", "comm", FIELD_ARRAY },
		{ "task_struct", "exit_code" },
		{ "task_struct", "group_leader", FIELD_POINTER },
		{ "task_struct", "signal", FIELD_POINTER },
		{ "signal_struct", "live", FIELD_STRUCT },
		{ "signal_struct", "flags" },
		{ "signal_struct", "group_exit_code" },
	};
	struct target_offsets at;
	int code = offsets_find(NULL, fields, sizeof(fields) / sizeof(fields[0]), err);

	if (code)
		return code;
	at = (struct target_offsets){ .pid = fields[0].offset,
				      .tgid = fields[1].offset,
				      .comm = fields[2].offset,
				      .exit_code = fields[3].offset,
				      .group_leader = fields[4].offset,
				      .signal = fields[5].offset,
				      .signal_live = fields[6].offset,
				      .signal_flags = fields[7].offset,
				      .signal_group_exit_code = fields[8].offset };
	return own_set(own, "at", &at, sizeof(at), err);
}

static int load(struct kern *kern, struct target_tree *tree, struct err *err)
{
	struct kern_map *map = kern_map_find(kern, "__duet_tasks");
	uint32_t want = tree->options.want_children;
	struct own *own = &tree->own;
	int code = own_open(own, OWN_TARGET, err);

	if (!code)
		code = set_offsets(own, err);
	if (!code)
		code = own_set(own, "want_children", &want, sizeof(want), err);
	if (!code && map && kern_map_created(map))
		code = own_reuse(own, "__duet_tasks", map->fd, err);
	if (code)
		return code;
	if (!want)
		own_skip(own, "duet_target_exit");
	code = own_load(own, err);
	if (!code)
		tree->tasks = own_map_fd(own, "__duet_tasks");
	return code;
}

static int take_event(void *context, const void *record, size_t size)
{
	static const char *const names[] = { "fork", "exec", "exit" };
	const struct target_event *event = record;
	struct target_tree *tree = context;

	if (size < sizeof(*event) || event->what >= 3)
		return 0;
	return tree->options.child(tree->options.context, names[event->what], &event->child);
}

static int open_events(struct kern *kern, struct target_tree *tree, struct err *err)
{
	struct bpf_map *map = bpf_object__find_map_by_name(tree->own.object, "__duet_children");

	tree->ring_map = (struct kern_map){ .kern = kern,
					    .name = "__duet_children",
					    .fd = bpf_map__fd(map),
					    .info = { .type = BPF_MAP_TYPE_RINGBUF,
						      .max_entries = bpf_map__max_entries(map) } };
	return kern_ring_open(&tree->ring_map, take_event, NULL, tree, &tree->ring, err);
}

int kern_target_start(struct kern *kern, const struct kern_target_options *options, struct err *err)
{
	static const char *const programs[] = { "duet_target_fork", "duet_target_exec",
						"duet_target_free", "duet_target_exit" };
	struct kern_map *map = kern_map_find(kern, "__duet_tasks");
	struct target_tree *tree;
	size_t i;
	int code;

	if (kern->tree)
		return err_set(err, -EBUSY, "the target is followed already");
	if (!options->want_children && !(map && kern_map_created(map)))
		return 0; /* nobody asks */
	tree = calloc(1, sizeof(*tree));
	if (!tree)
		return err_nomem(err);
	kern->tree = tree;
	tree->options = *options;
	LISTEN(NULL);
	code = load(kern, tree, err);
	if (!code && options->want_children)
		code = open_events(kern, tree, err);
	for (i = 0; !code && i < (options->want_children ? 4 : 3); i++)
		code = own_attach(&tree->own, programs[i], err);
	if (code)
		kern_target_stop(kern);
	return code;
}

void kern_target_detach(struct kern *kern)
{
	if (kern->tree)
		own_detach(&kern->tree->own);
}

void kern_target_stop(struct kern *kern)
{
	struct target_tree *tree = kern->tree;

	if (!tree)
		return;
	kern_ring_close(tree->ring);
	own_close(&tree->own);
	free(tree);
	kern->tree = NULL;
}

int kern_target_fd(struct kern *kern)
{
	return kern->tree && kern->tree->ring ? kern_ring_fd(kern->tree->ring) : -1;
}

int kern_target_consume(struct kern *kern)
{
	return kern->tree && kern->tree->ring ? kern_ring_consume(kern->tree->ring, 0) : 0;
}

/* ---- threads that are there already ------------------------------------------------------- */

/* 1: new, 0: was there. A thread that ended meanwhile leaves nothing behind. */
static int add_thread(int tasks, int tgid, int tid)
{
	uint32_t key = tid;
	uint64_t value = 0;
	char path[64];
	int code = bpf_map_update_elem(tasks, &key, &value, BPF_NOEXIST);

	if (code)
		return code == -EEXIST ? 0 : code;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", tgid ? tgid : tid, tid);
	if (access(path, F_OK)) {
		bpf_map_delete_elem(tasks, &key);
		return -ESRCH;
	}
	return 1;
}

/* The number of threads that were new. */
static int scan_threads(int tasks, int pid)
{
	struct dirent *entry;
	int code = 0, added = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		code = add_thread(tasks, pid, atoi(entry->d_name));
		if (code < 0 && code != -ESRCH)
			break;
		added += code > 0;
	}
	closedir(dir);
	return code < 0 && code != -ESRCH ? code : added;
}

static int add_failed(int code, struct err *err)
{
	if (code == -ESRCH)
		return err_set(err, code, "no such process or thread");
	if (code == -E2BIG)
		return err_set(err, code,
			       "more threads than map __duet_tasks has room for: --map "
			       "__duet_tasks.max_entries=N");
	return err_set(err, code, "following its threads: %s", kern_errno_text(code));
}

int kern_target_add_process(struct kern *kern, int pid, struct err *err)
{
	int added, rounds = 0;

	if (!kern->tree)
		return 0;
	/*
	 * Later threads of known ones are followed by the kernel. One that an unknown thread makes
	 * during the scan could slip through: hence until a scan finds nothing new.
	 */
	do {
		added = scan_threads(kern->tree->tasks, pid);
		if (added < 0)
			return add_failed(added, err);
	} while (added && ++rounds < 100);
	return 0;
}

int kern_target_add_thread(struct kern *kern, int tid, struct err *err)
{
	int code;

	if (!kern->tree)
		return 0;
	code = add_thread(kern->tree->tasks, 0, tid);
	return code < 0 ? add_failed(code, err) : 0;
}

const struct own *target_tree_own(const struct kern *kern)
{
	return kern->tree ? &kern->tree->own : NULL;
}
