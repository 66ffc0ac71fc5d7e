// SPDX-License-Identifier: BSD-2-Clause
/* Event modifiers, ":u" and the like: one row per letter. */
#include "pmu/parser.h"

#include <errno.h>

struct modifiers {
	bool privilege; /* one of u k h was given, so the exclude bits are decided */
	bool guest;     /* one of G H was given */
	struct perf_event_attr *attr;
	struct pmu_event *event;
};

static void exclude_all_levels(struct modifiers *state)
{
	if (!state->privilege)
		state->attr->exclude_user = state->attr->exclude_kernel = state->attr->exclude_hv =
			1;
	state->privilege = true;
}

static void exclude_host_and_guest(struct modifiers *state)
{
	if (!state->guest)
		state->attr->exclude_host = state->attr->exclude_guest = 1;
	state->guest = true;
}

static void modify_user(struct modifiers *state)
{
	exclude_all_levels(state);
	/* A guest's user code is not the user's: perf leaves it out, but not so for k and h. */
	if (!state->guest)
		state->attr->exclude_guest = 1;
	state->attr->exclude_user = 0;
}

static void modify_kernel(struct modifiers *state)
{
	exclude_all_levels(state);
	state->attr->exclude_kernel = 0;
}

static void modify_hypervisor(struct modifiers *state)
{
	exclude_all_levels(state);
	state->attr->exclude_hv = 0;
}

static void modify_guest(struct modifiers *state)
{
	exclude_host_and_guest(state);
	state->attr->exclude_guest = 0;
}

static void modify_host(struct modifiers *state)
{
	exclude_host_and_guest(state);
	state->attr->exclude_host = 0;
}

static void modify_idle(struct modifiers *state)
{
	state->attr->exclude_idle = 1;
}

static void modify_precise(struct modifiers *state)
{
	state->attr->precise_ip++;
	/* Precise sampling cannot look into guests. */
	if (!state->guest)
		state->attr->exclude_guest = 1;
}

static void modify_precise_max(struct modifiers *state)
{
	state->event->precise_max = true;
}

static void modify_pinned(struct modifiers *state)
{
	state->attr->pinned = 1;
}

static void modify_exclusive(struct modifiers *state)
{
	state->attr->exclusive = 1;
}

static void modify_sample_read(struct modifiers *state)
{
	state->event->sample_read = true;
}

static void modify_weak(struct modifiers *state)
{
	state->event->weak = true;
}

static const struct modifier {
	char letter;
	unsigned char times; /* how often it may be given */
	void (*apply)(struct modifiers *state);
} modifiers[] = {
	{ 'u', 1, modify_user },        /* user code */
	{ 'k', 1, modify_kernel },      /* kernel code */
	{ 'h', 1, modify_hypervisor },  /* hypervisor */
	{ 'I', 1, modify_idle },        /* not while idle */
	{ 'G', 1, modify_guest },       /* guests */
	{ 'H', 1, modify_host },        /* the host */
	{ 'p', 3, modify_precise },     /* precise */
	{ 'P', 1, modify_precise_max }, /* as precise as can be */
	{ 'S', 1, modify_sample_read }, /* read the group's values with each sample */
	{ 'D', 1, modify_pinned },      /* pinned */
	{ 'e', 1, modify_exclusive },   /* exclusive */
	{ 'W', 1, modify_weak },        /* weak group */
};

int pmu_parse_modifiers(const struct pmu_parser *parser, const char *letters)
{
	struct perf_event_attr *attr = &parser->event->attr;
	struct modifiers state = { .attr = attr, .event = parser->event };
	const size_t count = sizeof(modifiers) / sizeof(modifiers[0]);
	unsigned char seen[sizeof(modifiers) / sizeof(modifiers[0])] = { 0 };
	const char *at;

	/* As perf: without modifiers guests are left out, with any the modifiers decide. */
	attr->exclude_guest = !*letters;
	for (at = letters; *at; at++) {
		size_t i, position = at - parser->text + 1;

		for (i = 0; i < count && modifiers[i].letter != *at; i++)
			;
		if (i == count)
			return pmu_refuse(parser, -EINVAL,
					  "'%c' at character %zu is no modifier: known are "
					  "u k h I G H p P S D e W",
					  *at, position);
		if (++seen[i] > modifiers[i].times)
			return pmu_refuse(parser, -EINVAL,
					  "modifier '%c' is repeated at character %zu", *at,
					  position);
		modifiers[i].apply(&state);
	}
	return 0;
}

bool pmu_is_modifiers(const char *letters)
{
	const size_t count = sizeof(modifiers) / sizeof(modifiers[0]);
	size_t i;

	for (; *letters; letters++) {
		for (i = 0; i < count && modifiers[i].letter != *letters; i++)
			;
		if (i == count)
			return false;
	}
	return true;
}
