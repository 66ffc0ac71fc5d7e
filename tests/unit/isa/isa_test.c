// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "isa/disasm.h"
#include "isa/isa.h"
#include "../../vm/code.h"

/* An instruction of each operation that has every field that it uses set. */
static struct bpf_insn sound(const struct isa_row *row)
{
	struct bpf_insn insn = { .code = row->opcode };

	switch (row->select) {
	case ISA_SELECT_OFF:
		insn.off = row->value;
		break;
	case ISA_SELECT_IMM:
		insn.imm = row->value;
		break;
	case ISA_SELECT_SRC:
		insn.src_reg = row->value;
		break;
	}
	if (isa_writes_dst(row))
		insn.dst_reg = 9;
	if (row->form == ISA_FORM_ALU_X || row->form == ISA_FORM_MOVSX ||
	    row->form == ISA_FORM_JUMP_X || row->form == ISA_FORM_STORE_X)
		insn.src_reg = 10;
	return insn;
}

static void every_row_is_found(void **state)
{
	(void)state;
	for (int op = 0; op < ISA_NOPS; op++) {
		struct bpf_insn insn[2] = { sound(isa_row(op)) };

		assert_int_equal(isa_find(insn), op);
		assert_int_equal(isa_decode(insn, 2, NULL), op);
	}
}

static void unknown_opcodes_are_refused(void **state)
{
	bool known[256] = { false };
	struct err err;
	int unknown = 0;

	(void)state;
	for (int op = 0; op < ISA_NOPS; op++)
		known[isa_row(op)->opcode] = true;
	for (int code = 0; code < 256; code++) {
		struct bpf_insn insn[2] = { { .code = code } };
		char want[64];

		if (known[code])
			continue;
		unknown++;
		assert_int_equal(isa_decode(insn, 2, &err), -22);
		snprintf(want, sizeof(want), "unknown opcode 0x%02x", code);
		assert_string_equal(err.text, want);
	}
	assert_int_equal(unknown, 256 - 126);
}

static void refuse(struct bpf_insn insn, const char *field)
{
	struct bpf_insn pair[2] = { insn };

	if (isa_decode(pair, 2, NULL) >= 0)
		fail_msg("opcode 0x%02x with a bad %s was accepted", insn.code, field);
}

/* Each reserved field of each operation, one at a time. */
static void reserved_fields_must_be_zero(void **state)
{
	(void)state;
	for (int op = 0; op < ISA_NOPS; op++) {
		const struct isa_row *row = isa_row(op);
		struct bpf_insn base = sound(row), bad;
		bool uses_off = row->form == ISA_FORM_JUMP_K || row->form == ISA_FORM_JUMP_X ||
				row->form == ISA_FORM_GOTO || row->form == ISA_FORM_LOAD ||
				row->form == ISA_FORM_STORE_K || row->form == ISA_FORM_STORE_X ||
				row->form == ISA_FORM_ATOMIC || row->form == ISA_FORM_CMPXCHG;
		bool uses_imm = row->form == ISA_FORM_ALU_K || row->form == ISA_FORM_JUMP_K ||
				row->form == ISA_FORM_GOTOL || row->form == ISA_FORM_CALL ||
				row->form == ISA_FORM_CALL_LOCAL || row->form == ISA_FORM_CALLX ||
				row->form == ISA_FORM_LDDW || row->form == ISA_FORM_STORE_K;

		if (row->form == ISA_FORM_PACKET)
			continue; /* refused as a whole by whoever runs it */
		for (int bit = 0; bit < 16 && !uses_off; bit++) {
			bad = base;
			bad.off ^= 1 << bit;
			if (isa_find(&bad) == ISA_NOPS || row->select != ISA_SELECT_OFF)
				refuse(bad, "offset");
		}
		for (int bit = 0; bit < 32 && !uses_imm; bit++) {
			bad = base;
			bad.imm ^= 1u << bit;
			if (isa_find(&bad) == ISA_NOPS || row->select != ISA_SELECT_IMM)
				refuse(bad, "immediate");
		}
		for (int reg = 11; reg < 16; reg++) {
			bad = base;
			bad.dst_reg = reg;
			refuse(bad, "destination");
			bad = base;
			bad.src_reg = reg;
			refuse(bad, "source");
		}
		if (isa_writes_dst(row)) {
			bad = base;
			bad.dst_reg = 10;
			refuse(bad, "destination r10");
		}
	}
}

static void malformed_wide_loads(void **state)
{
	struct bpf_insn good[2] = { LDDW(1, 0x1122334455667788) }, bad[2];
	struct err err;

	(void)state;
	assert_int_equal(isa_decode(good, 2, &err), ISA_LDDW);
	assert_int_equal(isa_decode(good, 1, &err), -22);
	assert_string_equal(err.text, "second half of a 64-bit load is missing");
	for (int field = 0; field < 4; field++) {
		memcpy(bad, good, sizeof(bad));
		bad[1].code = field == 0;
		bad[1].dst_reg = field == 1;
		bad[1].src_reg = field == 2;
		bad[1].off = field == 3;
		assert_int_equal(isa_decode(bad, 2, &err), -22);
		assert_string_equal(err.text, "second half of a 64-bit load is malformed");
	}
}

static void callx_has_two_encodings(void **state)
{
	struct bpf_insn both = RAW(0x8d, 3, 0, 0, 4), far = RAW(0x8d, 0, 0, 0, 11);
	struct bpf_insn dst = CALLX_DST(7), imm = CALLX_IMM(7);

	(void)state;
	assert_int_equal(isa_decode(&dst, 1, NULL), ISA_CALLX);
	assert_int_equal(isa_decode(&imm, 1, NULL), ISA_CALLX);
	assert_int_equal(isa_callx_register(&dst), 7);
	assert_int_equal(isa_callx_register(&imm), 7);
	assert_int_equal(isa_decode(&both, 1, NULL), -22);
	assert_int_equal(isa_decode(&far, 1, NULL), -22);
}

