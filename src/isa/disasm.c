// SPDX-License-Identifier: BSD-2-Clause
#include "isa/disasm.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "isa/isa.h"
#include "isa/syntax.h"

struct writer {
	const struct isa_row *row;
	const struct bpf_insn *insn;
	char *text;
	size_t size, used; /* used: of what there would be if size were endless */
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
	size_t left = w->used < w->size ? w->size - w->used : 0;
	va_list args;

	va_start(args, format);
	w->used += vsnprintf(left ? w->text + w->used : NULL, left, format, args);
	va_end(args);
}

static void put_register(struct writer *w, uint32_t number)
{
	put(w, "%c%u", w->row->width == 4 ? 'w' : 'r', number);
}

/* "(u64 *)(r1 + 8)" */
static void put_memory(struct writer *w, uint32_t base)
{
	int off = w->insn->off;

	put(w, "(%c%u *)(r%u %c %d)", w->row->flags & ISA_FLAG_SIGNED ? 's' : 'u',
	    w->row->width * 8, base, off < 0 ? '-' : '+', off < 0 ? -off : off);
}

static void put_callx(struct writer *w)
{
	put(w, "r%u%s", isa_callx_register(w->insn), w->insn->imm ? " (imm)" : "");
}

static void put_field(struct writer *w, char field)
{
	const struct bpf_insn *insn = w->insn;
	/* of the pairs only: the second slot of others may not be there */
	uint32_t high = w->row->form == ISA_FORM_LDDW ? insn[1].imm : 0;

	switch (field) {
	case 'd':
		return put_register(w, insn->dst_reg);
	case 's':
		return put_register(w, insn->src_reg);
	case '0':
		return put_register(w, 0);
	case 'D':
		return put(w, "r%u", insn->dst_reg);
	case 'S':
		return put(w, "r%u", insn->src_reg);
	case 'i':
	case 'n':
	case 'k':
		return put(w, "%d", insn->imm);
	case 'o':
		return put(w, "%+d", insn->off);
	case 'l':
	case 'p':
		return put(w, "%+d", insn->imm);
	case 'm':
		return put_memory(w, insn->dst_reg);
	case 'M':
		return put_memory(w, insn->src_reg);
	case 'b':
		return put(w, "%u", w->row->width * 8);
	case 'x':
		return put_callx(w);
	case 'c':
		return put(w, "0x%llx", (unsigned long long)high << 32 | (uint32_t)insn->imm);
	case 'u':
		return put(w, "%u", (uint32_t)insn->imm);
	case 'h':
		return put(w, "%u", high);
	case 'H':
		if (high)
			put(w, "+%u", high);
		return;
	}
}

static void write_insn(struct writer *w)
{
	for (const char *at = isa_pattern(w->row); *at; at++) {
		if (*at == '%')
			put_field(w, *++at);
		else if (*at == '@')
			put(w, "%s", w->row->text);
		else
			put(w, "%c", *at);
	}
}

size_t isa_disassemble(const struct bpf_insn *insn, size_t left, char *text, size_t size)
{
	struct writer writer = { .insn = insn, .text = text, .size = size };
	uint64_t raw;
	int op;

	if (size)
		text[0] = '\0';
	if (!left)
		return 0;
	op = isa_decode(insn, left, NULL);
	if (op < 0) {
		memcpy(&raw, insn, sizeof(raw));
		put(&writer, "<invalid 0x%016llx>", (unsigned long long)raw);
		return 1;
	}
	writer.row = isa_row(op);
	write_insn(&writer);
	return isa_slots(writer.row);
}
