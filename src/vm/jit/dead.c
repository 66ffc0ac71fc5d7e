// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions without effect. A load may fault, which is one; those of the frame do not. Stores to
 * the frame have none when its address goes nowhere and nobody loads those bytes.
 */
#include "vm/jit/passes.h"

static bool in_frame(const struct jit_function *function, const struct jit_insn *insn,
		     unsigned int size)
{
	return insn->base == ISA_FRAME && insn->index == JIT_NONE &&
	       insn->off >= -(int64_t)function->frame && insn->off + (int64_t)size <= 0;
}

/* Does it nothing but write registers? */
static bool is_pure(const struct jit_function *function, const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_LOAD:
		return in_frame(function, insn, insn->size);
	case JIT_ARRAY:
		return insn->base == JIT_NONE || in_frame(function, insn, sizeof(uint32_t));
	case JIT_F64:
		return true;
	default:
		return insn->op >= JIT_ADD && insn->op <= JIT_CODE;
	}
}

void jit_delete(struct jit_insn *insn)
{
	*insn = (struct jit_insn){ .op = JIT_NOP,
				   .dst = JIT_NONE,
				   .a = JIT_NONE,
				   .b = JIT_NONE,
				   .base = JIT_NONE,
				   .index = JIT_NONE,
				   .insn = insn->insn };
}

void jit_remove_dead(struct jit_function *function, const struct jit_graph *graph)
{
	for (uint32_t k = graph->nblocks; k-- > 0;) {
		struct jit_block *block = &function->blocks[graph->forward[k]];
		uint16_t live = jit_live_out(function, graph->forward[k]);

		for (uint32_t i = block->count; i-- > 0;) {
			struct jit_insn *insn = &function->insns[block->first + i];
			uint16_t writes = jit_write_set(insn);

			if (!(writes & live) && is_pure(function, insn)) {
				jit_delete(insn);
				continue;
			}
			if (insn->op == JIT_MOV && insn->dst == insn->a && insn->width == 8) {
				jit_delete(insn);
				continue;
			}
			live = (live & ~writes) | jit_read_set(insn);
		}
		block->live_in = live;
	}
}

#define FRAME_AT_MOST 1024 /* bytes: a bit each */

/* Bytes of the frame, from its lower end. */
struct bytes {
	uint64_t bits[FRAME_AT_MOST / 64];
};

static bool any_byte(const struct jit_function *function, struct bytes *bytes,
		     const struct jit_insn *insn, unsigned int size, bool set)
{
	for (unsigned int i = 0; i < size; i++) {
		uint32_t at = function->frame + insn->off + i;

		if (set)
			bytes->bits[at / 64] |= 1ull << at % 64;
		else if (bytes->bits[at / 64] >> at % 64 & 1)
			return true;
	}
	return false;
}

/* Marks what is read of the frame. False: its address is used for something else. */
static bool note_reads(const struct jit_function *function, const struct jit_insn *insn,
		       struct bytes *loaded)
{
	unsigned int size = insn->op == JIT_ARRAY ? sizeof(uint32_t) : insn->size;
	struct jit_insn rest = *insn;

	rest.base = JIT_NONE;
	if (jit_read_set(&rest) & jit_bit(ISA_FRAME))
		return false;
	if (insn->base != ISA_FRAME)
		return true;
	if (!in_frame(function, insn, size) || insn->op == JIT_LEA || insn->op == JIT_CHECK)
		return false;
	if (insn->op != JIT_STORE)
		any_byte(function, loaded, insn, size, true);
	return true;
}

void jit_remove_dead_stores(struct jit_function *function, const struct jit_graph *graph)
{
	struct bytes loaded = { 0 };
	bool any = false;

	if (function->frame > FRAME_AT_MOST)
		return;
	for (uint32_t k = 0; k < graph->nblocks; k++) {
		const struct jit_block *block = &function->blocks[graph->forward[k]];

		for (uint32_t i = 0; i < block->count; i++) {
			const struct jit_insn *insn = &function->insns[block->first + i];

			if (!(jit_read_set(insn) & jit_bit(ISA_FRAME)))
				continue;
			if (!note_reads(function, insn, &loaded))
				return;
			any |= insn->op == JIT_STORE;
		}
	}
	for (uint32_t k = 0; k < graph->nblocks && any; k++) {
		const struct jit_block *block = &function->blocks[graph->forward[k]];

		for (uint32_t i = 0; i < block->count; i++) {
			struct jit_insn *insn = &function->insns[block->first + i];

			if (insn->op == JIT_STORE && insn->base == ISA_FRAME &&
			    !any_byte(function, &loaded, insn, insn->size, false))
				jit_delete(insn);
		}
	}
}
