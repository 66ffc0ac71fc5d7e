// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A histogram by powers of two: 64 slots in front of the values. */
#include "program.h"

PASS(log2, u64 *slots)
{
	const u64 *values = slots + 64;
	u64 i;

	for (i = 0; i < size / 8 - 64; i++)
		slots[log2_of(values[i]) & 63]++;
	return slots[seed & 63];
}
