// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A loop that does little else than call a C function of another file. */
#include "program.h"

extern u64 bench_mix(u64 a, u64 b);

PASS(helper, const u64 *values)
{
	u64 sum = seed, i;

	for (i = 0; i < size / 8; i++)
		sum = bench_mix(sum, values[i]);
	return sum;
}
