// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A byte at a time with a key of 16 bytes, which lies in front. */
#include "program.h"

PASS(xor, u8 *key)
{
	u8 *data = key + 16;
	u64 i;

	for (i = 0; i < size - 16; i++)
		data[i] ^= key[i & 15];
	return data[seed & 15];
}
