// SPDX-License-Identifier: BSD-2-Clause
/* Arithmetic at compile time. */
#include "vm/jit/values.h"

#include "vm/jit/plant.h"

static uint64_t cut(uint64_t value, unsigned int bytes)
{
	return bytes >= 8 ? value : value & ((1ull << 8 * bytes) - 1);
}

static int64_t extend(uint64_t value, unsigned int bytes)
{
	unsigned int unused = 64 - 8 * bytes;

	return (int64_t)(value << unused) >> unused;
}

static uint64_t divide(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	int64_t sa = extend(a, insn->width), sb = extend(b, insn->width);

	if (!b)
		return 0;
	if (!(insn->flags & JIT_FLAG_SIGNED))
		return a / b;
	return sb == -1 ? -(uint64_t)sa : (uint64_t)(sa / sb);
}

static uint64_t modulo(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	int64_t sa = extend(a, insn->width), sb = extend(b, insn->width);

	if (!b)
		return a;
	if (!(insn->flags & JIT_FLAG_SIGNED))
		return a % b;
	return sb == -1 ? 0 : (uint64_t)(sa % sb);
}

static uint64_t compute(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	unsigned int shift = b & (8 * insn->width - 1);

	switch (insn->op) {
	case JIT_ADD:
		return a + b;
	case JIT_SUB:
		return a - b;
	case JIT_MUL:
		return a * b;
	case JIT_DIV:
		return divide(insn, a, b);
	case JIT_MOD:
		return modulo(insn, a, b);
	case JIT_OR:
		return a | b;
	case JIT_AND:
		return a & b;
	case JIT_XOR:
		return a ^ b;
	case JIT_LSH:
		return a << shift;
	case JIT_RSH:
		return a >> shift;
	case JIT_ARSH:
		return extend(a, PLANT(20) ? 8 : insn->width) >> shift;
	case JIT_NEG:
		return -a;
	case JIT_EXT:
		return insn->flags & JIT_FLAG_SIGNED ? (uint64_t)extend(a, insn->size)
						     : cut(a, insn->size);
	default: /* a move */
		return a;
	}
}

uint64_t jit_compute(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	if (insn->op == JIT_BSWAP)
		return __builtin_bswap64(a) >> (64 - 8 * insn->size);
	return cut(compute(insn, cut(a, insn->width), cut(b, insn->width)), insn->width);
}

bool jit_holds(const struct jit_insn *insn, uint64_t a, uint64_t b)
{
	int64_t sa = extend(a, insn->width), sb = extend(b, insn->width);

	a = cut(a, insn->width);
	b = cut(b, insn->width);
	switch ((enum jit_condition)insn->sub) {
	case JIT_EQ:
		return a == b;
	case JIT_NE:
		return a != b;
	case JIT_SET:
		return a & b;
	case JIT_CLEAR:
		return !(a & b);
	case JIT_GT:
		return a > b;
	case JIT_GE:
		return a >= b;
	case JIT_LT:
		return a < b;
	case JIT_LE:
		return a <= b;
	case JIT_SGT:
		return sa > sb;
	case JIT_SGE:
		return sa >= sb;
	case JIT_SLT:
		return sa < sb;
	case JIT_SLE:
		return sa <= sb;
	}
	return false;
}

uint8_t jit_turned(uint8_t condition)
{
	static const uint8_t turn[] = {
		[JIT_EQ] = JIT_EQ,   [JIT_NE] = JIT_NE,   [JIT_SET] = JIT_SET,
		[JIT_GT] = JIT_LT,   [JIT_GE] = JIT_LE,   [JIT_LT] = JIT_GT,
		[JIT_LE] = JIT_GE,   [JIT_SGT] = JIT_SLT, [JIT_SGE] = JIT_SLE,
		[JIT_SLT] = JIT_SGT, [JIT_SLE] = JIT_SGE, [JIT_CLEAR] = JIT_CLEAR,
	};

	return turn[condition];
}

int jit_decide(const struct jit_insn *insn, unsigned int bits)
{
	uint64_t most, b = cut(insn->imm, insn->width);
	bool is_signed = insn->sub >= JIT_SGT && insn->sub <= JIT_SLE, at_most, at_least;

	if (bits > 8u * insn->width)
		bits = 8 * insn->width;
	most = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
	if (insn->sub == JIT_SET || insn->sub == JIT_CLEAR)
		return b & most ? -1 : insn->sub == JIT_CLEAR;
	if (insn->sub == JIT_EQ || insn->sub == JIT_NE)
		return b <= most ? -1 : insn->sub == JIT_NE;
	if (is_signed && bits == 8u * insn->width)
		return -1;
	/* Comparisons are monotone: what holds at both ends holds everywhere. */
	at_least = jit_holds(insn, 0, b);
	at_most = jit_holds(insn, most, b);
	return at_least == at_most ? at_least : -1;
}
