// SPDX-License-Identifier: BSD-2-Clause
/* Shapes that compute: what propagation, dead code, division and narrowing feed on. */
#include "generate_internal.h"

static const uint8_t alu_nibbles[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR,  BPF_AND,
				       BPF_XOR, BPF_LSH, BPF_RSH, BPF_ARSH };

static struct bpf_insn alu(struct generator *g, uint32_t nibble, bool wide, uint32_t dst,
			   uint32_t src, int32_t imm)
{
	uint8_t class = wide ? BPF_ALU64 : BPF_ALU;

	if (src < GENERATE_REGISTERS)
		return RAW(nibble | class | BPF_X, dst, src, 0, 0);
	if (nibble == BPF_LSH || nibble == BPF_RSH || nibble == BPF_ARSH)
		imm &= wide ? 63 : 31;
	return RAW(nibble | class | BPF_K, dst, 0, 0, imm);
}

#define NO_SOURCE 0xff

/* One step among three registers: the fewer there are, the more depends on each other. */
static void emit_step(struct generator *g, const uint8_t *reg)
{
	uint32_t dst = reg[below(g, 3)], src = reg[below(g, 3)];
	bool wide = below(g, 3);

	switch (below(g, 8)) {
	case 0:
	case 1:
		emit(g, MOV_X(dst, src));
		break;
	case 2:
		emit(g, MOV32_X(dst, src));
		break;
	case 3:
		emit(g, wide ? MOV_K(dst, random_edge(g->random))
			     : MOV32_K(dst, random_edge(g->random)));
		break;
	case 4:
		emit(g, ADD_K(dst, random_edge(g->random)));
		break;
	case 5: /* what becomes base + index << scale */
		emit(g, RAW(0x67, src, 0, 0, below(g, 5)));
		emit(g, ADD_X(dst, src));
		break;
	case 6:
		emit(g, alu(g, alu_nibbles[below(g, COUNT_OF(alu_nibbles))], wide, dst, src, 0));
		break;
	default:
		emit(g, alu(g, alu_nibbles[below(g, COUNT_OF(alu_nibbles))], wide, dst, NO_SOURCE,
			    random_edge(g->random)));
	}
}

/* Copies and constants, across a branch now and then. */
void shape_copies(struct generator *g)
{
	uint8_t reg[3] = { target(g), target(g), target(g) };
	size_t at;

	for (uint32_t n = 2 + below(g, 5); n; n--)
		emit_step(g, reg);
	if (one_in(g, g->loops + 2)) {
		at = emit_condition(g, reg[below(g, 3)]);
		for (uint32_t n = 1 + below(g, 3); n; n--)
			emit_step(g, reg);
		land(g, at);
		for (uint32_t n = 1 + below(g, 4); n; n--)
			emit_step(g, reg);
	}
}

/* Divisors of every shape. */
static uint64_t divisor(struct generator *g)
{
	uint64_t value;

	switch (below(g, 6)) {
	case 0:
		return 1ull << below(g, 64);
	case 1:
		return (1ull << below(g, 64)) + below(g, 5) - 2;
	case 2:
		return 1 + below(g, 1000);
	case 3: /* even ones with an odd rest */
		return (uint64_t)(1 + 2 * below(g, 100)) << below(g, 30);
	case 4:
		value = 1 + below(g, 70);
		return -value;
	default:
		return random_edge(g->random);
	}
}

/* A dividend on one side or the other of a multiple. */
static void emit_dividend(struct generator *g, uint32_t reg, uint64_t by)
{
	uint64_t times = random_edge(g->random);

	if (one_in(g, 3))
		return; /* whatever it holds */
	emit_lddw(g, reg, times / (by ? by : 1) * by + below(g, 3) - 1);
	if (one_in(g, 2)) { /* hidden from the passes, which may compute with constants */
		emit(g, STX_DW(ISA_FRAME, reg, -8));
		emit(g, LDX_DW(reg, ISA_FRAME, -8));
	}
}

void shape_divide(struct generator *g)
{
	uint64_t by = divisor(g);
	uint32_t dst = target(g), other = target(g);
	uint8_t code = one_in(g, 2) ? BPF_DIV : BPF_MOD;
	bool wide = one_in(g, 2), is_signed = one_in(g, 2);

	code |= wide ? BPF_ALU64 : BPF_ALU;
	if (!(wide ? (uint64_t)(int32_t)by : (uint32_t)by))
		by = 7;
	emit_dividend(g, dst, by);
	if (one_in(g, 3)) { /* by a register whose constant is in sight */
		if (other == dst)
			return;
		if (one_in(g, 2))
			emit_lddw(g, other, by);
		else
			emit(g, MOV_K(other, by));
		emit(g, RAW(code | BPF_X, dst, other, is_signed, 0));
	} else if (one_in(g, 3) && other != dst) { /* quotient and rest of the same two */
		emit(g, MOV_X(other, dst));
		emit(g, RAW(code | BPF_K, dst, 0, is_signed, by));
		emit(g, RAW((code ^ (BPF_DIV ^ BPF_MOD)) | BPF_K, other, 0, is_signed, by));
	} else {
		emit(g, RAW(code | BPF_K, dst, 0, is_signed, by));
	}
}

