// SPDX-License-Identifier: BSD-2-Clause
/* Loads, stores, changes in memory, atomics, checks and array elements, against the same in C. */
#include "x86_fixture.h"

static const uint8_t sizes[] = { 1, 2, 4, 8 };
static const uint8_t few[] = { 0, 1, 2, 3, 4, 6, 7 };
static const uint32_t pass_sets[] = { VM_PASS_ALL, VM_PASS_ALL & ~VM_PASS_SHORT };

static uint64_t mask_of(unsigned int size)
{
	return size == 8 ? UINT64_MAX : (1ull << 8 * size) - 1;
}

static uint64_t apply(enum jit_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case JIT_ADD:
		return a + b;
	case JIT_SUB:
		return a - b;
	case JIT_OR:
		return a | b;
	case JIT_AND:
		return a & b;
	case JIT_XOR:
		return a ^ b;
	default:
		return b;
	}
}

static void compile(struct machine *m, struct jit_insn insn)
{
	start(m);
	add(m, insn);
	finish(m);
}

/* Base and index such that the instruction finds memory[1]. */
static void aim(struct machine *m, struct state *state, const struct jit_insn *insn)
{
	(void)m;
	uint64_t address = (uintptr_t)&state->memory[1] - insn->off;

	if (insn->index != JIT_NONE) {
		state->r[insn->index] = 3;
		address -= 3ull << insn->scale;
		if (insn->index == insn->base) {
			assert_int_equal(address + (3 << insn->scale), state->r[insn->base]);
			return;
		}
	}
	state->r[insn->base] = address;
}

static void expect_others(const struct state *before, const struct state *after, uint16_t changed)
{
	for (uint8_t r = 0; r < 10; r++)
		if (!(changed >> r & 1))
			assert_int_equal(before->r[r], after->r[r]);
	assert_int_equal(before->memory[2], after->memory[2]);
	assert_int_equal(before->memory[3], after->memory[3]);
}

static void fill(struct state *state)
{
	scramble(state);
	state->memory[1] = 0x8182838485868788;
	state->memory[2] = 0x1122334455667788;
	state->memory[3] = 0x99aabbccddeeff00;
}

static void try_load(struct machine *m, struct jit_insn insn)
{
	struct state before, *state = state_of(m);
	uint64_t value;

	compile(m, insn);
	fill(state);
	aim(m, state, &insn);
	before = *state;
	run(m);
	value = before.memory[1] & mask_of(insn.size);
	if (insn.flags & JIT_FLAG_SIGNED)
		value |= ~mask_of(insn.size); /* all the bytes have their top bit set */
	assert_int_equal(state->r[insn.dst], value);
	expect_others(&before, state, 1u << insn.dst);
	assert_int_equal(before.memory[1], state->memory[1]);
}

static void try_store(struct machine *m, struct jit_insn insn)
{
	struct state before, *state = state_of(m);
	uint64_t value, mask = mask_of(insn.size);

	compile(m, insn);
	fill(state);
	aim(m, state, &insn);
	before = *state;
	run(m);
	value = insn.b == JIT_NONE ? insn.imm : before.r[insn.b];
	if (insn.op == JIT_MODIFY)
		value = apply(insn.sub, before.memory[1], value);
	assert_int_equal(state->memory[1], (before.memory[1] & ~mask) | (value & mask));
	expect_others(&before, state, 0);
}

/* Calls @try with every way to name memory. */
static void addressed(struct machine *m, struct jit_insn insn,
		      void (*try)(struct machine *m, struct jit_insn insn))
{
	static const int32_t offsets[] = { 0, -8, 127, 1000 };

	for (size_t base = 0; base < COUNT_OF(few); base++)
		for (size_t index = 0; index <= COUNT_OF(few); index++)
			for (unsigned int i = 0; i < 4; i++) {
				insn.base = few[base];
				insn.index = index < COUNT_OF(few) ? few[index] : JIT_NONE;
				insn.off = offsets[i];
				insn.scale = insn.index == JIT_NONE ? 0 : i;
				if (insn.index != insn.base)
					try(m, insn);
			}
}

