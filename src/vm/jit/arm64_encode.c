// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/arm64_encode.h"

#include <assert.h>

#define WIDE(wide) ((uint32_t)(wide) << 31)
#define RD(r)      ((uint32_t)(r))
#define RN(r)      ((uint32_t)(r) << 5)
#define RA(r)      ((uint32_t)(r) << 10)
#define RM(r)      ((uint32_t)(r) << 16)

static uint32_t field(int64_t value, int bits, int at)
{
	return ((uint32_t)value & ((1u << bits) - 1)) << at;
}

static int log2_of(unsigned int size)
{
	return __builtin_ctz(size);
}

/*
 * A logical immediate is a run of ones, rotated, in an element of 2 to 64 bits that fills the
 * register (DecodeBitMasks). So: find the element, rotate its lowest run down to bit 0, and see
 * whether nothing else is left.
 */
int a64_find_logic(bool wide, uint64_t value)
{
	unsigned int size = 64, rotate, ones;
	uint64_t mask;

	if (!wide)
		value = (uint32_t)value | value << 32;
	if (!value || !~value)
		return -1;
	while (size > 2) {
		mask = (1ull << size / 2) - 1;
		if ((value & mask) != (value >> size / 2 & mask))
			break;
		size /= 2;
	}
	mask = size == 64 ? ~0ull : (1ull << size) - 1;
	value &= mask;
	/* Where the run of ones begins: above a zero. */
	if (value & 1)
		rotate = 64 - __builtin_clzll(~value & mask);
	else
		rotate = __builtin_ctzll(value);
	if (rotate && rotate < size)
		value = (value >> rotate | value << (size - rotate)) & mask;
	if (value & (value + 1))
		return -1;
	ones = __builtin_popcountll(value);
	return (size == 64) << 12 | ((size - rotate) & (size - 1)) << 6 |
	       ((-(size * 2) & 0x3f) | (ones - 1));
}

uint32_t a64_arith_imm(bool wide, enum a64_arith op, int rd, int rn, uint32_t value)
{
	uint32_t high = value >= 1 << 12;

	assert(a64_fits_arith(value));
	return 0x11000000 | WIDE(wide) | (uint32_t)op << 29 | high << 22 |
	       (high ? value >> 12 : value) << 10 | RN(rn) | RD(rd);
}

uint32_t a64_logic_imm(bool wide, enum a64_logic op, int rd, int rn, int field)
{
	assert(field >= 0);
	return 0x12000000 | WIDE(wide) | (uint32_t)op << 29 | (uint32_t)field << 10 | RN(rn) |
	       RD(rd);
}

static uint32_t move_wide(bool wide, uint32_t op, int rd, uint16_t value, int shift)
{
	return 0x12800000 | WIDE(wide) | op << 29 | (uint32_t)shift / 16 << 21 |
	       (uint32_t)value << 5 | RD(rd);
}

uint32_t a64_movz(bool wide, int rd, uint16_t value, int shift)
{
	return move_wide(wide, 2, rd, value, shift);
}

uint32_t a64_movn(bool wide, int rd, uint16_t value, int shift)
{
	return move_wide(wide, 0, rd, value, shift);
}

uint32_t a64_movk(bool wide, int rd, uint16_t value, int shift)
{
	return move_wide(wide, 3, rd, value, shift);
}

uint32_t a64_adr(int rd, int64_t distance)
{
	return 0x10000000 | field(distance, 2, 29) | field(distance >> 2, 19, 5) | RD(rd);
}

uint32_t a64_adrp(int rd, int64_t distance)
{
	return 0x90000000 | field(distance, 2, 29) | field(distance >> 2, 19, 5) | RD(rd);
}

uint32_t a64_arith_reg(bool wide, enum a64_arith op, int rd, int rn, int rm, enum a64_shift shift,
		       int amount)
{
	return 0x0b000000 | WIDE(wide) | (uint32_t)op << 29 | (uint32_t)shift << 22 | RM(rm) |
	       (uint32_t)amount << 10 | RN(rn) | RD(rd);
}

