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

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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

/* Functions whose meaning the engine knows. */
enum vm_intrinsic {
	VM_INTRINSIC_NONE,
	/* void *lookup(handle, const uint32_t *index): inlined for the handles in vm_image.arrays */
	VM_ARRAY_LOOKUP,
	/* Doubles as IEEE bits; comparisons give 0 or 1. */
	VM_F64_ADD,
	VM_F64_SUB,
	VM_F64_MUL,
	VM_F64_DIV,
	VM_F64_NEG,
	VM_F64_LT,
	VM_F64_LE,
	VM_F64_GT,
	VM_F64_GE,
	VM_F64_EQ,
	VM_F64_NE,
	VM_F64_FROM_S64,
	VM_F64_FROM_U64,
	VM_F64_TO_S64, /* truncated; out of range or not a number: as the C function of that name */
};

/* What checked mode demands of one argument of a C function. */
enum vm_demand {
	VM_ANY,      /* a number, or a handle that the function checks itself */
	VM_READ,     /* memory to read: bytes, times the argument `count` and `times` when given */
	VM_WRITE,    /* memory to write, likewise */
	VM_CHANGE,   /* to read and write, likewise */
	VM_STRING,   /* a string that ends within its region */
	VM_CALLBACK, /* the address of a function of the vm, or 0 when `optional` */
};

struct vm_contract {
	struct {
		uint8_t demand; /* enum vm_demand */
		bool optional;  /* 0 is allowed */
		uint8_t count; /* 1 to 5: that argument times `bytes` is the size; 0: bytes alone */
		uint8_t times; /* 1 to 5: ... times that argument too */
		uint32_t bytes; /* 0 means 1 */
	} args[VM_MAX_ARGUMENTS];
	/* Checks what the table cannot say (formats with their arguments): 0, or -1 with the address
	 * at fault in @address. May call vm_may_read() and friends. NULL: nothing more to check. */
	int (*check)(struct vm *vm, const uint64_t *args, uint64_t *address);
	uint64_t reserved[2]; /* room for more, zero */
};

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
	/* What the engine may do itself instead of calling. */
	enum vm_intrinsic intrinsic;
	/* Checked mode: what the arguments must be. NULL: the function may not be called there. */
	const struct vm_contract *contract;
};

/* This one and struct vm_array never grow: they lie in arrays of the caller's. */
struct vm_function {
	const char *name;
	uint32_t first, count; /* instructions */
	uint8_t nargs;
};

/* Elements of @stride bytes at @data; @handle is what the code passes to the lookup. */
struct vm_array {
	uint64_t handle;
	void *data;
	uint32_t stride, entries;
};

/* All borrowed, must outlive the vm, but code and the struct itself, which are copied. Local calls:
 * src_reg BPF_PSEUDO_CALL, imm relative to the next instruction. lddw carries final 64-bit values
 * (src_reg 0), or src_reg BPF_PSEUDO_FUNC with imm = index of a function: becomes that function's
 * native address. */
struct vm_image {
	size_t size;        /* sizeof(struct vm_image) */
	size_t native_size; /* sizeof(struct vm_native), when there are natives */
	const struct bpf_insn *code;
	size_t ncode;
	const struct vm_function *functions;
	size_t nfunctions;
	const struct vm_native *natives;
	size_t nnatives;
	/* Arrays in plain memory behind VM_ARRAY_LOOKUP. */
	const struct vm_array *arrays;
	size_t narrays;
};

/* The first two members of a struct vm_image. */
#define VM_IMAGE_SIZES sizeof(struct vm_image), sizeof(struct vm_native)

enum vm_engine_kind {
	VM_ENGINE_BEST, /* the compiler where there is one for this machine, else the interpreter */
	VM_ENGINE_INTERPRETER,
	VM_ENGINE_JIT, /* or vm_create() fails with -ENOTSUP */
};

/* Parts of the compiler that can be left out, to test and to measure them: bits of
 * vm_options.passes_off. */
