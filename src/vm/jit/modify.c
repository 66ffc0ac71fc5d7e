// SPDX-License-Identifier: BSD-2-Clause
/*
 * Load, change and store of one place become one instruction, and so do a load and the branch that
 * compares what was loaded. Nothing that accesses memory lies in between, so that faults come in
 * the same order; the load must be the only reason for the register.
 */
#include "vm/jit/passes.h"

#include "vm/jit/plant.h"

#define LOOK_BACK 8 /* instructions */

static bool touches_memory(const struct jit_insn *insn)
{
	switch (insn->op) {
	case JIT_LOAD:
	case JIT_STORE:
	case JIT_MODIFY:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
	case JIT_CHECK:
	case JIT_ARRAY:
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
		return true;
	default:
		return false;
	}
}

static bool same_place(const struct jit_insn *a, const struct jit_insn *b)
{
	return a->base == b->base && a->index == b->index && a->off == b->off &&
	       a->size == b->size && (a->index == JIT_NONE || a->scale == b->scale);
}

static bool can_modify(uint8_t op)
{
	return op == JIT_ADD || op == JIT_SUB || op == JIT_OR || op == JIT_AND || op == JIT_XOR;
}

/* The instruction that wrote @reg before @at, with nothing in between that accesses memory or reads
 * @reg; JIT_NOWHERE: none. @passed gathers what those in between write. */
static uint32_t writer_of(const struct jit_function *function, uint32_t first, uint32_t at,
			  uint8_t reg, uint16_t *passed)
{
	for (uint32_t i = at; i-- > first && at - i <= LOOK_BACK;) {
		const struct jit_insn *insn = &function->insns[i];
		uint16_t writes = jit_write_set(insn);

		if (writes & jit_bit(reg))
			return i;
		if (touches_memory(insn) || jit_read_set(insn) & jit_bit(reg))
			return JIT_NOWHERE;
		*passed |= writes;
	}
	return JIT_NOWHERE;
}

static uint16_t address_registers(const struct jit_insn *insn)
{
	return jit_bit(insn->base) | jit_bit(insn->index);
}

/* @live: registers that are read behind the store. */
static bool try_modify(struct jit_function *function, uint32_t first, uint32_t at, uint16_t live)
{
	struct jit_insn *store = &function->insns[at], *change, *load;
	unsigned int unused = 64 - 8 * store->size;
	uint16_t passed = 0, passed_before = 0;
	uint32_t changer, loader;
	uint8_t other;

	if (store->op != JIT_STORE || store->b == JIT_NONE || live & jit_bit(store->b) ||
	    address_registers(store) & jit_bit(store->b))
		return false;
	changer = writer_of(function, first, at, store->b, &passed);
	if (changer == JIT_NOWHERE)
		return false;
	change = &function->insns[changer];
	if (!can_modify(change->op) || change->width < (store->size == 8 && !PLANT(12) ? 8 : 4))
		return false;
	/* Which operand was loaded? */
	loader = writer_of(function, first, changer, change->a, &passed_before);
	other = change->b;
	if ((loader == JIT_NOWHERE || function->insns[loader].op != JIT_LOAD) &&
	    change->b != JIT_NONE && change->op != JIT_SUB) {
		passed_before = 0;
		loader = writer_of(function, first, changer, change->b, &passed_before);
		other = change->a;
	}
	if (loader == JIT_NOWHERE || function->insns[loader].op != JIT_LOAD)
		return false;
	load = &function->insns[loader];
	if (!same_place(load, store) || other == load->dst ||
	    (passed | (PLANT(13) ? 0 : passed_before) | jit_bit(store->b)) &
		    address_registers(store) ||
	    jit_bit(load->dst) & address_registers(load) || passed & jit_bit(other) ||
	    (other != JIT_NONE && other == store->b))
		return false;
	if (load->dst != store->b && (live & jit_bit(load->dst)))
		return false;
	/* Between the change and the store nobody reads what was loaded. */
	for (uint32_t i = changer + 1; i < at; i++)
		if (jit_read_set(&function->insns[i]) & jit_bit(load->dst))
			return false;
	store->op = JIT_MODIFY;
	store->sub = change->op;
	store->insn = load->insn; /* the load is what would fault */
	store->b = other;
	store->imm = (int64_t)(change->imm << unused) >> unused;
	jit_delete(load);
	jit_delete(change);
	return true;
}

/*
 * Comparing `size` bytes in memory must tell the same as comparing what was loaded. A branch between
 * registers may say how many bytes tell them apart (simplify.c).
 */
static bool compares_alike(const struct jit_insn *load, struct jit_insn *branch)
{
	bool is_signed = branch->sub >= JIT_SGT && branch->sub <= JIT_SLE;
	uint64_t most = load->size == 8 ? UINT64_MAX : (1ull << 8 * load->size) - 1;

	if (load->size == branch->width)
		return true;
	if (load->flags & JIT_FLAG_SIGNED || load->size > branch->width)
		return false;
	if (branch->b == JIT_NONE ? branch->imm > most : !branch->size || branch->size > load->size)
		return false;
	if (is_signed) /* what was loaded is positive, and so is the other */
		branch->sub -= JIT_SGT - JIT_GT;
	return true;
}

/* Takes the load of what the branch compares first into it. */
static bool fuse_branch(struct jit_function *function, const struct jit_block *block, uint16_t live,
			struct jit_insn wanted)
{
	uint32_t at = block->first + block->count - 1, loader;
	struct jit_insn *load;
	uint16_t passed = 0;

	if (live & jit_bit(wanted.a) || wanted.a == wanted.b)
		return false;
	loader = writer_of(function, block->first, at, wanted.a, &passed);
	if (loader == JIT_NOWHERE)
		return false;
	load = &function->insns[loader];
	if (load->op != JIT_LOAD || (passed | jit_bit(load->dst)) & address_registers(load) ||
	    !compares_alike(load, &wanted))
		return false;
	wanted.a = JIT_NONE;
	wanted.base = load->base;
	wanted.index = load->index;
	wanted.scale = load->scale;
	wanted.off = load->off;
	wanted.size = load->size;
	wanted.flags |= load->flags & JIT_FLAG_SIGNED;
	wanted.insn = load->insn; /* it may fault */
	function->insns[at] = wanted;
	jit_delete(load);
	return true;
}

static bool try_branch(struct jit_function *function, const struct jit_block *block, uint16_t live)
{
	struct jit_insn wanted = function->insns[block->first + block->count - 1];
	uint8_t reg = wanted.a;

	if (wanted.op != JIT_BRANCH || wanted.a == JIT_NONE)
		return false;
	if (fuse_branch(function, block, live, wanted))
		return true;
	if (wanted.b == JIT_NONE)
		return false;
	wanted.a = wanted.b;
	wanted.b = reg;
	wanted.sub = jit_turned(wanted.sub);
	return fuse_branch(function, block, live, wanted);
}

bool jit_fuse_memory(struct jit_function *function, const struct jit_graph *graph)
{
	bool changed = false;

	for (uint32_t k = 0; k < graph->nblocks; k++) {
		const struct jit_block *block = &function->blocks[graph->forward[k]];
		uint16_t live = jit_live_out(function, graph->forward[k]);

		if (function->target->has_branch_memory)
			changed |= try_branch(function, block, live);
		if (!function->target->has_modify)
			continue;
		for (uint32_t i = block->count; i-- > 0;) {
			const struct jit_insn *insn = &function->insns[block->first + i];

			changed |= try_modify(function, block->first, block->first + i, live);
			live = (live & ~jit_write_set(insn)) | jit_read_set(insn);
		}
	}
	return changed;
}
