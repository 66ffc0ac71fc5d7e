// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Quotients and remainders of values of all sizes. */
#include "program.h"

PASS(divide, const u64 *values)
{
	u64 sum = seed, i;

	for (i = 0; i + 2 < size / 8; i++) {
		sum += values[i] / values[i + 1];
		sum ^= (values[i + 2] + sum) % values[i];
	}
	return sum;
}
