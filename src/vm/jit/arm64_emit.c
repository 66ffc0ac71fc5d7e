// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/arm64.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADR_BITS   19 /* of words, as those of branches */
#define MOST_WORTH 16 /* constants that are looked at for a register */

bool a64_grow(void *array, size_t element, struct a64_list *list, int *rc)
{
	void **pointer = array;
	size_t capacity = list->capacity ? 2 * list->capacity : 32;
	void *grown;

	if (list->count < list->capacity)
		return true;
	grown = realloc(*pointer, capacity * element);
	if (!grown) {
		*rc = -ENOMEM;
		return false;
	}
	*pointer = grown;
	list->capacity = capacity;
	return true;
}

void a64_out(struct a64 *e, uint32_t word)
{
	struct jit_code *code = e->code;

	if (code->capacity - code->size < sizeof(word)) {
		code->full = true;
		return;
	}
	memcpy(code->bytes + code->size, &word, sizeof(word));
	code->size += sizeof(word);
}

uint32_t a64_here(const struct a64 *e)
{
	return e->code->size;
}

uint64_t a64_here_address(const struct a64 *e)
{
	return e->code->address + e->code->size;
}

static void new_place(struct a64 *e, struct jit_place place)
{
	struct jit_code *code = e->code;
	struct jit_place *last = code->nplaces ? &code->places[code->nplaces - 1] : NULL;
	struct a64_list list = { code->nplaces, code->places_capacity };

	if (last && last->insn == place.insn && last->table == place.table &&
	    last->offset >= code->functions[e->function->index].first)
		return;
	if (last && last->offset == code->size) {
		*last = place;
		return;
	}
	if (!a64_grow(&code->places, sizeof(*code->places), &list, &e->rc))
		return;
	code->places_capacity = list.capacity;
	code->places[code->nplaces++] = place;
}

void a64_place(struct a64 *e, uint32_t insn)
{
	new_place(e, (struct jit_place){ e->code->size, insn });
}

/* Here begins the table of a switch, up to the next place. */
void a64_table_place(struct a64 *e, uint32_t insn)
{
	new_place(e, (struct jit_place){ e->code->size, insn, .table = true });
}

void a64_step(struct jit_code *code, int *rc, uint32_t depth, uint8_t reg, uint32_t slot)
{
	struct a64_list list = { code->nsteps, code->steps_capacity };

	if (!a64_grow(&code->steps, sizeof(*code->steps), &list, rc))
		return;
	code->steps_capacity = list.capacity;
	code->steps[code->nsteps++] = (struct jit_frame_step){ code->size, depth, reg, slot };
}

uint32_t a64_label(struct a64 *e)
{
	if (!a64_grow(&e->labels, sizeof(*e->labels), &e->labels_list, &e->rc))
		return 0;
	e->labels[e->labels_list.count] = JIT_NOWHERE;
	return e->labels_list.count++;
}

void a64_bind(struct a64 *e, uint32_t label)
{
	e->labels[label] = a64_here(e);
}

void a64_refer(struct a64 *e, uint32_t label, uint32_t table)
{
	if (!a64_grow(&e->fixups, sizeof(*e->fixups), &e->fixups_list, &e->rc))
		return;
	e->fixups[e->fixups_list.count++] = (struct a64_fixup){ a64_here(e), label, table };
}

uint32_t a64_turned(uint32_t word)
{
	if ((word & 0xff000010) == 0x54000000)
		return word ^ 1;
	return word ^ 1 << 24; /* cbz, tbz */
}

void a64_branch_to(struct a64 *e, uint32_t word, uint32_t label)
{
	int bits = a64_distance_bits(word);

	if ((bits == A64_COND_BITS && e->reach >= A64_REACH_FAR) ||
	    (bits == A64_TEST_BITS && e->reach >= A64_REACH_COND)) {
		a64_out(e, a64_retarget(a64_turned(word), 8));
		word = a64_b(0);
	}
	a64_refer(e, label, JIT_NOWHERE);
	a64_out(e, word);
}

