// SPDX-License-Identifier: BSD-2-Clause
/* Our own cases: long programs, long jumps, many blocks, many functions, large switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "every.h"
#include "random.h"

/* Code that is not run, or only counts: r0 += 1. */
static void add_filler(struct every *every, size_t n)
{
	while (n--)
		every_add(every, ADD_K(0, 1));
}

static void straight(void **state)
{
	static struct every every;
	struct random random = { 1 };
	uint64_t r[5] = { 3, 0, 0, 0, 0 };

	(void)state;
	for (uint32_t reg = 0; reg < 5; reg++)
		every_add(&every, MOV_K(reg, (int)r[reg]));
	for (int i = 0; i < 20000; i++) {
		uint32_t dst = random_below(&random, 5), src = random_below(&random, 5);
		int32_t imm = random_edge(&random);

		switch (random_below(&random, 4)) {
		case 0:
			every_add(&every, ADD_X(dst, src));
			r[dst] += r[src];
			break;
		case 1:
			every_add(&every, RAW(0xa7, dst, 0, 0, imm));
			r[dst] ^= (int64_t)imm;
			break;
		case 2:
			every_add(&every, RAW(0x2f, dst, src, 0, 0));
			r[dst] *= r[src];
			break;
		default:
			every_add(&every, RAW(0x04, dst, 0, 0, imm));
			r[dst] = (uint32_t)(r[dst] + imm);
		}
	}
	for (uint32_t reg = 1; reg < 5; reg++) {
		every_add(&every, ADD_X(0, reg));
		r[0] += r[reg];
	}
	every_add(&every, EXIT());
	every_returns(&every, r[0]);
	every_deinit(&every);
}

/* Forward over @n instructions by a jump of each kind, and back over them. */
static void jump_over(size_t n, struct bpf_insn forward, struct bpf_insn back)
{
	static struct every every;
	size_t start;

	every_add(&every, MOV_K(0, 0));
	every_add(&every, MOV_K(6, 3)); /* turns */
	every_add(&every, MOV_K(7, 0));
	start = every.ncode;
	every_add(&every, RAW(0x2f, 7, 6, 0, 0)); /* r7 stays 0 */
	if (forward.code == 0x06)
		forward.imm = (int32_t)n;
	else
		forward.off = (int16_t)n;
	every_add(&every, forward);
	add_filler(&every, n);
	every_add(&every, ADD_K(6, -1));
	if (back.code == 0x06) {
		every_add(&every, JEQ_K(6, 0, 1));
		back.imm = (int32_t)start - (int32_t)every.ncode - 1;
	} else {
		back.off = (int16_t)((int32_t)start - (int32_t)every.ncode - 1);
	}
	every_add(&every, back);
	every_add(&every, ADD_K(0, 5));
	every_add(&every, EXIT());
	every_returns(&every, 5);
	every_deinit(&every);
}

static void long_jumps(void **state)
{
	static const size_t lengths[] = { 10, 30, 31, 32, 40, 60, 120, 2000, 8000, 8200, 32000 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		jump_over(lengths[i], JA(0), JNE_K(6, 0, 0));
		jump_over(lengths[i], JEQ_K(7, 0, 0), RAW(0x56, 6, 0, 0, 0));
		/* tbz reaches less far than b.cond */
		jump_over(lengths[i], RAW(0xa5, 7, 0, 0, 1), RAW(0x45, 6, 0, 0, 0x7fffffff));
		jump_over(lengths[i], RAW(0x06, 0, 0, 0, 0), JNE_K(6, 0, 0));
	}
	jump_over(300000, RAW(0x06, 0, 0, 0, 0), RAW(0x06, 0, 0, 0, 0));
}

/* Many blocks, each entered from two sides. */
static void many_blocks(void **state)
{
	static struct every every;
	struct random random = { 2 };
	uint64_t r0 = 1;

	(void)state;
	every_add(&every, MOV_K(0, 1));
	for (int i = 0; i < 6000; i++) {
		int32_t than = random_next(&random), add = random_next(&random);

		every_add(&every, RAW(0x26, 0, 0, 2, than)); /* if w0 > than skip */
		every_add(&every, RAW(0x27, 0, 0, 0, 3));
		every_add(&every, RAW(0xa7, 0, 0, 0, add));
		every_add(&every, ADD_K(0, add));
		if ((uint32_t)r0 <= (uint32_t)than)
			r0 = (r0 * 3) ^ (int64_t)add;
		r0 += add;
	}
	every_add(&every, EXIT());
	every_returns(&every, r0);
	every_deinit(&every);
}

/* Each of 400 functions calls the next. */
static void many_functions(void **state)
{
	static struct every every;

	(void)state;
	every.options.stack_bytes = 4 << 20;
	every.options.call_depth = 500;
	for (int i = 0; i < 400; i++) {
		if (i)
			every_begin(&every);
		every_add(&every, MOV_X(6, 1));
		every_add(&every, ADD_K(1, i));
		every_add(&every, STX_DW(10, 6, -8));
		if (i + 1 < 400)
			every_add(&every, CALL_LOCAL(3));
		else
			every_add(&every, MOV_X(0, 1));
		every_add(&every, LDX_DW(3, 10, -8));
		every_add(&every, ADD_X(0, 3));
		every_add(&every, EXIT());
	}
	/* The argument of function i is 1 + i (i - 1) / 2, and each adds its own. */
	uint64_t want = 1 + 399 * 400 / 2;

	for (int i = 0; i < 400; i++)
		want += 1 + i * (i - 1) / 2;
	every.args[0] = 1;
	every_returns(&every, want);
	every_deinit(&every);
}

/* Dense, with holes, and far apart. */
static void switches(int32_t first, int32_t step, uint32_t n, int32_t asked, bool wide)
{
	static struct every every;
	uint64_t want = 7;

	every_add(&every, MOV_K(0, 7));
	for (uint32_t i = 0; i < n; i++) { /* if r1 == value goto case i */
		int32_t value = first + (int32_t)i * step;

		every_add(&every, RAW(wide ? 0x15 : 0x16, 1, 0, (int16_t)(n - i + 2 * i), value));
		if (asked == value && want == 7)
			want = 1000 + i;
	}
	every_add(&every, EXIT());
	for (uint32_t i = 0; i < n; i++) {
		every_add(&every, MOV_K(0, 1000 + (int)i));
		every_add(&every, EXIT());
	}
	every.args[0] = wide ? (uint64_t)(int64_t)asked : (uint32_t)asked | 5ull << 32;
	every_returns(&every, want);
	every_deinit(&every);
}

static void large_switches(void **state)
{
	static const int32_t asked[] = { -1, 0, 1, 7, 19, 20, 39, 40, 99, 1000, 0x7fffffff };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(asked); i++) {
		switches(0, 1, 20, asked[i], i & 1);
		switches(0, 2, 20, asked[i], !(i & 1));
		switches(-3, 1, 12, asked[i], i & 1);
		switches(0, 1000, 8, asked[i], i & 1);
		switches(7, 0, 5, asked[i], i & 1); /* all the same: the first one counts */
	}
	switches(0, 1, 300, 299, true);
	switches(0, 1, 300, 300, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(straight),       cmocka_unit_test(long_jumps),
		cmocka_unit_test(many_blocks),    cmocka_unit_test(many_functions),
		cmocka_unit_test(large_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
