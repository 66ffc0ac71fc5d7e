/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the arm64 back end. Registers:
 *
 *	r1-r5   x0-x4, C's argument registers
 *	r0      x0 as long as r1 does not need it, else x7: arm64_home.c
 *	r6-r9   x19-x22; x5, x6, x8, x9 in a function that calls nothing, which then saves nothing
 *	r10     sp + a constant; in checked mode x25, or x10 where nothing is called
 *	scratch x16, x17, x11, x12
 *	x23-x28, and in functions that call nothing x13-x15: constants that loops need
 *	x18 belongs to the platform and is never touched
 *
 * A function is emitted for short branches first; when it turns out to be too long for them, it is
 * emitted again (enum a64_reach). A first emission also tells which constants its loops need.
 */
#pragma once

#include "vm/jit/arm64_encode.h"
#include "vm/jit/jit.h"

#define A64_R0_APART 7 /* where r0 is when x0 is r1's */

#define A64_T0 16
#define A64_T1 17
#define A64_T2 11
#define A64_T3 12

enum a64_reach {
	A64_REACH_TEST, /* all branches are short: tbz reaches 32 KiB */
	A64_REACH_COND, /* 1 MiB: no tbz */
	A64_REACH_FAR,  /* conditional branches go round an unconditional one; no literals */
};

enum a64_stub {
	A64_STUB_CALLX,    /* x16: what is called -> x16: the machine address */
	A64_STUB_MISS,     /* x16: address, x17: number of the check; keeps all that is in use */
	A64_STUB_CHECKED,  /* x16: number of the native; x0-x4: arguments -> x0: result */
	A64_STUB_OVERFLOW, /* is jumped to */
	A64_STUB_SPENT,
};

/* What belongs to a function's code but is not in its way. */
struct a64_aside {
	const struct jit_insn *insn;
	uint32_t label, back;
	enum a64_stub stub;
	int address; /* register with what is checked */
};

struct a64_fixup {
	uint32_t at, label;
	uint32_t table; /* a word of a jump table that starts there; JIT_NOWHERE: an instruction */
};

/* A constant that is loaded from behind the code, or kept in a register. */
struct a64_constant {
	uint64_t value;
	uint64_t weight; /* times that it is needed, guessed */
	uint32_t label;
	uint32_t function; /* value is this function's address, JIT_NOWHERE: as it is */
	int reg;
};

struct a64_list {
	size_t count, capacity;
};

struct a64 {
	struct jit_code *code;
	const struct jit_function *function;
	bool lse; /* the processor has atomic instructions */
	enum a64_reach reach;
	bool too_far;      /* a branch did not reach: again */
	bool out_of_reach; /* a call did not: there is nothing for it */
	int rc;            /* -ENOMEM */

	struct jit_function own; /* the function, tidied: what is emitted */
	uint8_t map[11];
	uint8_t plain[11]; /* ... without constants that a register stands for */
	uint8_t *homes;    /* of r0 at the beginning and the end of each block */
	bool apart;        /* r0 was in A64_R0_APART somewhere */
	uint8_t now;       /* of r0 at this point */
	uint8_t next;      /* of r0 when it is written */
	bool leaf;         /* calls nothing */
	bool frame_on_sp;  /* r10 is sp + frame_top */
	uint32_t total;    /* bytes that sp goes down */
	uint32_t frame_top;
	uint8_t saved[20]; /* registers, in the order of the frame */
	int nsaved;

	uint32_t *labels; /* offsets, JIT_NOWHERE while unknown; blocks come first */
	struct a64_list labels_list;
	struct a64_fixup *fixups;
	struct a64_list fixups_list;
	struct a64_aside *asides;
	struct a64_list asides_list;
	struct a64_constant *literals;
	struct a64_list literals_list;
	struct a64_constant hoisted[16];
	int nhoisted;
	bool collecting; /* which constants are worth a register */
	uint16_t depth;  /* of the block being emitted */

	/* Steps of addresses that an access further up did already. */
	const struct jit_insn *stepped[8];
	int nstepped;

	uint16_t *preds;   /* how many blocks go to a block */
	uint8_t *consumed; /* blocks that became part of another */
};

