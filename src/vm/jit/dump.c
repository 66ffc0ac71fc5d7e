// SPDX-License-Identifier: BSD-2-Clause
/* The intermediate form as text: wN is the lower half of rN, as in other assemblers of BPF. */
#include "vm/jit/passes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"

static const char *const operators[JIT_NOPS] = {
	[JIT_ADD] = "+",  [JIT_SUB] = "-",  [JIT_MUL] = "*",    [JIT_DIV] = "/",
	[JIT_MOD] = "%",  [JIT_OR] = "|",   [JIT_AND] = "&",    [JIT_XOR] = "^",
	[JIT_LSH] = "<<", [JIT_RSH] = ">>", [JIT_ARSH] = "s>>", [JIT_MOV] = "",
};

static const char *const conditions[] = {
	[JIT_EQ] = "==",   [JIT_NE] = "!=",  [JIT_SET] = "&",   [JIT_GT] = ">",
	[JIT_GE] = ">=",   [JIT_LT] = "<",   [JIT_LE] = "<=",   [JIT_SGT] = "s>",
	[JIT_SGE] = "s>=", [JIT_SLT] = "s<", [JIT_SLE] = "s<=", [JIT_CLEAR] = "!&",
};

struct text {
	char data[64];
};

static struct text name(const struct jit_insn *insn, uint8_t reg)
{
	struct text ret;

	snprintf(ret.data, sizeof(ret.data), "%c%u", insn->width == 4 ? 'w' : 'r', reg);
	return ret;
}

/* b, or the immediate: small ones in decimal. */
static struct text operand(const struct jit_insn *insn)
{
	int64_t value = insn->width == 4 ? (int32_t)insn->imm : (int64_t)insn->imm;
	struct text ret;

	if (insn->b != JIT_NONE)
		return name(insn, insn->b);
	if (value > -65536 && value < 65536)
		snprintf(ret.data, sizeof(ret.data), "%" PRId64, value);
	else
		snprintf(ret.data, sizeof(ret.data), "0x%" PRIx64, insn->imm);
	return ret;
}

/* base + (index << scale) + off */
static struct text address(const struct jit_insn *insn)
{
	struct text ret;
	int n = snprintf(ret.data, sizeof(ret.data), "r%u", insn->base);

	if (insn->index != JIT_NONE)
		n += snprintf(ret.data + n, sizeof(ret.data) - n, " + r%u*%u", insn->index,
			      1u << insn->scale);
	if (insn->off)
		snprintf(ret.data + n, sizeof(ret.data) - n, " %c %u", insn->off < 0 ? '-' : '+',
			 insn->off < 0 ? -(uint32_t)insn->off : (uint32_t)insn->off);
	return ret;
}

static char sign(const struct jit_insn *insn)
{
	return insn->flags & JIT_FLAG_SIGNED ? 's' : 'u';
}

static struct text cell(const struct jit_insn *insn)
{
	struct text ret;

	snprintf(ret.data, sizeof(ret.data), "%c%u [%.50s]", sign(insn), 8u * insn->size,
		 address(insn).data);
	return ret;
}

static int dump_alu(const struct jit_insn *insn, struct buf *ret)
{
	return buf_printf(ret, "%s = %s %s%s %s", name(insn, insn->dst).data,
			  name(insn, insn->a).data, insn->flags & JIT_FLAG_SIGNED ? "s" : "",
			  operators[insn->op], operand(insn).data);
}

static int dump_move(const struct jit_insn *insn, struct buf *ret)
{
	struct jit_insn source = *insn;

	source.b = insn->a;
	return buf_printf(ret, "%s = %s%s", name(insn, insn->dst).data, operand(&source).data,
			  insn->flags & JIT_FLAG_ANY_UPPER ? " any" : "");
}

static int dump_branch(const struct jit_block *block, const struct jit_insn *insn, struct buf *ret)
{
	struct text a;

	a = insn->base == JIT_NONE ? name(insn, insn->a) : cell(insn);
	return buf_printf(ret, "if%s %s %s %s goto b%u else b%u",
			  insn->width == 4 && insn->base != JIT_NONE ? "32" : "", a.data,
			  conditions[insn->sub], operand(insn).data, block->taken, block->next);
}

static int dump_switch(const struct jit_function *function, const struct jit_block *block,
		       const struct jit_insn *insn, struct buf *ret)
{
	int rc = buf_printf(ret, "switch %s - %d:", name(insn, insn->a).data, insn->off);

	for (uint64_t i = 0; i < insn->imm && !rc; i++)
		rc = buf_printf(ret, " b%u", function->targets[insn->target + i]);
	return rc ? rc : buf_printf(ret, " else b%u", block->next);
}

