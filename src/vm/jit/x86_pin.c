// SPDX-License-Identifier: BSD-2-Clause
/*
 * Constants that loops need again and again are kept in callee-saved registers that the function
 * does not use, and where nothing else but the next few instructions reads the BPF register that
 * they are moved to, these read the constant's register itself.
 */
#include "vm/jit/x86.h"

#define CANDIDATES 16
#define MAX_DEPTH  4  /* of loops that make a difference */
#define MAX_READS  24 /* instructions that are looked at: keeps it linear */

struct candidate {
	uint64_t value;
	uint32_t weight; /* instructions saved, by a guess of how often they run */
};

/* May the instruction read a constant's register in place of r@reg? Its operands must be read
 * while it is emitted, through x86_use() or x86_operand(). */
static bool reads_any_register(const struct jit_insn *insn)
{
	switch ((enum jit_op)insn->op) {
	case JIT_NOP:
	case JIT_ADD:
	case JIT_SUB:
	case JIT_MUL:
	case JIT_OR:
	case JIT_AND:
	case JIT_XOR:
	case JIT_LSH:
	case JIT_RSH:
	case JIT_ARSH:
	case JIT_NEG:
	case JIT_MOV:
	case JIT_EXT:
	case JIT_BSWAP:
	case JIT_LEA:
	case JIT_LOAD:
	case JIT_STORE:
	case JIT_MODIFY:
	case JIT_CHECK:
	case JIT_BRANCH:
	case JIT_SWITCH:
		return true;
	case JIT_DIV:
	case JIT_MOD:
	case JIT_CODE:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
	case JIT_JUMP:
	case JIT_EXIT:
	case JIT_TRAP:
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
	case JIT_ARRAY:
	case JIT_F64:
	case JIT_NOPS:
		return false;
	}
	return false;
}

/* Is the move at insns[0], with @left behind it in its block, not needed when the constant has a
 * register? */
static bool move_is_needless(const struct jit_insn *insns, uint32_t left)
{
	const uint16_t bit = 1u << insns[0].dst;

	for (uint32_t i = 1; i <= left && i <= MAX_READS; i++) {
		if (jit_reads(&insns[i]) & bit && !reads_any_register(&insns[i]))
			return false;
		if (jit_writes(&insns[i]) & bit)
			return true;
		if (i == left)
			return !(insns[i].live & bit);
	}
	return false;
}

static bool is_constant(const struct jit_insn *insn)
{
	/* 0 and 1 are short, and what a choice is between. */
	return insn->op == JIT_MOV && insn->a == JIT_NONE && insn->imm > 1;
}

static void count(struct candidate *candidates, unsigned int *n, uint64_t value, uint32_t weight)
{
	for (unsigned int i = 0; i < *n; i++)
		if (candidates[i].value == value) {
			candidates[i].weight += weight;
			return;
		}
	if (*n < CANDIDATES)
		candidates[(*n)++] = (struct candidate){ value, weight };
}

static void count_block(const struct x86 *x, const struct jit_block *block,
			struct candidate *candidates, unsigned int *n)
{
	const struct jit_insn *insns = &x->function->insns[block->first];
	const unsigned int depth = block->depth < MAX_DEPTH ? block->depth : MAX_DEPTH;

	for (uint32_t i = 0; i < block->count; i++) {
		if (insns[i].op == JIT_ARRAY) {
			const struct vm_array *array = &x->function->image->arrays[insns[i].target];

			if (insns[i].base != JIT_NONE || insns[i].a != JIT_NONE)
				count(candidates, n, (uintptr_t)array->data, 1u << 3 * depth);
		} else if (is_constant(&insns[i]) &&
			   move_is_needless(&insns[i], block->count - 1 - i)) {
			count(candidates, n, insns[i].imm, 1u << 3 * depth);
		}
	}
}

/* Callee-saved registers that nothing else needs, cheapest first. */
static unsigned int free_register(const struct x86 *x)
{
	static const uint8_t order[][2] = { { X86_RBX, 6 }, { X86_RBP, 10 }, { X86_R12, 11 },
					    { X86_R13, 7 }, { X86_R14, 8 },  { X86_R15, 9 } };

	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const unsigned int reg = order[i][0];

		if (x->pinned >> reg & 1 || (reg == X86_RBP && x->on_heap))
			continue;
		if (order[i][1] < 10 && x->function->used >> order[i][1] & 1)
			continue;
		return reg;
	}
	return X86_NONE;
}

void x86_plan_pins(struct x86 *x)
{
	const struct jit_function *function = x->function;
	struct candidate candidates[CANDIDATES];
	unsigned int n = 0;

	if (!(function->passes & VM_PASS_COPY) || !x->brief)
		return;
	for (uint32_t i = 0; i < function->norder; i++) {
		const struct jit_block *block = &function->blocks[function->order[i]];

		if (block->depth)
			count_block(x, block, candidates, &n);
	}
	while (x->npins < X86_PINS) {
		const unsigned int reg = free_register(x);
		struct candidate *best = NULL;

		for (unsigned int i = 0; i < n; i++)
			if (candidates[i].weight && (!best || candidates[i].weight > best->weight))
				best = &candidates[i];
		if (!best || reg == X86_NONE)
			return;
		x->pins[x->npins++] = (struct x86_pin){ best->value, reg };
		x->pinned |= 1u << reg;
		best->weight = 0;
	}
}

unsigned int x86_pin_of(const struct x86 *x, uint64_t value)
{
	for (unsigned int i = 0; i < x->npins; i++)
		if (x->pins[i].value == value && x->pins_loaded)
			return x->pins[i].reg;
	return X86_NONE;
}

void x86_load_pins(struct x86 *x)
{
	for (unsigned int i = 0; i < x->npins; i++)
		x86_constant(x, x->pins[i].reg, x->pins[i].value);
	x->pins_loaded = true;
}

bool x86_read_pin(struct x86 *x, const struct jit_insn *insns, uint32_t left)
{
	unsigned int pin;

	if (!x->npins || !is_constant(insns) || !move_is_needless(insns, left))
		return false;
	pin = x86_pin_of(x, insns->imm);
	if (pin == X86_NONE)
		return false;
	x->map[insns->dst] = pin;
	x->aliased |= 1u << insns->dst;
	return true;
}

void x86_end_pins(struct x86 *x, uint16_t written)
{
	for (uint8_t reg = 0; reg < 10; reg++)
		if (x->aliased & written & 1u << reg)
			x->map[reg] = x86_registers[reg];
	x->aliased &= ~written;
}