static inline bool a64_pass(const struct a64 *e, enum vm_pass pass)
{
	return e->function->passes & pass;
}

static inline bool a64_wide(const struct jit_insn *in)
{
	return in->width == 8;
}

/* The constant operand, as wide as the operation. */
static inline uint64_t a64_imm(const struct jit_insn *in)
{
	return in->width == 8 ? in->imm : (uint32_t)in->imm;
}

/* ---- arm64_emit.c: words, labels, constants ---- */
bool a64_grow(void *array, size_t element, struct a64_list *list, int *rc); /* room for one more */
void a64_out(struct a64 *e, uint32_t word);
uint32_t a64_here(const struct a64 *e);
uint64_t a64_here_address(const struct a64 *e);
void a64_place(struct a64 *e, uint32_t insn);
void a64_table_place(struct a64 *e, uint32_t insn);
void a64_step(struct jit_code *code, int *rc, uint32_t depth, uint8_t reg, uint32_t slot);
uint32_t a64_label(struct a64 *e);
void a64_bind(struct a64 *e, uint32_t label);
/* A branch with distance 0, to be put right; conditional ones go round when reach is FAR. */
void a64_branch_to(struct a64 *e, uint32_t word, uint32_t label);
void a64_refer(struct a64 *e, uint32_t label, uint32_t table);
/* Puts all labels in. */
void a64_resolve(struct a64 *e);
/* rd = value, in as few instructions as there are; rd is not SP. */
void a64_move_imm(struct a64 *e, int rd, uint64_t value);
/* A register that holds the value: one that does already, the zero register, or @scratch. */
int a64_constant(struct a64 *e, uint64_t value, int scratch);
/* A register that holds it all along; -1: none, but the wish is noted. */
int a64_hoisted(struct a64 *e, uint64_t value);
/* rd = rn + value (64 bits, or 32); rn and rd may be SP for 64. Uses @scratch for far values. */
void a64_add_imm(struct a64 *e, bool wide, int rd, int rn, int64_t value, int scratch);
/* What comes here when the address of the function is known. */
enum a64_patch { A64_PATCH_CALL, A64_PATCH_ADDRESS };
void a64_patch(struct a64 *e, uint32_t function, enum a64_patch kind);
/* rd = the native address of a function of the vm. */
void a64_function_address(struct a64 *e, int rd, uint32_t function);
void a64_literals(struct a64 *e);
/* Moves, when they differ. */
void a64_copy(struct a64 *e, int rd, int rn);

/* ---- arm64_tidy.c, arm64_home.c: 0 or -ENOMEM ---- */
int a64_tidy(struct a64 *e);
void a64_untidy(struct a64 *e);
int a64_find_homes(struct a64 *e);
/* May r0 not be in x0 after this instruction? */
bool a64_disturbs(const struct jit_insn *in);
/* Before an instruction, and before the end of a block. */
void a64_leave_x0(struct a64 *e, const struct jit_insn *in);
void a64_settle(struct a64 *e, bool alive, uint8_t home);

/* ---- registers ---- */
/* What is written in fact: what counts as lost where C is not called is not. */
static inline uint16_t a64_writes(const struct jit_insn *in)
{
	return in->op == JIT_ARRAY || in->op == JIT_F64 ? 1 << 0 : jit_writes(in);
}

/* The machine register of a BPF register that is read; not for r10 on sp. */
int a64_use(const struct a64 *e, int r);
/* Likewise, but r10 is computed into @scratch. */
int a64_value(struct a64 *e, int r, int scratch);
/* The machine register for the result: call it after all uses. */
int a64_def(struct a64 *e, int r);

