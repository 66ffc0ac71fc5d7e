// SPDX-License-Identifier: BSD-2-Clause
/* Addresses of processes: maps, the files behind them, their symbols. */
#include "sym/sym.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sym/internal.h"

#define PROCESSES_MAX 1024 /* whose maps are kept; the oldest goes first */

struct map {
	uint64_t start, end, offset;
	size_t file; /* index in sym->files */
};

struct sym_process {
	pid_t pid;
	struct map *maps; /* ascending, as the kernel lists them */
	size_t count, capacity;
};

void sym_process_free(struct sym_process *process)
{
	if (process)
		free(process->maps);
	free(process);
}

void sym_files_free(struct sym *sym)
{
	size_t i;

	for (i = 0; i < sym->file_count; i++) {
		sym_file_close(sym->files[i].file);
		free(sym->files[i].path);
	}
	free(sym->files);
}

/* The mapped file's place in the cache: one entry for all processes that map it. -ENOMEM. */
static ssize_t cached_file(struct sym *sym, const char *path, const char *device, uint64_t inode)
{
	struct sym_cached_file *file;
	size_t i;

	for (i = 0; i < sym->file_count; i++) {
		file = &sym->files[i];
		if (file->inode == inode && !strcmp(file->device, device) &&
		    !strcmp(file->path, path))
			return i;
	}
	file = array_grow(&sym->files, &sym->file_count, &sym->file_capacity, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->path = strdup(path);
	file->inode = inode;
	snprintf(file->device, sizeof(file->device), "%s", device);
	if (!file->path) {
		sym->file_count--;
		return -ENOMEM;
	}
	return sym->file_count - 1;
}

/* "START-END PERMS OFFSET DEVICE INODE   PATH" */
static int parse_map(struct sym *sym, struct sym_process *process, const char *line)
{
	unsigned long long start, end, offset, inode;
	struct map *map;
	char device[16];
	ssize_t file;
	int at = 0;

	if (sscanf(line, "%llx-%llx %*4s %llx %15s %llu %n", &start, &end, &offset, device, &inode,
		   &at) < 5 ||
	    !at)
		return 0;
	file = cached_file(sym, line[at] ? line + at : "[anon]", device, inode);
	if (file < 0)
		return file;
	map = array_grow(&process->maps, &process->count, &process->capacity, sizeof(*map));
	if (!map)
		return -ENOMEM;
	*map = (struct map){ start, end, offset, file };
	return 0;
}

static int read_maps(struct sym *sym, struct sym_process *process)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	char path[64], *line, *next;
	size_t old = process->count;
	int code;

	snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
	code = buf_read_file(&text, path, NULL);
	if (code)
		return code == -ENOENT ? -ESRCH : code;
	if (!text.size) /* a zombie, or a kernel thread */
		return -ESRCH;
	/* Only now, for the old maps of an ended process still serve. */
	process->count = 0;
	for (line = text.data; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = 0;
		code = parse_map(sym, process, line);
		if (code) {
			process->count = old < process->count ? old : process->count;
			return code;
		}
	}
	return 0;
}

static struct sym_process *known_process(struct sym *sym, pid_t pid)
{
	size_t i;

	for (i = 0; i < sym->process_count; i++) {
		if (sym->processes[i]->pid == pid)
			return sym->processes[i];
	}
	return NULL;
}

static void drop_process(struct sym *sym, size_t index)
{
	sym_process_free(sym->processes[index]);
	sym->process_count--;
	memmove(&sym->processes[index], &sym->processes[index + 1],
		(sym->process_count - index) * sizeof(sym->processes[0]));
}

static int add_process(struct sym *sym, pid_t pid, struct sym_process **ret)
{
	struct sym_process *process = calloc(1, sizeof(*process)), **added;
	int code = process ? 0 : -ENOMEM;

	if (process) {
		process->pid = pid;
		code = read_maps(sym, process);
	}
	if (!code && sym->process_count >= PROCESSES_MAX)
		drop_process(sym, 0);
	if (!code) {
		added = array_grow(&sym->processes, &sym->process_count, &sym->process_capacity,
				   sizeof(*added));
		if (added)
			*added = *ret = process;
		else
			code = -ENOMEM;
	}
	if (code)
		sym_process_free(process);
	return code;
}

int sym_process_note(struct sym *sym, pid_t pid)
{
	struct sym_process *process = known_process(sym, pid);

	return process ? 0 : add_process(sym, pid, &process);
}

void sym_process_forget(struct sym *sym, pid_t pid)
{
	size_t i;

	for (i = 0; i < sym->process_count; i++) {
		if (sym->processes[i]->pid == pid) {
			drop_process(sym, i);
			return;
		}
	}
}

static const struct map *map_of(const struct sym_process *process, uint64_t address)
{
	size_t low = 0, high = process->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->maps[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->count && process->maps[low].start <= address ? &process->maps[low]
									   : NULL;
}

/* The symbols of a mapped file; NULL: it has none, or is no file. Tried once. */
static const struct sym_file *symbols_of(struct sym *sym, pid_t pid, const struct map *map)
{
	struct sym_cached_file *file = &sym->files[map->file];
	char path[4200];

	if (file->tried || file->path[0] != '/')
		return file->file;
	/* What is really mapped, even if it was deleted since or lies in another mount namespace. */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	file->tried = true;
	if (!sym_file_open(path, &file->file, NULL))
		return file->file;
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, file->path);
	if (sym_file_open(path, &file->file, NULL) && sym_file_open(file->path, &file->file, NULL))
		file->file = NULL;
	return file->file;
}

int sym_process_find(struct sym *sym, pid_t pid, uint64_t address, struct sym_place *ret)
{
	struct sym_process *process = known_process(sym, pid);
	const struct sym_file_symbol *symbol = NULL;
	const struct sym_file *file;
	const struct map *map;
	uint64_t offset, linked;
	int code = 0;

	if (!process)
		code = add_process(sym, pid, &process);
	if (code)
		return code;
	map = map_of(process, address);
	if (!map && !read_maps(sym, process)) /* mapped since? */
		map = map_of(process, address);
	if (!map)
		return -ENOENT;
	offset = address - map->start + map->offset;
	file = symbols_of(sym, pid, map);
	if (file && !sym_file_address_of(file, offset, &linked))
		symbol = sym_file_find_address(file, linked);
	ret->name = symbol ? symbol->name : NULL;
	ret->offset = symbol ? linked - symbol->address : offset;
	ret->module = sym->files[map->file].path;
	return 0;
}
