// SPDX-License-Identifier: BSD-2-Clause
#include "generate.h"

#include <assert.h>
#include <string.h>

#include "generate_internal.h"

#define LEAST_FREE 4 /* registers that stay in circulation */

const struct generate_array generate_arrays[GENERATE_ARRAYS] = {
	{ 8, 8, 16 },
	{ 12, 16, 5 },
	{ 64, 64, 1 },
};

void emit(struct generator *g, struct bpf_insn insn)
{
	assert(g->program->ncode < GENERATE_MAX);
	g->program->code[g->program->ncode++] = insn;
}

uint32_t below(struct generator *g, uint32_t n)
{
	return random_below(g->random, n);
}

bool one_in(struct generator *g, uint32_t n)
{
	return !below(g, n);
}

void emit_lddw(struct generator *g, uint32_t reg, uint64_t value)
{
	const struct bpf_insn pair[2] = { LDDW(reg, value) };

	emit(g, pair[0]);
	emit(g, pair[1]);
}

void emit_relocated(struct generator *g, uint32_t reg, uint32_t array, uint32_t offset)
{
	struct generated *program = g->program;

	assert(program->nrelocations < GENERATE_RELOCATIONS);
	program->relocations[program->nrelocations].at = program->ncode;
	program->relocations[program->nrelocations].array = array;
	program->relocations[program->nrelocations++].offset = offset;
	emit_lddw(g, reg, 0);
}

static uint32_t pick(struct generator *g, uint16_t registers)
{
	uint32_t n = below(g, __builtin_popcount(registers));

	while (n--)
		registers &= registers - 1;
	return __builtin_ctz(registers);
}

static uint16_t numbers(const struct generator *g)
{
	return ((1u << GENERATE_REGISTERS) - 1) & ~g->taken;
}

uint32_t source(struct generator *g)
{
	return pick(g, numbers(g));
}

uint32_t target(struct generator *g)
{
	return pick(g, numbers(g) & ~g->read_only);
}

bool writable(const struct generator *g, uint32_t reg)
{
	return (numbers(g) & ~g->read_only) >> reg & 1;
}

bool may_call(const struct generator *g)
{
	return !((g->taken | g->read_only) & 0x3f);
}

int take(struct generator *g, bool low)
{
	uint16_t free = numbers(g) & ~g->read_only;
	uint32_t reg;

	if (__builtin_popcount(free) <= LEAST_FREE)
		return -1;
	if (!low)
		free &= ~0x3f;
	if (!free)
		return -1;
	reg = pick(g, free);
	g->taken |= 1u << reg;
	return reg;
}

void give(struct generator *g, uint32_t reg)
{
	g->taken &= ~(1u << reg);
}

void emit_constant(struct generator *g, uint32_t reg)
{
	uint64_t value = random_edge(g->random);

	switch (below(g, 4)) {
	case 0:
		emit_lddw(g, reg, value);
		break;
	case 1:
		emit(g, MOV_K(reg, value));
		break;
	case 2:
		emit(g, MOV32_K(reg, value));
		break;
	default: /* unknown to the verifier */
		emit(g, LDX_DW(reg, GENERATE_VALUE_BASE, below(g, GENERATE_SCRATCH / 8) * 8));
	}
}

void emit_number(struct generator *g, uint32_t reg)
{
	if (one_in(g, 2))
		emit(g, MOV_X(reg, source(g)));
	else
		emit_constant(g, reg);
}

void emit_after_call(struct generator *g)
{
	uint16_t kept = numbers(g) & ~0x3e;

	for (uint32_t reg = 1; reg <= 5; reg++)
		emit(g,
		     one_in(g, 4) ? MOV_K(reg, random_edge(g->random)) : MOV_X(reg, pick(g, kept)));
}

bool generates(enum isa_op op)
{
	switch (isa_row(op)->form) {
	case ISA_FORM_CALLX:
	case ISA_FORM_PACKET:
		return false;
	case ISA_FORM_CALL:
		return op == ISA_CALL;
	case ISA_FORM_LDDW:
		return op == ISA_LDDW;
	default:
		return true;
	}
}

/*
 * Stack accesses must be aligned, and so must atomics.
 *
 * Atomics that fetch stay off the stack: the verifier (seen on 6.18) then traces the precision of
 * the fetched number to the register's former value, not to the stack slot, prunes states that
 * differ, and removes reachable code as dead. Such a kernel is no oracle.
 */
static bool try_base(struct generator *g, const struct generate_base *base, uint32_t width,
		     bool atomic, bool fetch, int16_t *off)
{
	bool aligned = base->stack || atomic;
	int32_t from = base->low, room;

	if (base->stack && (fetch || (atomic && base->variable)))
		return false;
	if (aligned) {
		if (base->align < width)
			return false;
		from += (width - ((from + base->phase) & (width - 1))) & (width - 1);
	}
	room = base->high - from - (int32_t)width;
	if (room < 0)
		return false;
	if (aligned)
		*off = from + width * below(g, room / width + 1);
	else
		*off = from + below(g, room + 1);
	return true;
}

