// SPDX-License-Identifier: BSD-2-Clause
/* Comparisons in every form against C, and jumps between blocks in every order and distance. */
#include "x86_fixture.h"

static bool holds(enum jit_condition condition, unsigned int width, uint64_t a, uint64_t b)
{
	int64_t sa = width == 4 ? (int32_t)a : (int64_t)a;
	int64_t sb = width == 4 ? (int32_t)b : (int64_t)b;

	if (width == 4) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (condition) {
	case JIT_EQ:
		return a == b;
	case JIT_NE:
		return a != b;
	case JIT_SET:
		return a & b;
	case JIT_GT:
		return a > b;
	case JIT_GE:
		return a >= b;
	case JIT_LT:
		return a < b;
	case JIT_LE:
		return a <= b;
	case JIT_SGT:
		return sa > sb;
	case JIT_SGE:
		return sa >= sb;
	case JIT_SLT:
		return sa < sb;
	case JIT_SLE:
		return sa <= sb;
	case JIT_CLEAR:
		return !(a & b);
	}
	return false;
}

static void set_r0(struct machine *m, uint64_t value)
{
	struct jit_insn insn = blank(JIT_MOV, 8);

	insn.dst = 0;
	insn.imm = value;
	add(m, insn);
}

/* Code of some length that changes nothing but r5. */
static void filler(struct machine *m, unsigned int n)
{
	struct jit_insn insn = blank(JIT_MOV, 8);

	insn.dst = 5;
	insn.imm = 0x123456789abcdef;
	while (n--)
		add(m, insn);
}

/* r0 = 1 if the branch is taken, else 0; `before` comes directly in front of it, unless NOP. */
static void make_branch(struct machine *m, struct jit_insn before, struct jit_insn branch,
			unsigned int fill)
{
	start(m);
	if (before.op != JIT_NOP)
		add(m, before);
	add(m, branch);
	last_block(m)->next = 1;
	last_block(m)->taken = 2;
	start_block(m);
	set_r0(m, 0);
	filler(m, fill);
	add(m, blank(JIT_JUMP, 8));
	last_block(m)->next = 3;
	start_block(m);
	set_r0(m, 1);
	filler(m, fill);
	add(m, blank(JIT_JUMP, 8));
	last_block(m)->next = 3;
	start_block(m);
}

static const uint8_t orders[][4] = { { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 0, 3, 1, 2 },
				     { 0, 3, 2, 1 }, { 0, 1, 3, 2 }, { 0, 2, 3, 1 } };

static void finish_in_order(struct machine *m, size_t order)
{
	for (size_t i = 0; i < 4; i++)
		m->order[i] = orders[order][i];
	finish(m);
}

static const uint32_t pass_sets[] = { VM_PASS_ALL, VM_PASS_ALL & ~VM_PASS_SHORT };

/* Runs with all edge operands: a in r4 or memory, b in r6 or the immediate. */
static void check_all(struct machine *m, const struct jit_insn *branch)
{
	struct state *state = state_of(m);
	uint64_t mask = branch->base == JIT_NONE || branch->size == 8
				? UINT64_MAX
				: (1ull << 8 * branch->size) - 1;

	for (size_t i = 0; i < COUNT_OF(edges); i++) {
		for (size_t j = 0; j < COUNT_OF(edges); j++) {
			uint64_t a = edges[i], b = branch->b == JIT_NONE ? branch->imm : edges[j];

			scramble(state);
			state->r[4] = a;
			state->r[6] = b;
			state->r[7] = (uintptr_t)&state->memory[2];
			state->memory[1] = a;
			state->memory[2] = ~a;
			if (branch->base != JIT_NONE) {
				a &= mask;
				if (branch->flags & JIT_FLAG_SIGNED && branch->size < 8)
					a |= -(a >> (8 * branch->size - 1) & 1) & ~mask;
			}
			if (run(m) != holds(branch->sub, branch->width, a, b))
				fail_msg("sub %u width %u size %u flags %u a %u b %u: 0x%lx 0x%lx",
					 branch->sub, branch->width, branch->size, branch->flags,
					 branch->a, branch->b, a, b);
			if (branch->b == JIT_NONE)
				break;
		}
	}
}

