// SPDX-License-Identifier: BSD-2-Clause
/* Every operation on registers, in every form and with edge operands, against the same in C. */
#include "x86_fixture.h"

#include "vm/jit/x86.h"

static uint64_t divide(uint64_t a, uint64_t b, unsigned int width, bool sign, bool modulo)
{
	uint64_t result;

	if (width == 4 && sign) {
		a = (int64_t)(int32_t)a;
		b = (int64_t)(int32_t)b;
	} else if (width == 4) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	if (!b)
		result = modulo ? a : 0;
	else if (sign && (int64_t)b == -1)
		result = modulo ? 0 : -a;
	else if (sign)
		result = modulo ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b;
	else
		result = modulo ? a % b : a / b;
	return width == 4 ? (uint32_t)result : result;
}

static uint64_t extend(const struct jit_insn *insn, uint64_t a)
{
	const bool sign = insn->flags & JIT_FLAG_SIGNED;

	switch (insn->size) {
	case 1:
		a = sign ? (uint64_t)(int8_t)a : (uint8_t)a;
		break;
	case 2:
		a = sign ? (uint64_t)(int16_t)a : (uint16_t)a;
		break;
	case 4:
		a = sign ? (uint64_t)(int32_t)a : (uint32_t)a;
		break;
	}
	return insn->width == 4 ? (uint32_t)a : a;
}

static uint64_t swap(const struct jit_insn *insn, uint64_t a)
{
	switch (insn->size) {
	case 2:
		return __builtin_bswap16(a);
	case 4:
		return __builtin_bswap32(a);
	default:
		return __builtin_bswap64(a);
	}
}

static uint64_t model(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	const bool sign = insn->flags & JIT_FLAG_SIGNED, wide = insn->width == 8;
	uint64_t result = 0;

	switch ((enum jit_op)insn->op) {
	case JIT_ADD:
		result = a + b;
		break;
	case JIT_SUB:
		result = a - b;
		break;
	case JIT_MUL:
		result = a * b;
		break;
	case JIT_DIV:
	case JIT_MOD:
		return divide(a, b, insn->width, sign, insn->op == JIT_MOD);
	case JIT_OR:
		result = a | b;
		break;
	case JIT_AND:
		result = a & b;
		break;
	case JIT_XOR:
		result = a ^ b;
		break;
	case JIT_LSH:
		result = wide ? a << (b & 63) : a << (b & 31);
		break;
	case JIT_RSH:
		result = wide ? a >> (b & 63) : (uint32_t)a >> (b & 31);
		break;
	case JIT_ARSH:
		result = wide ? (uint64_t)((int64_t)a >> (b & 63))
			      : (uint64_t)((int32_t)a >> (b & 31));
		break;
	case JIT_NEG:
		result = -a;
		break;
	case JIT_MOV:
		result = insn->a == JIT_NONE ? insn->imm : a;
		break;
	case JIT_EXT:
		return extend(insn, a);
	case JIT_BSWAP:
		return swap(insn, a);
	default:
		fail();
	}
	return wide ? result : (uint32_t)result;
}

static uint64_t operand(const struct state *state, uint8_t reg, uint64_t otherwise)
{
	return reg == JIT_NONE ? otherwise : state->r[reg];
}

/* Compiles the instruction and runs it with pairs of edge operands. */
static void try(struct machine *m, struct jit_insn insn)
{
	struct state before, *state = state_of(m);

	start(m);
	add(m, insn);
	finish(m);
	for (size_t i = 0; i < COUNT_OF(edges); i++) {
		for (size_t j = 0; j < COUNT_OF(edges); j++) {
			uint64_t expected;

			scramble(state);
			if (insn.a < 10)
				state->r[insn.a] = edges[i];
			if (insn.b < 10)
				state->r[insn.b] = edges[j];
			before = *state;
			run(m);
			before.r[10] = state->memory[0];
			expected = model(&insn, operand(&before, insn.a, 0),
					 operand(&before, insn.b, insn.imm));
			before.r[insn.dst] = expected;
			for (uint8_t r = 0; r < 11; r++) {
				if (!(insn.live >> r & 1) || state->r[r] == before.r[r])
					continue;
				fail_msg(
					"op %u width %u size %u flags %u r%u = r%u, r%u imm 0x%lx, "
					"passes 0x%x, operands 0x%lx 0x%lx: r%u is 0x%lx, not "
					"0x%lx",
					insn.op, insn.width, insn.size, insn.flags, insn.dst,
					insn.a, insn.b, insn.imm, m->function.passes, edges[i],
					edges[j], r, state->r[r], before.r[r]);
			}
			if (insn.b >= 10)
				break;
		}
		if (insn.a >= 10)
			break;
	}
}

