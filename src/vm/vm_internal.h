/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the virtual machine. The code of a vm is decoded once into `ops`, which the engine
 * (the interpreter; a JIT later) runs. Nothing here is visible outside src/vm/.
 */
#pragma once

#include <duet/vm.h>

#include <ffi.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "isa/isa.h"

#define VM_MAX_CODE  (1 << 22) /* instructions: jump distances in bytes of ops fit in 32 bits */
#define VM_MIN_FRAME 512

/* What the interpreter knows beyond the instruction set: calls by kind, and the ends. */
enum vm_op_id {
	VM_OP_FIRST = ISA_NOPS,
	VM_OP_CALL_WHOLE = VM_OP_FIRST, /* integers, a 64-bit or pointer result */
	VM_OP_CALL_CONTEXT,             /* five integers and the context */
	VM_OP_CALL_ARRAY,               /* one of the two, a lookup that may be in an array */
	VM_OP_CALL_OTHER,               /* anything else: native_call() */
	VM_OP_RUN_OFF,                  /* behind the last instruction of a function */
	VM_OP_STOP,                     /* where the outermost function of a vm_call() returns to */
	/* Several operations in one: pairs.c. None of them touches memory but through its last op. */
	VM_OP_MOV_ADD,
	VM_OP_MOV_ADD_K,
	VM_OP_MOV_AND_K,
	VM_OP_MOV_LSH_K,
	VM_OP_MOV_RSH_K,
	VM_OP_LSH_ADD,
	VM_OP_MOV_ADD_LDXB,
	VM_OP_ADD_LDXB,
	VM_OP_ADD_LDXW,
	VM_OP_ADD_LDXDW,
	VM_OP_ADD_JNE_K,
	VM_OP_ADD_JNE,
	VM_OP_ADD_JLT,
	VM_OP_ADD_JGT,
	VM_NOPS
};

/* One decoded instruction. `handler` is rewritten by vm_interrupt(): always load it atomically. */
struct vm_op {
	_Atomic(const void *) handler;
	uint64_t imm; /* extended as the operation wants it; C functions: address or plan */
	int32_t off;  /* memory: bytes; jumps: bytes of ops; calls into C: index of the native */
	uint8_t dst, src;
	uint16_t id; /* enum isa_op or enum vm_op_id */
};

/* A call in progress. The frame of a vm_call() returns to vm->stop and keeps in saved[0] the
 * instruction that called the C function that called vm_call() (NULL: none). */
struct vm_frame {
	const struct vm_op *return_to;
	uint64_t saved[5]; /* r6 to r10 of the caller */
};

struct vm_native_plan {
	void *function;
	const struct vm_native *native;
	uint16_t id; /* the operation that calls it */
	bool by_ffi; /* passes floating point */
	ffi_cif cif;
	ffi_type *types[VM_MAX_ARGUMENTS];
};

struct vm_code {
	uint32_t first, count; /* instructions */
	uint32_t first_op;
	uint32_t frame; /* bytes of stack, a multiple of 16 */
	ffi_closure *closure;
	void *address; /* native address of the function: NULL until somebody asked */
	struct vm *vm;
	uint32_t index;
};

/* Open-addressed table from a code address to what it is. */
struct vm_address {
	uint64_t address; /* 0: free */
	uint32_t index;
	bool native;
};

/*
 * One vm_call() in progress on this thread; the innermost is found through a thread-local pointer.
 * The outermost of a vm carries the jump buffer that faults unwind to.
 */
struct vm_activation {
	struct vm *vm;
	struct vm_activation *outer; /* of this thread, maybe of another vm */
	const struct vm_op *pc;      /* of the vm before this call, put back when it ends */
	uint64_t *registers;
};

struct vm_base {
	struct vm_activation activation;
	uintptr_t limit; /* vm_stack_limit before */
	sigjmp_buf jump;
};

struct vm_signal;

