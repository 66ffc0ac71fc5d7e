// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "code.h"
#include "oracle.h"

static bool is_nop(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JA) && !insn->off;
}

#define PROLOGUE 8 /* instructions at a function's start that give its registers values */

/* What follows a call gives r1 to r5 a value, and the start of a function the others. Where there is
 * no verifier, nobody else sees when it is gone. */
static bool is_needed(const struct generated *program, size_t at)
{
	for (size_t i = 0; program->alone && i < program->nfunctions; i++)
		if (at - program->functions[i].first < PROLOGUE)
			return true;
	for (size_t k = 1; program->alone && k <= 5 && k <= at; k++)
		if (program->code[at - k].code == (BPF_JMP | BPF_CALL) ||
		    program->code[at - k].code == ISA_CALLX_OPCODE)
			return true;
	return false;
}

/* Replaces up to @n instructions from @at on by jumps to the next. Relocated ones stay, and so do
 * the ends of functions. Returns whether anything changed. */
static bool blank(struct generated *program, size_t at, size_t n)
{
	bool changed = false;

	for (size_t i = at; i < at + n && i < program->ncode; i++) {
		struct bpf_insn *insn = &program->code[i];
		bool wide = insn->code == (BPF_LD | BPF_IMM | BPF_DW);

		if (insn->code == (BPF_JMP | BPF_EXIT) || is_nop(insn) || !insn->code ||
		    is_needed(program, i))
			continue;
		for (size_t k = 0; k < program->nrelocations; k++)
			if (program->relocations[k].at == i) { /* keeps its number, but is gone */
				program->relocations[k] =
					program->relocations[--program->nrelocations];
				break;
			}
		*insn = JA(0);
		if (wide)
			insn[1] = JA(0);
		changed = true;
	}
	return changed;
}

static int64_t distance(const struct bpf_insn *insn)
{
	const struct isa_row *row = isa_row(isa_find(insn));

	switch (row->form) {
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
	case ISA_FORM_GOTO:
		return insn->off;
	case ISA_FORM_GOTOL:
	case ISA_FORM_CALL_LOCAL:
		return insn->imm;
	default:
		return -1; /* the instruction itself: never a target */
	}
}

/* Takes the jumps to the next instruction out. */
static void squeeze(struct generated *program)
{
	uint32_t place[GENERATE_MAX + 1], n = 0;
	struct generated old = *program;

	for (size_t i = 0; i < old.ncode; i++) {
		place[i] = n;
		if (!is_nop(&old.code[i]))
			program->code[n++] = old.code[i];
	}
	place[old.ncode] = n;
	program->ncode = n;
	for (size_t i = 0; i < old.ncode;) {
		struct bpf_insn *insn = &program->code[place[i]];
		int64_t to = distance(&old.code[i]);

		if (!is_nop(&old.code[i]) && to != -1) {
			to = (int64_t)place[i + 1 + to] - place[i] - 1;
			if (isa_row(isa_find(insn))->form == ISA_FORM_GOTOL ||
			    isa_row(isa_find(insn))->form == ISA_FORM_CALL_LOCAL)
				insn->imm = to;
			else
				insn->off = to;
		}
		i += isa_slots(isa_row(isa_find(&old.code[i])));
	}
	for (size_t i = 0; i < program->nfunctions; i++) {
		uint32_t end = old.functions[i].first + old.functions[i].count;

		program->functions[i].first = place[old.functions[i].first];
		program->functions[i].count = place[end] - program->functions[i].first;
	}
	for (size_t i = 0; i < program->nrelocations; i++)
		program->relocations[i].at = place[old.relocations[i].at];
}

/* Functions that nobody needs any more. */
static bool drop_function(struct generated *program, size_t n)
{
	struct vm_function gone = program->functions[n];

	for (size_t i = gone.first; i < gone.first + gone.count; i++)
		program->code[i] = JA(0);
	for (size_t i = program->nrelocations; i--;)
		if (program->relocations[i].at >= gone.first &&
		    program->relocations[i].at < gone.first + gone.count)
			program->relocations[i] = program->relocations[--program->nrelocations];
	for (size_t i = 0; i < program->ncode; i++)
		if (program->code[i].code == 0x18 && program->code[i].src_reg == BPF_PSEUDO_FUNC &&
		    program->code[i].imm >= (int)n)
			program->code[i].imm--;
	program->nfunctions--;
	memmove(&program->functions[n], &program->functions[n + 1],
		(program->nfunctions - n) * sizeof(program->functions[0]));
	squeeze(program);
	return true;
}

void minimise(struct generated *program, program_differs *differs, void *context)
{
	static struct generated try;
	bool progress = true;

	while (progress) {
		progress = false;
		for (size_t n = 32; n; n /= 2) {
			for (size_t at = program->ncode; at--;) {
				try = *program;
				if (at % n || !blank(&try, at, n) || !differs(context, &try))
					continue;
				*program = try;
				progress = true;
			}
		}
		for (size_t n = program->nfunctions; --n;) {
			try = *program;
			if (drop_function(&try, n) && differs(context, &try)) {
				*program = try;
				progress = true;
			}
		}
		try = *program;
		squeeze(&try);
		if (differs(context, &try))
			*program = try;
	}
}
