// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cgroup ids are inode numbers of the cgroup2 file system, and its file handles are nothing but
 * that number; so the kernel itself opens a cgroup by its id.
 */
#include "sym/sym.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "sym/internal.h"

#define FILEID_KERNFS 0xfe /* include/linux/exportfs.h of the kernel: 64 bits, the node's id */

int sym_cgroup_mount(char *path, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent entry;
	char strings[4096];
	int code = -ENOENT;

	if (!mounts)
		return -errno;
	while (code && getmntent_r(mounts, &entry, strings, sizeof(strings))) {
		if (strcmp(entry.mnt_type, "cgroup2") || strlen(entry.mnt_dir) >= size)
			continue;
		strcpy(path, entry.mnt_dir);
		code = 0;
	}
	endmntent(mounts);
	return code;
}

/* The path that descriptor @fd was opened at, below @mount. NULL: not there, or no memory. */
static char *path_below(int fd, const char *mount)
{
	char link[64], path[4096];
	size_t mounted = strlen(mount);
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, sizeof(path) - 1);
	if (size < 0)
		return NULL;
	path[size] = 0;
	if (strncmp(path, mount, mounted) || (path[mounted] && path[mounted] != '/'))
		return NULL;
	return strdup(path[mounted] ? path + mounted : "/");
}

static char *path_by_handle(uint64_t id, const char *mount)
{
	struct {
		struct file_handle handle;
		uint64_t id;
	} key = { { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS }, id };
	CLEANUP(close_fd)
	int mount_fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(close_fd)
	int fd = -1;

	_Static_assert(offsetof(__typeof__(key), id) == offsetof(struct file_handle, f_handle),
		       "the id is the handle");
	if (mount_fd < 0)
		return NULL;
	fd = open_by_handle_at(mount_fd, &key.handle, O_PATH | O_CLOEXEC);
	return fd < 0 ? NULL : path_below(fd, mount);
}

/* For those who may not open by handle: looks at every cgroup. */
static char *path_by_walk(uint64_t id, const char *mount)
{
	char *const roots[] = { (char *)mount, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	char *found = NULL;
	FTSENT *entry;

	while (walk && !found && (entry = fts_read(walk))) {
		const char *below = entry->fts_path + strlen(mount);

		if (entry->fts_info == FTS_D && entry->fts_statp->st_ino == id)
			found = strdup(*below ? below : "/");
	}
	if (walk)
		fts_close(walk);
	return found;
}

const char *sym_cgroup_path(struct sym *sym, uint64_t id)
{
	struct sym_cgroup *cgroup;
	size_t i;

	for (i = 0; i < sym->cgroup_count; i++) {
		if (sym->cgroups[i].id == id)
			return sym->cgroups[i].path;
	}
	if (!sym->cgroup_mount_tried)
		sym_cgroup_mount(sym->cgroup_mount, sizeof(sym->cgroup_mount));
	sym->cgroup_mount_tried = true;
	if (!*sym->cgroup_mount)
		return NULL;
	cgroup = array_grow(&sym->cgroups, &sym->cgroup_count, &sym->cgroup_capacity,
			    sizeof(*cgroup));
	if (!cgroup)
		return NULL;
	cgroup->id = id;
	cgroup->path = path_by_handle(id, sym->cgroup_mount);
	if (!cgroup->path)
		cgroup->path = path_by_walk(id, sym->cgroup_mount);
	return cgroup->path;
}

void sym_cgroups_free(struct sym *sym)
{
	size_t i;

	for (i = 0; i < sym->cgroup_count; i++)
		free(sym->cgroups[i].path);
	free(sym->cgroups);
}
