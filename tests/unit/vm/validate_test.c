// SPDX-License-Identifier: BSD-2-Clause
#include "vm_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"

#define MAX_CODE 8

/* Each case is one function over its instructions (up to the last that is not all zero). */
static const struct {
	struct bpf_insn code[MAX_CODE];
	uint32_t count;
	const char *message;
	uint32_t bad_insn;
} cases[] = {
	{ { MOV_K(0, 0) }, 1, "instruction 0: function runs off its end", 0 },
	{ { MOV_K(0, 0), JEQ_K(0, 0, -2) }, 2, "instruction 1: function runs off its end", 1 },
	{ { LDDW(0, 1) }, 2, "instruction 1: function runs off its end", 1 },
	{ { RAW(0xff, 0, 0, 0, 0), EXIT() }, 2, "instruction 0: unknown opcode 0xff", 0 },
	{ { MOV_K(0, 0), RAW(0x06, 0, 0, 5, 0), EXIT() },
	  3,
	  "instruction 1: reserved field offset of JAL is not zero",
	  1 },
	{ { MOV_K(11, 0), EXIT() }, 2, "instruction 0: register r11 does not exist", 0 },
	{ { MOV_X(0, 12), EXIT() }, 2, "instruction 0: register r12 does not exist", 0 },
	{ { MOV_K(10, 0), EXIT() }, 2, "instruction 0: writes to r10, the frame pointer", 0 },
	{ { LDX_B(10, 1, 0), EXIT() }, 2, "instruction 0: writes to r10, the frame pointer", 0 },
	{ { ATOMIC(1, 10, 0, 1), EXIT() },
	  2,
	  "instruction 0: writes to r10, the frame pointer",
	  0 },
	{ { ATOMIC(1, 2, 0, 0x10), EXIT() },
	  2,
	  "instruction 0: opcode 0xdb (ADD_MEM64) with immediate 16 is no instruction",
	  0 },
	{ { RAW(0x3f, 0, 1, 2, 0), EXIT() },
	  2,
	  "instruction 0: opcode 0x3f (DIV64_X) with offset 2 is no instruction",
	  0 },
	{ { RAW(0xbc, 0, 1, 32, 0), EXIT() },
	  2,
	  "instruction 0: opcode 0xbc (MOV32_X) with offset 32 is no instruction",
	  0 },
	{ { RAW(0xdc, 0, 0, 0, 8), EXIT() },
	  2,
	  "instruction 0: opcode 0xdc (BE16) with immediate 8 is no instruction",
	  0 },
	{ { MOV_K(0, 0), JA(1), EXIT() },
	  3,
	  "instruction 1: jumps to instruction 3, out of its function",
	  1 },
	{ { JA(-2), EXIT() }, 2, "instruction 0: jumps to instruction -1, out of its function", 0 },
	{ { RAW(0x06, 0, 0, 0, 70000), EXIT() },
	  2,
	  "instruction 0: jumps to instruction 70001, out of its function",
	  0 },
	{ { JA(1), LDDW(0, 1), EXIT() },
	  4,
	  "instruction 0: jumps into the middle of the 64-bit load at 1",
	  0 },
	{ { CALL(1), EXIT() }, 2, "instruction 0: calls native function 1: there are 1", 0 },
	{ { CALL(-1), EXIT() }, 2, "instruction 0: calls native function -1: there are 1", 0 },
	{ { CALL(0), EXIT() }, 2, "instruction 0: calls native function 0, which is not there", 0 },
	{ { CALL_LOCAL(0), EXIT() },
	  2,
	  "instruction 0: calls instruction 1, which starts no function",
	  0 },
	{ { CALL_LOCAL(5), EXIT() }, 2, "instruction 0: calls instruction 6, out of the code", 0 },
	{ { RAW(0x85, 0, 2, 0, 7), EXIT() },
	  2,
	  "instruction 0: calls kernel function #7: only kernel programs can",
	  0 },
	{ { RAW(0x85, 0, 3, 0, 7), EXIT() },
	  2,
	  "instruction 0: opcode 0x85 (CALL) with source 3 is no instruction",
	  0 },
	{ { RAW(0x8d, 1, 0, 0, 2), EXIT() }, 2, "instruction 0: callx names two registers", 0 },
	{ { CALLX_IMM(11), EXIT() }, 2, "instruction 0: register r11 does not exist", 0 },
	{ { MOV_K(0, 0), RAW(0x18, 0, 0, 0, 1) },
	  2,
	  "instruction 1: second half of a 64-bit load is missing",
	  1 },
	{ { RAW(0x18, 0, 0, 0, 1), MOV_K(0, 0), EXIT() },
	  3,
	  "instruction 0: second half of a 64-bit load is malformed",
	  0 },
	{ { LDDW_KIND(0, 1, 5, 0), EXIT() },
	  3,
	  "instruction 0: 64-bit load of kind 1 (map_by_fd) was not resolved",
	  0 },
	{ { LDDW_KIND(0, 4, 1, 0), EXIT() },
	  3,
	  "instruction 0: takes the address of function 1: there are 1",
	  0 },
	{ { LDDW_KIND(0, 4, 0, 9), EXIT() },
	  3,
	  "instruction 0: takes the address of function 0: there are 1",
	  0 },
	{ { RAW(0x28, 0, 0, 0, 12), EXIT() },
	  2,
	  "instruction 0: ldabsh: legacy packet access has no meaning here",
	  0 },
	{ { RAW(0x50, 0, 1, 0, 12), EXIT() },
	  2,
	  "instruction 0: ldindb: legacy packet access has no meaning here",
	  0 },
	{ { ST_B(10, 0, 1), EXIT() },
	  2,
	  "instruction 0: accesses the stack above its frame, at r10+0",
	  0 },
	{ { MOV_K(0, 0), LDX_DW(0, 10, -4), EXIT() },
	  3,
	  "instruction 1: accesses the stack above its frame, at r10-4",
	  1 },
	{ { MOV_K(0, 0), MOV_X(1, 10), ADD_K(1, -2000000), ST_B(1, 0, 0), EXIT() },
	  5,
	  "instruction 0: function needs 2000000 bytes of stack, there are 1048576",
	  0 },
};

