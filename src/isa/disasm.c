// SPDX-License-Identifier: BSD-2-Clause
#include "isa/disasm.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "isa/isa.h"

/* "r3" or, for an operation on the lower half, "w3". */
struct name {
	char text[4];
};

static struct name reg(const struct isa_row *row, uint32_t number)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%c%u", row->width == 4 ? 'w' : 'r', number & 15);
	return name;
}

/* "(u64 *)(r1 + 8)" */
struct place {
	char text[32];
};

static struct place memory(const struct isa_row *row, uint32_t base, int16_t off)
{
	struct place place;

	snprintf(place.text, sizeof(place.text), "(%c%u *)(r%u %c %d)",
		 row->flags & ISA_FLAG_SIGNED ? 's' : 'u', row->width * 8, base,
		 off < 0 ? '-' : '+', off < 0 ? -off : off);
	return place;
}

static void write_atomic(const struct isa_row *row, const struct bpf_insn *insn, char *text,
			 size_t size)
{
	struct place place = memory(row, insn->dst_reg, insn->off);
	struct name src = reg(row, insn->src_reg);

	if (!(row->flags & ISA_FLAG_FETCH))
		snprintf(text, size, "lock *%s %s %s", place.text, row->text, src.text);
	else if (row->form == ISA_FORM_CMPXCHG)
		snprintf(text, size, "%s = cmpxchg(%s, %s, %s)", reg(row, 0).text, place.text,
			 reg(row, 0).text, src.text);
	else if (!strcmp(row->text, "xchg"))
		snprintf(text, size, "%s = xchg(%s, %s)", src.text, place.text, src.text);
	else
		snprintf(text, size, "%s = atomic_fetch_%s(%s, %s)", src.text, row->text,
			 place.text, src.text);
}

static void write_lddw(const struct isa_row *row, const struct bpf_insn *insn, char *text,
		       size_t size)
{
	uint32_t low = insn[0].imm, high = insn[1].imm;

	switch (insn->src_reg) {
	case 0:
		snprintf(text, size, "r%u = 0x%llx ll", insn->dst_reg,
			 (unsigned long long)high << 32 | low);
		break;
	case BPF_PSEUDO_MAP_VALUE:
	case BPF_PSEUDO_MAP_IDX_VALUE:
		snprintf(text, size, "r%u = %s[%u][0]+%u ll", insn->dst_reg, row->text, low, high);
		break;
	default:
		snprintf(text, size, "r%u = %s[%d] ll", insn->dst_reg, row->text, insn->imm);
	}
}

static void write_packet(const struct isa_row *row, const struct bpf_insn *insn, char *text,
			 size_t size)
{
	if (!strncmp(row->text, "ldind", 5))
		snprintf(text, size, "r0 = *(u%u *)skb[r%u + %d]", row->width * 8, insn->src_reg,
			 insn->imm);
	else
		snprintf(text, size, "r0 = *(u%u *)skb[%d]", row->width * 8, insn->imm);
}

static void write_jump(const struct isa_row *row, const struct bpf_insn *insn, char *text,
		       size_t size)
{
	struct name dst = reg(row, insn->dst_reg), src = reg(row, insn->src_reg);

	switch (row->form) {
	case ISA_FORM_JUMP_K:
		snprintf(text, size, "if %s %s %d goto %+d", dst.text, row->text, insn->imm,
			 insn->off);
		break;
	case ISA_FORM_JUMP_X:
		snprintf(text, size, "if %s %s %s goto %+d", dst.text, row->text, src.text,
			 insn->off);
		break;
	case ISA_FORM_GOTO:
		snprintf(text, size, "goto %+d", insn->off);
		break;
	case ISA_FORM_GOTOL:
		snprintf(text, size, "gotol %+d", insn->imm);
		break;
	case ISA_FORM_CALL_LOCAL:
		snprintf(text, size, "call pc%+d", insn->imm);
		break;
	case ISA_FORM_CALLX:
		snprintf(text, size, "callx r%u", isa_callx_register(insn));
		break;
	case ISA_FORM_EXIT:
		snprintf(text, size, "exit");
		break;
	default:
		snprintf(text, size, "%s%s%d", row->text,
			 row->text[strlen(row->text) - 1] == '#' ? "" : " ", insn->imm);
	}
}

static void write_insn(const struct isa_row *row, const struct bpf_insn *insn, char *text,
		       size_t size)
{
	struct name dst = reg(row, insn->dst_reg), src = reg(row, insn->src_reg);

	switch (row->form) {
	case ISA_FORM_ALU_K:
		snprintf(text, size, "%s %s %d", dst.text, row->text, insn->imm);
		break;
	case ISA_FORM_ALU_X:
		snprintf(text, size, "%s %s %s", dst.text, row->text, src.text);
		break;
	case ISA_FORM_MOVSX:
		snprintf(text, size, "%s = %s%s", dst.text, row->text, src.text);
		break;
	case ISA_FORM_NEG:
		snprintf(text, size, "%s = -%s", dst.text, dst.text);
		break;
	case ISA_FORM_ENDIAN:
		snprintf(text, size, "r%u = %s r%u", insn->dst_reg, row->text, insn->dst_reg);
		break;
	case ISA_FORM_LOAD:
		snprintf(text, size, "r%u = *%s", insn->dst_reg,
			 memory(row, insn->src_reg, insn->off).text);
		break;
	case ISA_FORM_STORE_K:
		snprintf(text, size, "*%s = %d", memory(row, insn->dst_reg, insn->off).text,
			 insn->imm);
		break;
	case ISA_FORM_STORE_X:
		snprintf(text, size, "*%s = r%u", memory(row, insn->dst_reg, insn->off).text,
			 insn->src_reg);
		break;
	case ISA_FORM_ATOMIC:
	case ISA_FORM_CMPXCHG:
		write_atomic(row, insn, text, size);
		break;
	case ISA_FORM_LDDW:
		write_lddw(row, insn, text, size);
		break;
	case ISA_FORM_PACKET:
		write_packet(row, insn, text, size);
		break;
	default:
		write_jump(row, insn, text, size);
	}
}

size_t isa_disassemble(const struct bpf_insn *insn, size_t left, char *text, size_t size)
{
	uint64_t raw;
	int op;

	if (!left) {
		if (size)
			text[0] = '\0';
		return 0;
	}
	op = isa_decode(insn, left, NULL);
	if (op < 0) {
		memcpy(&raw, insn, sizeof(raw));
		snprintf(text, size, "<invalid 0x%016llx>", (unsigned long long)raw);
		return 1;
	}
	write_insn(isa_row(op), insn, text, size);
	return isa_slots(isa_row(op));
}
