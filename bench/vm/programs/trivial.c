// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A function of one instruction that C code calls, as qsort() calls a comparison. */
#include "program.h"

extern u64 bench_call_many(u64 (*function)(u64), u64 count, u64 first);

CALLED u64 trivial(u64 value)
{
	return value + 3;
}

PASS(trivial_call, const void *memory)
{
	return bench_call_many(trivial, size, seed);
}
