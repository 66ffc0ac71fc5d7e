// SPDX-License-Identifier: BSD-2-Clause
#include "jit_fixture.h"

static void straight_code(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tr0 = 7\n"
	       "\tr0 = r0 + r1\n"
	       "\tw2 = w2 s/ -3\n"
	       "\tr3 = r3 << 1\n"
	       "\tr3 = s16 r1\n"
	       "\tw3 = s8 r1\n"
	       "\tr4 = bswap32 r4\n"
	       "\tr4 = u16 r4\n"
	       "\tr5 = 0x123456789abcdef0\n"
	       "\tw5 = -w5\n"
	       "\tr1 = s8 [r2 + 4]\n"
	       "\tu64 [r10 - 8] = r1\n"
	       "\tu8 [r2] = -1\n"
	       "\tatomic u64 [r1] += r2 fetch\n"
	       "\tatomic u64 [r1 - 8] cmpxchg r2\n"
	       "\tatomic u64 [r1] |= r2\n"
	       "\tatomic u64 [r1] = r2 fetch\n"
	       "\tcall 0\n"
	       "\tcallx r3\n"
	       "\tr0 = function 0\n"
	       "\texit\n",
	       MOV_K(0, 7), ADD_X(0, 1), RAW(0x34, 2, 0, 1, -3), RAW(0x67, 3, 0, 0, 65),
	       RAW(0xbf, 3, 1, 16, 0), RAW(0xbc, 3, 1, 8, 0), RAW(0xd7, 4, 0, 0, 32),
	       RAW(0xd4, 4, 0, 0, 16), RAW(0xd4, 4, 0, 0, 64), LDDW(5, 0x123456789abcdef0),
	       RAW(0x84, 5, 0, 0, 0), RAW(0x91, 1, 2, 4, 0), STX_DW(10, 1, -8), ST_B(2, 0, -1),
	       ATOMIC(1, 2, 0, 0x01), ATOMIC(1, 2, -8, 0xf1), ATOMIC(1, 2, 0, 0x40),
	       ATOMIC(1, 2, 0, 0xe1), CALL_LOCAL(-20), CALLX_IMM(3), LDDW_KIND(0, 4, 0, 0), EXIT());
}

static void branches_end_blocks(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr0 = r0 + r1\n"
	       "\tif w1 s< -5 goto b3 else b2\n"
	       "b2: depth 1\n"
	       "\tr1 = r1 + -1\n"
	       "\tif r1 != r0 goto b1 else b3\n"
	       "b3:\n"
	       "\texit\n",
	       MOV_K(0, 0), ADD_X(0, 1), RAW(0xc6, 1, 0, 2, -5), ADD_K(1, -1),
	       RAW(0x5d, 1, 0, -4, 0), EXIT());
}

/* A conversion to the machine's own byte order is nothing, also alone in a block. */
static void nothing_is_a_block(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tr0 = 1\n"
	       "\tif r1 == 0 goto b2 else b1\n"
	       "b1:\n"
	       "\tgoto b2\n"
	       "b2:\n"
	       "\texit\n",
	       MOV_K(0, 1), JEQ_K(1, 0, 1), RAW(0xd4, 0, 0, 0, 64), EXIT());
}

/* The entry is no target of a jump, whatever the first instruction is. */
static void entry_stands_alone(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr1 = r1 + 1\n"
	       "\tgoto b1\n",
	       ADD_K(1, 1), JA(-2));
}

static void unreachable_code_is_left_out(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tr0 = 1\n"
	       "\tgoto b2\n"
	       "b2:\n"
	       "\texit\n",
	       MOV_K(0, 1), JA(1), MOV_K(0, 2), EXIT());
}

/* As the interpreter does it: what is read before it is written is zero; arguments are not. */
static void registers_start_at_zero(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tr7 = 0\n"
	       "\tr7 = r7 + r1\n"
	       "\texit\n",
	       ADD_X(7, 1), EXIT());
}

static void code_may_end_in_a_call(void **state)
{
	(void)state;
	expect(0,
	       "b0:\n"
	       "\tcall 0\n"
	       "\ttrap\n",
	       CALL_LOCAL(-1));
}

static void checks_stand_before_accesses(void **state)
{
	(void)state;
	expect_checked(0,
		       "b0:\n"
		       "\tcheck read 1 [r1 + 3]\n"
		       "\tr0 = u8 [r1 + 3]\n"
		       "\tu64 [r10 - 8] = r0\n"
		       "\tr2 = r10\n"
		       "\tcheck write 8 [r2 - 8]\n"
		       "\tatomic u64 [r2 - 8] += r0\n"
		       "\texit\n",
		       LDX_B(0, 1, 3), STX_DW(10, 0, -8), MOV_X(2, 10), ATOMIC(2, 0, -8, 0),
		       EXIT());
}

static void checks_are_counted_on(void **state)
{
	const struct bpf_insn code[] = { LDX_B(0, 1, 3), LDX_B(0, 1, 3), EXIT() };
	const struct vm_image image = CODE_IMAGE(code);
	CLEANUP(compiled_deinit) struct compiled compiled;

	(void)state;
	compile_image(&image, 0, true, &compiled);
	assert_int_equal(compiled.function.nchecks, 2);
	assert_int_equal(jit_lower(&compiled.function), 0);
	assert_int_equal(jit_optimise(&compiled.function), 0);
	assert_int_equal(compiled.function.nchecks, 4);
}

