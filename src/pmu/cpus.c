// SPDX-License-Identifier: BSD-2-Clause
/* CPU lists and the limit of open files. */
#include "pmu/counter.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CPU_MAX 65536 /* ids; the kernel's NR_CPUS is at most 8192 today */

static int parse_id(const char **text, unsigned long *ret)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	*ret = strtoul(*text, &end, 10);
	if (errno || *ret >= CPU_MAX)
		return -EINVAL;
	*text = end;
	return 0;
}

/* Marks the ids of "0-3,7" in @set, if there is one; *end gets the number behind the highest. */
static int mark_cpus(const char *text, char *set, size_t *end)
{
	for (*end = 0;;) {
		unsigned long first, last;

		if (parse_id(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (parse_id(&text, &last) || last < first)
				return -EINVAL;
		}
		if (last >= *end)
			*end = last + 1;
		if (set)
			memset(set + first, 1, last - first + 1);
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

int pmu_cpu_list(const char *text, int **ret, size_t *count)
{
	CLEANUP(free_pointer)
	char *set = NULL;
	size_t i, end, marked = 0;
	int *list, code;

	code = mark_cpus(text, NULL, &end);
	if (code)
		return code;
	set = calloc(end, 1);
	if (!set)
		return -ENOMEM;
	mark_cpus(text, set, &end);
	for (i = 0; i < end; i++)
		marked += set[i];
	list = calloc(marked, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (i = marked = 0; i < end; i++) {
		if (set[i])
			list[marked++] = i;
	}
	*ret = list;
	*count = marked;
	return 0;
}

int pmu_parse_cpus_on(const struct pmu_system *system, const char *text, int **ret, size_t *count,
		      struct err *err)
{
	CLEANUP(free_pointer)
	int *online = NULL, *list = NULL;
	size_t online_count, i, j, list_count;
	char online_text[4096];
	int code;

	system = pmu_system_or_this(system);
	code = pmu_read_file(online_text, sizeof(online_text), "%s/devices/system/cpu/online",
			     system->sysfs);
	if (code >= 0)
		code = pmu_cpu_list(online_text, &online, &online_count);
	if (code < 0)
		return err_set(err, code, "online CPUs: %s/devices/system/cpu/online: %s",
			       system->sysfs, strerror(-code));
	if (!text) {
		*ret = take_pointer(online);
		*count = online_count;
		return 0;
	}
	code = pmu_cpu_list(text, &list, &list_count);
	if (code)
		return err_set(err, code, "CPU list '%s': not a list such as 0-3,7", text);
	for (i = j = 0; i < list_count; i++) {
		while (j < online_count && online[j] < list[i])
			j++;
		if (j == online_count || online[j] != list[i])
			return err_set(err, -ENODEV, "CPU list '%s': CPU %d is not online: %s are",
				       text, list[i], online_text);
	}
	*ret = take_pointer(list);
	*count = list_count;
	return 0;
}

int pmu_parse_cpus(const char *text, int **ret, size_t *count, struct err *err)
{
	return pmu_parse_cpus_on(NULL, text, ret, count, err);
}

static size_t open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count < 3 ? 0 : count - 3; /* ".", ".." and the directory itself */
}

int pmu_raise_file_limit(size_t needed, size_t *granted, struct err *err)
{
	size_t open = open_files(), total = needed + open, room;
	struct rlimit limit, wanted;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return err_set(err, -errno, "limit of open files: %s", strerror(errno));
	if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < total) {
		wanted = limit;
		wanted.rlim_cur = total;
		if (wanted.rlim_max != RLIM_INFINITY && wanted.rlim_max < total)
			wanted.rlim_max = total;
		/* Without CAP_SYS_RESOURCE the hard limit stays, and up to it we may go. */
		if (setrlimit(RLIMIT_NOFILE, &wanted)) {
			wanted = limit;
			wanted.rlim_cur = limit.rlim_max < total ? limit.rlim_max : total;
			setrlimit(RLIMIT_NOFILE, &wanted);
		}
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	room = limit.rlim_cur > open ? limit.rlim_cur - open : 0;
	if (granted)
		*granted = room;
	if (room >= needed)
		return 0;
	return err_set(
		err, -EMFILE,
		"open files: %zu needed, %zu granted: raise the hard limit (ulimit -Hn %zu), "
		"or measure fewer events or CPUs (-C)",
		needed, room, total);
}
