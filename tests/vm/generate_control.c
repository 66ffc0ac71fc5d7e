// SPDX-License-Identifier: BSD-2-Clause
/* Shapes of control flow. */
#include "generate_internal.h"

#define MOST_TURNS 5

enum counter_kind {
	COUNT_DOWN,  /* while (--n) */
	COUNT_UP,    /* for (i = 0; i < n; i += step), tested below */
	COUNT_ABOVE, /* ... tested above, with a jump back */
	COUNT_TO,    /* ... up to a number that the verifier does not know */
	COUNT_STACK, /* the counter lives in the frame */
	COUNTER_KINDS
};

/* A way out of the loop, in its middle. */
static size_t emit_break(struct generator *g)
{
	return one_in(g, 5) ? emit_condition(g, source(g)) : SIZE_MAX;
}

static void emit_body(struct generator *g)
{
	g->loops++;
	emit_some(g, 2 + below(g, 4));
	g->loops--;
}

static void jump_back(struct generator *g, struct bpf_insn insn, size_t start)
{
	int32_t distance = (int32_t)start - (int32_t)g->program->ncode - 1;

	if (insn.code == isa_row(ISA_JAL)->opcode)
		insn.imm = distance;
	else
		insn.off = distance;
	emit(g, insn);
}

static void emit_stack_loop(struct generator *g)
{
	int16_t off = -8 * (int)(g->slots + 1);
	uint32_t reg, wide = one_in(g, 2);
	size_t start;

	if (g->counter_slot)
		return;
	g->counter_slot = true;
	emit(g, ST_DW(ISA_FRAME, off, 1 + below(g, MOST_TURNS)));
	start = g->program->ncode;
	emit_body(g);
	reg = target(g);
	emit(g, LDX_DW(reg, ISA_FRAME, off));
	emit(g, ADD_K(reg, -1));
	emit(g, STX_DW(ISA_FRAME, reg, off));
	if (one_in(g, 2))
		emit(g, LDX_DW(reg, ISA_FRAME, off));
	jump_back(g, RAW(wide ? 0x55 : 0x56, reg, 0, 0, 0), start);
	g->counter_slot = false;
}

/* for (i = 0; i < limit; i += step) with the test above or below the body. */
static void emit_counted(struct generator *g, uint32_t counter, enum counter_kind kind)
{
	uint32_t step = 1 + below(g, 3), turns = 1 + below(g, MOST_TURNS - 1);
	bool wide = one_in(g, 2), is_signed = one_in(g, 2);
	uint8_t less = (is_signed ? BPF_JSLT : BPF_JLT) | (wide ? BPF_JMP : BPF_JMP32);
	uint8_t not_less = (is_signed ? BPF_JSGE : BPF_JGE) | (wide ? BPF_JMP : BPF_JMP32);
	size_t start, leave, out;

	emit(g, MOV_K(counter, 0));
	start = g->program->ncode;
	if (kind == COUNT_ABOVE) {
		leave = start;
		emit(g, RAW(not_less | BPF_K, counter, 0, 0, turns * step));
		emit_body(g);
		emit(g, ADD_K(counter, step));
		jump_back(g, one_in(g, 2) ? JA(0) : RAW(isa_row(ISA_JAL)->opcode, 0, 0, 0, 0),
			  start);
		land(g, leave);
		return;
	}
	emit_body(g);
	out = emit_break(g);
	emit(g, wide || one_in(g, 2) ? ADD_K(counter, step) : RAW(0x04, counter, 0, 0, step));
	jump_back(g, RAW(less | BPF_K, counter, 0, 0, turns * step), start);
	if (out != SIZE_MAX)
		land(g, out);
}

static void emit_unknown_count(struct generator *g, uint32_t counter)
{
	int limit = take(g, may_call(g) && one_in(g, 2));
	size_t start, leave;

	if (limit < 0)
		return;
	g->taken &= ~(1u << limit);
	g->read_only |= 1u << limit;
	emit(g, MOV_X(limit, source(g)));
	emit(g, RAW(0x57, limit, 0, 0, 3));
	emit(g, MOV_K(counter, 0));
	start = g->program->ncode;
	leave = start;
	emit(g, RAW(BPF_JMP | BPF_JGE | BPF_X, counter, limit, 0, 0));
	emit_body(g);
	emit(g, ADD_K(counter, 1));
	jump_back(g, JA(0), start);
	land(g, leave);
	g->read_only &= ~(1u << limit);
}