void place(struct generator *g, uint32_t width, bool atomic, bool fetch, uint32_t *base,
	   int16_t *off)
{
	/* What a shape has just made is more interesting than r9 and r10. */
	size_t i =
		g->nbases > 2 && one_in(g, 2) ? 2 + below(g, g->nbases - 2) : below(g, g->nbases);

	if (!try_base(g, &g->bases[i], width, atomic, fetch, off)) {
		i = 0;
		try_base(g, &g->bases[0], width, atomic, fetch, off);
	}
	*base = g->bases[i].reg;
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
	bool atomic = row->form == ISA_FORM_ATOMIC || row->form == ISA_FORM_CMPXCHG;
	uint32_t base;

	if (row->form == ISA_FORM_CMPXCHG && !writable(g, 0))
		return;
	place(g, row->width, atomic, row->flags & ISA_FLAG_FETCH, &base, &insn.off);
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
	if (row->form == ISA_FORM_CMPXCHG && row->width == 4 && !g->program->alone)
		emit(g, MOV32_X(0, 0));
}

void emit_plain(struct generator *g, enum isa_op op)
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

void land(struct generator *g, size_t at)
{
	struct bpf_insn *insn = &g->program->code[at];
	int32_t distance = g->program->ncode - at - 1;

	if (insn->code == isa_row(ISA_JAL)->opcode)
		insn->imm = distance;
	else
		insn->off = distance;
}

static void emit_branch(struct generator *g, enum isa_op op)
{
	const struct isa_row *row = isa_row(op);
	size_t at = g->program->ncode;
	struct bpf_insn insn = { .code = row->opcode, .dst_reg = source(g) };

	if (row->form == ISA_FORM_JUMP_X)
		insn.src_reg = source(g);
	else
		insn.imm = random_edge(g->random);
	emit(g, insn);
	emit_some(g, 1 + below(g, 3));
	land(g, at);
}

size_t emit_condition(struct generator *g, uint32_t reg)
{
	static const uint8_t nibbles[] = { BPF_JEQ,  BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
					   BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };
	uint8_t code = nibbles[below(g, COUNT_OF(nibbles))] | (one_in(g, 2) ? BPF_JMP : BPF_JMP32);

	if (one_in(g, 2))
		emit(g, RAW(code | BPF_X, reg, source(g), 0, 0));
	else
		emit(g, RAW(code | BPF_K, reg, 0, 0, random_edge(g->random)));
	return g->program->ncode - 1;
}

static const struct {
	generate_shape *write;
	uint32_t weight;
	bool alone;
} shapes[] = {
	{ shape_copies, 8, false },      { shape_divide, 8, false }, { shape_extend, 8, false },
	{ shape_select, 6, false },      { shape_bytes, 4, false },  { shape_known, 5, false },
	{ shape_scaled, 10, false },     { shape_change, 8, false }, { shape_pointer, 5, false },
	{ shape_test_memory, 5, false }, { shape_fill, 3, false },   { shape_loop, 5, false },
	{ shape_stride, 3, false },      { shape_switch, 2, false }, { shape_if_else, 5, false },
	{ shape_goto, 3, false },        { shape_call, 4, false },   { shape_lookup, 6, false },
	{ shape_update, 2, false },      { shape_native, 12, true }, { shape_callx, 6, true },
	{ shape_float, 12, true },
};

static void emit_shape(struct generator *g)
{
	uint32_t sum = 0, n;
	size_t i;

	if (g->depth >= 4)
		return;
	for (i = 0; i < COUNT_OF(shapes); i++)
		sum += shapes[i].alone && !g->program->alone ? 0 : shapes[i].weight;
	n = below(g, sum);
	for (i = 0; i < COUNT_OF(shapes); i++) {
		if (shapes[i].alone && !g->program->alone)
			continue;
		if (n < shapes[i].weight)
			break;
		n -= shapes[i].weight;
	}
	g->depth++;
	shapes[i].write(g);
	g->depth--;
}

static bool is_jump(enum isa_op op)
{
	return isa_row(op)->form == ISA_FORM_JUMP_K || isa_row(op)->form == ISA_FORM_JUMP_X;
}

/* Fewer branches in loops: the verifier walks every path through them. */
static void emit_one(struct generator *g)
{
	enum isa_op op;

	if (one_in(g, 4)) {
		emit_shape(g);
		return;
	}
	do
		op = below(g, ISA_NOPS);
	while (!generates(op) || (is_jump(op) && below(g, g->loops + 2)));
	switch (isa_row(op)->form) {
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
		emit_branch(g, op);
		break;
	case ISA_FORM_GOTO:
	case ISA_FORM_GOTOL:
	case ISA_FORM_CALL:
	case ISA_FORM_CALL_LOCAL: /* shapes write those */
		break;
	case ISA_FORM_EXIT:
	case ISA_FORM_LDDW:
		emit_constant(g, target(g));
		break;
	default:
		emit_plain(g, op);
	}
}

void emit_some(struct generator *g, uint32_t n)
{
	while (n-- && g->program->ncode < g->end)
		emit_one(g);
}

