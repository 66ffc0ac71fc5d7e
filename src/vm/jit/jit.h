/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compiler's intermediate form and the seams between its parts:
 *
 *	lower.c      BPF instructions of one function -> blocks of struct jit_insn (driven by insn.def)
 *	passes       copy propagation, liveness and dead code, fusion, switches, layout: each edits the
 *	             function in place, is linear, and can be switched off (enum vm_pass)
 *	x86.c arm64.c  a block list in layout order -> machine code in a struct jit_code
 *	engine.c     the whole vm: memory, tables, entry from C, faults, interrupts
 *
 * The form keeps BPF's registers (r0 to r10, 64 bits each) and is three-address: `dst = a op b`.
 * Both back ends give each BPF register one machine register; r1 to r5 are the argument registers
 * of C, r0 its result, r6 to r9 callee-saved, so a compiled function is a function of C.
 * Nothing here prints, and nothing is kept between compilations.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm/vm_internal.h"

#define JIT_NONE    0xff       /* no register */
#define JIT_NOWHERE UINT32_MAX /* no block, no function */

enum jit_op {
	JIT_NOP, /* deleted */

	/* dst = a op b, or op imm when b is JIT_NONE (imm is extended: 64 bits for width 8, 32 for 4).
	 * width 4: computes on 32 bits and zero-extends, as BPF does. Shifts are masked to the width.
	 * Division by zero is 0, modulo zero is a; MIN / -1 is MIN, MIN % -1 is 0. */
	JIT_ADD,
	JIT_SUB,
	JIT_MUL,
	JIT_DIV, /* JIT_FLAG_SIGNED */
	JIT_MOD, /* JIT_FLAG_SIGNED */
	JIT_OR,
	JIT_AND,
	JIT_XOR,
	JIT_LSH,
	JIT_RSH,
	JIT_ARSH,
	JIT_NEG, /* dst = -a */

	JIT_MOV, /* dst = a, or imm when a is JIT_NONE; width 4 zero-extends */
	JIT_EXT, /* dst = the lower `size` bytes of a; SIGNED: sign-extended to width, else zero */
	JIT_BSWAP, /* dst = the lower `size` bytes of a reversed, zero-extended */
	/* dst = base + (index << scale) + off, index may be JIT_NONE; width 8, or 4: zero-extended */
	JIT_LEA,
	JIT_CODE, /* dst = native address of function `target` */

	/* Memory: [base + (index << scale) + off], `size` bytes. base r10: the frame, off negative.
	 * Any alignment. */
	JIT_LOAD,   /* dst = ...; SIGNED: sign-extended to 64 bits */
	JIT_STORE,  /* ... = b, or imm when b is JIT_NONE */
	JIT_MODIFY, /* ... sub= b or imm; sub: JIT_ADD SUB OR AND XOR. Not atomic */
	JIT_ATOMIC, /* ... sub= b; sub: JIT_ADD OR AND XOR, JIT_MOV exchanges. FETCH: b = old value,
			zero-extended, sequentially consistent; without: relaxed */
	JIT_CMPXCHG, /* if ... == r0 (lower `size` bytes) then ... = b; r0 = old value, zero-extended */
	/* Checked mode: faults unless [base + (index << scale) + off, + imm) may be read (SIGNED is not
	 * used; JIT_FLAG_WRITE: written); target: number of the check, which has a slot in the vm's
	 * table of checks. insn is the access that it stands for. */
	JIT_CHECK,

	/* Ends of a block, and only there. */
	JIT_JUMP,   /* to block->next */
	JIT_BRANCH, /* if a sub b (or imm when b is JIT_NONE) to block->taken, else block->next; with
		     * base set, a is JIT_NONE and its value `size` bytes of memory, zero-extended or by
		     * JIT_FLAG_SIGNED sign-extended; width as of the comparison */
	JIT_EXIT,   /* return r0 */
	JIT_TRAP,   /* cannot be reached in a valid program: a fault of kind EXECUTE if it is */

