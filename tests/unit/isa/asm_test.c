// SPDX-License-Identifier: BSD-2-Clause
/* The assembler, mostly against the disassembler: both must speak one language. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/asm.h"
#include "isa/disasm.h"
#include "isa/isa.h"
#include "../../vm/code.h"

static uint64_t seed = 0x5deece66d;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static struct isa_program assemble(const char *text)
{
	struct isa_program program = { 0 };
	struct err err = { 0 };

	if (isa_assemble(text, strlen(text), &program, &err))
		fail_msg("%s\n%s", text, err.text);
	return program;
}

static void expect_error(const char *text, const char *wanted)
{
	struct isa_program program = { 0 };
	struct err err = { 0 };

	assert_int_equal(isa_assemble(text, strlen(text), &program, &err), -22);
	assert_null(program.code);
	if (strncmp(err.text, wanted, strlen(wanted)))
		fail_msg("%s\nwanted: %s\ngot:    %s", text, wanted, err.text);
}

/* dis, then asm, gives the same bytes. */
static void round_trip(const struct bpf_insn *insn, size_t slots)
{
	struct isa_program program;
	char text[64];

	assert_int_equal(isa_disassemble(insn, 2, text, sizeof(text)), slots);
	assert_true(strlen(text) < sizeof(text) - 1);
	program = assemble(text);
	assert_int_equal(program.ncode, slots);
	if (memcmp(program.code, insn, slots * sizeof(*insn)))
		fail_msg("%s is not what it was: %016llx instead of %016llx", text,
			 *(unsigned long long *)program.code, *(unsigned long long *)insn);
	isa_program_deinit(&program);
}

static const int32_t immediates[] = { 0,         1,     -1,    5,         127,       -128,
				      255,       32767, 65535, INT32_MAX, INT32_MIN, INT32_MIN + 1,
				      0x12345678 };
static const int16_t offsets[] = { 0, 1, -1, 8, -8, 127, -128, INT16_MAX, INT16_MIN };

/* Every operation with every register and edge values in every field that it has. */
static void every_operation_makes_the_round_trip(void **state)
{
	unsigned int tried[ISA_NOPS] = { 0 };

	(void)state;
	for (int op = 0; op < ISA_NOPS; op++) {
		const struct isa_row *row = isa_row(op);

		for (size_t i = 0; i < COUNT_OF(immediates) * COUNT_OF(offsets) * 121; i++) {
			struct bpf_insn insn[2] = { { .code = row->opcode,
						      .dst_reg = i % 11,
						      .src_reg = i / 11 % 11,
						      .off = offsets[i / 121 % 9],
						      .imm = immediates[i / 1089] } };

			if (row->select == ISA_SELECT_OFF)
				insn[0].off = row->value;
			if (row->select == ISA_SELECT_IMM)
				insn[0].imm = row->value;
			if (row->select == ISA_SELECT_SRC)
				insn[0].src_reg = row->value;
			if (row->form == ISA_FORM_LDDW)
				insn[1].imm = immediates[next_random() % COUNT_OF(immediates)];
			/* most have reserved fields: try those values that are instructions */
			if (isa_decode(insn, 2, NULL) != op)
				continue;
			round_trip(insn, isa_slots(row));
			tried[op]++;
			if (tried[op] > 2000) /* three operands and two numbers */
				i += 7;
		}
		if (!tried[op])
			fail_msg("%s was never tried", row->name);
	}
}

/* Whatever 16 bytes may hold. */
static void any_bytes_make_the_round_trip(void **state)
{
	int sound = 0;

	(void)state;
	for (int i = 0; i < 30000; i++) {
		struct bpf_insn insn[2] = { 0 };
		uint64_t raw = next_random();
		char text[64];

		memcpy(&insn[0], &raw, sizeof(raw));
		if (i & 1) /* more of them should be instructions */
			insn[0].off = insn[0].imm = insn[0].src_reg = 0;
		insn[1].imm = (int32_t)next_random();
		sound += isa_decode(insn, 2, NULL) >= 0;
		round_trip(insn, isa_disassemble(insn, 2, text, sizeof(text)));
	}
	assert_true(sound > 1000);
}

