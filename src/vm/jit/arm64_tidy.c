// SPDX-License-Identifier: BSD-2-Clause
/*
 * Before a function is emitted: a copy of it, in which blocks that always follow each other are one,
 * and neighbouring instructions become one where the machine's registers and operands allow it. What
 * is deleted goes to the front of the block.
 */
#include "vm/jit/arm64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_result(const struct jit_insn *in)
{
	return in->op >= JIT_ADD && in->op <= JIT_LOAD && in->dst != JIT_NONE;
}

static bool is_copy(const struct jit_insn *in)
{
	return in->op == JIT_MOV && in->a != JIT_NONE && in->a != 10 &&
	       (in->width == 8 || in->flags & JIT_FLAG_ANY_UPPER);
}

static bool passes_on(const struct jit_insn *in)
{
	return in[0].dst == in[1].dst || !(in[1].live & 1u << in[0].dst);
}

/* t = ...; d = t: the result goes to d at once. */
static bool forward(struct jit_insn *in)
{
	if (!has_result(&in[0]) || !is_copy(&in[1]) || in[1].a != in[0].dst || !passes_on(in))
		return false;
	in[0].dst = in[1].dst;
	in[0].live = in[1].live;
	in[1] = in[0];
	in[0].op = JIT_NOP;
	return true;
}

/* How many of the lowest bits come through. */
static unsigned int bits_kept(const struct jit_insn *in)
{
	if (in->op == JIT_MOV && in->a != JIT_NONE)
		return 8 * in->width;
	if (in->op == JIT_EXT)
		return 8 * in->size;
	return a64_kept_bits(in);
}

/* An extension of what was extended: of fewer bits, or of as many. */
static bool extend_twice(struct jit_insn *in)
{
	const unsigned int bits = bits_kept(&in[0]);
	unsigned int needs;

	if (!has_result(&in[0]) || !bits || in[0].a == 10 || in[1].a != in[0].dst || !passes_on(in))
		return false;
	if (in[1].op == JIT_EXT)
		needs = 8 * in[1].size;
	else
		needs = in[1].op == JIT_MOV && in[1].width == 8 ? 0 : a64_kept_bits(&in[1]);
	if (!needs || needs > bits)
		return false;
	in[1].a = in[0].a;
	in[0].op = JIT_NOP;
	return true;
}

/* Puts what is left behind what was deleted. */
static void close_gaps(struct jit_insn *insns, uint32_t count)
{
	uint32_t to = count;

	for (uint32_t i = count; i-- > 0;)
		if (insns[i].op != JIT_NOP && --to != i) {
			insns[to] = insns[i];
			insns[i].op = JIT_NOP;
		}
}

/* A constant that the branch at the end chooses from comes right in front of it: a64_select(). */
static void sink_choice(struct jit_insn *insns, uint32_t count)
{
	const uint32_t last = count - 1;
	uint32_t i = last;
	uint16_t mentioned;
	struct jit_insn move;

	if (insns[last].op != JIT_BRANCH)
		return;
	mentioned = jit_reads(&insns[last]);
	while (i-- > 0 && insns[i].op != JIT_NOP) {
		if (insns[i].op == JIT_MOV && insns[i].a == JIT_NONE && i + 1 < last &&
		    insns[i].imm <= 1 && !(mentioned & 1u << insns[i].dst))
			break;
		mentioned |= jit_reads(&insns[i]) | jit_writes(&insns[i]);
		if (i + 8 < last)
			return;
	}
	if (i >= last || insns[i].op != JIT_MOV)
		return;
	move = insns[i];
	for (; i + 1 < last; i++) {
		insns[i] = insns[i + 1];
		insns[i].live &= ~(1u << move.dst);
	}
	move.live = insns[last - 1].live | 1u << move.dst;
	insns[i] = move;
}

static void tidy_block(struct jit_insn *insns, uint32_t count)
{
	bool changed = true;

	/* Twice: what one round leaves side by side. */
	for (int round = 0; round < 2 && changed; round++) {
		changed = false;
		for (uint32_t i = 0; i + 2 < count; i++)
			changed |= insns[i].op != JIT_NOP &&
				   (forward(&insns[i]) || extend_twice(&insns[i]));
		close_gaps(insns, count);
	}
	sink_choice(insns, count);
}

/* Appends a block, and those behind it that only it goes to; returns the last one's place. */
static uint32_t copy_chain(struct a64 *e, const struct jit_function *from, uint32_t k)
{
	struct jit_function *to = &e->own;
	struct jit_block *block = &to->blocks[from->order[k]];
	const struct jit_insn *end;

	to->order[to->norder++] = from->order[k];
	block->first = to->ninsns;
	block->count = 0;
	for (;; k++) {
		const struct jit_block *part = &from->blocks[from->order[k]];

		memcpy(&to->insns[to->ninsns], &from->insns[part->first],
		       part->count * sizeof(*to->insns));
		to->ninsns += part->count;
		block->count += part->count;
		block->taken = part->taken;
		block->next = part->next;
		if (part != &from->blocks[to->order[to->norder - 1]])
			block->cost += part->cost;
		end = &to->insns[to->ninsns - 1];
		if (end->op != JIT_JUMP || !a64_pass(e, VM_PASS_LAYOUT) || k + 1 == from->norder ||
		    part->next != from->order[k + 1] || e->preds[part->next] != 1)
			return k;
		to->ninsns--;
		block->count--;
	}
}

int a64_tidy(struct a64 *e)
{
	const struct jit_function *from = e->function;
	struct jit_function *to = &e->own;

	*to = *from;
	to->ninsns = to->norder = 0;
	to->insns = malloc(from->ninsns * sizeof(*to->insns));
	to->blocks = malloc(from->nblocks * sizeof(*to->blocks));
	to->order = malloc(from->norder * sizeof(*to->order));
	if (!to->insns || !to->blocks || !to->order)
		return -ENOMEM;
	memcpy(to->blocks, from->blocks, from->nblocks * sizeof(*to->blocks));
	for (uint32_t k = 0; k < from->norder; k++)
		k = copy_chain(e, from, k);
	e->function = to;
	for (uint32_t k = 0; k < to->norder && a64_pass(e, VM_PASS_COPY); k++) {
		const struct jit_block *block = &to->blocks[to->order[k]];

		tidy_block(&to->insns[block->first], block->count);
	}
	return 0;
}

void a64_untidy(struct a64 *e)
{
	free(e->own.insns);
	free(e->own.blocks);
	free(e->own.order);
}
