/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of the registers at one place of a function, and the parts of the walk that finds
 * and uses it (copy.c, simplify.c, inline.c).
 */
#pragma once

#include "vm/jit/passes.h"

enum jit_kind {
	JIT_ANYTHING,
	JIT_NUMBER,  /* that number */
	JIT_STACK,   /* r10 plus that number */
	JIT_NONZERO, /* anything but zero */
};

struct jit_state {
	int64_t number[ISA_REGISTERS];
	uint8_t kind[ISA_REGISTERS];
	/* A register that holds the same, or the same lower half; itself never a copy of another.
	 * JIT_NONE: none. */
	uint8_t copy[ISA_REGISTERS], low[ISA_REGISTERS];
	uint8_t bits[ISA_REGISTERS]; /* all bits from this one on are zero */
};

/* bits.c: what an instruction does to the `bits` of a state. */
void jit_step_bits(const struct jit_function *function, const struct jit_insn *insn, uint8_t *bits);
/* ... at the start of each block, ISA_REGISTERS of each, on all ways to there. @writes: of
 * jit_find_writes(). */
size_t jit_bits_size(const struct jit_function *function);
uint8_t *jit_find_bits(const struct jit_function *function, const struct jit_graph *graph,
		       const uint16_t *writes, struct jit_arena *arena);

/* fold.c: the result of an operation without memory on numbers. */
uint64_t jit_compute(const struct jit_insn *insn, uint64_t a, uint64_t b);
/* Is `a sub b` true? */
bool jit_holds(const struct jit_insn *insn, uint64_t a, uint64_t b);
/* 1: true for all a below 2^bits, 0: false for all, -1: depends. The second operand is insn->imm. */
int jit_decide(const struct jit_insn *insn, unsigned int bits);

/* Four bytes or more of the frame that were written in this block, and with what. */
struct jit_slot {
	int32_t off;
	uint8_t size;
	uint8_t reg;   /* JIT_NONE: number */
	uint32_t lost; /* instruction, plus 1, that has overwritten reg since; 0: none */
	uint64_t number;
};

#define JIT_SLOTS 8

struct jit_walk {
	struct jit_function *function;
	struct jit_state now;
	uint16_t roots;  /* registers that are the copy or low of another */
	uint16_t unread; /* registers that nobody has read since they were written in this block */
	uint32_t written[ISA_REGISTERS];    /* instruction, plus 1, that did so; 0: none */
	uint8_t bits_before[ISA_REGISTERS]; /* `bits` before that */
	struct jit_slot slots[JIT_SLOTS];
	uint32_t nslots;
	uint32_t block, at;   /* instruction, in function->insns */
	bool copies, inlines; /* passes that are on */
	bool decided;         /* a branch became a jump */
};

static inline uint8_t jit_root(const struct jit_state *state, uint8_t reg)
{
	return state->copy[reg] == JIT_NONE ? reg : state->copy[reg];
}

static inline uint8_t jit_low_root(const struct jit_state *state, uint8_t reg)
{
	return state->low[reg] == JIT_NONE ? reg : state->low[reg];
}

/* simplify.c: the instruction becomes a cheaper one with the same effect; operands are numbers
 * where they can. */
void jit_simplify(struct jit_walk *walk, struct jit_insn *insn);

/* inline.c: what the frame holds, and look-ups of arrays. */
void jit_note_slots(struct jit_walk *walk, const struct jit_insn *insn);
void jit_lose_slots(struct jit_walk *walk, uint16_t writes);
void jit_inline_lookup(struct jit_walk *walk, struct jit_insn *insn);
/* The slot that holds all bytes of the access; NULL: none. */
const struct jit_slot *jit_find_slot(const struct jit_walk *walk, int32_t off, unsigned int size);