static const struct jit_insn *find(const struct jit_function *function, uint32_t insn)
{
	for (uint32_t k = 0; k < function->norder; k++) {
		const struct jit_block *block = &function->blocks[function->order[k]];

		for (uint32_t i = 0; i < block->count; i++)
			if (function->insns[block->first + i].insn == insn)
				return &function->insns[block->first + i];
	}
	fail_msg("instruction %u is nowhere", insn);
	return NULL;
}

static void liveness_goes_round_loops(void **state)
{
	const struct bpf_insn code[] = {
		MOV_K(0, 0),     /* 0: r1 is the counter, r2 and r6 hold numbers */
		MOV_X(6, 2),     /* 1 */
		ADD_X(0, 6),     /* 2 */
		ADD_K(1, -1),    /* 3 */
		JNE_K(1, 0, -3), /* 4 */
		EXIT(),          /* 5 */
	};
	const struct vm_image image = CODE_IMAGE(code);
	CLEANUP(compiled_deinit) struct compiled compiled;
	const struct jit_function *function = &compiled.function;

	(void)state;
	compile_image(&image, 0, false, &compiled);
	assert_int_equal(find(function, 0)->live, 1 << 0 | 1 << 1 | 1 << 2);
	assert_int_equal(find(function, 1)->live, 1 << 0 | 1 << 1 | 1 << 6);
	assert_int_equal(find(function, 3)->live, 1 << 0 | 1 << 1 | 1 << 6);
	assert_int_equal(find(function, 4)->live, 1 << 0 | 1 << 1 | 1 << 6);
	assert_int_equal(find(function, 5)->live, 0);
	assert_int_equal(function->blocks[1].live_in, 1 << 0 | 1 << 1 | 1 << 6);
	assert_int_equal(function->used, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6);
	assert_int_equal(function->written, 1 << 0 | 1 << 1 | 1 << 6);
	assert_false(function->uses_frame);
	assert_false(function->calls);
	assert_int_equal(function->blocks[0].cost + function->blocks[1].cost +
				 function->blocks[2].cost,
			 COUNT_OF(code));
}

static void frames_and_calls_are_seen(void **state)
{
	const struct bpf_insn code[] = { ST_DW(10, -8, 1), CALL_LOCAL(-2), EXIT() };
	const struct vm_image image = CODE_IMAGE(code);
	CLEANUP(compiled_deinit) struct compiled compiled;

	(void)state;
	compile_image(&image, 0, false, &compiled);
	assert_true(compiled.function.uses_frame);
	assert_true(compiled.function.calls);
	assert_int_equal(compiled.function.frame, 512);
}

static void recursion_is_found(void **state)
{
	static const struct vm_native natives[] = {
		{ .name = "plain",
		  .function = recursion_is_found,
		  .result = VM_S32,
		  .nargs = 1,
		  .args = { VM_S32 } },
		{ .name = "qsort",
		  .function = recursion_is_found,
		  .result = VM_VOID,
		  .nargs = 1,
		  .args = { VM_POINTER } },
	};
	const struct bpf_insn code[] = {
		CALL_LOCAL(1),  EXIT(), /* 0, 1: calls 2 */
		CALL_LOCAL(3),  EXIT(), /* 2, 3: calls 6 */
		CALL_LOCAL(-1), EXIT(), /* 4, 5: calls 4, itself */
		CALL(0),        EXIT(), /* 6, 7: leaf with a plain native */
		CALL_LOCAL(1),  EXIT(), /* 8, 9: calls 10 */
		CALL_LOCAL(-3), EXIT(), /* 10, 11: calls 8 */
		CALL(1),        EXIT(), /* 12, 13: may be called back */
		CALLX_DST(1),   EXIT(), /* 14, 15 */
		CALL_LOCAL(-3), EXIT(), /* 16, 17: calls 14 */
	};
	static const bool expected[10] = { false, false, true, false, true,
					   true,  true,  true, false, true };
	struct vm_function functions[10] = { 0 };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,     .ncode = COUNT_OF(code),
				  .functions = functions, .nfunctions = 10, .natives = natives,
				  .nnatives = 2 };
	struct vm_options options = { .size = sizeof(options), .engine = VM_ENGINE_INTERPRETER };
	bool got[10];
	struct vm *vm;

	(void)state;
	for (int i = 0; i < 10; i++)
		functions[i] = (struct vm_function){ .name = "f", .first = 2 * i, .count = 2 };
	functions[9].first = 4; /* another name */
	assert_int_equal(vm_create(&image, &options, &vm, NULL, 0, NULL), 0);
	assert_int_equal(jit_find_recursion(vm, &image, got), 0);
	for (int i = 0; i < 10; i++)
		if (got[i] != expected[i])
			fail_msg("function %d: %d", i, got[i]);
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(straight_code),
		cmocka_unit_test(branches_end_blocks),
		cmocka_unit_test(nothing_is_a_block),
		cmocka_unit_test(entry_stands_alone),
		cmocka_unit_test(unreachable_code_is_left_out),
		cmocka_unit_test(registers_start_at_zero),
		cmocka_unit_test(code_may_end_in_a_call),
		cmocka_unit_test(checks_stand_before_accesses),
		cmocka_unit_test(checks_are_counted_on),
		cmocka_unit_test(liveness_goes_round_loops),
		cmocka_unit_test(frames_and_calls_are_seen),
		cmocka_unit_test(recursion_is_found),
	};

	return cmocka_run_group_tests_name("vm/jit/lower", tests, NULL, NULL);
}
