// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks of checked mode. Those that others cover are left out, those of one block with the same
 * base become one, and what stays gets its number and tells the vm which accesses it stands for.
 *
 * A byte is known to be allowed where every way to that place has checked it, with the same values
 * of the registers of its address and no call since: a call may remove regions. Facts are bytes,
 * not hulls, because a hull that lies in no single region is still allowed when its accesses are.
 *
 * A widened check comes before all its accesses, so a store of the same block that stands before
 * the access at fault may not have happened yet.
 */
#include "vm/jit/passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vm/checked.h"

#define MAX_FACTS  12   /* kept at one place */
#define MAX_GROUPS 8    /* checks of one block that may still be widened */
#define MAX_HULL   1024 /* bytes */
#define WINDOW     64   /* bytes of memory that one fact speaks of */

/* Bytes at base + (index << scale) + WINDOW * window, a bit each. */
struct fact {
	uint64_t read, write;
	int32_t window;
	uint8_t base, index, scale;
};

struct facts {
	bool reached; /* false: not yet, everything is allowed there */
	uint8_t count, next;
	struct fact facts[MAX_FACTS];
};

/* What an instruction was when it came, by its index: the leader of a group changes. */
struct access {
	int32_t off;
	uint8_t bytes;
	bool write;
	uint32_t next; /* member of the same group, JIT_NOWHERE: last */
	uint32_t tail; /* of the leader: last member */
};

struct pass {
	struct jit_function *function;
	const struct jit_graph *graph;
	struct facts *in; /* by block */
	struct access *accesses;
	struct vm_check_access *list;
};

/* May the region that an access lies in be gone afterwards? The C library knows no regions. */
static bool forgets(const struct jit_function *function, const struct jit_insn *insn)
{
	const struct vm_native *native;

	if (insn->op == JIT_CALL_LOCAL || insn->op == JIT_CALLX)
		return true;
	if (insn->op != JIT_CALL_C)
		return false;
	native = &function->image->natives[insn->target];
	if (native->with_context || !native->foreign || !native->contract)
		return true;
	for (int i = 0; i < VM_MAX_ARGUMENTS; i++)
		if (native->contract->args[i].demand == VM_CALLBACK)
			return true;
	return native->contract->check != NULL;
}

static bool is_write(const struct jit_insn *insn)
{
	return insn->flags & JIT_FLAG_WRITE;
}

static bool same_address(const struct fact *fact, const struct jit_insn *insn)
{
	return fact->base == insn->base && fact->index == insn->index &&
	       (fact->index == JIT_NONE || fact->scale == insn->scale);
}

static int32_t window_of(int64_t off)
{
	return off < 0 ? -((-off + WINDOW - 1) / WINDOW) : off / WINDOW;
}

/* Those of the bytes [off, off + bytes) that lie in a window. */
static uint64_t bits_in(int32_t window, int64_t off, uint32_t bytes)
{
	int64_t first = off - (int64_t)window * WINDOW, end = first + bytes;

	if (first < 0)
		first = 0;
	if (end > WINDOW)
		end = WINDOW;
	if (first >= end)
		return 0;
	return (UINT64_MAX >> (WINDOW - (end - first))) << first;
}

static struct fact *find_fact(struct facts *facts, const struct jit_insn *insn, int32_t window)
{
	for (uint8_t i = 0; i < facts->count; i++)
		if (facts->facts[i].window == window && same_address(&facts->facts[i], insn))
			return &facts->facts[i];
	return NULL;
}

static void learn(struct facts *facts, const struct jit_insn *insn)
{
	int32_t last = window_of((int64_t)insn->off + insn->imm - 1);

	for (int32_t w = window_of(insn->off); w <= last; w++) {
		uint64_t bits = bits_in(w, insn->off, insn->imm);
		struct fact *fact = find_fact(facts, insn, w);

		if (!fact) { /* in place of the oldest */
			fact = &facts->facts[facts->next];
			facts->next = (facts->next + 1) % MAX_FACTS;
			if (facts->count < MAX_FACTS)
				facts->count++;
			*fact = (struct fact){ .window = w,
					       .base = insn->base,
					       .index = insn->index,
					       .scale = insn->scale };
		}
		fact->read |= bits;
		if (is_write(insn))
			fact->write |= bits;
	}
}

static bool is_known(struct facts *facts, const struct jit_insn *insn)
{
	int32_t last = window_of((int64_t)insn->off + insn->imm - 1);

	for (int32_t w = window_of(insn->off); w <= last; w++) {
		const struct fact *fact = find_fact(facts, insn, w);
		uint64_t bits = bits_in(w, insn->off, insn->imm);

		if (!fact || bits & ~(is_write(insn) ? fact->write : fact->read))
			return false;
	}
	return true;
}

