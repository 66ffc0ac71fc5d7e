// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sums and shifts that only make addresses go into the addresses: base + (index << scale) + off.
 * From the end of a block to its start, so that a chain disappears step by step. An instruction goes
 * when everything that reads its result in this block can take its operands instead, which are
 * still there, and nothing reads it later. The accesses stay, with the same address.
 */
#include "vm/jit/passes.h"

#include "vm/jit/plant.h"

#define LOOK_AHEAD 24 /* instructions: keeps the pass linear */

struct address {
	uint8_t base, index, scale; /* base JIT_NONE: index << scale alone */
	int64_t off;
};

/* Is the result of the instruction such a sum? */
static bool take_apart(const struct jit_insn *insn, struct address *ret)
{
	*ret = (struct address){ .base = insn->a, .index = JIT_NONE };
	if (insn->width != 8)
		return false;
	switch (insn->op) {
	case JIT_MOV:
		return insn->a != JIT_NONE;
	case JIT_ADD:
		if (insn->b != JIT_NONE)
			ret->index = insn->b;
		else
			ret->off = insn->imm;
		return true;
	case JIT_LSH:
		if (insn->b != JIT_NONE || insn->imm > 3)
			return false;
		ret->base = JIT_NONE;
		ret->index = insn->a;
		ret->scale = insn->imm;
		return true;
	case JIT_LEA:
		ret->base = insn->base;
		ret->index = insn->index;
		ret->scale = insn->scale;
		ret->off = insn->off;
		return true;
	default:
		return false;
	}
}

static bool has_memory(const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_LOAD:
	case JIT_STORE:
	case JIT_MODIFY:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
	case JIT_CHECK:
		return true;
	default:
		return false;
	}
}

/* The address that an instruction makes or goes to. */
static bool address_of(const struct jit_insn *insn, struct address *ret)
{
	if (has_memory(insn)) {
		*ret = (struct address){ insn->base, insn->index, insn->scale, insn->off };
		return true;
	}
	return insn->op != JIT_MOV && insn->op != JIT_LSH && take_apart(insn, ret);
}

static void swap(struct address *to)
{
	uint8_t reg = to->base;

	to->base = to->index;
	to->index = reg;
}

/* Puts @sum in the place of @reg. */
static bool put_in(struct address *to, uint8_t reg, const struct address *sum)
{
	if (to->base == reg && to->index == reg)
		return false;
	if (to->base == reg && sum->base == JIT_NONE && to->index != JIT_NONE && !to->scale)
		swap(to);
	if (to->base == reg) {
		if (sum->base == JIT_NONE || (sum->index != JIT_NONE && to->index != JIT_NONE))
			return false;
		to->base = sum->base;
		if (sum->index != JIT_NONE) {
			to->index = sum->index;
			to->scale = sum->scale;
		}
		to->off = (uint64_t)to->off + sum->off;
		return true;
	}
	if (sum->base == JIT_NONE) { /* a shift of what is shifted */
		to->index = sum->index;
		to->scale += sum->scale;
		return to->scale <= 3;
	}
	if (sum->index != JIT_NONE)
		return false;
	to->index = sum->base;
	to->off = to->off + ((uint64_t)sum->off << (PLANT(16) ? 0 : to->scale));
	return true;
}

static bool fits(const struct jit_function *function, const struct jit_insn *insn,
		 const struct address *address)
{
	unsigned int size = insn->op == JIT_CHECK ? insn->imm : insn->size;

	if (address->off != (int32_t)address->off)
		return false;
	if (!has_memory(insn))
		size = 0;
	else if (insn->op == JIT_CHECK || insn->op == JIT_ATOMIC || insn->op == JIT_CMPXCHG)
		size = size > 8 ? 8 : size;
	/* [r10 + ...] stays inside the frame. */
	if (address->base == ISA_FRAME && has_memory(insn) &&
	    (address->index != JIT_NONE || address->off < -(int64_t)function->frame ||
	     address->off + size > 0))
		return false;
	return function->target->can_address(address->index != JIT_NONE, address->scale,
					     address->off, size);
}

/* Does the instruction read the register otherwise than in its address? */
static bool reads_elsewhere(const struct jit_insn *insn, uint8_t reg)
{
	struct jit_insn rest = *insn;

	if (has_memory(insn)) {
		rest.base = rest.index = JIT_NONE;
	} else { /* a sum */
		rest.a = rest.b = rest.base = rest.index = JIT_NONE;
	}
	return jit_read_set(&rest) & jit_bit(reg);
}

