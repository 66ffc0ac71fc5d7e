// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Functions of the program calling each other. */
#include "program.h"

CALLED u64 step(u64 a, u64 b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15ULL;
}

CALLED u64 twice(u64 a, u64 b)
{
	return step(a, b) + step(b, a >> 7);
}

PASS(local_call, const u64 *values)
{
	u64 sum = seed, i;

	for (i = 0; i < size / 8; i++)
		sum ^= twice(values[i], sum);
	return sum;
}
