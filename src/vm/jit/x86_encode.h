/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 instructions as bytes (Intel SDM volume 2). Pure: knows nothing of BPF, writes at a
 * cursor and checks nothing; whoever emits keeps X86_MAX_INSN bytes of room. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_MAX_INSN 15

enum x86_register {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R9,
	X86_R10,
	X86_R11,
	X86_R12,
	X86_R13,
	X86_R14,
	X86_R15,
	X86_RIP, /* as the base of a memory operand only */
	X86_NONE = 0xff,
};

/* Number of the condition in jcc, setcc, cmovcc; the opposite one is ^ 1. */
enum x86_condition {
	X86_O,
	X86_NO,
	X86_B,
	X86_AE,
	X86_E,
	X86_NE,
	X86_BE,
	X86_A,
	X86_S,
	X86_NS,
	X86_P,
	X86_NP,
	X86_L,
	X86_GE,
	X86_LE,
	X86_G,
};

/* Arithmetic by number: opcode of `op rm, reg` is number << 3 | 1, of `op reg, rm` | 3. */
enum x86_alu {
	X86_ADD = 0,
	X86_OR = 1,
	X86_AND = 4,
	X86_SUB = 5,
	X86_XOR = 6,
	X86_CMP = 7,
};
#define X86_ALU_STORE(number) ((number) << 3 | 1)
#define X86_ALU_LOAD(number)  ((number) << 3 | 3)

enum x86_shift { X86_ROL = 0, X86_RCR = 3, X86_SHL = 4, X86_SHR = 5, X86_SAR = 7 };

/* [base + (index << scale) + disp]. base X86_NONE: [disp + ...]; base X86_RIP: disp counts from
 * the first byte of the instruction, which has no immediate. fs: relative to the thread pointer. */
struct x86_mem {
	uint8_t base, index, scale;
	bool fs;
	int32_t disp;
};

/* Opcodes with what surrounds them. The operand size is the `wide` of the functions. */
#define X86_0F       0x100  /* second opcode map */
#define X86_66       0x1000 /* 16-bit operand, or part of the opcode */
#define X86_F2       0x2000
#define X86_F3       0x4000
#define X86_LOCK     0x8000
#define X86_BYTE_REG 0x10000 /* the register is a byte register */
#define X86_BYTE_RM  0x20000 /* the other operand, if a register, is one */

enum x86_opcode {
	X86_MOV = 0x89,  /* rm = reg */
	X86_LOAD = 0x8b, /* reg = rm */
	X86_LEA = 0x8d,
	X86_TEST = 0x85,
	X86_XCHG = 0x87,
	X86_MOVSXD = 0x63,
	X86_MOVZX8 = X86_0F | X86_BYTE_RM | 0xb6,
	X86_MOVZX16 = X86_0F | 0xb7,
	X86_MOVSX8 = X86_0F | X86_BYTE_RM | 0xbe,
	X86_MOVSX16 = X86_0F | 0xbf,
	X86_SETCC = X86_0F | X86_BYTE_RM | 0x90, /* | condition */
	X86_IMUL = X86_0F | 0xaf,                /* reg *= rm */
	X86_XADD = X86_LOCK | X86_0F | 0xc1,
	X86_CMPXCHG = X86_LOCK | X86_0F | 0xb1,
	X86_GROUP3 = 0xf7,  /* reg: 0 test, 2 not, 3 neg, 4 mul, 5 imul, 6 div, 7 idiv */
	X86_CALL_RM = 0xff, /* reg: 2 call, 4 jmp */
	X86_MOVQ_TO = X86_66 | X86_0F | 0x6e,   /* xmm reg = rm; wide: 64 bits */
	X86_MOVQ_FROM = X86_66 | X86_0F | 0x7e, /* rm = xmm reg */
	X86_ADDSD = X86_F2 | X86_0F | 0x58,
	X86_MULSD = X86_F2 | X86_0F | 0x59,
	X86_SUBSD = X86_F2 | X86_0F | 0x5c,
	X86_DIVSD = X86_F2 | X86_0F | 0x5e,
	X86_CMPSD = X86_F2 | X86_0F | 0xc2, /* predicate byte follows */
	X86_UCOMISD = X86_66 | X86_0F | 0x2e,
	X86_CVTSI2SD = X86_F2 | X86_0F | 0x2a,
	X86_CVTTSD2SI = X86_F2 | X86_0F | 0x2c,
	X86_XORPS = X86_0F | 0x57,
};

