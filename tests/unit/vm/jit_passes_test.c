// SPDX-License-Identifier: BSD-2-Clause
/* What the passes make of a few instructions each: the dump of the blocks, in their order. */
#include "jit_fixture.h"

/* A copy is read where it comes from, and dies. */
static void copies_vanish(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr0 = r1 + r2\n"
	       "\texit\n",
	       MOV_X(3, 1), ADD_X(3, 2), MOV_X(0, 3), EXIT());
}

/* Also behind a branch, and where two ways meet. */
static void copies_cross_blocks(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tif r2 == 0 goto b2 else b1\n"
	       "b1:\n"
	       "\tr2 = r2 + 1\n"
	       "\tgoto b2\n"
	       "b2:\n"
	       "\tr0 = r1 + r2\n"
	       "\texit\n",
	       MOV_X(6, 1), JEQ_K(2, 0, 1), ADD_K(2, 1), MOV_X(0, 6), ADD_X(0, 2), EXIT());
}

/* r6 stays a copy of r1 in the loop; r7 does not stay one of r2. */
static void loops_keep_what_they_do_not_write(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr7 = r2\n"
	       "\tw0 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr0 = r0 + r1\n"
	       "\tr0 = r0 + r7\n"
	       "\tr7 = r7 + -1\n"
	       "\tif r7 != 0 goto b1 else b2\n"
	       "b2:\n"
	       "\texit\n",
	       MOV_X(6, 1), MOV_X(7, 2), MOV_K(0, 0), ADD_X(0, 6), ADD_X(0, 7), ADD_K(7, -1),
	       JNE_K(7, 0, -4), EXIT());
}

static void numbers_are_computed(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr0 = -42\n"
	       "\tgoto b2\n"
	       "b2:\n"
	       "\texit\n",
	       MOV_K(1, 6), MOV_X(2, 1), RAW(0x27, 2, 0, 0, 7), RAW(0x87, 2, 0, 0, 0), MOV_X(0, 2),
	       JEQ_K(1, 6, 1), MOV_K(0, 1), EXIT());
}

/* A branch that always falls through leaves one block. */
static void blocks_become_one(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr0 = r2 + 1\n"
	       "\texit\n",
	       MOV_K(1, 6), MOV_X(3, 2), JNE_K(1, 6, 2), MOV_X(0, 3), ADD_K(0, 1), EXIT());
}

/* What was loaded as 4 bytes needs no zero-extension, nor masks that cut nothing. */
static void known_upper_halves(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr1 = u32 [r1]\n"
	       "\tr2 = u8 [r2]\n"
	       "\tr0 = r1 + r2\n"
	       "\texit\n",
	       LDX_W(1, 1, 0), MOV32_X(1, 1), LDX_B(2, 2, 0), RAW(0x57, 2, 0, 0, 255),
	       RAW(0x67, 2, 0, 0, 32), RAW(0x77, 2, 0, 0, 32), MOV_X(0, 1), ADD_X(0, 2), EXIT());
}

static void shifts_extend(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr1 = s32 r1\n"
	       "\tw2 = u8 r2\n"
	       "\tw3 = w3\n"
	       "\tr3 = r3 << 3\n"
	       "\tr0 = r1 + r2\n"
	       "\tr0 = r0 + r3\n"
	       "\texit\n",
	       RAW(0x67, 1, 0, 0, 32), RAW(0xc7, 1, 0, 0, 32), RAW(0x67, 2, 0, 0, 56),
	       RAW(0x77, 2, 0, 0, 56), RAW(0x67, 3, 0, 0, 32), RAW(0x77, 3, 0, 0, 29), MOV_X(0, 1),
	       ADD_X(0, 2), ADD_X(0, 3), EXIT());
}

static void shifts_that_are_read_in_between_stay(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr1 = r1 << 32\n"
	       "\tr0 = r1\n"
	       "\tr1 = r1 >> 32\n"
	       "\tr0 = r0 + r1\n"
	       "\texit\n",
	       RAW(0x67, 1, 0, 0, 32), MOV_X(0, 1), RAW(0x77, 1, 0, 0, 32), ADD_X(0, 1), EXIT());
}

/* A 32-bit counter is never extended in its loop. */
static void counters_have_no_upper_half(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tw3 = 0\n"
	       "\tw0 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr0 = r0 + r3\n"
	       "\tw3 = w3 + 1\n"
	       "\tif w3 < w2 goto b1 else b2\n"
	       "b2:\n"
	       "\texit\n",
	       MOV32_K(3, 0), MOV_K(0, 0), MOV32_X(4, 3), ADD_X(0, 4), RAW(0x04, 3, 0, 0, 1),
	       RAW(0xae, 3, 2, -4, 0), EXIT());
}

