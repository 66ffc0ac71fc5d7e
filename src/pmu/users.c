// SPDX-License-Identifier: BSD-2-Clause
/* Who else has events open: descriptors of other processes that lead to perf events. */
#include "pmu/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* What a file of /proc/PID/fd leads to. */
static bool leads_to_event(DIR *directory, const char *name)
{
	char target[32];
	ssize_t size = readlinkat(dirfd(directory), name, target, sizeof(target));
	static const char event[] = "anon_inode:[perf_event]";

	return size == sizeof(event) - 1 && !memcmp(target, event, size);
}

static unsigned int count_events(const struct pmu_system *system, const char *pid)
{
	CLEANUP(close_directory) DIR *directory = NULL;
	struct dirent *entry;
	unsigned int count = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s/fd", system->procfs, pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory)))
		count += leads_to_event(directory, entry->d_name);
	return count;
}

int pmu_users_on(const struct pmu_system *system, struct pmu_user **ret, size_t *count)
{
	CLEANUP(close_directory) DIR *directory = NULL;
	CLEANUP(free_pointer) struct pmu_user *users = NULL;
	size_t found = 0, capacity = 0;
	struct dirent *entry;

	system = pmu_system_or_this(system);
	directory = opendir(system->procfs);
	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		struct pmu_user *user;
		unsigned int events;

		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
			continue;
		events = count_events(system, entry->d_name);
		if (!events)
			continue;
		user = array_grow(&users, &found, &capacity, sizeof(*user));
		if (!user)
			return -ENOMEM;
		*user = (struct pmu_user){ .pid = atoi(entry->d_name), .events = events };
		if (pmu_read_file(user->comm, sizeof(user->comm), "%s/%d/comm", system->procfs,
				  user->pid) < 0)
			strcpy(user->comm, "?");
	}
	*ret = take_pointer(users);
	*count = found;
	return 0;
}

int pmu_users(struct pmu_user **ret, size_t *count)
{
	return pmu_users_on(NULL, ret, count);
}
