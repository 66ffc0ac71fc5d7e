// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Primes below `size`. A round marks with its own number, so nothing has to be cleared. */
#include "program.h"

PASS(sieve, u8 *flags)
{
	u8 mark = seed % 251 + 1;
	u64 count = 0, i, k;

	for (i = 2; i < size; i++) {
		if (flags[i] == mark)
			continue;
		count++;
		for (k = 2 * i; k < size; k += i)
			flags[k] = mark;
	}
	return count;
}
