/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF instruction set as a table (insn.def), and the checks that one instruction alone allows.
 * Stateless; safe on any thread.
 */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Newer than the system's <linux/bpf.h>. */
#define ISA_CALLX_OPCODE 0x8d

#define ISA_REGISTERS 11 /* r0 to r10 */
#define ISA_FRAME     10 /* r10: the frame pointer, read-only */

enum isa_op {
#define INSN(id, ...) ISA_##id,
#define ALSO(id, ...) ISA_##id,
#include "isa/insn.def"
	ISA_NOPS
};

enum isa_select { ISA_SELECT_ANY, ISA_SELECT_OFF, ISA_SELECT_IMM, ISA_SELECT_SRC };

enum isa_form {
	ISA_FORM_ALU_K,      /* dst OP= imm */
	ISA_FORM_ALU_X,      /* dst OP= src */
	ISA_FORM_MOVSX,      /* dst = (sN)src */
	ISA_FORM_NEG,        /* dst = -dst */
	ISA_FORM_ENDIAN,     /* dst = beN dst */
	ISA_FORM_JUMP_K,     /* if dst OP imm goto off */
	ISA_FORM_JUMP_X,     /* if dst OP src goto off */
	ISA_FORM_GOTO,       /* goto off */
	ISA_FORM_GOTOL,      /* goto imm */
	ISA_FORM_CALL,       /* imm: number of a native function */
	ISA_FORM_CALL_LOCAL, /* imm: instructions from the next one */
	ISA_FORM_CALLX,      /* register in dst or imm */
	ISA_FORM_EXIT,
	ISA_FORM_LDDW,    /* dst = imm of this and of the next slot */
	ISA_FORM_LOAD,    /* dst = [src + off] */
	ISA_FORM_STORE_K, /* [dst + off] = imm */
	ISA_FORM_STORE_X, /* [dst + off] = src */
	ISA_FORM_ATOMIC,  /* [dst + off] OP= src, old value to src when it fetches */
	ISA_FORM_CMPXCHG, /* if [dst + off] == r0, it becomes src; old value to r0 */
	ISA_FORM_PACKET,
};

enum isa_group {
	ISA_GROUP_BASE32,
	ISA_GROUP_BASE64,
	ISA_GROUP_ATOMIC32,
	ISA_GROUP_ATOMIC64,
	ISA_GROUP_DIVMUL32,
	ISA_GROUP_DIVMUL64,
	ISA_GROUP_PACKET,
};

#define ISA_FLAG_SIGNED 1
#define ISA_FLAG_FETCH  2

struct isa_row {
	const char *name;
	const char *text;
	int32_t value;
	uint8_t opcode;
	uint8_t select;  /* enum isa_select */
	uint8_t form;    /* enum isa_form */
	uint8_t width;   /* bytes */
	uint8_t flags;   /* ISA_FLAG_ */
	uint8_t group;   /* enum isa_group */
	uint8_t version; /* 1 to 4 */
};

/* The row of @op, which is below ISA_NOPS. Static memory. */
const struct isa_row *isa_row(enum isa_op op);

/* The operation of an instruction, by opcode and selecting field alone; ISA_NOPS when unknown. */
enum isa_op isa_find(const struct bpf_insn *insn);

/*
 * Decodes the instruction at @insn, of which @left slots may be read, and checks all that can be
 * checked without its surroundings: opcode, register numbers, reserved fields, writes to r10, the
 * second slot of lddw. Returns the operation, or -EINVAL with the reason in @err.
 */
int isa_decode(const struct bpf_insn *insn, size_t left, struct err *err);

/* Slots that the operation takes: 2 for lddw, else 1. */
static inline size_t isa_slots(const struct isa_row *row)
{
	return row->form == ISA_FORM_LDDW ? 2 : 1;
}

/* The register that a callx instruction jumps to, in either encoding. */
static inline uint32_t isa_callx_register(const struct bpf_insn *insn)
{
	return insn->imm ? (uint32_t)insn->imm : insn->dst_reg;
}

/* Is the operation an access to memory? */
static inline int isa_touches_memory(const struct isa_row *row)
{
	switch (row->form) {
	case ISA_FORM_LOAD:
	case ISA_FORM_STORE_K:
	case ISA_FORM_STORE_X:
	case ISA_FORM_ATOMIC:
	case ISA_FORM_CMPXCHG:
		return 1;
	default:
		return 0;
	}
}

/* Does the form write its dst register? */
static inline int isa_writes_dst(const struct isa_row *row)
{
	switch (row->form) {
	case ISA_FORM_ALU_K:
	case ISA_FORM_ALU_X:
	case ISA_FORM_MOVSX:
	case ISA_FORM_NEG:
	case ISA_FORM_ENDIAN:
	case ISA_FORM_LDDW:
	case ISA_FORM_LOAD:
		return 1;
	default:
		return 0;
	}
}
