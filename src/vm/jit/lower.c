// SPDX-License-Identifier: BSD-2-Clause
/*
 * From the validated instructions of one function to blocks. Every operation of insn.def has its
 * case here: the switch has no default, so that a new row does not compile without one.
 */
#include "vm/checked.h"
#include "vm/jit/passes.h"

#include <errno.h>
#include <stdlib.h>

/* Registers that an instruction may read although nobody wrote them: room to clear them. */
#define ENTRY_ROOM 5

struct lowering {
	struct jit_function *function;
	const struct bpf_insn *code; /* of the function */
	uint32_t count, first;
	uint16_t *ops;      /* enum isa_op by instruction */
	uint32_t *block_at; /* block that starts at an instruction, JIT_NOWHERE: none */
	uint32_t at;        /* instruction that is lowered, from the function's first */
	uint32_t block;     /* that is filled */
	const struct bpf_insn *insn;
	const struct isa_row *row;
};

static int32_t jump_distance(const struct isa_row *row, const struct bpf_insn *insn)
{
	return row->form == ISA_FORM_GOTOL ? insn->imm : insn->off;
}

static bool jumps(const struct isa_row *row)
{
	return row->form == ISA_FORM_JUMP_K || row->form == ISA_FORM_JUMP_X ||
	       row->form == ISA_FORM_GOTO || row->form == ISA_FORM_GOTOL;
}

/* Numbers the blocks in program order. Block 0 is the entry, to which nothing jumps. */
static void find_blocks(struct lowering *l)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i <= l->count; i++)
		l->block_at[i] = JIT_NOWHERE;
	for (uint32_t i = 0; i < l->count;) {
		const struct isa_row *row;

		l->ops[i] = isa_find(&l->code[i]);
		row = isa_row(l->ops[i]);
		if (jumps(row)) {
			l->block_at[(int64_t)i + 1 + jump_distance(row, &l->code[i])] = 0;
			l->block_at[i + 1] = 0;
		} else if (row->form == ISA_FORM_EXIT) {
			l->block_at[i + 1] = 0;
		}
		i += isa_slots(row);
	}
	for (uint32_t i = 0; i < l->count; i++)
		if (l->block_at[i] != JIT_NOWHERE)
			l->block_at[i] = n++;
	l->function->nblocks = n;
}

static struct jit_insn *emit(struct lowering *l, enum jit_op op)
{
	struct jit_function *function = l->function;
	struct jit_insn *insn = &function->insns[function->ninsns++];

	*insn = (struct jit_insn){ .op = op,
				   .width = l->row->width,
				   .dst = JIT_NONE,
				   .a = JIT_NONE,
				   .b = JIT_NONE,
				   .base = JIT_NONE,
				   .index = JIT_NONE,
				   .insn = l->first + l->at };
	return insn;
}

/* The immediate, as an operation of that width sees it. */
static uint64_t immediate(const struct lowering *l)
{
	return l->row->width == 4 ? (uint32_t)l->insn->imm : (uint64_t)(int64_t)l->insn->imm;
}

static void operand_b(const struct lowering *l, struct jit_insn *insn)
{
	if (l->row->form == ISA_FORM_ALU_X || l->row->form == ISA_FORM_JUMP_X)
		insn->b = l->insn->src_reg;
	else
		insn->imm = immediate(l);
}

static void alu(struct lowering *l, enum jit_op op)
{
	struct jit_insn *insn = emit(l, op);

	insn->dst = insn->a = l->insn->dst_reg;
	insn->flags = l->row->flags & ISA_FLAG_SIGNED ? JIT_FLAG_SIGNED : 0;
	operand_b(l, insn);
	if (op == JIT_LSH || op == JIT_RSH || op == JIT_ARSH)
		insn->imm &= 8 * insn->width - 1;
}

static void negate(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_NEG);

	insn->dst = insn->a = l->insn->dst_reg;
}

static void move(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_MOV);

	insn->dst = l->insn->dst_reg;
	if (l->row->form == ISA_FORM_ALU_X)
		insn->a = l->insn->src_reg;
	else
		insn->imm = immediate(l);
}

static void sign_extend(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_EXT);

	insn->dst = l->insn->dst_reg;
	insn->a = l->insn->src_reg;
	insn->size = l->row->value / 8;
	insn->flags = JIT_FLAG_SIGNED;
}

