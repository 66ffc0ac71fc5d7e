// SPDX-License-Identifier: BSD-2-Clause
/* Our own cases: calls of every kind, recursion, stacks, back traces, 64-bit loads, arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "every.h"

static uint64_t sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e;
}

static const struct vm_contract anything;
static const struct vm_contract reads_index = { .args[1] = { .demand = VM_READ, .bytes = 4 } };

static void add_sum(struct every *every)
{
	every->natives[every->nnatives++] =
		(struct vm_native){ .name = "sum",
				    .function = sum,
				    .result = VM_U64,
				    .nargs = 5,
				    .args = { VM_U64, VM_U64, VM_U64, VM_U64, VM_U64 },
				    .contract = &anything };
}

/* r6 to r9 and the frame survive, arguments and results arrive. */
static void chains(void **state)
{
	static struct every every;
	int32_t want = 0;

	(void)state;
	add_sum(&every);
	for (int depth = 0; depth < 6; depth++) {
		if (depth)
			every_begin(&every);
		for (uint32_t reg = 6; reg <= 9; reg++)
			every_add(&every, MOV_K(reg, 100 * depth + (int)reg));
		every_add(&every, STX_DW(10, 8, -512));
		every_add(&every, STX_DW(10, 9, -8));
		for (uint32_t reg = 1; reg <= 5; reg++)
			every_add(&every, MOV_K(reg, depth + (int)reg));
		if (depth < 5)
			every_add(&every, CALL_LOCAL(7));
		else
			every_add(&every, CALL(0));
		for (uint32_t reg = 6; reg <= 9; reg++)
			every_add(&every, ADD_X(0, reg));
		every_add(&every, LDX_DW(1, 10, -512));
		every_add(&every, ADD_X(0, 1));
		every_add(&every, EXIT());
		want += 4 * 100 * depth + 30 + 100 * depth + 8;
	}
	want += 6 + 2 * 7 + 3 * 8 + 4 * 9 + 5 * 10;
	every_returns(&every, want);
	every_deinit(&every);
}

/* sum(n) = n ? n + sum(n - 1) : 0, through the frame. */
static void add_recursion(struct every *every, int32_t to)
{
	every_add(every, MOV_K(1, to));
	every_add(every, CALL_LOCAL(1));
	every_add(every, EXIT());
	every_begin(every);
	every_add(every, MOV_K(0, 0));
	every_add(every, JEQ_K(1, 0, 5));
	every_add(every, STX_DW(10, 1, -16));
	every_add(every, ADD_K(1, -1));
	every_add(every, CALL_LOCAL(-5));
	every_add(every, LDX_DW(1, 10, -16));
	every_add(every, ADD_X(0, 1));
	every_add(every, EXIT());
}

static void recursion(void **state)
{
	static struct every every;

	(void)state;
	add_recursion(&every, 200);
	every_returns(&every, 200 * 201 / 2);
	every_deinit(&every);
	/* 600 frames of 512 bytes are too many */
	every.options.stack_bytes = 256 << 10;
	add_recursion(&every, 1 << 30);
	every_faults(&every, VM_FAULT_STACK, NULL);
	every_deinit(&every);
}

/* callx in both encodings, of functions and of natives by address and by number. */
static void add_callx(struct every *every, uint32_t reg, bool by_imm)
{
	for (uint32_t arg = 1; arg <= 5; arg++)
		if (arg != reg)
			every_add(every, MOV_K(arg, (int)arg));
	every_add(every, by_imm ? CALLX_IMM(reg) : CALLX_DST(reg));
	every_add(every, EXIT());
}

static void indirect_calls(void **state)
{
	static struct every every;

	(void)state;
	for (uint32_t reg = 0; reg < 10; reg++) {
		for (int by_imm = 0; by_imm < 2; by_imm++) {
			if (by_imm && !reg)
				continue; /* imm 0 is the other encoding */
			every_add_lddw(&every, reg, BPF_PSEUDO_FUNC, 1);
			add_callx(&every, reg, by_imm);
			every_begin(&every);
			every_add(&every, MOV_K(0, 40));
			if (reg != 2)
				every_add(&every, ADD_X(0, 2));
			every_add(&every, EXIT());
			every_returns(&every, reg == 2 ? 40 : 42);
			every_deinit(&every);
		}
	}
	for (uint32_t reg = 6; reg < 10; reg++) {
		add_sum(&every);
		every_add_lddw(&every, reg, 0, (uintptr_t)sum);
		add_callx(&every, reg, reg & 1);
		every_returns(&every, 55);
		every_deinit(&every);
		every.options.callx_by_number = true;
		add_sum(&every);
		add_sum(&every);
		every_add(&every, MOV_K(reg, 1));
		add_callx(&every, reg, reg & 1);
		every_returns(&every, 55);
		every_deinit(&every);
	}
	every_add(&every, MOV_K(7, 0));
	add_callx(&every, 7, false);
	every_faults(&every, VM_FAULT_EXECUTE, NULL);
	every_deinit(&every);
}

