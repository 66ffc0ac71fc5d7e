/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share. */
#pragma once

#include "sym/sym.h"

struct sym_process;

/* A file that some process maps; entries stay until sym_close(), so places can point at them. */
struct sym_cached_file {
	char *path; /* as in /proc/PID/maps: "/usr/bin/x", "[vdso]", "[anon]" */
	char device[16];
	uint64_t inode;
	bool tried;
	struct sym_file *file; /* NULL: not tried, or no symbols */
};

struct sym_cgroup {
	uint64_t id;
	char *path; /* NULL: unknown when it was asked for */
};

struct sym {
	struct sym_kernel *kernel;
	struct sym_cached_file *files;
	size_t file_count, file_capacity;
	struct sym_process **processes;
	size_t process_count, process_capacity;
	struct sym_cgroup *cgroups;
	size_t cgroup_count, cgroup_capacity;
	char cgroup_mount[256];
	bool cgroup_mount_tried;
};

void sym_process_free(struct sym_process *process);
void sym_files_free(struct sym *sym);
void sym_cgroups_free(struct sym *sym);
