// SPDX-License-Identifier: BSD-2-Clause
/* mem:ADDRESS[/BYTES][:ACCESS][:MODIFIERS]: accesses of one address, counted by debug registers. */
#include "pmu/parser.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "mem:"

bool pmu_is_breakpoint(const char *text)
{
	return !strncmp(text, PREFIX, strlen(PREFIX));
}

/* A number that ends at one of @ends. NULL: none. */
static const char *read_number(const char *text, const char *ends, uint64_t *ret)
{
	char digits[32];
	size_t size = strcspn(text, ends);

	if (!size || size >= sizeof(digits))
		return NULL;
	memcpy(digits, text, size);
	digits[size] = 0;
	return pmu_parse_number(digits, ret) ? NULL : text + size;
}

/* "rw": bits of bp_type. 0 when it is none, or a letter comes twice. */
static unsigned int read_access(const char *text, size_t size)
{
	static const char letters[] = "rwx";
	static const unsigned int bits[] = { HW_BREAKPOINT_R, HW_BREAKPOINT_W, HW_BREAKPOINT_X };
	unsigned int access = 0;
	const char *letter;
	size_t i;

	for (i = 0; i < size; i++) {
		letter = strchr(letters, text[i]);
		if (!letter || access & bits[letter - letters])
			return 0;
		access |= bits[letter - letters];
	}
	return access;
}

int pmu_parse_breakpoint(const struct pmu_parser *parser)
{
	struct pmu_event *event = parser->event;
	struct perf_event_attr *attr = &event->attr;
	const char *at = parser->text + strlen(PREFIX), *end;
	uint64_t address, bytes = 0;
	unsigned int access = 0;

	end = read_number(at, "/:", &address);
	if (!end)
		return pmu_refuse(parser, -EINVAL,
				  "an address is missing at character %zu: "
				  "mem:0xADDRESS[/BYTES][:rwx][:MODIFIERS]",
				  at - parser->text + 1);
	if (*end == '/') {
		at = end + 1;
		end = read_number(at, ":", &bytes);
		if (!end || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
			return pmu_refuse(parser, -EINVAL,
					  "'%s' at character %zu: a length is 1, 2, 4 or 8 bytes",
					  at, at - parser->text + 1);
	}
	if (*end == ':') {
		size_t size = strcspn(end + 1, ":");

		access = read_access(end + 1, size);
		if (access)
			end += 1 + size;
	}
	access = access ?: HW_BREAKPOINT_RW;
	if (access & HW_BREAKPOINT_X && access != HW_BREAKPOINT_X)
		return pmu_refuse(parser, -EINVAL,
				  "execution (x) does not go together with r or w: use two events");
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->bp_type = access;
	attr->bp_addr = address;
	attr->bp_len = bytes ?: access == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	event->software = true; /* debug registers, not counters */
	snprintf(event->text, sizeof(event->text), "%s", parser->text);
	return pmu_parse_modifiers(parser, *end == ':' ? end + 1 : end);
}