uint32_t a64_arith_extended(enum a64_arith op, int rd, int rn, int rm, int extension, int amount)
{
	return 0x8b200000 | (uint32_t)op << 29 | RM(rm) | (uint32_t)extension << 13 |
	       (uint32_t)amount << 10 | RN(rn) | RD(rd);
}

uint32_t a64_arith_sp(enum a64_arith op, int rd, int rn, int rm)
{
	return a64_arith_extended(op, rd, rn, rm, 3, 0);
}

uint32_t a64_logic_reg(bool wide, enum a64_logic op, bool inverted, int rd, int rn, int rm,
		       enum a64_shift shift, int amount)
{
	return 0x0a000000 | WIDE(wide) | (uint32_t)op << 29 | (uint32_t)shift << 22 |
	       (uint32_t)inverted << 21 | RM(rm) | (uint32_t)amount << 10 | RN(rn) | RD(rd);
}

uint32_t a64_mov(bool wide, int rd, int rm)
{
	return a64_logic_reg(wide, A64_ORR, false, rd, A64_ZR, rm, A64_LSL, 0);
}

static uint32_t two_source(bool wide, uint32_t op, int rd, int rn, int rm)
{
	return 0x1ac00000 | WIDE(wide) | RM(rm) | op << 10 | RN(rn) | RD(rd);
}

uint32_t a64_sdiv(bool wide, int rd, int rn, int rm)
{
	return two_source(wide, 3, rd, rn, rm);
}

uint32_t a64_udiv(bool wide, int rd, int rn, int rm)
{
	return two_source(wide, 2, rd, rn, rm);
}

uint32_t a64_shift_reg(bool wide, enum a64_shift shift, int rd, int rn, int rm)
{
	return two_source(wide, 8 + shift, rd, rn, rm);
}

static uint32_t three_source(uint32_t base, int rd, int rn, int rm, int ra)
{
	return base | RM(rm) | RA(ra) | RN(rn) | RD(rd);
}

uint32_t a64_madd(bool wide, int rd, int rn, int rm, int ra)
{
	return three_source(0x1b000000 | WIDE(wide), rd, rn, rm, ra);
}

uint32_t a64_msub(bool wide, int rd, int rn, int rm, int ra)
{
	return three_source(0x1b008000 | WIDE(wide), rd, rn, rm, ra);
}

uint32_t a64_smaddl(int rd, int rn, int rm, int ra)
{
	return three_source(0x9b200000, rd, rn, rm, ra);
}

uint32_t a64_umaddl(int rd, int rn, int rm, int ra)
{
	return three_source(0x9ba00000, rd, rn, rm, ra);
}

uint32_t a64_smulh(int rd, int rn, int rm)
{
	return three_source(0x9b400000, rd, rn, rm, A64_ZR);
}

uint32_t a64_umulh(int rd, int rn, int rm)
{
	return three_source(0x9bc00000, rd, rn, rm, A64_ZR);
}

uint32_t a64_rev(bool wide, int rd, int rn)
{
	return (wide ? 0xdac00c00 : 0x5ac00800) | RN(rn) | RD(rd);
}

uint32_t a64_rev16(bool wide, int rd, int rn)
{
	return 0x5ac00400 | WIDE(wide) | RN(rn) | RD(rd);
}

static uint32_t bit_field(bool wide, uint32_t op, int rd, int rn, int immr, int imms)
{
	return 0x13000000 | WIDE(wide) | op << 29 | (uint32_t)wide << 22 | (uint32_t)immr << 16 |
	       (uint32_t)imms << 10 | RN(rn) | RD(rd);
}

uint32_t a64_sbfm(bool wide, int rd, int rn, int immr, int imms)
{
	return bit_field(wide, 0, rd, rn, immr, imms);
}

uint32_t a64_bfm(bool wide, int rd, int rn, int immr, int imms)
{
	return bit_field(wide, 1, rd, rn, immr, imms);
}