static void refusals(void **state)
{
	struct vm_native native = { .name = "absent" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct vm_function function = { "main", 0, cases[i].count };
		struct vm_image image = {
			VM_IMAGE_SIZES, cases[i].code, cases[i].count, &function, 1, &native, 1
		};
		char message[256] = "";
		uint32_t bad = ~0u;
		struct vm *vm = NULL;

		assert_int_equal(vm_create(&image, NULL, &vm, message, sizeof(message), &bad), -22);
		assert_string_equal(message, cases[i].message);
		assert_int_equal(bad, cases[i].bad_insn);
		assert_null(vm);
		assert_int_equal(vm_create(&image, NULL, &vm, NULL, 0, NULL), -22);
	}
}

static void refuse_functions(const struct vm_function *functions, size_t n, const char *want)
{
	const struct bpf_insn code[] = { LDDW(0, 1), EXIT(), MOV_K(0, 2), EXIT() };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, n, NULL, 0 };
	char message[256];
	struct vm *vm;

	assert_int_equal(vm_create(&image, NULL, &vm, message, sizeof(message), NULL), -22);
	assert_string_equal(message, want);
}

static void function_bounds(void **state)
{
	(void)state;
	refuse_functions((struct vm_function[]){ { "a", 0, 3 } }, 1,
			 "instruction 3: belongs to no function");
	refuse_functions((struct vm_function[]){ { "a", 3, 2 } }, 1,
			 "instruction 0: belongs to no function");
	refuse_functions((struct vm_function[]){ { "a", 0, 5 }, { "b", 3, 2 } }, 2,
			 "instruction 3: two functions overlap");
	refuse_functions((struct vm_function[]){ { "a", 0, 6 } }, 1,
			 "instruction 0: function reaches past the end of the code");
	refuse_functions((struct vm_function[]){ { "a", 0, ~0u } }, 1,
			 "instruction 0: function reaches past the end of the code");
	refuse_functions((struct vm_function[]){ { "a", 5, 1 } }, 1,
			 "function a: starts past the end of the code");
	refuse_functions((struct vm_function[]){ { "a", 0, 1 }, { "b", 1, 4 } }, 2,
			 "instruction 1: function starts inside a 64-bit load");
	refuse_functions((struct vm_function[]){ { "a", 0, 5 }, { "b", 0, 0 } }, 2,
			 "instruction 0: two functions overlap");
	refuse_functions(NULL, 0, "no code");
}

