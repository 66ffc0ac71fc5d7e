// SPDX-License-Identifier: BSD-2-Clause
/* Division by multiplication, as the back ends do it, against division. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/jit/jit.h"
#include "../../vm/random.h"

static uint64_t divide_unsigned(uint64_t n, struct jit_magic magic, unsigned int bits)
{
	unsigned __int128 high, mask = ((unsigned __int128)1 << bits) - 1;

	n >>= magic.before;
	high = ((unsigned __int128)n * magic.multiplier) >> bits;
	if (magic.add)
		high += n; /* bits + 1 bits */
	return (high >> magic.shift) & mask;
}

static int64_t divide_signed(int64_t n, int64_t divisor, struct jit_magic magic, unsigned int bits)
{
	int64_t multiplier = bits == 64 ? (int64_t)magic.multiplier : (int32_t)magic.multiplier;
	int64_t high = ((__int128)n * multiplier) >> bits;

	if (magic.add)
		high = (uint64_t)high + (uint64_t)n;
	if (bits == 32)
		high = (int32_t)high;
	high >>= magic.shift;
	high += n < 0;
	return divisor < 0 ? -(uint64_t)high : (uint64_t)high;
}

static uint64_t cut(uint64_t value, unsigned int bits)
{
	return bits == 64 ? value : (uint32_t)value;
}

static int64_t cut_signed(uint64_t value, unsigned int bits)
{
	return bits == 64 ? (int64_t)value : (int32_t)value;
}

static void check_unsigned(uint64_t n, uint64_t divisor, unsigned int bits)
{
	struct jit_magic magic = jit_magic_unsigned(divisor, bits);

	n = cut(n, bits);
	if (divide_unsigned(n, magic, bits) != n / divisor)
		fail_msg("%llu / %llu, %u bits", (unsigned long long)n, (unsigned long long)divisor,
			 bits);
	assert_true(magic.shift <= bits && magic.before < bits);
	assert_false(magic.add && (magic.before || (!magic.shift && divisor != 1)));
}

static void check_signed(uint64_t value, int64_t divisor, unsigned int bits)
{
	struct jit_magic magic = jit_magic_signed(divisor, bits);
	int64_t n = cut_signed(value, bits);
	int64_t quotient = divide_signed(n, divisor, magic, bits);

	if (cut_signed(quotient, bits) != n / divisor)
		fail_msg("%lld / %lld, %u bits", (long long)n, (long long)divisor, bits);
	assert_true(magic.shift < bits);
	assert_int_equal(magic.before, 0);
}

/* Dividends where a wrong multiplier shows: around the multiples of the divisor, and the ends. */
static void check_divisor(struct random *random, uint64_t divisor, unsigned int bits)
{
	int64_t as_signed = cut_signed(divisor, bits);
	uint64_t most = cut(UINT64_MAX, bits), n;

	for (int i = 0; i < 12 && divisor; i++) {
		n = i < 4 ? most - most % divisor : random_edge(random) / divisor * divisor;
		check_unsigned(n + i % 4 - 2, divisor, bits);
		check_unsigned(random_edge(random), divisor, bits);
	}
	check_unsigned(most, divisor, bits);
	check_unsigned(0, divisor, bits);
	if (as_signed + 1ull <= 2)
		return;
	for (int i = 0; i < 12; i++) {
		int64_t limit = i & 1 ? (int64_t)(most >> 1) : -(int64_t)(most >> 1);

		n = i < 8 ? limit / as_signed * as_signed : (int64_t)random_edge(random);
		check_signed(n + i % 4 - 2, as_signed, bits);
		check_signed(random_edge(random), as_signed, bits);
	}
	check_signed(1ull << (bits - 1), as_signed, bits);
	check_signed(most >> 1, as_signed, bits);
}

static void small_divisors(void **state)
{
	struct random random = { 1 };

	(void)state;
	for (uint64_t divisor = 1; divisor < 20000; divisor++) {
		check_divisor(&random, divisor, 32);
		check_divisor(&random, divisor, 64);
		check_divisor(&random, cut(-divisor, 32), 32);
		check_divisor(&random, -divisor, 64);
	}
}

static void divisors_at_edges(void **state)
{
	struct random random = { 2 };

	(void)state;
	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int i = -3; i <= 3; i++) {
			uint64_t divisor = (1ull << bit) + i;

			if (divisor)
				check_divisor(&random, divisor, 64);
			if (cut(divisor, 32))
				check_divisor(&random, cut(divisor, 32), 32);
		}
	}
}

static void random_divisors(void **state)
{
	struct random random = { 3 };

	(void)state;
	for (int i = 0; i < 50000; i++) {
		uint64_t divisor = random_edge(&random);

		if (divisor)
			check_divisor(&random, divisor, 64);
		if (cut(divisor, 32))
			check_divisor(&random, cut(divisor, 32), 32);
	}
}

/* All dividends of 16 bits at the low and the high end, for some divisors. */
static void all_low_and_high_dividends(void **state)
{
	static const uint64_t divisors[] = { 1,          2,          3,          5,
					     6,          7,          10,         12,
					     14,         28,         100,        641,
					     1000,       65535,      1000000007, 0x7fffffff,
					     0x80000001, 0xfffffffe, 0xffffffff };

	(void)state;
	for (size_t k = 0; k < sizeof(divisors) / sizeof(divisors[0]); k++) {
		for (uint64_t n = 0; n < 65536; n++) {
			check_unsigned(n, divisors[k], 32);
			check_unsigned(~n, divisors[k], 32);
			check_unsigned(~n, divisors[k], 64);
		}
	}
}

/* What compilers use, so that nothing slower slips in. */
static void known_multipliers(void **state)
{
	struct jit_magic magic = jit_magic_unsigned(10, 32);

	(void)state;
	assert_int_equal(magic.multiplier, 0xcccccccd);
	assert_int_equal(magic.shift, 3);
	assert_false(magic.add);
	magic = jit_magic_unsigned(7, 32);
	assert_int_equal(magic.multiplier, 0x24924925);
	assert_int_equal(magic.shift, 3);
	assert_true(magic.add);
	magic = jit_magic_unsigned(1000, 64);
	assert_int_equal(magic.multiplier, 0x20c49ba5e353f7cf);
	assert_int_equal(magic.before, 3);
	assert_int_equal(magic.shift, 4);
	assert_false(magic.add);
	magic = jit_magic_signed(7, 32);
	assert_int_equal(magic.multiplier, 0x92492493);
	assert_int_equal(magic.shift, 2);
	assert_true(magic.add);
	magic = jit_magic_signed(10, 64);
	assert_int_equal(magic.multiplier, 0x6666666666666667);
	assert_int_equal(magic.shift, 2);
	assert_false(magic.add);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_divisors),    cmocka_unit_test(divisors_at_edges),
		cmocka_unit_test(random_divisors),   cmocka_unit_test(all_low_and_high_dividends),
		cmocka_unit_test(known_multipliers),
	};

	return cmocka_run_group_tests_name("vm/jit/divide", tests, NULL, NULL);
}