/* Those that differ for the back end: rax, arguments, rdx, rcx, r8, rbx, r13, r15. */
static const uint8_t few[] = { 0, 1, 3, 4, 6, 7 };

static const uint32_t pass_sets[] = {
	VM_PASS_ALL,
	VM_PASS_ALL & ~VM_PASS_SHORT,
	VM_PASS_ALL & ~(VM_PASS_SHIFT | VM_PASS_NARROW),
	VM_PASS_ALL & ~(VM_PASS_PROLOGUE | VM_PASS_DIVIDE),
};

/* ... on processors of all kinds, as far as this one can play them. */
static const uint32_t cpus[] = {
	X86_CPU_SLOW_DIVIDE,
	0,
	X86_CPU_SLOW_DIVIDE,
	0,
};

/* With the registers that are not needed afterwards known, too. */
static void try_liveness(struct machine *m, struct jit_insn insn)
{
	insn.live = ALL_LIVE;
	try(m, insn);
	insn.live = 1u << insn.dst | 1u << 10;
	try(m, insn);
}

static void try_registers(struct machine *m, struct jit_insn insn)
{
	for (size_t dst = 0; dst < COUNT_OF(few); dst++)
		for (size_t a = 0; a < COUNT_OF(few); a++)
			for (size_t b = 0; b < COUNT_OF(few); b++) {
				insn.dst = few[dst];
				insn.a = few[a];
				insn.b = few[b];
				try_liveness(m, insn);
			}
}

static void try_constants(struct machine *m, struct jit_insn insn)
{
	insn.b = JIT_NONE;
	for (size_t dst = 0; dst < COUNT_OF(few); dst++)
		for (size_t a = 0; a < COUNT_OF(few); a++)
			for (size_t i = 0; i < COUNT_OF(edges); i++) {
				insn.dst = few[dst];
				insn.a = few[a];
				insn.imm = insn.width == 4 ? (uint32_t)edges[i] : edges[i];
				try_liveness(m, insn);
			}
}

static void try_frame(struct machine *m, struct jit_insn insn)
{
	for (size_t dst = 0; dst < COUNT_OF(few); dst++) {
		insn.dst = few[dst];
		insn.a = 10;
		insn.b = JIT_NONE;
		insn.imm = 7;
		try(m, insn);
		insn.b = few[dst];
		try(m, insn);
		insn.a = few[dst];
		insn.b = 10;
		try(m, insn);
	}
}

static void binary(enum jit_op op, unsigned int flags)
{
	struct machine m;

	machine_make(&m);
	for (size_t p = 0; p < COUNT_OF(pass_sets); p++) {
		m.function.passes = pass_sets[p];
		m.code.cpu = (m.code.cpu & X86_CPU_BMI2) | cpus[p];
		for (unsigned int width = 4; width <= 8; width += 4) {
			struct jit_insn insn = blank(op, width);

			insn.flags = flags;
			try_registers(&m, insn);
			try_constants(&m, insn);
			try_frame(&m, insn);
		}
	}
	machine_release(&m);
}

static void sums(void **state)
{
	(void)state;
	binary(JIT_ADD, 0);
	binary(JIT_SUB, 0);
}

static void logic(void **state)
{
	(void)state;
	binary(JIT_OR, 0);
	binary(JIT_AND, 0);
	binary(JIT_XOR, 0);
}

