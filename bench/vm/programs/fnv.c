// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* FNV-1a, 64 bits. */
#include "program.h"

PASS(fnv, const u8 *data)
{
	u64 hash = 0xcbf29ce484222325ULL ^ seed, i;

	for (i = 0; i < size; i++) {
		hash ^= data[i];
		hash *= 0x100000001b3ULL;
	}
	return hash;
}
