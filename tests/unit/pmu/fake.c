// SPDX-License-Identifier: BSD-2-Clause
#include "fake.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEVICES FAKE_DEVICES

static const struct {
	const char *path, *text;
} files[] = {
	{ DEVICES "cpu/type", "4\n" },
	{ DEVICES "cpu/format/event", "config:0-7,32-35\n" },
	{ DEVICES "cpu/format/umask", "config:8-15\n" },
	{ DEVICES "cpu/format/edge", "config:18\n" },
	{ DEVICES "cpu/format/offcore_rsp", "config1:0-63\n" },
	{ DEVICES "cpu/format/ldlat", "config1:0-15\n" },
	{ DEVICES "cpu/format/twisted", "config2:60-63,0-3,8\n" },
	{ DEVICES "cpu/events/misses", "event=0x12e,umask=0x41\n" },
	{ DEVICES "cpu/events/mem-lat", "event=0xcd,umask=0x1,ldlat=?\n" },
	{ DEVICES "cpu/events/nested", "misses\n" },
	{ DEVICES "cpu/events/broken", "event=zz\n" },
	{ DEVICES "cpu/events/core-energy", "event=2\n" },
	{ DEVICES "uncore_x/type", "30\n" },
	{ DEVICES "uncore_x/cpumask", "1\n" },
	{ DEVICES "uncore_x/format/event", "config:0-7\n" },
	{ DEVICES "uncore_x/events/data_reads", "event=0x05\n" },
	{ DEVICES "uncore_x/events/data_reads.unit", "MiB\n" },
	{ DEVICES "uncore_x/events/data_reads.scale", "6.103515625e-05\n" },
	{ DEVICES "odd/type", "31\n" },
	{ DEVICES "odd/format/backwards", "config:7-0\n" },
	{ DEVICES "odd/format/wide", "config:0-64\n" },
	{ DEVICES "odd/format/twice", "config:0-3,2\n" },
	{ DEVICES "odd/format/other", "config9:0-3\n" },
	{ DEVICES "odd/format/text", "config:zero\n" },
	{ "sys/devices/system/cpu/online", "0-3\n" },
	{ "proc/sys/kernel/perf_event_paranoid", "2\n" },
	{ "tracing/events/sched/sched_switch/id", "314\n" },
};

static void make_parents(char *path)
{
	char *slash;

	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
}

void fake_write(const struct fake *fake, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fake->root, name);
	make_parents(path);
	file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file))
		abort();
}

void fake_create(struct fake *fake)
{
	size_t i;

	strcpy(fake->root, "/tmp/duet-pmu-test-XXXXXX");
	if (!mkdtemp(fake->root))
		abort();
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		fake_write(fake, files[i].path, files[i].text);
	snprintf(fake->sysfs, sizeof(fake->sysfs), "%s/sys", fake->root);
	snprintf(fake->procfs, sizeof(fake->procfs), "%s/proc", fake->root);
	snprintf(fake->tracefs, sizeof(fake->tracefs), "%s/tracing", fake->root);
	fake->system = pmu_this_machine;
	fake->system.sysfs = fake->sysfs;
	fake->system.procfs = fake->procfs;
	fake->system.tracefs = fake->tracefs;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *ftw)
{
	return remove(path);
}

void fake_remove(const struct fake *fake, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", fake->root, name);
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fake_destroy(struct fake *fake)
{
	nftw(fake->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