uint32_t a64_ubfm(bool wide, int rd, int rn, int immr, int imms)
{
	return bit_field(wide, 2, rd, rn, immr, imms);
}

uint32_t a64_shift_imm(bool wide, enum a64_shift shift, int rd, int rn, int amount)
{
	int top = wide ? 63 : 31;

	assert(shift != A64_ROR);
	if (shift == A64_LSL)
		return a64_ubfm(wide, rd, rn, -amount & top, top - amount);
	return bit_field(wide, shift == A64_LSR ? 2 : 0, rd, rn, amount, top);
}

uint32_t a64_extract(bool wide, bool is_signed, int rd, int rn, int lsb, int width)
{
	return bit_field(wide, is_signed ? 0 : 2, rd, rn, lsb, lsb + width - 1);
}

uint32_t a64_insert_zero(bool wide, bool is_signed, int rd, int rn, int lsb, int width)
{
	return bit_field(wide, is_signed ? 0 : 2, rd, rn, -lsb & (wide ? 63 : 31), width - 1);
}

static uint32_t select(bool wide, uint32_t base, int rd, int rn, int rm,
		       enum a64_condition condition)
{
	return base | WIDE(wide) | RM(rm) | (uint32_t)condition << 12 | RN(rn) | RD(rd);
}

uint32_t a64_csel(bool wide, int rd, int rn, int rm, enum a64_condition condition)
{
	return select(wide, 0x1a800000, rd, rn, rm, condition);
}

uint32_t a64_csinc(bool wide, int rd, int rn, int rm, enum a64_condition condition)
{
	return select(wide, 0x1a800400, rd, rn, rm, condition);
}

uint32_t a64_csinv(bool wide, int rd, int rn, int rm, enum a64_condition condition)
{
	return select(wide, 0x5a800000, rd, rn, rm, condition);
}

uint32_t a64_csneg(bool wide, int rd, int rn, int rm, enum a64_condition condition)
{
	return select(wide, 0x5a800400, rd, rn, rm, condition);
}

uint32_t a64_cset(bool wide, int rd, enum a64_condition condition)
{
	return a64_csinc(wide, rd, A64_ZR, A64_ZR, a64_inverse(condition));
}

uint32_t a64_b(int64_t distance)
{
	return 0x14000000 | field(distance >> 2, 26, 0);
}

uint32_t a64_bl(int64_t distance)
{
	return 0x94000000 | field(distance >> 2, 26, 0);
}

uint32_t a64_b_cond(enum a64_condition condition, int64_t distance)
{
	return 0x54000000 | field(distance >> 2, 19, 5) | condition;
}

uint32_t a64_cbz(bool wide, bool nonzero, int rt, int64_t distance)
{
	return 0x34000000 | WIDE(wide) | (uint32_t)nonzero << 24 | field(distance >> 2, 19, 5) |
	       RD(rt);
}

uint32_t a64_tbz(bool nonzero, int rt, int bit, int64_t distance)
{
	return 0x36000000 | (uint32_t)bit >> 5 << 31 | (uint32_t)nonzero << 24 | field(bit, 5, 19) |
	       field(distance >> 2, 14, 5) | RD(rt);
}

uint32_t a64_br(int rn)
{
	return 0xd61f0000 | RN(rn);
}

uint32_t a64_blr(int rn)
{
	return 0xd63f0000 | RN(rn);
}

uint32_t a64_ret(void)
{
	return 0xd65f0000 | RN(A64_LR);
}

uint32_t a64_udf(uint16_t value)
{
	return value;
}

uint32_t a64_nop(void)
{
	return 0xd503201f;
}

uint32_t a64_mrs_tpidr(int rt)
{
	return 0xd53bd040 | RD(rt);
}

int a64_distance_bits(uint32_t word)
{
	if ((word & 0x7c000000) == 0x14000000)
		return A64_BRANCH_BITS;
	if ((word & 0x7e000000) == 0x36000000)
		return A64_TEST_BITS;
	if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000 ||
	    (word & 0xbf000000) == 0x18000000)
		return A64_COND_BITS;
	return 0;
}