static void try_forms(struct machine *m, struct jit_insn branch)
{
	const struct jit_insn none = blank(JIT_NOP, 8);

	branch.b = 6;
	make_branch(m, none, branch, 0);
	finish_in_order(m, 0);
	check_all(m, &branch);
	branch.b = JIT_NONE;
	for (size_t i = 0; i < COUNT_OF(edges); i++) {
		branch.imm = branch.width == 4 ? (uint32_t)edges[i] : edges[i];
		make_branch(m, none, branch, 0);
		finish_in_order(m, i % COUNT_OF(orders));
		check_all(m, &branch);
	}
}

static void conditions(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t p = 0; p < COUNT_OF(pass_sets); p++)
		for (unsigned int width = 4; width <= 8; width += 4)
			for (uint8_t sub = JIT_EQ; sub <= JIT_CLEAR; sub++) {
				struct jit_insn branch = blank(JIT_BRANCH, width);

				m.function.passes = pass_sets[p];
				branch.sub = sub;
				branch.a = 4;
				try_forms(&m, branch);
			}
	machine_release(&m);
}

static void memory_operands(void **state)
{
	static const uint8_t sizes[] = { 1, 2, 4, 8 };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * 2 * 4 * 12; n++) {
		struct jit_insn branch = blank(JIT_BRANCH, n & 1 ? 4 : 8);

		m.function.passes = pass_sets[n >> 1 & 1];
		branch.flags = n >> 2 & 1 ? JIT_FLAG_SIGNED : 0;
		branch.size = sizes[n >> 3 & 3];
		branch.sub = n >> 5;
		branch.base = 7;
		branch.off = -8;
		if (branch.size <= branch.width)
			try_forms(&m, branch);
	}
	machine_release(&m);
}

/* With a register that is known to hold no more than the memory does; r6 becomes that. */
static void known_bytes(void **state)
{
	static const uint8_t sizes[] = { 1, 2, 4 };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * 3 * 12; n++) {
		struct jit_insn branch = blank(JIT_BRANCH, n & 1 ? 4 : 8), cut = blank(JIT_EXT, 8);
		struct state *s = state_of(&m);

		cut.flags = n & 2 ? JIT_FLAG_SIGNED : 0;
		cut.size = branch.size = sizes[n >> 2 & 3 ? (n >> 2) % 3 : 0];
		branch.sub = n / 12 % 12;
		branch.base = 7;
		cut.dst = cut.a = branch.b = 6;
		if (branch.size > branch.width)
			continue;
		make_branch(&m, cut, branch, 0);
		finish_in_order(&m, 0);
		for (size_t i = 0; i < COUNT_OF(edges) * COUNT_OF(edges); i++) {
			uint64_t taken, a = edges[i / COUNT_OF(edges)];

			scramble(s);
			s->memory[1] = a;
			s->r[6] = edges[i % COUNT_OF(edges)];
			s->r[7] = (uintptr_t)&s->memory[1];
			taken = run(&m);
			a &= (1ull << 8 * branch.size) - 1;
			assert_int_equal(taken, holds(branch.sub, branch.width, a, s->r[6]));
		}
	}
	machine_release(&m);
}

/* What the instruction before has left in the flags is used, and only where it holds. */
static void after_arithmetic(void **state)
{
	static const uint8_t ops[] = { JIT_ADD, JIT_SUB, JIT_AND, JIT_OR,   JIT_XOR,
				       JIT_NEG, JIT_LSH, JIT_RSH, JIT_ARSH, JIT_MUL };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < COUNT_OF(ops) * 2 * 2 * 2; n++) {
		struct jit_insn branch = blank(JIT_BRANCH, n & 1 ? 4 : 8);
		struct jit_insn before = blank(ops[n >> 3], n & 2 ? 4 : 8);
		struct state *s = state_of(&m);

		before.dst = before.a = 4;
		if (n & 4)
			before.b = 6;
		else
			before.imm = 1;
		branch.a = 4;
		for (uint8_t sub = JIT_EQ; sub <= JIT_CLEAR; sub++) {
			branch.sub = sub;
			make_branch(&m, before, branch, 0);
			finish_in_order(&m, 0);
			for (size_t i = 0; i < COUNT_OF(edges) * COUNT_OF(edges); i++) {
				uint64_t taken;

				scramble(s);
				s->r[4] = edges[i / COUNT_OF(edges)];
				s->r[6] = edges[i % COUNT_OF(edges)];
				taken = run(&m);
				/* r4 is stored after the operation */
				assert_int_equal(taken, holds(sub, branch.width, s->r[4], 0));
			}
		}
	}
	machine_release(&m);
}

