// SPDX-License-Identifier: BSD-2-Clause
/*
 * One statement against the pattern of each operation. The attempt that came furthest says what is
 * wrong with a statement that none of them matches.
 */
#include "isa/asm_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "isa/syntax.h"

/* What was expected where an attempt ended. */
enum {
	WANT_R = 1,
	WANT_W = 2,
	WANT_OPERATOR = 4,
	WANT_NUMBER = 8,
	WANT_TARGET = 16,
	WANT_NAME = 32,
	WANT_MEMORY = 64,
	WANT_TEXT = 128,
	WANT_END = 256,
};

struct matcher {
	const char *text, *at;
	const struct isa_row *row;
	struct asm_match match;
	bool has_dst, has_src;
	/* of all attempts */
	const char *furthest;
	unsigned int wanted;
	char literal[24];
	const char *problem;
};

struct number {
	bool negative, too_big;
	uint64_t magnitude;
};

static void skip_blanks(struct matcher *m)
{
	while (asm_is_blank(*m->at))
		m->at++;
}

/* Notes where this attempt ends. */
static bool end_at(struct matcher *m, const char *at, unsigned int wanted, const char *problem)
{
	if (m->furthest && at < m->furthest)
		return false;
	if (!m->furthest || at > m->furthest) {
		m->furthest = at;
		m->wanted = 0;
		m->problem = NULL;
	}
	m->wanted |= wanted;
	if (problem)
		m->problem = problem;
	return false;
}

static bool want_literal(struct matcher *m, const char *at, const char *text, size_t size)
{
	bool further = !m->furthest || at > m->furthest || !(m->wanted & WANT_TEXT);

	if (further && (!m->furthest || at >= m->furthest))
		snprintf(m->literal, sizeof(m->literal), "%.*s", (int)size, text);
	return end_at(m, at, WANT_TEXT, NULL);
}

/* A piece of the pattern, or an operator: a blank in it stands for any number of them. It may end in
 * the middle of a word where the pattern goes on with the rest of the word. */
static bool take_piece(struct matcher *m, const char *text, size_t size, unsigned int wanted,
		       bool word_goes_on)
{
	const char *start, *at;

	skip_blanks(m);
	start = at = m->at;
	for (size_t i = 0; i < size; i++) {
		if (text[i] == ' ') {
			while (asm_is_blank(*at))
				at++;
		} else if (*at++ != text[i]) {
			at = NULL;
			break;
		}
	}
	if (at && (word_goes_on || !asm_is_word(text[size - 1]) || !asm_is_word(*at))) {
		m->at = at;
		return true;
	}
	return wanted == WANT_TEXT ? want_literal(m, start, text, size)
				   : end_at(m, start, wanted, NULL);
}

static bool take_literal(struct matcher *m, const char *text, size_t size, unsigned int wanted)
{
	return take_piece(m, text, size, wanted, false);
}

/* The next token of the pattern: a word, or what stands between words. */
static bool take_pattern(struct matcher *m, const char **pattern)
{
	const char *start = *pattern, *end = start + 1;

	while (*end && *end != '%' && *end != '@' && *end != ' ' &&
	       asm_is_word(*end) == asm_is_word(*start))
		end++;
	*pattern = end;
	return take_piece(m, start, end - start, *start == '=' ? WANT_OPERATOR : WANT_TEXT,
			  *end == '@' || *end == '%');
}

