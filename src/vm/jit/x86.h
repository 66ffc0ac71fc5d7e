/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the x86-64 back end (x86.c and x86_*.c).
 *
 * r0 to r9 are rax rdi rsi rdx rcx r8 rbx r13 r14 r15. r10 is no register: the stack pointer does
 * not move within a body, so that [r10 + off] is [rsp + frame + off]; on the vm's own stack
 * (checked mode) r10 is rbp. r9, r10, r11 are scratch within one instruction. No flags live from one
 * instruction to the next, but those that `zero` tells of.
 *
 * A function is emitted twice when it has jumps forward: the first time gives bounds of the
 * distances, from which the second takes the short jumps. Both are linear.
 */
#pragma once

#include "vm/jit/jit.h"
#include "vm/jit/x86_encode.h"

/* Room that one instruction of the form takes at most (a switch's table apart), or a prologue, or
 * what precedes a block; and all stubs together. */
#define X86_INSN_ROOM 256
#define X86_STUB_ROOM 1024

/* jit_code.stub */
enum x86_stub { X86_STUB_OVERFLOW, X86_STUB_SPENT, X86_STUB_CALLX, X86_STUB_MISS };

/* jit_code.cpu */
#define X86_CPU_BMI2        1
#define X86_CPU_SLOW_DIVIDE 2 /* of 64 bits, whatever the operands are */

/* jit_patch.kind: the field is a rel32, counted from its end. */
enum { X86_PATCH_REL32 };

struct x86;

/* Code behind the function for what seldom happens. */
struct x86_slow {
	void (*emit)(struct x86 *x, const struct x86_slow *slow);
	struct jit_insn insn;
	uint32_t from;  /* the rel32 field that jumps here */
	uint32_t back;  /* offset to go on at */
	uint32_t block; /* ... or the block */
	uint8_t reg;
};

/* A jump to a block, whose field is filled in when the function is complete. */
struct x86_jump {
	uint32_t field; /* offset, 1 byte when brief, else 4 */
	uint32_t block; /* JIT_NOWHERE: nothing to fill in */
	uint32_t bound; /* of the jump's offset, when emitted first */
	bool brief;
};

struct x86_block {
	uint32_t start;  /* offset */
	uint32_t bound;  /* ... at most, if all padding is as long as it can be */
	uint32_t number; /* in the order; JIT_NOWHERE: left out, since all go to its goal */
	uint32_t goal;   /* block that a jump to this one ends at */
	uint32_t nfrom;  /* branches and jumps that lead here, and the block of the last one */
	uint32_t from;
	/* Its branch only chooses what this machine register becomes (X86_NONE: it does more), which
	 * is then `chosen_taken`, else the other one of 0 and 1; both ways lead to `otherwise`. */
	uint8_t chosen;
	bool chosen_taken;
	uint32_t otherwise;
	uint32_t loop; /* bytes up to the end of the last jump back to it, when emitted first */
};

#define X86_PINS  3
#define X86_VAGUE 16

struct x86_pin {
	uint64_t value;
	uint8_t reg;
};

