// SPDX-License-Identifier: BSD-2-Clause
/* Calls of the arm64 back end, what ends them, and doubles. */
#include "arm64_fixture.h"

#include <math.h>

static void end_with(struct made *made, uint64_t result)
{
	block(made);
	add_move(made, 0, result);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
}

static uint64_t mixed(uint64_t a, double b, int32_t c, float d, uint8_t e)
{
	return a + (uint64_t)b * 10 + c * 100 + (uint64_t)d * 1000 + e * 10000;
}

static double halved(double a)
{
	return a / 2;
}

static int8_t narrow(int8_t a)
{
	return a;
}

static uint64_t with_context(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, void *f)
{
	return a + b * 10 + c * 100 + d * 1000 + e * 10000 + *(uint64_t *)f;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void call_native(struct made *made, const struct vm_native *native, uint32_t passes)
{
	struct jit_insn in = blank(JIT_CALL_C);

	made->image.natives = native;
	made->image.nnatives = 1;
	made->passes = passes;
	in.size = 5;
	start(made);
	block(made);
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
}

static uint64_t enter_five(struct made *made, const uint64_t args[5])
{
	uint64_t (*call)(void *code, const uint64_t *args);
	void *at = made->code.bytes + made->enter;

	memcpy(&call, &at, sizeof(call));
	return call(made->code.bytes + made->ranges[0].first, args);
}

static void test_classes(void **state)
{
	const struct vm_native mix = {
		"mixed", (void *)mixed, VM_U64, 5, { VM_U64, VM_DOUBLE, VM_S32, VM_FLOAT, VM_U8 }
	};
	const struct vm_native half = { "halved", (void *)halved, VM_DOUBLE, 1, { VM_DOUBLE } };
	const struct vm_native byte = { "narrow", (void *)narrow, VM_S8, 1, { VM_S8 } };
	const struct vm_native context = { .name = "with_context",
					   .function = (void *)with_context,
					   .with_context = true };
	const float three = 3;
	uint64_t args[5] = { 1, bits_of(2.0), (uint64_t)-3, 0, 0xffffff04 }, number = 7;
	struct made *made = make(1 << 16);

	(void)state;
	memcpy(&args[3], &three, sizeof(three));
	made->vm.context = &number;
	for (int pass = 0; pass < 2; pass++) {
		const uint32_t passes = pass ? 0 : VM_PASS_ALL;

		call_native(made, &mix, passes);
		if (RUNS)
			assert_int_equal(enter_five(made, args), 1 + 20 - 300 + 3000 + 40000);
		call_native(made, &half, passes);
		if (RUNS)
			assert_int_equal(enter(made, bits_of(5), 0), bits_of(2.5));
		call_native(made, &byte, passes);
		if (RUNS)
			assert_int_equal(enter(made, 0x1234f0, 0), (uint64_t)-16);
		call_native(made, &context, passes);
		if (RUNS)
			assert_int_equal(enter(made, 1, 2), 1 + 20 + 300 + 4000 + 50000 + 7);
	}
	unmake(made);
}

/* r0 in x0 or not: results that are needed while r1 is, in loops, and by the next call. */
static uint64_t next(uint64_t a, uint64_t b)
{
	return 3 * a + b;
}

static void test_results(void **state)
{
	const struct vm_native native = { "next", (void *)next, VM_U64, 2, { VM_U64, VM_U64 } };
	struct made *made = make(1 << 16);
	struct jit_insn in, call = blank(JIT_CALL_C);
	uint64_t want = 5;

	(void)state;
	made->image.natives = &native;
	made->image.nnatives = 1;
	call.size = 2;
	for (int pass = 0; pass < 2; pass++) {
		made->passes = pass ? 0 : VM_PASS_ALL;
		start(made);
		block(made);
		in = blank(JIT_MOV);
		in.dst = 6, in.a = 1;
		add(made, in);
		add_move(made, 0, 5);
		end(made, blank(JIT_JUMP), JIT_NOWHERE, 1);
		block(made);
		in.dst = 1, in.a = 0;
		add(made, in);
		in.dst = 2, in.a = 6;
		add(made, in);
		add(made, call);
		in = blank(JIT_ADD);
		in.dst = 1, in.a = 0, in.imm = 1; /* r1 beside r0 */
		add(made, in);
		in.op = JIT_XOR, in.dst = in.a = 0, in.b = 1;
		add(made, in);
		in = blank(JIT_SUB);
		in.dst = in.a = 6, in.imm = 1;
		add(made, in);
		in = blank(JIT_BRANCH);
		in.sub = JIT_NE, in.a = 6;
		end(made, in, 1, 2);
		block(made);
		end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
		compile(made);
		if (RUNS) {
			want = 5;
			for (uint64_t i = 9; i > 0; i--) {
				want = next(want, i);
				want ^= want + 1;
			}
			assert_int_equal(enter(made, 9, 0), want);
		}
	}
	unmake(made);
}

static void *callx_target(struct vm *vm, uint64_t target)
{
	(void)vm;
	return (void *)target;
}

/* Recursive, called before and after it is there; and by its address. */
static void test_local_calls(void **state)
{
	struct made *made = make(1 << 16);
	struct jit_insn in;

	(void)state;
	made->runtime.callx_target = callx_target;
	start(made);
	block(made); /* main(a, b): first(a) + (*second)(b) */
	in = blank(JIT_MOV);
	in.dst = 6, in.a = 2;
	add(made, in);
	in = blank(JIT_CALL_LOCAL);
	in.target = 1, in.size = 1;
	add(made, in);
	in = blank(JIT_MOV);
	in.dst = 7, in.a = 0;
	add(made, in);
	in.dst = 1, in.a = 6;
	add(made, in);
	in = blank(JIT_CODE);
	in.dst = 3, in.target = 2;
	add(made, in);
	in = blank(JIT_CALLX);
	in.a = 3, in.size = 1;
	add(made, in);
	in = blank(JIT_ADD);
	in.dst = in.a = 0, in.b = 7;
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	assert_int_equal(try_compile(made, 0), 0);
	made->function.ninsns = made->function.nblocks = 0;
	block(made); /* first(n): n ? n + first(n - 1) : 0 */
	in = blank(JIT_BRANCH);
	in.sub = JIT_NE, in.a = 1;
	end(made, in, 2, 1);
	end_with(made, 0);
	block(made);
	in = blank(JIT_MOV);
	in.dst = 6, in.a = 1;
	add(made, in);
	in = blank(JIT_SUB);
	in.dst = in.a = 1, in.imm = 1;
	add(made, in);
	in = blank(JIT_CALL_LOCAL);
	in.target = 1, in.size = 1;
	add(made, in);
	in = blank(JIT_ADD);
	in.dst = in.a = 0, in.b = 6;
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	assert_int_equal(try_compile(made, 1), 0);
	made->function.ninsns = made->function.nblocks = 0;
	block(made); /* second(n): n * 1000 */
	in = blank(JIT_MUL);
	in.dst = 0, in.a = 1, in.imm = 1000;
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	assert_int_equal(try_compile(made, 2), 0);
	finish(made);
	if (RUNS)
		assert_int_equal(enter(made, 10, 7), 55 + 7000);
	unmake(made);
}

/* ---- what ends a call: none of them returns ---- */
static jmp_buf back;
static int ended;

static void overflow(struct vm *vm) __attribute__((noreturn));
static void overflow(struct vm *vm)
{
	(void)vm;
	ended = 1;
	longjmp(back, 1);
}

static void spent(struct vm *vm) __attribute__((noreturn));
static void spent(struct vm *vm)
{
	(void)vm;
	ended = 2;
	longjmp(back, 1);
}

static __thread uintptr_t limit;

/* f(n): n ? f(n - 1) + 1 : 0 */
static void make_recursive(struct made *made)
{
	struct jit_insn in;

	start(made);
	block(made);
	in = blank(JIT_BRANCH);
	in.sub = JIT_NE, in.a = 1;
	end(made, in, 2, 1);
	end_with(made, 0);
	block(made);
	in = blank(JIT_SUB);
	in.dst = in.a = 1, in.imm = 1;
	add(made, in);
	in = blank(JIT_CALL_LOCAL);
	in.size = 1;
	add(made, in);
	in = blank(JIT_ADD);
	in.dst = in.a = 0, in.imm = 1;
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
}

static void test_stack_limit(void **state)
{
	struct made *made = make(1 << 16);

	(void)state;
	made->runtime.overflow = overflow;
	made->runtime.limit_offset = (char *)&limit - (char *)__builtin_thread_pointer();
	made->function.recursive = true;
	make_recursive(made);
	limit = (uintptr_t)__builtin_frame_address(0) - 65536;
	ended = 0;
	if (RUNS) {
		assert_int_equal(enter(made, 1000, 0), 1000);
		if (!setjmp(back))
			enter(made, 100000, 0);
		assert_int_equal(ended, 1);
	}
	unmake(made);
}

static void test_budget(void **state)
{
	static int64_t budget;
	struct made *made = make(1 << 16);

	(void)state;
	made->runtime.has_budget = true;
	made->runtime.budget = &budget;
	made->runtime.spent = spent;
	made->function.recursive = false;
	for (int pass = 0; pass < 2; pass++) {
		made->passes = pass ? 0 : VM_PASS_ALL;
		make_recursive(made); /* two blocks a call */
		ended = 0;
		budget = 22;
		if (!RUNS)
			continue;
		assert_int_equal(enter(made, 10, 0), 10);
		assert_int_equal(budget, 0);
		budget = 21;
		if (!setjmp(back))
			enter(made, 10, 0);
		assert_int_equal(ended, 2);
		assert_int_equal(budget, -1);
	}
	unmake(made);
}

static uint64_t checked_call(struct vm *vm, uint32_t native, const uint64_t *args)
{
	(void)vm;
	return native * 1000000 + args[0] + args[1] * 10 + args[2] * 100 + args[3] * 1000 +
	       args[4] * 10000;
}

static void test_checked_calls(void **state)
{
	const struct vm_native natives[4] = { { .name = "n" } };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_CALL_C);

	(void)state;
	made->image.natives = natives;
	made->runtime.checked_call = checked_call;
	made->checked = true;
	in.size = 5, in.target = 3;
	start(made);
	block(made);
	add(made, in);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
	if (RUNS)
		assert_int_equal(enter(made, 1, 2), 3000000 + 1 + 20 + 300 + 4000 + 50000);
	unmake(made);
}