static void distances(void **state)
{
	static const unsigned int fills[] = { 0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 26 };
	static const uint16_t aligns[] = { 0, 16, 32, 64 };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < COUNT_OF(fills) * COUNT_OF(orders) * 4 * 2; n++) {
		struct jit_insn branch = blank(JIT_BRANCH, 8);
		uint32_t rest = n / 2 / 4;

		m.function.passes = pass_sets[n & 1];
		branch.sub = JIT_EQ;
		branch.a = 4;
		branch.imm = 5;
		make_branch(&m, blank(JIT_NOP, 8), branch, fills[rest / COUNT_OF(orders)]);
		for (int i = 1; i < 4; i++)
			m.blocks[i].align = aligns[n / 2 % 4];
		finish_in_order(&m, rest % COUNT_OF(orders));
		state_of(&m)->r[4] = 5;
		assert_int_equal(run(&m), 1);
		state_of(&m)->r[4] = 6;
		assert_int_equal(run(&m), 0);
	}
	machine_release(&m);
}

/* Blocks that only jump on are left out, and endless ones are not. */
static void threads(void **state)
{
	struct machine m;
	struct jit_insn branch = blank(JIT_BRANCH, 8);
	size_t size;

	(void)state;
	machine_make(&m);
	for (int hops = 0; hops < 2; hops++) {
		start(&m);
		branch.a = 4;
		branch.sub = JIT_EQ;
		add(&m, branch);
		last_block(&m)->taken = hops ? 3 : 2;
		last_block(&m)->next = 1;
		start_block(&m);
		set_r0(&m, 7);
		add(&m, blank(JIT_JUMP, 8));
		last_block(&m)->next = 5;
		start_block(&m);
		set_r0(&m, 8);
		add(&m, blank(JIT_JUMP, 8));
		last_block(&m)->next = 5;
		if (hops) {
			start_block(&m); /* 3 -> 4 -> 2 */
			add(&m, blank(JIT_JUMP, 8));
			last_block(&m)->next = 4;
			start_block(&m);
			add(&m, blank(JIT_JUMP, 8));
			last_block(&m)->next = 2;
		} else {
			start_block(&m); /* goes round for ever, if anybody came */
			add(&m, blank(JIT_JUMP, 8));
			last_block(&m)->next = 4;
			start_block(&m);
			add(&m, blank(JIT_JUMP, 8));
			last_block(&m)->next = 3;
		}
		start_block(&m);
		finish(&m);
		state_of(&m)->r[4] = 0;
		assert_int_equal(run(&m), 8);
		state_of(&m)->r[4] = 1;
		assert_int_equal(run(&m), 7);
		if (hops)
			assert_true(m.code.size < size);
		size = m.code.size;
	}
	machine_release(&m);
}

/* if (r4 == 5) { r5 = n; r0 = 1 } else { r5 = 2; r0 = 1 }: one block if n is 2. */
static size_t size_of_twins(struct machine *m, uint64_t n)
{
	struct jit_insn branch = blank(JIT_BRANCH, 8), set = blank(JIT_MOV, 8);

	branch.a = 4;
	branch.imm = 5;
	set.dst = 5;
	start(m);
	add(m, branch);
	last_block(m)->taken = 1;
	last_block(m)->next = 2;
	for (uint64_t i = 1; i < 3; i++) {
		start_block(m);
		set.imm = i == 1 ? n : 2;
		add(m, set);
		add(m, blank(JIT_JUMP, 8));
		last_block(m)->next = 3;
	}
	start_block(m);
	finish(m);
	for (uint64_t a = 4; a < 7; a++) {
		state_of(m)->r[4] = a;
		run(m);
		assert_int_equal(state_of(m)->r[5], a == 5 ? n : 2);
	}
	return m->code.size;
}

static void twins(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	assert_true(size_of_twins(&m, 2) < size_of_twins(&m, 3));
	machine_release(&m);
}