	/* Calls: arguments in r1 to r5 (`size`: how many of them are read), result in r0, r1 to r5 are
	 * lost. */
	JIT_CALL_C,     /* native `target` by its classes */
	JIT_CALL_LOCAL, /* function `target` */
	JIT_CALLX,      /* what a points to: jit_callx_target() tells */
	/* r0 = address of the element in array `target` (vm_image.arrays) whose uint32_t index is at
	 * [base + off], or in the lower half of a when base is JIT_NONE; past the end: 0. r1 to r5 count
	 * as lost. a and base JIT_NONE: the index is imm, known to be in range: an absolute address. */
	JIT_ARRAY,
	/* Doubles as bits in integer registers: r0 = r1 sub r2; sub: enum vm_intrinsic VM_F64_... ;
	 * r1 to r5 count as lost. */
	JIT_F64,

	/* Ends a block too: with i = a - off (unsigned, on `width` bytes), to block
	 * function->targets[target + i] if i < imm, else to block->next. */
	JIT_SWITCH,

	JIT_NOPS
};

enum jit_condition {
	JIT_EQ,
	JIT_NE,
	JIT_SET, /* a & b */
	JIT_GT,
	JIT_GE,
	JIT_LT,
	JIT_LE,
	JIT_SGT,
	JIT_SGE,
	JIT_SLT,
	JIT_SLE,
	JIT_CLEAR, /* !(a & b): made by the layout, which may turn a branch round */
};

#define JIT_FLAG_SIGNED 1
#define JIT_FLAG_FETCH  2
#define JIT_FLAG_WRITE  4
/* The result's upper half is not needed or known to be zero: a width-4 move may be a 64-bit one. */
#define JIT_FLAG_ANY_UPPER 8
/* JIT_CALL_C in checked mode: the contract demands nothing, the function is called as it is. */
#define JIT_FLAG_DIRECT 16

/* 32 bytes: new pages are much of what compiling costs. */
struct jit_insn {
	uint8_t op;        /* enum jit_op */
	uint8_t sub;       /* enum jit_condition; enum jit_op of JIT_MODIFY and JIT_ATOMIC; ... */
	uint8_t width : 4; /* of the computation: 4 or 8 */
	uint8_t scale : 4; /* of index: log2, 0 to 3 */
	uint8_t size;      /* of the memory access or extension: 1, 2, 4, 8 */
	uint8_t flags;     /* JIT_FLAG_ */
	uint8_t dst, a, b;
	uint8_t base, index;
	uint16_t live; /* bit n: rn is live after this instruction (jit_liveness()) */
	int32_t off;
	uint32_t insn;   /* index in vm_image.code, for faults, traces and listings */
	uint32_t target; /* of calls and checks: see there */
	uint64_t imm;
};
_Static_assert(sizeof(struct jit_insn) == 32, "see above");

struct jit_block {
	uint32_t first, count; /* in jit_function.insns; the last one is an end (never empty) */
	uint32_t taken, next;  /* successors, JIT_NOWHERE when there is none */
	uint16_t live_in;
	uint16_t depth; /* of loops around it */
	uint16_t align; /* bytes, a power of two: where the layout wants it to start; 0: anywhere */
	bool reachable;
	uint32_t cost; /* BPF instructions that it stands for: what it takes off a budget */
};

struct jit_function {
	struct vm *vm;
	const struct vm_image *image;
	uint32_t index; /* in image->functions */
	struct jit_insn *insns;
	uint32_t ninsns, insns_capacity;
	struct jit_block *blocks; /* 0 is the entry */
	uint32_t nblocks, blocks_capacity;
	uint32_t *
		order; /* blocks in the order of the code, without unreachable ones; starts with 0 */
	uint32_t norder;
	uint32_t frame;   /* bytes that r10 stands above, a multiple of 16 */
	uint16_t used;    /* registers that any instruction mentions */
	uint16_t written; /* ... and writes */
	bool uses_frame;  /* mentions r10 at all */
	bool calls;       /* anything at all: C, local, callx, runtime */
	bool recursive;   /* may be entered again before it returns: checks the stack */
	bool checked;     /* the frame lies on the vm's own stack: see jit_runtime.stack */
	uint32_t passes;  /* enum vm_pass bits that are on */
	const struct jit_target *target;
	struct err *err;
	uint32_t nchecks;  /* number of the next JIT_CHECK: counts on over the functions of a vm */
	uint32_t *targets; /* blocks that JIT_SWITCHes go to */
	uint32_t ntargets, targets_capacity;
	void *scratch; /* of the passes: keeps nothing between them */
	size_t scratch_size;
};