static void labels_functions_and_names(void **state)
{
	struct isa_program program = assemble("; adds up the bytes\n"
					      ".license \"GPL\"\n"
					      ".string hello \"a;b // \\\"c\\n\"\n"
					      ".space counter 8\n"
					      "\n"
					      ".function sum \"user/exit\"  // a section\n"
					      "\tr0 = 0\n"
					      "loop:\tif r2 == 0 goto done\n"
					      " 12: r3 = *(u8 *)(r1)\r\n"
					      "\tcall twice\n"
					      "\tr1 += 1; a comment\n"
					      "\tr4 = hello+2 ll\n"
					      "\tr5 = twice ll\n"
					      "\tgoto loop\n"
					      "done: last:\n"
					      "\tcall printf\n"
					      "\texit\n"
					      ".function twice\n"
					      "loop: gotol loop\n"
					      "\tr1 = -0x80000000\n"
					      "\tw1 = 0xffffffff\n"
					      "\tr4 = counter ll\n"
					      "\texit");

	(void)state;
	assert_int_equal(program.nfunctions, 2);
	assert_string_equal(program.functions[0].name, "sum");
	assert_string_equal(program.functions[0].section, "user/exit");
	assert_int_equal(program.functions[0].first, 0);
	assert_int_equal(program.functions[0].count, 12);
	assert_int_equal(program.functions[0].line, 6);
	assert_string_equal(program.functions[1].section, ".text");
	assert_int_equal(program.functions[1].first, 12);
	assert_int_equal(program.functions[1].count, 6);
	assert_int_equal(program.ncode, 18);
	assert_int_equal(program.code[1].off, 8);
	assert_int_equal(program.code[3].src_reg, BPF_PSEUDO_CALL);
	assert_int_equal(program.code[3].imm, 12 - 4);
	assert_int_equal(program.code[7].src_reg, BPF_PSEUDO_FUNC);
	assert_int_equal(program.code[7].imm, 1);
	assert_int_equal(program.code[9].off, -9);
	assert_int_equal(program.code[12].code, 0x06);
	assert_int_equal(program.code[12].imm, -1);
	assert_int_equal(program.code[13].imm, INT32_MIN);
	assert_int_equal(program.code[14].imm, -1);
	assert_int_equal(program.lines[2], 9);
	assert_int_equal(program.lines[17], 23);
	assert_string_equal(program.license, "GPL");
	assert_int_equal(program.nsymbols, 3);
	assert_string_equal((const char *)program.symbols[0].data, "a;b // \"c\n");
	assert_int_equal(program.symbols[0].size, 11);
	assert_int_equal(program.symbols[1].size, 8);
	assert_null(program.symbols[1].data);
	assert_string_equal(program.symbols[2].name, "printf");
	assert_int_equal(program.nreferences, 3);
	assert_int_equal(program.references[0].insn, 5);
	assert_int_equal(program.references[0].symbol, 0);
	assert_int_equal(program.references[0].addend, 2);
	assert_int_equal(program.references[1].insn, 10);
	assert_int_equal(program.references[1].symbol, 2);
	assert_int_equal(program.references[2].symbol, 1);
	isa_program_deinit(&program);
}

static void errors_say_where_and_what(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "1:1: there are no instructions" },
		{ "r0 = 0\n mov r1, 5", "2:2: `mov` starts no instruction: they read like" },
		{ "r0 = 0\n\tr1 + 5", "2:5: expected an operator, not `+`" },
		{ "r1 = w2", "1:6: expected a register r0 to r10 or a number" },
		{ "w1 = r2", "1:6: expected a register w0 to w10 or a number" },
		{ "r1 = ", "1:5: the line ends where a register r0 to r10 or a number" },
		{ "r1 += r11", "1:7: r11: there is no such register: r0 to r10" },
		{ "r10 = 5", "1:1: writes to r10, the frame pointer" },
		{ "r1 = -r2", "1:7: r2: it must be the register on the left" },
		{ "r1 += 0x80000000", "1:7: 0x80000000: it does not fit 32 bits with a sign" },
		{ "r1 = 0x80000000", "1:16: the line ends where `ll` was expected" },
		{ "r1 = 0x10000000000000000 ll", "1:6: 0x10000000000000000: it does not fit" },
		{ "r1 = 5 5", "1:8: expected" },
		{ "exit now", "1:6: expected the end of the line, not `now`" },
		{ "if r1 > 5 got x", "1:11: expected `goto`, not `got`" },
		{ "if r1 > 5 goto", "1:15: the line ends where a label or a distance" },
		{ "goto +32768", "1:6: +32768: it is too far: gotol" },
		{ "r1 = *(u64 *)(r2 + 32768)", "1:20: 32768: offsets are" },
		{ "r1 = *(u63 *)(r2 + 8)", "1:8: expected memory such as (u64 *)(r1 + 8), not" },
		{ "*(s8 *)(r2 + 8) = 1", "1:3: expected memory" },
		{ "r0 = 1\ngoto nowhere\nexit", "2:6: `nowhere`: no such label in this function" },
		{ "loop:r0 = 1\ngoto lop\nexit",
		  "2:6: `lop`: no such label in this function: did you mean loop?" },
		{ "a: r0 = 1\na: exit", "2:1: label `a` is there already, in line 1" },
		{ "goto a\na:", "1:6: `a`: no instruction follows this label" },
		{ ".function f\nexit\n.function f\nexit", "3:1: function `f` is there already" },
		{ ".function f\n.function g\nexit", "1:1: function `f` is empty" },
		{ ".function r1\nexit", "1:11: expected a name" },
		{ ".function f \"a\" b\nexit", "1:17: `b` is too much here" },
		{ ".function f \"a\nexit", "1:13: the text does not end" },
		{ ".fuction f\nexit",
		  "1:1: .fuction: no such directive: there are .function, .string, "
		  ".space and .license: did you mean .function?" },
		{ ".string s \"\\q\"\nexit", "1:12: no such escape" },
		{ ".string s \"\"\n.space s 4\nexit", "2:8: `s` is there already" },
		{ ".space s 0\nexit", "1:10: expected a number of bytes" },
		{ ".space s 4\ncall s\nexit", "2:6: `s`: is no function" },
		{ ".space f 4\n.function f\nexit", "2:1: `f` is there already" },
		{ "r1 = main+8 ll\nexit", "1:6: `main`: is a function: nothing can be added" },
		{ "call", "1:5: the line ends where" },
		{ "call pc12", "" },
	};

	(void)state;
	for (size_t i = 0; i + 1 < COUNT_OF(cases); i++)
		expect_error(cases[i].text, cases[i].error);
}

