// SPDX-License-Identifier: BSD-2-Clause
/* Calls of C by class, of functions, through registers, in checked mode; arithmetic on doubles. */
#include "x86_fixture.h"

#include <math.h>

static uint64_t bits(double value)
{
	uint64_t result;

	memcpy(&result, &value, sizeof(result));
	return result;
}

static uint64_t float_bits(float value)
{
	uint32_t result;

	memcpy(&result, &value, sizeof(result));
	return result;
}

/* ---- C functions ---- */

static uint64_t got[6];

static uint64_t keep(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, void *context)
{
	const uint64_t all[6] = { a, b, c, d, e, (uintptr_t)context };

	memcpy(got, all, sizeof(got));
	assert_int_equal((uintptr_t)__builtin_frame_address(0) & 15, 0);
	return 0xf0e0d0c0b0a09080;
}

static double mix(double a, uint64_t b, float c, uint32_t d, double e)
{
	return a + 10 * b + 100 * (double)c + 1000 * d + 10000 * e;
}

static float half(float a)
{
	return a / 2;
}

static int as_ints(uint8_t a, int8_t b, uint16_t c, int16_t d, int32_t e)
{
	/* The compiler trusts the caller with the extension to 32 bits. */
	volatile int all[] = { a, b, c, d, e };

	return all[0] * 3u + all[1] * 5u + all[2] * 7u + all[3] * 11u + all[4];
}

static void call_c(struct machine *m, const struct vm_native *native)
{
	m->image.natives = native;
	start(m);
	m->function.calls = true;
	add(m, blank(JIT_CALL_C, 8));
	finish(m);
}

static const uint32_t pass_sets[] = { VM_PASS_ALL, VM_PASS_ALL & ~VM_PASS_NEAR,
				      VM_PASS_ALL & ~VM_PASS_PROLOGUE };

static void integers(void **state)
{
	struct vm_native native = { .function = keep, .nargs = 5, .result = VM_U64 };
	struct machine m;

	(void)state;
	for (int i = 0; i < 5; i++)
		native.args[i] = VM_U64;
	machine_make(&m);
	m.vm.context = &m;
	for (size_t p = 0; p < COUNT_OF(pass_sets); p++) {
		struct state before, *s = state_of(&m);

		m.function.passes = pass_sets[p];
		for (int context = 0; context < 2; context++) {
			native.with_context = context;
			call_c(&m, &native);
			scramble(s);
			before = *s;
			run(&m);
			for (int i = 0; i < 5; i++)
				assert_int_equal(got[i], before.r[i + 1]);
			if (context)
				assert_int_equal(got[5], (uintptr_t)&m);
			assert_int_equal(s->r[0], 0xf0e0d0c0b0a09080);
			for (int i = 6; i < 10; i++)
				assert_int_equal(s->r[i], before.r[i]);
		}
	}
	machine_release(&m);
}

static void narrow_results(void **state)
{
	static const struct {
		enum vm_class class;
		uint64_t value;
	} results[] = {
		{ VM_VOID, 0 },
		{ VM_U8, 0x80 },
		{ VM_S8, (uint64_t)INT8_MIN },
		{ VM_U16, 0x9080 },
		{ VM_S16, 0xffffffffffff9080 },
		{ VM_U32, 0xb0a09080 },
		{ VM_S32, 0xffffffffb0a09080 },
		{ VM_S64, 0xf0e0d0c0b0a09080 },
		{ VM_POINTER, 0xf0e0d0c0b0a09080 },
	};
	struct vm_native native = { .function = keep };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t i = 0; i < COUNT_OF(results); i++) {
		native.result = results[i].class;
		call_c(&m, &native);
		run(&m);
		assert_int_equal(state_of(&m)->r[0], results[i].value);
	}
	machine_release(&m);
}

static void narrow_arguments(void **state)
{
	struct vm_native native = { .function = as_ints,
				    .nargs = 5,
				    .result = VM_S32,
				    .args = { VM_U8, VM_S8, VM_U16, VM_S16, VM_S32 } };
	struct machine m;
	struct state *s;

	(void)state;
	machine_make(&m);
	s = state_of(&m);
	for (size_t i = 0; i < COUNT_OF(edges); i++) {
		const uint64_t a = edges[i];
		const uint32_t expected = (uint8_t)a * 3 + (int8_t)a * 5 + (uint16_t)a * 7 +
					  (int16_t)a * 11 + (uint32_t)a;

		call_c(&m, &native);
		for (int r = 1; r < 6; r++)
			s->r[r] = a;
		run(&m);
		assert_int_equal(s->r[0], (uint64_t)(int32_t)expected);
	}
	machine_release(&m);
}