struct x86 {
	struct x86_emit e;
	struct jit_code *code;
	const struct jit_function *function;
	const struct jit_runtime *runtime;
	bool brief, bmi2, narrow, budget;
	bool aligned;         /* keeps the stack pointer a multiple of 16: somebody is called */
	bool framed;          /* r10 is used */
	bool second;          /* time of emission */
	bool last;            /* ... and what it says is what counts */
	bool repeat_epilogue; /* it is short */
	bool on_heap;         /* r10 is rbp */
	int32_t frame;        /* r10 = rsp + frame */
	uint32_t locals;      /* what the prologue takes off rsp */
	uint32_t area;        /* [rsp + area]: five words for arguments, checked mode */
	uint16_t saved;       /* machine registers, in the order of their numbers */
	uint32_t padding, most_padding; /* so far, in this emission */
	uint32_t next;                  /* block that follows, JIT_NOWHERE: none */
	uint32_t last_place;            /* insn of the last place */
	/* The flags are those of a test of a machine register (X86_NONE: they are not). Without
	 * `zero_logic`, carry and overflow are something else's. */
	uint8_t zero, zero_width;
	bool zero_logic;
	uint32_t block;  /* that is emitted */
	uint32_t number; /* of the block that is emitted, in the order */
	uint8_t map[11]; /* the machine register that holds r0 to r10 now */
	/* Constants in registers of their own: bits of machine registers; of BPF registers that are
	 * held there now. */
	struct x86_pin pins[X86_PINS];
	unsigned int npins;
	uint16_t pinned, aliased;
	bool pins_loaded;
	/* Moves of 1 that may as well be of 0: a setcc follows. */
	uint32_t vague[X86_VAGUE];
	unsigned int nvague;
	struct x86_block *blocks;
	struct x86_jump *jumps;
	uint32_t njumps, jumps_capacity;
	struct x86_slow *slows;
	uint32_t nslows, slows_capacity;
	int error;
};

/* ---- x86_operand.c ---- */
extern const uint8_t x86_registers[11];

/* The machine register that holds r@reg; the frame pointer is computed into @scratch. */
unsigned int x86_use(struct x86 *x, uint8_t reg, unsigned int scratch);
/* Memory operand of an instruction. May need @scratch. */
struct x86_mem x86_operand(struct x86 *x, const struct jit_insn *insn, unsigned int scratch);
/* A word at a fixed address; out of reach it takes @scratch. For the very next instruction, which
 * must have no immediate. */
struct x86_mem x86_absolute(struct x86 *x, const void *address, unsigned int scratch);
/* The shortest way to a 64-bit constant that may be an address. Keeps the flags only if the value
 * is not 0. */
void x86_constant(struct x86 *x, unsigned int reg, uint64_t value);
/* Can any instruction of the code refer to that address? */
bool x86_reaches(const struct x86 *x, uint64_t address);
/* A call or jump (opcode 0xe8, 0xe9) to an offset of the code, or jcc (0x0f80 | condition). */
void x86_branch_to(struct x86 *x, unsigned int opcode, uint32_t offset);
/* A call of a C function, near if it may be. r11 is lost. */
void x86_call_address(struct x86 *x, uint64_t address);
/* The flags are those of testing machine register @reg. logic: all of them, else ZF and SF. */
void x86_flags_are(struct x86 *x, unsigned int reg, unsigned int width, bool logic);

static inline uint32_t x86_offset(const struct x86 *x)
{
	return (uint32_t)(x->e.at - x->code->bytes);
}

static inline bool x86_is_live(const struct jit_insn *insn, unsigned int reg)
{
	return insn->live >> reg & 1;
}

/* ---- x86_jump.c ---- */
/* Leaves for the end of the function when @condition holds. NULL: no memory, x->error says so.
 * Valid until the next one. */
struct x86_slow *x86_slow_if(struct x86 *x, unsigned int condition, const struct jit_insn *insn,
			     void (*emit)(struct x86 *x, const struct x86_slow *slow));
/* Where the slow part comes back to: here. */
void x86_slow_back(struct x86 *x, struct x86_slow *slow);
/* ... all of them, behind the function's blocks. */
void x86_emit_slow(struct x86 *x);
/* condition -1: always. Any jump goes to the block's goal. */
void x86_jump_to_block(struct x86 *x, int condition, uint32_t block);
void x86_fill_jumps(struct x86 *x);
void x86_switch(struct x86 *x, const struct jit_insn *insn, uint32_t otherwise);
void x86_new_place(struct x86 *x, uint32_t insn);
void x86_table_place(struct x86 *x, uint32_t insn);
int x86_step(struct jit_code *code, uint32_t offset, uint32_t depth, uint8_t reg, uint32_t slot);
void x86_frame_step(struct x86 *x, uint32_t depth, uint8_t reg);
/* A rel32 field with the distance to a function. */
void x86_patch(struct x86 *x, uint32_t function);

