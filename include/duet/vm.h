/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * duet's BPF virtual machine: validates and runs BPF instructions (RFC 9669, v1 to v4) inside this
 * process, at native addresses. Usable alone: needs neither libbpf nor the rest of duet.
 *
 * A `struct vm` belongs to one thread at a time. vm_interrupt() alone may be called from any
 * thread and from signal handlers. Nothing here prints or exits.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vm;

/* How a value travels between BPF registers and a C function. */
enum vm_class {
	VM_VOID,
	VM_U8,
	VM_S8,
	VM_U16,
	VM_S16,
	VM_U32,
	VM_S32,
	VM_U64,
	VM_S64, /* extended as named */
	VM_POINTER,
	VM_FLOAT,
	VM_DOUBLE, /* IEEE bits in a BPF register, FP register in C */
};

#define VM_MAX_ARGUMENTS 5

/* A C function that BPF code may call: `call imm` with src_reg 0, imm = index in vm_image.natives. */
struct vm_native {
	const char *name;
	void *function;
	enum vm_class result;
	uint8_t nargs;
	enum vm_class args[VM_MAX_ARGUMENTS];
	/*
	 * true: the C function takes exactly five uint64_t and then vm_options.context as a sixth
	 * argument and returns uint64_t.
	 */
	bool with_context;
	/* true: foreign code (libc): after a fault inside it the process's C library may hold locks. */
	bool foreign;
};

struct vm_function {
	const char *name;
	uint32_t first, count; /* instructions */
	uint8_t nargs;
};

/* All borrowed, must outlive the vm; code is copied. Local calls: src_reg BPF_PSEUDO_CALL, imm
 * relative to the next instruction. lddw carries final 64-bit values (src_reg 0), or
 * src_reg BPF_PSEUDO_FUNC with imm = index of a function: becomes that function's native address. */
struct vm_image {
	const struct bpf_insn *code;
	size_t ncode;
	const struct vm_function *functions;
	size_t nfunctions;
	const struct vm_native *natives;
	size_t nnatives;
};

struct vm_options {
	size_t size;          /* sizeof(struct vm_options) */
	void *context;        /* handed to natives that ask for it */
	uint32_t stack_bytes; /* all frames together; 0: 1 MiB */
	uint32_t call_depth;  /* 0: 256 frames; deeper recursion is a fault */
	uint32_t
		frame_bytes; /* stack of one function as the compiler was told; 0: found by the validator, at least 512 */
	uint64_t instruction_budget; /* of each outermost vm_call(), 0: none */
	bool callx_by_number;        /* callx to a value below nnatives calls that native */
};

enum vm_fault_kind {
	VM_FAULT_NONE,
	VM_FAULT_READ, /* of size bytes at address */
	VM_FAULT_WRITE,
	VM_FAULT_EXECUTE,     /* callx to something that is no function */
	VM_FAULT_STACK,       /* recursion too deep, or stack used up */
	VM_FAULT_NATIVE,      /* a fault signal inside the C function `native` */
	VM_FAULT_INTERRUPTED, /* vm_interrupt() */
	VM_FAULT_BUDGET,
	VM_FAULT_ABORT, /* vm_raise() from a native */
};

#define VM_TRACE_MAX 32

struct vm_fault {
	enum vm_fault_kind kind;
	uint32_t insn; /* index in vm_image.code */
	uint64_t address;
	uint32_t size;      /* bytes accessed; 0: unknown */
	const char *native; /* C function that was running, or NULL */
	bool foreign;       /* it was foreign code */
	int signal;         /* SIGSEGV, SIGBUS ...; 0: none */
	char text[160];     /* of vm_raise() */
	uint32_t ntrace;    /* innermost first */
	struct {
		uint32_t function, insn;
	} trace[VM_TRACE_MAX];
	bool write, read; /* what a fault signal's access was; neither: unknown */
	bool torn; /* foreign C functions between nested vm_call()s were left without returning */
};

/*
 * Validates in linear time and prepares. 0, -EINVAL (text in @message: "instruction N: why"; the
 * index in @bad_insn; both may be NULL), -ENOMEM, -ENOTSUP.
 */
int vm_create(const struct vm_image *image, const struct vm_options *options, struct vm **ret,
	      char *message, size_t message_size, uint32_t *bad_insn);
void vm_destroy(struct vm *vm);

/*
 * Calls a function. 0 with r0 in @result, -EFAULT with @fault filled in (the vm stays usable).
 * May be called again from inside a native (qsort's comparator); faults then unwind to the
 * outermost call only, across the C frames in between.
 */
int vm_call(struct vm *vm, uint32_t function, const uint64_t *args, size_t nargs, uint64_t *result,
	    struct vm_fault *fault);

/* The address under which C code may call a BPF function as a C function of up to five
 * integer arguments, in the thread that runs the vm. NULL when out of memory. */
void *vm_function_address(struct vm *vm, uint32_t function);

/* Ends the running (or, with @sticky, also the next) vm_call() with VM_FAULT_INTERRUPTED, at the
 * next instruction of BPF code; C code is not torn out. Async-signal-safe, any thread. */
void vm_interrupt(struct vm *vm, bool sticky);

/* From a native on the vm's thread: ends the running vm_call() with VM_FAULT_ABORT. No return. */
void vm_raise(struct vm *vm, const char *text) __attribute__((noreturn));

/* "read of 8 bytes at 0x10" */
const char *vm_fault_text(const struct vm_fault *fault, char *text, size_t size);
