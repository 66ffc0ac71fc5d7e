// SPDX-License-Identifier: BSD-2-Clause
/* Operations that the interpreter runs several at once: the same values, jumps and faults. */
#include "vm_fixture.h"

#include <string.h>

#define ALU_K(op, dst, imm)   RAW(0x07 | (op), dst, 0, 0, imm)
#define JUMP_X(op, d, s, off) RAW(0x0d | (op), d, s, off, 0)

static uint64_t run(const struct bpf_insn *code, size_t ncode, uint64_t a, uint64_t b, bool budget)
{
	struct vm_function function = { .name = "main", .count = ncode };
	struct vm_image image = { VM_IMAGE_SIZES, .code = code, .ncode = ncode,
				  .functions = &function, .nfunctions = 1 };
	struct vm_options options = { .size = sizeof(options),
				      .engine = VM_ENGINE_INTERPRETER,
				      .instruction_budget = budget ? 1000000 : 0 };
	struct vm *vm = make_vm(&image, &options);
	uint64_t result = call(vm, a, b);

	vm_destroy(vm);
	return result;
}

/* With a budget each op runs by itself: what it gives is what pairs must give. */
#define SAME(code, a, b)                                         \
	assert_int_equal(run(code, COUNT_OF(code), a, b, false), \
			 run(code, COUNT_OF(code), a, b, true))

static void pairs_of_values(void **state)
{
	static const uint8_t operations[] = { 0x00, 0x50, 0x60, 0x70 }; /* add and lsh rsh */

	(void)state;
	for (size_t i = 0; i < sizeof(operations); i++) {
		const struct bpf_insn code[] = { MOV_X(0, 1), ALU_K(operations[i], 0, -3),
						 MOV_X(3, 0), ALU_K(operations[i], 2, 13),
						 MOV_X(1, 3), ADD_X(1, 2),
						 ADD_X(0, 1), EXIT() };

		SAME(code, 0x123456789abcdefULL, 0xfedcba9876543210ULL);
	}
}

/* An operand may be the result of the op before. */
static void operands_that_overlap(void **state)
{
	const struct bpf_insn twice[] = { MOV_X(0, 1), ADD_X(0, 0), MOV_X(1, 1),
					  ADD_X(1, 1), ADD_X(0, 1), EXIT() };
	const struct bpf_insn shifted[] = {
		ALU_K(0x60, 1, 3), ADD_X(1, 1), ALU_K(0x60, 2, 5), ADD_X(1, 2), MOV_X(0, 1),
		ADD_X(0, 2),       EXIT()
	};

	(void)state;
	SAME(twice, 5, 0);
	assert_int_equal(run(twice, COUNT_OF(twice), 5, 0, false), 20);
	SAME(shifted, 7, 9);
}

/* A jump lands between the two. */
static void a_jump_into_the_middle(void **state)
{
	const struct bpf_insn code[] = { MOV_K(0, 100), JEQ_K(1, 7, 1), MOV_X(0, 2), ADD_K(0, 1),
					 EXIT() };

	(void)state;
	assert_int_equal(run(code, COUNT_OF(code), 7, 40, false), 101);
	assert_int_equal(run(code, COUNT_OF(code), 8, 40, false), 41);
}

static void loops(void **state)
{
	static const uint8_t conditions[] = { 0x50, 0xa0 }; /* jne jlt */
	const struct bpf_insn by_constant[] = { MOV_K(0, 0), MOV_K(3, 0),      ADD_X(0, 3),
						ADD_K(3, 1), JNE_K(3, 10, -3), EXIT() };
	const struct bpf_insn downwards[] = { MOV_K(0, 0), ADD_X(0, 1), ADD_K(1, -1),
					      JUMP_X(0x20, 1, 2, -3), EXIT() };

	(void)state;
	for (size_t i = 0; i < sizeof(conditions); i++) {
		const struct bpf_insn code[] = { MOV_K(0, 0),
						 MOV_K(3, 0),
						 ADD_X(0, 3),
						 ADD_K(3, 1),
						 JUMP_X(conditions[i], 3, 1, -3),
						 EXIT() };

		SAME(code, 10, 0);
		assert_int_equal(run(code, COUNT_OF(code), 10, 0, false), 45);
	}
	assert_int_equal(run(by_constant, COUNT_OF(by_constant), 0, 0, false), 45);
	assert_int_equal(run(downwards, COUNT_OF(downwards), 9, 3, false), 39);
}