static void drop_fact(struct facts *facts, uint8_t i)
{
	facts->facts[i] = facts->facts[--facts->count];
	facts->next = facts->count % MAX_FACTS;
}

static void forget(struct facts *facts, uint16_t writes)
{
	for (uint8_t i = facts->count; i-- > 0;)
		if (writes & (jit_bit(facts->facts[i].base) | jit_bit(facts->facts[i].index)))
			drop_fact(facts, i);
}

/* Only what is known on both ways stays. True: something went. */
static bool meet(struct facts *facts, const struct facts *other)
{
	bool changed = false;

	if (!facts->reached) {
		*facts = *other;
		return true;
	}
	for (uint8_t i = facts->count; i-- > 0;) {
		struct fact *fact = &facts->facts[i];
		uint64_t read = 0, write = 0;

		for (uint8_t k = 0; k < other->count; k++) {
			const struct fact *o = &other->facts[k];

			if (o->window == fact->window && o->base == fact->base &&
			    o->index == fact->index && o->scale == fact->scale) {
				read = fact->read & o->read;
				write = fact->write & o->write;
			}
		}
		changed |= read != fact->read || write != fact->write;
		fact->read = read;
		fact->write = write;
		if (!read)
			drop_fact(facts, i);
	}
	return changed;
}

/* From the start of a block to its end. With @edit, checks that are covered are deleted. */
static void walk(struct jit_function *function, uint32_t block, struct facts *facts, bool edit)
{
	const struct jit_block *b = &function->blocks[block];

	for (uint32_t i = 0; i < b->count; i++) {
		struct jit_insn *insn = &function->insns[b->first + i];

		if (insn->op == JIT_CHECK) {
			if (edit && is_known(facts, insn))
				insn->op = JIT_NOP;
			learn(facts, insn);
		} else if (forgets(function, insn)) {
			facts->count = facts->next = 0;
		} else {
			forget(facts, jit_writes(insn));
		}
	}
}

/* With the flow, until nothing changes. */
static void remove_covered(struct pass *pass)
{
	struct jit_function *function = pass->function;
	bool changed = true;

	pass->in[0].reached = true;
	while (changed) {
		changed = false;
		for (uint32_t k = 0; k < pass->graph->nblocks; k++) {
			uint32_t block = pass->graph->forward[k];
			struct facts facts = pass->in[block];

			walk(function, block, &facts, false);
			for (uint32_t i = 0; i < jit_nsuccessors(function, block); i++)
				changed |=
					meet(&pass->in[*jit_successor(function, block, i)], &facts);
		}
	}
	for (uint32_t k = 0; k < pass->graph->nblocks; k++) {
		struct facts facts = pass->in[pass->graph->forward[k]];

		walk(function, pass->graph->forward[k], &facts, true);
	}
}

/* [r10 + constant] inside the frame needs no check. */
static bool in_frame(const struct jit_function *function, const struct jit_insn *insn)
{
	return insn->base == ISA_FRAME && insn->index == JIT_NONE &&
	       insn->off >= -(int64_t)function->frame &&
	       (int64_t)insn->off + (int64_t)insn->imm <= 0;
}

/* lower.c puts a check of the index before each look-up: one that stayed a call checks for itself,
 * and may be of something else than an array. */
static void drop_needless(struct jit_function *function, uint32_t block)
{
	struct jit_insn *insns = &function->insns[function->blocks[block].first];

	for (uint32_t i = 0; i < function->blocks[block].count; i++) {
		if (insns[i].op == JIT_CHECK && in_frame(function, &insns[i]))
			insns[i].op = JIT_NOP;
		for (uint32_t k = i; insns[i].op == JIT_CALL_C && k-- > 0;) {
			if (insns[k].op == JIT_CHECK && insns[k].insn == insns[i].insn)
				insns[k].op = JIT_NOP;
			else if (insns[k].op != JIT_NOP)
				break;
		}
	}
}

/* ---- one check for several accesses of a block ---- */
struct groups {
	uint32_t leaders[MAX_GROUPS]; /* instructions */
	uint32_t count, next;
};