/* -1: none. */
static int read_register(const char **at, char prefix)
{
	const char *p = *at;
	int number = 0;

	if (*p++ != prefix || *p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
		return -1;
	for (; *p >= '0' && *p <= '9' && number < 1000; p++)
		number = number * 10 + *p - '0';
	if (asm_is_word(*p))
		return -1;
	*at = p;
	return number;
}

static bool take_register(struct matcher *m, char prefix, uint32_t *ret)
{
	const char *start;
	int number;

	skip_blanks(m);
	start = m->at;
	number = read_register(&m->at, prefix);
	if (number < 0)
		return end_at(m, start, prefix == 'w' ? WANT_W : WANT_R, NULL);
	if (number >= ISA_REGISTERS) {
		m->at = start;
		return end_at(m, start, 0, "there is no such register: r0 to r10");
	}
	*ret = number;
	return true;
}

static bool take_dst(struct matcher *m, char prefix)
{
	const char *start = m->at;
	uint32_t number;

	if (!take_register(m, prefix, &number))
		return false;
	if (m->has_dst && m->match.insn[0].dst_reg != number)
		return end_at(m, start, 0, "it must be the register on the left");
	m->has_dst = true;
	m->match.insn[0].dst_reg = number;
	return true;
}

static bool take_src(struct matcher *m, char prefix)
{
	const char *start = m->at;
	uint32_t number;

	if (!take_register(m, prefix, &number))
		return false;
	if (m->has_src && m->match.insn[0].src_reg != number)
		return end_at(m, start, 0, "it must be the register on the left");
	m->has_src = true;
	m->match.insn[0].src_reg = number;
	return true;
}

static int digit_of(char c, unsigned int base)
{
	int value = c >= '0' && c <= '9'   ? c - '0'
		    : c >= 'a' && c <= 'f' ? c - 'a' + 10
		    : c >= 'A' && c <= 'F' ? c - 'A' + 10
					   : 99;

	return value < (int)base ? value : -1;
}

/* Decimal or 0x, with a sign in front; what follows must not be part of a word. */
static bool read_number(const char **at, struct number *ret)
{
	unsigned int base = 10;
	const char *p = *at;
	int digit;

	*ret = (struct number){ .negative = *p == '-' };
	p += *p == '-' || *p == '+';
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	}
	if (digit_of(*p, base) < 0)
		return false;
	for (; (digit = digit_of(*p, base)) >= 0; p++) {
		if (__builtin_mul_overflow(ret->magnitude, base, &ret->magnitude) ||
		    __builtin_add_overflow(ret->magnitude, digit, &ret->magnitude))
			ret->too_big = true;
	}
	if (asm_is_word(*p))
		return false;
	*at = p;
	return true;
}

/* A number of @bits: from its most negative signed value to @most. */
static bool take_number(struct matcher *m, uint64_t least, uint64_t most, const char *problem,
			uint64_t *ret)
{
	struct number number;
	const char *start;

	skip_blanks(m);
	start = m->at;
	if (!read_number(&m->at, &number))
		return end_at(m, start, WANT_NUMBER, NULL);
	if (number.too_big || number.magnitude > (number.negative ? least : most)) {
		m->at = start;
		return end_at(m, start, 0, problem);
	}
	*ret = number.negative ? -number.magnitude : number.magnitude;
	return true;
}

static bool take_immediate(struct matcher *m)
{
	bool narrow = m->row->width <= 4;
	uint64_t value;

	if (!take_number(m, 1ull << 31, narrow ? UINT32_MAX : INT32_MAX,
			 "it does not fit 32 bits with a sign: load it by `rN = NUMBER ll` first",
			 &value))
		return false;
	m->match.insn[0].imm = (int32_t)value;
	return true;
}

static bool take_half(struct matcher *m, bool is_signed, int32_t *ret)
{
	uint64_t value;

	if (!take_number(m, is_signed ? 1ull << 31 : 0, is_signed ? INT32_MAX : UINT32_MAX,
			 "it does not fit 32 bits", &value))
		return false;
	*ret = (int32_t)value;
	return true;
}

static bool take_high(struct matcher *m)
{
	skip_blanks(m);
	return *m->at != '+' || take_half(m, false, &m->match.insn[1].imm);
}

struct asm_name asm_read_name(const char *text)
{
	struct asm_name name = { .at = text };
	const char *end = text;

	if (*text >= '0' && *text <= '9')
		return name;
	if (read_register(&end, 'r') >= 0 || read_register(&end, 'w') >= 0)
		return name;
	while (asm_is_word(*end))
		end++;
	name.size = end - text;
	return name;
}

static bool take_name(struct matcher *m, enum asm_refers refers, unsigned int wanted)
{
	skip_blanks(m);
	m->match.name = asm_read_name(m->at);
	if (!m->match.name.size)
		return end_at(m, m->at, wanted, NULL);
	m->match.refers = refers;
	m->at += m->match.name.size;
	return true;
}

/* "+3", or a label. */
static bool take_target(struct matcher *m, bool in_imm)
{
	uint64_t value;

	skip_blanks(m);
	if (*m->at != '+' && *m->at != '-')
		return take_name(m, in_imm ? ASM_REFERS_IMM : ASM_REFERS_OFF, WANT_TARGET);
	if (!take_number(m, in_imm ? 1ull << 31 : 1ull << 15, in_imm ? INT32_MAX : INT16_MAX,
			 in_imm ? "it is too far" : "it is too far: gotol goes further", &value))
		return false;
	if (in_imm)
		m->match.insn[0].imm = (int32_t)value;
	else
		m->match.insn[0].off = (int16_t)value;
	return true;
}

static bool take_distance(struct matcher *m)
{
	uint64_t value;

	skip_blanks(m);
	if (*m->at != '+' && *m->at != '-')
		return end_at(m, m->at, WANT_TARGET, NULL);
	if (!take_number(m, 1ull << 31, INT32_MAX, "it is too far", &value))
		return false;
	m->match.insn[0].imm = (int32_t)value;
	return true;
}