static void cheaper_operations(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr1 = r1 << 3\n"
	       "\tr2 = r2 >> 4\n"
	       "\tw3 = w3 & 15\n"
	       "\tw4 = u16 r4\n"
	       "\tr5 = r5 + -3\n"
	       "\tr1 = r1 / r2\n"
	       "\tr0 = r1 + r3\n"
	       "\tr0 = r0 + r4\n"
	       "\tr0 = r0 + r5\n"
	       "\texit\n",
	       RAW(0x27, 1, 0, 0, 8), RAW(0x37, 2, 0, 0, 16), RAW(0x97, 3, 0, 0, 16),
	       RAW(0x57, 4, 0, 0, 0xffff), RAW(0x17, 5, 0, 0, 3), RAW(0x3f, 1, 2, 0, 0),
	       MOV_X(0, 1), ADD_X(0, 3), ADD_X(0, 4), ADD_X(0, 5), EXIT());
}

/* A pointer into the frame becomes r10 again, and the frame's values are known. */
static void frame_addresses(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr0 = r1\n"
	       "\texit\n",
	       MOV_X(2, 10), ADD_K(2, -16), STX_DW(2, 1, 8), LDX_DW(0, 10, -8), EXIT());
}

/* No address of the frame, nor a sum that has no place in 64 bits. */
static void far_addresses(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr1 = 0x7fffffffffffffff\n"
	       "\tr0 = u64 [r1 + 8]\n"
	       "\tr2 = r10 + -8\n"
	       "\tr0 = u64 [r2 + 8]\n"
	       "\texit\n",
	       LDDW(1, INT64_MAX), LDX_DW(0, 1, 8), MOV_X(2, 10), ADD_K(2, -8), LDX_DW(0, 2, 8),
	       EXIT());
}

/* They may fault; those of the frame do not. */
static void loads_stay(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD,
	       "b0:\n"
	       "\tr3 = u64 [r1]\n"
	       "\tw0 = 0\n"
	       "\texit\n",
	       LDX_DW(3, 1, 0), LDX_DW(4, 10, -8), MOV_K(0, 0), EXIT());
}

static void stores_that_nobody_loads(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD,
	       "b0:\n"
	       "\tu64 [r10 - 16] = r2\n"
	       "\tr0 = u64 [r10 - 16]\n"
	       "\texit\n",
	       STX_DW(10, 1, -8), STX_DW(10, 2, -16), LDX_DW(0, 10, -16), EXIT());
}

static void stores_stay_when_the_frame_is_shown(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD,
	       "b0:\n"
	       "\tu64 [r10 - 8] = r1\n"
	       "\tr1 = r10\n"
	       "\tcall 0\n"
	       "\texit\n",
	       STX_DW(10, 1, -8), MOV_X(1, 10), CALL_LOCAL(-3), EXIT());
}

static void addresses_take_sums(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD | VM_PASS_ADDRESS,
	       "b0:\n"
	       "\tr0 = u64 [r1 + r2*8 + 16]\n"
	       "\tu32 [r1 + r2*8 + 4] = r0\n"
	       "\texit\n",
	       RAW(0x67, 2, 0, 0, 3), ADD_X(1, 2), LDX_DW(0, 1, 16), STX_W(1, 0, 4), EXIT());
}

static void sums_that_are_needed_stay(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD | VM_PASS_ADDRESS,
	       "b0:\n"
	       "\tr1 = r1 + r2\n"
	       "\tr3 = u64 [r1 + 16]\n"
	       "\tr0 = r1 + r3\n"
	       "\texit\n",
	       ADD_X(1, 2), LDX_DW(3, 1, 16), MOV_X(0, 1), ADD_X(0, 3), EXIT());
}

static void sums_whose_operands_change_stay(void **state)
{
	(void)state;
	expect(VM_PASS_ADDRESS,
	       "b0:\n"
	       "\tr1 = r1 + r2\n"
	       "\tr2 = u64 [r1]\n"
	       "\tr0 = u64 [r1 + 8]\n"
	       "\tr0 = r0 + r2\n"
	       "\texit\n",
	       ADD_X(1, 2), LDX_DW(2, 1, 0), LDX_DW(0, 1, 8), ADD_X(0, 2), EXIT());
}

