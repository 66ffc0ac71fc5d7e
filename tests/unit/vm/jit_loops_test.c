// SPDX-License-Identifier: BSD-2-Clause
/* What the passes make of loops and jumps: the dump of the blocks, in their order. */
#include "jit_fixture.h"

/* A loop that is tested at its start is tested at its end. */
static void loops_are_rotated(void **state)
{
	(void)state;
	expect(VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tgoto b1\n"
	       "b2: depth 1\n"
	       "\tr0 = r0 + r1\n"
	       "\tr1 = r1 + -1\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tif r1 != 0 goto b2 else b3\n"
	       "b3:\n"
	       "\texit\n",
	       MOV_K(0, 0), JEQ_K(1, 0, 3), ADD_X(0, 1), ADD_K(1, -1), JA(-4), EXIT());
}

/* Also when its way back is a test, too. */
static void short_tests_come_last(void **state)
{
	(void)state;
	expect(VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tgoto b1\n"
	       "b2: depth 1\n"
	       "\tr0 = r0 + 1\n"
	       "\tif r0 == 9 goto b3 else b1\n"
	       "b1: depth 1\n"
	       "\tr3 = u8 [r1]\n"
	       "\tif r3 != 0 goto b2 else b3\n"
	       "b3:\n"
	       "\texit\n",
	       MOV_K(0, 0), LDX_B(3, 1, 0), JEQ_K(3, 0, 2), ADD_K(0, 1), JNE_K(0, 9, -4), EXIT());
}

static void long_tests_come_first(void **state)
{
	(void)state;
	expect(VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr3 = u8 [r1]\n"
	       "\tr3 = r3 + 1\n"
	       "\tr3 = r3 + r2\n"
	       "\tr3 = r3 + 2\n"
	       "\tif r3 == 0 goto b3 else b2\n"
	       "b2: depth 1\n"
	       "\tr0 = r0 + 1\n"
	       "\tif r0 != 9 goto b1 else b3\n"
	       "b3:\n"
	       "\texit\n",
	       MOV_K(0, 0), LDX_B(3, 1, 0), ADD_K(3, 1), ADD_X(3, 2), ADD_K(3, 2), JEQ_K(3, 0, 2),
	       ADD_K(0, 1), JNE_K(0, 9, -7), EXIT());
}

static void jumps_are_threaded(void **state)
{
	(void)state;
	expect(VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tgoto b1\n"
	       "b1:\n"
	       "\tr0 = 1\n"
	       "\tgoto b4\n"
	       "b4:\n"
	       "\texit\n",
	       JEQ_K(1, 0, 2), MOV_K(0, 1), JA(1), JA(-3), JA(0), EXIT());
}

static void traps_are_out_of_line(void **state)
{
	(void)state;
	expect(VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tr6 = r1\n"
	       "\tif r6 != 0 goto b2 else b1\n"
	       "b1:\n"
	       "\tr0 = 3\n"
	       "\texit\n"
	       "b2:\n"
	       "\tcall 0\n"
	       "\ttrap\n",
	       MOV_X(6, 1), JNE_K(6, 0, 2), MOV_K(0, 3), EXIT(), CALL_LOCAL(-5));
}

static void short_loops_are_aligned(void **state)
{
	(void)state;
	expect(VM_PASS_LAYOUT | VM_PASS_ALIGN,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1 align 16\n"
	       "\tr0 = r0 + r1\n"
	       "\tr1 = r1 + -1\n"
	       "\tif r1 != 0 goto b1 else b2\n"
	       "b2:\n"
	       "\texit\n",
	       MOV_K(0, 0), ADD_X(0, 1), ADD_K(1, -1), JNE_K(1, 0, -3), EXIT());
}

/* What only the code behind the loop reads is computed there. */
static void sinks_out_of_loops(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD,
	       "b0:\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr3 = r1\n"
	       "\tr1 = r1 + -1\n"
	       "\tif r1 != 0 goto b1 else b3\n"
	       "b2:\n"
	       "\tr0 = r3\n"
	       "\texit\n"
	       "b3:\n"
	       "\tr3 = r3 + 7\n"
	       "\tgoto b2\n",
	       MOV_K(0, 0), MOV_X(3, 1), ADD_K(3, 7), ADD_K(1, -1), JNE_K(1, 0, -4), MOV_X(0, 3),
	       EXIT());
}

/* Where it ends is an address: nobody counts. */
static void counters_become_addresses(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD,
	       "b0:\n"
	       "\tr0 = 0\n"
	       "\tgoto b3\n"
	       "b1: depth 1\n"
	       "\tr4 = u64 [r1]\n"
	       "\tr0 = r0 + r4\n"
	       "\tr1 = r1 + 8\n"
	       "\tif r1 != r3 goto b1 else b2\n"
	       "b2:\n"
	       "\texit\n"
	       "b3:\n"
	       "\tr3 = r1 + 800\n"
	       "\tgoto b1\n",
	       MOV_K(0, 0), MOV_K(3, 0), LDX_DW(4, 1, 0), ADD_X(0, 4), ADD_K(1, 8), ADD_K(3, 1),
	       RAW(0xa5, 3, 0, -5, 100), EXIT());
}

