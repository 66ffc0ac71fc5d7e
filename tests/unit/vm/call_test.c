// SPDX-License-Identifier: BSD-2-Clause
#include "vm_fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits(double value)
{
	uint64_t result;

	memcpy(&result, &value, sizeof(result));
	return result;
}

static double number(uint64_t value)
{
	double result;

	memcpy(&result, &value, sizeof(result));
	return result;
}

/* main(which, a, b, ...) { return natives[which](a, b, ...); } */
static uint64_t call_native(struct vm_native native, uint64_t a, uint64_t b)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	const struct bpf_insn by_address[] = { LDDW(6, (uintptr_t)native.function), CALLX_DST(6),
					       EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), &native, 1);
	uint64_t result = call(vm, a, b);

	vm_destroy(vm);
	/* Through its address it is called in the same way. */
	vm = make_simple(by_address, COUNT_OF(by_address), &native, 1);
	if (!native.with_context)
		assert_int_equal(call(vm, a, b), result);
	vm_destroy(vm);
	return result;
}

static void doubles_through_libffi(void **state)
{
	struct vm_native n_pow = { "pow", pow, VM_DOUBLE, 2, { VM_DOUBLE, VM_DOUBLE } };
	struct vm_native n_floor = { "floor", floor, VM_DOUBLE, 1, { VM_DOUBLE } };
	struct vm_native n_atof = { "atof", atof, VM_DOUBLE, 1, { VM_POINTER } };
	struct vm_native n_ldexp = { "ldexp", ldexp, VM_DOUBLE, 2, { VM_DOUBLE, VM_S32 } };
	struct vm_native n_lround = { "lround", lround, VM_S64, 1, { VM_DOUBLE } };
	struct vm_native n_ilogb = { "ilogb", ilogb, VM_S32, 1, { VM_DOUBLE } };
	struct vm_native n_sqrtf = { "sqrtf", sqrtf, VM_FLOAT, 1, { VM_FLOAT } };
	float nine = 9;
	uint32_t nine_bits, three;

	(void)state;
	assert_true(number(call_native(n_pow, bits(2), bits(0.5))) == sqrt(2));
	assert_true(number(call_native(n_floor, bits(-2.5), 0)) == -3);
	assert_true(number(call_native(n_atof, (uintptr_t) "6.25", 0)) == 6.25);
	assert_true(number(call_native(n_ldexp, bits(3), (uint32_t)-1)) == 1.5);
	assert_int_equal(call_native(n_lround, bits(-7.5), 0), -8);
	assert_int_equal(call_native(n_ilogb, bits(0.25), 0), -2);
	memcpy(&nine_bits, &nine, 4);
	three = call_native(n_sqrtf, nine_bits, 0);
	memcpy(&nine, &three, 4);
	assert_true(nine == 3);
}

static int8_t to_s8(int8_t x)
{
	return x;
}
static uint8_t to_u8(uint8_t x)
{
	return x;
}
static int16_t to_s16(int16_t x)
{
	return x;
}
static uint16_t to_u16(uint16_t x)
{
	return x;
}
static int32_t to_s32(int32_t x)
{
	return x;
}
static uint32_t to_u32(uint32_t x)
{
	return x;
}
static uint64_t to_u64(uint64_t x)
{
	return x;
}
static void to_void(uint64_t x)
{
	(void)x;
}

/* Reads the whole argument register: were narrow arguments extended before the call? */
static uint64_t whole_register(uint64_t x)
{
	return x;
}

static void integers_are_extended(void **state)
{
	const uint64_t x = 0xfedcba9887868584;
	static const struct {
		void *function;
		enum vm_class class;
		uint64_t want;
	} cases[] = {
		{ to_s8, VM_S8, 0xffffffffffffff84 },       { to_u8, VM_U8, 0x84 },
		{ to_s16, VM_S16, 0xffffffffffff8584 },     { to_u16, VM_U16, 0x8584 },
		{ to_s32, VM_S32, 0xffffffff87868584 },     { to_u32, VM_U32, 0x87868584 },
		{ to_u64, VM_U64, 0xfedcba9887868584 },     { to_u64, VM_S64, 0xfedcba9887868584 },
		{ to_u64, VM_POINTER, 0xfedcba9887868584 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct vm_native native = {
			"n", cases[i].function, cases[i].class, 1, { cases[i].class }
		};

		assert_int_equal(call_native(native, x, 0), cases[i].want);
	}
#if defined(__x86_64__)
	/* ... to 32 bits at least, on which C functions may rely. (On arm64 they extend by themselves.) */
	for (size_t i = 0; i < 4; i++) {
		struct vm_native native = { "n", whole_register, VM_U64, 1, { cases[i].class } };

		assert_int_equal((uint32_t)call_native(native, x, 0), (uint32_t)cases[i].want);
	}
#endif
	assert_int_equal(
		call_native((struct vm_native){ "n", to_void, VM_VOID, 1, { VM_U64 } }, x, 0), 0);
}

static uint64_t six(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, void *context)
{
	return a + 10 * b + 100 * c + 1000 * d + 10000 * e + *(uint64_t *)context;
}

static void context_is_the_sixth_argument(void **state)
{
	const struct bpf_insn code[] = { MOV_K(3, 3), MOV_K(4, 4), MOV_K(5, 5), CALL(0), EXIT() };
	struct vm_native native = { .name = "six", .function = six, .with_context = true };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, &native, 1 };
	uint64_t extra = 900000;
	struct vm_options options = { .size = sizeof(options), .context = &extra };
	struct vm *vm = make_vm(&image, &options);

	(void)state;
	assert_int_equal(call(vm, 1, 2), 954321);
	vm_destroy(vm);
}