/* ---- doubles ---- */

static uint64_t model_f64(enum vm_intrinsic operation, double a, double b, uint64_t bits)
{
	switch (operation) {
	case VM_F64_ADD:
		return bits_of(a + b);
	case VM_F64_SUB:
		return bits_of(a - b);
	case VM_F64_MUL:
		return bits_of(a * b);
	case VM_F64_DIV:
		return bits_of(a / b);
	case VM_F64_NEG:
		return bits_of(-a);
	case VM_F64_LT:
		return a < b;
	case VM_F64_LE:
		return a <= b;
	case VM_F64_GT:
		return a > b;
	case VM_F64_GE:
		return a >= b;
	case VM_F64_EQ:
		return a == b;
	case VM_F64_NE:
		return a != b;
	case VM_F64_FROM_S64:
		return bits_of((int64_t)bits);
	case VM_F64_FROM_U64:
		return bits_of(bits);
	default:
		if (isnan(a))
			return 0;
		if (a >= 0x1p63)
			return INT64_MAX;
		return a < -0x1p63 ? INT64_MIN : (uint64_t)(int64_t)a;
	}
}

static void test_doubles(void **state)
{
	static const double values[] = { 0.0, -0.0,   1.5,     -2.75, 1e300,  -1e300, INFINITY,
					 NAN, 0x1p63, -0x1p63, 0.1,   5e-324, 3e18,   -3e18 };
	const size_t n = sizeof(values) / sizeof(values[0]);
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_F64);

	(void)state;
	for (int operation = VM_F64_ADD; operation <= VM_F64_TO_S64; operation++) {
		in.sub = operation;
		start(made);
		block(made);
		add(made, in);
		end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
		compile(made);
		for (size_t i = 0; RUNS && i < n * n; i++) {
			const double a = values[i / n], b = values[i % n];
			uint64_t want = model_f64(operation, a, b, bits_of(a));
			uint64_t got = enter(made, bits_of(a), bits_of(b));
			double number;

			memcpy(&number, &want, sizeof(number));
			if (operation < VM_F64_NEG && isnan(number))
				memcpy(&number, &got, sizeof(number)), assert_true(isnan(number));
			else
				assert_int_equal(got, want);
		}
	}
	unmake(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),     cmocka_unit_test(test_results),
		cmocka_unit_test(test_local_calls), cmocka_unit_test(test_stack_limit),
		cmocka_unit_test(test_budget),      cmocka_unit_test(test_checked_calls),
		cmocka_unit_test(test_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
