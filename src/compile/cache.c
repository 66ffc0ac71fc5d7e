// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cache folder: ${XDG_CACHE_HOME:-$HOME/.cache}/duet/compile. Everything in it may be deleted
 * at any time; entries appear by rename, so that a reader sees all of one or nothing.
 */
#include "compile/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"

/* A precompiled header takes 16 MB, vmlinux.h 3 MB, an object 10 to 100 kB. */
#define CACHE_LIMIT_BYTES (256LL << 20)
#define LEFTOVER_SECONDS  3600
#define TEMPORARY_PREFIX  "tmp-"

/* mkdir -p, mode 0700 like the other users of ~/.cache. */
static int make_folders(const char *path)
{
	char part[PATH_MAX];
	char *slash;

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return -ENAMETOOLONG;
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

/*
 * A folder that somebody else may write to is not used: precompiled headers and objects in it would
 * run with our rights (sudo keeps $HOME).
 */
static bool use_folder(struct workspace *workspace, const char *base, const char *below)
{
	struct stat status;
	int size;

	if (!base || base[0] != '/')
		return false;
	size = snprintf(workspace->path, sizeof(workspace->path), "%s%s/duet/compile", base, below);
	if (size >= (int)sizeof(workspace->path) || make_folders(workspace->path))
		return false;
	if (stat(workspace->path, &status) || status.st_uid != geteuid() ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	return !access(workspace->path, W_OK | X_OK);
}

int workspace_open(struct workspace *ret, struct err *err)
{
	const char *folder = getenv("TMPDIR");

	ret->temporary = false;
	if (use_folder(ret, getenv("XDG_CACHE_HOME"), "") ||
	    use_folder(ret, getenv("HOME"), "/.cache"))
		return 0;
	if (!geteuid() && use_folder(ret, "/var/cache", ""))
		return 0;
	snprintf(ret->path, sizeof(ret->path), "%s/duet-XXXXXX",
		 folder && folder[0] == '/' ? folder : "/tmp");
	if (!mkdtemp(ret->path))
		return err_set(err, -errno, "%s: %s: no folder to compile in: set TMPDIR",
			       ret->path, strerror(errno));
	ret->temporary = true;
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	remove(path);
	return 0;
}

void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void workspace_close(struct workspace *workspace)
{
	if (workspace->temporary)
		remove_tree(workspace->path);
	workspace->temporary = false;
}

void workspace_temporary(const struct workspace *workspace, char path[PATH_MAX])
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(path, PATH_MAX, "%s/" TEMPORARY_PREFIX "%d-%lx%lx", workspace->path, getpid(),
		 (long)now.tv_sec, (long)now.tv_nsec);
}

void workspace_touch(const char *path)
{
	utimensat(AT_FDCWD, path, NULL, 0);
}

struct cached {
	char *path;
	long long bytes;
	time_t used;
};

/* A folder of the cache holds one big file: vmlinux.h. */
static long long size_of(const char *path, const struct stat *status)
{
	char inside[PATH_MAX];
	struct stat file;

	if (!S_ISDIR(status->st_mode))
		return status->st_size;
	if (snprintf(inside, sizeof(inside), "%s/vmlinux.h", path) >= (int)sizeof(inside) ||
	    stat(inside, &file))
		return 4096;
	return file.st_size;
}

static int by_age(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

static void trim_list(struct cached *list, size_t count, long long total)
{
	size_t i;

	qsort(list, count, sizeof(*list), by_age);
	for (i = 0; i < count && total > CACHE_LIMIT_BYTES; i++) {
		remove_tree(list[i].path);
		total -= list[i].bytes;
	}
}

void workspace_trim(const struct workspace *workspace)
{
	size_t count = 0, capacity = 0, i;
	struct cached *list = NULL;
	time_t now = time(NULL);
	struct dirent *entry;
	long long total = 0;
	DIR *folder;

	folder = workspace->temporary ? NULL : opendir(workspace->path);
	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		char path[PATH_MAX];
		struct cached *cached;
		struct stat status;

		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", workspace->path, entry->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &status))
			continue;
		if (!strncmp(entry->d_name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX))) {
			if (status.st_mtime + LEFTOVER_SECONDS < now)
				remove_tree(path);
			continue;
		}
		cached = array_grow(&list, &count, &capacity, sizeof(*list));
		if (!cached)
			break;
		*cached = (struct cached){ strdup(path), size_of(path, &status), status.st_mtime };
		if (!cached->path) {
			count--;
			break;
		}
		total += cached->bytes;
	}
	closedir(folder);
	trim_list(list, count, total);
	for (i = 0; i < count; i++)
		free(list[i].path);
	free(list);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		data += written;
		size -= written;
	}
	return 0;
}

/* A device or a pipe is written to, not replaced; so is what a symbolic link leads to. */
static int write_in_place(const char *path, const void *data, size_t size, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), code;

	code = fd < 0 ? -errno : write_all(fd, data, size);
	if (fd >= 0 && close(fd) && !code)
		code = -errno;
	return code ? err_set(err, code, "%s: cannot be written: %s", path, strerror(-code)) : 0;
}

int write_by_rename(const char *path, const void *data, size_t size, struct err *err)
{
	char temporary[PATH_MAX];
	struct stat status;
	mode_t mask;
	int fd, code;

	if (!lstat(path, &status) && !S_ISREG(status.st_mode))
		return write_in_place(path, data, size, err);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return err_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
	code = write_all(fd, data, size);
	mask = umask(0);
	umask(mask);
	if (!code && fchmod(fd, 0666 & ~mask))
		code = -errno;
	if (close(fd) && !code)
		code = -errno;
	if (!code && rename(temporary, path))
		code = -errno;
	if (code) {
		unlink(temporary);
		return err_set(err, code, "%s: cannot be written: %s", path, strerror(-code));
	}
	return 0;
}