static void loads(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * 4 * COUNT_OF(few); n++) {
		struct jit_insn insn = blank(JIT_LOAD, 8);

		m.function.passes = pass_sets[n & 1];
		insn.flags = n & 2 ? JIT_FLAG_SIGNED : 0;
		insn.size = sizes[n >> 2 & 3];
		insn.dst = few[n >> 4];
		addressed(&m, insn, try_load);
	}
	machine_release(&m);
}

static void stores(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 4; n++) {
		struct jit_insn insn = blank(JIT_STORE, 8);

		m.function.passes = pass_sets[n & 1];
		insn.size = sizes[n >> 1];
		for (size_t b = 0; b < COUNT_OF(few); b++) {
			insn.b = few[b];
			addressed(&m, insn, try_store);
		}
		insn.b = JIT_NONE;
		for (size_t i = 0; i < COUNT_OF(edges); i++) {
			insn.imm = edges[i];
			insn.base = few[i % COUNT_OF(few)];
			try_store(&m, insn);
		}
	}
	machine_release(&m);
}

static void changes(void **state)
{
	static const uint8_t ops[] = { JIT_ADD, JIT_SUB, JIT_OR, JIT_AND, JIT_XOR };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 4 * COUNT_OF(ops); n++) {
		struct jit_insn insn = blank(JIT_MODIFY, 8);

		m.function.passes = pass_sets[n & 1];
		insn.size = sizes[n >> 1 & 3];
		insn.sub = ops[n >> 3];
		for (size_t b = 0; b < COUNT_OF(few); b++) {
			insn.b = few[b];
			addressed(&m, insn, try_store);
		}
		insn.b = JIT_NONE;
		for (size_t i = 0; i < COUNT_OF(edges); i++) {
			insn.imm = edges[i];
			insn.base = few[i % COUNT_OF(few)];
			try_store(&m, insn);
		}
	}
	machine_release(&m);
}

static void try_atomic(struct machine *m, struct jit_insn insn)
{
	struct state before, *state = state_of(m);
	const uint64_t mask = mask_of(insn.size);
	uint64_t value;

	compile(m, insn);
	fill(state);
	aim(m, state, &insn);
	before = *state;
	run(m);
	value = apply(insn.sub, before.memory[1], before.r[insn.b]);
	assert_int_equal(state->memory[1], (before.memory[1] & ~mask) | (value & mask));
	if (insn.flags & JIT_FLAG_FETCH)
		assert_int_equal(state->r[insn.b], before.memory[1] & mask);
	expect_others(&before, state, insn.flags & JIT_FLAG_FETCH ? 1u << insn.b : 0);
}

static void atomics(void **state)
{
	static const uint8_t ops[] = { JIT_ADD, JIT_OR, JIT_AND, JIT_XOR, JIT_MOV };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * COUNT_OF(ops) * COUNT_OF(few); n++) {
		struct jit_insn insn = blank(JIT_ATOMIC, 8);

		insn.size = n & 1 ? 4 : 8;
		insn.sub = ops[n / 4 % COUNT_OF(ops)];
		insn.flags = n & 2 || insn.sub == JIT_MOV ? JIT_FLAG_FETCH : 0;
		insn.b = few[n / 4 / COUNT_OF(ops)];
		addressed(&m, insn, try_atomic);
		insn.live &= ~1u;
	}
	machine_release(&m);
}

/* A base register that is the operand, too: where the old value goes, after the address is used. */
static void atomics_on_their_address(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t b = 0; b < COUNT_OF(few); b++) {
		struct jit_insn insn = blank(JIT_ATOMIC, 8);
		struct state *s = state_of(&m);
		uint64_t old, address = (uintptr_t)&s->memory[1];

		insn.sub = JIT_XOR;
		insn.flags = JIT_FLAG_FETCH;
		insn.b = insn.base = few[b];
		compile(&m, insn);
		fill(s);
		old = s->memory[1];
		s->r[few[b]] = address;
		run(&m);
		assert_int_equal(s->memory[1], old ^ address);
		assert_int_equal(s->r[few[b]], old);
	}
	machine_release(&m);
}