/* A number of rounds that has few enough bits; tested below, so that 0 is as good as 1. */
static void unknown_counts_become_addresses(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD,
	       "b0:\n"
	       "\tr2 = r2 >> 1\n"
	       "\tgoto b5\n"
	       "b1: depth 1\n"
	       "\tu16 [r1] = 7\n"
	       "\tr1 = r1 + 2\n"
	       "\tif r1 != r3 goto b1 else b2\n"
	       "b2:\n"
	       "\tr0 = r1\n"
	       "\texit\n"
	       "b3:\n"
	       "\tr3 = lea r1 + r3*2\n"
	       "\tgoto b1\n"
	       "b4:\n"
	       "\tw3 = 1\n"
	       "\tgoto b3\n"
	       "b5:\n"
	       "\tr3 = r2\n"
	       "\tif r3 != 0 goto b3 else b4\n",
	       RAW(0x77, 2, 0, 0, 1), MOV_K(3, 0), RAW(0x6a, 1, 0, 0, 7), ADD_K(1, 2), ADD_K(3, 1),
	       RAW(0xad, 3, 2, -4, 0), MOV_X(0, 1), EXIT());
}

#define UNCHANGED_LOOP(limit, leave)     \
	"b0:\n"                          \
	"\tr3 = 0\n" limit "\tgoto b1\n" \
	"b1: depth 1\n"                  \
	"\tu16 [r1] = 7\n"               \
	"\tr1 = r1 + 2\n"                \
	"\tr3 = r3 + 1\n"                \
	"\tif r3 < r2 goto b1 else b2\n" \
	"b2:\n" leave "\texit\n"

/* 2^63 rounds of 2 bytes would be none; a counter that is read later is needed. */
static void counters_that_are_needed_stay(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD, UNCHANGED_LOOP("", "\tr0 = r1\n"), MOV_K(3, 0), RAW(0x6a, 1, 0, 0, 7),
	       ADD_K(1, 2), ADD_K(3, 1), RAW(0xad, 3, 2, -4, 0), MOV_X(0, 1), EXIT());
	expect(VM_PASS_DEAD, UNCHANGED_LOOP("\tr2 = r2 >> 1\n", "\tr0 = r3\n"), MOV_K(3, 0),
	       RAW(0x77, 2, 0, 0, 1), RAW(0x6a, 1, 0, 0, 7), ADD_K(1, 2), ADD_K(3, 1),
	       RAW(0xad, 3, 2, -4, 0), MOV_X(0, 3), EXIT());
}

/* Who leaves in the middle reads it. */
static void counters_that_are_read_behind_a_break_stay(void **state)
{
	(void)state;
	expect(VM_PASS_DEAD,
	       "b0:\n"
	       "\tr3 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr4 = u64 [r1]\n"
	       "\tif r4 == 0 goto b4 else b2\n"
	       "b2: depth 1\n"
	       "\tr1 = r1 + 8\n"
	       "\tr3 = r3 + 1\n"
	       "\tif r3 < 100 goto b1 else b3\n"
	       "b3:\n"
	       "\tr3 = 7\n"
	       "\tgoto b4\n"
	       "b4:\n"
	       "\tr0 = r3\n"
	       "\texit\n",
	       MOV_K(3, 0), LDX_DW(4, 1, 0), JEQ_K(4, 0, 4), ADD_K(1, 8), ADD_K(3, 1),
	       RAW(0xa5, 3, 0, -5, 100), MOV_K(3, 7), MOV_X(0, 3), EXIT());
}

/* The sum is made in r4, where the next round wants it. */
static void renaming_moves_vanish(void **state)
{
	(void)state;
	expect(VM_PASS_COPY,
	       "b0:\n"
	       "\tw4 = 0\n"
	       "\tgoto b1\n"
	       "b1: depth 1\n"
	       "\tr0 = u64 [r1]\n"
	       "\tr4 = r0 + r4\n"
	       "\tr1 = r1 + 8\n"
	       "\tif r1 < r2 goto b1 else b3\n"
	       "b2:\n"
	       "\texit\n"
	       "b3:\n"
	       "\tr0 = r4\n"
	       "\tgoto b2\n",
	       MOV_K(4, 0), LDX_DW(0, 1, 0), ADD_X(0, 4), ADD_K(1, 8), MOV_X(4, 0),
	       RAW(0xad, 1, 2, -5, 0), EXIT());
}

#define JSLT_K(dst, imm, off) RAW(0xc5, dst, 0, off, imm)

/* r0 is one of four numbers or 9: */
#define ARMS                                                                                \
	MOV_K(0, 9), EXIT(), MOV_K(0, 4), EXIT(), MOV_K(0, 3), EXIT(), MOV_K(0, 2), EXIT(), \
		MOV_K(0, 1), EXIT()

