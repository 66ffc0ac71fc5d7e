// SPDX-License-Identifier: BSD-2-Clause
/* A cgroup as users name it: by path, or by the id of the container that runs in it. */
#include "sym/sym.h"

#include <ctype.h>
#include <errno.h>
#include <fts.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define LEAST_CONTAINER_ID 12 /* hexadecimal digits, as `docker ps` shows them */

struct mount {
	char path[256];
	char options[512]; /* of the file system: version 1 names its controllers here */
	bool version1;
};

static bool take_mount(const struct mntent *entry, struct mount *mount)
{
	mount->version1 = !strcmp(entry->mnt_type, "cgroup");
	if ((!mount->version1 && strcmp(entry->mnt_type, "cgroup2")) ||
	    strlen(entry->mnt_dir) >= sizeof(mount->path) ||
	    strlen(entry->mnt_opts) >= sizeof(mount->options))
		return false;
	strcpy(mount->path, entry->mnt_dir);
	strcpy(mount->options, entry->mnt_opts);
	return true;
}

/* All mounts of cgroup file systems: version 2, then perf_event's, then others of version 1. */
static int list_mounts(struct mount **ret, size_t *count, struct err *err)
{
	static const char *const order[] = { "cgroup2", "perf_event", "cgroup" };
	size_t capacity = 0, i, pass;

	for (pass = 0; pass < sizeof(order) / sizeof(order[0]); pass++) {
		FILE *file = setmntent("/proc/self/mounts", "re");
		struct mount mount;
		struct mntent entry;
		char strings[4096];

		if (!file)
			return err_set(err, -errno, "/proc/self/mounts: %s", strerror(errno));
		while (getmntent_r(file, &entry, strings, sizeof(strings))) {
			struct mount *slot;
			size_t rank;

			if (!take_mount(&entry, &mount))
				continue;
			rank = !mount.version1 ? 0 : hasmntopt(&entry, "perf_event") ? 1 : 2;
			if (rank != pass)
				continue;
			for (i = 0; i < *count && strcmp((*ret)[i].path, mount.path); i++)
				;
			if (i < *count)
				continue;
			slot = array_grow(ret, count, &capacity, sizeof(*slot));
			if (!slot) {
				endmntent(file);
				return err_nomem(err);
			}
			*slot = mount;
		}
		endmntent(file);
	}
	return 0;
}

/* Components of "/a/b", also of "a//b/". */
static uint32_t depth_of(const char *path)
{
	uint32_t depth = 0;

	for (; *path; path++)
		depth += *path != '/' && (path[1] == '/' || !path[1]);
	return depth;
}

/* Of "rw,nosuid,cpu,cpuacct": the words that are no options of every mount. */
static void take_controller(const char *options, char *controller, size_t size)
{
	static const char *const common[] = { "rw",     "ro",       "nosuid",  "nodev",
					      "noexec", "relatime", "noatime", "clone_children",
					      "xattr",  "noprefix" };
	char copy[512], *word, *rest;

	snprintf(copy, sizeof(copy), "%s", options);
	controller[0] = 0;
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		size_t i;

		for (i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
			if (!strcmp(word, common[i]))
				break;
		}
		if (i == sizeof(common) / sizeof(common[0]) && !strchr(word, '=')) {
			snprintf(controller, size, "%s", word);
			return;
		}
	}
}

static int take_place(const struct mount *mount, const char *path, struct sym_cgroup_place *ret)
{
	struct stat status;

	if (stat(path, &status))
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	*ret = (struct sym_cgroup_place){ .id = status.st_ino,
					  .level = depth_of(path + strlen(mount->path)) };
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	if (mount->version1)
		take_controller(mount->options, ret->controller, sizeof(ret->controller));
	return 0;
}

static bool is_below(const char *path, const char *mount)
{
	size_t size = strlen(mount);

	return !strncmp(path, mount, size) && (!path[size] || path[size] == '/');
}

/* 0, -ENOENT, or another -errno of what is there. */
static int find_path(const struct mount *mounts, size_t count, const char *text,
		     struct sym_cgroup_place *ret)
{
	char path[4096];
	size_t i;
	int code;

	for (i = 0; i < count; i++) {
		if (is_below(text, mounts[i].path))
			return take_place(&mounts[i], text, ret);
	}
	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", mounts[i].path, text + strspn(text, "/"));
		code = take_place(&mounts[i], path, ret);
		if (code != -ENOENT)
			return code;
	}
	return -ENOENT;
}

static bool is_container_id(const char *text)
{
	size_t size = strspn(text, "0123456789abcdefABCDEF");

	return size >= LEAST_CONTAINER_ID && !text[size];
}

/* "docker-0123456789ab....scope", "0123456789ab...": the id begins the name or a part of it. */
static bool names_container(const char *name, const char *id)
{
	const char *at = name;

	while ((at = strcasestr(at, id))) {
		if (at == name || !isxdigit((unsigned char)at[-1]))
			return true;
		at++;
	}
	return false;
}

/* 0, -ENOENT, or -ENOTUNIQ with both in @err. What lies below a match is part of it. */
static int find_container(const struct mount *mount, const char *id, struct sym_cgroup_place *ret,
			  struct err *err)
{
	char *const roots[] = { (char *)mount->path, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	int code = -ENOENT;
	FTSENT *entry;

	while (walk && (entry = fts_read(walk))) {
		if (entry->fts_info != FTS_D || entry->fts_level == 0 ||
		    !names_container(entry->fts_name, id))
			continue;
		fts_set(walk, entry, FTS_SKIP);
		if (!code) {
			code = err_set(err, -ENOTUNIQ,
				       "cgroup '%s': both %s and %s are of a container with such "
				       "an id: give more digits, or the path",
				       id, ret->path, entry->fts_path);
			break;
		}
		code = take_place(mount, entry->fts_path, ret);
	}
	if (walk)
		fts_close(walk);
	return code;
}

int sym_cgroup_find(const char *text, struct sym_cgroup_place *ret, struct err *err)
{
	CLEANUP(free_pointer) struct mount *mounts = NULL;
	size_t count = 0, i;
	int code;

	if (!*text)
		return err_set(err, -EINVAL, "cgroup: the name is empty");
	code = list_mounts(&mounts, &count, err);
	if (code)
		return code;
	if (!count)
		return err_set(err, -ENOENT,
			       "cgroup '%s': no cgroup file system is mounted: mount -t cgroup2 "
			       "none /sys/fs/cgroup",
			       text);
	code = find_path(mounts, count, text, ret);
	for (i = 0; code == -ENOENT && is_container_id(text) && i < count; i++) {
		code = find_container(&mounts[i], text, ret, err);
		if (code == -ENOTUNIQ)
			return code;
	}
	if (code == -ENOTDIR)
		return err_set(err, code, "cgroup '%s': a file, no cgroup", text);
	if (code)
		return err_set(err, code,
			       "cgroup '%s': %s: give a path below %s, or the id of a container "
			       "(%d digits or more)",
			       text, strerror(-code), mounts[0].path, LEAST_CONTAINER_ID);
	return 0;
}