static void far_labels(void **state)
{
	static char text[40000 * 8 + 100];
	struct isa_program program;
	char *at = text;

	(void)state;
	at = stpcpy(at, "if r1 == 0 goto end\n");
	for (int i = 0; i < 32767; i++)
		at = stpcpy(at, "r0 = 1\n");
	strcpy(at, "end: exit\n");
	program = assemble(text);
	assert_int_equal(program.code[0].off, 32767);
	isa_program_deinit(&program);
	strcpy(at, "r0 = 1\nend: exit\n");
	expect_error(text, "1:17: `end`: more than 32767 instructions away: gotol");
	memcpy(text, "gotol          end ", 19);
	program = assemble(text);
	assert_int_equal(program.code[0].imm, 32768);
	isa_program_deinit(&program);
}

/* Pieces of the language in any order, and broken ones: no crash, and what is taken is sound. */
static void random_text_never_crashes(void **state)
{
	static const char *const pieces[] = {
		"r0",
		"r1",
		"w2",
		"r10",
		"r11",
		" ",
		" ",
		"\t",
		"\n",
		"\n",
		"=",
		"+=",
		"s>>=",
		"-",
		"5",
		"-1",
		"0x",
		"0xff",
		"ll",
		"if",
		"goto",
		"gotol",
		"loop",
		"loop:",
		"call",
		"callx",
		"(imm)",
		"pc+1",
		"exit",
		"lock",
		"*",
		"(u64 *)",
		"(",
		")",
		"(r1 + 8)",
		"*(u8 *)",
		"[",
		"]",
		"map_by_fd[5]",
		"code",
		",",
		"xchg",
		"cmpxchg",
		"<invalid",
		"0x1",
		">",
		"\"",
		"\"x\"",
		";",
		"//",
		".function",
		".string",
		".space",
		".license",
		"f",
		"main",
		"be16",
		"bswap32",
		"(s8)",
		"skb[",
		"\\",
		"\xff",
		":",
		"12:",
		"r1 = 5\n",
		"exit\n",
		"atomic_fetch_add(",
		"+",
		"99999999999999999999",
		"18446744073709551615",
	};
	int good = 0;

	(void)state;
	for (int i = 0; i < 40000; i++) {
		struct isa_program program = { 0 };
		struct err err = { 0 };
		char text[512];
		size_t size = 0;
		unsigned int n = next_random() % 24;

		for (unsigned int k = 0; k < n && size < sizeof(text) - 40; k++)
			size += sprintf(text + size, "%s",
					pieces[next_random() % COUNT_OF(pieces)]);
		if (size && i % 8 == 0)
			text[next_random() % size] = (char)next_random();
		if (!isa_assemble(text, size, &program, &err)) {
			good++;
			assert_true(program.ncode && program.nfunctions);
		} else {
			assert_null(program.code);
			assert_true(err.text[0] >= '1' && err.text[0] <= '9');
		}
		isa_program_deinit(&program);
	}
	assert_true(good > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_makes_the_round_trip),
		cmocka_unit_test(any_bytes_make_the_round_trip),
		cmocka_unit_test(labels_functions_and_names),
		cmocka_unit_test(errors_say_where_and_what),
		cmocka_unit_test(far_labels),
		cmocka_unit_test(random_text_never_crashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