/* One comparison behind the other; what is compared twice goes where it goes first. */
static void chains_become_tables(void **state)
{
	(void)state;
	expect(VM_PASS_SWITCH | VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tr1 = r1 + r2\n"
	       "\tswitch r1 - -1: b9 b6 b8 b7 b6 else b5\n"
	       "b5:\n"
	       "\tr0 = 9\n"
	       "\texit\n"
	       "b6:\n"
	       "\tr0 = 4\n"
	       "\texit\n"
	       "b7:\n"
	       "\tr0 = 3\n"
	       "\texit\n"
	       "b8:\n"
	       "\tr0 = 2\n"
	       "\texit\n"
	       "b9:\n"
	       "\tr0 = 1\n"
	       "\texit\n",
	       ADD_X(1, 2), JEQ_K(1, -1, 12), JEQ_K(1, 1, 9), JEQ_K(1, 2, 6), JEQ_K(1, 3, 3),
	       JEQ_K(1, 0, 2), ARMS);
}

/* As the dump has them, when the first one is number 4. */
#define DUMPED_ARMS  \
	"b4:\n"      \
	"\tr0 = 9\n" \
	"\texit\n"   \
	"b5:\n"      \
	"\tr0 = 4\n" \
	"\texit\n"   \
	"b6:\n"      \
	"\tr0 = 3\n" \
	"\texit\n"   \
	"b7:\n"      \
	"\tr0 = 2\n" \
	"\texit\n"   \
	"b8:\n"      \
	"\tr0 = 1\n" \
	"\texit\n"

/* ... not when there are only three, or when they lie far apart. */
static void short_and_sparse_chains_stay(void **state)
{
	(void)state;
	expect(VM_PASS_SWITCH,
	       "b0:\n"
	       "\tif r1 == 1 goto b7 else b1\n"
	       "b1:\n"
	       "\tif r1 == 2 goto b6 else b2\n"
	       "b2:\n"
	       "\tif r1 == 3 goto b5 else b3\n"
	       "b3:\n"
	       "\tif r1 & 15 goto b8 else b4\n" DUMPED_ARMS,
	       JEQ_K(1, 1, 9), JEQ_K(1, 2, 6), JEQ_K(1, 3, 3), RAW(0x45, 1, 0, 8, 15), ARMS);
	expect(VM_PASS_SWITCH,
	       "b0:\n"
	       "\tif r1 == 1 goto b7 else b1\n"
	       "b1:\n"
	       "\tif r1 == 2 goto b6 else b2\n"
	       "b2:\n"
	       "\tif r1 == 3 goto b5 else b3\n"
	       "b3:\n"
	       "\tif r1 == 15 goto b8 else b4\n" DUMPED_ARMS,
	       JEQ_K(1, 1, 9), JEQ_K(1, 2, 6), JEQ_K(1, 3, 3), JEQ_K(1, 15, 8), ARMS);
}

/* -3, what is left of -2, -1 and 0: the rest goes where -4 does. */
static void trees_become_tables(void **state)
{
	(void)state;
	expect(VM_PASS_SWITCH | VM_PASS_LAYOUT,
	       "b0:\n"
	       "\tswitch r1 - -3: b9 b8 b11 b10 else b7\n"
	       "b7:\n"
	       "\tr0 = 9\n"
	       "\texit\n"
	       "b10:\n"
	       "\tr0 = 2\n"
	       "\texit\n"
	       "b11:\n"
	       "\tr0 = 1\n"
	       "\texit\n"
	       "b8:\n"
	       "\tr0 = 4\n"
	       "\texit\n"
	       "b9:\n"
	       "\tr0 = 3\n"
	       "\texit\n",
	       JSLT_K(1, -1, 3), JEQ_K(1, -1, 13), JEQ_K(1, 0, 10), JA(3), JEQ_K(1, -3, 6),
	       JSLT_K(1, -3, 1), JA(2), ARMS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_are_rotated),
		cmocka_unit_test(short_tests_come_last),
		cmocka_unit_test(long_tests_come_first),
		cmocka_unit_test(jumps_are_threaded),
		cmocka_unit_test(traps_are_out_of_line),
		cmocka_unit_test(chains_become_tables),
		cmocka_unit_test(short_and_sparse_chains_stay),
		cmocka_unit_test(trees_become_tables),
		cmocka_unit_test(short_loops_are_aligned),
		cmocka_unit_test(sinks_out_of_loops),
		cmocka_unit_test(counters_become_addresses),
		cmocka_unit_test(unknown_counts_become_addresses),
		cmocka_unit_test(counters_that_are_needed_stay),
		cmocka_unit_test(counters_that_are_read_behind_a_break_stay),
		cmocka_unit_test(renaming_moves_vanish),
	};

	return cmocka_run_group_tests_name("vm/jit/loops", tests, NULL, NULL);
}