static void loads(void **state)
{
	uint64_t memory[2] = { 0x8877665544332211ULL, 0xffeeddccbbaa9988ULL };
	const struct bpf_insn code[] = {
		MOV_X(3, 1), ADD_X(3, 2), LDX_B(0, 3, 1), /* mov, add, load */
		MOV_K(4, 4), ADD_X(4, 1), LDX_W(4, 4, 0), /* add, load */
		ADD_X(0, 4), ADD_X(2, 1), LDX_B(2, 2, 0), /* over its own base */
		ADD_X(0, 2), MOV_K(5, 8), ADD_X(5, 1),    LDX_DW(5, 5, 0),
		ADD_X(0, 5), ADD_X(0, 3), EXIT(),
	};

	(void)state;
	SAME(code, (uintptr_t)memory, 3);
	assert_int_equal(run(code, COUNT_OF(code), (uintptr_t)memory, 3, false),
			 0x55 + 0x88776655ULL + 0x44 + 0xffeeddccbbaa9988ULL + (uintptr_t)memory +
				 3);
}

/* The op that faults is named, not the first of its group. */
static void faults_have_their_own_place(void **state)
{
	const struct bpf_insn code[] = { MOV_K(0, 0), MOV_X(3, 1), ADD_X(3, 2), LDX_B(0, 3, 8),
					 EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);
	struct vm_fault fault;

	(void)state;
	fault = call_fault(vm, 16, 4, VM_FAULT_READ, "read of 1 byte at 0x1c");
	assert_int_equal(fault.insn, 3);
	vm_destroy(vm);
}

/* Lookups that the interpreter does itself, and those that it leaves to the function. */
static uint64_t calls;

static uint64_t look_up(uint64_t handle, uint64_t key)
{
	calls++;
	return handle + *(uint32_t *)(uintptr_t)key;
}

static void lookups_in_arrays(void **state)
{
	static uint64_t elements[3] = { 10, 20, 30 };
	const struct bpf_insn code[] = { STX_W(10, 2, -4), MOV_X(2, 10), ADD_K(2, -4), CALL(0),
					 EXIT() };
	struct vm_native native = {
		"look_up", look_up, VM_U64, 2, { VM_U64, VM_U64 }, .intrinsic = VM_ARRAY_LOOKUP
	};
	struct vm_array array = { 77, elements, 8, 3 };
	struct vm_function function = { .name = "main", .count = COUNT_OF(code) };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,     .ncode = COUNT_OF(code),
				  .functions = &function, .nfunctions = 1,  .natives = &native,
				  .nnatives = 1,          .arrays = &array, .narrays = 1 };
	struct vm *vm = make_vm(&image, NULL);

	(void)state;
	calls = 0;
	assert_int_equal(call(vm, 77, 2), (uintptr_t)&elements[2]);
	assert_int_equal(call(vm, 77, 3), 0);
	assert_int_equal(call(vm, 77, -1), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(call(vm, 78, 2), 80);
	assert_int_equal(calls, 1);
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_of_values),
		cmocka_unit_test(operands_that_overlap),
		cmocka_unit_test(a_jump_into_the_middle),
		cmocka_unit_test(loops),
		cmocka_unit_test(loads),
		cmocka_unit_test(faults_have_their_own_place),
		cmocka_unit_test(lookups_in_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
