/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How instructions are written: one pattern an operation, which the disassembler fills in and the
 * assembler matches, so that both speak one language. For this folder only.
 *
 *	@      the operator of insn.def
 *	%d %s  destination and source, w3 for operations on the lower half and r3 for others
 *	%D %S  the same, always r3
 *	%0     r0 or w0
 *	%i     immediate
 *	%n     number of a native, or a name
 *	%o %l  distance of a jump in the offset or the immediate, or a label
 *	%p     distance of a call, as a number
 *	%b     bits of the memory access
 *	%m %M  memory at the destination or source: (u64 *)(r1 + 8)
 *	%x     register of callx, with ` (imm)` behind it when the immediate holds it
 *	%c     64-bit constant, or a name
 *	%k %u  lower half of one, signed or not; %h upper half; %H the same, `+N`, nothing for 0
 *
 * All else stands for itself; a blank for any number of them.
 */
#pragma once

#include "isa/isa.h"

/* No `default:`: a form that nobody can write does not compile. */
static inline const char *isa_pattern(const struct isa_row *row)
{
	switch ((enum isa_form)row->form) {
	case ISA_FORM_ALU_K:
		return "%d @ %i";
	case ISA_FORM_ALU_X:
		return "%d @ %s";
	case ISA_FORM_MOVSX:
		return "%d = @%s";
	case ISA_FORM_NEG:
		return "%d = @%d";
	case ISA_FORM_ENDIAN:
		return "%D = @ %D";
	case ISA_FORM_JUMP_K:
		return "if %d @ %i goto %o";
	case ISA_FORM_JUMP_X:
		return "if %d @ %s goto %o";
	case ISA_FORM_GOTO:
		return "@ %o";
	case ISA_FORM_GOTOL:
		return "@ %l";
	case ISA_FORM_CALL:
		return row->value ? "@%i" : "@ %n";
	case ISA_FORM_CALL_LOCAL:
		return "@%p";
	case ISA_FORM_CALLX:
		return "@ %x";
	case ISA_FORM_EXIT:
		return "@";
	case ISA_FORM_LDDW:
		if (!row->value)
			return "%D = %c ll";
		return row->value == BPF_PSEUDO_MAP_VALUE || row->value == BPF_PSEUDO_MAP_IDX_VALUE
			       ? "%D = @[%u][0]+%h ll"
			       : "%D = @[%k]%H ll";
	case ISA_FORM_LOAD:
		return "%D = *%M";
	case ISA_FORM_STORE_K:
		return "*%m = %i";
	case ISA_FORM_STORE_X:
		return "*%m = %S";
	case ISA_FORM_ATOMIC:
		if (!(row->flags & ISA_FLAG_FETCH))
			return "lock *%m @ %s";
		return row->text[0] == 'x' && row->text[1] == 'c' ? "%s = @(%m, %s)"
								  : "%s = atomic_fetch_@(%m, %s)";
	case ISA_FORM_CMPXCHG:
		return "%0 = @(%m, %0, %s)";
	case ISA_FORM_PACKET:
		return (row->opcode & 0xe0) == BPF_ABS ? "r0 = *(u%b *)skb[%i]"
						       : "r0 = *(u%b *)skb[%S + %i]";
	}
	return "";
}
