// SPDX-License-Identifier: BSD-2-Clause
/*
 * Look-ups in arrays without a call. The index lies in the frame; where this block has written it,
 * its register or number is used.
 */
#include "vm/jit/values.h"

#include <string.h>

#define MOVED_AT_MOST 16 /* instructions, to make room for one */

const struct jit_slot *jit_find_slot(const struct jit_walk *walk, int32_t off, unsigned int size)
{
	for (uint32_t i = 0; i < walk->nslots; i++)
		if (walk->slots[i].off == off && walk->slots[i].size >= size)
			return &walk->slots[i];
	return NULL;
}

static void drop_slots(struct jit_walk *walk, int32_t off, unsigned int size)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < walk->nslots; i++) {
		const struct jit_slot *slot = &walk->slots[i];

		if (slot->off + slot->size <= off || off + (int32_t)size <= slot->off)
			walk->slots[kept++] = *slot;
	}
	walk->nslots = kept;
}

/* Any address may be one of the frame, once a pointer to it has been made. */
void jit_note_slots(struct jit_walk *walk, const struct jit_insn *insn)
{
	struct jit_slot *slot;

	switch (insn->op) {
	case JIT_STORE:
		break;
	case JIT_MODIFY:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
		walk->nslots = 0;
		return;
	default:
		return;
	}
	if (insn->base != ISA_FRAME || insn->index != JIT_NONE) {
		walk->nslots = 0;
		return;
	}
	drop_slots(walk, insn->off, insn->size);
	if (insn->size < 4 || walk->nslots == JIT_SLOTS)
		return;
	slot = &walk->slots[walk->nslots++];
	*slot = (struct jit_slot){
		.off = insn->off, .size = insn->size, .reg = insn->b, .number = insn->imm
	};
	if (insn->b != JIT_NONE && walk->now.kind[insn->b] == JIT_NUMBER) {
		slot->reg = JIT_NONE;
		slot->number = walk->now.number[insn->b];
	}
}

void jit_lose_slots(struct jit_walk *walk, uint16_t writes)
{
	for (uint32_t i = 0; i < walk->nslots; i++) {
		struct jit_slot *slot = &walk->slots[i];

		if (!(writes & jit_bit(slot->reg)))
			continue;
		if (slot->lost) /* twice: it cannot come back */
			slot->lost = JIT_NOWHERE;
		else
			slot->lost = walk->at + 1;
	}
}

static const struct vm_array *array_of(const struct jit_walk *walk, const struct jit_insn *insn,
				       uint32_t *index)
{
	const struct vm_image *image = walk->function->image;

	if (insn->op != JIT_CALL_C || image->natives[insn->target].intrinsic != VM_ARRAY_LOOKUP ||
	    walk->now.kind[1] != JIT_NUMBER)
		return NULL;
	for (size_t i = 0; i < image->narrays; i++) {
		if (image->arrays[i].handle == (uint64_t)walk->now.number[1]) {
			*index = i;
			return &image->arrays[i];
		}
	}
	return NULL;
}

/*
 * The register that still holds what a slot does. When it has been overwritten by a constant that
 * only the call was to read (the array's handle), that move is taken away.
 */
static uint8_t register_of(struct jit_walk *walk, const struct jit_slot *slot)
{
	struct jit_insn *killer;

	if (!slot->lost)
		return slot->reg;
	if (slot->lost == JIT_NOWHERE)
		return JIT_NONE;
	killer = &walk->function->insns[slot->lost - 1];
	if (slot->reg < 1 || slot->reg > VM_MAX_ARGUMENTS || killer->op != JIT_MOV ||
	    killer->a != JIT_NONE || !(walk->unread & jit_bit(slot->reg)))
		return JIT_NONE;
	walk->now.bits[slot->reg] = walk->bits_before[slot->reg];
	walk->now.kind[slot->reg] = JIT_ANYTHING;
	killer->op = JIT_NOP;
	killer->dst = JIT_NONE;
	return slot->reg;
}

static void clear_operands(struct jit_insn *insn)
{
	insn->dst = insn->a = insn->b = insn->base = insn->index = JIT_NONE;
	insn->flags = insn->size = insn->scale = 0;
	insn->off = 0;
	insn->imm = 0;
	insn->width = 8;
}

static void becomes_address(struct jit_insn *insn, uint64_t address)
{
	clear_operands(insn);
	insn->op = JIT_MOV;
	insn->dst = 0;
	insn->imm = address;
}

/* A free place right before the instruction: a deleted one, those in between move up. */
static struct jit_insn *room_before(struct jit_walk *walk)
{
	struct jit_insn *insns = walk->function->insns;
	uint32_t first = walk->function->blocks[walk->block].first, at = walk->at;

	for (uint32_t i = at; i-- > first && at - i <= MOVED_AT_MOST;) {
		if (insns[i].op != JIT_NOP)
			continue;
		memmove(&insns[i], &insns[i + 1], (at - 1 - i) * sizeof(*insns));
		/* What was noted by place is no longer there. */
		memset(walk->written, 0, sizeof(walk->written));
		walk->nslots = 0;
		insns[at - 1].op = JIT_NOP;
		return &insns[at - 1];
	}
	return NULL;
}

/* The index is in a register and known to be in range: base + (index << scale). */
static bool becomes_element(struct jit_walk *walk, struct jit_insn *insn,
			    const struct vm_array *array, uint8_t index)
{
	struct jit_insn *base;

	if (walk->now.bits[index] >= 32 || 1u << walk->now.bits[index] > array->entries ||
	    !array->stride || array->stride > 8 || array->stride & (array->stride - 1) ||
	    index == 0 ||
	    !walk->function->target->can_address(true, __builtin_ctz(array->stride), 0, 0))
		return false;
	base = room_before(walk);
	if (!base)
		return false;
	base->insn = insn->insn;
	becomes_address(base, (uintptr_t)array->data);
	walk->now.kind[0] = JIT_NUMBER; /* step() has not seen it */
	clear_operands(insn);
	insn->op = JIT_LEA;
	insn->dst = insn->base = 0;
	insn->index = index;
	insn->scale = __builtin_ctz(array->stride);
	return true;
}

void jit_inline_lookup(struct jit_walk *walk, struct jit_insn *insn)
{
	const struct jit_slot *slot = NULL;
	const struct vm_array *array;
	uint8_t index = JIT_NONE;
	uint32_t number;

	array = array_of(walk, insn, &number);
	if (!array)
		return;
	if (walk->now.kind[2] == JIT_STACK)
		slot = jit_find_slot(walk, walk->now.number[2], sizeof(uint32_t));
	if (slot && slot->reg == JIT_NONE) {
		uint32_t at = slot->number;

		becomes_address(insn, at < array->entries ? (uintptr_t)array->data +
								    (uint64_t)at * array->stride
							  : 0);
		return;
	}
	if (slot)
		index = register_of(walk, slot);
	if (index != JIT_NONE && becomes_element(walk, insn, array, index))
		return;
	clear_operands(insn);
	insn->op = JIT_ARRAY;
	insn->target = number;
	if (index != JIT_NONE) {
		insn->a = index;
	} else if (walk->now.kind[2] == JIT_STACK) {
		insn->base = ISA_FRAME;
		insn->off = walk->now.number[2];
	} else {
		insn->base = 2;
	}
}