/* ---- instructions ---- */
void a64_alu(struct a64 *e, const struct jit_insn *in);    /* ADD to ARSH but DIV and MOD */
void a64_divide(struct a64 *e, const struct jit_insn *in); /* DIV, MOD */
void a64_neg(struct a64 *e, const struct jit_insn *in);
void a64_move(struct a64 *e, const struct jit_insn *in);
void a64_extend(struct a64 *e, const struct jit_insn *in);
void a64_bswap(struct a64 *e, const struct jit_insn *in);
void a64_lea(struct a64 *e, const struct jit_insn *in);
void a64_load(struct a64 *e, const struct jit_insn *in);
void a64_store(struct a64 *e, const struct jit_insn *in);
void a64_modify(struct a64 *e, const struct jit_insn *in);
void a64_atomic(struct a64 *e, const struct jit_insn *in);
void a64_cmpxchg(struct a64 *e, const struct jit_insn *in);
void a64_check(struct a64 *e, const struct jit_insn *in);
void a64_array(struct a64 *e, const struct jit_insn *in);
void a64_f64(struct a64 *e, const struct jit_insn *in);
void a64_call_c(struct a64 *e, const struct jit_insn *in);
void a64_call_local(struct a64 *e, const struct jit_insn *in);
void a64_callx(struct a64 *e, const struct jit_insn *in);
/* rd = the address base + (index << scale) + off. */
void a64_operand_address(struct a64 *e, const struct jit_insn *in, int rd);
/* base, or sp with what r10 lies above it. */
int a64_base(const struct a64 *e, const struct jit_insn *in, int64_t *off);
/* rd = rn sub rm, of a JIT_MODIFY or JIT_ATOMIC. */
void a64_combine(struct a64 *e, const struct jit_insn *in, int rd, int rn, int rm);
enum a64_access a64_access_of(const struct jit_insn *in);
/* Is the product with the constant found without a multiplication? */
bool a64_multiplies_shifting(const struct jit_insn *in);
/* Loads the memory operand into rt. */
void a64_operand_load(struct a64 *e, const struct jit_insn *in, int rt);

/* Ends of blocks. @follows: the block that comes next, JIT_NOWHERE when none; @planned: when nothing
 * had become part of another block. */
void a64_jump(struct a64 *e, uint32_t block, uint32_t follows);
void a64_branch(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		uint32_t follows, uint32_t planned);
void a64_switch(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		uint32_t follows);
void a64_exit(struct a64 *e);
bool a64_returns(const struct a64 *e, uint32_t block); /* a jump there is a return */
uint32_t a64_turned(uint32_t word);                    /* the branch on the opposite condition */
/* Emits the comparison of a branch as flags; the condition under which it is taken. */
enum a64_condition a64_compare(struct a64 *e, const struct jit_insn *in);
/* Instead of a branch round a move, a select; then the block to go on with is in @next. @before: a
 * move in front of the branch that a64_select_takes() told to leave out. */
bool a64_select(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		const struct jit_insn *before, uint32_t *next);
bool a64_select_takes(const struct a64 *e, const struct jit_block *block,
		      const struct jit_insn *move);

/* How many of the lowest bits an instruction leaves of a: zero-extension, or a mask; 0: it does more. */
int a64_kept_bits(const struct jit_insn *in);
/* Several instructions at once: how many, 0: not these. One: what others did already, or which does
 * a part of what comes later. e->next is for the last one that writes r0. */
unsigned int a64_fuse_one(struct a64 *e, const struct jit_insn *in, unsigned int left);
unsigned int a64_fuse_two(struct a64 *e, const struct jit_insn *in, unsigned int left);

/* ---- arm64_frame.c ---- */
void a64_frame_plan(struct a64 *e);
void a64_prologue(struct a64 *e);
void a64_epilogue(struct a64 *e); /* up to and with ret */
unsigned int a64_epilogue_length(const struct a64 *e);
void a64_budget(struct a64 *e, const struct jit_block *block);
void a64_asides(struct a64 *e);
/* Gives registers to the constants that loops need; false: there are none. */
bool a64_hoist(struct a64 *e);
int a64_begin(struct jit_code *code, uint32_t *enter);
void a64_call_stub(struct a64 *e, enum a64_stub stub);
void a64_jump_stub(struct a64 *e, enum a64_stub stub);
/* Calls a C function: bl, or through a scratch register. */
void a64_call_address(struct a64 *e, uint64_t address);

/* For tests: as the target's function, with atomic instructions or without. */
int a64_function(struct jit_code *code, const struct jit_function *function, bool lse);
