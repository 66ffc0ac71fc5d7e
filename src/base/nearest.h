/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "Did you mean ...?": keeps the best few names by edit distance. Feed it every candidate, then
 * print. Holds copies of the names; no allocation.
 */
#pragma once

#include <stddef.h>

#define NEAREST_MAX 3

struct nearest {
	const char *wanted;
	size_t count;
	struct {
		unsigned int distance;
		char name[128];
	} best[NEAREST_MAX];
};

void nearest_init(struct nearest *nearest, const char *wanted);
void nearest_offer(struct nearest *nearest, const char *name);
/* "a, b, c" into @text, or "" when nothing is near. Returns @text. */
const char *nearest_text(const struct nearest *nearest, char *text, size_t size);
