// SPDX-License-Identifier: BSD-2-Clause
/* Control flow of the arm64 back end: branches, switches, long functions; and what it tells. */
#include "arm64_fixture.h"

static bool holds(enum jit_condition condition, uint64_t a, uint64_t b, bool wide)
{
	const int64_t x = wide ? (int64_t)a : (int32_t)a, y = wide ? (int64_t)b : (int32_t)b;

	a = zero_extend(a, wide ? 8 : 4);
	b = zero_extend(b, wide ? 8 : 4);
	switch (condition) {
	case JIT_EQ:
		return a == b;
	case JIT_NE:
		return a != b;
	case JIT_SET:
		return a & b;
	case JIT_CLEAR:
		return !(a & b);
	case JIT_GT:
		return a > b;
	case JIT_GE:
		return a >= b;
	case JIT_LT:
		return a < b;
	case JIT_LE:
		return a <= b;
	case JIT_SGT:
		return x > y;
	case JIT_SGE:
		return x >= y;
	case JIT_SLT:
		return x < y;
	case JIT_SLE:
		return x <= y;
	}
	return false;
}

/* How the two ways of a branch lie behind it. */
enum shape {
	NEXT_FOLLOWS,
	TAKEN_FOLLOWS,
	NONE_FOLLOWS,
	FAR_AWAY,
	SELECT, /* ... become a select */
	SHAPES
};

static void end_with(struct made *made, uint64_t result)
{
	block(made);
	add_move(made, 0, result);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
}

/* Returns 1 when taken, 2 when not; arguments r1 and r2. */
static void make_branch(struct made *made, struct jit_insn in, enum shape shape)
{
	start(made);
	block(made);
	if (shape == SELECT) {
		add_move(made, 3, 1);
		end(made, in, 2, 1);
		block(made);
		add_move(made, 3, 2);
		end(made, blank(JIT_JUMP), JIT_NOWHERE, 2);
		block(made);
		in = blank(JIT_MOV);
		in.dst = 0, in.a = 3;
		add(made, in);
		end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
		return;
	}
	end(made, in, shape == TAKEN_FOLLOWS ? 1 : 2, shape == TAKEN_FOLLOWS ? 2 : 1);
	if (shape == NONE_FOLLOWS || shape == FAR_AWAY) {
		made->function.blocks[0].taken = 3;
		made->function.blocks[0].next = 2;
		block(made); /* which nobody goes to but the last */
		for (int i = 0; shape == FAR_AWAY && i < 9000; i++)
			add_move(made, 4, i);
		end(made, blank(JIT_JUMP), JIT_NOWHERE, 2);
		end_with(made, 2);
		block(made);
		add_move(made, 0, 1);
		in = blank(JIT_BRANCH);
		in.sub = JIT_EQ, in.a = 0, in.imm = 7;
		end(made, in, 1, 4);
		block(made);
		end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	} else {
		end_with(made, shape == TAKEN_FOLLOWS ? 1 : 2);
		end_with(made, shape == TAKEN_FOLLOWS ? 2 : 1);
	}
}

static void check_branch(struct made *made, const struct jit_insn *in, uint64_t a, uint64_t b)
{
	const uint64_t right = in->b == JIT_NONE ? in->imm : b;
	const bool taken = holds(in->sub, a, right, in->width == 8);

	if (RUNS && enter(made, a, b) != (taken ? 1 : 2))
		fail_msg("condition %u width %u: 0x%llx, 0x%llx", in->sub, in->width,
			 (unsigned long long)a, (unsigned long long)right);
}

static const uint64_t constants[] = {
	0,          1,          2,          3,          0xfff, 0x1000,    0x1001,
	0x1fff,     0x2000,     0x7fffffff, 1u << 31,   -1ull, -2ull,     -0xfffull,
	-0x1001ull, 1ull << 32, 1ull << 63, 1ull << 62, 0xff0, INT64_MAX, 0x12345678,
};

static void test_branches(void **state)
{
	struct made *made = make(1 << 18);
	struct jit_insn in = blank(JIT_BRANCH);

	(void)state;
	in.a = 1;
	for (int n = 0; n < 12 * 2 * 2 * SHAPES; n++) {
		const enum shape shape = n / 48;

		in.sub = n % 12;
		in.width = n / 12 % 2 ? 4 : 8;
		made->passes = n / 24 % 2 ? 0 : VM_PASS_ALL;
		in.b = 2;
		in.imm = 0;
		make_branch(made, in, shape);
		compile(made);
		for (size_t i = 0; i < NEDGES; i++)
			for (size_t k = 0; k < NEDGES; k++)
				check_branch(made, &in, edges[i], edges[k]);
		in.b = JIT_NONE;
		for (size_t k = 0; k < sizeof(constants) / sizeof(constants[0]); k++) {
			if (shape == FAR_AWAY && k % 7)
				continue;
			in.imm = zero_extend(constants[k], in.width);
			make_branch(made, in, shape);
			compile(made);
			for (size_t i = 0; i < NEDGES; i++)
				check_branch(made, &in, edges[i], 0);
			check_branch(made, &in, in.imm, 0);
			check_branch(made, &in, in.imm + 1, 0);
			check_branch(made, &in, in.imm - 1, 0);
		}
	}
	unmake(made);
}

