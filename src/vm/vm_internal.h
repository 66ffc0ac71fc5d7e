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
	VM_OP_CALL_OTHER,               /* anything else: native_call() */
	VM_OP_RUN_OFF,                  /* behind the last instruction of a function */
	VM_OP_STOP,                     /* where the outermost function of a vm_call() returns to */
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
	sigjmp_buf jump;
};

struct vm_engine {
	const char *name;
	/* Prepares the handlers of all ops. */
	int (*prepare)(struct vm *vm, struct err *err);
	/* Runs a function whose frame has been pushed, with r10 = @stack and the five @args; returns
	 * r0 or unwinds. */
	uint64_t (*run)(struct vm *vm, const struct vm_op *entry, const uint64_t *args,
			uint64_t stack);
	/* Makes the running code leave at its next instruction; async-signal-safe, any thread. */
	void (*interrupt)(struct vm *vm);
	/* Is this machine address inside the engine's own code? Async-signal-safe. */
	bool (*owns)(const struct vm *vm, uintptr_t pc);
};

extern const struct vm_engine vm_interpreter;

enum { VM_INTERRUPT_NONE, VM_INTERRUPT_RUNNING, VM_INTERRUPT_STICKY };

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
	atomic_int interrupt; /* VM_INTERRUPT_ */
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

/* native.c */
int native_prepare(struct vm *vm, const struct vm_image *image, struct err *err);
uint64_t native_call(struct vm *vm, const struct vm_native_plan *plan, const uint64_t *args);
/* The arguments as the function will see them: narrow ones extended. */
void native_take(const struct vm_native *native, const uint64_t *args, uint64_t *ret);

/* closure.c: addresses of functions, both ways. */
int closure_prepare(struct vm *vm, struct err *err);
void closure_release(struct vm *vm);
/* NULL when the address is neither a function of the vm nor a native. */
const struct vm_address *closure_find(const struct vm *vm, uint64_t address);

/* vm.c: a call while one is already running; unwinds to the outermost on a fault. */
uint64_t vm_call_nested(struct vm *vm, uint32_t function, const uint64_t *args);

/* fault.c */
int fault_handlers_get(struct err *err); /* reference counted */
void fault_handlers_put(void);
int fault_thread_prepare(void); /* alternate stack of this thread, once */
struct vm_activation *fault_running(void);
void fault_set_running(struct vm_activation *activation);
/* Fills in vm->fault from vm->pc and leaves the running call. */
void fault_raise(struct vm *vm, enum vm_fault_kind kind) __attribute__((noreturn));
/* The same for faults that say more: kind, insn (VM_INSN_OF_PC: where the vm is), address, size,
 * native, signal, text, read and write are @what's. */
#define VM_INSN_OF_PC UINT32_MAX
void fault_raise_as(struct vm *vm, const struct vm_fault *what) __attribute__((noreturn));

/* vm.c: the lowest stack address that calls in progress use; 0: nothing runs. */
uint64_t vm_stack_live(const struct vm *vm);

static inline bool vm_op_calls_c(const struct vm_op *op)
{
	return op->id == ISA_CALLX || (op->id >= VM_OP_CALL_WHOLE && op->id <= VM_OP_CALL_OTHER);
}