/* Conversions between byte orders; all machines with a back end are little endian. */
static void endian(struct lowering *l, enum jit_op op)
{
	struct jit_insn *insn = emit(l, op);

	insn->dst = insn->a = l->insn->dst_reg;
	insn->size = l->row->value / 8;
	insn->width = 8;
}

static void load_constant(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_MOV);

	insn->dst = l->insn->dst_reg;
	insn->imm = (uint64_t)(uint32_t)l->insn[1].imm << 32 | (uint32_t)l->insn[0].imm;
}

static void load_function(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_CODE);

	insn->dst = l->insn->dst_reg;
	insn->target = l->insn->imm;
}

/* The validator has seen that [r10 + constant] lies in the frame. */
static void check(struct lowering *l, uint8_t base, int16_t off, uint8_t bytes, bool writes)
{
	struct jit_insn *insn;

	if (!l->function->checked || base == ISA_FRAME)
		return;
	insn = emit(l, JIT_CHECK);
	insn->base = base;
	insn->off = off;
	insn->imm = bytes;
	insn->flags = writes ? JIT_FLAG_WRITE : 0;
	insn->target = l->function->nchecks++;
}

static struct jit_insn *memory(struct lowering *l, enum jit_op op, uint8_t base)
{
	struct jit_insn *insn;

	check(l, base, l->insn->off, l->row->width, op != JIT_LOAD);
	insn = emit(l, op);
	insn->base = base;
	insn->off = l->insn->off;
	insn->size = l->row->width;
	insn->width = 8;
	return insn;
}

static void load(struct lowering *l)
{
	struct jit_insn *insn = memory(l, JIT_LOAD, l->insn->src_reg);

	insn->dst = l->insn->dst_reg;
	insn->flags = l->row->flags & ISA_FLAG_SIGNED ? JIT_FLAG_SIGNED : 0;
}

static void store(struct lowering *l)
{
	struct jit_insn *insn = memory(l, JIT_STORE, l->insn->dst_reg);

	if (l->row->form == ISA_FORM_STORE_X)
		insn->b = l->insn->src_reg;
	else
		insn->imm = (int64_t)l->insn->imm;
}

static void atomic(struct lowering *l, enum jit_op op)
{
	struct jit_insn *insn = memory(l, JIT_ATOMIC, l->insn->dst_reg);

	insn->sub = op;
	insn->b = l->insn->src_reg;
	insn->flags = l->row->flags & ISA_FLAG_FETCH ? JIT_FLAG_FETCH : 0;
}

static void compare_exchange(struct lowering *l)
{
	memory(l, JIT_CMPXCHG, l->insn->dst_reg)->b = l->insn->src_reg;
}

static void branch(struct lowering *l, enum jit_condition condition)
{
	struct jit_block *block = &l->function->blocks[l->block];
	struct jit_insn *insn = emit(l, JIT_BRANCH);

	insn->sub = condition;
	insn->a = l->insn->dst_reg;
	operand_b(l, insn);
	block->taken = l->block_at[(int64_t)l->at + 1 + l->insn->off];
	block->next = l->block_at[l->at + 1];
}

static void jump(struct lowering *l)
{
	emit(l, JIT_JUMP);
	l->function->blocks[l->block].next =
		l->block_at[(int64_t)l->at + 1 + jump_distance(l->row, l->insn)];
}

/* Arithmetic that is done here instead of called; a call that is not allowed stays one. */
static bool is_on_doubles(const struct jit_function *function, const struct vm_native *native)
{
	return native->intrinsic >= VM_F64_ADD && native->intrinsic <= VM_F64_TO_S64 &&
	       function->passes & VM_PASS_INLINE && (!function->checked || native->contract);
}

static void call_native(struct lowering *l)
{
	const struct vm_native *native = &l->function->image->natives[l->insn->imm];
	struct jit_insn *insn;

	if (is_on_doubles(l->function, native)) {
		insn = emit(l, JIT_F64);
		insn->sub = native->intrinsic;
		return;
	}
	/* The key, which the call reads also when it is inlined. */
	if (native->intrinsic == VM_ARRAY_LOOKUP)
		check(l, 2, 0, sizeof(uint32_t), false);
	insn = emit(l, JIT_CALL_C);
	insn->target = l->insn->imm;
	insn->size = native->with_context ? VM_MAX_ARGUMENTS : native->nargs;
	if (l->function->checked && !contract_demands(native->contract))
		insn->flags = JIT_FLAG_DIRECT;
}

