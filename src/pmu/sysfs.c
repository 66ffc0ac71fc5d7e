// SPDX-License-Identifier: BSD-2-Clause
/* PMUs as /sys/bus/event_source/devices describes them. */
#include "pmu/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES "bus/event_source/devices"

int pmu_read_file(char *text, size_t size, const char *format, ...)
{
	CLEANUP(close_fd)
	int fd = -1;
	char path[512];
	va_list args;
	ssize_t got;

	va_start(args, format);
	got = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (got >= (ssize_t)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, text, size);
	if (got < 0)
		return -errno;
	if ((size_t)got == size)
		return -E2BIG;
	while (got && (text[got - 1] == '\n' || text[got - 1] == ' '))
		got--;
	text[got] = 0;
	return got;
}

bool pmu_sysfs_name_ok(const char *name)
{
	const char *at;

	if (!isalnum((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (at = name; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("_-.", *at))
			return false;
	}
	return true;
}

static int read_type(const struct pmu_system *system, const char *pmu, uint32_t *type)
{
	char text[32], *end;
	int code;

	if (!pmu_sysfs_name_ok(pmu))
		return -ENOENT;
	code = pmu_read_file(text, sizeof(text), "%s/" DEVICES "/%s/type", system->sysfs, pmu);
	if (code < 0)
		return code;
	*type = strtoul(text, &end, 10);
	return end == text || *end ? -EBADMSG : 0;
}

bool pmu_sysfs_exists(const struct pmu_system *system, const char *pmu)
{
	uint32_t type;

	return !read_type(system, pmu, &type);
}

int pmu_sysfs_init(const struct pmu_system *system, const char *pmu, struct pmu_event *event)
{
	uint32_t type;
	int code = read_type(system, pmu, &type);

	if (code)
		return code;
	event->attr.type = type;
	event->software = type == PERF_TYPE_SOFTWARE;
	snprintf(event->pmu, sizeof(event->pmu), "%s", pmu);
	/* Uncore PMUs count on one CPU of each socket; the core PMUs of a hybrid CPU on theirs. */
	if (pmu_read_file(event->cpumask, sizeof(event->cpumask), "%s/" DEVICES "/%s/cpumask",
			  system->sysfs, pmu) < 0 &&
	    pmu_read_file(event->cpumask, sizeof(event->cpumask), "%s/" DEVICES "/%s/cpus",
			  system->sysfs, pmu) < 0)
		event->cpumask[0] = 0;
	return 0;
}

/* The attr field that a format text "config1:0-7" speaks of; *ranges points behind the colon. */
static __u64 *format_field(struct perf_event_attr *attr, const char *format, const char **ranges)
{
	const struct {
		const char *name;
		__u64 *field;
	} fields[] = {
		{ "config:", (__u64 *)&attr->config },
		{ "config1:", (__u64 *)&attr->config1 },
		{ "config2:", (__u64 *)&attr->config2 },
	};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t size = strlen(fields[i].name);

		if (!strncmp(format, fields[i].name, size)) {
			*ranges = format + size;
			return fields[i].field;
		}
	}
	return NULL;
}

/* Spreads the bits of @value, lowest first, over ranges "0-7,32-35"; *mask gets the bits that the
 * ranges cover, *width their number. 0 or -EBADMSG. */
static int spread(const char *ranges, uint64_t value, uint64_t *bits, uint64_t *mask,
		  unsigned int *width)
{
	*bits = *mask = *width = 0;
	do {
		char *end;
		unsigned long first, last, bit;

		if (!isdigit((unsigned char)*ranges))
			return -EBADMSG;
		first = last = strtoul(ranges, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (first > last || last > 63 || (*end && *end != ','))
			return -EBADMSG;
		for (bit = first; bit <= last; bit++) {
			if (*mask >> bit & 1)
				return -EBADMSG;
			*mask |= 1ULL << bit;
			*bits |= (value >> (*width)++ & 1) << bit;
		}
		ranges = *end ? end + 1 : end;
	} while (*ranges);
	return 0;
}

int pmu_sysfs_set_term(const struct pmu_system *system, const char *pmu, const char *term,
		       uint64_t value, struct perf_event_attr *attr, uint64_t *max)
{
	uint64_t bits, mask;
	unsigned int width;
	const char *ranges;
	char format[256];
	__u64 *field;
	int code;

	if (!pmu_sysfs_name_ok(term))
		return -ENOENT;
	code = pmu_read_file(format, sizeof(format), "%s/" DEVICES "/%s/format/%s", system->sysfs,
			     pmu, term);
	if (code < 0)
		return code == -EISDIR ? -ENOENT : code;
	field = format_field(attr, format, &ranges);
	if (!field)
		return -EBADMSG;
	code = spread(ranges, value, &bits, &mask, &width);
	if (code)
		return code;
	*max = width < 64 ? (1ULL << width) - 1 : ~0ULL;
	if (value > *max)
		return -ERANGE;
	*field = (*field & ~mask) | bits;
	return 0;
}

bool pmu_sysfs_is_detail(const char *name)
{
	static const char *const details[] = { ".unit", ".scale", ".per-pkg", ".snapshot" };
	const char *dot = strrchr(name, '.');
	size_t i;

	for (i = 0; dot && i < sizeof(details) / sizeof(details[0]); i++) {
		if (!strcmp(dot, details[i]))
			return true;
	}
	return false;
}

int pmu_sysfs_alias(const struct pmu_system *system, const char *pmu, const char *name, char *terms,
		    size_t size, struct pmu_event *event)
{
	char text[64], *end;
	int code;

	if (!pmu_sysfs_name_ok(name) || pmu_sysfs_is_detail(name))
		return -ENOENT;
	code = pmu_read_file(terms, size, "%s/" DEVICES "/%s/events/%s", system->sysfs, pmu, name);
	if (code < 0)
		return code == -EISDIR ? -ENOENT : code;
	if (pmu_read_file(event->unit, sizeof(event->unit), "%s/" DEVICES "/%s/events/%s.unit",
			  system->sysfs, pmu, name) < 0)
		event->unit[0] = 0;
	event->scale = 1;
	if (pmu_read_file(text, sizeof(text), "%s/" DEVICES "/%s/events/%s.scale", system->sysfs,
			  pmu, name) >= 0) {
		double scale = strtod(text, &end);

		if (end != text && !*end)
			event->scale = scale;
	}
	return 0;
}

void pmu_sysfs_each(const struct pmu_system *system, const char *directory,
		    void (*fn)(void *context, const char *name), void *context)
{
	struct dirent **entries;
	char path[512];
	int count, i;

	snprintf(path, sizeof(path), "%s/" DEVICES "%s%s", system->sysfs, *directory ? "/" : "",
		 directory);
	count = scandir(path, &entries, NULL, alphasort);
	for (i = 0; i < count; i++) {
		if (pmu_sysfs_name_ok(entries[i]->d_name))
			fn(context, entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

struct alias_search {
	const struct pmu_system *system;
	const char *name;
	char *pmu;
	size_t size;
	bool found;
};

static void search_alias(void *context, const char *pmu)
{
	struct alias_search *search = context;
	char path[512];

	if (search->found)
		return;
	snprintf(path, sizeof(path), "%s/" DEVICES "/%s/events/%s", search->system->sysfs, pmu,
		 search->name);
	if (access(path, R_OK))
		return;
	search->found = true;
	snprintf(search->pmu, search->size, "%s", pmu);
}

int pmu_sysfs_find_alias(const struct pmu_system *system, const char *name, char *pmu, size_t size)
{
	struct alias_search search = { system, name, pmu, size, false };

	if (!pmu_sysfs_name_ok(name) || pmu_sysfs_is_detail(name))
		return -ENOENT;
	pmu_sysfs_each(system, "", search_alias, &search);
	return search.found ? 0 : -ENOENT;
}

struct core_search {
	const struct pmu_system *system;
	bool found;
};

/* By its name first: that costs nothing. */
bool pmu_sysfs_is_core(const struct pmu_system *system, const char *pmu)
{
	static const char *const kinds[] = { "cpu_", "armv", "apple_" };
	bool core = !strcmp(pmu, "cpu");
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !core; i++)
		core = !strncmp(pmu, kinds[i], strlen(kinds[i]));
	return core && pmu_sysfs_exists(system, pmu);
}

static void search_core(void *context, const char *pmu)
{
	struct core_search *search = context;

	search->found |= pmu_sysfs_is_core(search->system, pmu);
}

bool pmu_sysfs_has_core(const struct pmu_system *system)
{
	struct core_search search = { system, false };

	pmu_sysfs_each(system, "", search_core, &search);
	return search.found;
}
