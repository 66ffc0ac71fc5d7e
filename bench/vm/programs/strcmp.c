// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Strings of at most 31 bytes that begin alike, each compared with the next. */
#include "program.h"

#define SLOT 32

CALLED int compare(const char *a, const char *b)
{
	u32 i;

	for (i = 0; i < SLOT && a[i] && a[i] == b[i]; i++)
		;
	return (u8)a[i & (SLOT - 1)] - (u8)b[i & (SLOT - 1)];
}

PASS(strcmp, const char *text)
{
	u64 sum = seed, i;

	for (i = 0; i + 2 * SLOT <= size; i += SLOT)
		sum = sum * 3 + compare(text + i, text + i + SLOT);
	return sum;
}