static void call_local(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_CALL_LOCAL);

	insn->target = jit_function_at(l->function->vm, l->first + l->at + 1 + l->insn->imm);
	insn->size = VM_MAX_ARGUMENTS;
}

static void call_register(struct lowering *l)
{
	struct jit_insn *insn = emit(l, JIT_CALLX);

	insn->a = isa_callx_register(l->insn);
	insn->size = VM_MAX_ARGUMENTS;
}

#define ALU(id)              \
	case ISA_##id##64_K: \
	case ISA_##id##64_X: \
	case ISA_##id##32_K: \
	case ISA_##id##32_X

#define COMPARE(id, condition)        \
	case ISA_##id##64_K:          \
	case ISA_##id##64_X:          \
	case ISA_##id##32_K:          \
	case ISA_##id##32_X:          \
		branch(l, condition); \
		return

#define ATOMIC(id, op)         \
	case ISA_##id##32:     \
	case ISA_##id##64:     \
		atomic(l, op); \
		return

static void lower_insn(struct lowering *l)
{
	switch ((enum isa_op)l->ops[l->at]) {
		ALU(ADD) : alu(l, JIT_ADD);
		return;
		ALU(SUB) : alu(l, JIT_SUB);
		return;
		ALU(MUL) : alu(l, JIT_MUL);
		return;
		ALU(DIV) : ALU(SDIV) : alu(l, JIT_DIV);
		return;
		ALU(MOD) : ALU(SMOD) : alu(l, JIT_MOD);
		return;
		ALU(OR) : alu(l, JIT_OR);
		return;
		ALU(AND) : alu(l, JIT_AND);
		return;
		ALU(XOR) : alu(l, JIT_XOR);
		return;
		ALU(LSH) : alu(l, JIT_LSH);
		return;
		ALU(RSH) : alu(l, JIT_RSH);
		return;
		ALU(ARSH) : alu(l, JIT_ARSH);
		return;
	case ISA_NEG64:
	case ISA_NEG32:
		negate(l);
		return;
		ALU(MOV) : move(l);
		return;
	case ISA_MOVSX64_8:
	case ISA_MOVSX64_16:
	case ISA_MOVSX64_32:
	case ISA_MOVSX32_8:
	case ISA_MOVSX32_16:
		sign_extend(l);
		return;
	case ISA_LE16:
	case ISA_LE32:
		endian(l, JIT_EXT);
		return;
	case ISA_LE64:
		return;
	case ISA_BE16:
	case ISA_BE32:
	case ISA_BE64:
	case ISA_BSWAP16:
	case ISA_BSWAP32:
	case ISA_BSWAP64:
		endian(l, JIT_BSWAP);
		return;
		COMPARE(JEQ, JIT_EQ);
		COMPARE(JGT, JIT_GT);
		COMPARE(JGE, JIT_GE);
		COMPARE(JSET, JIT_SET);
		COMPARE(JNE, JIT_NE);
		COMPARE(JSGT, JIT_SGT);
		COMPARE(JSGE, JIT_SGE);
		COMPARE(JLT, JIT_LT);
		COMPARE(JLE, JIT_LE);
		COMPARE(JSLT, JIT_SLT);
		COMPARE(JSLE, JIT_SLE);
	case ISA_JA:
	case ISA_JAL:
		jump(l);
		return;
	case ISA_CALL:
		call_native(l);
		return;
	case ISA_CALL_LOCAL:
		call_local(l);
		return;
	case ISA_CALLX:
		call_register(l);
		return;
	case ISA_EXIT:
		emit(l, JIT_EXIT);
		return;
	case ISA_LDDW:
		load_constant(l);
		return;
	case ISA_LDDW_FUNC:
		load_function(l);
		return;
	case ISA_LDXB:
	case ISA_LDXH:
	case ISA_LDXW:
	case ISA_LDXDW:
	case ISA_LDSXB:
	case ISA_LDSXH:
	case ISA_LDSXW:
		load(l);
		return;
	case ISA_STB:
	case ISA_STH:
	case ISA_STW:
	case ISA_STDW:
	case ISA_STXB:
	case ISA_STXH:
	case ISA_STXW:
	case ISA_STXDW:
		store(l);
		return;
		ATOMIC(ADD_MEM, JIT_ADD);
		ATOMIC(OR_MEM, JIT_OR);
		ATOMIC(AND_MEM, JIT_AND);
		ATOMIC(XOR_MEM, JIT_XOR);
		ATOMIC(FETCH_ADD, JIT_ADD);
		ATOMIC(FETCH_OR, JIT_OR);
		ATOMIC(FETCH_AND, JIT_AND);
		ATOMIC(FETCH_XOR, JIT_XOR);
		ATOMIC(XCHG, JIT_MOV);
	case ISA_CMPXCHG32:
	case ISA_CMPXCHG64:
		compare_exchange(l);
		return;
	/* Refused by the validator. */
	case ISA_CALL_KFUNC:
	case ISA_LDDW_MAP_FD:
	case ISA_LDDW_MAP_VALUE:
	case ISA_LDDW_VARIABLE:
	case ISA_LDDW_MAP_INDEX:
	case ISA_LDDW_INDEX_VALUE:
	case ISA_LDABSW:
	case ISA_LDABSH:
	case ISA_LDABSB:
	case ISA_LDINDW:
	case ISA_LDINDH:
	case ISA_LDINDB:
	case ISA_NOPS:
		break;
	}
	emit(l, JIT_TRAP);
}

