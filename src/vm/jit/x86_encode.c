// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/x86_encode.h"

#include <string.h>

#define REX   0x40
#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

void x86_byte(struct x86_emit *e, unsigned int byte)
{
	*e->at++ = (uint8_t)byte;
}

void x86_word32(struct x86_emit *e, uint32_t value)
{
	memcpy(e->at, &value, sizeof(value));
	e->at += sizeof(value);
}

void x86_word64(struct x86_emit *e, uint64_t value)
{
	memcpy(e->at, &value, sizeof(value));
	e->at += sizeof(value);
}

/* Everything in front of the ModRM byte. Byte registers 4 to 7 are spl to dil only with a REX. */
static void put_opcode(struct x86_emit *e, uint32_t opcode, unsigned int rex, bool force)
{
	if (opcode & (X86_66 | X86_F2 | X86_F3 | X86_LOCK)) {
		if (opcode & X86_LOCK)
			x86_byte(e, 0xf0);
		if (opcode & X86_66)
			x86_byte(e, 0x66);
		if (opcode & X86_F2)
			x86_byte(e, 0xf2);
		if (opcode & X86_F3)
			x86_byte(e, 0xf3);
	}
	if (rex || force)
		x86_byte(e, REX | rex);
	if (opcode & X86_0F)
		x86_byte(e, 0x0f);
	x86_byte(e, opcode);
}

static bool needs_rex(unsigned int reg)
{
	return reg >= X86_RSP && reg <= X86_RDI;
}