static void shifts(void **state)
{
	(void)state;
	binary(JIT_LSH, 0);
	binary(JIT_RSH, 0);
	binary(JIT_ARSH, 0);
}

static void products(void **state)
{
	(void)state;
	binary(JIT_MUL, 0);
}

static void unsigned_division(void **state)
{
	(void)state;
	binary(JIT_DIV, 0);
	binary(JIT_MOD, 0);
}

static void signed_division(void **state)
{
	(void)state;
	binary(JIT_DIV, JIT_FLAG_SIGNED);
	binary(JIT_MOD, JIT_FLAG_SIGNED);
}

static void try_unary(struct machine *m, struct jit_insn insn)
{
	for (size_t dst = 0; dst < COUNT_OF(few); dst++) {
		insn.dst = few[dst];
		for (size_t a = 0; a < COUNT_OF(few); a++) {
			insn.a = few[a];
			try(m, insn);
		}
		insn.a = 10;
		try(m, insn);
	}
}

/* Negation, extensions, swaps, moves. */
static void unary(void **state)
{
	static const uint8_t sizes[] = { 1, 2, 4, 8 };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t p = 0; p < COUNT_OF(pass_sets); p++) {
		m.function.passes = pass_sets[p];
		for (unsigned int width = 4; width <= 8; width += 4) {
			try_unary(&m, blank(JIT_NEG, width));
			try_unary(&m, blank(JIT_MOV, width));
			for (size_t s = 0; s < COUNT_OF(sizes); s++) {
				struct jit_insn insn = blank(JIT_EXT, width);

				insn.size = sizes[s];
				if (insn.size <= width)
					try_unary(&m, insn);
				insn.flags = JIT_FLAG_SIGNED;
				if (insn.size <= width)
					try_unary(&m, insn);
				insn.flags = 0;
				insn.op = JIT_BSWAP;
				if (insn.size > 1 && width == 8)
					try_unary(&m, insn);
			}
		}
	}
	machine_release(&m);
}

static void constants(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t p = 0; p < COUNT_OF(pass_sets); p++) {
		m.function.passes = pass_sets[p];
		for (uint8_t dst = 0; dst < 10; dst++)
			for (size_t i = 0; i < COUNT_OF(edges); i++) {
				struct jit_insn insn = blank(JIT_MOV, 8);

				insn.dst = dst;
				insn.imm = edges[i];
				try(&m, insn);
			}
	}
	machine_release(&m);
}

static void addresses(void **state)
{
	static const int32_t offsets[] = { 0, 1, -1, 127, -129, 0x12345678 };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 7 * 7 * 8 * 4 * COUNT_OF(offsets) * 2; n++) {
		struct jit_insn insn = blank(JIT_LEA, n & 1 ? 4 : 8);
		struct state before, *s = state_of(&m);
		uint64_t expected;
		uint32_t rest = n / 2;

		insn.off = offsets[rest % COUNT_OF(offsets)];
		rest /= COUNT_OF(offsets);
		insn.scale = rest & 3;
		rest /= 4;
		insn.dst = few[rest % 6];
		rest /= 8;
		insn.base = rest % 7 == 6 ? 10 : few[rest % 7];
		rest /= 7;
		insn.index = rest % 7 == 6 ? JIT_NONE : few[rest % 7];
		if (insn.index == JIT_NONE)
			insn.scale = 0;
		start(&m);
		add(&m, insn);
		finish(&m);
		scramble(s);
		before = *s;
		run(&m);
		before.r[10] = s->memory[0];
		expected = before.r[insn.base] + insn.off +
			   (insn.index == JIT_NONE ? 0 : before.r[insn.index] << insn.scale);
		assert_int_equal(s->r[insn.dst], insn.width == 4 ? (uint32_t)expected : expected);
	}
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(logic),
		cmocka_unit_test(shifts),
		cmocka_unit_test(products),
		cmocka_unit_test(unsigned_division),
		cmocka_unit_test(signed_division),
		cmocka_unit_test(unary),
		cmocka_unit_test(constants),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