static int dump_array(const struct jit_insn *insn, struct buf *ret)
{
	if (insn->base != JIT_NONE)
		return buf_printf(ret, "r0 = array %u at [%s]", insn->target, address(insn).data);
	if (insn->a != JIT_NONE)
		return buf_printf(ret, "r0 = array %u at w%u", insn->target, insn->a);
	return buf_printf(ret, "r0 = array %u at %s", insn->target, operand(insn).data);
}

static int dump_insn(const struct jit_function *function, const struct jit_block *block,
		     const struct jit_insn *insn, struct buf *ret)
{
	switch ((enum jit_op)insn->op) {
	case JIT_NOP:
		return buf_printf(ret, "nop");
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
		return dump_alu(insn, ret);
	case JIT_NEG:
		return buf_printf(ret, "%s = -%s", name(insn, insn->dst).data,
				  name(insn, insn->a).data);
	case JIT_MOV:
		return dump_move(insn, ret);
	case JIT_EXT:
		return buf_printf(ret, "%s = %c%u r%u", name(insn, insn->dst).data, sign(insn),
				  8u * insn->size, insn->a);
	case JIT_BSWAP:
		return buf_printf(ret, "r%u = bswap%u r%u", insn->dst, 8u * insn->size, insn->a);
	case JIT_LEA:
		return buf_printf(ret, "%s = lea %s", name(insn, insn->dst).data,
				  address(insn).data);
	case JIT_CODE:
		return buf_printf(ret, "r%u = function %u", insn->dst, insn->target);
	case JIT_LOAD:
		return buf_printf(ret, "r%u = %s", insn->dst, cell(insn).data);
	case JIT_STORE:
		return buf_printf(ret, "%s = %s", cell(insn).data, operand(insn).data);
	case JIT_MODIFY:
		return buf_printf(ret, "%s %s= %s", cell(insn).data, operators[insn->sub],
				  operand(insn).data);
	case JIT_ATOMIC:
		return buf_printf(ret, "atomic %s %s= r%u%s", cell(insn).data, operators[insn->sub],
				  insn->b, insn->flags & JIT_FLAG_FETCH ? " fetch" : "");
	case JIT_CMPXCHG:
		return buf_printf(ret, "atomic %s cmpxchg r%u", cell(insn).data, insn->b);
	case JIT_CHECK:
		return buf_printf(ret, "check %s %" PRIu64 " [%s]",
				  insn->flags & JIT_FLAG_WRITE ? "write" : "read", insn->imm,
				  address(insn).data);
	case JIT_JUMP:
		return buf_printf(ret, "goto b%u", block->next);
	case JIT_BRANCH:
		return dump_branch(block, insn, ret);
	case JIT_EXIT:
		return buf_printf(ret, "exit");
	case JIT_TRAP:
		return buf_printf(ret, "trap");
	case JIT_CALL_C:
		return buf_printf(ret, "call native %u", insn->target);
	case JIT_CALL_LOCAL:
		return buf_printf(ret, "call %u", insn->target);
	case JIT_CALLX:
		return buf_printf(ret, "callx r%u", insn->a);
	case JIT_ARRAY:
		return dump_array(insn, ret);
	case JIT_F64:
		return buf_printf(ret, "r0 = f64 %u", insn->sub);
	case JIT_SWITCH:
		return dump_switch(function, block, insn, ret);
	case JIT_NOPS:
		break;
	}
	return buf_printf(ret, "op %u", insn->op);
}

static int dump_block(const struct jit_function *function, uint32_t at, struct buf *ret)
{
	const struct jit_block *block = &function->blocks[at];
	int rc = buf_printf(ret, "b%u:", at);

	if (!rc && block->depth)
		rc = buf_printf(ret, " depth %u", block->depth);
	if (!rc && block->align)
		rc = buf_printf(ret, " align %u", block->align);
	rc = rc ? rc : buf_puts(ret, "\n");
	for (uint32_t i = 0; i < block->count && !rc; i++) {
		rc = buf_puts(ret, "\t");
		rc = rc ? rc : dump_insn(function, block, &function->insns[block->first + i], ret);
		rc = rc ? rc : buf_puts(ret, "\n");
	}
	return rc;
}

int jit_dump(const struct jit_function *function, struct buf *ret)
{
	int rc = 0;

	for (uint32_t k = 0; k < function->norder && !rc; k++)
		rc = dump_block(function, function->order[k], ret);
	return rc;
}