static void begin_block(struct lowering *l, uint32_t block)
{
	l->block = block;
	l->function->blocks[block] = (struct jit_block){ .first = l->function->ninsns,
							 .taken = JIT_NOWHERE,
							 .next = JIT_NOWHERE };
}

/* The instruction before @at falls through, to the block that starts there or to nothing. */
static void end_block(struct lowering *l, bool falls, uint32_t next)
{
	struct jit_block *block = &l->function->blocks[l->block];

	if (falls) {
		emit(l, next == JIT_NOWHERE ? JIT_TRAP : JIT_JUMP);
		block->next = next;
	}
	block->count = l->function->ninsns - block->first;
}

static void fill_blocks(struct lowering *l)
{
	struct jit_function *function = l->function;
	bool open = true; /* the last instruction falls through */

	l->row = isa_row(l->ops[0]);
	begin_block(l, 0);
	for (int i = 0; i < ENTRY_ROOM; i++)
		emit(l, JIT_NOP);
	for (uint32_t i = 0; i < l->count; i += isa_slots(l->row)) {
		uint32_t start = l->block_at[i], before;

		if (start != JIT_NOWHERE) {
			if (open)
				end_block(l, true, start);
			begin_block(l, start);
		}
		l->at = i;
		l->insn = &l->code[i];
		l->row = isa_row(l->ops[i]);
		before = function->ninsns;
		lower_insn(l);
		function->blocks[l->block].cost++;
		open = function->ninsns == before ||
		       !jit_is_end(function->insns[function->ninsns - 1].op);
		if (!open)
			end_block(l, false, JIT_NOWHERE);
	}
	if (open)
		end_block(l, true, JIT_NOWHERE);
}

int jit_lower(struct jit_function *function)
{
	const struct vm_code *code = &function->vm->functions[function->index];
	struct lowering l = { .function = function,
			      .code = &function->image->code[code->first],
			      .count = code->count,
			      .first = code->first };
	struct jit_arena arena;

	if (jit_scratch(function, (size_t)code->count * 8 + 32, (size_t)code->count * 8, &arena))
		return -ENOMEM;
	l.ops = jit_take(&arena, l.count, sizeof(*l.ops));
	l.block_at = jit_take(&arena, l.count + 1, sizeof(*l.block_at));
	function->ninsns = function->nblocks = function->norder = function->ntargets = 0;
	function->frame = code->frame;
	find_blocks(&l);
	/* Each instruction becomes two at most, and each block may need a jump at its end. */
	if (jit_reserve(function, 2 * (size_t)l.count + function->nblocks + ENTRY_ROOM,
			function->nblocks))
		return -ENOMEM;
	jit_populate(function->blocks, function->nblocks * sizeof(*function->blocks));
	jit_populate(function->insns, (l.count + function->nblocks) * sizeof(*function->insns));
	fill_blocks(&l);
	return 0;
}
