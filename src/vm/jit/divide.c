// SPDX-License-Identifier: BSD-2-Clause
/*
 * Multipliers for division by a constant (Granlund and Montgomery, "Division by invariant integers
 * using multiplication"; Warren, "Hacker's Delight", chapter 10).
 *
 * With N bits, m = floor(2^(N + s) / d) + 1 and e = m * d - 2^(N + s), which is at most d:
 * floor(n * m / 2^(N + s)) is the quotient for every n below 2^B if e * 2^B <= 2^(N + s).
 */
#include "vm/jit/jit.h"

#include <assert.h>

#include "vm/jit/plant.h"

/* 2^(N + s) / d, for growing s. */
struct quotient {
	unsigned __int128 value; /* has N + 1 bits */
	uint64_t rest, divisor;
};

static struct quotient first_quotient(uint64_t divisor, unsigned int bits)
{
	unsigned __int128 power = (unsigned __int128)1 << bits;

	return (struct quotient){ .value = power / divisor,
				  .rest = power % divisor,
				  .divisor = divisor };
}

static void double_quotient(struct quotient *q)
{
	unsigned __int128 rest = (unsigned __int128)q->rest << 1;
	bool carry = rest >= q->divisor;

	q->value = q->value << 1 | carry;
	q->rest = carry ? rest - q->divisor : rest;
}

/* The smallest shift for which e <= 2^(s + spare), spare = N - B. */
static struct jit_magic smallest(uint64_t divisor, unsigned int bits, unsigned int spare)
{
	struct quotient q = first_quotient(divisor, bits);
	struct jit_magic ret = { 0 };

	while (q.divisor - q.rest > (unsigned __int128)1 << (ret.shift + spare)) {
		double_quotient(&q);
		ret.shift++;
	}
	q.value += !PLANT(7);
	ret.add = q.value >> bits; /* the top bit of N + 1: n itself is added */
	ret.multiplier = bits == 64 ? (uint64_t)q.value : (uint32_t)q.value;
	return ret;
}

struct jit_magic jit_magic_unsigned(uint64_t divisor, unsigned int bits)
{
	struct jit_magic ret;
	unsigned int before;

	assert(divisor);
	if (!(divisor & (divisor - 1))) { /* a power of two */
		unsigned int shift = __builtin_ctzll(divisor);

		return (struct jit_magic){ .multiplier = shift ? 1ull << (bits - shift) : 0,
					   .add = !shift };
	}
	ret = smallest(divisor, bits, 0);
	if (!ret.add || divisor & 1)
		return ret;
	before = __builtin_ctzll(divisor);
	ret = smallest(divisor >> before, bits, before);
	ret.before = before;
	return ret;
}

/*
 * |n| is at most 2^(N - 1), so that e <= 2^(s + 1) is nearly the condition; for the largest n,
 * Hacker's Delight has it exactly: 2^(N + s) > nc * e, nc being the largest n with n % d == d - 1.
 */
struct jit_magic jit_magic_signed(int64_t divisor, unsigned int bits)
{
	uint64_t d = divisor < 0 ? -(uint64_t)divisor : (uint64_t)divisor;
	uint64_t limit = (1ull << (bits - 1)) + (divisor < 0), nc;
	struct quotient q;
	struct jit_magic ret = { 0 };

	assert(d >= 2);
	nc = limit - 1 - limit % d;
	q = first_quotient(d, bits);
	while ((unsigned __int128)nc * (d - q.rest) >= (unsigned __int128)1 << (bits + ret.shift)) {
		double_quotient(&q);
		ret.shift++;
	}
	q.value++;
	ret.multiplier = bits == 64 ? (uint64_t)q.value : (uint32_t)q.value;
	ret.add = ret.multiplier >> (bits - 1); /* negative as a factor: 2^N too small */
	return ret;
}