/* Every register and stack slot gets a value, as the verifier wants. A function that is called
 * keeps its arguments. */
static void emit_start(struct generator *g)
{
	uint32_t offset = 8 * g->function;

	g->taken = 0;
	emit_relocated(g, GENERATE_VALUE_BASE, GENERATE_ARRAYS, offset);
	if (g->function && g->signatures[g->function] != GENERATE_NUMBERS)
		g->taken = 1u << 1;
	for (uint32_t reg = 0; reg < GENERATE_REGISTERS; reg++)
		if (!g->function || reg < 1 || reg > 5)
			emit_constant(g, reg);
	for (uint32_t slot = 1; slot <= g->slots; slot++)
		emit(g, STX_DW(ISA_FRAME, source(g), -8 * (int)slot));
	g->bases[0] = (struct generate_base){ .reg = GENERATE_VALUE_BASE,
					      .align = 8,
					      .high = GENERATE_SCRATCH - offset };
	g->bases[1] = (struct generate_base){
		.reg = ISA_FRAME, .stack = true, .align = 8, .low = -8 * (int)g->slots
	};
	g->nbases = 2;
}

/* The pointer that came in r1: used for a while, then forgotten. */
static void emit_pointer_part(struct generator *g)
{
	bool stack = g->signatures[g->function] == GENERATE_STACK_POINTER;
	int reg = take(g, false);

	g->bases[g->nbases++] = (struct generate_base){
		.reg = 1, .stack = stack, .align = 8, .high = stack ? 16 : 32
	};
	if (reg >= 0) {
		emit(g, MOV_X(reg, 1));
		emit_number(g, 1);
		give(g, 1);
		g->bases[g->nbases - 1].reg = reg;
	}
	emit_some(g, 2 + below(g, 5));
	g->nbases--;
	emit_number(g, reg < 0 ? 1 : reg);
	give(g, reg < 0 ? 1 : reg);
}

static void emit_function(struct generator *g, size_t size)
{
	struct vm_function *function = &g->program->functions[g->function];

	function->name = "function";
	function->first = g->program->ncode;
	function->nargs = 5;
	g->slots = 4 + below(g, 6);
	g->end = g->program->ncode + 24 + 3 * size;
	emit_start(g);
	if (g->taken)
		emit_pointer_part(g);
	emit_some(g, size);
	for (uint32_t reg = 0; !g->function && reg < GENERATE_REGISTERS; reg++)
		emit(g, STX_DW(GENERATE_VALUE_BASE, reg, GENERATE_SCRATCH + 8 * reg));
	if (!g->function)
		emit(g, MOV_K(0, 0));
	emit(g, EXIT());
	function->count = g->program->ncode - function->first;
}

/* How long the functions are: now and then one is long. */
static uint32_t random_size(struct generator *g)
{
	if (!g->function && one_in(g, 64))
		return 100 + below(g, 200);
	return 2 + below(g, g->function ? 20 : 40);
}

/* Functions that nobody calls are refused: only those that are needed are written. */
void generate(struct random *random, bool alone, struct generated *ret)
{
	uint32_t number[GENERATE_FUNCTIONS] = { 0 }, index[GENERATE_FUNCTIONS] = { 0 };
	struct generator g = { .random = random, .program = ret };
	uint32_t wanted = 1;

	memset(ret, 0, sizeof(*ret));
	ret->alone = alone;
	for (uint32_t function = 1; function < GENERATE_FUNCTIONS; function++)
		g.signatures[function] =
			one_in(&g, 3) ? below(&g, GENERATE_SIGNATURES) : GENERATE_NUMBERS;
	for (uint32_t function = 0; function < GENERATE_FUNCTIONS; function++) {
		if (!(wanted & 1u << function))
			continue;
		number[function] = ret->ncode;
		index[function] = ret->nfunctions;
		g.function = function;
		emit_function(&g, random_size(&g));
		ret->functions[ret->nfunctions++] = ret->functions[function];
		for (size_t i = 0; i < g.ncalls; i++)
			wanted |= 1u << g.calls[i].callee;
		for (size_t i = 0; i < g.naddresses; i++)
			wanted |= 1u << g.addresses[i].callee;
	}
	for (size_t i = 0; i < g.ncalls; i++)
		ret->code[g.calls[i].at].imm = number[g.calls[i].callee] - g.calls[i].at - 1;
	for (size_t i = 0; i < g.naddresses; i++)
		ret->code[g.addresses[i].at].imm = index[g.addresses[i].callee];
}

void generate_memory(struct random *random, struct generate_memory *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < GENERATE_SCRATCH; i += 8) {
		uint64_t number = random_edge(random);

		memcpy(ret->value + i, &number, 8);
	}
	for (size_t array = 0; array < GENERATE_ARRAYS; array++) {
		const struct generate_array *shape = &generate_arrays[array];

		for (size_t i = 0; i < shape->stride * shape->entries; i += 8) {
			uint64_t number = random_edge(random);

			memcpy(ret->arrays[array] + i, &number, 8);
		}
	}
}