struct x86_emit {
	uint8_t *at;
	bool brief; /* short immediates, displacements and special forms */
};

static inline bool x86_fits8(int64_t value)
{
	return value == (int8_t)value;
}

static inline bool x86_fits32(int64_t value)
{
	return value == (int32_t)value;
}

void x86_byte(struct x86_emit *e, unsigned int byte);
void x86_word32(struct x86_emit *e, uint32_t value);
void x86_word64(struct x86_emit *e, uint64_t value);

/* Any opcode with a register and a register or memory operand. wide: REX.W. */
void x86_rr(struct x86_emit *e, uint32_t opcode, bool wide, unsigned int reg, unsigned int rm);
void x86_rm(struct x86_emit *e, uint32_t opcode, bool wide, unsigned int reg, struct x86_mem mem);

/* Nothing when dst == src and wide. */
void x86_mov_rr(struct x86_emit *e, bool wide, unsigned int dst, unsigned int src);
/* Shortest form when brief; may change the flags (xor). */
void x86_mov_ri(struct x86_emit *e, unsigned int dst, uint64_t value);
void x86_alu_ri(struct x86_emit *e, enum x86_alu op, bool wide, unsigned int reg, int32_t imm);
void x86_test_ri(struct x86_emit *e, bool wide, unsigned int reg, int32_t imm);
void x86_imul_rri(struct x86_emit *e, bool wide, unsigned int dst, unsigned int src, int32_t imm);
void x86_shift_ri(struct x86_emit *e, enum x86_shift op, bool wide, unsigned int reg,
		  unsigned int count);
void x86_shift_cl(struct x86_emit *e, enum x86_shift op, bool wide, unsigned int reg);
void x86_bswap(struct x86_emit *e, bool wide, unsigned int reg);
/* BMI2: dst = src shifted by count; the count is masked as BPF's. SHL, SHR, SAR. */
void x86_shift_bmi(struct x86_emit *e, enum x86_shift op, bool wide, unsigned int dst,
		   unsigned int src, unsigned int count);
/* BMI2: high = the upper half of rdx * src; the lower half goes to low. */
void x86_mulx(struct x86_emit *e, unsigned int high, unsigned int low, unsigned int src);

/* size: 1, 2, 4, 8 bytes. Loads extend to 64 bits. Immediates are sign-extended from 32 bits. */
void x86_load(struct x86_emit *e, unsigned int size, bool sign, unsigned int dst,
	      struct x86_mem mem);
void x86_store(struct x86_emit *e, unsigned int size, unsigned int src, struct x86_mem mem);
void x86_store_i(struct x86_emit *e, unsigned int size, int32_t imm, struct x86_mem mem);
void x86_alu_mr(struct x86_emit *e, enum x86_alu op, unsigned int size, struct x86_mem mem,
		unsigned int reg);
void x86_alu_mi(struct x86_emit *e, enum x86_alu op, unsigned int size, struct x86_mem mem,
		int32_t imm);
void x86_test_mi(struct x86_emit *e, unsigned int size, struct x86_mem mem, int32_t imm);

void x86_push(struct x86_emit *e, unsigned int reg);
void x86_pop(struct x86_emit *e, unsigned int reg);

/* Short jump over what follows; x86_land() puts its target here. */
uint8_t *x86_skip(struct x86_emit *e, enum x86_condition condition);
void x86_land(struct x86_emit *e, uint8_t *skip);

/* Bytes that do nothing, in as few instructions as possible. */
void x86_nop(struct x86_emit *e, size_t bytes);

/*
 * The address of the memory operand of the instruction at @pc, one of those that can be emitted
 * here, with the registers by number. Pushes and calls: where they write. 0: it has none.
 */
uint64_t x86_operand_address(const uint8_t *pc, const uint64_t registers[16]);