/* "(u64 *)(r1 + 8)"; "(r1)" is good too. */
static bool take_memory(struct matcher *m, bool at_src)
{
	char type[8];
	uint64_t off = 0;
	bool minus;
	const char *start;

	snprintf(type, sizeof(type), "%c%d", m->row->flags & ISA_FLAG_SIGNED ? 's' : 'u',
		 m->row->width * 8);
	if (!take_literal(m, "(", 1, WANT_MEMORY))
		return false;
	skip_blanks(m);
	if (!take_literal(m, type, strlen(type), WANT_MEMORY) ||
	    !take_literal(m, "*", 1, WANT_TEXT) || !take_literal(m, ")", 1, WANT_TEXT) ||
	    !take_literal(m, "(", 1, WANT_TEXT) || !(at_src ? take_src(m, 'r') : take_dst(m, 'r')))
		return false;
	skip_blanks(m);
	minus = *m->at == '-';
	if (minus || *m->at == '+') {
		m->at++;
		skip_blanks(m);
		start = m->at;
		if (*start == '-' || *start == '+')
			return end_at(m, start, WANT_NUMBER, NULL);
		if (!take_number(m, 0, minus ? 32768 : 32767, "offsets are -32768 to 32767", &off))
			return false;
	}
	m->match.insn[0].off = (int16_t)(minus ? -off : off);
	return take_literal(m, ")", 1, WANT_TEXT);
}

/* `r3`, or `r3 (imm)` for the encoding of old clangs; r0 is the same in both. */
static bool take_callx(struct matcher *m)
{
	struct bpf_insn *insn = &m->match.insn[0];

	if (!take_dst(m, 'r'))
		return false;
	skip_blanks(m);
	if (*m->at != '(')
		return true;
	m->at++;
	if (!take_literal(m, "imm", 3, WANT_TEXT) || !take_literal(m, ")", 1, WANT_TEXT))
		return false;
	insn->imm = insn->dst_reg;
	insn->dst_reg = 0;
	return true;
}

/* A number of 64 bits, or the address of a name: `table`, `table+8`. */
static bool take_constant(struct matcher *m)
{
	struct bpf_insn *insn = m->match.insn;
	uint64_t value;
	const char *start;

	skip_blanks(m);
	start = m->at;
	if (asm_read_name(start).size) {
		if (!take_name(m, ASM_REFERS_SYMBOL, WANT_NAME))
			return false;
		skip_blanks(m);
		if (*m->at != '+' && *m->at != '-')
			return true;
		if (!take_number(m, 1ull << 31, INT32_MAX, "it does not fit 32 bits", &value))
			return false;
		m->match.addend = (int64_t)value;
		return true;
	}
	if (!take_number(m, 1ull << 63, UINT64_MAX, "it does not fit 64 bits", &value))
		return false;
	insn[0].imm = (int32_t)value;
	insn[1].imm = (int32_t)(value >> 32);
	return true;
}

static bool take_native(struct matcher *m)
{
	skip_blanks(m);
	return asm_read_name(m->at).size ? take_name(m, ASM_REFERS_CALL, WANT_NAME)
					 : take_half(m, true, &m->match.insn[0].imm);
}

static bool take_field(struct matcher *m, char field)
{
	char wide = m->row->width == 4 ? 'w' : 'r';
	char text[8];
	int size;

	switch (field) {
	case 'd':
		return take_dst(m, wide);
	case 's':
		return take_src(m, wide);
	case 'D':
		return take_dst(m, 'r');
	case 'S':
		return take_src(m, 'r');
	case '0':
		return take_literal(m, wide == 'w' ? "w0" : "r0", 2, WANT_TEXT);
	case 'i':
		return take_immediate(m);
	case 'n':
		return take_native(m);
	case 'o':
		return take_target(m, false);
	case 'l':
		return take_target(m, true);
	case 'p':
		return take_distance(m);
	case 'b':
		size = snprintf(text, sizeof(text), "%d", m->row->width * 8);
		return take_literal(m, text, size, WANT_TEXT);
	case 'm':
		return take_memory(m, false);
	case 'M':
		return take_memory(m, true);
	case 'x':
		return take_callx(m);
	case 'c':
		return take_constant(m);
	case 'k':
		return take_half(m, true, &m->match.insn[0].imm);
	case 'u':
		return take_half(m, false, &m->match.insn[0].imm);
	case 'h':
		return take_half(m, false, &m->match.insn[1].imm);
	case 'H':
		return take_high(m);
	}
	return false;
}

