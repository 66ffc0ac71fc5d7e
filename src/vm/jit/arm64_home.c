// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where r0 is: C wants results in x0, which is r1 otherwise. So r0 has two registers, x0 and x7, and
 * is in one of them wherever two blocks meet. Where a conditional branch goes from one block to the
 * other and r0 is alive, both ends must agree; these sets are found, and a set is in x0 when r1 is
 * never alive, nor written, while r0 is. On all other ways r0 can be moved. Two nodes a block stand
 * for its beginning and its end; where r0 is not written in between, they are one.
 */
#include "vm/jit/arm64.h"
#include "vm/jit/passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEEP 3 /* loops inside of loops: what is deeper counts the same */

#define R0 1u
#define R1 2u

struct homes {
	const struct a64 *e;
	uint32_t *parent; /* 2 * block for its beginning, + 1 for its end */
	uint8_t *conflict;
};

static uint32_t find(struct homes *h, uint32_t node)
{
	while (h->parent[node] != node) {
		h->parent[node] = h->parent[h->parent[node]];
		node = h->parent[node];
	}
	return node;
}

static void join(struct homes *h, uint32_t a, uint32_t b)
{
	a = find(h, a);
	b = find(h, b);
	h->parent[a] = b;
	h->conflict[b] |= h->conflict[a];
}

bool a64_disturbs(const struct jit_insn *in)
{
	const uint16_t writes = a64_writes(in);

	if (!(in->live & R0))
		return false;
	if (in->live & R1)
		return true;
	return writes & R1 && !(writes & R0); /* calls: r1 is lost, and r0 comes after */
}

/* Joins the block's nodes when nothing writes r0 in it, and notes what is against x0. */
static void look_at_block(struct homes *h, uint32_t k)
{
	const struct jit_block *block = &h->e->function->blocks[k];
	const struct jit_insn *insns = &h->e->function->insns[block->first];
	bool written = false, at_end = false;

	if (block->live_in & R0 && block->live_in & R1)
		h->conflict[2 * k] = true;
	for (uint32_t i = 0; i < block->count; i++) {
		if (a64_writes(&insns[i]) & R0) {
			written = true;
			at_end = false;
		}
		at_end |= a64_disturbs(&insns[i]);
		if (!written)
			h->conflict[2 * k] |= at_end;
	}
	h->conflict[2 * k + 1] = at_end;
	if (!written)
		join(h, 2 * k, 2 * k + 1);
}

static bool matters(const struct homes *h, uint32_t from, uint32_t to)
{
	const struct jit_function *function = h->e->function;
	const struct jit_block *block = &function->blocks[from];

	if (!(function->blocks[to].live_in & R0))
		return false;
	/* Returns that are repeated in place of jumps take r0 from where it is. */
	return h->e->function->insns[block->first + block->count - 1].op != JIT_JUMP ||
	       !a64_returns(h->e, to);
}

/* The way out of a block that no conditional branch takes: there, a move costs only those who go
 * it. JIT_NOWHERE: there is none. */
static uint32_t quiet_way(const struct a64 *e, uint32_t k, uint32_t follows)
{
	const struct jit_block *block = &e->function->blocks[k];

	switch (e->function->insns[block->first + block->count - 1].op) {
	case JIT_JUMP:
		return block->next;
	case JIT_BRANCH:
		return block->taken == follows ? block->taken : block->next;
	default:
		return JIT_NOWHERE;
	}
}

static uint32_t follower(const struct a64 *e, uint32_t k)
{
	return k + 1 < e->function->norder ? e->function->order[k + 1] : JIT_NOWHERE;
}

/* Branches can move nothing: their ends must be one. */
static void join_branches(struct homes *h)
{
	struct jit_function *function = (struct jit_function *)(uintptr_t)h->e->function;

	for (uint32_t k = 0; k < function->norder; k++) {
		const uint32_t from = function->order[k], n = jit_nsuccessors(function, from);
		const uint32_t quiet = quiet_way(h->e, from, follower(h->e, k));

		for (uint32_t i = 0; i < n; i++) {
			const uint32_t to = *jit_successor(function, from, i);

			if (to != quiet && matters(h, from, to))
				join(h, 2 * from + 1, 2 * to);
		}
	}
}

/* The others should be one, the innermost ones first, unless that costs a set its x0. */
static void join_quiet_ways(struct homes *h, unsigned int depth)
{
	const struct jit_function *function = h->e->function;

	for (uint32_t k = 0; k < function->norder; k++) {
		const uint32_t from = function->order[k];
		const uint32_t to = quiet_way(h->e, from, follower(h->e, k));
		unsigned int at;

		if (to == JIT_NOWHERE || !matters(h, from, to))
			continue;
		at = function->blocks[from].depth < function->blocks[to].depth
			     ? function->blocks[from].depth
			     : function->blocks[to].depth;
		at = at < DEEP ? at : DEEP;
		if (at == depth &&
		    h->conflict[find(h, 2 * from + 1)] == h->conflict[find(h, 2 * to)])
			join(h, 2 * from + 1, 2 * to);
	}
}

int a64_find_homes(struct a64 *e)
{
	const struct jit_function *function = e->function;
	const uint32_t nodes = 2 * function->nblocks;
	struct homes h = { .e = e };

	e->homes = malloc(nodes);
	if (!e->homes)
		return -ENOMEM;
	memset(e->homes, A64_R0_APART, nodes);
	if (!a64_pass(e, VM_PASS_COPY))
		return 0;
	h.parent = malloc(nodes * sizeof(*h.parent));
	h.conflict = calloc(nodes, sizeof(*h.conflict));
	if (!h.parent || !h.conflict) {
		free(h.parent);
		free(h.conflict);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < nodes; i++)
		h.parent[i] = i;
	for (uint32_t k = 0; k < function->norder; k++)
		look_at_block(&h, function->order[k]);
	join_branches(&h);
	for (unsigned int depth = DEEP + 1; depth-- > 0;)
		join_quiet_ways(&h, depth);
	for (uint32_t i = 0; i < nodes; i++)
		e->homes[i] = h.conflict[find(&h, i)] ? A64_R0_APART : 0;
	free(h.parent);
	free(h.conflict);
	return 0;
}

/* Once r1 is alive while r0 is, or comes into its register: r0 leaves x0. */
void a64_leave_x0(struct a64 *e, const struct jit_insn *in)
{
	const uint16_t writes = a64_writes(in);

	if (e->now != 0 || !(writes & R1) || writes & R0 || !(in->live & R0))
		return;
	a64_out(e, a64_mov(true, A64_R0_APART, 0));
	e->now = A64_R0_APART;
	e->apart = true;
}

/* r0, when it is alive, goes where somebody expects it. */
void a64_settle(struct a64 *e, bool alive, uint8_t home)
{
	if (e->now == home || !alive)
		return;
	a64_out(e, a64_mov(true, home, e->now));
	e->apart |= home == A64_R0_APART;
	e->now = home;
}
