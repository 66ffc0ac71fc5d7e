/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the arm64 back end share: functions in the compiler's form, made by hand, that
 * are compiled and, on arm64, run. On other machines they are only compiled.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vm/jit/arm64.h"
#include "vm/jit/passes.h"

#if defined(__aarch64__)
#define RUNS true
#else
#define RUNS false
#endif

#define REGISTERS 10 /* r0 to r9 */

/* A function under construction, and what it is compiled with. */
struct made {
	struct jit_function function;
	struct jit_code code;
	struct jit_runtime runtime;
	struct vm vm;
	struct vm_image image;
	struct jit_range ranges[8];
	uint32_t passes;
	bool checked, lse;
	uint32_t enter;
	size_t map_size;
};

/* What a function under test reads its registers from and writes them to. */
struct state {
	uint64_t r[REGISTERS];
};

static inline struct made *make(size_t bytes)
{
	struct made *made = calloc(1, sizeof(*made));

	assert_non_null(made);
	made->map_size = bytes;
	made->code.bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(made->code.bytes, MAP_FAILED);
	made->code.address = (uintptr_t)made->code.bytes;
	made->code.capacity = bytes;
	made->code.functions = made->ranges;
	made->code.runtime = &made->runtime;
	made->runtime.vm = &made->vm;
	made->function.vm = &made->vm;
	made->function.image = &made->image;
	made->function.target = &jit_arm64;
	made->passes = VM_PASS_ALL;
	return made;
}

/* Forgets the function and its code, keeps the rest. */
static inline void start(struct made *made)
{
	struct jit_code *code = &made->code;

	made->function.ninsns = made->function.nblocks = made->function.ntargets = 0;
	made->function.frame = 256;
	code->size = code->nplaces = code->nsteps = code->npatches = 0;
	code->full = false;
	memset(made->ranges, 0, sizeof(made->ranges));
	assert_int_equal(a64_begin(code, &made->enter), 0);
}

static inline void unmake(struct made *made)
{
	munmap(made->code.bytes, made->map_size);
	free(made->code.places);
	free(made->code.steps);
	free(made->code.patches);
	jit_release(&made->function);
	free(made);
}

/* Begins a block; instructions are appended to the last one. */
static inline uint32_t block(struct made *made)
{
	struct jit_function *function = &made->function;

	assert_int_equal(jit_reserve(function, 8, 1), 0);
	function->blocks[function->nblocks] = (struct jit_block){
		.first = function->ninsns, .taken = JIT_NOWHERE, .next = JIT_NOWHERE, .cost = 1
	};
	return function->nblocks++;
}

static inline struct jit_insn blank(enum jit_op op)
{
	return (struct jit_insn){ .op = op,
				  .width = 8,
				  .size = 8,
				  .dst = JIT_NONE,
				  .a = JIT_NONE,
				  .b = JIT_NONE,
				  .base = JIT_NONE,
				  .index = JIT_NONE };
}

static inline struct jit_insn *add(struct made *made, struct jit_insn insn)
{
	struct jit_function *function = &made->function;

	assert_int_equal(jit_reserve(function, 1, 0), 0);
	insn.insn = function->ninsns;
	function->insns[function->ninsns] = insn;
	function->blocks[function->nblocks - 1].count++;
	return &function->insns[function->ninsns++];
}

/* Ends the block, which goes on in @next, or in @taken. */
static inline void end(struct made *made, struct jit_insn insn, uint32_t taken, uint32_t next)
{
	struct jit_block *b = &made->function.blocks[made->function.nblocks - 1];

	add(made, insn);
	b->taken = taken;
	b->next = next;
}

static inline void add_move(struct made *made, int dst, uint64_t imm)
{
	struct jit_insn in = blank(JIT_MOV);

	in.dst = dst;
	in.imm = imm;
	add(made, in);
}

static inline void add_access(struct made *made, enum jit_op op, int reg, int base, int off)
{
	struct jit_insn in = blank(op);

	in.base = base;
	in.off = off;
	if (op == JIT_LOAD)
		in.dst = reg;
	else
		in.b = reg;
	add(made, in);
}

/* r0 to r9 from the struct state that r1 points to, which is remembered in the frame. */
static inline void add_load_state(struct made *made)
{
	add_access(made, JIT_STORE, 1, 10, -8);
	for (int r = 0; r < REGISTERS; r++)
		if (r != 1)
			add_access(made, JIT_LOAD, r, 1, 8 * r);
	add_access(made, JIT_LOAD, 1, 1, 8);
}

static inline void add_store_state(struct made *made)
{
	for (int r = 0; r < REGISTERS; r++)
		add_access(made, JIT_STORE, r, 10, -16 - 8 * r);
	add_access(made, JIT_LOAD, 1, 10, -8);
	for (int r = 0; r < REGISTERS; r++) {
		add_access(made, JIT_LOAD, 0, 10, -16 - 8 * r);
		add_access(made, JIT_STORE, 0, 1, 8 * r);
	}
}

/* Compiles what was made as function @index; with the shared passes off but the back end's own on. */
static inline int try_compile(struct made *made, uint32_t index)
{
	struct jit_function *function = &made->function;

	function->index = index;
	function->passes = 0;
	function->checked = false;
	assert_int_equal(jit_optimise(function), 0);
	function->passes = made->passes;
	function->checked = made->checked;
	return a64_function(&made->code, function, made->lse);
}

static inline void finish(struct made *made)
{
	assert_false(made->code.full);
	assert_int_equal(jit_arm64.finish(&made->code), 0);
	__builtin___clear_cache((char *)made->code.bytes,
				(char *)made->code.bytes + made->code.size);
}

static inline void compile(struct made *made)
{
	assert_int_equal(try_compile(made, 0), 0);
	finish(made);
}

/* Calls function 0. Only where RUNS. */
static inline uint64_t enter(struct made *made, uint64_t a, uint64_t b)
{
	const uint64_t args[5] = { a, b, 3, 4, 5 };
	uint64_t (*call)(void *code, const uint64_t *args);
	void *at = made->code.bytes + made->enter;

	memcpy(&call, &at, sizeof(call));
	return call(made->code.bytes + made->ranges[0].first, args);
}

static inline uint64_t sign_extend(uint64_t value, unsigned int bytes)
{
	const int shift = 64 - 8 * bytes;

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

static inline uint64_t zero_extend(uint64_t value, unsigned int bytes)
{
	return bytes == 8 ? value : value & ((1ull << 8 * bytes) - 1);
}

/* Operands that tell much. */
static const uint64_t edges[] = {
	0,
	1,
	2,
	7,
	0x7f,
	0x80,
	0xffff,
	0x7fffffff,
	0x80000000,
	0xffffffff,
	0x100000000,
	0x123456789abcdef0,
	0x7fffffffffffffff,
	0x8000000000000000,
	0x8000000080000000,
	0xfffffffffffffffe,
	0xffffffffffffffff,
};
#define NEDGES (sizeof(edges) / sizeof(edges[0]))
