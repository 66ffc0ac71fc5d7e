// SPDX-License-Identifier: BSD-2-Clause
/* Shapes that call something outside of the program. */
#include "generate_internal.h"

static void emit_map(struct generator *g, uint32_t reg, uint32_t array)
{
	emit_relocated(g, reg, array, 0);
}

/* A uint32_t index in the frame or in the value, and its address in r2. */
static void emit_key(struct generator *g, uint32_t array)
{
	uint32_t entries = generate_arrays[array].entries;
	uint32_t base = one_in(g, 4) ? GENERATE_VALUE_BASE : ISA_FRAME, reg = target(g);
	int16_t off =
		base == ISA_FRAME ? -4 * (int)(1 + below(g, 2 * g->slots)) : 4 * (int)below(g, 16);

	switch (below(g, 4)) {
	case 0:
		emit(g, RAW(0x62, base, 0, off, below(g, entries)));
		break;
	case 1: /* known, maybe past the end */
		emit(g, MOV_K(reg, below(g, 2 * entries)));
		emit(g, STX_W(base, reg, off));
		break;
	case 2:
		emit(g, MOV_X(reg, source(g)));
		emit(g, RAW(0x57, reg, 0, 0, 2 * entries - 1));
		emit(g, STX_W(base, reg, off));
		break;
	default: /* whatever lies there, or an edge */
		if (one_in(g, 2))
			emit(g, RAW(0x62, base, 0, off, random_edge(g->random)));
		break;
	}
	if (one_in(g, 4))
		emit_plain(g, ISA_MOV64_X);
	emit(g, MOV_X(2, base));
	emit(g, ADD_K(2, off));
}

static bool has_room(const struct generator *g)
{
	return may_call(g) && g->program->nrelocations + 2 < GENERATE_RELOCATIONS;
}

/* value = lookup(array, &index); if (value) use it. */
void shape_lookup(struct generator *g)
{
	uint32_t array = below(g, GENERATE_ARRAYS), pointer = 0;
	size_t miss;
	int kept;

	if (!has_room(g) || g->nbases == GENERATE_BASES)
		return;
	if (one_in(g, 2)) { /* arguments in either order */
		emit_key(g, array);
		emit_map(g, 1, array);
	} else {
		emit_key(g, array);
		emit(g, MOV_X(3, 2));
		emit_map(g, 1, array);
		emit(g, MOV_X(2, 3));
	}
	emit(g, CALL(GENERATE_LOOKUP));
	g->taken |= 1u << 0 | 0x3e;
	miss = g->program->ncode;
	emit(g, JEQ_K(0, 0, 0));
	g->taken &= ~0x3e;
	for (uint32_t reg = 1; reg <= 5; reg++)
		emit(g, MOV_K(reg, random_edge(g->random)));
	kept = one_in(g, 2) ? take(g, false) : -1;
	if (kept >= 0) {
		pointer = kept;
		emit(g, MOV_X(pointer, 0));
		emit_number(g, 0);
		give(g, 0);
	}
	g->bases[g->nbases++] = (struct generate_base){ .reg = pointer,
							.align = 8,
							.high = generate_arrays[array].value_size };
	emit_some(g, 1 + below(g, 4));
	g->nbases--;
	emit_number(g, pointer);
	give(g, pointer);
	emit(g, JA(0)); /* over the miss */
	land(g, miss);
	miss = g->program->ncode - 1;
	emit(g, MOV_K(0, -1));
	for (uint32_t reg = 1; reg <= 5; reg++)
		emit(g, MOV_X(reg, 0));
	land(g, miss);
}

/* update(array, &index, &value, flags): a C function with addresses in its arguments. */
void shape_update(struct generator *g)
{
	uint32_t array = below(g, GENERATE_ARRAYS);

	/* The values of the last array are longer than a frame here. */
	if (!has_room(g) || (array == 2 && g->slots < 8))
		return;
	emit_key(g, array);
	emit_map(g, 1, array);
	emit(g, MOV_X(3, ISA_FRAME));
	emit(g, ADD_K(3, array == 2 ? -64 : -16 - 8 * (int)below(g, g->slots - 2)));
	emit(g, MOV_K(4, below(g, 3)));
	emit(g, CALL(GENERATE_UPDATE));
	emit_after_call(g);
}

/* ---- for the vm alone ---- */

/* The address of a function that takes numbers, in @reg. */
static bool emit_function_address(struct generator *g, uint32_t reg)
{
	uint32_t callee = g->function + 1 + below(g, GENERATE_FUNCTIONS - 1 - g->function);

	if (g->signatures[callee] != GENERATE_NUMBERS || g->naddresses == GENERATE_CALLS)
		return false;
	g->addresses[g->naddresses].at = g->program->ncode;
	g->addresses[g->naddresses++].callee = callee;
	emit(g, RAW(0x18, reg, BPF_PSEUDO_FUNC, 0, 0));
	emit(g, RAW(0, 0, 0, 0, 0));
	return true;
}

void shape_native(struct generator *g)
{
	uint32_t native = GENERATE_CONTEXT + below(g, GENERATE_FLOAT - GENERATE_CONTEXT);

	if (!may_call(g))
		return;
	if (native == GENERATE_CALLBACK) {
		if (g->function == GENERATE_FUNCTIONS - 1 || g->loops ||
		    !emit_function_address(g, 1))
			return;
	}
	emit(g, CALL(native));
	emit_after_call(g);
}

/* Not through r1 to r5: the function gets those, and addresses differ between engines. */
void shape_callx(struct generator *g)
{
	uint32_t reg = one_in(g, 2) ? 0 : 6 + below(g, 3);

	if (!may_call(g) || g->function == GENERATE_FUNCTIONS - 1 || g->loops || !writable(g, reg))
		return;
	if (!emit_function_address(g, reg))
		return;
	emit(g, reg && one_in(g, 2) ? CALLX_IMM(reg) : CALLX_DST(reg));
	if (reg)
		emit_constant(g, reg);
	emit_after_call(g);
}

/* Numbers that are exact, and one that is none. */
static void emit_double(struct generator *g, uint32_t reg)
{
	static const uint64_t doubles[] = {
		0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff8000000000000,
		0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x43e0000000000000,
		0xc3e0000000000000, 0x41dfffffffc00000, 0x0000000000000001, 0x3fd5555555555555,
	};

	emit_lddw(g, reg, doubles[below(g, COUNT_OF(doubles))]);
}

void shape_float(struct generator *g)
{
	uint32_t which = below(g, GENERATE_NATIVES - GENERATE_FLOAT);

	if (!may_call(g))
		return;
	if (which + VM_F64_ADD == VM_F64_FROM_S64 || which + VM_F64_ADD == VM_F64_FROM_U64) {
		emit(g, MOV_X(1, source(g)));
	} else {
		emit_double(g, 1);
		emit_double(g, 2);
		if (one_in(g, 4))
			emit(g, MOV_X(2, 1));
	}
	emit(g, CALL(GENERATE_FLOAT + which));
	emit_after_call(g);
}