void a64_resolve(struct a64 *e)
{
	struct jit_code *code = e->code;

	if (code->full || e->rc)
		return;
	for (size_t i = 0; i < e->fixups_list.count; i++) {
		const struct a64_fixup *fixup = &e->fixups[i];
		int64_t distance = (int64_t)e->labels[fixup->label] - fixup->at;
		uint32_t word;
		int bits;

		assert(e->labels[fixup->label] != JIT_NOWHERE);
		memcpy(&word, code->bytes + fixup->at, sizeof(word));
		if (fixup->table != JIT_NOWHERE) {
			word = e->labels[fixup->label] - fixup->table;
		} else {
			bits = a64_distance_bits(word);
			if (!a64_fits(distance, bits ? bits : ADR_BITS))
				e->too_far = true;
			word = a64_retarget(word, distance);
		}
		memcpy(code->bytes + fixup->at, &word, sizeof(word));
	}
}

/* ---- constants ---- */

/* How many of the four 16-bit pieces are not @blank. */
static int pieces(uint64_t value, uint16_t blank)
{
	int count = 0;

	for (int shift = 0; shift < 64; shift += 16)
		count += (uint16_t)(value >> shift) != blank;
	return count;
}

/* One instruction that gives the value; 0: there is none. */
static uint32_t move_at_once(int rd, uint64_t value)
{
	bool wide = value >> 32;
	int field;

	for (int shift = 0; shift < 64; shift += 16) {
		if (!(value & ~(0xffffull << shift)))
			return a64_movz(shift >= 32, rd, value >> shift, shift);
		if (!(~value & ~(0xffffull << shift)))
			return a64_movn(true, rd, ~value >> shift, shift);
		if (!wide && shift < 32 && !((uint32_t)~value & ~(0xffffu << shift)))
			return a64_movn(false, rd, (uint32_t)~value >> shift, shift);
	}
	field = a64_find_logic(wide, value);
	return field < 0 ? 0 : a64_logic_imm(wide, A64_ORR, rd, A64_ZR, field);
}

static struct a64_constant *literal(struct a64 *e, uint64_t value, uint32_t function)
{
	size_t n = e->literals_list.count;
	uint32_t label;

	for (size_t i = n > MOST_WORTH ? n - MOST_WORTH : 0; i < n; i++)
		if (e->literals[i].value == value && e->literals[i].function == function)
			return &e->literals[i];
	label = a64_label(e);
	if (e->rc || !a64_grow(&e->literals, sizeof(*e->literals), &e->literals_list, &e->rc))
		return NULL;
	e->literals[n] =
		(struct a64_constant){ .value = value, .label = label, .function = function };
	e->literals_list.count++;
	return &e->literals[n];
}

static void load_literal(struct a64 *e, int rd, uint64_t value, uint32_t function)
{
	const struct a64_constant *constant = literal(e, value, function);

	if (!constant)
		return;
	a64_refer(e, constant->label, JIT_NOWHERE);
	a64_out(e, a64_literal(true, rd, 0));
}

static void move_pieces(struct a64 *e, int rd, uint64_t value)
{
	bool negative = pieces(value, 0xffff) < pieces(value, 0);
	uint16_t blank = negative ? 0xffff : 0;
	bool first = true;

	for (int shift = 0; shift < 64; shift += 16) {
		uint16_t piece = value >> shift;

		if (piece == blank)
			continue;
		if (!first)
			a64_out(e, a64_movk(true, rd, piece, shift));
		else if (negative)
			a64_out(e, a64_movn(true, rd, ~piece, shift));
		else
			a64_out(e, a64_movz(true, rd, piece, shift));
		first = false;
	}
}

void a64_move_imm(struct a64 *e, int rd, uint64_t value)
{
	uint32_t word = move_at_once(rd, value);

	if (word)
		a64_out(e, word);
	else if (pieces(value, 0) <= 2 || pieces(value, 0xffff) <= 2 || e->reach == A64_REACH_FAR ||
		 !a64_pass(e, VM_PASS_SHORT))
		move_pieces(e, rd, value);
	else
		load_literal(e, rd, value, JIT_NOWHERE);
}

/* Remembers that a constant is needed here. */
static void collect(struct a64 *e, uint64_t value)
{
	uint64_t weight = 1ull << (3 * (e->depth < 8 ? e->depth : 8));
	struct a64_constant *least = NULL;

	for (int i = 0; i < e->nhoisted; i++) {
		if (e->hoisted[i].value == value) {
			e->hoisted[i].weight += weight;
			return;
		}
		if (!least || e->hoisted[i].weight < least->weight)
			least = &e->hoisted[i];
	}
	if (e->nhoisted < MOST_WORTH)
		least = &e->hoisted[e->nhoisted++];
	else if (least->weight >= weight)
		return;
	*least = (struct a64_constant){ .value = value, .weight = weight, .reg = -1 };
}