/* Callee-saved registers and the frame survive calls; frames of two calls do not overlap. */
static void local_calls(void **state)
{
	const struct bpf_insn code[] = {
		MOV_K(6, 6),
		MOV_K(7, 7),
		MOV_K(8, 8),
		MOV_K(9, 9), /* main */
		STX_DW(10, 1, -8),
		STX_DW(10, 1, -512),
		CALL_LOCAL(8), /* 6 */
		LDX_DW(1, 10, -8),
		ADD_X(0, 1),
		LDX_DW(1, 10, -512),
		ADD_X(0, 1),
		ADD_X(0, 6),
		ADD_X(0, 9),
		JA(0),
		EXIT(), /* 14 */
		MOV_K(6, 0),
		MOV_K(7, 0),
		MOV_K(8, 0),
		MOV_K(9, 0), /* 15: clobber */
		ST_DW(10, -8, 0),
		ST_DW(10, -512, 0),
		MOV_K(0, 1000),
		EXIT(),
	};
	struct vm_function functions[] = { { "main", 0, 15 }, { "clobber", 15, 8 } };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2, NULL, 0 };
	struct vm *vm = make_vm(&image, NULL);

	(void)state;
	assert_int_equal(call(vm, 50, 0), 1000 + 50 + 50 + 6 + 9);
	vm_destroy(vm);
}

/* A frame is as large as the function's accesses; or as the compiler was told. */
static void large_frames(void **state)
{
	const struct bpf_insn code[] = {
		MOV_X(2, 10),         ADD_K(2, -4096), STX_DW(2, 1, 0), CALL_LOCAL(2),
		LDX_DW(0, 10, -4096), EXIT(),          MOV_X(2, 10),    ADD_K(2, -4096),
		ST_DW(2, 4088, 0),    ST_DW(2, 0, 0),  EXIT(),
	};
	struct vm_function functions[] = { { "main", 0, 6 }, { "callee", 6, 5 } };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2, NULL, 0 };
	struct vm_options options = { .size = sizeof(options), .stack_bytes = 8192 };
	struct vm *vm = make_vm(&image, &options);

	(void)state;
	assert_int_equal(call(vm, 77, 0), 77);
	vm_destroy(vm);
	if (ON_JIT) /* a chain that cannot be endless is not counted */
		return;
	options.frame_bytes = 4097;
	vm = make_vm(&image, &options);
	call_fault(vm, 77, 0, VM_FAULT_STACK, "stack overflow: calls nest too deep");
	vm_destroy(vm);
}

/* main(a, b) = callx f: by either encoding, f from lddw; f(a, b) = a - b */
static void callx_both_encodings(void **state)
{
	for (int encoding = 0; encoding < 2; encoding++) {
		const struct bpf_insn code[] = {
			LDDW_KIND(7, BPF_PSEUDO_FUNC, 1, 0),
			encoding ? CALLX_IMM(7) : CALLX_DST(7),
			ADD_K(0, 1),
			EXIT(),
			MOV_X(0, 1),
			RAW(0x1f, 0, 2, 0, 0),
			EXIT(),
		};
		struct vm_function functions[] = { { "main", 0, 5 }, { "f", 5, 3 } };
		struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2,
					  NULL,           0 };
		struct vm *vm = make_vm(&image, NULL);
		uint64_t (*f)(uint64_t, uint64_t);

		assert_int_equal(call(vm, 50, 8), 43);
		f = (uint64_t(*)(uint64_t, uint64_t))vm_function_address(vm, 1);
		assert_ptr_equal((void *)f, vm_function_address(vm, 1));
		assert_int_equal(f(50, 8), 42); /* C calls it, with no vm_call() running */
		assert_null(vm_function_address(vm, 2));
		vm_destroy(vm);
	}
	(void)state;
}