static inline void x86_place(struct x86 *x, uint32_t insn)
{
	if (insn != x->last_place && x->last)
		x86_new_place(x, insn);
}

bool x86_is_full(struct x86 *x);

/* Is there room for @bytes? Else it is over. */
static inline bool x86_has_room(struct x86 *x, size_t bytes)
{
	if (x->code->capacity - x86_offset(x) >= bytes && !x->code->full)
		return true;
	return x86_is_full(x);
}

/* ---- x86_pin.c ---- */
void x86_plan_pins(struct x86 *x);
void x86_load_pins(struct x86 *x);
/* The register that holds a constant, or X86_NONE. */
unsigned int x86_pin_of(const struct x86 *x, uint64_t value);
/* Instead of the move of a constant at insns[0], which @left others follow in its block, these read
 * the constant's register: false when they cannot. */
bool x86_read_pin(struct x86 *x, const struct jit_insn *insns, uint32_t left);
/* Registers that have been written hold what they should. */
void x86_end_pins(struct x86 *x, uint16_t written);

/* ---- x86_frame.c ---- */
void x86_plan_frame(struct x86 *x);
void x86_prologue(struct x86 *x);
void x86_epilogue(struct x86 *x);

/* ---- x86_blocks.c ---- */
/* Where jumps lead, which blocks are left to emit, and in what order: @sequence has room for all. */
void x86_plan_blocks(struct x86 *x, uint32_t *sequence, uint32_t *nsequence);
/* Is what r@reg holds at the end of a block known to fit in so many bytes, fewer than 8? */
bool x86_has_bytes(const struct x86 *x, uint32_t block, uint8_t reg, unsigned int bytes);
/* Is the move of 1 as good as one of 0? */
bool x86_is_vague(const struct x86 *x, const struct jit_insn *insn);
/* The only instruction of a block, or NULL. */
const struct jit_insn *x86_only_insn(const struct jit_function *function, uint32_t block);

/* ---- x86_stubs.c ---- */
int x86_begin(struct jit_code *code, uint32_t *enter);

/* ---- x86_alu.c ---- */
void x86_alu(struct x86 *x, const struct jit_insn *insn, enum x86_alu op);
void x86_multiply(struct x86 *x, const struct jit_insn *insn);
void x86_shift(struct x86 *x, const struct jit_insn *insn, enum x86_shift op);
void x86_negate(struct x86 *x, const struct jit_insn *insn);
void x86_move(struct x86 *x, const struct jit_insn *insn);
void x86_extend(struct x86 *x, const struct jit_insn *insn);
void x86_swap(struct x86 *x, const struct jit_insn *insn);
void x86_address(struct x86 *x, const struct jit_insn *insn);
/* Compares as a branch does; returns the condition under which it is taken. */
enum x86_condition x86_compare(struct x86 *x, const struct jit_insn *insn);

/* ---- x86_divide.c ---- */
void x86_divide(struct x86 *x, const struct jit_insn *insn);

/* ---- x86_memory.c ---- */
void x86_load_insn(struct x86 *x, const struct jit_insn *insn);
void x86_store_insn(struct x86 *x, const struct jit_insn *insn);
void x86_modify(struct x86 *x, const struct jit_insn *insn);
void x86_atomic(struct x86 *x, const struct jit_insn *insn);
void x86_compare_exchange(struct x86 *x, const struct jit_insn *insn);
void x86_check(struct x86 *x, const struct jit_insn *insn);
/* @null: block to go to at once when there is no such element, JIT_NOWHERE: go on with r0 = 0. */
void x86_array(struct x86 *x, const struct jit_insn *insn, uint32_t null);

/* ---- x86_call.c ---- */
void x86_call_c(struct x86 *x, const struct jit_insn *insn);
void x86_call_local(struct x86 *x, const struct jit_insn *insn);
void x86_callx(struct x86 *x, const struct jit_insn *insn);
void x86_code_address(struct x86 *x, const struct jit_insn *insn);
void x86_double(struct x86 *x, const struct jit_insn *insn);