/*
 * One struct jit_function serves all functions of a vm in turn: the caller sets vm, image, index,
 * recursive, checked, passes, target and err, calls jit_lower() and jit_optimise(), emits, and goes
 * on with the next index: arrays are used again and nchecks counts on. jit_release() frees the arrays.
 */

/* ---- passes: each 0 or -ENOMEM; all need lower's blocks, most need liveness ---- */
int jit_lower(struct jit_function *function);    /* vm_image code -> blocks; counts the checks */
int jit_optimise(struct jit_function *function); /* every pass that is on, in order; sets order,
						  * used, written, live */
void jit_release(struct jit_function *function);

/* Once a vm: which functions may be entered again before they return, through calls of each other,
 * callx, or C functions that may call back. @ret: one for each function. 0 or -ENOMEM. */
int jit_find_recursion(const struct vm *vm, const struct vm_image *image, bool *ret);

/* Registers that an instruction reads and writes, a bit each; calls write what they lose. */
uint16_t jit_reads(const struct jit_insn *insn);
uint16_t jit_writes(const struct jit_insn *insn);

/* Appends the blocks in layout order as text (tests, debugging). 0 or -ENOMEM. */
struct buf;
int jit_dump(const struct jit_function *function, struct buf *ret);

/*
 * Division by a constant as multiplication, with N = bits:
 *
 *	unsigned, divisor >= 1: n >>= before; q = (mulhi(n, multiplier) + (add ? n : 0)) >> shift, where
 *	the sum has N + 1 bits: with t = mulhi(), (((n - t) >> 1) + t) >> (shift - 1) is the same (add
 *	only goes with before == 0, and with shift >= 1 unless the divisor is 1)
 *	signed, |divisor| >= 2: q = mulhi_signed(n, (signed)multiplier) + (add ? n : 0) on N bits;
 *	q = (q s>> shift) + (n < 0); negated for a negative divisor
 *
 * Powers of two are right, too, though shifts are better.
 */
struct jit_magic {
	uint64_t multiplier;
	uint8_t shift;
	uint8_t before; /* n >>= before first: even divisors that would need add */
	bool add;
};
struct jit_magic jit_magic_unsigned(uint64_t divisor, unsigned int bits);
struct jit_magic jit_magic_signed(int64_t divisor, unsigned int bits);

/* ---- code ---- */

/* Where an instruction of the vm's code went: sorted by offset. */
#define JIT_NO_INSN INT32_MAX
struct jit_place {
	uint32_t offset;    /* of the machine code, in jit_code.bytes */
	uint32_t insn : 31; /* JIT_NO_INSN: prologues and what functions share */
	uint32_t table : 1; /* what follows is the table of a switch */
};

/* What an unwinder must know of a function: after `offset`, the stack pointer is `depth` bytes
 * below where it was at entry and the machine register (DWARF number) is saved at entry - `slot`.
 * reg JIT_NONE: only the depth changes. Prologues only: epilogues are short. */
struct jit_frame_step {
	uint32_t offset;
	uint32_t depth;
	uint8_t reg;
	uint32_t slot;
};

/* Growing machine code of one vm. The final address is known from the start (`address`), so that
 * calls can be relative. A back end that runs out of room sets `full` and may go on. */
struct jit_code {
	uint8_t *bytes;   /* where to write: size up to capacity */
	uint64_t address; /* where bytes[0] will run */
	size_t size, capacity;
	bool full;
	struct jit_place *places;
	size_t nplaces, places_capacity;
	struct jit_frame_step *steps;
	size_t nsteps, steps_capacity;
	struct jit_range {
		uint32_t first, end; /* offsets of the function's code */
		uint32_t first_step, nsteps;
	} * functions; /* by index of the vm's functions; end 0: not yet emitted */
	/* Calls to functions that are not emitted yet: the engine lets the back end patch them. */
	struct jit_patch {
		uint32_t offset; /* of the instruction or of its field: the back end's own affair */
		uint32_t function;
		uint8_t kind; /* the back end's own affair */
	} * patches;
	size_t npatches, patches_capacity;
	const struct jit_runtime *runtime;
	/* What target->begin() made, which callx and misses of checks call on their way to C: no place
	 * of its own, but steps, which start at depth 0 again where another stub begins. */
	struct jit_range stubs;
	uint32_t stub[8]; /* offsets: the back end's own affair */
	uint32_t cpu;     /* what the processor has, by target->begin(): likewise */
};

