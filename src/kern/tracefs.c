// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes made through tracefs. They belong to nobody: what a killed duet leaves stays until it is
 * written away. So each name says whose it is, `duet_PID_START_N` (START: when that process began,
 * in clock ticks since boot, because PIDs come again), a watcher process removes them when we die,
 * and the next duet removes what even the watcher left.
 */
#include "kern/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "kern/watcher.h"

#define RETURN_ROOM 4096 /* KRETPROBE_MAXACTIVE_MAX of the kernel */

static const char *const probe_files[] = { "kprobe_events", "uprobe_events" };

/* ---- the file system -------------------------------------------------------------- */

static bool is_tracefs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == TRACEFS_MAGIC;
}

const char *kern_tracefs(struct err *err)
{
	/* The slash at the end makes debugfs mount it. */
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing/" };

	if (is_tracefs(places[0]))
		return places[0];
	if (!mount("tracefs", places[0], "tracefs", 0, NULL))
		return places[0];
	err_set(err, -errno,
		"tracefs: not mounted at %s and cannot be: %s: as root: mount -t tracefs tracefs "
		"%s",
		places[0], errno == ENODEV ? "this kernel has none" : strerror(errno), places[0]);
	return is_tracefs(places[1]) ? places[1] : NULL;
}

int tracefs_event_id(const char *root, const char *category, const char *name)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	char path[512];
	int code;

	if (strchr(category, '/') || strchr(name, '/'))
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/events/%s/%s/id", root, category, name);
	code = buf_read_file(&text, path, NULL);
	if (code)
		return code;
	return text.size ? atoi(text.data) : -EIO;
}

/* ---- entries ----------------------------------------------------------------------- */

/* Start of process @pid in clock ticks since boot, 0: no such process. */
static unsigned long long process_start(int pid)
{
	CLEANUP(buf_deinit)
	struct buf stat = { 0 };
	unsigned long long start = 0;
	const char *at;
	char path[64];
	int i;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (buf_read_file(&stat, path, NULL))
		return 0;
	at = strrchr(stat.data, ')'); /* the name before it may hold anything */
	for (i = 2; at && i < 22; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (at)
		start = strtoull(at, NULL, 10);
	return start;
}

void tracefs_owner_name(char *text, size_t size, int pid)
{
	snprintf(text, size, "duet_%d_%llu", pid, process_start(pid));
}

/* Is the process that made the entry of this name still there? */
static bool owner_lives(const char *name)
{
	unsigned long long start = 0, now;
	int pid, fields = sscanf(name, "duet_%d_%llu_", &pid, &start);

	if (fields < 1 || pid <= 0)
		return true; /* not one of ours: never touched */
	now = process_start(pid);
	return now && (fields < 2 || now == start);
}

/* "r4096:kprobes/duet_1_2_3 func" -> group and name. */
static bool parse_entry(const char *line, char *group, char *name)
{
	return sscanf(line, "%*[^: \n]:%63[^/ \n]/%127[^ \n]", group, name) == 2;
}

/* One write is one command. EBUSY: somebody still has it open. */
static int write_command(const char *root, const char *file, const char *command)
{
	char path[512];
	size_t size = strlen(command);
	CLEANUP(close_fd)
	int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC); /* O_TRUNC would remove everybody's */
	if (fd < 0)
		return -errno;
	if (write(fd, command, size) != (ssize_t)size)
		return errno ? -errno : -EIO;
	return 0;
}