static void callx_to_unknown_c_function(void **state)
{
	const struct bpf_insn code[] = { MOV_X(6, 1), MOV_X(1, 2), CALLX_DST(6), EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

	(void)state;
	assert_int_equal(call(vm, (uintptr_t)whole_register, 123), 123);
	vm_destroy(vm);
}

/* A table of function pointers, one of them recursive through C. */
static uint64_t apply(uint64_t (*f)(uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	return f(a, b) + 1;
}

static void c_calls_back(void **state)
{
	/* f(x, n) = n ? apply(f, x, n - 1) : x */
	const struct bpf_insn code[] = {
		JNE_K(2, 0, 2),
		MOV_X(0, 1),
		EXIT(),
		MOV_X(3, 2),
		ADD_K(3, -1),
		MOV_X(2, 1),
		LDDW_KIND(1, BPF_PSEUDO_FUNC, 0, 0),
		CALL(0),
		EXIT(),
	};
	struct vm_native native = { "apply", apply, VM_U64, 3, { VM_POINTER, VM_U64, VM_U64 } };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, &native, 1 };
	struct vm_options options = { .size = sizeof(options), .call_depth = 256 };
	struct vm *vm = make_vm(&image, &options);

	(void)state;
	assert_int_equal(call(vm, 5, 0), 5);
	assert_int_equal(call(vm, 5, 100), 105);
	assert_int_equal(call(vm, 5, 255), 260);
	call_fault(vm, 5, ON_JIT ? 1000000 : 256, VM_FAULT_STACK,
		   "stack overflow: calls nest too deep");
	assert_int_equal(call(vm, 5, 255), 260);
	vm_destroy(vm);
}

/* Two names of one function, as assemblers' aliases make them. */
static void aliases(void **state)
{
	const struct bpf_insn code[] = { MOV_X(0, 1), EXIT(), MOV_K(0, 9), EXIT() };
	struct vm_function functions[] = { { "last", 2, 2 }, { "one", 0, 2 }, { "also", 0, 2 } };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 3, NULL, 0 };
	struct vm *vm = make_vm(&image, NULL);
	uint64_t args[1] = { 4 }, result;

	(void)state;
	assert_int_equal(call(vm, 4, 0), 9);
	assert_int_equal(vm_call(vm, 1, args, 1, &result, NULL), 0);
	assert_int_equal(result, 4);
	assert_int_equal(vm_call(vm, 2, args, 1, &result, NULL), 0);
	assert_int_equal(result, 4);
	assert_int_equal(vm_call(vm, 3, args, 1, &result, NULL), -22);
	assert_int_equal(vm_call(vm, 0, args, 6, &result, NULL), -22);
	vm_destroy(vm);
}

#define ROUNDS 200000

static void *count_up(void *cell)
{
	/* for (n = r2; n; n--) { add(r1, 1); r0 = fetch_add(r1 + 8, 1); cmpxchg loop on r1 + 16 } */
	const struct bpf_insn code[] = {
		MOV_K(3, 1),
		ATOMIC(1, 3, 0, 0x00),
		MOV_K(3, 1),
		RAW(0xc3, 1, 3, 8, 0x01),
		LDX_DW(0, 1, 16),
		MOV_X(4, 0),
		MOV_X(5, 0),
		ADD_K(5, 1),
		ATOMIC(1, 5, 16, 0xf1),
		RAW(0x5d, 0, 4, -6, 0),
		ADD_K(2, -1),
		JNE_K(2, 0, -12),
		EXIT(),
	};
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

	call(vm, (uintptr_t)cell, ROUNDS);
	vm_destroy(vm);
	return NULL;
}

static void atomics_of_two_vms(void **state)
{
	uint64_t cell[3] = { 0 };
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, cell), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cell[i], 2 * ROUNDS);
}

/* Only a function that does not return may be last: when it does, that is a fault. */
static void call_at_the_end(void **state)
{
	const struct bpf_insn code[] = { JNE_K(1, 0, 2), MOV_K(0, 3), EXIT(),
					 CALL(0),        MOV_K(0, 4), EXIT() };
	struct vm_function functions[] = { { "main", 0, 4 }, { "next", 4, 2 } };
	struct vm_native native = { "whole", whole_register, VM_U64, 1, { VM_U64 } };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2, &native, 1 };
	struct vm *vm = make_vm(&image, NULL);

	(void)state;
	assert_int_equal(call(vm, 0, 0), 3);
	call_fault(vm, 1, 0, VM_FAULT_EXECUTE, "function ran off its end");
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles_through_libffi),
		cmocka_unit_test(integers_are_extended),
		cmocka_unit_test(context_is_the_sixth_argument),
		cmocka_unit_test(local_calls),
		cmocka_unit_test(large_frames),
		cmocka_unit_test(callx_both_encodings),
		cmocka_unit_test(callx_to_unknown_c_function),
		cmocka_unit_test(c_calls_back),
		cmocka_unit_test(aliases),
		cmocka_unit_test(atomics_of_two_vms),
		cmocka_unit_test(call_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
