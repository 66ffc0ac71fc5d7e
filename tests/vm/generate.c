// SPDX-License-Identifier: BSD-2-Clause
#include "generate.h"

#include <string.h>

#include "code.h"

#define COUNTER     8 /* loop counter; not written by the loop's body */
#define MEMORY      9
#define STACK_SLOTS 8

struct generator {
	struct random *random;
	struct generated *program;
	uint32_t function; /* that is being written */
	uint32_t called;   /* functions that may be called: higher numbers only */
	bool in_loop;
	struct {
		size_t at;
		uint32_t callee;
	} calls[64];
	size_t ncalls;
};

uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t random_below(struct random *random, uint32_t n)
{
	return (random_next(random) >> 32) * n >> 32;
}

uint64_t random_edge(struct random *random)
{
	uint64_t value;

	switch (random_below(random, 5)) {
	case 0:
		return (int64_t)random_below(random, 5) - 2;
	case 1: /* around a power of two */
		return (1ull << random_below(random, 64)) + random_below(random, 3) - 1;
	case 2: /* around the edges of 32 bits, with anything above */
		value = 0x7fffffff + (uint64_t)random_below(random, 3);
		return value | (random_below(random, 2) ? random_next(random) << 32 : 0);
	case 3:
		return -(1ull << random_below(random, 64));
	default:
		return random_next(random) >> random_below(random, 64);
	}
}

static void emit(struct generator *g, struct bpf_insn insn)
{
	g->program->code[g->program->ncode++] = insn;
}

static uint32_t below(struct generator *g, uint32_t n)
{
	return random_below(g->random, n);
}

/* A register that may be written: r0 to r7, or the counter outside loops. */
static uint32_t target(struct generator *g)
{
	return below(g, g->in_loop ? COUNTER : COUNTER + 1);
}

static uint32_t source(struct generator *g)
{
	return below(g, COUNTER + 1);
}

static void emit_constant(struct generator *g, uint32_t reg)
{
	uint64_t value = random_edge(g->random);
	const struct bpf_insn pair[2] = { LDDW(reg, value) };

	switch (below(g, 4)) {
	case 0:
		emit(g, pair[0]);
		emit(g, pair[1]);
		break;
	case 1:
		emit(g, MOV_K(reg, value));
		break;
	case 2:
		emit(g, MOV32_K(reg, value));
		break;
	default: /* unknown to the verifier */
		emit(g, LDX_DW(reg, MEMORY, below(g, GENERATE_SCRATCH / 8) * 8));
	}
}

bool generates(enum isa_op op)
{
	switch (isa_row(op)->form) {
	case ISA_FORM_CALL:
	case ISA_FORM_CALLX:
	case ISA_FORM_PACKET:
		return false;
	case ISA_FORM_LDDW:
		return op == ISA_LDDW;
	default:
		return true;
	}
}

/*
 * [@base + @off], with a place for the operation's bytes. Stack accesses must be aligned.
 *
 * Atomics that fetch stay off the stack: the verifier (seen on 6.18) then traces the precision of
 * the fetched number to the register's former value, not to the stack slot, prunes states that
 * differ, and removes reachable code as dead. Such a kernel is no oracle.
 */
static void place(struct generator *g, const struct isa_row *row, uint32_t *base, int16_t *off)
{
	bool aligned = row->form == ISA_FORM_ATOMIC || row->form == ISA_FORM_CMPXCHG;
	uint32_t width = row->width;

	if (!(row->flags & ISA_FLAG_FETCH) && below(g, 2)) {
		*base = ISA_FRAME;
		*off = -8 * STACK_SLOTS + width * below(g, 8 * STACK_SLOTS / width);
		return;
	}
	*base = MEMORY;
	if (aligned)
		*off = width * below(g, GENERATE_SCRATCH / width);
	else
		*off = below(g, GENERATE_SCRATCH - width + 1);
}

/* The verifier refuses constant shifts by the width or more, and constant division by zero. */
static int32_t safe_immediate(struct generator *g, const struct isa_row *row)
{
	int32_t imm = random_edge(g->random);
	uint32_t nibble = row->opcode >> 4;

	if (nibble == BPF_LSH >> 4 || nibble == BPF_RSH >> 4 || nibble == BPF_ARSH >> 4)
		return imm & (8 * row->width - 1);
	if ((nibble == BPF_DIV >> 4 || nibble == BPF_MOD >> 4) && !imm)
		return 3;
	return imm;
}