/* Removes the entries for which @wanted says so, or only counts them; the number. */
static int remove_entries(const char *root, bool (*wanted)(const char *, const void *),
			  const void *context, bool count_only)
{
	int removed = 0;
	size_t i;

	for (i = 0; i < sizeof(probe_files) / sizeof(probe_files[0]); i++) {
		CLEANUP(buf_deinit)
		struct buf text = { 0 };
		char path[512], group[64], name[128], command[256];
		char *line, *rest;

		snprintf(path, sizeof(path), "%s/%s", root, probe_files[i]);
		if (buf_read_file(&text, path, NULL))
			continue; /* a kernel without this kind of probe */
		for (line = strtok_r(text.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			if (!parse_entry(line, group, name) || !wanted(name, context))
				continue;
			snprintf(command, sizeof(command), "-:%s/%s\n", group, name);
			if (count_only || !write_command(root, probe_files[i], command))
				removed++;
		}
	}
	return removed;
}

static bool is_orphan(const char *name, const void *context)
{
	return !strncmp(name, "duet_", 5) && !owner_lives(name);
}

static bool is_of_owner(const char *name, const void *context)
{
	size_t size = strlen(context);

	return !strncmp(name, context, size) && name[size] == '_';
}

int tracefs_sweep_in(const char *root)
{
	return remove_entries(root, is_orphan, NULL, false);
}

int tracefs_remove_owned(const char *root, const char *owner)
{
	return remove_entries(root, is_of_owner, owner, false);
}

int tracefs_count_owned(const char *root, const char *owner)
{
	return remove_entries(root, is_of_owner, owner, true);
}

int kern_tracefs_sweep(void)
{
	/* Left-overs need a mounted tracefs: nothing is mounted for this. */
	if (is_tracefs("/sys/kernel/tracing"))
		return tracefs_sweep_in("/sys/kernel/tracing");
	return 0;
}

/* ---- our own ------------------------------------------------------------------------- */

struct tracefs_probes {
	const char *root;
	char owner[64];
	unsigned int last; /* number of the last entry made */
	struct watcher watcher;
};

static int probes_open(struct tracefs_probes **ret, struct err *err)
{
	CLEANUP(free_pointer)
	struct tracefs_probes *probes = calloc(1, sizeof(*probes));
	int code;

	if (!probes)
		return err_nomem(err);
	probes->root = kern_tracefs(err);
	if (!probes->root)
		return -ENOSYS;
	tracefs_owner_name(probes->owner, sizeof(probes->owner), getpid());
	code = watcher_start(&probes->watcher, probes->root, probes->owner);
	if (code)
		return err_set(err, code, "watcher process: %s", strerror(-code));
	*ret = take_pointer(probes);
	return 0;
}

int tracefs_add_kretprobe(struct tracefs_probes **ours, const char *function, unsigned int *number,
			  int *id, struct err *err)
{
	struct tracefs_probes *probes = *ours;
	char command[512], name[128];
	unsigned int n;
	int code;

	if (!probes) {
		code = probes_open(ours, err);
		if (code)
			return code;
		probes = *ours;
	}
	n = ++probes->last;
	snprintf(name, sizeof(name), "%s_%u", probes->owner, n);
	snprintf(command, sizeof(command), "r%d:kprobes/%s %s\n", RETURN_ROOM, name, function);
	code = write_command(probes->root, probe_files[0], command);
	if (code == -ENOENT && !is_tracefs(probes->root))
		code = -ENOSYS;
	if (code)
		return err_set(err, code, "%s/kprobe_events: %s", probes->root,
			       kern_errno_text(code));
	*id = tracefs_event_id(probes->root, "kprobes", name);
	if (*id < 0) {
		tracefs_remove(probes, n);
		return err_set(err, *id, "%s/events/kprobes/%s: %s", probes->root, name,
			       kern_errno_text(*id));
	}
	*number = n;
	return 0;
}

int tracefs_remove(struct tracefs_probes *probes, unsigned int number)
{
	char command[256];
	int code, tries;

	snprintf(command, sizeof(command), "-:kprobes/%s_%u\n", probes->owner, number);
	/* The kernel closes an event in the background: it may be busy for a moment. */
	for (tries = 0; tries < 200; tries++) {
		code = write_command(probes->root, probe_files[0], command);
		if (code != -EBUSY)
			return code;
		usleep(5000);
	}
	return code;
}

void tracefs_probes_close(struct tracefs_probes *probes)
{
	if (!probes)
		return;
	tracefs_remove_owned(probes->root, probes->owner);
	watcher_stop(&probes->watcher);
	free(probes);
}