enum vm_pass {
	VM_PASS_COPY = 1 << 0,      /* copies and constants are propagated, across blocks */
	VM_PASS_DEAD = 1 << 1,      /* instructions without effect are removed */
	VM_PASS_ADDRESS = 1 << 2,   /* address arithmetic goes into addressing modes */
	VM_PASS_MODIFY = 1 << 3,    /* load, change, store becomes one instruction */
	VM_PASS_DIVIDE = 1 << 4,    /* division by a constant becomes multiplication */
	VM_PASS_INLINE = 1 << 5,    /* array lookups and arithmetic on doubles are inlined */
	VM_PASS_LAYOUT = 1 << 6,    /* blocks are put in order, loops are rotated */
	VM_PASS_ALIGN = 1 << 7,     /* loops are aligned */
	VM_PASS_SHORT = 1 << 8,     /* short encodings; compare-and-branch forms */
	VM_PASS_SHIFT = 1 << 9,     /* BMI2 shifts (x86-64, where the processor has them) */
	VM_PASS_NARROW = 1 << 10,   /* 32-bit divide when both operands fit */
	VM_PASS_PROLOGUE = 1 << 11, /* only used registers are saved, a frame only if r10 is used */
	VM_PASS_NEAR = 1 << 12,     /* code within reach of the C functions: relative calls */
	VM_PASS_SWITCH = 1 << 13,   /* many comparisons with numbers become a jump table */
	VM_PASS_CHECKS = 1 << 14,   /* checked mode: checks that another one covers are left out */
	VM_PASS_ALL = (1 << 15) - 1,
};

struct vm_options {
	size_t size;   /* sizeof(struct vm_options) */
	void *context; /* handed to natives that ask for it */
	/* All frames together; 0: 1 MiB. Compiled code runs on the thread's own stack and needs a
	 * quarter more for what the machine saves; it never goes beyond what that stack has. */
	uint32_t stack_bytes;
	/* Frames, deeper recursion is a fault; 0: as many as fit in stack_bytes. The interpreter's:
	 * compiled code counts bytes alone, and only where recursion is. */
	uint32_t call_depth;
	uint32_t
		frame_bytes; /* stack of one function as the compiler was told; 0: found by the validator, at least 512 */
	uint64_t instruction_budget; /* of each outermost vm_call(), 0: none */
	bool callx_by_number;        /* callx to a value below nnatives calls that native */
	enum vm_engine_kind engine;
	bool checked;        /* every access is checked against the regions: vm_region_add() */
	uint32_t passes_off; /* enum vm_pass */
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
	VM_FAULT_ABORT,    /* vm_raise() from a native */
	VM_FAULT_ARGUMENT, /* checked mode: an argument of `native` points where it must not */
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
	uint64_t reserved[8]; /* room for more, zero */
};

/*
 * Validates in linear time and prepares; @options may be NULL. 0, -EINVAL (text in @message:
 * "instruction N: why"; the index in @bad_insn; both may be NULL), -ENOMEM, -ENOTSUP, -E2BIG (a
 * caller newer than this library asks for what it does not know: what a bigger struct holds behind
 * the members known here must be zero).
 */
int vm_create(const struct vm_image *image, const struct vm_options *options, struct vm **ret,
	      char *message, size_t message_size, uint32_t *bad_insn);
void vm_destroy(struct vm *vm);

/*
 * Calls a function. 0 with r0 in @result, -EFAULT with @fault filled in (the vm stays usable).
 * May be called again from inside a native (qsort's comparator); faults then unwind to the
 * outermost call only, across the C frames in between.
 *
 * Compiled functions may also run in threads that the code makes (pthread_create() as a native) and
 * as signal handlers. A fault in a thread that does not run the vm ends that thread, and then the
 * vm_call() that runs elsewhere, with that fault. vm_destroy() while such
 * threads are alive leaves their code and the vm in memory; they end at its next instruction.
 */
int vm_call(struct vm *vm, uint32_t function, const uint64_t *args, size_t nargs, uint64_t *result,
	    struct vm_fault *fault);

