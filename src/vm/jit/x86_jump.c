// SPDX-License-Identifier: BSD-2-Clause
/* What refers to offsets: places, steps, patches, jumps. */
#include "vm/jit/x86.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vm/jit/plant.h"

/* Makes room for one more element after @n. */
static int grow(void *array, size_t *capacity, size_t n, size_t size)
{
	size_t wanted = *capacity ? 2 * *capacity : 64;
	void *bigger;

	if (n < *capacity)
		return 0;
	bigger = realloc(*(void **)array, wanted * size);
	if (!bigger)
		return -ENOMEM;
	*(void **)array = bigger;
	*capacity = wanted;
	return 0;
}

void x86_new_place(struct x86 *x, uint32_t insn)
{
	struct jit_code *code = x->code;

	if (grow(&code->places, &code->places_capacity, code->nplaces, sizeof(*code->places))) {
		x->error = -ENOMEM;
		return;
	}
	code->places[code->nplaces++] = (struct jit_place){ x86_offset(x), insn };
	x->last_place = insn;
}

/* Here begins the table of a switch, up to the next place. */
void x86_table_place(struct x86 *x, uint32_t insn)
{
	if (!x->last)
		return;
	x86_new_place(x, insn);
	if (!x->error)
		x->code->places[x->code->nplaces - 1].table = true;
	x->last_place = JIT_NOWHERE;
}

int x86_step(struct jit_code *code, uint32_t offset, uint32_t depth, uint8_t reg, uint32_t slot)
{
	if (grow(&code->steps, &code->steps_capacity, code->nsteps, sizeof(*code->steps)))
		return -ENOMEM;
	code->steps[code->nsteps++] = (struct jit_frame_step){ offset, depth, reg, slot };
	return 0;
}

void x86_frame_step(struct x86 *x, uint32_t depth, uint8_t reg)
{
	if (x86_step(x->code, x86_offset(x), depth, reg, reg == JIT_NONE ? 0 : depth))
		x->error = -ENOMEM;
}

static void put_rel32(struct x86 *x, uint32_t field, uint32_t target)
{
	const uint32_t distance = target - (field + 4);

	memcpy(x->code->bytes + field, &distance, sizeof(distance));
}

void x86_patch(struct x86 *x, uint32_t function)
{
	struct jit_code *code = x->code;
	const uint32_t field = x86_offset(x);

	x86_word32(&x->e, 0);
	if (function == x->function->index || code->functions[function].end) {
		put_rel32(x, field, code->functions[function].first);
		return;
	}
	if (grow(&code->patches, &code->patches_capacity, code->npatches, sizeof(*code->patches))) {
		x->error = -ENOMEM;
		return;
	}
	code->patches[code->npatches++] = (struct jit_patch){ field, function, X86_PATCH_REL32 };
}

/* A field that refers to what @emit emits behind the blocks. */
static struct x86_slow *slow_field(struct x86 *x, const struct jit_insn *insn,
				   void (*emit)(struct x86 *x, const struct x86_slow *slow))
{
	size_t capacity = x->slows_capacity;
	struct x86_slow *slow;

	x86_word32(&x->e, 0);
	if (grow(&x->slows, &capacity, x->nslows, sizeof(*x->slows))) {
		x->error = -ENOMEM;
		return NULL;
	}
	x->slows_capacity = capacity;
	slow = &x->slows[x->nslows++];
	*slow = (struct x86_slow){
		.emit = emit, .insn = *insn, .from = x86_offset(x) - 4, .block = JIT_NOWHERE
	};
	return slow;
}

struct x86_slow *x86_slow_if(struct x86 *x, unsigned int condition, const struct jit_insn *insn,
			     void (*emit)(struct x86 *x, const struct x86_slow *slow))
{
	x86_byte(&x->e, 0x0f);
	x86_byte(&x->e, 0x80 | condition);
	return slow_field(x, insn, emit);
}

void x86_slow_back(struct x86 *x, struct x86_slow *slow)
{
	slow->back = x86_offset(x);
}

/* The opcode of a jump, and room for its distance. */
static void put_jump(struct x86 *x, int condition, struct x86_jump *jump)
{
	if (jump->brief) {
		x86_byte(&x->e, condition < 0 ? 0xeb : 0x70 | condition);
		jump->field = x86_offset(x);
		x86_byte(&x->e, 0);
		return;
	}
	if (condition >= 0)
		x86_byte(&x->e, 0x0f);
	x86_byte(&x->e, condition < 0 ? 0xe9 : 0x80 | condition);
	jump->field = x86_offset(x);
	x86_word32(&x->e, 0);
}

