// SPDX-License-Identifier: BSD-2-Clause
/* Arithmetic of the arm64 back end: each operation, width and form against C. */
#include "arm64_fixture.h"

static uint64_t divide(uint64_t a, uint64_t b, bool is_signed, bool wide)
{
	if (!b)
		return 0;
	if (!is_signed)
		return a / b;
	if (wide)
		return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
	return (uint32_t)((int64_t)(int32_t)a / (int32_t)b);
}

static uint64_t modulo(uint64_t a, uint64_t b, bool is_signed, bool wide)
{
	if (!b)
		return a;
	if (!is_signed)
		return a % b;
	if (wide)
		return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
	return (uint32_t)((int64_t)(int32_t)a % (int32_t)b);
}

static uint64_t model(const struct jit_insn *in, uint64_t a, uint64_t b)
{
	const bool wide = in->width == 8, is_signed = in->flags & JIT_FLAG_SIGNED;
	const int mask = wide ? 63 : 31;
	uint64_t result = 0;

	a = zero_extend(a, in->width);
	b = zero_extend(b, in->width);
	switch (in->op) {
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
		result = divide(a, b, is_signed, wide);
		break;
	case JIT_MOD:
		result = modulo(a, b, is_signed, wide);
		break;
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
		result = a << (b & mask);
		break;
	case JIT_RSH:
		result = a >> (b & mask);
		break;
	case JIT_ARSH:
		result = wide ? (int64_t)a >> (b & mask) : (int32_t)a >> (b & mask);
		break;
	case JIT_NEG:
		result = -a;
		break;
	default:
		fail();
	}
	return zero_extend(result, in->width);
}

/* Which registers the operands are: all ways in which they can be the same. */
static const struct {
	uint8_t dst, a, b;
} shapes[] = {
	{ 2, 3, 4 }, { 2, 2, 3 }, { 2, 3, 2 }, { 2, 2, 2 }, { 0, 1, 6 },
	{ 6, 0, 1 }, { 1, 0, 9 }, { 0, 0, 7 }, { 8, 5, 5 }, { 7, 10, 2 },
};
#define NSHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void compile_one(struct made *made, struct jit_insn in)
{
	start(made);
	block(made);
	add_load_state(made);
	add(made, in);
	add_store_state(made);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
}

/* Runs what compile_one() made: @want in dst, all else as it was. */
static void run_one(struct made *made, const struct jit_insn *in, const struct state *before,
		    uint64_t want)
{
	struct state now = *before, after = *before;

	after.r[in->dst] = want;
	enter(made, (uintptr_t)&now, 0);
	if (!memcmp(&now, &after, sizeof(now)))
		return;
	for (int r = 0; r < REGISTERS; r++)
		if (now.r[r] != after.r[r])
			print_error("r%d is 0x%llx, not 0x%llx\n", r, (unsigned long long)now.r[r],
				    (unsigned long long)after.r[r]);
	fail_msg("op %u width %u size %u flags %u r%u = r%u, r%u or 0x%llx; passes %x", in->op,
		 in->width, in->size, in->flags, in->dst, in->a, in->b, (unsigned long long)in->imm,
		 made->passes);
}

static void fill(struct state *state)
{
	for (int r = 0; r < REGISTERS; r++)
		state->r[r] = 0x1111111111111111ull * (r + 1);
}

static void check_registers(struct made *made, struct jit_insn in)
{
	struct state state;

	compile_one(made, in);
	if (!RUNS || in.a == 10 || in.b == 10)
		return;
	for (size_t i = 0; i < NEDGES; i++)
		for (size_t k = 0; k < NEDGES; k++) {
			fill(&state);
			state.r[in.a] = edges[i];
			state.r[in.b] = edges[k];
			run_one(made, &in, &state, model(&in, state.r[in.a], state.r[in.b]));
		}
}

static void check_constant(struct made *made, struct jit_insn in)
{
	struct state state;

	compile_one(made, in);
	if (!RUNS || in.a == 10)
		return;
	for (size_t i = 0; i < NEDGES; i++) {
		fill(&state);
		state.r[in.a] = edges[i];
		run_one(made, &in, &state, model(&in, edges[i], in.imm));
	}
}

/* Constants of all encodings: short, negative, shifted, masks, none. */
static const uint64_t constants[] = {
	0,
	1,
	2,
	3,
	5,
	6,
	7,
	8,
	9,
	10,
	13,
	31,
	32,
	33,
	63,
	64,
	100,
	255,
	641,
	0xfff,
	0x1000,
	0x1001,
	0xff000,
	0xffffff,
	0x1000000,
	0x12345,
	0x01000193,
	0x7fffffff,
	0x80000000,
	0xffffffff,
	0xf0f0f0f0,
	0xffff0000,
	0x100000000,
	0x100000001b3,
	0x5555555555555555,
	0x123456789abcdef0,
	0x7fffffffffffffff,
	0x8000000000000000,
	-1ull,
	-2ull,
	-3ull,
	-7ull,
	-8ull,
	-10ull,
	-0xfffull,
	-0x1000ull,
	-0x1001ull,
	-0x12345ull,
	-0x80000000ull,
	0xffffffff80000000,
	0xffff0000ffff0000,
};
#define NCONSTANTS (sizeof(constants) / sizeof(constants[0]))