/* Three functions deep: the innermost reads what is not there. */
static void back_traces(void **state)
{
	static struct every every;
	struct vm_fault fault;

	(void)state;
	every_add(&every, MOV_K(6, 1));
	every_add(&every, CALL_LOCAL(1));
	every_add(&every, EXIT());
	every_begin(&every);
	every_add(&every, JA(0));
	every_add(&every, ST_DW(10, -8, 1));
	every_add_lddw(&every, 7, BPF_PSEUDO_FUNC, 2);
	every_add(&every, CALLX_DST(7));
	every_add(&every, ADD_K(0, 1));
	every_add(&every, EXIT());
	every_begin(&every);
	every_add(&every, MOV_K(1, 16));
	every_add(&every, LDX_DW(0, 1, 8));
	every_add(&every, EXIT());
	every_faults(&every, VM_FAULT_READ, &fault);
	assert_int_equal(fault.address, 24);
	assert_int_equal(fault.insn, 11);
	assert_int_equal(fault.ntrace, 3);
	assert_int_equal(fault.trace[1].function, 1);
	assert_int_equal(fault.trace[1].insn, 7);
	assert_int_equal(fault.trace[2].function, 0);
	assert_int_equal(fault.trace[2].insn, 1);
	every_deinit(&every);
}

/* A loop that never ends, in an instruction or over a thousand. */
static void budgets(void **state)
{
	static struct every every;

	(void)state;
	every.options.instruction_budget = 100000;
	every_add(&every, JA(-1));
	every_add(&every, EXIT());
	every_faults(&every, VM_FAULT_BUDGET, NULL);
	every_deinit(&every);
	every.options.instruction_budget = 100000;
	for (int i = 0; i < 1000; i++)
		every_add(&every, ADD_K(0, 1));
	every_add(&every, JA(-1001));
	every_faults(&every, VM_FAULT_BUDGET, NULL);
	every_deinit(&every);
	/* What ends in time is not disturbed: 3 * 10000 + 3 instructions. */
	every.options.instruction_budget = 31000;
	every_add(&every, MOV_K(0, 0));
	every_add(&every, MOV_K(1, 10000));
	every_add(&every, ADD_K(0, 2));
	every_add(&every, ADD_K(1, -1));
	every_add(&every, JNE_K(1, 0, -3));
	every_add(&every, EXIT());
	every_returns(&every, 20000);
	every_deinit(&every);
}

static void wide_loads(void **state)
{
	static const uint64_t values[] = {
		0,          1,     0x7fffffff,         0x80000000, 0xffffffff,
		1ull << 32, ~0ull, 0xffffffff80000000, 1ull << 63, 0x123456789abcdef0
	};
	static struct every every;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(values); i++) {
		every_add_lddw(&every, 0, 0, values[i]);
		every_add(&every, EXIT());
		every_returns(&every, values[i]);
		every_deinit(&every);
	}
	/* The kinds that a loader has to resolve first. */
	for (uint32_t kind = 1; kind <= 6; kind++) {
		if (kind == BPF_PSEUDO_FUNC)
			continue;
		every_add_lddw(&every, 0, kind, 1);
		every_add(&every, EXIT());
		every_refuses(&every, "was not resolved");
		every_deinit(&every);
	}
	every_add_lddw(&every, 0, BPF_PSEUDO_FUNC, 9);
	every_add(&every, EXIT());
	every_refuses(&every, "function 9");
	every_deinit(&every);
}

/* ---- arrays ---- */

#define HANDLE 0xabc000001000

static uint8_t elements[4096] __attribute__((aligned(8)));
static struct vm_array the_array;

static uint64_t lookup(uint64_t handle, uint64_t key)
{
	uint32_t index;

	memcpy(&index, (const void *)(uintptr_t)key, sizeof(index));
	if (handle != the_array.handle || index >= the_array.entries)
		return 0;
	return (uintptr_t)the_array.data + (size_t)index * the_array.stride;
}