uint32_t a64_retarget(uint32_t word, int64_t distance)
{
	switch (a64_distance_bits(word)) {
	case A64_BRANCH_BITS:
		return (word & ~field(-1, 26, 0)) | field(distance >> 2, 26, 0);
	case A64_COND_BITS:
		return (word & ~field(-1, 19, 5)) | field(distance >> 2, 19, 5);
	case A64_TEST_BITS:
		return (word & ~field(-1, 14, 5)) | field(distance >> 2, 14, 5);
	default:
		assert((word & 0x9f000000) == 0x10000000);
		return a64_adr(word & 31, distance);
	}
}

bool a64_fits_offset(unsigned int size, int64_t offset)
{
	if (offset >= -256 && offset < 256)
		return true;
	return offset >= 0 && !(offset & (size - 1)) && offset >> log2_of(size) < 1 << 12;
}

uint32_t a64_memory(enum a64_access access, unsigned int size, int rt, int rn, int64_t offset)
{
	uint32_t scale = log2_of(size);
	uint32_t common = scale << 30 | (uint32_t)access << 22 | RN(rn) | RD(rt);

	assert(a64_fits_offset(size, offset));
	if (offset >= 0 && !(offset & (size - 1)))
		return 0x39000000 | common | (uint32_t)(offset >> scale) << 10;
	return 0x38000000 | common | field(offset, 9, 12);
}

uint32_t a64_memory_pre(enum a64_access access, unsigned int size, int rt, int rn, int offset)
{
	return 0x38000c00 | (uint32_t)log2_of(size) << 30 | (uint32_t)access << 22 | RN(rn) |
	       RD(rt) | field(offset, 9, 12);
}

uint32_t a64_memory_post(enum a64_access access, unsigned int size, int rt, int rn, int offset)
{
	return 0x38000400 | (uint32_t)log2_of(size) << 30 | (uint32_t)access << 22 | RN(rn) |
	       RD(rt) | field(offset, 9, 12);
}

uint32_t a64_memory_reg(enum a64_access access, unsigned int size, int rt, int rn, int rm,
			bool scaled)
{
	return a64_memory_extended(access, size, rt, rn, rm, scaled, 3); /* LSL */
}

uint32_t a64_memory_extended(enum a64_access access, unsigned int size, int rt, int rn, int rm,
			     bool scaled, int extension)
{
	return 0x38200800 | (uint32_t)log2_of(size) << 30 | (uint32_t)access << 22 | RM(rm) |
	       (uint32_t)extension << 13 | (uint32_t)scaled << 12 | RN(rn) | RD(rt);
}

uint32_t a64_literal(bool wide, int rt, int64_t distance)
{
	return 0x18000000 | (uint32_t)wide << 30 | field(distance >> 2, 19, 5) | RD(rt);
}

bool a64_fits_pair(bool wide, int64_t offset)
{
	int scale = wide ? 3 : 2;

	return !(offset & ((1 << scale) - 1)) && offset >> scale >= -64 && offset >> scale < 64;
}

static uint32_t pair(uint32_t form, bool load, bool wide, int rt, int rt2, int rn, int offset)
{
	assert(a64_fits_pair(wide, offset));
	return form | WIDE(wide) | (uint32_t)load << 22 | field(offset >> (wide ? 3 : 2), 7, 15) |
	       RA(rt2) | RN(rn) | RD(rt);
}

uint32_t a64_pair(bool load, bool wide, int rt, int rt2, int rn, int offset)
{
	return pair(0x29000000, load, wide, rt, rt2, rn, offset);
}

uint32_t a64_pair_pre(bool load, bool wide, int rt, int rt2, int rn, int offset)
{
	return pair(0x29800000, load, wide, rt, rt2, rn, offset);
}