/* What compiled code refers to: plain addresses, valid as long as the vm. */
struct jit_runtime {
	struct vm *vm;
	/* Thread-local lower bound of the stack, relative to the thread pointer (fs:0, tpidr_el0): a
	 * recursive function goes to `overflow` when its stack pointer would fall below: before it
	 * saves anything, and by a jump, so that the place is the call that did not succeed. */
	int64_t limit_offset;
	__attribute__((noreturn)) void (*overflow)(struct vm *vm);
	/* The machine address to call for a callx, or unwinds with VM_FAULT_EXECUTE. */
	void *(*callx_target)(struct vm *vm, uint64_t target);
	/* Instruction budget: when has_budget, each block takes its instructions off *budget when it
	 * starts and calls `spent` when that falls below zero. */
	bool has_budget;
	int64_t *budget;
	__attribute__((noreturn)) void (*spent)(struct vm *vm);
	/* Checked mode. Frames lie on the vm's own stack: a function that uses r10 sets r10 = *stack,
	 * lowers *stack by its frame, calls `overflow` when that is below stack_low, and puts *stack
	 * back before it returns. */
	uint64_t *stack;
	uint64_t stack_low;
	/* One slot a JIT_CHECK, in the data pages behind the code (within 2 GiB): the region that the
	 * access last fell into. Access allowed when address - start <= size (unsigned) where size is
	 * already less the bytes of the access; else check_miss(vm, number of the check, address),
	 * which fills in the slot, or unwinds. It keeps no argument registers: the stub saves all. */
	struct jit_check_slot {
		uint64_t start, size;
	} * checks;
	void (*check_miss)(struct vm *vm, uint32_t number, uint64_t address);
	/* Checked mode: every call of C goes through here instead (r1-r5 in @args). */
	uint64_t (*checked_call)(struct vm *vm, uint32_t native, const uint64_t *args);
};

/* ---- back ends ---- */
struct jit_target {
	const char *name; /* "x86-64", "arm64" */
	/* What fusion may make. */
	bool has_modify;         /* JIT_MODIFY */
	bool has_branch_memory;  /* JIT_BRANCH with a memory operand */
	bool has_lea_scaled_off; /* LEA and memory operands with index and off at once */
	/* Fewer cases of a switch are better compared one by one; 0: any number is. */
	unsigned int least_cases;
	/* Can one instruction access size bytes (0: LEA) at base + (index << scale) + off? */
	bool (*can_address)(bool has_index, unsigned int scale, int64_t off, unsigned int size);
	/* Once a vm, before the functions: the stub that enters from C, and shared stubs.
	 *	uint64_t enter(void *code, const uint64_t args[5])
	 * is called with the offset that is put in @enter. */
	int (*begin)(struct jit_code *code, uint32_t *enter);
	/* Appends one function: places, steps, its range. 0, -ENOMEM, or -ENOTSUP with @err. */
	int (*function)(struct jit_code *code, const struct jit_function *function);
	/* All functions are there: fills in the patches. */
	int (*finish)(struct jit_code *code);
	/* Upper bound of the bytes that @ninsns instructions can take, stubs included. */
	size_t (*bound)(size_t ninsns, size_t nfunctions);
	/* From a signal's context at a memory access of compiled code, the address it went to. */
	uint64_t (*fault_address)(const uint8_t *pc, const void *ucontext);
	/* May a register that holds this number be replaced by the number itself? NULL: whenever it
	 * fits in 32 bits, sign-extended for width 8. */
	bool (*can_immediate)(const struct jit_insn *insn, uint64_t number);
};

extern const struct jit_target jit_x86, jit_arm64;

/* Of this machine; NULL: there is none, the interpreter runs. */
static inline const struct jit_target *jit_host(void)
{
#if defined(__x86_64__)
	return &jit_x86;
#elif defined(__aarch64__)
	return &jit_arm64;
#else
	return NULL;
#endif
}
