// SPDX-License-Identifier: BSD-2-Clause
/* How many checks the compiler leaves, and that none of them is one too few. */
#include "vm_fixture.h"

#include <string.h>

#include "vm/checked.h"

static const struct vm_contract nothing;
static const struct vm_contract measures = { .args = { { VM_STRING } } };

static uint64_t own(void)
{
	return 0;
}

static const struct vm_native natives[] = {
	{ "own", own, VM_U64, 0, .contract = &nothing },
	{ "strlen", strlen, VM_U64, 1, { VM_POINTER }, .foreign = true, .contract = &measures },
};

static uint32_t checks(const struct bpf_insn *code, size_t ncode, uint32_t passes_off)
{
	struct vm_function function = { .name = "main", .count = ncode };
	struct vm_image image = { VM_IMAGE_SIZES,
				  .code = code,
				  .ncode = ncode,
				  .functions = &function,
				  .nfunctions = 1,
				  .natives = natives,
				  .nnatives = COUNT_OF(natives) };
	struct vm_options options = { .size = sizeof(options),
				      .engine = VM_ENGINE_JIT,
				      .checked = true,
				      .passes_off = passes_off };
	struct vm *vm = make_vm(&image, &options);
	uint32_t count = vm->checked->nchecks;

	vm_destroy(vm);
	return count;
}

/* @code with that many checks, and without the pass with @all. */
#define LEAVES(few, all, ...)                                                        \
	do {                                                                         \
		const struct bpf_insn code[] = { __VA_ARGS__, EXIT() };              \
                                                                                     \
		assert_int_equal(checks(code, COUNT_OF(code), 0), few);              \
		assert_int_equal(checks(code, COUNT_OF(code), VM_PASS_CHECKS), all); \
	} while (0)

static void blocks_have_one_check_a_base(void **state)
{
	(void)state;
	LEAVES(1, 2, LDX_DW(0, 1, 0), LDX_DW(3, 1, 0), ADD_X(0, 3));
	LEAVES(1, 3, LDX_DW(0, 1, 0), LDX_DW(3, 1, 100), STX_DW(1, 3, 8));
	LEAVES(2, 2, LDX_DW(0, 1, 0), LDX_DW(3, 2, 0), ADD_X(0, 3));
	LEAVES(2, 2, LDX_DW(0, 1, 0), LDX_DW(3, 1, 2000), ADD_X(0, 3)); /* too far apart */
	LEAVES(2, 2, LDX_DW(0, 1, 0), MOV_X(1, 2), LDX_DW(3, 1, 8), ADD_X(0, 3));
	LEAVES(1, 2, LDX_DW(3, 1, 0), MOV_K(0, 1), ATOMIC(1, 0, 0, 0x00));
}

static void calls_may_take_regions_away(void **state)
{
	(void)state;
	LEAVES(2, 2, MOV_X(6, 1), LDX_DW(7, 6, 0), CALL(0), LDX_DW(0, 6, 0), ADD_X(0, 7));
	LEAVES(2, 2, MOV_X(6, 1), LDX_DW(7, 6, 0), CALLX_DST(7), LDX_DW(0, 6, 0), ADD_X(0, 7));
	/* strlen() does not. */
	LEAVES(1, 2, MOV_X(6, 1), ADD_X(6, 2), LDX_DW(7, 6, 0), CALL(1), LDX_DW(0, 6, 0),
	       ADD_X(0, 7));
}

static void every_way_must_have_checked(void **state)
{
	(void)state;
	/* if (r2) r3 = r1[0]; r0 = r1[0]: one way has not. */
	LEAVES(2, 2, JEQ_K(2, 0, 1), LDX_DW(3, 1, 0), LDX_DW(0, 1, 0), ADD_X(0, 3));
	/* r3 = r1[0]; if (r2) r3 += r1[0]; r0 = r1[0] */
	LEAVES(1, 3, LDX_DW(3, 1, 0), JEQ_K(2, 0, 2), LDX_DW(4, 1, 0), ADD_X(3, 4), LDX_DW(0, 1, 0),
	       ADD_X(0, 3));
	/* Both arms, then again; the bytes between have not been. */
	LEAVES(2, 3, JEQ_K(2, 0, 2), LDX_DW(3, 1, 0), JA(1), LDX_DW(3, 1, 0), LDX_DW(0, 1, 0),
	       ADD_X(0, 3));
	LEAVES(3, 3, JEQ_K(2, 0, 2), LDX_DW(3, 1, 0), JA(1), LDX_DW(3, 1, 16), LDX_DW(0, 1, 8),
	       ADD_X(0, 3));
	/* Read is not written. */
	LEAVES(2, 2, LDX_DW(3, 1, 0), JEQ_K(2, 0, 1), STX_DW(1, 3, 0), MOV_X(0, 3));
	LEAVES(1, 2, STX_DW(1, 2, 0), JEQ_K(2, 0, 1), LDX_DW(3, 1, 0), MOV_X(0, 2));
}

static void loops_look_once_at_what_stays(void **state)
{
	(void)state;
	/* r0 = r1[0]; do r0 += r1[0] + r3[0], r3++ while (--r2) */
	LEAVES(2, 3, LDX_DW(0, 1, 0), MOV_X(3, 1), LDX_DW(4, 1, 0), ADD_X(0, 4), LDX_B(4, 3, 0),
	       ADD_X(0, 4), ADD_K(3, 1), ADD_K(2, -1), JNE_K(2, 0, -7));
	/* A call inside. */
	LEAVES(2, 2, MOV_X(6, 1), MOV_X(7, 2), LDX_DW(0, 6, 0), CALL(0), LDX_DW(0, 6, 0),
	       ADD_K(7, -1), JNE_K(7, 0, -4));
}

static void frames_need_none(void **state)
{
	(void)state;
	LEAVES(0, 0, ST_DW(10, -8, 1), LDX_DW(0, 10, -8));
	LEAVES(0, 0, MOV_X(2, 10), ADD_K(2, -16), ST_DW(2, 0, 1), ST_DW(2, 8, 1), LDX_DW(0, 2, 8));
	LEAVES(1, 1, MOV_X(2, 10), ADD_K(2, -16), ST_DW(2, 9, 1), MOV_K(0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_have_one_check_a_base),
		cmocka_unit_test(calls_may_take_regions_away),
		cmocka_unit_test(every_way_must_have_checked),
		cmocka_unit_test(loops_look_once_at_what_stays),
		cmocka_unit_test(frames_need_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