uint32_t a64_pair_post(bool load, bool wide, int rt, int rt2, int rn, int offset)
{
	return pair(0x28800000, load, wide, rt, rt2, rn, offset);
}

uint32_t a64_load_exclusive(bool acquire, unsigned int size, int rt, int rn)
{
	return 0x085f7c00 | (uint32_t)log2_of(size) << 30 | (uint32_t)acquire << 15 | RN(rn) |
	       RD(rt);
}

uint32_t a64_store_exclusive(bool release, unsigned int size, int rs, int rt, int rn)
{
	return 0x08007c00 | (uint32_t)log2_of(size) << 30 | (uint32_t)release << 15 | RM(rs) |
	       RN(rn) | RD(rt);
}

uint32_t a64_lse(enum a64_lse op, bool ordered, unsigned int size, int rs, int rt, int rn)
{
	return 0x38200000 | (uint32_t)log2_of(size) << 30 | (ordered ? 3u << 22 : 0) | RM(rs) |
	       (uint32_t)op << 12 | RN(rn) | RD(rt);
}

uint32_t a64_casal(unsigned int size, int rs, int rt, int rn)
{
	return 0x08e0fc00 | (uint32_t)log2_of(size) << 30 | RM(rs) | RN(rn) | RD(rt);
}

uint32_t a64_dmb_ish(void)
{
	return 0xd5033bbf;
}

uint32_t a64_fp(enum a64_fp op, int rd, int rn, int rm)
{
	return 0x1e600800 | RM(rm) | (uint32_t)op << 12 | RN(rn) | RD(rd);
}

uint32_t a64_fcmp(int rn, int rm)
{
	return 0x1e602000 | RM(rm) | RN(rn);
}

uint32_t a64_fmov_to(bool wide, int vd, int rn)
{
	return (wide ? 0x9e670000 : 0x1e270000) | RN(rn) | RD(vd);
}

uint32_t a64_fmov_from(bool wide, int rd, int vn)
{
	return (wide ? 0x9e660000 : 0x1e260000) | RN(vn) | RD(rd);
}

uint32_t a64_from_int(bool is_signed, int vd, int rn)
{
	return (is_signed ? 0x9e620000 : 0x9e630000) | RN(rn) | RD(vd);
}

uint32_t a64_to_int(bool is_signed, int rd, int vn)
{
	return (is_signed ? 0x9e780000 : 0x9e790000) | RN(vn) | RD(rd);
}

/* Sign-extends the @bits of @word at @at. */
static int64_t signed_field(uint32_t word, int bits, int at)
{
	return (int32_t)(word << (32 - bits - at)) >> (32 - bits);
}

uint64_t a64_address(uint32_t word, const uint64_t registers[32])
{
	uint64_t base = registers[word >> 5 & 31], index;
	int scale = word >> 30;

	if ((word & 0x3f000000) == 0x39000000) /* unsigned offset */
		return base + ((uint64_t)(word >> 10 & 0xfff) << scale);
	if ((word & 0x3f200c00) == 0x38000000 || /* unscaled */
	    (word & 0x3f200c00) == 0x38000c00)   /* before: written back */
		return base + signed_field(word, 9, 12);
	if ((word & 0x3f200c00) == 0x38000400) /* written back after */
		return base;
	if ((word & 0x3f200c00) == 0x38200800) {
		index = registers[word >> 16 & 31];
		if ((word >> 13 & 3) == 2)
			index = word >> 15 & 1 ? (uint64_t)(int32_t)index : (uint32_t)index;
		return base + (index << (word >> 12 & 1 ? scale : 0));
	}
	if ((word & 0x3e000000) == 0x28000000) { /* pairs */
		scale = word >> 31 ? 3 : 2;
		if ((word >> 23 & 3) == 1)
			return base;
		return base + ((uint64_t)signed_field(word, 7, 15) << scale);
	}
	if ((word & 0x3f200c00) == 0x38200000 || /* LSE */
	    (word & 0x3f000000) == 0x08000000)   /* exclusives, cas */
		return base;
	return 0;
}