static void compare_and_exchange(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * COUNT_OF(few) * COUNT_OF(few); n++) {
		struct jit_insn insn = blank(JIT_CMPXCHG, 8);
		struct state *s = state_of(&m), before;
		const uint64_t mask = mask_of(insn.size = n & 1 ? 4 : 8);

		insn.b = few[n / 4 % COUNT_OF(few)];
		insn.base = few[n / 4 / COUNT_OF(few)];
		if (!insn.base)
			continue;
		compile(&m, insn);
		fill(s);
		s->r[0] = n & 2 ? s->memory[1] ^ 1ull << 40 << 20 * (insn.size == 4) : 5;
		if (n & 2 && insn.size == 8)
			s->r[0] = s->memory[1];
		aim(&m, s, &insn);
		before = *s;
		run(&m);
		assert_int_equal(s->r[0], before.memory[1] & mask);
		if ((before.r[0] & mask) == (before.memory[1] & mask))
			before.memory[1] = (before.memory[1] & ~mask) | (before.r[insn.b] & mask);
		assert_int_equal(s->memory[1], before.memory[1]);
		expect_others(&before, s, 1);
	}
	machine_release(&m);
}

/* [r10 + off] is memory of the function, whatever it saves and calls. */
static void frames(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	for (uint32_t n = 0; n < 2 * 2 * 3; n++) {
		struct jit_insn insn = blank(JIT_STORE, 8);
		struct state *s = state_of(&m);

		m.function.passes = n & 1 ? VM_PASS_ALL : VM_PASS_ALL & ~VM_PASS_PROLOGUE;
		m.function.calls = n & 2;
		m.function.frame = n / 4 == 0 ? 64 : n / 4 == 1 ? 512 : 4096;
		start(&m);
		insn.base = 10;
		for (int32_t off = -8; off >= -(int32_t)m.function.frame; off -= 8) {
			if (off == -32 && m.function.frame > 64)
				off = -(int32_t)m.function.frame;
			insn.off = off;
			insn.imm = -(int64_t)off;
			add(&m, insn);
		}
		insn = blank(JIT_LOAD, 8);
		insn.base = 10;
		insn.dst = 1;
		insn.off = -16;
		add(&m, insn);
		insn.base = JIT_NONE;
		insn = blank(JIT_LOAD, 8);
		insn.base = 10;
		insn.dst = 2;
		insn.off = -(int32_t)m.function.frame;
		add(&m, insn);
		finish(&m);
		scramble(s);
		run(&m);
		assert_int_equal(s->r[1], 16);
		assert_int_equal(s->r[2], m.function.frame);
		assert_int_equal(s->memory[0] & 15, 0); /* r10 */
	}
	machine_release(&m);
}

/* ---- checked mode ---- */

static struct {
	struct vm *vm;
	uint32_t number;
	uint64_t address;
	unsigned int times;
} missed;
static struct jit_check_slot slots[3];

static void miss(struct vm *vm, uint32_t number, uint64_t address)
{
	missed.vm = vm;
	missed.number = number;
	missed.address = address;
	missed.times++;
	slots[number] = (struct jit_check_slot){ address & ~63ull, 56 };
	/* What a C function may change. */
	__asm__ volatile("xor %%eax, %%eax; xor %%edi, %%edi; xor %%esi, %%esi; xor %%edx, %%edx;"
			 "xor %%ecx, %%ecx; xor %%r8d, %%r8d; xor %%r9d, %%r9d"
			 :
			 :
			 : "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9");
}

