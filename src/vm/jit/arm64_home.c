// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where r0 is: C wants results in x0, which is r1 otherwise. So r0 has two registers, x0 and x7, and
 * is in one of them wherever two blocks meet. What must agree are the ends of the edges over which r0
 * is alive; these sets are found, and a set is in x0 when r1 is never alive, nor written, while r0
 * is. Two nodes a block stand for its beginning and its end; where r0 is not written in between, they
 * are one.
 */
#include "vm/jit/arm64.h"
#include "vm/jit/passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	const struct jit_insn *insns = &h->e->insns[block->first];
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

static void look_at_edge(struct homes *h, uint32_t from, uint32_t to)
{
	const struct jit_function *function = h->e->function;
	const struct jit_block *block = &function->blocks[from];

	if (!(function->blocks[to].live_in & R0))
		return;
	/* Returns that are repeated in place of jumps take r0 from where it is. */
	if (h->e->insns[block->first + block->count - 1].op == JIT_JUMP && a64_returns(h->e, to))
		return;
	join(h, 2 * from + 1, 2 * to);
}

static void look_at_edges(struct homes *h, uint32_t k)
{
	struct jit_function *function = (struct jit_function *)(uintptr_t)h->e->function;
	const uint32_t n = jit_nsuccessors(function, k);

	for (uint32_t i = 0; i < n; i++)
		look_at_edge(h, k, *jit_successor(function, k, i));
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
	for (uint32_t k = 0; k < function->norder; k++)
		look_at_edges(&h, function->order[k]);
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

/* Before the end of a block: r0 goes where the blocks behind expect it. */
void a64_settle(struct a64 *e, const struct jit_insn *in, uint8_t home)
{
	if (e->now == home || in->op == JIT_EXIT || !(in->live & R0))
		return;
	a64_out(e, a64_mov(true, home, e->now));
	e->apart |= home == A64_R0_APART;
	e->now = home;
}
