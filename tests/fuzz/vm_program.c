// SPDX-License-Identifier: BSD-2-Clause
#include "vm_program.h"

#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"

static int compare(const void *a, const void *b)
{
	uint32_t x = ((const struct vm_function *)a)->first;
	uint32_t y = ((const struct vm_function *)b)->first;

	return x < y ? -1 : x > y;
}

void vm_program_raw(struct vm_program *program, const uint8_t *data, size_t size)
{
	struct vm_function *functions = program->functions;
	size_t n = 1, kept = 0, ncode = size / sizeof(struct bpf_insn);

	if (ncode > VM_PROGRAM_INSNS)
		ncode = VM_PROGRAM_INSNS;
	memcpy(program->code, data, ncode * sizeof(struct bpf_insn));
	functions[0].first = 0;
	for (size_t i = 0; i < ncode; i++)
		if (program->code[i].code == (BPF_JMP | BPF_CALL) &&
		    program->code[i].src_reg == BPF_PSEUDO_CALL &&
		    i + 1 + program->code[i].imm < ncode)
			functions[n++].first = i + 1 + program->code[i].imm;
	qsort(functions, n, sizeof(*functions), compare);
	for (size_t i = 0; i < n; i++)
		if (!i || functions[i].first != functions[kept - 1].first)
			functions[kept++].first = functions[i].first;
	for (size_t i = 0; i < kept; i++) {
		functions[i].name = "function";
		functions[i].nargs = 5;
		functions[i].count =
			(i + 1 < kept ? functions[i + 1].first : ncode) - functions[i].first;
	}
	program->ncode = ncode;
	program->nfunctions = kept;
}

/* What is known of an instruction while the others are not there yet. */
struct maker {
	struct vm_program *program;
	const uint8_t *data;
	uint32_t start[VM_PROGRAM_INSNS + 1];     /* slot of each eight bytes */
	uint32_t function[VM_PROGRAM_INSNS];      /* that they belong to */
	uint32_t first[VM_PROGRAM_FUNCTIONS + 1]; /* input of each function */
	uint64_t memory;
	size_t nnatives, n, nfunctions;
};

static enum isa_op op_of(const uint8_t *bytes)
{
	enum isa_op op = bytes[0] % ISA_NOPS;

	if (isa_row(op)->form == ISA_FORM_PACKET)
		return ISA_LDXDW; /* what programs do most, beside moving */
	if (isa_row(op)->form == ISA_FORM_LDDW && op != ISA_LDDW_FUNC)
		return ISA_LDDW;
	return op == ISA_CALL_KFUNC ? ISA_CALL : op;
}

/* Registers that nobody has given a value hold anything: a function begins with r0 and r6 to r9,
 * and after a call come r1 to r5. */
#define ENTRY 5
#define LOST  5

static bool is_call(enum isa_op op)
{
	return op == ISA_CALL || op == ISA_CALL_LOCAL || op == ISA_CALLX;
}

static struct bpf_insn set(uint32_t reg, int32_t value)
{
	return (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K,
				  .dst_reg = reg,
				  .imm = value };
}

/* Bytes that begin a function: the six highest values of the second byte, which are no registers. */
static bool begins_function(const uint8_t *bytes)
{
	return bytes[1] >= 0xfa;
}

static int32_t jump(const struct maker *maker, size_t i, const uint8_t *bytes)
{
	uint32_t function = maker->function[i], first = maker->first[function];
	uint32_t n = maker->first[function + 1] - first;
	/* Near ones mostly, as in programs. */
	uint32_t to = bytes[3] & 1 ? first + bytes[2] % n : i + 1 + bytes[2] % 8;

	if (to >= first + n)
		to = first + n - 1;
	return (int32_t)maker->start[to] - (int32_t)maker->start[i] - 1;
}

static uint64_t constant(const struct maker *maker, const uint8_t *bytes)
{
	int32_t imm;

	memcpy(&imm, bytes + 4, sizeof(imm));
	if (bytes[2] & 1)
		return maker->memory + bytes[4] % (VM_PROGRAM_MEMORY + 16);
	return (uint64_t)imm << bytes[2] % 33;
}

static void make_fields(const struct maker *maker, size_t i, const struct isa_row *row,
			struct bpf_insn *insn)
{
	const uint8_t *bytes = maker->data + 8 * i;
	uint64_t value;
	uint32_t to;