static void sums_become_one_instruction(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD | VM_PASS_ADDRESS,
	       "b0:\n"
	       "\tr0 = lea r1 + r2*4\n"
	       "\tr3 = lea r3 + r3*8\n"
	       "\tr0 = lea r0 + r3*1 + 5\n"
	       "\texit\n",
	       MOV_X(0, 2), RAW(0x67, 0, 0, 0, 2), ADD_X(0, 1), ADD_K(0, 5), RAW(0x27, 3, 0, 0, 9),
	       ADD_X(0, 3), EXIT());
}

/* r3 was loaded last, r2 before it, r4 nowhere. */
static void parts_come_in_order(void **state)
{
	(void)state;
	expect(VM_PASS_COPY,
	       "b0:\n"
	       "\tr0 = u64 [r1]\n"
	       "\tr2 = u64 [r1 + 8]\n"
	       "\tr3 = u64 [r1 + 16]\n"
	       "\tr0 = r0 + r4\n"
	       "\tr0 = r0 + r2\n"
	       "\tr0 = r0 + r3\n"
	       "\tr0 = r0 ^ r3\n"
	       "\tr0 = r0 - r4\n"
	       "\tr0 = r0 + r3\n"
	       "\texit\n",
	       LDX_DW(0, 1, 0), LDX_DW(2, 1, 8), LDX_DW(3, 1, 16), ADD_X(0, 3), ADD_X(0, 4),
	       ADD_X(0, 2), RAW(0xaf, 0, 3, 0, 0), RAW(0x1f, 0, 4, 0, 0), ADD_X(0, 3), EXIT());
}

static void read_modify_write(void **state)
{
	(void)state;
	expect(VM_PASS_MODIFY,
	       "b0:\n"
	       "\tu32 [r1 + 4] += -1\n"
	       "\tu64 [r1 + 8] |= r2\n"
	       "\tr0 = 0\n"
	       "\texit\n",
	       LDX_W(3, 1, 4), RAW(0x04, 3, 0, 0, -1), STX_W(1, 3, 4), LDX_DW(4, 1, 8),
	       RAW(0x4f, 4, 2, 0, 0), STX_DW(1, 4, 8), MOV_K(0, 0), EXIT());
}

/* ... or another access is in between, or the place is another one. */
static void no_modify_when_the_value_is_needed(void **state)
{
	(void)state;
	expect(VM_PASS_MODIFY,
	       "b0:\n"
	       "\tr0 = u32 [r1 + 4]\n"
	       "\tw0 = w0 + 1\n"
	       "\tu32 [r1 + 4] = r0\n"
	       "\tr4 = u64 [r1 + 8]\n"
	       "\tr4 = r4 + 1\n"
	       "\tu64 [r2 + 8] = r4\n"
	       "\tr4 = u64 [r1 + 8]\n"
	       "\tr5 = u64 [r1 + 16]\n"
	       "\tr4 = r4 + 1\n"
	       "\tu64 [r1 + 8] = r4\n"
	       "\texit\n",
	       LDX_W(0, 1, 4), RAW(0x04, 0, 0, 0, 1), STX_W(1, 0, 4), LDX_DW(4, 1, 8), ADD_K(4, 1),
	       STX_DW(2, 4, 8), LDX_DW(4, 1, 8), LDX_DW(5, 1, 16), ADD_K(4, 1), STX_DW(1, 4, 8),
	       EXIT());
}

static void branches_compare_memory(void **state)
{
	(void)state;
	expect(VM_PASS_COPY | VM_PASS_DEAD | VM_PASS_MODIFY,
	       "b0:\n"
	       "\tw0 = 0\n"
	       "\tif u8 [r1] > 9 goto b2 else b1\n"
	       "b1:\n"
	       "\tr3 = u8 [r2]\n"
	       "\tif32 u8 [r1 + 1] == w3 goto b3 else b2\n"
	       "b2:\n"
	       "\tw0 = 1\n"
	       "\tgoto b3\n"
	       "b3:\n"
	       "\texit\n",
	       LDX_B(3, 1, 0), MOV_K(0, 0), RAW(0x65, 3, 0, 3, 9), LDX_B(3, 2, 0), LDX_B(4, 1, 1),
	       RAW(0x1e, 4, 3, 1, 0), MOV_K(0, 1), EXIT());
}

/* An array of 16 elements of 8 bytes at 0x1000, and its lookup. */
static const struct vm_array array = {
	.handle = 0x77, .data = (void *)0x1000, .stride = 8, .entries = 16
};
static const struct vm_native lookup = { .name = "lookup",
					 .function = expect_image,
					 .result = VM_POINTER,
					 .nargs = 2,
					 .args = { VM_U64, VM_POINTER },
					 .intrinsic = VM_ARRAY_LOOKUP };