struct vm_engine {
	/* Makes the code ready to run. 0, -ENOMEM, -ENOTSUP. */
	int (*prepare)(struct vm *vm, struct err *err);
	/* Also after prepare() failed half-way. */
	void (*release)(struct vm *vm);
	/* Runs a function with the five @args; returns r0 or unwinds. */
	uint64_t (*call)(struct vm *vm, const struct vm_activation *activation, uint32_t function,
			 const uint64_t *args);
	/* Makes the running code leave at its next instruction; async-signal-safe, any thread. */
	void (*interrupt)(struct vm *vm);
	/* A signal came from the vm's code or from C that it called: kind, address, size, native,
	 * foreign, read and write of the fault. false: not the vm's fault. Async-signal-safe. */
	bool (*describe)(struct vm *vm, struct vm_signal *signal, struct vm_fault *fault);
	/* Adds the trace, torn, and the native of VM_FAULT_ABORT. @signal NULL: called by the vm
	 * itself, below the code that runs. Async-signal-safe. */
	void (*trace)(struct vm *vm, const struct vm_signal *signal, struct vm_fault *fault);
	/* The lowest stack address that calls in progress use; 0: nothing runs. Checked mode. */
	uint64_t (*stack_live)(const struct vm *vm);
	/* Where C code may call a function; NULL when out of memory. */
	void *(*address)(struct vm *vm, uint32_t function);
};

extern const struct vm_engine vm_interpreter, vm_jit;

/* vm.interrupt: the kind in the lower two bits, above it the number of the call that is meant. */
enum { VM_INTERRUPT_NONE, VM_INTERRUPT_CALL, VM_INTERRUPT_STICKY };

struct vm {
	/* Hot: what the interpreter reads and writes. */
	const struct vm_op *volatile pc; /* set before anything that may fault or call C */
	struct vm_frame *frame;          /* next free one */
	struct vm_frame *frame_limit;
	uint64_t stack_low;
	uint64_t *volatile registers; /* of the running function */
	uint64_t budget;              /* instructions left */
	volatile uint64_t target;     /* of the callx in progress */
	void *context;
	_Atomic uint64_t interrupt; /* VM_INTERRUPT_ */
	_Atomic uint64_t sequence;  /* number of the outermost call */
	struct vm_op stop;

	const struct vm_engine *engine;
	_Atomic(struct vm_base *) base; /* outermost call, NULL while nothing runs */
	struct vm_op *ops;
	size_t nops;
	const void *const *handlers; /* of the instantiation in use, by op id */
	struct vm_frame *frames;
	uint8_t *stack_map; /* with guard pages */
	size_t stack_map_size;
	uint64_t stack_top;
	struct vm_code *functions;
	uint32_t *order; /* of functions, by first instruction, without aliases */
	uint32_t nfunctions, nordered;
	struct vm_native_plan *natives;
	uint32_t nnatives;
	struct vm_address *addresses;
	uint32_t address_mask;
	bool call_by_number;
	ffi_cif closure_cif;
	ffi_type *closure_types[VM_MAX_ARGUMENTS];
	struct vm_image image;         /* the caller's, in this library's layout */
	struct vm_native *own_natives; /* ... when the caller's have another size */
	struct vm_options options;
	struct vm_fault fault;
	struct vm_checked *checked; /* NULL: not in checked mode */
	struct jit *jit;            /* NULL: the interpreter runs */
	uint64_t stack; /* compiled code in checked mode: top of the running frame's free part */
	uint64_t stack_allowance; /* of the thread's stack, for compiled code */
	uint64_t stack_below;     /* ... what runs below that unchecked */
	atomic_int threads;       /* that the script made, alive */
	bool abandoned;           /* destroyed, but threads are left in its code */
	atomic_int thread_faults; /* fault.c */
	struct vm_fault thread_fault;
};

/* abi.c: fill in vm->image and vm->options. -EINVAL, -E2BIG, -ENOMEM. */
int abi_take_image(struct vm *vm, const struct vm_image *theirs, struct err *err);
int abi_take_options(struct vm *vm, const struct vm_options *theirs, struct err *err);

