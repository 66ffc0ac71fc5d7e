// SPDX-License-Identifier: BSD-2-Clause
#include "isa/isa.h"

#include <errno.h>
#include <stdbool.h>

static const struct isa_row rows[ISA_NOPS] = {
#define INSN(id, op, sel, val, frm, wid, flg, grp, ver, txt) \
	[ISA_##id] = { .name = #id,                          \
		       .text = txt,                          \
		       .value = val,                         \
		       .opcode = op,                         \
		       .select = ISA_SELECT_##sel,           \
		       .form = ISA_FORM_##frm,               \
		       .width = wid,                         \
		       .flags = ISA_FLAGS(flg),              \
		       .group = ISA_GROUP_##grp,             \
		       .version = ver },
#define ALSO             INSN
#define SIGNED           ISA_FLAG_SIGNED
#define FETCH            ISA_FLAG_FETCH
#define ISA_FLAGS(flags) (flags)
#include "isa/insn.def"
};

/* First row of each opcode, plus one, so that 0 means none. A doubled INSN() does not compile. */
static const uint16_t first_row[256] = {
#define INSN(id, op, ...) [op] = ISA_##id + 1,
#define ALSO(...)
#include "isa/insn.def"
};

const struct isa_row *isa_row(enum isa_op op)
{
	return &rows[op];
}

static int32_t selector(const struct isa_row *row, const struct bpf_insn *insn)
{
	switch (row->select) {
	case ISA_SELECT_OFF:
		return insn->off;
	case ISA_SELECT_IMM:
		return insn->imm;
	case ISA_SELECT_SRC:
		return insn->src_reg;
	default:
		return row->value;
	}
}

enum isa_op isa_find(const struct bpf_insn *insn)
{
	uint32_t i = first_row[insn->code];

	if (!i)
		return ISA_NOPS;
	for (i--; i < ISA_NOPS && rows[i].opcode == insn->code; i++)
		if (selector(&rows[i], insn) == rows[i].value)
			return i;
	return ISA_NOPS;
}

static int no_operation(const struct bpf_insn *insn, struct err *err)
{
	static const char *const fields[] = { "", "offset", "immediate", "source" };
	const struct isa_row *row;

	if (!first_row[insn->code])
		return err_set(err, -EINVAL, "unknown opcode 0x%02x", insn->code);
	row = &rows[first_row[insn->code] - 1];
	return err_set(err, -EINVAL, "opcode 0x%02x (%s) with %s %d is no instruction", insn->code,
		       row->name, fields[row->select], selector(row, insn));
}

/* Which fields a form uses; the others are reserved and must be zero (RFC 9669, section 3). */
struct uses {
	bool dst, src, off, imm;
};

static const struct uses uses[] = {
	[ISA_FORM_ALU_K] = { .dst = true, .imm = true },
	[ISA_FORM_ALU_X] = { .dst = true, .src = true },
	[ISA_FORM_MOVSX] = { .dst = true, .src = true },
	[ISA_FORM_NEG] = { .dst = true },
	[ISA_FORM_ENDIAN] = { .dst = true },
	[ISA_FORM_JUMP_K] = { .dst = true, .off = true, .imm = true },
	[ISA_FORM_JUMP_X] = { .dst = true, .src = true, .off = true },
	[ISA_FORM_GOTO] = { .off = true },
	[ISA_FORM_GOTOL] = { .imm = true },
	[ISA_FORM_CALL] = { .imm = true },
	[ISA_FORM_CALL_LOCAL] = { .imm = true },
	[ISA_FORM_CALLX] = { .dst = true, .imm = true },
	[ISA_FORM_EXIT] = { 0 },
	[ISA_FORM_LDDW] = { .dst = true, .imm = true },
	[ISA_FORM_LOAD] = { .dst = true, .src = true, .off = true },
	[ISA_FORM_STORE_K] = { .dst = true, .off = true, .imm = true },
	[ISA_FORM_STORE_X] = { .dst = true, .src = true, .off = true },
	[ISA_FORM_ATOMIC] = { .dst = true, .src = true, .off = true },
	[ISA_FORM_CMPXCHG] = { .dst = true, .src = true, .off = true },
	[ISA_FORM_PACKET] = { .src = true, .imm = true },
};

static int check_fields(const struct isa_row *row, const struct bpf_insn *insn, struct err *err)
{
	const struct uses *used = &uses[row->form];
	const char *reserved = NULL;

	if (used->dst && insn->dst_reg >= ISA_REGISTERS)
		return err_set(err, -EINVAL, "register r%u does not exist", insn->dst_reg);
	if (used->src && insn->src_reg >= ISA_REGISTERS)
		return err_set(err, -EINVAL, "register r%u does not exist", insn->src_reg);
	if (!used->dst && insn->dst_reg)
		reserved = "destination";
	else if (!used->src && row->select != ISA_SELECT_SRC && insn->src_reg)
		reserved = "source";
	else if (!used->off && row->select != ISA_SELECT_OFF && insn->off)
		reserved = "offset";
	else if (!used->imm && row->select != ISA_SELECT_IMM && insn->imm)
		reserved = "immediate";
	if (reserved)
		return err_set(err, -EINVAL, "reserved field %s of %s is not zero", reserved,
			       row->name);
	if (insn->dst_reg == ISA_FRAME && isa_writes_dst(row))
		return err_set(err, -EINVAL, "writes to r10, the frame pointer");
	if (insn->src_reg == ISA_FRAME && row->form == ISA_FORM_ATOMIC &&
	    (row->flags & ISA_FLAG_FETCH))
		return err_set(err, -EINVAL, "writes to r10, the frame pointer");
	return 0;
}

static int check_packet(const struct bpf_insn *insn, struct err *err)
{
	if (BPF_MODE(insn->code) == BPF_ABS && insn->src_reg)
		return err_set(err, -EINVAL, "reserved field source of %s is not zero",
			       isa_row(isa_find(insn))->name);
	return 0;
}

static int check_callx(const struct bpf_insn *insn, struct err *err)
{
	if (insn->imm && insn->dst_reg)
		return err_set(err, -EINVAL, "callx names two registers");
	if (insn->imm < 0 || insn->imm >= ISA_REGISTERS)
		return err_set(err, -EINVAL, "register r%d does not exist", insn->imm);
	return 0;
}

static int check_lddw(const struct bpf_insn *insn, size_t left, struct err *err)
{
	const struct bpf_insn *next = insn + 1;

	if (left < 2)
		return err_set(err, -EINVAL, "second half of a 64-bit load is missing");
	if (next->code || next->dst_reg || next->src_reg || next->off)
		return err_set(err, -EINVAL, "second half of a 64-bit load is malformed");
	return 0;
}

int isa_decode(const struct bpf_insn *insn, size_t left, struct err *err)
{
	const struct isa_row *row;
	enum isa_op op;
	int rc;

	if (!left)
		return err_set(err, -EINVAL, "no instruction is left");
	op = isa_find(insn);
	if (op == ISA_NOPS)
		return no_operation(insn, err);
	row = &rows[op];
	rc = check_fields(row, insn, err);
	if (!rc && row->form == ISA_FORM_CALLX)
		rc = check_callx(insn, err);
	if (!rc && row->form == ISA_FORM_PACKET)
		rc = check_packet(insn, err);
	if (!rc && row->form == ISA_FORM_LDDW)
		rc = check_lddw(insn, left, err);
	return rc ? rc : (int)op;
}
