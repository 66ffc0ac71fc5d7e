// SPDX-License-Identifier: BSD-2-Clause
/* Each arm64 encoding against the word that an assembler makes of its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/jit/arm64_encode.h"

struct known {
	const char *text;
	uint32_t want, got;
};

static void check_known(const struct known *known)
{
	if (known->got != known->want)
		fail_msg("%s: 0x%08x, not 0x%08x", known->text, known->got, known->want);
}

/* The words were made by llvm-mc -triple=aarch64 -mattr=+lse. */
/* clang-format off */
static void test_known_words(void **state)
{
	const struct known known[] = {
	{ "add x1, x2, #4095", 0x913ffc41, a64_arith_imm(true, A64_ADD, 1, 2, 4095) },
	{ "sub w3, w4, #1, lsl #12", 0x51400483, a64_arith_imm(false, A64_SUB, 3, 4, 4096) },
	{ "sub sp, sp, #4080", 0xd13fc3ff, a64_arith_imm(true, A64_SUB, A64_SP, A64_SP, 4080) },
	{ "cmp x5, #16", 0xf10040bf, a64_arith_imm(true, A64_SUBS, A64_ZR, 5, 16) },
	{ "cmn w6, #17", 0x310044df, a64_arith_imm(false, A64_ADDS, A64_ZR, 6, 17) },
	{ "and x1, x2, #0xff", 0x92401c41, a64_logic_imm(true, A64_AND, 1, 2, a64_find_logic(true, 0xff)) },
	{ "orr w1, w2, #0x80000001", 0x32010441, a64_logic_imm(false, A64_ORR, 1, 2, a64_find_logic(false, 0x80000001)) },
	{ "eor x3, x4, #0x5555555555555555", 0xd200f083, a64_logic_imm(true, A64_EOR, 3, 4, a64_find_logic(true, 0x5555555555555555)) },
	{ "tst x9, #0xfffffffffffffffe", 0xf27ff93f, a64_logic_imm(true, A64_ANDS, A64_ZR, 9, a64_find_logic(true, -2ull)) },
	{ "tst w9, #0xfff00fff", 0x720c5d3f, a64_logic_imm(false, A64_ANDS, A64_ZR, 9, a64_find_logic(false, 0xfff00fff)) },
	{ "movz x1, #0x1234, lsl #48", 0xd2e24681, a64_movz(true, 1, 0x1234, 48) },
	{ "movz w30, #65535", 0x529ffffe, a64_movz(false, 30, 0xffff, 0) },
	{ "movn x2, #1, lsl #16", 0x92a00022, a64_movn(true, 2, 1, 16) },
	{ "movk x3, #0xabcd, lsl #32", 0xf2d579a3, a64_movk(true, 3, 0xabcd, 32) },
	{ "adr x5, #-4", 0x10ffffe5, a64_adr(5, -4) },
	{ "adr x5, #1048575", 0x707fffe5, a64_adr(5, 1048575) },
	{ "adrp x6, #0x7fff000", 0xf003ffe6, a64_adrp(6, 0x7fff) },
	{ "adrp x6, #-4096", 0xf0ffffe6, a64_adrp(6, -1) },
	{ "add x1, x2, x3", 0x8b030041, a64_arith_reg(true, A64_ADD, 1, 2, 3, A64_LSL, 0) },
	{ "sub w1, w2, w3, lsr #31", 0x4b437c41, a64_arith_reg(false, A64_SUB, 1, 2, 3, A64_LSR, 31) },
	{ "cmp x1, x2, asr #63", 0xeb82fc3f, a64_arith_reg(true, A64_SUBS, A64_ZR, 1, 2, A64_ASR, 63) },
	{ "cmn w1, w2", 0x2b02003f, a64_arith_reg(false, A64_ADDS, A64_ZR, 1, 2, A64_LSL, 0) },
	{ "neg x1, x2", 0xcb0203e1, a64_arith_reg(true, A64_SUB, 1, A64_ZR, 2, A64_LSL, 0) },
	{ "add sp, sp, x16", 0x8b3063ff, a64_arith_sp(A64_ADD, A64_SP, A64_SP, 16) },
	{ "cmp sp, x17", 0xeb3163ff, a64_arith_sp(A64_SUBS, A64_ZR, A64_SP, 17) },
	{ "and x1, x2, x3", 0x8a030041, a64_logic_reg(true, A64_AND, false, 1, 2, 3, A64_LSL, 0) },
	{ "orn w1, w2, w3, ror #5", 0x2ae31441, a64_logic_reg(false, A64_ORR, true, 1, 2, 3, A64_ROR, 5) },
	{ "eon x1, x2, x3", 0xca230041, a64_logic_reg(true, A64_EOR, true, 1, 2, 3, A64_LSL, 0) },
	{ "bic x1, x2, x3, lsl #4", 0x8a231041, a64_logic_reg(true, A64_AND, true, 1, 2, 3, A64_LSL, 4) },
	{ "ands w1, w2, w3", 0x6a030041, a64_logic_reg(false, A64_ANDS, false, 1, 2, 3, A64_LSL, 0) },
	{ "mov x20, x21", 0xaa1503f4, a64_mov(true, 20, 21) },
	{ "mov w20, wzr", 0x2a1f03f4, a64_mov(false, 20, A64_ZR) },
	{ "sdiv x1, x2, x3", 0x9ac30c41, a64_sdiv(true, 1, 2, 3) },
	{ "udiv w1, w2, w3", 0x1ac30841, a64_udiv(false, 1, 2, 3) },
	{ "lsl x1, x2, x3", 0x9ac32041, a64_shift_reg(true, A64_LSL, 1, 2, 3) },
	{ "lsr w1, w2, w3", 0x1ac32441, a64_shift_reg(false, A64_LSR, 1, 2, 3) },
	{ "asr x1, x2, x3", 0x9ac32841, a64_shift_reg(true, A64_ASR, 1, 2, 3) },
	{ "madd x1, x2, x3, x4", 0x9b031041, a64_madd(true, 1, 2, 3, 4) },
	{ "mul w1, w2, w3", 0x1b037c41, a64_madd(false, 1, 2, 3, A64_ZR) },
	{ "msub w1, w2, w3, w4", 0x1b039041, a64_msub(false, 1, 2, 3, 4) },
	{ "smaddl x1, w2, w3, x4", 0x9b231041, a64_smaddl(1, 2, 3, 4) },
	{ "umull x1, w2, w3", 0x9ba37c41, a64_umaddl(1, 2, 3, A64_ZR) },
	{ "smulh x1, x2, x3", 0x9b437c41, a64_smulh(1, 2, 3) },
	{ "umulh x1, x2, x3", 0x9bc37c41, a64_umulh(1, 2, 3) },
	{ "rev x1, x2", 0xdac00c41, a64_rev(true, 1, 2) },
	{ "rev w1, w2", 0x5ac00841, a64_rev(false, 1, 2) },
	{ "rev16 w1, w2", 0x5ac00441, a64_rev16(false, 1, 2) },
	{ "rev16 x1, x2", 0xdac00441, a64_rev16(true, 1, 2) },
	{ "sxtw x1, w2", 0x93407c41, a64_extract(true, true, 1, 2, 0, 32) },
	{ "sxtb w1, w2", 0x13001c41, a64_extract(false, true, 1, 2, 0, 8) },
	{ "ubfx x1, x2, #5, #9", 0xd3453441, a64_extract(true, false, 1, 2, 5, 9) },
	{ "sbfx w1, w2, #5, #9", 0x13053441, a64_extract(false, true, 1, 2, 5, 9) },
	{ "ubfiz x1, x2, #3, #32", 0xd37d7c41, a64_insert_zero(true, false, 1, 2, 3, 32) },
	{ "sbfiz w1, w2, #7, #4", 0x13190c41, a64_insert_zero(false, true, 1, 2, 7, 4) },
	{ "bfi x1, x2, #8, #16", 0xb3783c41, a64_bfm(true, 1, 2, 56, 15) },
	{ "lsl x1, x2, #63", 0xd3410041, a64_shift_imm(true, A64_LSL, 1, 2, 63) },
	{ "lsl w1, w2, #0", 0x53007c41, a64_shift_imm(false, A64_LSL, 1, 2, 0) },
	{ "lsr w1, w2, #31", 0x531f7c41, a64_shift_imm(false, A64_LSR, 1, 2, 31) },
	{ "asr x1, x2, #1", 0x9341fc41, a64_shift_imm(true, A64_ASR, 1, 2, 1) },
	{ "csel x1, x2, x3, hi", 0x9a838041, a64_csel(true, 1, 2, 3, A64_HI) },
	{ "csinc w1, w2, w3, mi", 0x1a834441, a64_csinc(false, 1, 2, 3, A64_MI) },
	{ "csinv x1, x2, x3, ge", 0xda83a041, a64_csinv(true, 1, 2, 3, A64_GE) },
	{ "csneg w1, w2, w3, le", 0x5a83d441, a64_csneg(false, 1, 2, 3, A64_LE) },
	{ "cset x1, lo", 0x9a9f27e1, a64_cset(true, 1, A64_LO) },
	{ "b #-134217728", 0x16000000, a64_b(-134217728) },
	{ "bl #134217724", 0x95ffffff, a64_bl(134217724) },
	{ "b.ls #-1048576", 0x54800009, a64_b_cond(A64_LS, -1048576) },
	{ "b.eq #1048572", 0x547fffe0, a64_b_cond(A64_EQ, 1048572) },
	{ "cbz x7, #8", 0xb4000047, a64_cbz(true, false, 7, 8) },
	{ "cbnz w7, #-8", 0x35ffffc7, a64_cbz(false, true, 7, -8) },
	{ "tbz x7, #63, #32764", 0xb6fbffe7, a64_tbz(false, 7, 63, 32764) },
	{ "tbnz w7, #31, #-32768", 0x37fc0007, a64_tbz(true, 7, 31, -32768) },
	{ "br x16", 0xd61f0200, a64_br(16) },
	{ "blr x17", 0xd63f0220, a64_blr(17) },
	{ "ret", 0xd65f03c0, a64_ret() },
	{ "udf #7", 0x00000007, a64_udf(7) },
	{ "nop", 0xd503201f, a64_nop() },
	{ "mrs x16, TPIDR_EL0", 0xd53bd050, a64_mrs_tpidr(16) },
	{ "strb w1, [x2, #4095]", 0x393ffc41, a64_memory(A64_STORE, 1, 1, 2, 4095) },
	{ "ldrh w1, [x2, #8190]", 0x797ffc41, a64_memory(A64_LOAD, 2, 1, 2, 8190) },
	{ "ldrsw x1, [sp, #4]", 0xb98007e1, a64_memory(A64_LOAD_SIGNED, 4, 1, A64_SP, 4) },
	{ "ldrsb x1, [x2]", 0x39800041, a64_memory(A64_LOAD_SIGNED, 1, 1, 2, 0) },
	{ "ldrsh w1, [x2, #2]", 0x79c00441, a64_memory(A64_LOAD_SIGNED_W, 2, 1, 2, 2) },
	{ "ldur x1, [x2, #-256]", 0xf8500041, a64_memory(A64_LOAD, 8, 1, 2, -256) },
	{ "stur w1, [x2, #255]", 0xb80ff041, a64_memory(A64_STORE, 4, 1, 2, 255) },
	{ "ldr x1, [x2, #32760]", 0xf97ffc41, a64_memory(A64_LOAD, 8, 1, 2, 32760) },
	{ "str x30, [sp, #-16]!", 0xf81f0ffe, a64_memory_pre(A64_STORE, 8, 30, A64_SP, -16) },
	{ "ldr x30, [sp], #16", 0xf84107fe, a64_memory_post(A64_LOAD, 8, 30, A64_SP, 16) },
	{ "ldr x1, [x2, x3]", 0xf8636841, a64_memory_reg(A64_LOAD, 8, 1, 2, 3, false) },
	{ "ldr x1, [x2, x3, lsl #3]", 0xf8637841, a64_memory_reg(A64_LOAD, 8, 1, 2, 3, true) },
	{ "str w1, [x2, w3, uxtw #2]", 0xb8235841, a64_memory_extended(A64_STORE, 4, 1, 2, 3, true, 2) },
	{ "ldrb w1, [x2, w3, uxtw]", 0x38634841, a64_memory_extended(A64_LOAD, 1, 1, 2, 3, false, 2) },
	{ "ldrsh x1, [x2, x3, lsl #1]", 0x78a37841, a64_memory_reg(A64_LOAD_SIGNED, 2, 1, 2, 3, true) },
	{ "ldr x1, #-1048576", 0x58800001, a64_literal(true, 1, -1048576) },
	{ "ldr w1, #8", 0x18000041, a64_literal(false, 1, 8) },
	{ "ldp x1, x2, [x3, #504]", 0xa95f8861, a64_pair(true, true, 1, 2, 3, 504) },
	{ "stp w1, w2, [x3, #-256]", 0x29200861, a64_pair(false, false, 1, 2, 3, -256) },
	{ "stp x29, x30, [sp, #-512]!", 0xa9a07bfd, a64_pair_pre(false, true, 29, 30, A64_SP, -512) },
	{ "ldp x29, x30, [sp], #16", 0xa8c17bfd, a64_pair_post(true, true, 29, 30, A64_SP, 16) },
	{ "ldaxr x1, [x2]", 0xc85ffc41, a64_load_exclusive(true, 8, 1, 2) },
	{ "ldxr w1, [x2]", 0x885f7c41, a64_load_exclusive(false, 4, 1, 2) },
	{ "stlxr w1, x2, [x3]", 0xc801fc62, a64_store_exclusive(true, 8, 1, 2, 3) },
	{ "stxr w1, w2, [x3]", 0x88017c62, a64_store_exclusive(false, 4, 1, 2, 3) },
	{ "ldaxrb w1, [x2]", 0x085ffc41, a64_load_exclusive(true, 1, 1, 2) },
	{ "ldaddal x1, x2, [x3]", 0xf8e10062, a64_lse(A64_LDADD, true, 8, 1, 2, 3) },
	{ "stadd w1, [x3]", 0xb821007f, a64_lse(A64_LDADD, false, 4, 1, A64_ZR, 3) },
	{ "ldclral w1, w2, [x3]", 0xb8e11062, a64_lse(A64_LDCLR, true, 4, 1, 2, 3) },
	{ "ldseth w1, w2, [x3]", 0x78213062, a64_lse(A64_LDSET, false, 2, 1, 2, 3) },
	{ "ldeoral x1, x2, [x3]", 0xf8e12062, a64_lse(A64_LDEOR, true, 8, 1, 2, 3) },
	{ "swpal x1, x2, [x3]", 0xf8e18062, a64_lse(A64_SWP, true, 8, 1, 2, 3) },
	{ "casal x1, x2, [x3]", 0xc8e1fc62, a64_casal(8, 1, 2, 3) },
	{ "casal w1, w2, [x3]", 0x88e1fc62, a64_casal(4, 1, 2, 3) },
	{ "dmb ish", 0xd5033bbf, a64_dmb_ish() },
	{ "fadd d1, d2, d3", 0x1e632841, a64_fp(A64_FADD, 1, 2, 3) },
	{ "fsub d1, d2, d3", 0x1e633841, a64_fp(A64_FSUB, 1, 2, 3) },
	{ "fmul d1, d2, d3", 0x1e630841, a64_fp(A64_FMUL, 1, 2, 3) },
	{ "fdiv d1, d2, d3", 0x1e631841, a64_fp(A64_FDIV, 1, 2, 3) },
	{ "fcmp d1, d2", 0x1e622020, a64_fcmp(1, 2) },
	{ "fmov d1, x2", 0x9e670041, a64_fmov_to(true, 1, 2) },
	{ "fmov s1, w2", 0x1e270041, a64_fmov_to(false, 1, 2) },
	{ "fmov x1, d2", 0x9e660041, a64_fmov_from(true, 1, 2) },
	{ "fmov w1, s2", 0x1e260041, a64_fmov_from(false, 1, 2) },
	{ "scvtf d1, x2", 0x9e620041, a64_from_int(true, 1, 2) },
	{ "ucvtf d1, x2", 0x9e630041, a64_from_int(false, 1, 2) },
	{ "fcvtzs x1, d2", 0x9e780041, a64_to_int(true, 1, 2) },
	{ "fcvtzu x1, d2", 0x9e790041, a64_to_int(false, 1, 2) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		check_known(&known[i]);
}
/* clang-format on */

/* DecodeBitMasks, as the Arm ARM has it. */
static uint64_t decode_logic(bool wide, int field)
{
	int n = field >> 12 & 1, immr = field >> 6 & 63, imms = field & 63;
	int length = 31 - __builtin_clz((unsigned int)(n << 6 | (~imms & 63)));
	int size = 1 << length, ones = (imms & (size - 1)) + 1, turn = immr & (size - 1);
	uint64_t mask = size == 64 ? ~0ull : (1ull << size) - 1, element;

	element = ones == 64 ? ~0ull : (1ull << ones) - 1;
	if (turn)
		element = (element >> turn | element << (size - turn)) & mask;
	for (; size < 64; size *= 2)
		element |= element << size;
	return wide ? element : (uint32_t)element;
}

/* All of them are found, and mean what was asked for. */
static void test_logic_constants(void **state)
{
	unsigned int found[2] = { 0 };

	(void)state;
	for (int wide = 0; wide < 2; wide++)
		for (int size = 2; size <= (wide ? 64 : 32); size *= 2)
			for (int ones = 1; ones < size; ones++)
				for (int turn = 0; turn < size; turn++) {
					int field = (size == 64) << 12 | turn << 6 |
						    ((-(size * 2) & 63) | (ones - 1));
					uint64_t value = decode_logic(wide, field);

					assert_int_equal(a64_find_logic(wide, value), field);
					found[wide]++;
				}
	assert_int_equal(found[1], 5334);
	assert_int_equal(found[0], 1302);
}

static void test_no_logic_constants(void **state)
{
	uint64_t value = 1;

	(void)state;
	assert_int_equal(a64_find_logic(true, 0), -1);
	assert_int_equal(a64_find_logic(true, UINT64_MAX), -1);
	assert_int_equal(a64_find_logic(false, UINT32_MAX), -1);
	assert_int_equal(a64_find_logic(true, 5), -1);
	assert_int_equal(a64_find_logic(false, 0x12345678), -1);
	for (int i = 0; i < 100000; i++) {
		int field = a64_find_logic(i & 1, value);

		if (field >= 0)
			assert_int_equal(decode_logic(i & 1, field),
					 i & 1 ? value : (uint32_t)value);
		value = value * 6364136223846793005ull + 1442695040888963407ull;
	}
}

static void test_retarget(void **state)
{
	(void)state;
	assert_int_equal(a64_retarget(a64_b(0), -8), a64_b(-8));
	assert_int_equal(a64_retarget(a64_bl(12), 4096), a64_bl(4096));
	assert_int_equal(a64_retarget(a64_b_cond(A64_LE, 0), -1048576),
			 a64_b_cond(A64_LE, -1048576));
	assert_int_equal(a64_retarget(a64_cbz(true, true, 9, 0), 64), a64_cbz(true, true, 9, 64));
	assert_int_equal(a64_retarget(a64_tbz(true, 9, 40, 0), -64), a64_tbz(true, 9, 40, -64));
	assert_int_equal(a64_retarget(a64_literal(true, 3, 0), 1024), a64_literal(true, 3, 1024));
	assert_int_equal(a64_retarget(a64_adr(3, 0), -3), a64_adr(3, -3));
	assert_int_equal(a64_distance_bits(a64_nop()), 0);
	assert_int_equal(a64_distance_bits(a64_br(3)), 0);
	assert_true(a64_fits(32764, A64_TEST_BITS));
	assert_false(a64_fits(32768, A64_TEST_BITS));
	assert_true(a64_fits(-32768, A64_TEST_BITS));
	assert_false(a64_fits(-32772, A64_TEST_BITS));
}

/* The addresses of all forms of loads and stores. */
static void test_addresses(void **state)
{
	uint64_t registers[32];

	(void)state;
	for (int i = 0; i < 32; i++)
		registers[i] = 0x1000000000 + i * 0x10000;
	registers[3] = 0xffffffff00000002;
#define CHECK(word, address) assert_int_equal(a64_address(word, registers), address)
	CHECK(a64_memory(A64_LOAD, 8, 1, 2, 32760), registers[2] + 32760);
	CHECK(a64_memory(A64_STORE, 1, 1, A64_SP, 4095), registers[31] + 4095);
	CHECK(a64_memory(A64_LOAD_SIGNED, 2, 1, 2, -3), registers[2] - 3);
	CHECK(a64_memory_pre(A64_STORE, 8, 1, A64_SP, -16), registers[31] - 16);
	CHECK(a64_memory_post(A64_LOAD, 8, 1, 4, 16), registers[4]);
	CHECK(a64_memory_reg(A64_LOAD, 8, 1, 2, 3, true), registers[2] + (registers[3] << 3));
	CHECK(a64_memory_reg(A64_STORE, 4, 1, 2, 3, false), registers[2] + registers[3]);
	CHECK(a64_memory_extended(A64_LOAD, 2, 1, 2, 3, true, 2), registers[2] + (2 << 1));
	CHECK(a64_pair(true, true, 1, 2, 4, -512), registers[4] - 512);
	CHECK(a64_pair(false, false, 1, 2, 4, 252), registers[4] + 252);
	CHECK(a64_pair_pre(false, true, 1, 2, 4, -16), registers[4] - 16);
	CHECK(a64_pair_post(true, true, 1, 2, 4, 16), registers[4]);
	CHECK(a64_load_exclusive(true, 8, 1, 5), registers[5]);
	CHECK(a64_store_exclusive(true, 4, 1, 2, 5), registers[5]);
	CHECK(a64_lse(A64_LDADD, true, 8, 1, 2, 6), registers[6]);
	CHECK(a64_casal(4, 1, 2, 6), registers[6]);
	CHECK(a64_nop(), 0);
	CHECK(a64_madd(true, 1, 2, 3, 4), 0);
#undef CHECK
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_words),        cmocka_unit_test(test_logic_constants),
		cmocka_unit_test(test_no_logic_constants), cmocka_unit_test(test_retarget),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
