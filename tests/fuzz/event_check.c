// SPDX-License-Identifier: BSD-2-Clause
#include "event_check.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define TEXT_MAX 300

static struct fake machines[2]; /* one kind of cores; two */

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "event '%s': not so: %s\n", text, #condition); \
			abort();                                                       \
		}                                                                      \
	} while (0)

static void remove_machines(void)
{
	fake_destroy(&machines[0]);
	fake_destroy(&machines[1]);
}

static void make_machines(void)
{
	static const char *const kinds[] = { "cpu_core", "cpu_atom" };
	static const char *const types[] = { "8\n", "10\n" }, *const cpus[] = { "0-1\n", "2-3\n" };
	char path[128];
	int i;

	fake_create(&machines[0]);
	fake_create(&machines[1]);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), FAKE_DEVICES "%s/type", kinds[i]);
		fake_write(&machines[1], path, types[i]);
		snprintf(path, sizeof(path), FAKE_DEVICES "%s/cpus", kinds[i]);
		fake_write(&machines[1], path, cpus[i]);
		snprintf(path, sizeof(path), FAKE_DEVICES "%s/format/event", kinds[i]);
		fake_write(&machines[1], path, "config:0-7\n");
	}
	fake_remove(&machines[1], FAKE_DEVICES "cpu");
	atexit(remove_machines);
}

static bool same_attr(const struct pmu_event *a, const struct pmu_event *b)
{
	return !memcmp(&a->attr, &b->attr, sizeof(a->attr)) && a->software == b->software &&
	       a->period == b->period && a->freq == b->freq && a->weak == b->weak &&
	       a->precise_max == b->precise_max && a->sample_read == b->sample_read &&
	       !strcmp(a->pmu, b->pmu) && !strcmp(a->unit, b->unit) &&
	       !strcmp(a->cpumask, b->cpumask) && a->scale == b->scale;
}

/* One word, a name's length, and numbers that the kernel could be given. */
static void check_taken(const char *text, const struct pmu_event *event)
{
	const char *at;

	CHECK(memchr(event->text, 0, sizeof(event->text)) && *event->text);
	for (at = event->text; *at; at++)
		CHECK(isgraph((unsigned char)*at));
	CHECK(event->attr.size == sizeof(event->attr));
	CHECK(event->attr.precise_ip <= 3);
	CHECK(!event->attr.sample_period && !event->attr.read_format && !event->attr.inherit);
	CHECK(!(event->software && event->attr.type == PERF_TYPE_HARDWARE));
	CHECK(event->attr.type != PERF_TYPE_HARDWARE ||
	      (event->attr.config & 0xffffffff) < PERF_COUNT_HW_MAX || strchr(text, '/'));
	CHECK(strlen(text) < sizeof(event->text));
}

/* What it prints, it reads again, as the same. */
static void check_round_trip(const struct fake *fake, const char *text,
			     const struct pmu_event *event)
{
	struct pmu_event again;
	struct err err = { 0 };

	CHECK(!pmu_parse_on(&fake->system, text, &again, &err));
	CHECK(same_attr(event, &again) && !strcmp(event->text, again.text));
	if (strstr(text, "name=")) { /* its text is for reports alone */
		CHECK(strstr(text, event->text));
		return;
	}
	CHECK(!pmu_parse_on(&fake->system, event->text, &again, &err));
	CHECK(same_attr(event, &again));
	CHECK(!strcmp(event->text, again.text));
}

static void check_event(const struct fake *fake, const char *text)
{
	struct pmu_event event, untouched;
	struct err err = { 0 };
	int code;

	memset(&event, 0x5a, sizeof(event));
	untouched = event;
	code = pmu_parse_on(&fake->system, text, &event, &err);
	if (!code) {
		check_taken(text, &event);
		check_round_trip(fake, text, &event);
		return;
	}
	CHECK(code < 0 && err.code == code);
	CHECK(!strncmp(err.text, "event", 5) && memchr(err.text, 0, sizeof(err.text)));
	CHECK(!memcmp(&event, &untouched, sizeof(event)));
}

/* Lists of CPUs are of the same command line. */
static void check_cpus(const struct fake *fake, const char *text)
{
	struct err err = { 0 };
	size_t count = 0, i;
	int *cpus = NULL;

	if (pmu_parse_cpus_on(&fake->system, text, &cpus, &count, &err)) {
		CHECK(*err.text && !cpus);
		return;
	}
	CHECK(count >= 1 && count <= 4);
	for (i = 0; i < count; i++)
		CHECK(cpus[i] >= 0 && cpus[i] < 4 && (!i || cpus[i] > cpus[i - 1]));
	free(cpus);
}

void event_check(const uint8_t *data, size_t size)
{
	const struct fake *fake;
	char text[TEXT_MAX + 1];

	if (!*machines[0].root)
		make_machines();
	if (!size || size > TEXT_MAX)
		return;
	fake = &machines[*data & 1];
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	check_event(fake, text);
	check_cpus(fake, text);
}
