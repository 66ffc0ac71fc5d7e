// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* What reports do to times: units, digits, buckets. */
#include "program.h"

PASS(constant, const u64 *values)
{
	u64 sum = seed, i;

	for (i = 0; i < size / 8; i++) {
		u64 value = values[i];

		sum += value / 1000;
		sum ^= value % 60;
		sum += (u32)value / 7 + (u32)sum % 97;
	}
	return sum;
}