static void emit_memory(struct generator *g, const struct isa_row *row, struct bpf_insn insn)
{
	uint32_t base;

	place(g, row, &base, &insn.off);
	if (row->form == ISA_FORM_LOAD) {
		insn.dst_reg = target(g);
		insn.src_reg = base;
	} else {
		insn.dst_reg = base;
		if (row->form == ISA_FORM_STORE_K)
			insn.imm = random_edge(g->random);
		else if (row->flags & ISA_FLAG_FETCH && row->form == ISA_FORM_ATOMIC)
			insn.src_reg = target(g);
		else
			insn.src_reg = source(g);
	}
	emit(g, insn);
	/*
	 * A 32-bit cmpxchg zero-extends r0 (RFC 9669, section 5.3). Kernels (seen on 6.18, x86)
	 * forget that after a success where they prune a path that uses r0; the cases of
	 * write_cases.c, which have one path, show that they mean to.
	 */
	if (row->form == ISA_FORM_CMPXCHG && row->width == 4)
		emit(g, MOV32_X(0, 0));
}

/* One operation that does not jump. */
static void emit_plain(struct generator *g, enum isa_op op)
{
	const struct isa_row *row = isa_row(op);
	struct bpf_insn insn = { .code = row->opcode };

	if (row->select == ISA_SELECT_OFF)
		insn.off = row->value;
	if (row->select == ISA_SELECT_IMM)
		insn.imm = row->value;
	switch (row->form) {
	case ISA_FORM_ALU_K:
		insn.imm = safe_immediate(g, row);
		insn.dst_reg = target(g);
		break;
	case ISA_FORM_ALU_X:
	case ISA_FORM_MOVSX:
		insn.dst_reg = target(g);
		insn.src_reg = source(g);
		break;
	case ISA_FORM_NEG:
	case ISA_FORM_ENDIAN:
		insn.dst_reg = target(g);
		break;
	default:
		emit_memory(g, row, insn);
		return;
	}
	emit(g, insn);
}

/* r1 to r5 are undefined after a call. */
static void emit_local_call(struct generator *g)
{
	static const uint8_t kept[] = { 0, 6, 7, 8 };
	uint32_t callee = g->function + 1 + below(g, GENERATE_FUNCTIONS - 1 - g->function);

	g->calls[g->ncalls].at = g->program->ncode;
	g->calls[g->ncalls++].callee = callee;
	emit(g, CALL_LOCAL(0));
	for (uint32_t reg = 1; reg <= 5; reg++)
		emit(g, MOV_X(reg, kept[below(g, 4)]));
}

static void emit_some(struct generator *g, uint32_t n);

/* Jumps forward over a few instructions. */
static void emit_branch(struct generator *g, enum isa_op op)
{
	const struct isa_row *row = isa_row(op);
	size_t at = g->program->ncode;
	struct bpf_insn insn = { .code = row->opcode };
	int32_t distance;

	if (row->form == ISA_FORM_JUMP_K || row->form == ISA_FORM_JUMP_X)
		insn.dst_reg = source(g);
	if (row->form == ISA_FORM_JUMP_X)
		insn.src_reg = source(g);
	if (row->form == ISA_FORM_JUMP_K)
		insn.imm = random_edge(g->random);
	emit(g, insn);
	emit_some(g, 1 + below(g, 3));
	distance = g->program->ncode - at - 1;
	if (row->form == ISA_FORM_GOTOL)
		g->program->code[at].imm = distance;
	else
		g->program->code[at].off = distance;
}

/* An unconditional jump forward. The verifier wants all code to be reachable, so what is skipped
 * must be the target of another jump. */
static void emit_goto(struct generator *g, enum isa_op op)
{
	size_t at;

	/* if ... goto A; goto B; A: something; B: */
	emit(g, RAW(BPF_JMP | BPF_JSGT | BPF_K, source(g), 0, 1, random_edge(g->random)));
	at = g->program->ncode;
	emit(g, RAW(isa_row(op)->opcode, 0, 0, 0, 0));
	emit_some(g, 1 + below(g, 3));
	if (op == ISA_JAL)
		g->program->code[at].imm = g->program->ncode - at - 1;
	else
		g->program->code[at].off = g->program->ncode - at - 1;
}

