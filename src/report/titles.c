// SPDX-License-Identifier: BSD-2-Clause
/*
 * What stands above a column. Counters that the script leaves to the command line lend their
 * columns the event's text: member "one_self" of counter "one" is printed as "cycles_self", and not
 * at all when nobody bound "one".
 */
#include "report/titles.h"

#include <stdio.h>
#include <string.h>

static const struct report_counter *counter_of(const struct report_options *options,
					       const char *member, size_t *size)
{
	size_t i;

	for (i = 0; i < options->ncounters; i++) {
		const struct report_counter *counter = &options->counters[i];

		*size = counter->by_event && counter->member ? strlen(counter->member) : 0;
		if (*size && !strncmp(member, counter->member, *size) &&
		    (!member[*size] || strchr("_[", member[*size])))
			return counter;
	}
	return NULL;
}

/* Which of the counters with the same event it is: 1 for the first. */
static unsigned int copy_of(const struct report_options *options,
			    const struct report_counter *counter)
{
	const struct report_counter *other;
	unsigned int copy = 1;

	for (other = options->counters; other < counter; other++)
		copy += other->by_event && other->event && !strcmp(other->event, counter->event);
	return copy;
}

bool title_of(const struct report_options *options, const char *column, char *title, size_t size)
{
	const char *dot = strrchr(column, '.'), *member = dot ? dot + 1 : column;
	char copy[16] = "";
	size_t used;
	const struct report_counter *counter = counter_of(options, member, &used);

	/* A part of a histogram: "one_each.p99". */
	if (!counter && dot) {
		member = column;
		counter = counter_of(options, member, &used);
	}
	if (!counter) {
		snprintf(title, size, "%s", column);
		return true;
	}
	if (!counter->event || !*counter->event)
		return false;
	if (copy_of(options, counter) > 1)
		snprintf(copy, sizeof(copy), "#%u", copy_of(options, counter));
	snprintf(title, size, "%.*s%s%s%s", (int)(member - column), column, counter->event, copy,
		 member + used);
	return true;
}
