// SPDX-License-Identifier: BSD-2-Clause
/* What the back end leaves out: constants that have a register, moves of results. */
#include "x86_fixture.h"

/* Loads of r0 to r9, as start(), but r10 is not looked at: its address goes nowhere. */
static void start_without_frame(struct machine *m)
{
	start(m);
	m->function.ninsns--;
	last_block(m)->count--;
	last_block(m)->depth = 2;
	m->function.used = 0x7ff;
}

static void finish_without_frame(struct machine *m)
{
	struct jit_insn insn = blank(JIT_STORE, 8);

	for (uint8_t i = 0; i < 10; i++) {
		insn.b = i;
		insn.off = (int32_t)(uintptr_t)&state_of(m)->r[i];
		add(m, insn);
	}
	add(m, blank(JIT_EXIT, 8));
	assert_int_equal(jit_x86.function(&m->code, &m->function), 0);
	assert_int_equal(jit_x86.finish(&m->code), 0);
}

static struct jit_insn constant(uint8_t dst, uint64_t value)
{
	struct jit_insn insn = blank(JIT_MOV, 8);

	insn.dst = dst;
	insn.imm = value;
	return insn;
}

/* Does the function's code contain these bytes so many times? */
static unsigned int count_bytes(const struct machine *m, const void *bytes, size_t n)
{
	unsigned int found = 0;

	for (size_t i = m->functions[0].first; i + n <= m->functions[0].end; i++)
		found += !memcmp(m->memory + i, bytes, n);
	return found;
}

/* r4 = K; r5 = r5 op r4; r4 = 5, over and over. */
static void constants_in_loops(void **state)
{
	static const uint8_t ops[] = { JIT_ADD, JIT_SUB, JIT_MUL, JIT_OR,  JIT_AND,
				       JIT_XOR, JIT_LSH, JIT_RSH, JIT_ARSH };
	const uint64_t k = 0x123456789abcdef1;
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t i = 0; i < COUNT_OF(ops); i++) {
		struct jit_insn insn = blank(ops[i], 8), lea = blank(JIT_LEA, 8);
		struct state before, *s = state_of(&m);
		uint64_t expected;

		insn.dst = insn.a = 5;
		insn.b = 4;
		lea.dst = lea.base = 4;
		lea.index = 3;
		lea.scale = 3;
		start_without_frame(&m);
		add(&m, constant(4, k));
		add(&m, insn);
		add(&m, constant(4, 7));
		add(&m, constant(4, k));
		add(&m, lea); /* reads the constant's register, writes its own */
		finish_without_frame(&m);
		assert_int_equal(count_bytes(&m, &k, sizeof(k)), 1);
		scramble(s);
		before = *s;
		run(&m);
		switch (ops[i]) {
		case JIT_ADD:
			expected = before.r[5] + k;
			break;
		case JIT_SUB:
			expected = before.r[5] - k;
			break;
		case JIT_MUL:
			expected = before.r[5] * k;
			break;
		case JIT_OR:
			expected = before.r[5] | k;
			break;
		case JIT_AND:
			expected = before.r[5] & k;
			break;
		case JIT_XOR:
			expected = before.r[5] ^ k;
			break;
		case JIT_LSH:
			expected = before.r[5] << (k & 63);
			break;
		case JIT_RSH:
			expected = before.r[5] >> (k & 63);
			break;
		default:
			expected = (int64_t)before.r[5] >> (k & 63);
		}
		assert_int_equal(s->r[5], expected);
		assert_int_equal(s->r[4], k + 8 * before.r[3]);
		for (int r = 6; r < 10; r++)
			assert_int_equal(s->r[r], before.r[r]);
	}
	machine_release(&m);
}

/* It is read by who cannot take it from elsewhere, or lives on: then the register gets it. */
static void constants_that_are_needed(void **state)
{
	const uint64_t k = 0x123456789abcdef1;
	struct machine m;

	(void)state;
	machine_make(&m);
	for (int n = 0; n < 3; n++) {
		struct jit_insn insn = blank(n == 1 ? JIT_DIV : JIT_ATOMIC, 8);
		struct state before, *s = state_of(&m);

		insn.dst = insn.op == JIT_DIV ? 5 : JIT_NONE;
		insn.a = insn.op == JIT_DIV ? 5 : JIT_NONE;
		insn.b = 4;
		insn.base = insn.op == JIT_DIV ? JIT_NONE : 6;
		insn.sub = JIT_ADD;
		insn.flags = n == 2 ? JIT_FLAG_FETCH : 0;
		start_without_frame(&m);
		add(&m, constant(4, k));
		add(&m, insn);
		finish_without_frame(&m);
		scramble(s);
		s->memory[1] = 100;
		s->r[6] = (uintptr_t)&s->memory[1];
		before = *s;
		run(&m);
		assert_int_equal(s->r[4], n == 2 ? 100 : k);
		if (n == 1)
			assert_int_equal(s->r[5], before.r[5] / k);
		else
			assert_int_equal(s->memory[1], 100 + k);
	}
	machine_release(&m);
}

/* r5 = r6 op r7; r8 = r5, and r5 is not needed: it goes to r8 at once. */
static void results_moved_on(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * 2 * 2; n++) {
		struct jit_insn sum = blank(JIT_ADD, n & 1 ? 4 : 8), move = blank(JIT_MOV, 8);
		struct state before, *s = state_of(&m);
		uint64_t expected;

		move.width = n & 2 ? 4 : 8;
		sum.dst = move.a = 5;
		sum.a = 6;
		sum.b = n & 8 ? 8 : 7;
		move.dst = 8;
		move.live = n & 4 ? ALL_LIVE : ALL_LIVE & ~(1u << 5);
		start(&m);
		add(&m, sum);
		add(&m, move);
		finish(&m);
		scramble(s);
		before = *s;
		run(&m);
		expected = before.r[6] + before.r[sum.b];
		if (n & 1)
			expected = (uint32_t)expected;
		if (n & 4)
			assert_int_equal(s->r[5], expected);
		if (n & 2)
			expected = (uint32_t)expected;
		assert_int_equal(s->r[8], expected);
	}
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_in_loops),
		cmocka_unit_test(constants_that_are_needed),
		cmocka_unit_test(results_moved_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