static void emit_loop(struct generator *g)
{
	size_t start;

	emit(g, MOV_K(COUNTER, 1 + below(g, 4)));
	g->in_loop = true;
	start = g->program->ncode;
	emit_some(g, 2 + below(g, 4));
	emit(g, ADD_K(COUNTER, -1));
	emit(g, JNE_K(COUNTER, 0, (int)start - (int)g->program->ncode - 1));
	g->in_loop = false;
}

static bool is_jump(enum isa_op op)
{
	return isa_row(op)->form == ISA_FORM_JUMP_K || isa_row(op)->form == ISA_FORM_JUMP_X;
}

/* Fewer branches in loops: the verifier walks every path through them. */
static void emit_one(struct generator *g)
{
	enum isa_op op;

	do
		op = below(g, ISA_NOPS);
	while (!generates(op) || (g->in_loop && is_jump(op) && below(g, 2)));
	switch (isa_row(op)->form) {
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
		emit_branch(g, op);
		break;
	case ISA_FORM_GOTO:
	case ISA_FORM_GOTOL:
		emit_goto(g, op);
		break;
	case ISA_FORM_CALL_LOCAL:
		if (g->function < GENERATE_FUNCTIONS - 1 && g->ncalls < 8 && !g->in_loop)
			emit_local_call(g);
		break;
	case ISA_FORM_EXIT:
	case ISA_FORM_LDDW:
		emit_constant(g, target(g));
		break;
	default:
		emit_plain(g, op);
	}
}

static void emit_some(struct generator *g, uint32_t n)
{
	while (n--) {
		if (g->program->ncode > GENERATE_MAX * 3 / 4)
			return;
		emit_one(g);
	}
}

/* Every register and stack slot gets a value, as the verifier wants. A function that is called
 * keeps its arguments. */
static void emit_start(struct generator *g)
{
	g->program->address[g->function] = g->program->ncode;
	g->program->offset[g->function] = 8 * g->function;
	emit(g, RAW(0x18, MEMORY, 0, 0, 0));
	emit(g, RAW(0, 0, 0, 0, 0));
	for (uint32_t reg = 0; reg <= COUNTER; reg++)
		if (!g->function || reg < 1 || reg > 5)
			emit_constant(g, reg);
	for (int slot = 1; slot <= STACK_SLOTS; slot++)
		emit(g, STX_DW(ISA_FRAME, source(g), -8 * slot));
}

static void emit_function(struct generator *g)
{
	struct vm_function *function = &g->program->functions[g->function];

	function->name = "function";
	function->first = g->program->ncode;
	emit_start(g);
	for (uint32_t n = 1 + below(g, g->function ? 2 : 4); n; n--) {
		emit_some(g, 2 + below(g, 8));
		if (!below(g, 3))
			emit_loop(g);
	}
	for (uint32_t reg = 0; !g->function && reg <= COUNTER; reg++)
		emit(g, STX_DW(MEMORY, reg, GENERATE_SCRATCH + 8 * reg));
	if (!g->function)
		emit(g, MOV_K(0, 0));
	emit(g, EXIT());
	function->count = g->program->ncode - function->first;
}

/* Functions that nobody calls are refused: only those that are needed are written. */
void generate(struct random *random, struct generated *ret)
{
	uint32_t number[GENERATE_FUNCTIONS] = { 0 };
	struct generator g = { .random = random, .program = ret };
	uint32_t wanted = 1;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t function = 0; function < GENERATE_FUNCTIONS; function++) {
		if (!(wanted & 1u << function))
			continue;
		number[function] = ret->ncode;
		g.function = function;
		emit_function(&g);
		ret->functions[ret->nfunctions] = ret->functions[function];
		ret->offset[ret->nfunctions] = ret->offset[function];
		ret->address[ret->nfunctions++] = ret->address[function];
		for (size_t i = 0; i < g.ncalls; i++)
			wanted |= 1u << g.calls[i].callee;
	}
	for (size_t i = 0; i < g.ncalls; i++)
		ret->code[g.calls[i].at].imm = number[g.calls[i].callee] - g.calls[i].at - 1;
}