int a64_hoisted(struct a64 *e, uint64_t value)
{
	if (e->collecting) {
		collect(e, value);
		return -1;
	}
	for (int i = 0; i < e->nhoisted; i++)
		if (e->hoisted[i].value == value)
			return e->hoisted[i].reg;
	return -1;
}

int a64_constant(struct a64 *e, uint64_t value, int scratch)
{
	int reg;

	if (!value)
		return A64_ZR;
	reg = a64_hoisted(e, value);
	if (reg >= 0)
		return reg;
	a64_move_imm(e, scratch, value);
	return scratch;
}

void a64_add_imm(struct a64 *e, bool wide, int rd, int rn, int64_t value, int scratch)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
	enum a64_arith op = value < 0 ? A64_SUB : A64_ADD;
	int rm;

	if (!value && wide && rd == rn)
		return;
	if (a64_fits_arith(size)) {
		if (!value && wide && rd != A64_SP && rn != A64_SP)
			a64_out(e, a64_mov(true, rd, rn));
		else
			a64_out(e, a64_arith_imm(wide, op, rd, rn, size));
	} else if (size < 1 << 24) {
		a64_out(e, a64_arith_imm(wide, op, rd, rn, size & 0xfff000));
		a64_out(e, a64_arith_imm(wide, op, rd, rd, size & 0xfff));
	} else {
		rm = a64_constant(e, wide ? (uint64_t)value : (uint32_t)value, scratch);
		if (rd == A64_SP || rn == A64_SP)
			a64_out(e, a64_arith_sp(A64_ADD, rd, rn, rm));
		else
			a64_out(e, a64_arith_reg(wide, A64_ADD, rd, rn, rm, A64_LSL, 0));
	}
}

void a64_function_address(struct a64 *e, int rd, uint32_t function)
{
	const struct jit_range *range = &e->code->functions[function];

	if (range->end || function == e->function->index) {
		a64_move_imm(e, rd, e->code->address + range->first);
		return;
	}
	/* Not there yet: its address comes into the code when it is. */
	if (e->reach < A64_REACH_FAR) {
		load_literal(e, rd, 0, function);
		return;
	}
	a64_out(e, a64_literal(true, rd, 8));
	a64_out(e, a64_b(12));
	a64_patch(e, function, A64_PATCH_ADDRESS);
	a64_out(e, 0);
	a64_out(e, 0);
}

void a64_patch(struct a64 *e, uint32_t function, enum a64_patch kind)
{
	struct jit_code *code = e->code;
	struct a64_list list = { code->npatches, code->patches_capacity };

	if (!a64_grow(&code->patches, sizeof(*code->patches), &list, &e->rc))
		return;
	code->patches_capacity = list.capacity;
	code->patches[code->npatches++] = (struct jit_patch){ code->size, function, kind };
}

void a64_literals(struct a64 *e)
{
	struct jit_code *code = e->code;

	if (!e->literals_list.count)
		return;
	a64_place(e, JIT_NO_INSN);
	if ((code->address + code->size) & 7)
		a64_out(e, a64_udf(0));
	for (size_t i = 0; i < e->literals_list.count; i++) {
		a64_bind(e, e->literals[i].label);
		if (e->literals[i].function != JIT_NOWHERE)
			a64_patch(e, e->literals[i].function, A64_PATCH_ADDRESS);
		a64_out(e, e->literals[i].value);
		a64_out(e, e->literals[i].value >> 32);
	}
}

void a64_copy(struct a64 *e, int rd, int rn)
{
	if (rd != rn)
		a64_out(e, a64_mov(true, rd, rn));
}

int a64_use(const struct a64 *e, int r)
{
	assert(r <= 9 || (r == 10 && !e->frame_on_sp));
	return r ? e->map[r] : e->now;
}

int a64_value(struct a64 *e, int r, int scratch)
{
	if (r != 10 || !e->frame_on_sp)
		return a64_use(e, r);
	a64_add_imm(e, true, scratch, A64_SP, e->frame_top, scratch);
	return scratch;
}

int a64_def(struct a64 *e, int r)
{
	assert(r <= 9);
	if (r)
		return e->map[r] = e->plain[r];
	e->apart |= e->next == A64_R0_APART;
	return e->now = e->next;
}
