// SPDX-License-Identifier: BSD-2-Clause
/*
 * How many of the lower bits of a register may be set, by flow. Needed at the start of loops, where
 * what a walk in one direction knows of the registers that the loop writes is nothing: starts from
 * nothing set and goes round until nothing grows. At loops the number of what they write is rounded
 * up, so that a counter gets there in a few rounds.
 */
#include "vm/jit/values.h"

#include <string.h>

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int most(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

static unsigned int bits_of(uint64_t value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

/* Of division and modulo; below: the width. */
static unsigned int divided(const struct jit_insn *insn, unsigned int a, unsigned int width)
{
	if (insn->flags & JIT_FLAG_SIGNED && (a == width || insn->op == JIT_DIV))
		return insn->op == JIT_DIV && insn->b == JIT_NONE && a < width &&
				       !(insn->imm >> (width - 1))
			       ? a
			       : width;
	if (insn->op == JIT_MOD && insn->b == JIT_NONE && insn->imm &&
	    !(insn->flags & JIT_FLAG_SIGNED))
		return least(a, bits_of(insn->imm - 1));
	return a;
}

static unsigned int shifted(const struct jit_insn *insn, unsigned int a, unsigned int width)
{
	unsigned int shift = insn->imm;

	if (insn->op == JIT_LSH)
		return insn->b == JIT_NONE ? least(width, a + shift) : width;
	if (insn->op == JIT_ARSH && a == width)
		return width;
	if (insn->b != JIT_NONE)
		return a;
	return a > shift ? a - shift : 0;
}

static unsigned int computed(const struct jit_insn *insn, const uint8_t *bits)
{
	unsigned int width = 8 * insn->width;
	unsigned int a = least(bits[insn->a], width);
	unsigned int b = least(insn->b == JIT_NONE ? bits_of(insn->imm) : bits[insn->b], width);

	switch (insn->op) {
	case JIT_ADD:
		return least(width, most(a, b) + 1);
	case JIT_MUL:
		return least(width, a + b);
	case JIT_DIV:
	case JIT_MOD:
		return divided(insn, a, width);
	case JIT_OR:
	case JIT_XOR:
		return most(a, b);
	case JIT_AND:
		return least(a, b);
	case JIT_LSH:
	case JIT_RSH:
	case JIT_ARSH:
		return shifted(insn, a, width);
	default:
		return width;
	}
}

static unsigned int extended(const struct jit_insn *insn, const uint8_t *bits)
{
	unsigned int a = bits[insn->a], size = 8 * insn->size;

	if (!(insn->flags & JIT_FLAG_SIGNED))
		return least(a, size);
	return a < size ? a : 8u * insn->width;
}

/* Results of C functions are extended as their class says. */
static unsigned int returned(const struct vm_native *native)
{
	if (native->with_context)
		return 64;
	switch (native->result) {
	case VM_U8:
		return 8;
	case VM_U16:
		return 16;
	case VM_U32:
		return 32;
	default:
		return 64;
	}
}

static unsigned int result(const struct jit_function *function, const struct jit_insn *insn,
			   const uint8_t *bits)
{
	switch (insn->op) {
	case JIT_MOV:
		if (insn->a == JIT_NONE)
			return bits_of(insn->width == 4 ? (uint32_t)insn->imm : insn->imm);
		return insn->width == 4 && !(insn->flags & JIT_FLAG_ANY_UPPER)
			       ? least(bits[insn->a], 32)
			       : bits[insn->a];
	case JIT_EXT:
		return extended(insn, bits);
	case JIT_BSWAP:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
		return 8 * insn->size;
	case JIT_LOAD:
		return insn->flags & JIT_FLAG_SIGNED ? 64 : 8 * insn->size;
	case JIT_LEA:
	case JIT_NEG:
		return 8 * insn->width;
	case JIT_CALL_C:
		return returned(&function->image->natives[insn->target]);
	case JIT_F64:
		return insn->sub >= VM_F64_LT && insn->sub <= VM_F64_NE ? 1 : 64;
	default:
		return insn->op <= JIT_ARSH ? computed(insn, bits) : 64;
	}
}

void jit_step_bits(const struct jit_function *function, const struct jit_insn *insn, uint8_t *bits)
{
	uint16_t writes = jit_write_set(insn);

	if (!writes)
		return;
	if (writes == JIT_CLOBBERED) {
		bits[0] = result(function, insn, bits);
		memset(bits + 1, 64, VM_MAX_ARGUMENTS);
		return;
	}
	bits[__builtin_ctz(writes)] = result(function, insn, bits);
}

size_t jit_bits_size(const struct jit_function *function)
{
	return (size_t)function->nblocks * (ISA_REGISTERS + sizeof(bool)) + 16;
}

static unsigned int rounded(unsigned int bits)
{
	if (bits <= 1)
		return bits;
	if (bits <= 8)
		return 8;
	return bits <= 16 ? 16 : bits <= 32 ? 32 : 64;
}

/* Joins @bits into those at the start of a block; @written: registers that its loop writes, if it
 * starts one. Have they grown? */
static bool join(const uint8_t *bits, uint8_t *into, uint16_t written)
{
	bool grown = false;

	for (int reg = 0; reg < ISA_REGISTERS; reg++) {
		if (bits[reg] <= into[reg])
			continue;
		into[reg] = written & jit_bit(reg) ? rounded(bits[reg]) : bits[reg];
		grown = true;
	}
	return grown;
}

uint8_t *jit_find_bits(const struct jit_function *function, const struct jit_graph *graph,
		       const uint16_t *writes, struct jit_arena *arena)
{
	uint8_t *all = jit_take(arena, function->nblocks, ISA_REGISTERS);
	bool *stale = jit_take(arena, function->nblocks, sizeof(*stale));
	bool again = true;

	memset(all, 0, (size_t)function->nblocks * ISA_REGISTERS);
	memset(all, 64, ISA_REGISTERS);
	memset(stale, true, function->nblocks * sizeof(*stale));
	while (again) {
		again = false;
		for (uint32_t i = 0; i < graph->nblocks; i++) {
			uint32_t at = graph->forward[i], n;
			const struct jit_block *block = &function->blocks[at];
			uint8_t bits[ISA_REGISTERS];

			if (!stale[at])
				continue;
			stale[at] = false;
			memcpy(bits, &all[(size_t)at * ISA_REGISTERS], sizeof(bits));
			for (uint32_t k = 0; k < block->count; k++)
				jit_step_bits(function, &function->insns[block->first + k], bits);
			n = jit_nsuccessors(function, at);
			for (uint32_t k = 0; k < n; k++) {
				uint32_t to = *jit_successor(function, at, k);

				if (!join(bits, &all[(size_t)to * ISA_REGISTERS],
					  graph->header[to] ? writes[to] : 0))
					continue;
				stale[to] = true;
				again |= graph->place[to] <= i;
			}
		}
	}
	return all;
}