/* Makes the leader's check wide enough for @insn too; false: too wide. */
static bool widen(struct pass *pass, uint32_t leader_at, uint32_t at)
{
	struct jit_insn *leader = &pass->function->insns[leader_at];
	struct jit_insn *insn = &pass->function->insns[at];
	struct access *head = &pass->accesses[leader_at];
	int64_t low = leader->off < insn->off ? leader->off : insn->off;
	int64_t end = (int64_t)leader->off + (int64_t)leader->imm;

	if (leader->base != insn->base || leader->index != insn->index ||
	    (leader->index != JIT_NONE && leader->scale != insn->scale))
		return false;
	if (end < (int64_t)insn->off + (int64_t)insn->imm)
		end = (int64_t)insn->off + (int64_t)insn->imm;
	if (end - low > MAX_HULL)
		return false;
	leader->off = low;
	leader->imm = end - low;
	leader->flags |= insn->flags & JIT_FLAG_WRITE;
	insn->op = JIT_NOP;
	pass->accesses[head->tail].next = at;
	head->tail = at;
	return true;
}

static void group_check(struct pass *pass, struct groups *groups, uint32_t at)
{
	for (uint32_t g = 0; g < groups->count; g++)
		if (widen(pass, groups->leaders[g], at))
			return;
	groups->leaders[groups->next] = at;
	groups->next = (groups->next + 1) % MAX_GROUPS;
	if (groups->count < MAX_GROUPS)
		groups->count++;
}

static void close_groups(struct pass *pass, struct groups *groups, uint16_t writes)
{
	for (uint32_t g = groups->count; g-- > 0;) {
		const struct jit_insn *leader = &pass->function->insns[groups->leaders[g]];

		if (!(writes & (jit_bit(leader->base) | jit_bit(leader->index))))
			continue;
		groups->leaders[g] = groups->leaders[--groups->count];
		groups->next = groups->count % MAX_GROUPS;
	}
}

static void join_checks(struct pass *pass, const struct jit_block *block)
{
	struct groups groups = { 0 };

	for (uint32_t at = block->first; at < block->first + block->count; at++) {
		const struct jit_insn *insn = &pass->function->insns[at];

		if (insn->op == JIT_CHECK)
			group_check(pass, &groups, at);
		else if (insn->op == JIT_CALL_C || forgets(pass->function, insn))
			groups.count = groups.next = 0;
		else
			close_groups(pass, &groups, jit_writes(insn));
	}
}

/* ---- numbers ---- */
static int number_check(struct pass *pass, uint32_t at)
{
	struct jit_function *function = pass->function;
	struct jit_insn *insn = &function->insns[at];
	uint32_t count = 0;

	for (uint32_t i = at; i != JIT_NOWHERE; i = pass->accesses[i].next) {
		const struct access *access = &pass->accesses[i];

		pass->list[count++] = (struct vm_check_access){ .insn = function->insns[i].insn,
								.off = access->off - insn->off,
								.bytes = access->bytes,
								.write = access->write };
	}
	insn->target = function->nchecks++;
	return check_describe(function->vm, pass->list, count, insn->imm, is_write(insn));
}

static void note_accesses(struct pass *pass)
{
	for (uint32_t i = 0; i < pass->function->ninsns; i++) {
		const struct jit_insn *insn = &pass->function->insns[i];

		pass->accesses[i] = (struct access){ .off = insn->off,
						     .bytes = insn->imm,
						     .write = is_write(insn),
						     .next = JIT_NOWHERE,
						     .tail = i };
	}
}

static int edit_blocks(struct pass *pass)
{
	struct jit_function *function = pass->function;
	int rc = 0;

	for (uint32_t k = 0; k < pass->graph->nblocks && !rc; k++) {
		const struct jit_block *block = &function->blocks[pass->graph->forward[k]];

		if (function->passes & VM_PASS_CHECKS)
			join_checks(pass, block);
		for (uint32_t i = 0; i < block->count && !rc; i++)
			if (function->insns[block->first + i].op == JIT_CHECK)
				rc = number_check(pass, block->first + i);
	}
	return rc;
}

int jit_checks(struct jit_function *function, const struct jit_graph *graph)
{
	CLEANUP(free_pointer) struct facts *in = NULL;
	CLEANUP(free_pointer) struct access *accesses = NULL;
	CLEANUP(free_pointer) struct vm_check_access *list = NULL;
	struct pass pass = { .function = function, .graph = graph };

	if (!function->checked)
		return 0;
	in = calloc(function->nblocks + 1, sizeof(*in));
	accesses = calloc(function->ninsns + 1, sizeof(*accesses));
	list = calloc(function->ninsns + 1, sizeof(*list));
	if (!in || !accesses || !list)
		return err_nomem(function->err);
	pass.in = in;
	pass.accesses = accesses;
	pass.list = list;
	for (uint32_t k = 0; k < graph->nblocks; k++)
		drop_needless(function, graph->forward[k]);
	if (function->passes & VM_PASS_CHECKS)
		remove_covered(&pass);
	note_accesses(&pass);
	function->nchecks = function->vm->checked->nchecks;
	return edit_blocks(&pass) ? err_nomem(function->err) : 0;
}
