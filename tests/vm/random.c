// SPDX-License-Identifier: BSD-2-Clause
#include "random.h"

uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t random_below(struct random *random, uint32_t n)
{
	return (random_next(random) >> 32) * n >> 32;
}

uint64_t random_edge(struct random *random)
{
	uint64_t value;

	switch (random_below(random, 5)) {
	case 0:
		return (int64_t)random_below(random, 5) - 2;
	case 1: /* around a power of two */
		return (1ull << random_below(random, 64)) + random_below(random, 3) - 1;
	case 2: /* around the edges of 32 bits, with anything above */
		value = 0x7fffffff + (uint64_t)random_below(random, 3);
		return value | (random_below(random, 2) ? random_next(random) << 32 : 0);
	case 3:
		return -(1ull << random_below(random, 64));
	default:
		return random_next(random) >> random_below(random, 64);
	}
}