static void expect_lookup(uint32_t passes, const char *dump, const struct bpf_insn *code,
			  size_t ncode)
{
	const struct vm_function function = { .name = "main", .count = ncode };
	const struct vm_image image = { VM_IMAGE_SIZES,  .code = code,
					.ncode = ncode,  .functions = &function,
					.nfunctions = 1, .natives = &lookup,
					.nnatives = 1,   .arrays = &array,
					.narrays = 1 };

	expect_image(&image, passes, false, dump);
}

#define KEY_ON_STACK STX_W(10, 1, -4), MOV_X(2, 10), ADD_K(2, -4), LDDW(1, 0x77), CALL(0)

#define INLINED (VM_PASS_COPY | VM_PASS_DEAD | VM_PASS_INLINE)

static void lookups_of_a_known_index(void **state)
{
	const struct bpf_insn code[] = { MOV_K(1, 3), KEY_ON_STACK, JEQ_K(0, 0, 1), LDX_DW(0, 0, 0),
					 EXIT() };

	(void)state;
	expect_lookup(INLINED,
		      "b0:\n"
		      "\tr0 = 4120\n"
		      "\tr0 = u64 [r0]\n"
		      "\texit\n",
		      code, COUNT_OF(code));
}

static void lookups_in_range(void **state)
{
	const struct bpf_insn code[] = { RAW(0x57, 1, 0, 0, 15), KEY_ON_STACK, JEQ_K(0, 0, 1),
					 LDX_DW(0, 0, 0), EXIT() };

	(void)state;
	expect_lookup(INLINED,
		      "b0:\n"
		      "\tw1 = w1 & 15\n"
		      "\tr0 = 4096\n"
		      "\tr0 = lea r0 + r1*8\n"
		      "\tr0 = u64 [r0]\n"
		      "\texit\n",
		      code, COUNT_OF(code));
}

static void lookups_by_register(void **state)
{
	const struct bpf_insn code[] = { KEY_ON_STACK, EXIT() };

	(void)state;
	expect_lookup(INLINED,
		      "b0:\n"
		      "\tr0 = array 0 at w1\n"
		      "\texit\n",
		      code, COUNT_OF(code));
}

static void lookups_by_memory(void **state)
{
	const struct bpf_insn code[] = { LDDW(1, 0x77), CALL(0), EXIT() };

	(void)state;
	expect_lookup(VM_PASS_INLINE,
		      "b0:\n"
		      "\tr1 = 119\n"
		      "\tr0 = array 0 at [r2]\n"
		      "\texit\n",
		      code, COUNT_OF(code));
}

static void other_lookups_are_calls(void **state)
{
	const struct bpf_insn code[] = { LDDW(1, 0x78), CALL(0), EXIT() };

	(void)state;
	expect_lookup(VM_PASS_INLINE,
		      "b0:\n"
		      "\tr1 = 120\n"
		      "\tcall native 0\n"
		      "\texit\n",
		      code, COUNT_OF(code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_vanish),
		cmocka_unit_test(copies_cross_blocks),
		cmocka_unit_test(loops_keep_what_they_do_not_write),
		cmocka_unit_test(numbers_are_computed),
		cmocka_unit_test(blocks_become_one),
		cmocka_unit_test(known_upper_halves),
		cmocka_unit_test(shifts_extend),
		cmocka_unit_test(shifts_that_are_read_in_between_stay),
		cmocka_unit_test(counters_have_no_upper_half),
		cmocka_unit_test(cheaper_operations),
		cmocka_unit_test(frame_addresses),
		cmocka_unit_test(far_addresses),
		cmocka_unit_test(loads_stay),
		cmocka_unit_test(stores_that_nobody_loads),
		cmocka_unit_test(stores_stay_when_the_frame_is_shown),
		cmocka_unit_test(addresses_take_sums),
		cmocka_unit_test(sums_that_are_needed_stay),
		cmocka_unit_test(sums_whose_operands_change_stay),
		cmocka_unit_test(sums_become_one_instruction),
		cmocka_unit_test(parts_come_in_order),
		cmocka_unit_test(read_modify_write),
		cmocka_unit_test(no_modify_when_the_value_is_needed),
		cmocka_unit_test(branches_compare_memory),
		cmocka_unit_test(lookups_of_a_known_index),
		cmocka_unit_test(lookups_in_range),
		cmocka_unit_test(lookups_by_register),
		cmocka_unit_test(lookups_by_memory),
		cmocka_unit_test(other_lookups_are_calls),
	};

	return cmocka_run_group_tests_name("vm/jit/passes", tests, NULL, NULL);
}