/* Extensions and rotations, as compilers write them with shifts and masks. */
void shape_extend(struct generator *g)
{
	static const uint8_t bits[] = { 32, 32, 48, 56, 16, 24, 63, 31 };
	static const int32_t masks[] = { 0xff, 0xffff, -1, 1, 0x7fffffff, 0xf0, -256, -65536 };
	uint32_t dst = target(g), other = target(g), n = bits[below(g, COUNT_OF(bits))];
	uint8_t right = one_in(g, 2) ? BPF_RSH : BPF_ARSH;

	switch (below(g, 5)) {
	case 0:
		emit(g, alu(g, BPF_LSH, true, dst, NO_SOURCE, n));
		emit(g, alu(g, right, true, dst, NO_SOURCE, one_in(g, 4) ? below(g, 64) : n));
		break;
	case 1:
		n &= 31;
		emit(g, alu(g, BPF_LSH, false, dst, NO_SOURCE, n));
		emit(g, alu(g, right, false, dst, NO_SOURCE, n));
		break;
	case 2:
		emit(g, alu(g, BPF_RSH, one_in(g, 2), dst, NO_SOURCE, 8 * below(g, 8)));
		emit(g, alu(g, BPF_AND, one_in(g, 2), dst, NO_SOURCE,
			    masks[below(g, COUNT_OF(masks))]));
		break;
	case 3:
		emit(g, alu(g, BPF_AND, one_in(g, 2), dst, NO_SOURCE,
			    masks[below(g, COUNT_OF(masks))]));
		break;
	default: /* rotation */
		if (other == dst)
			return;
		n = 1 + below(g, 63);
		emit(g, MOV_X(other, dst));
		emit(g, alu(g, BPF_LSH, true, other, NO_SOURCE, n));
		emit(g, alu(g, BPF_RSH, true, dst, NO_SOURCE, 64 - n));
		emit(g, alu(g, BPF_OR, true, dst, other, 0));
	}
}

/* if (a < b) a = b; flag = a < b: branches around moves. */
void shape_select(struct generator *g)
{
	uint32_t dst = target(g), tested = source(g);
	size_t at, over;

	switch (below(g, 3)) {
	case 0:
		at = emit_condition(g, tested);
		emit(g, MOV_X(dst, source(g)));
		land(g, at);
		break;
	case 1: /* the condition must not see the constant */
		if (dst == tested)
			return;
		emit(g, MOV_K(dst, 1));
		at = emit_condition(g, tested);
		emit(g, MOV_K(dst, 0));
		land(g, at);
		break;
	default:
		at = emit_condition(g, tested);
		emit(g, MOV_X(dst, source(g)));
		over = g->program->ncode;
		emit(g, JA(0));
		land(g, at);
		emit(g, one_in(g, 2) ? MOV_X(dst, source(g)) : MOV_K(dst, random_edge(g->random)));
		land(g, over);
	}
}

/* A number put together from bytes, or taken apart. */
void shape_bytes(struct generator *g)
{
	uint32_t dst = target(g), part = target(g), n = 1 + below(g, 4), base;
	uint32_t width = 1 << below(g, 3);
	static const uint8_t loads[] = { 0x71, 0x69, 0x61, 0, 0x61 };
	static const uint8_t stores[] = { 0x73, 0x6b, 0x63, 0, 0x63 };
	uint32_t size = __builtin_ctz(width);
	int16_t off;

	if (dst == part)
		return;
	place(g, 8, false, false, &base, &off);
	if (one_in(g, 2)) {
		emit(g, RAW(loads[size], dst, base, off, 0));
		for (uint32_t i = 1; i <= n && (i + 1) * width <= 8; i++) {
			emit(g, RAW(loads[size], part, base, off + i * width, 0));
			emit(g, alu(g, BPF_LSH, true, part, NO_SOURCE, 8 * i * width));
			emit(g, alu(g, BPF_OR, true, dst, part, 0));
		}
	} else {
		for (uint32_t i = 0; i < n && (i + 1) * width <= 8; i++) {
			emit(g, RAW(stores[size], base, dst, off + i * width, 0));
			emit(g, alu(g, BPF_RSH, true, dst, NO_SOURCE, 8 * width));
		}
	}
}

/* Operations and branches whose operands are all known. */
void shape_known(struct generator *g)
{
	uint32_t a = target(g), b = target(g);
	size_t at;

	emit_constant(g, a);
	if (one_in(g, 2))
		emit_constant(g, b);
	for (uint32_t n = below(g, 3); n; n--)
		emit(g, alu(g, alu_nibbles[below(g, COUNT_OF(alu_nibbles))], one_in(g, 2), a,
			    one_in(g, 2) ? b : NO_SOURCE, random_edge(g->random)));
	if (one_in(g, 3))
		emit_constant(g, a); /* ... in vain */
	at = emit_condition(g, a);
	emit_some(g, 1 + below(g, 2));
	land(g, at);
}
