// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A machine of twelve operations. */
#include "program.h"

PASS(switch_dispatch, const u8 *code)
{
	u64 a = seed, b = 1, i;

	for (i = 0; i < size; i++) {
		switch (code[i] & 15) {
		case 0:
			a += b;
			break;
		case 1:
			a -= b;
			break;
		case 2:
			a ^= b;
			break;
		case 3:
			b += a;
			break;
		case 4:
			b = a | 1;
			break;
		case 5:
			a *= 3;
			break;
		case 6:
			a >>= 1;
			break;
		case 7:
			a <<= 2;
			break;
		case 8:
			b ^= a >> 3;
			break;
		case 9:
			a = a + 7;
			break;
		case 10:
			b = b - 9;
			break;
		case 11:
			a = ~a;
			break;
		default:
			a += i;
			break;
		}
	}
	return a ^ b;
}