/* The left side may be memory. */
static void test_branch_on_memory(void **state)
{
	static uint64_t cell;
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_BRANCH);

	(void)state;
	in.base = 1;
	in.off = -8;
	in.b = 2;
	for (int n = 0; n < 4 * 2 * 12; n++) {
		in.sub = n % 12;
		in.size = 1 << n / 12 % 4;
		in.flags = n / 48 ? JIT_FLAG_SIGNED : 0;
		make_branch(made, in, NEXT_FOLLOWS);
		compile(made);
		for (size_t i = 0; RUNS && i < NEDGES; i++) {
			uint64_t left;

			cell = edges[i];
			left = in.flags ? sign_extend(cell, in.size) : zero_extend(cell, in.size);
			for (size_t k = 0; k < NEDGES; k++)
				assert_int_equal(enter(made, (uintptr_t)(&cell + 1), edges[k]),
						 holds(in.sub, left, edges[k], true) ? 1 : 2);
		}
	}
	unmake(made);
}

/* Functions of which branches do not reach the end: 32 KiB, 1 MiB. */
static void test_long_functions(void **state)
{
	static const unsigned int lengths[] = { 7000, 9000, 250000, 270000 };
	struct made *made = make(16 << 20);
	struct jit_insn in;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		start(made);
		block(made);
		add_move(made, 6, 5);
		in = blank(JIT_BRANCH);
		in.sub = JIT_SET, in.a = 1, in.imm = 4;
		end(made, in, 3, 1);
		block(made);
		in.sub = JIT_EQ, in.a = 2, in.imm = 0;
		end(made, in, 3, 2);
		block(made);
		for (unsigned int k = 0; k < lengths[i]; k++) {
			in = blank(JIT_ADD);
			in.dst = in.a = 6, in.imm = 1;
			add(made, in);
		}
		add_move(made, 2, 0x123456789abcdef0);
		end(made, blank(JIT_JUMP), JIT_NOWHERE, 3);
		block(made);
		in = blank(JIT_MOV);
		in.dst = 0, in.a = 6;
		add(made, in);
		end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
		compile(made);
		if (!RUNS)
			continue;
		assert_int_equal(enter(made, 4, 1), 5);
		assert_int_equal(enter(made, 3, 0), 5);
		assert_int_equal(enter(made, 3, 1), 5 + lengths[i]);
	}
	unmake(made);
}

static void test_switch(void **state)
{
	struct made *made = make(1 << 16);
	struct jit_insn in;

	(void)state;
	made->function.targets_capacity = 5;
	made->function.targets = calloc(5, sizeof(*made->function.targets));
	for (int width = 4; width <= 8; width += 4)
		for (int off = -3; off <= 5; off += 4) {
			start(made);
			for (int i = 0; i < 5; i++)
				made->function.targets[i] = 1 + (i * 2 + 1) % 5;
			made->function.ntargets = 5;
			block(made);
			in = blank(JIT_SWITCH);
			in.a = 1, in.off = off, in.imm = 5, in.width = width;
			end(made, in, JIT_NOWHERE, 6);
			for (int i = 1; i <= 6; i++)
				end_with(made, 10 * i);
			compile(made);
			for (int i = -10; RUNS && i < 20; i++) {
				uint64_t want = 60;

				if (i - off >= 0 && i - off < 5)
					want = 10 * (1 + ((i - off) * 2 + 1) % 5);
				assert_int_equal(enter(made, (int64_t)i, 0), want);
				/* The upper half counts when all of it is compared. */
				assert_int_equal(enter(made, (int64_t)i + (5ll << 32), 0),
						 width == 4 ? want : 60);
			}
		}
	unmake(made);
}

/* Code that does not fit is told, and not written. */
static void test_full(void **state)
{
	struct made *made = make(1 << 16);

	(void)state;
	start(made);
	made->code.capacity = made->code.size + 64;
	memset(made->code.bytes + made->code.capacity, 0x5a, 4096);
	block(made);
	for (int i = 0; i < 100; i++)
		add_move(made, 3, 0x123456789abcdef0 + i);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	assert_int_equal(try_compile(made, 0), 0);
	assert_true(made->code.full);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(made->code.bytes[made->code.capacity + i], 0x5a);
	unmake(made);
}

/* Each load is found where it stands, each place is in its function. */
static void test_places(void **state)
{
	struct made *made = make(1 << 16);
	uint32_t last = 0;

	(void)state;
	start(made);
	block(made);
	add_load_state(made);
	add_store_state(made);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
	assert_true(made->code.nplaces > 10);
	for (size_t i = 0; i < made->code.nplaces; i++) {
		const struct jit_place *place = &made->code.places[i];

		assert_true(!i || place->offset > last);
		assert_true(place->offset >= made->ranges[0].first);
		assert_true(place->offset < made->ranges[0].end);
		assert_true(place->insn == JIT_NO_INSN || place->insn < made->function.ninsns);
		last = place->offset;
	}
	unmake(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_branches),       cmocka_unit_test(test_branch_on_memory),
		cmocka_unit_test(test_long_functions), cmocka_unit_test(test_switch),
		cmocka_unit_test(test_full),           cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