static void checks(void **state)
{
	struct machine m;

	(void)state;
	machine_make(&m);
	m.runtime.checks = slots;
	m.runtime.check_miss = miss;
	make_stubs(&m);
	m.function.checked = true;
	for (size_t base = 0; base < COUNT_OF(few); base++) {
		struct jit_insn insn = blank(JIT_CHECK, 8);
		struct state before, *s = state_of(&m);
		uint64_t stack[64], *top = stack + 64;

		m.runtime.stack = (uint64_t *)&top;
		m.runtime.stack_low = (uintptr_t)stack;
		insn.base = few[base];
		insn.off = 8;
		insn.imm = 8;
		insn.target = 2;
		compile(&m, insn);
		memset(slots, 0, sizeof(slots));
		missed.times = 0;
		for (uint64_t i = 0; i < 64; i++) {
			const uint64_t address = 0x10000 + 8 * i;

			scramble(s);
			s->r[few[base]] = address - 8;
			before = *s;
			run(&m);
			expect_others(&before, s, 0);
			assert_int_equal(missed.times, i / 8 + 1);
			assert_int_equal(missed.address, 0x10000 + i / 8 * 64);
			assert_int_equal(missed.number, 2);
			assert_ptr_equal(missed.vm, &m.vm);
			/* r10 was the top of the vm's own stack, which is as before. */
			assert_int_equal(s->r[10], (uintptr_t)(stack + 64));
			assert_ptr_equal(top, stack + 64);
		}
	}
	machine_release(&m);
}

/* ---- arrays ---- */

static void check_elements(struct machine *m, const struct vm_array *array)
{
	struct state *s = state_of(m);
	const uint32_t beyond[] = { array->entries, array->entries + 1, INT32_MAX, UINT32_MAX };

	for (uint32_t i = 0; i < array->entries; i++) {
		fill(s);
		s->memory[1] = i | 7ull << 32;
		s->r[6] = (uintptr_t)&s->memory[1];
		run(m);
		assert_int_equal(s->r[0], (uintptr_t)array->data + i * array->stride);
	}
	for (size_t i = 0; i < COUNT_OF(beyond); i++) {
		fill(s);
		s->memory[1] = beyond[i];
		s->r[6] = (uintptr_t)&s->memory[1];
		run(m);
		assert_int_equal(s->r[0], 0);
	}
}

static void elements(void **state)
{
	static const uint32_t strides[] = { 1,  2,  3,  4,  5,  6,  8,  9,   12,  16,
					    20, 24, 32, 40, 48, 56, 72, 100, 128, 4096 };
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t i = 0; i < COUNT_OF(strides); i++) {
		struct vm_array arrays[2] = {
			{ .data = (void *)0x7f1234567000, .stride = strides[i], .entries = 100 },
			{ .data = (void *)0x12345000, .stride = strides[i], .entries = 7 },
		};

		m.image.arrays = arrays;
		for (uint32_t target = 0; target < 2; target++) {
			struct jit_insn insn = blank(JIT_ARRAY, 8);

			insn.target = target;
			insn.base = 6;
			compile(&m, insn);
			check_elements(&m, &arrays[target]);
			insn.base = JIT_NONE;
			for (insn.a = 0; insn.a < 10; insn.a++) {
				struct state *st = state_of(&m);

				compile(&m, insn);
				fill(st);
				st->r[insn.a] = 5 | 1ull << 40;
				run(&m);
				assert_int_equal(st->r[0],
						 (uintptr_t)arrays[target].data + 5 * strides[i]);
				st->r[insn.a] = arrays[target].entries;
				run(&m);
				assert_int_equal(st->r[0], 0);
			}
			insn.a = JIT_NONE;
			insn.imm = 6;
			compile(&m, insn);
			run(&m);
			assert_int_equal(state_of(&m)->r[0],
					 (uintptr_t)arrays[target].data + 6 * strides[i]);
		}
	}
	machine_release(&m);
}

