// SPDX-License-Identifier: BSD-2-Clause
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_COMPARED 127

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Levenshtein distance, given up as soon as it must exceed @limit. */
static unsigned int edit_distance(const char *a, const char *b, unsigned int limit)
{
	size_t la = strlen(a), lb = strlen(b), i, j;
	unsigned int row[NAME_MAX_COMPARED + 1];

	if (la > NAME_MAX_COMPARED || lb > NAME_MAX_COMPARED ||
	    (la > lb ? la - lb : lb - la) > limit)
		return limit + 1;
	for (j = 0; j <= lb; j++)
		row[j] = j;
	for (i = 1; i <= la; i++) {
		unsigned int diagonal = row[0], smallest = i;

		row[0] = i;
		for (j = 1; j <= lb; j++) {
			unsigned int above = row[j];

			row[j] = least(least(above, row[j - 1]) + 1,
				       diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
			smallest = least(smallest, row[j]);
		}
		if (smallest > limit)
			return limit + 1;
	}
	return row[lb];
}

void nearest_init(struct nearest *nearest, const char *wanted)
{
	*nearest = (struct nearest){ .wanted = wanted };
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	unsigned int limit = strlen(nearest->wanted) / 3 + 1;
	unsigned int distance;
	size_t at;

	if (nearest->count == NEAREST_MAX)
		limit = least(limit, nearest->best[NEAREST_MAX - 1].distance);
	distance = edit_distance(nearest->wanted, name, limit);
	if (distance > limit)
		return;
	for (at = 0; at < nearest->count; at++) {
		if (!strcmp(nearest->best[at].name, name))
			return;
		if (nearest->best[at].distance > distance)
			break;
	}
	if (at == NEAREST_MAX)
		return;
	if (nearest->count < NEAREST_MAX)
		nearest->count++;
	memmove(&nearest->best[at + 1], &nearest->best[at],
		(nearest->count - at - 1) * sizeof(nearest->best[0]));
	nearest->best[at].distance = distance;
	snprintf(nearest->best[at].name, sizeof(nearest->best[at].name), "%s", name);
}

const char *nearest_text(const struct nearest *nearest, char *text, size_t size)
{
	size_t i, used = 0;

	if (size)
		text[0] = 0;
	for (i = 0; i < nearest->count && used < size; i++)
		used += snprintf(text + used, size - used, "%s%s", i ? ", " : "",
				 nearest->best[i].name);
	return text;
}