static void floating(void **state)
{
	struct vm_native n_mix = { .function = mix,
				   .nargs = 5,
				   .result = VM_DOUBLE,
				   .args = { VM_DOUBLE, VM_U64, VM_FLOAT, VM_U32, VM_DOUBLE } };
	struct vm_native n_half = {
		.function = half, .nargs = 1, .result = VM_FLOAT, .args = { VM_FLOAT }
	};
	struct machine m;
	struct state *s;

	(void)state;
	machine_make(&m);
	s = state_of(&m);
	for (size_t p = 0; p < COUNT_OF(pass_sets); p++) {
		m.function.passes = pass_sets[p];
		call_c(&m, &n_mix);
		s->r[1] = bits(1.5);
		s->r[2] = 2;
		s->r[3] = float_bits(3.25f) | 0xabcull << 40;
		s->r[4] = 4 | 1ull << 50;
		s->r[5] = bits(-5);
		run(&m);
		assert_int_equal(s->r[0], bits(mix(1.5, 2, 3.25f, 4, -5)));
		call_c(&m, &n_half);
		s->r[1] = float_bits(-7);
		run(&m);
		assert_int_equal(s->r[0], float_bits(-3.5f));
	}
	machine_release(&m);
}

/* ---- functions ---- */

/* Function 1 is r0 = r1 * 2; function 0 calls it, before or after it has been emitted. */
static void functions(void **state)
{
	struct machine m;
	struct jit_insn twice = blank(JIT_ADD, 8), call = blank(JIT_CALL_LOCAL, 8);
	struct jit_insn code = blank(JIT_CODE, 8);

	(void)state;
	machine_make(&m);
	twice.a = twice.b = 1;
	twice.dst = 0;
	call.target = code.target = 1;
	code.dst = 6;
	for (int forward = 0; forward < 2; forward++) {
		start(&m);
		for (int i = forward; i < forward + 2; i++) {
			struct jit_function *f = &m.function;

			f->index = (uint32_t)i % 2;
			if (f->index == 0) {
				size_t size = m.code.size;
				struct jit_range callee = m.functions[1];

				start(&m);
				m.code.size = size;
				m.functions[1] = callee;
				f->calls = true;
				add(&m, call);
				add(&m, code);
				store_all(&m);
			} else {
				f->ninsns = f->nblocks = f->norder = 0;
				f->written = 1;
				f->uses_frame = f->calls = false;
				start_block(&m);
				add(&m, twice);
			}
			add(&m, blank(JIT_EXIT, 8));
			assert_int_equal(jit_x86.function(&m.code, f), 0);
		}
		assert_int_equal(m.code.npatches, forward ? 0 : 2);
		assert_int_equal(jit_x86.finish(&m.code), 0);
		m.function.index = 0;
		state_of(&m)->r[1] = 21;
		assert_int_equal(run(&m), 42);
		assert_int_equal(state_of(&m)->r[6], (uintptr_t)m.memory + m.functions[1].first);
		assert_int_equal(m.functions[0].first & 15, 0);
		/* Nothing to save, no frame: an addition and a return. */
		assert_in_range(m.functions[1].end - m.functions[1].first, 1, 5);
	}
	machine_release(&m);
}

static uint64_t sought;
static struct vm *seeker;

static void *find(struct vm *vm, uint64_t target)
{
	seeker = vm;
	sought = target;
	return keep;
}

static void through_registers(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	m.runtime.callx_target = find;
	make_stubs(&m);
	for (uint8_t a = 0; a < 10; a++) {
		struct jit_insn insn = blank(JIT_CALLX, 8);
		struct state before, *s = state_of(&m);

		insn.a = a;
		start(&m);
		m.function.calls = true;
		add(&m, insn);
		finish(&m);
		scramble(s);
		before = *s;
		run(&m);
		for (int i = 0; i < 5; i++)
			assert_int_equal(got[i], before.r[i + 1]);
		assert_int_equal(sought, before.r[a]);
		assert_ptr_equal(seeker, &m.vm);
		assert_int_equal(s->r[0], 0xf0e0d0c0b0a09080);
	}
	machine_release(&m);
}

static struct machine *checked_machine;
static uint32_t checked_native;

static uint64_t call_checked(struct vm *vm, uint32_t native, const uint64_t *args)
{
	assert_ptr_equal(vm, &checked_machine->vm);
	assert_int_equal((uintptr_t)__builtin_frame_address(0) & 15, 0);
	checked_native = native;
	memcpy(got, args, 5 * sizeof(*args));
	return 77;
}