static void switches(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (int n = 0; n < 4; n++) {
		struct jit_insn insn = blank(JIT_SWITCH, n & 1 ? 4 : 8);

		insn.a = 4;
		insn.off = n & 2 ? -3 : 0;
		insn.imm = 4;
		insn.target = 1;
		start(&m);
		add(&m, insn);
		last_block(&m)->next = 1;
		for (unsigned int i = 0; i < 3; i++) {
			start_block(&m);
			set_r0(&m, 100 + i);
			add(&m, blank(JIT_JUMP, 8));
			last_block(&m)->next = 4;
		}
		start_block(&m);
		m.targets[1] = 2;
		m.targets[2] = 3;
		m.targets[3] = 1;
		m.targets[4] = 2;
		finish(&m);
		for (int64_t i = -10; i < 10; i++) {
			static const uint64_t expected[] = { 101, 102, 100, 101 };
			uint64_t index = n & 1 ? (uint32_t)i - (uint32_t)insn.off : i - insn.off;

			state_of(&m)->r[4] = n & 1 ? (uint32_t)i | 5ull << 32 : (uint64_t)i;
			assert_int_equal(run(&m), index < 4 ? expected[index] : 100);
		}
	}
	machine_release(&m);
}

/* `r = 1; if (...) goto 2; r = 0; 2:` and its kin become one instruction without a branch; what
 * looks similar stays as it is. */
static void choices(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * 3 * 3 * 11; n++) {
		struct jit_insn branch = blank(JIT_BRANCH, 8), set = blank(JIT_MOV, 8);
		const unsigned int first = n / 4 % 3, second = n / 12 % 3;
		const bool taken_sets = n & 1;

		branch.sub = n / 36;
		branch.a = 4;
		branch.b = 6;
		set.dst = n & 2 ? 4 : 9; /* r4 is compared, too */
		start(&m);
		set.imm = first;
		add(&m, set);
		add(&m, branch);
		last_block(&m)->taken = taken_sets ? 1 : 2;
		last_block(&m)->next = taken_sets ? 2 : 1;
		start_block(&m);
		set.imm = second;
		add(&m, set);
		add(&m, blank(JIT_JUMP, 8));
		last_block(&m)->next = 2;
		start_block(&m);
		finish(&m);
		for (size_t i = 0; i < COUNT_OF(edges) * COUNT_OF(edges); i++) {
			struct state *s = state_of(&m);
			uint64_t a = edges[i / COUNT_OF(edges)], b = edges[i % COUNT_OF(edges)];
			bool taken = holds(branch.sub, 8, n & 2 ? first : a, b);

			scramble(s);
			s->r[4] = a;
			s->r[6] = b;
			run(&m);
			assert_int_equal(s->r[set.dst], taken == taken_sets ? second : first);
		}
	}
	machine_release(&m);
}

/* The sum of 1 to n: a loop with the branch at its end. */
static void loops(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (unsigned int fill = 0; fill < 30; fill++) {
		struct jit_insn sum = blank(JIT_ADD, 8), less = blank(JIT_SUB, 8);
		struct jit_insn branch = blank(JIT_BRANCH, 8);

		start(&m);
		set_r0(&m, 0);
		add(&m, blank(JIT_JUMP, 8));
		last_block(&m)->next = 1;
		start_block(&m);
		last_block(&m)->align = 64;
		sum.dst = sum.a = 0;
		sum.b = less.dst = less.a = branch.a = 4;
		less.imm = 1;
		branch.sub = JIT_NE;
		add(&m, sum);
		filler(&m, fill);
		add(&m, less);
		add(&m, branch);
		last_block(&m)->taken = 1;
		last_block(&m)->next = 2;
		start_block(&m);
		finish(&m);
		state_of(&m)->r[4] = 1000;
		assert_int_equal(run(&m), 500500);
	}
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions),  cmocka_unit_test(memory_operands),
		cmocka_unit_test(known_bytes), cmocka_unit_test(after_arithmetic),
		cmocka_unit_test(distances),   cmocka_unit_test(threads),
		cmocka_unit_test(switches),    cmocka_unit_test(choices),
		cmocka_unit_test(twins),       cmocka_unit_test(loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
