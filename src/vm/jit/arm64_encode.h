/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encodings of arm64 instructions (Arm ARM, section C6): each function gives one instruction word.
 * Pure: no state, callable from any thread, on any machine. Operands are register numbers 0 to 31;
 * 31 is SP or the zero register, as the instruction has it. `wide` chooses X over W registers.
 * Callers see to ranges (assert); the a64_fits_ and a64_find_ functions tell them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define A64_SP 31
#define A64_ZR 31
#define A64_LR 30

enum a64_condition {
	A64_EQ,
	A64_NE,
	A64_HS,
	A64_LO,
	A64_MI,
	A64_PL,
	A64_VS,
	A64_VC,
	A64_HI,
	A64_LS,
	A64_GE,
	A64_LT,
	A64_GT,
	A64_LE,
	A64_AL,
};

static inline enum a64_condition a64_inverse(enum a64_condition condition)
{
	return condition ^ 1;
}

enum a64_shift { A64_LSL, A64_LSR, A64_ASR, A64_ROR };

/* Values are the instructions' own bits, 29 and 30. */
enum a64_arith { A64_ADD = 0, A64_ADDS = 1, A64_SUB = 2, A64_SUBS = 3 };
enum a64_logic { A64_AND = 0, A64_ORR = 1, A64_EOR = 2, A64_ANDS = 3 };

/* ---- constants and addresses ---- */

/* Does @value, or with its sign changed, fit an add or sub (12 bits, or 12 bits shifted by 12)? */
static inline bool a64_fits_arith(uint64_t value)
{
	return value < 1 << 12 || (!(value & 0xfff) && value < 1 << 24);
}
/* The N:immr:imms field of a logical immediate; -1 when @value is none. */
int a64_find_logic(bool wide, uint64_t value);

uint32_t a64_arith_imm(bool wide, enum a64_arith op, int rd, int rn, uint32_t value);
/* @field: of a64_find_logic(). */
uint32_t a64_logic_imm(bool wide, enum a64_logic op, int rd, int rn, int field);
uint32_t a64_movz(bool wide, int rd, uint16_t value, int shift); /* shift: 0, 16, 32, 48 */
uint32_t a64_movn(bool wide, int rd, uint16_t value, int shift);
uint32_t a64_movk(bool wide, int rd, uint16_t value, int shift);
uint32_t a64_adr(int rd, int64_t distance);  /* bytes, +-1 MiB */
uint32_t a64_adrp(int rd, int64_t distance); /* pages of 4 KiB, +-1 Mi of them */

/* ---- arithmetic ---- */
uint32_t a64_arith_reg(bool wide, enum a64_arith op, int rd, int rn, int rm, enum a64_shift shift,
		       int amount);
/* 64 bits, rm extended first: 0 to 3 UXTB to UXTX, 4 to 7 signed; then shifted by 0 to 4. */
uint32_t a64_arith_extended(enum a64_arith op, int rd, int rn, int rm, int extension, int amount);
/* rm is taken as 64 bits; rd and rn may be SP. */
uint32_t a64_arith_sp(enum a64_arith op, int rd, int rn, int rm);
/* inverted: rm's bits are inverted first (BIC, ORN, EON, BICS). */
uint32_t a64_logic_reg(bool wide, enum a64_logic op, bool inverted, int rd, int rn, int rm,
		       enum a64_shift shift, int amount);
uint32_t a64_mov(bool wide, int rd, int rm); /* neither is SP */
uint32_t a64_sdiv(bool wide, int rd, int rn, int rm);
uint32_t a64_udiv(bool wide, int rd, int rn, int rm);
uint32_t a64_shift_reg(bool wide, enum a64_shift shift, int rd, int rn, int rm);
uint32_t a64_madd(bool wide, int rd, int rn, int rm, int ra); /* ra + rn * rm */
uint32_t a64_msub(bool wide, int rd, int rn, int rm, int ra); /* ra - rn * rm */
uint32_t a64_smaddl(int rd, int rn, int rm, int ra);          /* 64 = 64 + 32 * 32 */
uint32_t a64_umaddl(int rd, int rn, int rm, int ra);
uint32_t a64_smulh(int rd, int rn, int rm);
uint32_t a64_umulh(int rd, int rn, int rm);
uint32_t a64_rev(bool wide, int rd, int rn); /* the bytes of the register */
uint32_t a64_rev16(bool wide, int rd, int rn);

/* ---- bit fields ---- */
uint32_t a64_sbfm(bool wide, int rd, int rn, int immr, int imms);
uint32_t a64_ubfm(bool wide, int rd, int rn, int immr, int imms);
uint32_t a64_bfm(bool wide, int rd, int rn, int immr, int imms);
uint32_t a64_shift_imm(bool wide, enum a64_shift shift, int rd, int rn, int amount); /* not ROR */
/* The @width bits from @lsb of rn, at bit 0 of rd; ... and the lowest @width bits of rn at @lsb. */
uint32_t a64_extract(bool wide, bool is_signed, int rd, int rn, int lsb, int width);
uint32_t a64_insert_zero(bool wide, bool is_signed, int rd, int rn, int lsb, int width);