void shape_loop(struct generator *g)
{
	enum counter_kind kind = below(g, COUNTER_KINDS);
	int counter;
	size_t start, out;

	if (g->loops >= 2 || (g->loops && one_in(g, 2)))
		return;
	if (kind == COUNT_STACK) {
		emit_stack_loop(g);
		return;
	}
	counter = take(g, one_in(g, 2));
	if (counter < 0)
		return;
	g->taken &= ~(1u << counter);
	g->read_only |= 1u << counter;
	if (kind == COUNT_TO) {
		emit_unknown_count(g, counter);
	} else if (kind == COUNT_DOWN) {
		emit(g, MOV_K(counter, 1 + below(g, MOST_TURNS)));
		start = g->program->ncode;
		emit_body(g);
		out = emit_break(g);
		emit(g, one_in(g, 2) ? ADD_K(counter, -1) : RAW(0x17, counter, 0, 0, 1));
		jump_back(g, RAW(one_in(g, 2) ? 0x55 : 0x56, counter, 0, 0, 0), start);
		if (out != SIZE_MAX)
			land(g, out);
	} else {
		emit_counted(g, counter, kind);
	}
	g->read_only &= ~(1u << counter);
}

/* How often a loop runs, or less, into @limit (-1: a number). At most 3; 0 counts as 1. */
static uint32_t emit_limit(struct generator *g, int limit)
{
	if (limit < 0)
		return 1 + below(g, 3);
	emit(g, MOV_X(limit, source(g)));
	emit(g, RAW(0x57, limit, 0, 0, 3));
	g->read_only |= 1u << limit;
	g->taken &= ~(1u << limit);
	return 0;
}

/* for (i = 0; i < n; i++, pointer += step), tested below: a counter that often only counts. */
void shape_stride(struct generator *g)
{
	int pointer, counter, limit;
	uint32_t step, turns, reg;
	bool first = one_in(g, 2);
	size_t start, out;

	if (g->loops)
		return;
	pointer = take(g, false);
	counter = take(g, false);
	limit = one_in(g, 2) ? take(g, false) : -1;
	if (pointer >= 0 && counter >= 0) {
		turns = emit_limit(g, limit);
		step = (one_in(g, 2) ? 8 : 1) * (1 + below(g, 3));
		emit(g, MOV_X(pointer, GENERATE_VALUE_BASE));
		emit(g, MOV_K(counter, 0));
		if (one_in(g, 8)) { /* read elsewhere */
			g->taken &= ~(1u << counter);
			g->read_only |= 1u << counter;
		}
		start = g->program->ncode;
		reg = target(g);
		emit(g, LDX_B(reg, pointer, below(g, 8)));
		emit_body(g);
		out = one_in(g, 2) ? emit_condition(g, source(g)) : SIZE_MAX;
		emit(g, STX_B(pointer, source(g), below(g, 8)));
		emit(g, ADD_K(first ? pointer : counter, first ? step : 1));
		emit(g, ADD_K(first ? counter : pointer, first ? 1 : step));
		if (limit < 0)
			jump_back(g, RAW(one_in(g, 2) ? 0xa5 : 0x55, counter, 0, 0, turns), start);
		else
			jump_back(g, RAW(0xad, counter, limit, 0, 0), start);
		if (out != SIZE_MAX) {
			if (one_in(g, 2)) /* only who breaks out still has the count */
				emit_constant(g, counter);
			land(g, out);
		}
	}
	if (limit >= 0)
		g->read_only &= ~(1u << limit);
	for (int i = 0; i < 3; i++) {
		int taken = i == 0 ? limit : i == 1 ? pointer : counter;

		if (taken < 0)
			continue;
		g->taken |= 1u << taken;
		g->read_only &= ~(1u << taken);
		if (taken == pointer || pointer < 0 || counter < 0 || one_in(g, 2))
			emit_constant(g, taken);
		give(g, taken);
	}
}

#define MOST_CASES 40

/* A switch while it is written: number of each case, and where jumps to its arm are. */
struct cases {
	uint32_t n, reg;
	bool wide, is_signed;
	int32_t numbers[MOST_CASES];
	size_t jumps[MOST_CASES], others[MOST_CASES], leave[MOST_CASES + 1];
	uint32_t nothers;
};

static void emit_comparison(struct generator *g, const struct cases *s, uint8_t condition,
			    uint32_t number)
{
	emit(g, RAW(condition | BPF_K | (s->wide ? BPF_JMP : BPF_JMP32), s->reg, 0, 0,
		    s->numbers[number]));
}

/* One comparison behind the other; none fits: what follows, or a jump. */
static void emit_comparisons(struct generator *g, struct cases *s, uint32_t from, uint32_t to,
			     bool last)
{
	for (uint32_t i = from; i < to; i++) {
		s->jumps[i] = g->program->ncode;
		emit_comparison(g, s, BPF_JEQ, i);
	}
	if (last)
		return;
	s->others[s->nothers++] = g->program->ncode;
	emit(g, JA(0));
}