	switch ((enum isa_form)row->form) {
	case ISA_FORM_JUMP_K:
	case ISA_FORM_JUMP_X:
	case ISA_FORM_GOTO:
		insn->off = jump(maker, i, bytes);
		break;
	case ISA_FORM_GOTOL:
		insn->imm = jump(maker, i, bytes);
		break;
	case ISA_FORM_CALL:
		insn->imm = bytes[4] % maker->nnatives;
		break;
	case ISA_FORM_CALL_LOCAL:
		to = bytes[4] % maker->nfunctions;
		insn->imm = (int32_t)maker->program->functions[to].first - maker->start[i] - 1;
		break;
	case ISA_FORM_CALLX:
		insn->imm = 0;
		break;
	case ISA_FORM_LDDW:
		value = row->value ? bytes[4] % maker->nfunctions : constant(maker, bytes);
		insn[0].imm = (uint32_t)value;
		insn[1] = (struct bpf_insn){ .imm = value >> 32 };
		break;
	case ISA_FORM_LOAD:
	case ISA_FORM_STORE_K:
	case ISA_FORM_STORE_X:
	case ISA_FORM_ATOMIC:
	case ISA_FORM_CMPXCHG:
		insn->off =
			bytes[3] & 0x80 ? (int16_t)(bytes[2] | bytes[3] << 8) : (int8_t)bytes[2];
		if ((row->form == ISA_FORM_LOAD ? insn->src_reg : insn->dst_reg) == ISA_FRAME)
			insn->off = -8 - (bytes[3] & 1 ? bytes[2] << 3 : bytes[2]);
		if (row->form == ISA_FORM_STORE_K)
			memcpy(&insn->imm, bytes + 4, sizeof(insn->imm));
		break;
	case ISA_FORM_ALU_K:
	case ISA_FORM_ALU_X:
	case ISA_FORM_MOVSX:
	case ISA_FORM_NEG:
	case ISA_FORM_ENDIAN:
	case ISA_FORM_EXIT:
	case ISA_FORM_PACKET:
		break;
	}
}

static void make_insn(const struct maker *maker, size_t i, struct bpf_insn *insn)
{
	const uint8_t *bytes = maker->data + 8 * i;
	const struct isa_row *row = isa_row(op_of(bytes));
	uint8_t form = row->form;
	bool frame = form == ISA_FORM_LOAD || form == ISA_FORM_STORE_K ||
		     form == ISA_FORM_STORE_X || form == ISA_FORM_ATOMIC ||
		     form == ISA_FORM_CMPXCHG;

	memset(insn, 0, sizeof(*insn));
	insn->code = row->opcode;
	if (form == ISA_FORM_ALU_K || form == ISA_FORM_JUMP_K)
		memcpy(&insn->imm, bytes + 4, sizeof(insn->imm));
	if (form != ISA_FORM_CALL && form != ISA_FORM_CALL_LOCAL && form != ISA_FORM_EXIT &&
	    form != ISA_FORM_GOTO && form != ISA_FORM_GOTOL)
		insn->dst_reg = (bytes[1] & 0xf) % (frame && form != ISA_FORM_LOAD ? 11 : 10);
	if (form == ISA_FORM_ALU_X || form == ISA_FORM_MOVSX || form == ISA_FORM_JUMP_X ||
	    form == ISA_FORM_LOAD)
		insn->src_reg = (bytes[1] >> 4) % 11;
	if (form == ISA_FORM_STORE_X || form == ISA_FORM_ATOMIC || form == ISA_FORM_CMPXCHG)
		insn->src_reg = (bytes[1] >> 4) % 10;
	if (row->select == ISA_SELECT_OFF)
		insn->off = row->value;
	if (row->select == ISA_SELECT_IMM)
		insn->imm = row->value;
	if (row->select == ISA_SELECT_SRC)
		insn->src_reg = row->value;
	make_fields(maker, i, row, insn);
	if (is_call(op_of(bytes)))
		for (int reg = 1; reg <= LOST; reg++)
			insn[reg] = set(reg, reg);
}

/* Where everything will be: a function ends with an exit of its own. */
static void lay_out(struct maker *maker)
{
	uint32_t slot = 0;

	for (size_t i = 0; i < maker->n; i++) {
		const uint8_t *bytes = maker->data + 8 * i;

		if (!i || (begins_function(bytes) && maker->nfunctions < VM_PROGRAM_FUNCTIONS)) {
			slot += maker->nfunctions ? 2 : 0; /* the exit of the last one */
			maker->program->functions[maker->nfunctions] = (struct vm_function){
				.name = "function", .first = slot, .nargs = 5
			};
			maker->first[maker->nfunctions++] = i;
			slot += ENTRY;
		}
		maker->function[i] = maker->nfunctions - 1;
		maker->start[i] = slot;
		slot += isa_slots(isa_row(op_of(bytes)));
		if (is_call(op_of(bytes)))
			slot += LOST;
	}
	maker->first[maker->nfunctions] = maker->n;
	maker->program->ncode = slot + 2;
}

void vm_program_made(struct vm_program *program, const uint8_t *data, size_t size, uint64_t memory,
		     size_t nnatives)
{
	static struct maker maker; /* too large for the stack */
	struct bpf_insn *code = program->code;

	maker = (struct maker){ .program = program,
				.data = data,
				.memory = memory,
				.nnatives = nnatives,
				.n = size / 8 < VM_PROGRAM_INSNS ? size / 8 : VM_PROGRAM_INSNS };
	if (!maker.n) {
		program->ncode = program->nfunctions = 0;
		return;
	}
	lay_out(&maker);
	for (size_t i = 0; i < maker.n; i++)
		make_insn(&maker, i, &code[maker.start[i]]);
	for (size_t i = 0; i < maker.nfunctions; i++) {
		struct vm_function *function = &program->functions[i];
		uint32_t end = i + 1 < maker.nfunctions ? function[1].first : program->ncode;

		function->count = end - function->first;
		code[function->first] = set(0, 0);
		for (int reg = 6; reg <= 9; reg++)
			code[function->first + reg - 5] = set(reg, -reg);
		code[end - 2] =
			(struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .src_reg = 6 };
		code[end - 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	}
	program->nfunctions = maker.nfunctions;
}