static void natives_are_checked(void **state)
{
	const struct bpf_insn code[] = { EXIT() };
	struct vm_function function = WHOLE(code);
	struct vm_native six = { .name = "six", .function = abort, .nargs = 6 };
	struct vm_native odd = { "odd", abort, 99, 0 };
	struct vm_native nothing = { "nothing", abort, VM_U64, 1, { VM_VOID } };
	struct vm_image image = { VM_IMAGE_SIZES, code, 1, &function, 1, &six, 1 };
	char message[256];
	struct vm *vm;

	(void)state;
	assert_int_equal(vm_create(&image, NULL, &vm, message, sizeof(message), NULL), -22);
	assert_string_equal(message, "native function six: takes 6 arguments: at most 5");
	image.natives = &odd;
	assert_int_equal(vm_create(&image, NULL, &vm, message, sizeof(message), NULL), -22);
	assert_string_equal(message, "native function odd: a class is unknown");
	image.natives = &nothing;
	assert_int_equal(vm_create(&image, NULL, &vm, message, sizeof(message), NULL), -22);
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* Any operation, with fields that are mostly right. */
static struct bpf_insn random_insn(uint64_t *seed, int at)
{
	const struct isa_row *row = isa_row(next_random(seed) % ISA_NOPS);
	struct bpf_insn insn = { .code = row->opcode };

	if (row->form != ISA_FORM_GOTO && row->form != ISA_FORM_EXIT)
		insn.dst_reg = next_random(seed) % 10;
	if (row->form == ISA_FORM_ALU_X || row->form == ISA_FORM_JUMP_X ||
	    row->form == ISA_FORM_LOAD || row->form == ISA_FORM_STORE_X)
		insn.src_reg = next_random(seed) % 11;
	if (row->form == ISA_FORM_ALU_K)
		insn.imm = next_random(seed);
	insn.off = (int)(next_random(seed) % MAX_CODE) - at;
	if (row->select == ISA_SELECT_OFF)
		insn.off = row->value;
	if (row->select == ISA_SELECT_IMM)
		insn.imm = row->value;
	if (next_random(seed) % 64 == 0)
		insn.imm = next_random(seed);
	return insn;
}

/* Random code: refused, or run under a budget, never worse. */
static void random_code(void **state)
{
	struct vm_options options = { .size = sizeof(options), .instruction_budget = 1000 };
	struct bpf_insn code[MAX_CODE];
	uint64_t seed = 1;
	int accepted = 0;

	(void)state;
	for (int round = 0; round < 50000; round++) {
		struct vm_function function = WHOLE(code);
		struct vm_image image = { VM_IMAGE_SIZES, code, MAX_CODE, &function, 1, NULL, 0 };
		struct vm_fault fault;
		struct vm *vm;

		for (int i = 0; i < MAX_CODE; i++)
			code[i] = random_insn(&seed, i);
		code[MAX_CODE - 1] = EXIT();
		if (vm_create(&image, &options, &vm, NULL, 0, NULL))
			continue;
		accepted++;
		vm_call(vm, 0, NULL, 0, NULL, &fault);
		vm_destroy(vm);
	}
	assert_true(accepted > 250);
}

/* Linear time: the largest program that is allowed takes a moment, not minutes. */
static void long_program(void **state)
{
	enum { N = 1 << 20 };
	struct bpf_insn *code = calloc(N, sizeof(*code));
	struct vm_function *functions = calloc(N / 2, sizeof(*functions));
	struct vm_image image = { VM_IMAGE_SIZES, code, N, functions, N / 2, NULL, 0 };
	struct vm *vm;

	(void)state;
	assert_non_null(code);
	assert_non_null(functions);
	for (int i = 0; i < N; i += 2) {
		code[i] = i + 2 < N ? JA(0) : MOV_K(0, 7);
		code[i + 1] = EXIT();
		functions[i / 2] = (struct vm_function){ "f", i, 2 };
	}
	functions[0].first = N - 2;
	functions[N / 2 - 1].first = 0;
	vm = make_vm(&image, NULL);
	assert_int_equal(call(vm, 0, 0), 7);
	vm_destroy(vm);
	free(functions);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(function_bounds),
		cmocka_unit_test(natives_are_checked),
		cmocka_unit_test(random_code),
		cmocka_unit_test(long_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