static void check_op(enum jit_op op, bool is_signed, uint32_t passes)
{
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(op);

	made->passes = passes;
	in.flags = is_signed ? JIT_FLAG_SIGNED : 0;
	for (in.width = 4; in.width <= 8; in.width += 4) {
		for (size_t i = 0; i < NSHAPES; i++) {
			in.dst = shapes[i].dst;
			in.a = shapes[i].a;
			in.b = shapes[i].b;
			in.imm = 0;
			check_registers(made, in);
			in.b = JIT_NONE;
			for (size_t k = i % 3; k < NCONSTANTS; k += i ? 3 : 1) {
				in.imm = zero_extend(constants[k], in.width);
				check_constant(made, in);
			}
		}
	}
	unmake(made);
}

static void check_all_ops(uint32_t passes)
{
	static const uint8_t ops[] = { JIT_ADD, JIT_SUB, JIT_MUL, JIT_OR,  JIT_AND,
				       JIT_XOR, JIT_LSH, JIT_RSH, JIT_ARSH };

	for (size_t i = 0; i < sizeof(ops); i++)
		check_op(ops[i], false, passes);
	for (int is_signed = 0; is_signed < 2; is_signed++) {
		check_op(JIT_DIV, is_signed, passes);
		check_op(JIT_MOD, is_signed, passes);
	}
}

static void test_operations(void **state)
{
	(void)state;
	check_all_ops(VM_PASS_ALL);
}

static void test_operations_without_passes(void **state)
{
	(void)state;
	check_all_ops(0);
}

/* r10 as an operand is the end of the frame: its difference to itself is known. */
static void test_frame_as_operand(void **unused)
{
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_SUB);
	struct state state;

	(void)unused;
	for (int width = 4; width <= 8; width += 4) {
		in.width = width;
		in.dst = 3, in.a = in.b = 10;
		compile_one(made, in);
		fill(&state);
		if (RUNS)
			run_one(made, &in, &state, 0);
	}
	start(made);
	block(made);
	in = blank(JIT_ADD);
	in.dst = 2, in.a = 10, in.imm = -24;
	add(made, in);
	in = blank(JIT_MOV);
	in.dst = 0, in.a = 10;
	add(made, in);
	in = blank(JIT_SUB);
	in.dst = in.a = 0, in.b = 2;
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
	if (RUNS)
		assert_int_equal(enter(made, 0, 0), 24);
	unmake(made);
}

/* NEG, MOV, EXT and BSWAP: one operand. */
static uint64_t model_one(const struct jit_insn *in, uint64_t a)
{
	switch (in->op) {
	case JIT_NEG:
		return model(in, a, 0);
	case JIT_MOV:
		return zero_extend(a, in->width);
	case JIT_EXT:
		if (in->flags & JIT_FLAG_SIGNED)
			return zero_extend(sign_extend(a, in->size), in->width);
		return zero_extend(a, in->size);
	default:
		assert_int_equal(in->op, JIT_BSWAP);
		return __builtin_bswap64(a) >> (64 - 8 * in->size);
	}
}

static void check_one_operand(struct made *made, struct jit_insn in)
{
	struct state state;

	for (size_t i = 0; i < NSHAPES; i++) {
		in.dst = shapes[i].dst;
		in.a = shapes[i].a;
		compile_one(made, in);
		for (size_t k = 0; RUNS && in.a != 10 && k < NEDGES; k++) {
			fill(&state);
			state.r[in.a] = edges[k];
			run_one(made, &in, &state, model_one(&in, edges[k]));
		}
	}
}

static void test_one_operand(void **state)
{
	struct made *made = make(1 << 16);
	struct jit_insn in;

	(void)state;
	for (int width = 4; width <= 8; width += 4) {
		in = blank(JIT_NEG);
		in.width = width;
		check_one_operand(made, in);
		in.op = JIT_MOV;
		check_one_operand(made, in);
		in.op = JIT_EXT;
		for (int size = 1; size <= width; size *= 2)
			for (int flags = 0; flags <= JIT_FLAG_SIGNED; flags++) {
				in.size = size;
				in.flags = flags;
				check_one_operand(made, in);
			}
	}
	in = blank(JIT_BSWAP);
	for (in.size = 2; in.size <= 8; in.size *= 2)
		check_one_operand(made, in);
	unmake(made);
}

static void test_constants(void **unused)
{
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_MOV);
	struct state state;

	(void)unused;
	for (int pass = 0; pass < 2; pass++) {
		made->passes = pass ? 0 : VM_PASS_ALL;
		for (int width = 4; width <= 8; width += 4)
			for (size_t k = 0; k < NCONSTANTS; k++) {
				in.width = width;
				in.dst = k % REGISTERS;
				in.imm = zero_extend(constants[k], width);
				compile_one(made, in);
				fill(&state);
				if (RUNS)
					run_one(made, &in, &state, in.imm);
			}
	}
	unmake(made);
}

static void test_lea(void **unused)
{
	static const int32_t offsets[] = { 0, 1, -1, 4095, 4096, -4097, 0x123456, INT32_MAX };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_LEA);
	struct state state;
	uint64_t want;

	(void)unused;
	for (int n = 0; n < 2 * 4 * 8 * 3; n++) {
		in.width = n & 1 ? 4 : 8;
		in.scale = n >> 1 & 3;
		in.off = offsets[n >> 3 & 7];
		in.base = 3;
		in.index = n / 64 == 0 ? JIT_NONE : (n / 64 == 1 ? 3 : 7);
		in.dst = n & 1 ? 3 : 6;
		compile_one(made, in);
		fill(&state);
		want = state.r[3] + in.off;
		if (in.index != JIT_NONE)
			want += state.r[in.index] << in.scale;
		if (RUNS)
			run_one(made, &in, &state, zero_extend(want, in.width));
	}
	unmake(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_operations_without_passes),
		cmocka_unit_test(test_frame_as_operand),
		cmocka_unit_test(test_one_operand),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_lea),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