static void checked_calls(void **state)
{
	struct vm_native natives[3] = { { .nargs = 5 }, { .nargs = 5 }, { .nargs = 5 } };
	uint64_t stack[16], *top = stack + 16;
	struct machine m;

	(void)state;
	machine_make(&m);
	checked_machine = &m;
	m.runtime.checked_call = call_checked;
	m.runtime.stack = (uint64_t *)&top;
	m.runtime.stack_low = (uintptr_t)stack;
	m.image.natives = natives;
	m.function.checked = true;
	for (uint32_t i = 0; i < 3; i++) {
		struct jit_insn insn = blank(JIT_CALL_C, 8);
		struct state before, *s = state_of(&m);

		insn.target = i;
		start(&m);
		m.function.calls = true;
		add(&m, insn);
		finish(&m);
		scramble(s);
		before = *s;
		run(&m);
		assert_int_equal(checked_native, i);
		assert_memory_equal(got, &before.r[1], 5 * sizeof(uint64_t));
		assert_int_equal(s->r[0], 77);
		assert_memory_equal(&s->r[6], &before.r[6], 4 * sizeof(uint64_t));
		assert_ptr_equal(top, stack + 16);
	}
	machine_release(&m);
}

/* ---- doubles ---- */

static double number(uint64_t value)
{
	double result;

	memcpy(&result, &value, sizeof(result));
	return result;
}

static int64_t to_s64(double value)
{
	if (isnan(value))
		return 0;
	if (value >= 0x1p63)
		return INT64_MAX;
	return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

static uint64_t f64_model(enum vm_intrinsic op, uint64_t a, uint64_t b)
{
	volatile double x = number(a), y = number(b);

	switch (op) {
	case VM_F64_ADD:
		return bits(x + y);
	case VM_F64_SUB:
		return bits(x - y);
	case VM_F64_MUL:
		return bits(x * y);
	case VM_F64_DIV:
		return bits(x / y);
	case VM_F64_NEG:
		return a ^ 1ull << 63;
	case VM_F64_LT:
		return x < y;
	case VM_F64_LE:
		return x <= y;
	case VM_F64_GT:
		return x > y;
	case VM_F64_GE:
		return x >= y;
	case VM_F64_EQ:
		return x == y;
	case VM_F64_NE:
		return x != y;
	case VM_F64_FROM_S64:
		return bits((double)(int64_t)a);
	case VM_F64_FROM_U64:
		return bits((double)a);
	default:
		return to_s64(x);
	}
}

static void doubles(void **state)
{
	const double numbers[] = { 0,
				   -0.0,
				   1,
				   -1,
				   0.5,
				   -2.5,
				   3.99,
				   1e18,
				   1e19,
				   -1e19,
				   0x1p63,
				   -0x1p63,
				   0x1p62,
				   1e300,
				   1e-310,
				   HUGE_VAL,
				   -HUGE_VAL,
				   (double)NAN,
				   9007199254740993 };
	struct machine m;
	struct state *s;
	const size_t n = COUNT_OF(numbers) + COUNT_OF(edges);

	(void)state;
	machine_make(&m);
	s = state_of(&m);
	for (uint8_t op = VM_F64_ADD; op <= VM_F64_TO_S64; op++) {
		struct jit_insn insn = blank(JIT_F64, 8);

		insn.sub = op;
		start(&m);
		add(&m, insn);
		finish(&m);
		for (size_t i = 0; i < n * n; i++) {
			size_t x = i / n, y = i % n;
			uint64_t expected;

			s->r[1] =
				x < COUNT_OF(edges) ? edges[x] : bits(numbers[x - COUNT_OF(edges)]);
			s->r[2] =
				y < COUNT_OF(edges) ? edges[y] : bits(numbers[y - COUNT_OF(edges)]);
			expected = f64_model(op, s->r[1], s->r[2]);
			got[0] = s->r[1];
			got[1] = s->r[2];
			run(&m);
			if (s->r[0] != expected && !(op <= VM_F64_DIV && isnan(number(expected)) &&
						     isnan(number(s->r[0]))))
				fail_msg("op %u of %a %a: %a, not %a", op, number(got[0]),
					 number(got[1]), number(s->r[0]), number(expected));
		}
	}
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),         cmocka_unit_test(narrow_results),
		cmocka_unit_test(narrow_arguments), cmocka_unit_test(floating),
		cmocka_unit_test(functions),        cmocka_unit_test(through_registers),
		cmocka_unit_test(checked_calls),    cmocka_unit_test(doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
