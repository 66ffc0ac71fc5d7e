/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the x86-64 back end share: a function of the compiler's form made by hand,
 * compiled into memory that may be run, with registers that are loaded before and stored after.
 * Everything lies in the lower 2 GiB, so that fixed addresses need no register.
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

#include "vm/jit/jit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ALL_LIVE        0x7ff
#define CODE_SIZE       (1 << 20)
#define MAX_INSNS       128
#define MAX_BLOCKS      16

struct machine {
	struct vm vm;
	struct vm_image image;
	struct jit_runtime runtime;
	struct jit_code code;
	struct jit_range functions[4];
	uint8_t *memory; /* code, then a page of data */
	uint32_t enter;
	uint32_t stubs_end;
	/* the function that is made */
	struct jit_function function;
	struct jit_insn insns[MAX_INSNS];
	struct jit_block blocks[MAX_BLOCKS];
	uint32_t order[MAX_BLOCKS];
	uint32_t targets[MAX_BLOCKS];
};

struct state {
	uint64_t r[11];
	uint64_t memory[8];
};

static inline struct state *state_of(const struct machine *m)
{
	return (struct state *)(m->memory + CODE_SIZE);
}

/* The stubs, for the runtime as it is now. */
static inline void make_stubs(struct machine *m)
{
	m->code.size = 0;
	assert_int_equal(jit_x86.begin(&m->code, &m->enter), 0);
	m->stubs_end = m->code.size;
}

static inline void machine_make(struct machine *m)
{
	memset(m, 0, sizeof(*m));
	m->memory = mmap(NULL, CODE_SIZE + 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	assert_ptr_not_equal(m->memory, MAP_FAILED);
	m->runtime.vm = &m->vm;
	m->code = (struct jit_code){ .bytes = m->memory,
				     .address = (uintptr_t)m->memory,
				     .capacity = CODE_SIZE,
				     .functions = m->functions,
				     .runtime = &m->runtime };
	make_stubs(m);
	m->function = (struct jit_function){ .vm = &m->vm,
					     .image = &m->image,
					     .insns = m->insns,
					     .blocks = m->blocks,
					     .order = m->order,
					     .targets = m->targets,
					     .frame = 64,
					     .passes = VM_PASS_ALL };
}

static inline void machine_release(struct machine *m)
{
	munmap(m->memory, CODE_SIZE + 8192);
	free(m->code.places);
	free(m->code.steps);
	free(m->code.patches);
}

/* An instruction that names nothing. */
static inline struct jit_insn blank(enum jit_op op, unsigned int width)
{
	return (struct jit_insn){ .op = op,
				  .width = width,
				  .size = width,
				  .dst = JIT_NONE,
				  .a = JIT_NONE,
				  .b = JIT_NONE,
				  .base = JIT_NONE,
				  .index = JIT_NONE,
				  .live = ALL_LIVE };
}

static inline void start_block(struct machine *m)
{
	struct jit_function *f = &m->function;

	assert_true(f->nblocks < MAX_BLOCKS);
	m->order[f->norder++] = f->nblocks;
	m->blocks[f->nblocks++] = (struct jit_block){ .first = f->ninsns,
						      .taken = JIT_NOWHERE,
						      .next = JIT_NOWHERE,
						      .live_in = ALL_LIVE,
						      .cost = 1,
						      .reachable = true };
}

static inline struct jit_block *last_block(struct machine *m)
{
	return &m->blocks[m->function.nblocks - 1];
}

static inline void add(struct machine *m, struct jit_insn insn)
{
	struct jit_function *f = &m->function;

	assert_true(f->ninsns < MAX_INSNS);
	insn.insn = f->ninsns;
	m->insns[f->ninsns++] = insn;
	last_block(m)->count++;
}

/* Every register from the state, but r10, which goes to memory[0]. */
static inline void start(struct machine *m)
{
	struct jit_function *f = &m->function;
	struct jit_insn insn = blank(JIT_LOAD, 8);

	m->code.size = m->stubs_end;
	m->code.nplaces = m->code.nsteps = m->code.npatches = 0;
	memset(m->functions, 0, sizeof(m->functions));
	f->ninsns = f->nblocks = f->norder = 0;
	f->written = 0x3ff;
	f->uses_frame = true;
	start_block(m);
	for (uint8_t i = 0; i < 10; i++) {
		insn.dst = i;
		insn.off = (int32_t)(uintptr_t)&state_of(m)->r[i];
		add(m, insn);
	}
	insn = blank(JIT_STORE, 8);
	insn.b = 10;
	insn.off = (int32_t)(uintptr_t)&state_of(m)->memory[0];
	add(m, insn);
}

static inline void store_all(struct machine *m)
{
	struct jit_insn insn = blank(JIT_STORE, 8);

	for (uint8_t i = 0; i < 11; i++) {
		insn.b = i;
		insn.off = (int32_t)(uintptr_t)&state_of(m)->r[i];
		add(m, insn);
	}
}

/* Appends stores of all registers and the end, and compiles. */
static inline void finish(struct machine *m)
{
	store_all(m);
	add(m, blank(JIT_EXIT, 8));
	assert_int_equal(jit_x86.function(&m->code, &m->function), 0);
	assert_false(m->code.full);
	assert_int_equal(jit_x86.finish(&m->code), 0);
}

typedef uint64_t enter_function(void *code, const uint64_t args[5]);

static inline uint64_t run_with(struct machine *m, const uint64_t args[5])
{
	enter_function *enter = (enter_function *)(m->memory + m->enter);

	return enter(m->memory + m->functions[m->function.index].first, args);
}

static inline uint64_t run(struct machine *m)
{
	static const uint64_t args[5];

	return run_with(m, args);
}

/* Numbers at which arithmetic changes. */
static const uint64_t edges[] = {
	0,
	1,
	2,
	3,
	7,
	10,
	31,
	32,
	63,
	64,
	127,
	128,
	255,
	256,
	1000,
	0x7fff,
	0x8000,
	0xffff,
	0x7fffffff,
	0x80000000,
	0x80000001,
	0xfffffffe,
	0xffffffff,
	0x100000000,
	0x123456789abcdef0,
	0x7fffffffffffffff,
	0x8000000000000000,
	0x8000000000000001,
	0xffffffff00000000,
	0xffffffff7fffffff,
	0xffffffff80000000,
	0xfffffffffffffff6,
	0xffffffffffffffff,
};

/* Different from all others, so that a mixed-up register shows. */
static inline void scramble(struct state *state)
{
	for (uint64_t i = 0; i < 11; i++)
		state->r[i] = 0x1111111111111111 * (i + 1) ^ i << 60;
}
