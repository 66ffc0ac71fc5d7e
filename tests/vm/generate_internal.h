/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the parts of the generator. */
#pragma once

#include "code.h"
#include "generate.h"

#define GENERATE_VALUE_BASE 9 /* the register that points to the value */
#define GENERATE_REGISTERS  9 /* r0 to r8 hold numbers, when no shape has taken them */
#define GENERATE_BASES      6
#define GENERATE_CALLS      64

/* Memory that may be accessed: [reg + low, reg + high). */
struct generate_base {
	uint8_t reg;
	bool stack;    /* aligned accesses only, no atomics that fetch */
	bool variable; /* ... none at all when it is in the stack */
	uint8_t align; /* reg - phase is a multiple of that */
	uint8_t phase;
	int32_t low, high;
};

/* What a function expects in r1. */
enum generate_signature {
	GENERATE_NUMBERS,
	GENERATE_STACK_POINTER, /* to 16 bytes of its caller's frame */
	GENERATE_VALUE_POINTER, /* to 32 bytes of the value */
	GENERATE_SIGNATURES
};

struct generator {
	struct random *random;
	struct generated *program;
	uint32_t function;  /* that is being written */
	uint32_t slots;     /* of its stack, 8 bytes each; one more below is for counters */
	size_t end;         /* where its random part ends */
	uint16_t taken;     /* registers that hold no numbers */
	uint16_t read_only; /* registers that are read at most: counters */
	uint32_t loops;     /* around what is being written */
	uint32_t depth;     /* of shapes in shapes */
	bool counter_slot;  /* is in use */
	struct generate_base bases[GENERATE_BASES];
	size_t nbases;
	enum generate_signature signatures[GENERATE_FUNCTIONS];
	struct {
		size_t at;
		uint32_t callee;
	} calls[GENERATE_CALLS];
	size_t ncalls;
	/* lddw of a function's address: imm becomes its index. */
	struct {
		size_t at;
		uint32_t callee;
	} addresses[GENERATE_CALLS];
	size_t naddresses;
};

/* ---- generate.c ---- */
void emit(struct generator *g, struct bpf_insn insn);
void emit_lddw(struct generator *g, uint32_t reg, uint64_t value);
void emit_relocated(struct generator *g, uint32_t reg, uint32_t array, uint32_t offset);
uint32_t below(struct generator *g, uint32_t n);
bool one_in(struct generator *g, uint32_t n);
/* A register with a number in it; one that may also be written. */
uint32_t source(struct generator *g);
uint32_t target(struct generator *g);
bool writable(const struct generator *g, uint32_t reg);
/* May r0 to r5 be lost? */
bool may_call(const struct generator *g);
/* Takes a register out of circulation, -1 when there are too few left; @low: r0 to r5 will do.
 * give() wants a number in it again. */
int take(struct generator *g, bool low);
void give(struct generator *g, uint32_t reg);
/* Any number into a register. */
void emit_constant(struct generator *g, uint32_t reg);
/* Overwrites a register that held a pointer. */
void emit_number(struct generator *g, uint32_t reg);
/* r1 to r5 are undefined after a call. */
void emit_after_call(struct generator *g);
/* A place of @width bytes that the operation may access. */
void place(struct generator *g, uint32_t width, bool atomic, bool fetch, uint32_t *base,
	   int16_t *off);
/* One operation that does not jump. */
void emit_plain(struct generator *g, enum isa_op op);
/* Up to @n operations and shapes. */
void emit_some(struct generator *g, uint32_t n);
/* The distance from the jump at @at to here. */
void land(struct generator *g, size_t at);
/* A conditional jump with a random condition on @reg, to be landed. */
size_t emit_condition(struct generator *g, uint32_t reg);

/* ---- shapes: each writes something that compilers write; may write nothing ---- */
typedef void generate_shape(struct generator *g);

/* generate_numbers.c */
generate_shape shape_copies, shape_divide, shape_extend, shape_select, shape_bytes, shape_known;
/* generate_memory.c */
generate_shape shape_scaled, shape_change, shape_pointer, shape_test_memory, shape_fill;
/* generate_control.c */
generate_shape shape_loop, shape_stride, shape_switch, shape_if_else, shape_goto, shape_call;
/* generate_calls.c */
generate_shape shape_lookup, shape_update, shape_native, shape_callx, shape_float;
