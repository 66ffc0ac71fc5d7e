/* SPDX-License-Identifier: BSD-2-Clause */
/* How many threads this process has. */
#pragma once

#include <dirent.h>

static inline int threads_now(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}
