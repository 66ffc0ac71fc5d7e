// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stores to the frame that nothing reads. They remain of keys whose lookups have been inlined: the
 * frame is the function's own, so that it is enough to look at what the function itself does.
 */
#include "vm/jit/x86.h"

#include <string.h>

static bool in_map(int32_t off, unsigned int size)
{
	return off >= -X86_SLOT_BYTES && off + (int32_t)size <= 0;
}

static void note_read(struct x86 *x, const struct jit_insn *insn)
{
	if (insn->index != JIT_NONE || !in_map(insn->off, insn->size)) {
		x->slots_unknown = true;
		return;
	}
	for (unsigned int i = 0; i < insn->size; i++)
		x->slots_read[-insn->off - 1 - i] = true;
}

/* Memory that is only read, or only written: whose address goes nowhere else. */
static bool is_plain(const struct jit_insn *insn)
{
	switch ((enum jit_op)insn->op) {
	case JIT_LOAD:
	case JIT_STORE:
	case JIT_MODIFY:
	case JIT_ATOMIC:
	case JIT_CMPXCHG:
	case JIT_BRANCH:
		return insn->a != 10 && insn->b != 10 && insn->index != 10;
	case JIT_ARRAY:
		return insn->a != 10;
	case JIT_NOP:
	case JIT_ADD:
	case JIT_SUB:
	case JIT_MUL:
	case JIT_DIV:
	case JIT_MOD:
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
	case JIT_CODE:
	case JIT_CHECK:
	case JIT_JUMP:
	case JIT_EXIT:
	case JIT_TRAP:
	case JIT_CALL_C:
	case JIT_CALL_LOCAL:
	case JIT_CALLX:
	case JIT_F64:
	case JIT_SWITCH:
	case JIT_NOPS:
		return false;
	}
	return false;
}

void x86_plan_slots(struct x86 *x)
{
	const struct jit_function *function = x->function;

	x->slots_unknown = !(function->passes & VM_PASS_DEAD) || !function->uses_frame;
	for (uint32_t k = 0; k < function->norder && !x->slots_unknown; k++) {
		const struct jit_block *block = &function->blocks[function->order[k]];

		for (uint32_t i = 0; i < block->count; i++) {
			struct jit_insn insn = function->insns[block->first + i];

			if (!(jit_reads(&insn) >> 10 & 1))
				continue;
			if (!is_plain(&insn)) {
				x->slots_unknown = true;
				break;
			}
			if (insn.op == JIT_STORE)
				continue;
			insn.size = insn.op == JIT_ARRAY ? 4 : insn.size;
			note_read(x, &insn);
		}
	}
}

bool x86_is_read(const struct x86 *x, const struct jit_insn *insn)
{
	if (x->slots_unknown || insn->base != 10 || insn->index != JIT_NONE ||
	    !in_map(insn->off, insn->size))
		return true;
	return memchr(&x->slots_read[-insn->off - insn->size], 1, insn->size);
}