/* ---- conditions ---- */
uint32_t a64_csel(bool wide, int rd, int rn, int rm, enum a64_condition condition);
uint32_t a64_csinc(bool wide, int rd, int rn, int rm, enum a64_condition condition);
uint32_t a64_csinv(bool wide, int rd, int rn, int rm, enum a64_condition condition);
uint32_t a64_csneg(bool wide, int rd, int rn, int rm, enum a64_condition condition);
uint32_t a64_cset(bool wide, int rd, enum a64_condition condition);

/* ---- branches: distances in bytes from the instruction ---- */
static inline bool a64_fits(int64_t distance, int bits)
{
	return distance >= -(1ll << (bits + 1)) && distance < 1ll << (bits + 1);
}
#define A64_BRANCH_BITS 26 /* b, bl */
#define A64_COND_BITS   19 /* b.cond, cbz, ldr literal */
#define A64_TEST_BITS   14 /* tbz */
uint32_t a64_b(int64_t distance);
uint32_t a64_bl(int64_t distance);
uint32_t a64_b_cond(enum a64_condition condition, int64_t distance);
uint32_t a64_cbz(bool wide, bool nonzero, int rt, int64_t distance);
uint32_t a64_tbz(bool nonzero, int rt, int bit, int64_t distance);
uint32_t a64_br(int rn);
uint32_t a64_blr(int rn);
uint32_t a64_ret(void);
uint32_t a64_udf(uint16_t value);
uint32_t a64_nop(void);
uint32_t a64_mrs_tpidr(int rt);
/* Puts another distance into a branch, an adr or a literal load. */
uint32_t a64_retarget(uint32_t word, int64_t distance);
/* How many bits of distance such an instruction has; 0: it is none. */
int a64_distance_bits(uint32_t word);

/* ---- memory: size in bytes, 1 to 8 ---- */
enum a64_access { A64_STORE, A64_LOAD, A64_LOAD_SIGNED, A64_LOAD_SIGNED_W };
/* Fits the scaled form, or the unscaled one? */
bool a64_fits_offset(unsigned int size, int64_t offset);
uint32_t a64_memory(enum a64_access access, unsigned int size, int rt, int rn, int64_t offset);
uint32_t a64_memory_pre(enum a64_access access, unsigned int size, int rt, int rn, int offset);
uint32_t a64_memory_post(enum a64_access access, unsigned int size, int rt, int rn, int offset);
/* The index is shifted by the size's logarithm when @scaled. */
uint32_t a64_memory_reg(enum a64_access access, unsigned int size, int rt, int rn, int rm,
			bool scaled);
/* ... of 32 bits, extended: 2 UXTW, 6 SXTW. */
uint32_t a64_memory_extended(enum a64_access access, unsigned int size, int rt, int rn, int rm,
			     bool scaled, int extension);
uint32_t a64_literal(bool wide, int rt, int64_t distance);
bool a64_fits_pair(bool wide, int64_t offset);
uint32_t a64_pair(bool load, bool wide, int rt, int rt2, int rn, int offset);
uint32_t a64_pair_pre(bool load, bool wide, int rt, int rt2, int rn, int offset);
uint32_t a64_pair_post(bool load, bool wide, int rt, int rt2, int rn, int offset);

/* ---- atomics ---- */
uint32_t a64_load_exclusive(bool acquire, unsigned int size, int rt, int rn);
uint32_t a64_store_exclusive(bool release, unsigned int size, int rs, int rt, int rn);
/* LSE: rt = [rn], [rn] = op(rt, rs); ordered: acquire and release. */
enum a64_lse { A64_LDADD, A64_LDCLR, A64_LDEOR, A64_LDSET, A64_SWP = 8 };
uint32_t a64_lse(enum a64_lse op, bool ordered, unsigned int size, int rs, int rt, int rn);
uint32_t a64_casal(unsigned int size, int rs, int rt, int rn);
uint32_t a64_dmb_ish(void);

/* ---- doubles ---- */
enum a64_fp { A64_FMUL = 0, A64_FDIV = 1, A64_FADD = 2, A64_FSUB = 3 };
uint32_t a64_fp(enum a64_fp op, int rd, int rn, int rm);
uint32_t a64_fcmp(int rn, int rm);
uint32_t a64_fmov_to(bool wide, int vd, int rn);       /* general to vector register */
uint32_t a64_fmov_from(bool wide, int rd, int vn);     /* vector to general register */
uint32_t a64_from_int(bool is_signed, int vd, int rn); /* scvtf, ucvtf */
uint32_t a64_to_int(bool is_signed, int rd, int vn);   /* fcvtzs, fcvtzu */

/* The address that a load or store goes to, given the registers (31: SP); 0 when the word is
 * neither. */
uint64_t a64_address(uint32_t word, const uint64_t registers[32]);