static const struct {
	struct bpf_insn insn[2];
	const char *text;
} texts[] = {
	{ { MOV_K(3, -5) }, "r3 = -5" },
	{ { MOV32_X(3, 4) }, "w3 = w4" },
	{ { ADD_X(0, 1) }, "r0 += r1" },
	{ { RAW(0x3f, 1, 2, 0, 0) }, "r1 /= r2" },
	{ { RAW(0x3f, 1, 2, 1, 0) }, "r1 s/= r2" },
	{ { RAW(0x94, 1, 0, 1, 7) }, "w1 s%= 7" },
	{ { RAW(0xc7, 1, 0, 0, 63) }, "r1 s>>= 63" },
	{ { RAW(0xbf, 1, 2, 8, 0) }, "r1 = (s8)r2" },
	{ { RAW(0xbc, 1, 2, 16, 0) }, "w1 = (s16)w2" },
	{ { RAW(0x87, 1, 0, 0, 0) }, "r1 = -r1" },
	{ { RAW(0xdc, 1, 0, 0, 16) }, "r1 = be16 r1" },
	{ { RAW(0xd7, 1, 0, 0, 32) }, "r1 = bswap32 r1" },
	{ { LDX_DW(0, 1, 8) }, "r0 = *(u64 *)(r1 + 8)" },
	{ { LDX_B(0, 10, -1) }, "r0 = *(u8 *)(r10 - 1)" },
	{ { RAW(0x81, 0, 1, -32768, 0) }, "r0 = *(s32 *)(r1 - 32768)" },
	{ { STX_W(10, 1, -4) }, "*(u32 *)(r10 - 4) = r1" },
	{ { ST_DW(10, -8, -1) }, "*(u64 *)(r10 - 8) = -1" },
	{ { ATOMIC(1, 2, 0, 0) }, "lock *(u64 *)(r1 + 0) += r2" },
	{ { ATOMIC(1, 2, 0, 0x51) }, "r2 = atomic_fetch_and((u64 *)(r1 + 0), r2)" },
	{ { RAW(0xc3, 1, 2, 4, 0xe1) }, "w2 = xchg((u32 *)(r1 + 4), w2)" },
	{ { ATOMIC(1, 2, 0, 0xf1) }, "r0 = cmpxchg((u64 *)(r1 + 0), r0, r2)" },
	{ { JNE_K(1, 0, 3) }, "if r1 != 0 goto +3" },
	{ { RAW(0xce, 1, 2, -4, 0) }, "if w1 s< w2 goto -4" },
	{ { JA(-1) }, "goto -1" },
	{ { RAW(0x06, 0, 0, 0, 100000) }, "gotol +100000" },
	{ { CALL(6) }, "call 6" },
	{ { CALL_LOCAL(12) }, "call pc+12" },
	{ { RAW(0x85, 0, 2, 0, 99) }, "call kernel-function#99" },
	{ { CALLX_DST(3) }, "callx r3" },
	{ { CALLX_IMM(3) }, "callx r3 (imm)" },
	{ { EXIT() }, "exit" },
	{ { LDDW(1, 0x1122334455667788) }, "r1 = 0x1122334455667788 ll" },
	{ { LDDW_KIND(1, 1, 5, 0) }, "r1 = map_by_fd[5] ll" },
	{ { LDDW_KIND(1, 2, 5, 24) }, "r1 = map_value_by_fd[5][0]+24 ll" },
	{ { LDDW_KIND(1, 4, 2, 0) }, "r1 = code[2] ll" },
	{ { RAW(0x20, 0, 0, 0, 12) }, "r0 = *(u32 *)skb[12]" },
	{ { RAW(0x50, 0, 3, 0, 1) }, "r0 = *(u8 *)skb[r3 + 1]" },
	{ { RAW(0xff, 1, 2, 3, 4) }, "<invalid 0x00000004000321ff>" },
};

static void disassembly(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		size_t slots = isa_disassemble(texts[i].insn, 2, text, sizeof(text));

		assert_string_equal(text, texts[i].text);
		assert_int_equal(slots, texts[i].insn[0].code == 0x18 ? 2 : 1);
	}
	assert_int_equal(isa_disassemble(texts[0].insn, 0, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	isa_disassemble(texts[0].insn, 1, text, 4);
	assert_string_equal(text, "r3 ");
}

/* No two operations may read alike. */
static void texts_are_unique(void **state)
{
	static char all[ISA_NOPS][64];

	(void)state;
	for (int op = 0; op < ISA_NOPS; op++) {
		struct bpf_insn insn[2] = { sound(isa_row(op)) };

		isa_disassemble(insn, 2, all[op], sizeof(all[op]));
		assert_true(strlen(all[op]) < 60);
		for (int other = 0; other < op; other++)
			if (!strcmp(all[op], all[other]))
				fail_msg("%s and %s are both written as %s", isa_row(op)->name,
					 isa_row(other)->name, all[op]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_found),
		cmocka_unit_test(unknown_opcodes_are_refused),
		cmocka_unit_test(reserved_fields_must_be_zero),
		cmocka_unit_test(malformed_wide_loads),
		cmocka_unit_test(callx_has_two_encodings),
		cmocka_unit_test(disassembly),
		cmocka_unit_test(texts_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