/* Halves, and so on, as long as there are many. */
static void emit_tree(struct generator *g, struct cases *s, uint32_t from, uint32_t to, bool last)
{
	uint32_t half = from + (to - from) / 2;
	bool less = one_in(g, 2);
	size_t at;

	if (to - from < 4) {
		emit_comparisons(g, s, from, to, last);
		return;
	}
	at = g->program->ncode;
	if (less)
		emit_comparison(g, s, s->is_signed ? BPF_JSLT : BPF_JLT, half);
	else
		emit_comparison(g, s, s->is_signed ? BPF_JSGT : BPF_JGT, half - 1);
	emit_tree(g, s, less ? half : from, less ? to : half, false);
	land(g, at);
	emit_tree(g, s, less ? from : half, less ? half : to, last);
}

/* Comparisons with the arms behind them, as compilers write switch; now and then many. */
void shape_switch(struct generator *g)
{
	static const int32_t firsts[] = { 0, 0, 100, -5, 70000 };
	struct cases s = { .n = one_in(g, 3) ? 24 + below(g, 16) : 3 + below(g, 12),
			   .reg = target(g),
			   .wide = one_in(g, 2) };
	int32_t number = firsts[below(g, COUNT_OF(firsts))];

	if (g->loops)
		return;
	s.is_signed = number < 0 || one_in(g, 2);
	emit(g, MOV_X(s.reg, source(g)));
	emit(g, RAW(0x57, s.reg, 0, 0, s.n < 16 ? 15 : 63));
	if (number)
		emit(g, ADD_K(s.reg, number));
	for (uint32_t i = 0; i < s.n; i++) {
		s.numbers[i] = number;
		number += one_in(g, 8) ? 2 : !one_in(g, 16); /* also one twice */
	}
	if (one_in(g, 2))
		emit_tree(g, &s, 0, s.n, true);
	else
		emit_comparisons(g, &s, 0, s.n, true);
	for (uint32_t i = 0; i < s.nothers; i++)
		land(g, s.others[i]);
	emit_plain(g, ISA_ADD64_X);
	s.leave[s.n] = g->program->ncode;
	emit(g, JA(0));
	for (uint32_t i = 0; i < s.n; i++) {
		land(g, s.jumps[i]);
		emit_plain(g, one_in(g, 2) ? ISA_XOR64_K : ISA_MOV64_K);
		s.leave[i] = g->program->ncode;
		if (i + 1 < s.n)
			emit(g, JA(0));
	}
	for (uint32_t i = 0; i <= s.n; i++)
		if (i + 1 != s.n)
			land(g, s.leave[i]);
}

void shape_if_else(struct generator *g)
{
	size_t at = emit_condition(g, source(g)), over;

	emit_some(g, 1 + below(g, 3));
	over = g->program->ncode;
	emit(g, one_in(g, 3) ? RAW(isa_row(ISA_JAL)->opcode, 0, 0, 0, 0) : JA(0));
	land(g, at);
	emit_some(g, 1 + below(g, 3));
	land(g, over);
}

/* An unconditional jump forward. The verifier wants all code to be reachable, so what is skipped
 * must be the target of another jump. */
void shape_goto(struct generator *g)
{
	size_t at;

	/* if ... goto A; goto B; A: something; B: */
	emit(g, RAW(BPF_JMP | BPF_JSGT | BPF_K, source(g), 0, 1, random_edge(g->random)));
	at = g->program->ncode;
	emit(g, one_in(g, 2) ? RAW(isa_row(ISA_JAL)->opcode, 0, 0, 0, 0) : JA(0));
	emit_some(g, 1 + below(g, 3));
	land(g, at);
}

void shape_call(struct generator *g)
{
	uint32_t callee = g->function + 1 + below(g, GENERATE_FUNCTIONS - 1 - g->function);

	if (g->function == GENERATE_FUNCTIONS - 1 || g->ncalls >= 8 || g->loops > 1 || !may_call(g))
		return;
	if (g->signatures[callee] == GENERATE_VALUE_POINTER) {
		emit(g, MOV_X(1, GENERATE_VALUE_BASE));
		emit(g, ADD_K(1, 8 * below(g, 6)));
	} else if (g->signatures[callee] == GENERATE_STACK_POINTER) {
		emit(g, MOV_X(1, ISA_FRAME));
		emit(g, ADD_K(1, -8 * (int)(2 + below(g, g->slots - 1))));
	}
	g->calls[g->ncalls].at = g->program->ncode;
	g->calls[g->ncalls++].callee = callee;
	emit(g, CALL_LOCAL(0));
	emit_after_call(g);
}