static void add_lookup(struct every *every)
{
	every->arrays[every->narrays++] = the_array;
	every->natives[every->nnatives++] = (struct vm_native){ .name = "lookup",
								.function = lookup,
								.result = VM_U64,
								.nargs = 2,
								.args = { VM_U64, VM_POINTER },
								.intrinsic = VM_ARRAY_LOOKUP,
								.contract = &reads_index };
	every->region = elements;
	every->region_size = sizeof(elements);
}

enum key { KEY_KNOWN, KEY_ARGUMENT, KEY_MEMORY, KEY_FAR, KEYS };

/* r0 = offset of the element in the array, or -1. */
static void add_program(struct every *every, enum key how, uint32_t index)
{
	int16_t off = how == KEY_FAR ? -500 : -4;

	if (how == KEY_KNOWN)
		every_add(every, RAW(0x62, 10, 0, off, (int32_t)index));
	else
		every_add(every, STX_W(10, 1, off));
	if (how == KEY_MEMORY) { /* the key lies in the array's own memory */
		every_add_lddw(every, 2, 0, (uintptr_t)elements + sizeof(elements) - 4);
		every_add(every, STX_W(2, 1, 0));
	} else {
		every_add(every, MOV_X(2, 10));
		every_add(every, ADD_K(2, off));
	}
	every_add_lddw(every, 1, 0, HANDLE);
	every_add(every, CALL(0));
	every_add(every, JEQ_K(0, 0, 4));
	every_add_lddw(every, 3, 0, (uintptr_t)the_array.data);
	every_add(every, RAW(0x1f, 0, 3, 0, 0));
	every_add(every, EXIT());
	every_add(every, MOV_K(0, -1));
	every_add(every, EXIT());
}

static void look_up(uint32_t stride, uint32_t entries, enum key how, uint32_t index)
{
	static struct every every;

	the_array = (struct vm_array){
		.handle = HANDLE, .data = elements, .stride = stride, .entries = entries
	};
	add_lookup(&every);
	add_program(&every, how, index);
	every.args[0] = index | 7ull << 32;
	every_returns(&every, index < entries ? (uint64_t)index * stride : UINT64_MAX);
	every_deinit(&every);
}

static void lookups(void **state)
{
	static const uint32_t strides[] = { 1, 2, 3, 4, 8, 12, 24, 40, 72, 100, 256 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(strides); i++) {
		uint32_t entries = 2048 / strides[i];
		const uint32_t indices[] = { 0, 1, entries - 1, entries, UINT32_MAX, 1u << 31 };

		for (size_t k = 0; k < COUNT_OF(indices); k++)
			for (int how = 0; how < KEYS; how++)
				look_up(strides[i], entries, how, indices[k]);
	}
	look_up(8, 1, KEY_ARGUMENT, 0);
	look_up(8, 1, KEY_KNOWN, 1);
	look_up(8, 0, KEY_KNOWN, 0);
}

/* A handle that is no array's is a call as any other. */
static void unknown_handles(void **state)
{
	static struct every every;

	(void)state;
	the_array =
		(struct vm_array){ .handle = HANDLE, .data = elements, .stride = 8, .entries = 4 };
	add_lookup(&every);
	every.arrays[0].handle = HANDLE + 1;
	add_program(&every, KEY_ARGUMENT, 2);
	every.args[0] = 2;
	every_returns(&every, 16);
	every_deinit(&every);
	/* ... and so is one that is in a register. */
	add_lookup(&every);
	every_add(&every, MOV_X(6, 1));
	every_add(&every, RAW(0x62, 10, 0, -4, 3));
	every_add(&every, MOV_X(2, 10));
	every_add(&every, ADD_K(2, -4));
	every_add(&every, MOV_X(1, 6));
	every_add(&every, CALL(0));
	every_add(&every, EXIT());
	every.args[0] = HANDLE;
	every_returns(&every, (uintptr_t)elements + 24);
	every_deinit(&every);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains),         cmocka_unit_test(recursion),
		cmocka_unit_test(indirect_calls), cmocka_unit_test(back_traces),
		cmocka_unit_test(budgets),        cmocka_unit_test(wide_loads),
		cmocka_unit_test(lookups),        cmocka_unit_test(unknown_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