void x86_rr(struct x86_emit *e, uint32_t opcode, bool wide, unsigned int reg, unsigned int rm)
{
	const unsigned int rex =
		(wide ? REX_W : 0) | (reg >> 3 ? REX_R : 0) | (rm >> 3 ? REX_B : 0);

	put_opcode(e, opcode, rex,
		   (opcode & X86_BYTE_REG && needs_rex(reg)) ||
			   (opcode & X86_BYTE_RM && needs_rex(rm)));
	x86_byte(e, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

static void put_mem(struct x86_emit *e, const uint8_t *start, unsigned int reg, struct x86_mem mem)
{
	const unsigned int low = (reg & 7) << 3, base = mem.base & 7;
	const unsigned int index = mem.index == X86_NONE ? X86_RSP : mem.index & 7;
	unsigned int mod;

	if (mem.base == X86_RIP) {
		x86_byte(e, low | 5);
		x86_word32(e, mem.disp - (e->at + 4 - start));
		return;
	}
	if (mem.base == X86_NONE) {
		x86_byte(e, low | 4);
		x86_byte(e, mem.scale << 6 | index << 3 | 5);
		x86_word32(e, mem.disp);
		return;
	}
	if (!mem.disp && base != X86_RBP)
		mod = 0;
	else
		mod = e->brief && x86_fits8(mem.disp) ? 1 : 2;
	if (mem.index == X86_NONE && base != X86_RSP) {
		x86_byte(e, mod << 6 | low | base);
	} else {
		x86_byte(e, mod << 6 | low | 4);
		x86_byte(e, mem.scale << 6 | index << 3 | base);
	}
	if (mod == 1)
		x86_byte(e, mem.disp);
	else if (mod == 2)
		x86_word32(e, mem.disp);
}

void x86_rm(struct x86_emit *e, uint32_t opcode, bool wide, unsigned int reg, struct x86_mem mem)
{
	const uint8_t *start = e->at;
	unsigned int rex = (wide ? REX_W : 0) | (reg >> 3 ? REX_R : 0);

	if (mem.fs)
		x86_byte(e, 0x64);
	if (mem.base <= X86_R15 && mem.base >> 3)
		rex |= REX_B;
	if (mem.index != X86_NONE && mem.index >> 3)
		rex |= REX_X;
	put_opcode(e, opcode, rex, opcode & X86_BYTE_REG && needs_rex(reg));
	put_mem(e, start, reg, mem);
}

void x86_mov_rr(struct x86_emit *e, bool wide, unsigned int dst, unsigned int src)
{
	if (dst != src || !wide)
		x86_rr(e, X86_MOV, wide, src, dst);
}

void x86_mov_ri(struct x86_emit *e, unsigned int dst, uint64_t value)
{
	if (!value && e->brief) {
		x86_rr(e, X86_ALU_STORE(X86_XOR), false, dst, dst);
	} else if (value <= UINT32_MAX) {
		if (dst >> 3)
			x86_byte(e, REX | REX_B);
		x86_byte(e, 0xb8 | (dst & 7));
		x86_word32(e, (uint32_t)value);
	} else if (x86_fits32((int64_t)value)) {
		x86_rr(e, 0xc7, true, 0, dst);
		x86_word32(e, (uint32_t)value);
	} else {
		x86_byte(e, REX | REX_W | (dst >> 3 ? REX_B : 0));
		x86_byte(e, 0xb8 | (dst & 7));
		x86_word64(e, value);
	}
}

void x86_alu_ri(struct x86_emit *e, enum x86_alu op, bool wide, unsigned int reg, int32_t imm)
{
	if (e->brief && x86_fits8(imm)) {
		x86_rr(e, 0x83, wide, op, reg);
		x86_byte(e, imm);
		return;
	}
	if (e->brief && reg == X86_RAX) {
		if (wide)
			x86_byte(e, REX | REX_W);
		x86_byte(e, op << 3 | 5);
	} else {
		x86_rr(e, 0x81, wide, op, reg);
	}
	x86_word32(e, imm);
}

void x86_test_ri(struct x86_emit *e, bool wide, unsigned int reg, int32_t imm)
{
	if (e->brief && reg == X86_RAX) {
		if (wide)
			x86_byte(e, REX | REX_W);
		x86_byte(e, 0xa9);
	} else {
		x86_rr(e, X86_GROUP3, wide, 0, reg);
	}
	x86_word32(e, imm);
}

void x86_imul_rri(struct x86_emit *e, bool wide, unsigned int dst, unsigned int src, int32_t imm)
{
	if (e->brief && x86_fits8(imm)) {
		x86_rr(e, 0x6b, wide, dst, src);
		x86_byte(e, imm);
	} else {
		x86_rr(e, 0x69, wide, dst, src);
		x86_word32(e, imm);
	}
}

void x86_shift_ri(struct x86_emit *e, enum x86_shift op, bool wide, unsigned int reg,
		  unsigned int count)
{
	if (count == 1 && e->brief) {
		x86_rr(e, 0xd1, wide, op, reg);
		return;
	}
	x86_rr(e, 0xc1, wide, op, reg);
	x86_byte(e, count);
}

void x86_shift_cl(struct x86_emit *e, enum x86_shift op, bool wide, unsigned int reg)
{
	x86_rr(e, 0xd3, wide, op, reg);
}

void x86_bswap(struct x86_emit *e, bool wide, unsigned int reg)
{
	const unsigned int rex = (wide ? REX_W : 0) | (reg >> 3 ? REX_B : 0);

	if (rex)
		x86_byte(e, REX | rex);
	x86_byte(e, 0x0f);
	x86_byte(e, 0xc8 | (reg & 7));
}

/* VEX with three bytes, map 0F38, 128 bits; pp: 0 none, 1 66, 2 F3, 3 F2 (SDM 2.3.5). */
static void put_vex38(struct x86_emit *e, unsigned int pp, bool wide, unsigned int opcode,
		      unsigned int reg, unsigned int other, unsigned int rm)
{
	x86_byte(e, 0xc4);
	x86_byte(e, (reg >> 3 ? 0 : 0x80) | 0x40 | (rm >> 3 ? 0 : 0x20) | 2);
	x86_byte(e, (wide ? 0x80 : 0) | (~other & 15) << 3 | pp);
	x86_byte(e, opcode);
	x86_byte(e, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

void x86_shift_bmi(struct x86_emit *e, enum x86_shift op, bool wide, unsigned int dst,
		   unsigned int src, unsigned int count)
{
	unsigned int pp = 2;

	if (op == X86_SHL)
		pp = 1;
	else if (op == X86_SHR)
		pp = 3;
	put_vex38(e, pp, wide, 0xf7, dst, count, src);
}

void x86_mulx(struct x86_emit *e, unsigned int high, unsigned int low, unsigned int src)
{
	put_vex38(e, 3, true, 0xf6, high, low, src);
}

void x86_load(struct x86_emit *e, unsigned int size, bool sign, unsigned int dst,
	      struct x86_mem mem)
{
	switch (size) {
	case 1:
		x86_rm(e, sign ? X86_MOVSX8 : X86_MOVZX8, sign, dst, mem);
		break;
	case 2:
		x86_rm(e, sign ? X86_MOVSX16 : X86_MOVZX16, sign, dst, mem);
		break;
	case 4:
		x86_rm(e, sign ? X86_MOVSXD : X86_LOAD, sign, dst, mem);
		break;
	default:
		x86_rm(e, X86_LOAD, true, dst, mem);
	}
}

/* The opcode of `op mem, reg`: the byte form is the one before, the 16-bit form has a prefix. */
static uint32_t sized(uint32_t opcode, unsigned int size)
{
	if (size == 1)
		return (opcode - 1) | X86_BYTE_REG;
	return size == 2 ? opcode | X86_66 : opcode;
}

static void put_imm(struct x86_emit *e, unsigned int size, int32_t imm)
{
	if (size == 1) {
		x86_byte(e, imm);
	} else if (size == 2) {
		x86_byte(e, imm);
		x86_byte(e, imm >> 8);
	} else {
		x86_word32(e, imm);
	}
}

void x86_store(struct x86_emit *e, unsigned int size, unsigned int src, struct x86_mem mem)
{
	x86_rm(e, sized(X86_MOV, size), size == 8, src, mem);
}

/* In the forms with an immediate the register field is a number and no byte register. */
static void store_form(struct x86_emit *e, uint32_t opcode, unsigned int size, unsigned int number,
		       struct x86_mem mem)
{
	x86_rm(e, sized(opcode, size) & ~(uint32_t)X86_BYTE_REG, size == 8, number, mem);
}

void x86_store_i(struct x86_emit *e, unsigned int size, int32_t imm, struct x86_mem mem)
{
	store_form(e, 0xc7, size, 0, mem);
	put_imm(e, size, imm);
}

void x86_alu_mr(struct x86_emit *e, enum x86_alu op, unsigned int size, struct x86_mem mem,
		unsigned int reg)
{
	x86_rm(e, sized(X86_ALU_STORE(op), size), size == 8, reg, mem);
}

void x86_alu_mi(struct x86_emit *e, enum x86_alu op, unsigned int size, struct x86_mem mem,
		int32_t imm)
{
	if (size > 1 && e->brief && x86_fits8(imm)) {
		x86_rm(e, size == 2 ? X86_66 | 0x83 : 0x83, size == 8, op, mem);
		x86_byte(e, imm);
		return;
	}
	store_form(e, 0x81, size, op, mem);
	put_imm(e, size, imm);
}

void x86_test_mi(struct x86_emit *e, unsigned int size, struct x86_mem mem, int32_t imm)
{
	store_form(e, X86_GROUP3, size, 0, mem);
	put_imm(e, size, imm);
}

void x86_push(struct x86_emit *e, unsigned int reg)
{
	if (reg >> 3)
		x86_byte(e, REX | REX_B);
	x86_byte(e, 0x50 | (reg & 7));
}

void x86_pop(struct x86_emit *e, unsigned int reg)
{
	if (reg >> 3)
		x86_byte(e, REX | REX_B);
	x86_byte(e, 0x58 | (reg & 7));
}

uint8_t *x86_skip(struct x86_emit *e, enum x86_condition condition)
{
	x86_byte(e, 0x70 | condition);
	x86_byte(e, 0);
	return e->at - 1;
}

void x86_land(struct x86_emit *e, uint8_t *skip)
{
	*skip = (uint8_t)(e->at - skip - 1);
}

/* The forms that the processor manuals recommend. */
void x86_nop(struct x86_emit *e, size_t bytes)
{
	static const uint8_t nops[][9] = {
		{ 0x90 },
		{ 0x66, 0x90 },
		{ 0x0f, 0x1f, 0x00 },
		{ 0x0f, 0x1f, 0x40, 0x00 },
		{ 0x0f, 0x1f, 0x44, 0x00, 0x00 },
		{ 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
		{ 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
		{ 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
		{ 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
	};

	while (bytes) {
		size_t n = bytes > sizeof(nops[0]) ? sizeof(nops[0]) : bytes;

		memcpy(e->at, nops[n - 1], n);
		e->at += n;
		bytes -= n;
	}
}

static uint64_t modrm_address(const uint8_t *p, unsigned int rex, const uint64_t registers[16])
{
	const unsigned int mod = *p >> 6, rm = *p & 7;
	uint64_t address = 0;
	int32_t disp = 0;

	if (mod == 3 || (mod == 0 && rm == 5))
		return 0;
	p++;
	if (rm == 4) {
		const unsigned int sib = *p++;
		const unsigned int index = (sib >> 3 & 7) | (rex & REX_X ? 8 : 0);

		if (index != X86_RSP)
			address += registers[index] << (sib >> 6);
		if (mod == 0 && (sib & 7) == 5) {
			memcpy(&disp, p, sizeof(disp));
			return address + (int64_t)disp;
		}
		address += registers[(sib & 7) | (rex & REX_B ? 8 : 0)];
	} else {
		address += registers[rm | (rex & REX_B ? 8 : 0)];
	}
	if (mod == 1)
		disp = (int8_t)*p;
	else if (mod == 2)
		memcpy(&disp, p, sizeof(disp));
	return address + (int64_t)disp;
}

uint64_t x86_operand_address(const uint8_t *pc, const uint64_t registers[16])
{
	unsigned int rex = 0;

	while (*pc == 0x66 || *pc == 0xf2 || *pc == 0xf3 || *pc == 0xf0 || *pc == 0x64)
		pc++;
	if ((*pc & 0xf0) == REX)
		rex = *pc++;
	if ((*pc & 0xf8) == 0x50 || *pc == 0xe8)
		return registers[X86_RSP] - 8;
	if (*pc == 0x0f)
		pc++;
	return modrm_address(pc + 1, rex, registers);
}