/* validate.c: fills in functions[].frame. -EINVAL with "instruction N: why", -ENOMEM. */
int vm_validate(struct vm *vm, const struct vm_image *image, uint32_t *bad_insn, struct err *err);

/* decode.c: allocates and fills ops. */
int vm_decode(struct vm *vm, const struct vm_image *image, struct err *err);
/* Function and instruction of an op; any thread, async-signal-safe. */
void vm_locate(const struct vm *vm, const struct vm_op *op, uint32_t *function, uint32_t *insn);

/* pairs.c: replaces ops that often follow each other, and lookups. For a loop without a budget or
 * checks. */
void vm_pair(struct vm *vm);

/* native.c */
int native_prepare(struct vm *vm, const struct vm_image *image, struct err *err);
uint64_t native_call(struct vm *vm, const struct vm_native_plan *plan, const uint64_t *args);
/* The arguments as the function will see them: narrow ones extended. */
void native_take(const struct vm_native *native, const uint64_t *args, uint64_t *ret);

/* closure.c: addresses of functions, both ways. */
int closure_prepare(struct vm *vm, struct err *err); /* before the other three */
void closure_release(struct vm *vm);
void closure_add(struct vm *vm, uint64_t address, uint32_t function);
/* NULL when the address is neither a function of the vm nor a native. */
const struct vm_address *closure_find(const struct vm *vm, uint64_t address);
/* What callx to that value calls, when it is a native. */
const struct vm_native *closure_native(const struct vm *vm, uint64_t target);
/* vm_engine.address of the interpreter. */
void *closure_address(struct vm *vm, uint32_t function);

/* vm.c */
/* A call while one is already running; unwinds to the outermost on a fault. */
uint64_t vm_call_nested(struct vm *vm, uint32_t function, const uint64_t *args);
/* The stack of the frames, between guard pages. */
int vm_make_stack(struct vm *vm, struct err *err);
/* Nothing runs any more. */
void vm_reset(struct vm *vm);
/* Takes the pending interrupt away: was it meant for the running call? */
bool vm_take_interrupt(struct vm *vm);
bool vm_interrupt_pending(const struct vm *vm);
/* The lowest stack address that calls in progress use; 0: nothing runs. */
uint64_t vm_stack_live(const struct vm *vm);

/* fault.c */
struct vm_activation *fault_running(void);
void fault_set_running(struct vm_activation *activation);
/* Does this thread run the vm? */
bool vm_runs_here(const struct vm *vm);
/* Fills in the fault from where the vm is, and leaves the running call. */
void fault_raise(struct vm *vm, enum vm_fault_kind kind) __attribute__((noreturn));
/* The same for faults that say more: kind, insn (VM_INSN_OF_PC: where the vm is), address, size,
 * native, signal, text, read and write are @what's. */
#define VM_INSN_OF_PC UINT32_MAX
void fault_raise_as(struct vm *vm, const struct vm_fault *what) __attribute__((noreturn));
/* A fault signal: true when it was the vm's and execution goes on; does not return after faults. */
bool fault_on_signal(struct vm_signal *signal);
bool fault_is_at(const struct vm_signal *signal, uint64_t target);
void fault_add_trace(struct vm_fault *fault, uint32_t function, uint32_t insn);
/* A fault of a thread that the script made becomes the running call's: true if there is one. */
bool fault_take_from_thread(struct vm *vm);

/* initial-exec: handlers must not allocate, and compiled code knows the distance. */
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
/* signals.c: the lowest address that compiled code may use of this thread's stack; 0: unknown. */
extern __thread uintptr_t vm_stack_limit __attribute__((tls_model("initial-exec")));

static inline bool vm_op_calls_c(const struct vm_op *op)
{
	return op->id == ISA_CALLX || (op->id >= VM_OP_CALL_WHOLE && op->id <= VM_OP_CALL_OTHER);
}