/* The comparison with 0 that follows a lookup is part of it, in both directions. */
static void elements_compared(void **state)
{
	struct vm_array array = { .data = (void *)0x7f1234567000, .stride = 8, .entries = 3 };
	struct machine m;

	(void)state;
	machine_make(&m);
	m.image.arrays = &array;
	for (int n = 0; n < 8; n++) {
		struct jit_insn insn = blank(JIT_ARRAY, 8), branch = blank(JIT_BRANCH, 8);
		struct jit_insn set = blank(JIT_MOV, 8);

		insn.base = 6;
		branch.a = 0;
		branch.sub = n & 1 ? JIT_EQ : JIT_NE;
		start(&m);
		set.dst = 8; /* what one way alone needs must still be there */
		set.imm = 0;
		add(&m, set);
		add(&m, insn);
		add(&m, branch);
		last_block(&m)->next = n & 2 ? 1 : 2;
		last_block(&m)->taken = n & 2 ? 2 : 1;
		for (uint64_t i = 1; i < 3; i++) {
			start_block(&m);
			if (n & 4)
				last_block(&m)->live_in = ALL_LIVE & ~(i == 1 ? 0x101u : 1u);
			set.dst = 5;
			set.imm = i;
			add(&m, set);
			add(&m, blank(JIT_JUMP, 8));
			last_block(&m)->next = 3;
		}
		start_block(&m);
		finish(&m);
		for (uint64_t i = 0; i < 5; i++) {
			struct state *s = state_of(&m);
			const bool taken = (n & 1) == (i >= 3), first = taken == !(n & 2);

			fill(s);
			s->memory[1] = i;
			s->r[6] = (uintptr_t)&s->memory[1];
			run(&m);
			assert_int_equal(s->r[5], first ? 1 : 2);
			if (!(n & 4) || !first)
				assert_int_equal(s->r[8], 0);
			if (!(n & 4) || i < 3)
				assert_int_equal(s->r[0],
						 i < 3 ? (uintptr_t)array.data + 8 * i : 0);
		}
	}
	machine_release(&m);
}

/* r5 = 1; r0 = element; if (r0) goto 2; r5 = 0; 2: */
static void elements_chosen_by(void **state)
{
	struct vm_array array = { .data = (void *)0x7f1234567000, .stride = 8, .entries = 3 };
	struct jit_insn insn = blank(JIT_ARRAY, 8), branch = blank(JIT_BRANCH, 8);
	struct jit_insn set = blank(JIT_MOV, 8);
	struct machine m;

	(void)state;
	machine_make(&m);
	m.image.arrays = &array;
	start(&m);
	set.dst = 9;
	set.imm = 1;
	insn.base = 6;
	branch.a = 0;
	branch.sub = JIT_NE;
	add(&m, set);
	add(&m, insn);
	add(&m, branch);
	last_block(&m)->next = 1;
	last_block(&m)->taken = 2;
	start_block(&m);
	set.imm = 0;
	add(&m, set);
	add(&m, blank(JIT_JUMP, 8));
	last_block(&m)->next = 2;
	start_block(&m);
	finish(&m);
	for (uint64_t i = 0; i < 5; i++) {
		struct state *s = state_of(&m);

		fill(s);
		s->memory[1] = i;
		s->r[6] = (uintptr_t)&s->memory[1];
		run(&m);
		assert_int_equal(s->r[9], i < 3);
		assert_int_equal(s->r[0], i < 3 ? (uintptr_t)array.data + 8 * i : 0);
	}
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads),
		cmocka_unit_test(stores),
		cmocka_unit_test(changes),
		cmocka_unit_test(atomics),
		cmocka_unit_test(atomics_on_their_address),
		cmocka_unit_test(compare_and_exchange),
		cmocka_unit_test(frames),
		cmocka_unit_test(checks),
		cmocka_unit_test(elements),
		cmocka_unit_test(elements_compared),
		cmocka_unit_test(elements_chosen_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