static void start(struct matcher *m, const struct isa_row *row)
{
	m->row = row;
	m->at = m->text;
	m->has_dst = m->has_src = false;
	m->match = (struct asm_match){ .slots = isa_slots(row) };
	m->match.insn[0].code = row->opcode;
	switch ((enum isa_select)row->select) {
	case ISA_SELECT_ANY:
		break;
	case ISA_SELECT_OFF:
		m->match.insn[0].off = (int16_t)row->value;
		break;
	case ISA_SELECT_IMM:
		m->match.insn[0].imm = row->value;
		break;
	case ISA_SELECT_SRC:
		m->match.insn[0].src_reg = row->value;
		break;
	}
}

static bool is_operator(const struct isa_row *row)
{
	return row->form <= ISA_FORM_ALU_X || row->form == ISA_FORM_JUMP_K ||
	       row->form == ISA_FORM_JUMP_X || row->form == ISA_FORM_ATOMIC;
}

static bool try_row(struct matcher *m, const struct isa_row *row)
{
	const char *pattern = isa_pattern(row);

	start(m, row);
	while (*pattern) {
		bool good;

		if (*pattern == ' ') {
			pattern++;
			continue;
		}
		if (*pattern == '%') {
			good = take_field(m, pattern[1]);
			pattern += 2;
		} else if (*pattern == '@') {
			good = take_literal(m, row->text, strlen(row->text),
					    is_operator(row) ? WANT_OPERATOR : WANT_TEXT);
			pattern++;
		} else {
			good = take_pattern(m, &pattern);
		}
		if (!good)
			return false;
	}
	skip_blanks(m);
	return !*m->at || end_at(m, m->at, WANT_END, NULL);
}

/* What dis writes for what is no instruction is taken back as it is. */
static bool try_invalid(struct matcher *m)
{
	static const char prefix[] = "<invalid";
	uint64_t value;

	m->at = m->text;
	m->match = (struct asm_match){ .slots = 1 };
	if (strncmp(m->at, prefix, sizeof(prefix) - 1))
		return false;
	m->at += sizeof(prefix) - 1;
	if (!take_number(m, 0, UINT64_MAX, "it does not fit 64 bits", &value) ||
	    !take_literal(m, ">", 1, WANT_TEXT))
		return false;
	memcpy(m->match.insn, &value, sizeof(value));
	skip_blanks(m);
	return !*m->at || end_at(m, m->at, WANT_END, NULL);
}

/* "a register r0 to r10 or a number" */
static void describe_wanted(const struct matcher *m, char *text, size_t size)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} names[] = {
		{ WANT_R, "a register r0 to r10" },
		{ WANT_W, "a register w0 to w10" },
		{ WANT_NUMBER, "a number" },
		{ WANT_OPERATOR, "an operator" },
		{ WANT_TARGET, "a label or a distance such as +3" },
		{ WANT_NAME, "a name" },
		{ WANT_MEMORY, "memory such as (u64 *)(r1 + 8)" },
		{ WANT_TEXT, NULL },
		{ WANT_END, "the end of the line" },
	};
	size_t used = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(m->wanted & names[i].bit) || used >= size)
			continue;
		if (names[i].name)
			used += snprintf(text + used, size - used, "%s%s", used ? " or " : "",
					 names[i].name);
		else
			used += snprintf(text + used, size - used, "%s`%s`", used ? " or " : "",
					 m->literal);
	}
}

static int no_match(const struct matcher *m, size_t *column, struct err *err)
{
	char wanted[256] = "";
	const char *at = m->furthest ?: m->text;
	int length = 0;

	while (asm_is_word(at[length]))
		length++;
	*column = at - m->text;
	if (m->problem)
		return err_set(err, -EINVAL, "%.*s: %s", length ?: (int)strlen(at), at, m->problem);
	if (at == m->text)
		return err_set(err, -EINVAL,
			       "`%.*s` starts no instruction: they read like `r1 = 5`, "
			       "`if r1 > r2 goto +3`, `r0 = *(u64 *)(r1 + 8)`, `call 6`, `exit`",
			       length ?: 1, at);
	describe_wanted(m, wanted, sizeof(wanted));
	if (!*at)
		return err_set(err, -EINVAL, "the line ends where %s was expected", wanted);
	return err_set(err, -EINVAL, "expected %s, not `%.*s`", wanted, length ?: 1, at);
}

int asm_match(const char *text, struct asm_match *ret, size_t *column, struct err *err)
{
	struct matcher m = { .text = text };
	bool found = try_invalid(&m);

	for (int op = 0; op < ISA_NOPS && !found; op++)
		found = try_row(&m, isa_row(op));
	if (!found)
		return no_match(&m, column, err);
	*ret = m.match;
	return 0;
}