/* What @insn's address becomes when @sum goes in for @reg. */
static bool combined(const struct jit_function *function, const struct jit_insn *insn, uint8_t reg,
		     const struct address *sum, struct address *ret)
{
	return address_of(insn, ret) && !reads_elsewhere(insn, reg) && put_in(ret, reg, sum) &&
	       fits(function, insn, ret);
}

static void put_back(struct jit_insn *insn, const struct address *address)
{
	if (!has_memory(insn)) {
		insn->op = JIT_LEA;
		insn->a = insn->b = JIT_NONE;
		insn->imm = 0;
	}
	insn->base = address->base;
	insn->index = address->index;
	insn->scale = address->scale;
	insn->off = address->off;
	if (insn->op != JIT_LEA || address->scale)
		return;
	if (address->index == JIT_NONE || !address->off) { /* plain again */
		insn->op = JIT_ADD;
		insn->a = address->base;
		insn->b = address->index;
		insn->imm = address->off;
		insn->base = insn->index = JIT_NONE;
		insn->off = 0;
	}
}

/*
 * Where the last reader of the result of @at is, when all readers can do without; 0: one cannot, or
 * it is needed behind the block.
 */
static uint32_t last_reader(const struct jit_function *function, const struct jit_block *block,
			    uint32_t at, const struct address *sum, uint16_t live_out)
{
	uint8_t reg = function->insns[at].dst;
	uint16_t operands = jit_bit(sum->base) | jit_bit(sum->index), lost = 0;
	uint32_t end = block->first + block->count, last = 0;
	struct address address;

	for (uint32_t i = at + 1; i < end; i++) {
		const struct jit_insn *insn = &function->insns[i];
		uint16_t writes = jit_write_set(insn);

		if (i - at > LOOK_AHEAD)
			return 0;
		if (jit_read_set(insn) & jit_bit(reg)) {
			if ((lost && !PLANT(15)) || !combined(function, insn, reg, sum, &address))
				return 0;
			last = i;
		}
		if (writes & jit_bit(reg))
			return last;
		lost |= writes & operands;
	}
	return live_out & jit_bit(reg) ? 0 : last;
}

/* Folds the instruction at @at away; returns its last reader, or 0 when it has to stay. */
static uint32_t fold(struct jit_function *function, const struct jit_block *block, uint32_t at,
		     uint16_t live_out)
{
	struct jit_insn *insns = function->insns;
	struct address sum, address;
	uint8_t reg = insns[at].dst;
	uint32_t last;

	if (!take_apart(&insns[at], &sum))
		return 0;
	last = last_reader(function, block, at, &sum, live_out);
	for (uint32_t i = at + 1; i <= last; i++) {
		if (!(jit_read_set(&insns[i]) & jit_bit(reg)))
			continue;
		combined(function, &insns[i], reg, &sum, &address);
		put_back(&insns[i], &address);
	}
	if (last)
		jit_delete(&insns[at]);
	return last;
}

/* x * 3, 5 and 9 are sums, too. */
static void reduce_product(const struct jit_function *function, struct jit_insn *insn)
{
	unsigned int scale;

	if (insn->op != JIT_MUL || insn->b != JIT_NONE || insn->imm > 9 || insn->imm < 3 ||
	    (insn->imm - 1) & (insn->imm - 2))
		return;
	scale = __builtin_ctz(insn->imm - 1);
	if (!function->target->can_address(true, scale, 0, 0))
		return;
	insn->op = JIT_LEA;
	insn->base = insn->index = insn->a;
	insn->scale = scale;
	insn->a = JIT_NONE;
	insn->imm = 0;
}

void jit_fold_addresses(struct jit_function *function, const struct jit_graph *graph)
{
	for (uint32_t k = 0; k < graph->nblocks; k++) {
		const struct jit_block *block = &function->blocks[graph->forward[k]];
		uint16_t live_out = jit_live_out(function, graph->forward[k]);

		for (uint32_t i = block->count; i-- > 0;) {
			uint32_t at = block->first + i;

			reduce_product(function, &function->insns[at]);
			do /* what has got new operands may now go, too */
				at = fold(function, block, at, live_out);
			while (at);
		}
	}
}