/*
 * For many calls in a row: enters the vm once and calls @drive(@context), within which every
 * vm_call() costs less and compiled functions may be called directly, by vm_function_address(). 0
 * with what @drive returned in @ret; -EFAULT with @fault filled in when one of the calls faults:
 * @drive is then left without returning. Inside a running call: -EBUSY. The instruction budget is
 * that of all of them together.
 */
int vm_enter(struct vm *vm, int (*drive)(void *context), void *context, int *ret,
	     struct vm_fault *fault);

/* The address under which C code may call a BPF function as a C function of up to five
 * integer arguments, in the thread that runs the vm. NULL when out of memory. */
void *vm_function_address(struct vm *vm, uint32_t function);

/*
 * Ends the running vm_call() with VM_FAULT_INTERRUPTED, at the next instruction of BPF code; C code
 * is not torn out. One that comes too late is forgotten; with @sticky it waits for the next vm_call()
 * and ends that one, once. Threads that the code made with pthread_create() end too when they are in
 * BPF code. Async-signal-safe, any thread.
 */
void vm_interrupt(struct vm *vm, bool sticky);

/* From a native on the vm's thread: ends the running vm_call() with VM_FAULT_ABORT. No return. */
void vm_raise(struct vm *vm, const char *text) __attribute__((noreturn));

/* "read of 8 bytes at 0x10" */
const char *vm_fault_text(const struct vm_fault *fault, char *text, size_t size);

/* ---- checked mode: what the code may touch besides its own stack ---- */
#define VM_REGION_WRITABLE 1

/*
 * All of these on the vm's thread; in an unchecked vm they do nothing and return 0.
 *
 * [address, address + size) may be touched from now on: one object, an access must lie within one
 * region. -EINVAL (no bytes, or past the end of memory), -EEXIST (overlaps another), -ENOMEM.
 */
int vm_region_add(struct vm *vm, const void *address, size_t size, unsigned int flags);
/* Forgets the region that starts at @address. -ENOENT; -EBUSY: a C function is working on it, and
 * the caller runs inside its callback. */
int vm_region_remove(struct vm *vm, const void *address);
/* Forgets every region that starts in [address, address + size). 0 or -EBUSY. */
int vm_region_clear(struct vm *vm, const void *address, size_t size);
/* For natives and contracts: do all the bytes lie in regions (stack included)? True in unchecked
 * vms. */
bool vm_may_read(const struct vm *vm, uint64_t address, size_t size);
bool vm_may_write(const struct vm *vm, uint64_t address, size_t size);
/* Does a string start at @address that ends within its region? */
bool vm_may_read_string(const struct vm *vm, uint64_t address);
/* Bytes from @address to the end of its region, 0: none; SIZE_MAX in unchecked vms. */
size_t vm_region_rest(const struct vm *vm, uint64_t address, bool write);
/* From a native that was refused what it asked for: ends the running vm_call() with
 * VM_FAULT_ARGUMENT. No return. */
void vm_raise_argument(struct vm *vm, uint64_t address, size_t size, bool write)
	__attribute__((noreturn));
void vm_raise_string(struct vm *vm, uint64_t address) __attribute__((noreturn));

/* "interpreter", "x86-64" or "arm64". Static memory. */
const char *vm_engine_name(const struct vm *vm);
/* The machine code of a function, for listings; NULL in the interpreter. As long as the vm. */
const void *vm_machine_code(const struct vm *vm, uint32_t function, size_t *size);
/* The instruction (index in vm_image.code) that the machine code at @offset of that function comes
 * from; -1: none (stubs, prologue). */
int64_t vm_machine_insn(const struct vm *vm, uint32_t function, size_t offset);
/* Is that byte no instruction, but in the table of a switch? x86-64: eight-byte addresses; arm64:
 * four-byte distances from the table's start. */
bool vm_machine_table(const struct vm *vm, uint32_t function, size_t offset);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