static void fill_jump(struct x86 *x, const struct x86_jump *jump, uint32_t target)
{
	if (jump->brief)
		x->code->bytes[jump->field] = (uint8_t)(target - jump->field - 1);
	else
		put_rel32(x, jump->field, target);
}

void x86_jump_to_block(struct x86 *x, int condition, uint32_t block)
{
	const uint32_t bound = x86_offset(x) - x->padding + x->most_padding;
	struct x86_block *target = &x->blocks[x->blocks[block].goal];
	size_t capacity = x->jumps_capacity;
	struct x86_jump *jump;

	if (grow(&x->jumps, &capacity, x->njumps, sizeof(*x->jumps))) {
		x->error = -ENOMEM;
		return;
	}
	x->jumps_capacity = capacity;
	jump = &x->jumps[x->njumps++];
	if (target->number <= x->number) {
		jump->brief = x->brief &&
			      x86_fits8((int64_t)target->start - x86_offset(x) - 2 + PLANT(23));
		put_jump(x, condition, jump);
		fill_jump(x, jump, target->start);
		if (!x->second)
			target->loop = x86_offset(x) - target->start;
		jump->block = JIT_NOWHERE;
		jump->bound = bound;
		return;
	}
	jump->brief = x->second && x->brief && target->bound - jump->bound <= INT8_MAX;
	put_jump(x, condition, jump);
	jump->block = x->blocks[block].goal;
	jump->bound = bound;
}

void x86_fill_jumps(struct x86 *x)
{
	for (uint32_t i = 0; i < x->njumps; i++)
		if (x->jumps[i].block != JIT_NOWHERE)
			fill_jump(x, &x->jumps[i], x->blocks[x->jumps[i].block].start);
}

/* ---- behind the blocks ---- */

bool x86_is_full(struct x86 *x)
{
	x->code->full = true;
	return false;
}

static void jump_back(struct x86 *x, uint32_t offset)
{
	const int64_t distance = (int64_t)offset - x86_offset(x) - 2;

	if (x->brief && x86_fits8(distance)) {
		x86_byte(&x->e, 0xeb);
		x86_byte(&x->e, distance);
	} else {
		x86_branch_to(x, 0xe9, offset);
	}
}

void x86_emit_slow(struct x86 *x)
{
	/* All blocks are there: every jump goes back. */
	x->number = JIT_NOWHERE - 1;
	for (uint32_t i = 0; i < x->nslows && !x->error; i++) {
		const struct x86_slow slow = x->slows[i];

		if (!x86_has_room(x, X86_INSN_ROOM))
			return;
		x86_place(x, slow.insn.insn);
		put_rel32(x, slow.from, x86_offset(x));
		slow.emit(x, &slow);
		if (slow.block != JIT_NOWHERE)
			x86_jump_to_block(x, -1, slow.block);
		else if (slow.back)
			jump_back(x, slow.back);
	}
}

/* ---- switches ---- */

/* Addresses of the blocks, eight bytes each; @slow->from is the field of the lea. */
static void slow_table(struct x86 *x, const struct x86_slow *slow)
{
	const uint32_t *targets = &x->function->targets[slow->insn.target];
	const uint64_t n = slow->insn.imm;

	while (x86_offset(x) & 7)
		x86_byte(&x->e, 0xcc);
	put_rel32(x, slow->from, x86_offset(x));
	if (!x86_has_room(x, 8 * n))
		return;
	x86_table_place(x, slow->insn.insn);
	for (uint64_t i = 0; i < n; i++)
		x86_word64(&x->e, x->code->address + x->blocks[x->blocks[targets[i]].goal].start);
}

void x86_switch(struct x86 *x, const struct jit_insn *insn, uint32_t otherwise)
{
	const bool wide = insn->width == 8;
	unsigned int i = x86_use(x, insn->a, X86_R10);

	if (insn->off) {
		x86_rm(&x->e, X86_LEA, wide, X86_R10,
		       (struct x86_mem){ .base = i, .index = X86_NONE, .disp = -insn->off });
		i = X86_R10;
	} else if (!wide) {
		x86_mov_rr(&x->e, false, X86_R10, i);
		i = X86_R10;
	}
	x86_alu_ri(&x->e, X86_CMP, wide, i, (int32_t)insn->imm);
	x86_jump_to_block(x, X86_AE, otherwise);
	/* lea r11, [rip + field]; jmp [r11 + i * 8] */
	x86_byte(&x->e, 0x4c);
	x86_byte(&x->e, X86_LEA);
	x86_byte(&x->e, (X86_R11 & 7) << 3 | 5);
	slow_field(x, insn, slow_table);
	x86_rm(&x->e, X86_CALL_RM, false, 4,
	       (struct x86_mem){ .base = X86_R11, .index = i, .scale = 3 });
}
