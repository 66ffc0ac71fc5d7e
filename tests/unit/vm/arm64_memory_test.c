// SPDX-License-Identifier: BSD-2-Clause
/* Memory in the arm64 back end: loads, stores, atomics, checks, arrays. */
#include "arm64_fixture.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define MIDDLE 0x8000 /* of the memory under test: offsets go both ways */

static struct {
	uint8_t bytes[2 * MIDDLE] __attribute__((aligned(16)));
} memory;

static void fill_memory(void)
{
	for (size_t i = 0; i < sizeof(memory.bytes); i++)
		memory.bytes[i] = i * 37 + (i >> 8) + 0x81;
}

static uint64_t read_memory(const uint8_t *at, unsigned int size)
{
	uint64_t value = 0;

	memcpy(&value, at, size);
	return value;
}

static void compile_one(struct made *made, struct jit_insn in)
{
	start(made);
	block(made);
	add_load_state(made);
	add(made, in);
	add_store_state(made);
	end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
	compile(made);
}

static void run(struct made *made, const struct state *before, const struct state *after,
		const char *what)
{
	struct state now = *before;

	if (!RUNS)
		return;
	enter(made, (uintptr_t)&now, 0);
	for (int r = 0; r < REGISTERS; r++)
		if (now.r[r] != after->r[r])
			fail_msg("%s: r%d is 0x%llx, not 0x%llx", what, r,
				 (unsigned long long)now.r[r], (unsigned long long)after->r[r]);
}

static struct state some_state(void)
{
	struct state state;

	for (int r = 0; r < REGISTERS; r++)
		state.r[r] = 0xf1e2d3c4b5a69780ull * (r + 3);
	return state;
}

static const int32_t offsets[] = { 0,    1,    -1,   8,    255,    -256,    256,   257,
				   4095, 4096, 4104, 8190, 0x7ff8, -0x7ff8, -4096, 32760 - 8 };
#define NOFFSETS (sizeof(offsets) / sizeof(offsets[0]))

/* With offsets, and with an index of each scale. */
static size_t forms(struct jit_insn *in, size_t i)
{
	in->base = 3;
	in->index = JIT_NONE;
	in->off = in->scale = 0;
	if (i < NOFFSETS) {
		in->off = offsets[i];
	} else {
		in->index = 7;
		in->scale = i & 3;
		in->off = i & 4 ? -24 : 0;
	}
	return NOFFSETS + 8;
}

static uint8_t *place(struct state *state, const struct jit_insn *in)
{
	uint8_t *at = memory.bytes + MIDDLE;

	state->r[in->base] = (uintptr_t)at;
	if (in->index != JIT_NONE) {
		state->r[in->index] = -5;
		at -= 5 << in->scale;
	}
	return at + in->off;
}

static void test_loads(void **unused)
{
	static const uint8_t targets[] = { 0, 1, 3, 7, 9 };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_LOAD);
	struct state before, after;
	const uint8_t *at;

	(void)unused;
	fill_memory();
	for (size_t i = 0; i < forms(&in, i); i++)
		for (in.size = 1; in.size <= 8; in.size *= 2)
			for (in.flags = 0; in.flags <= JIT_FLAG_SIGNED; in.flags++)
				for (size_t k = 0; k < sizeof(targets); k++) {
					in.dst = targets[k];
					compile_one(made, in);
					before = some_state();
					at = place(&before, &in);
					after = before;
					after.r[in.dst] = read_memory(at, in.size);
					if (in.flags)
						after.r[in.dst] =
							sign_extend(after.r[in.dst], in.size);
					run(made, &before, &after, "load");
				}
	unmake(made);
}

/* What the bytes at @at are afterwards, all others being as they were. */
static void check_memory(const uint8_t *at, unsigned int size, uint64_t want, const char *what)
{
	uint8_t got[sizeof(memory.bytes)];

	if (!RUNS)
		return;
	memcpy(got, memory.bytes, sizeof(got));
	if (memcmp(at, &want, size))
		fail_msg("%s of %u bytes: 0x%llx, not 0x%llx", what, size,
			 (unsigned long long)read_memory(at, size),
			 (unsigned long long)zero_extend(want, size));
	fill_memory();
	memcpy(&got[at - memory.bytes], at, size);
	assert_memory_equal(got, memory.bytes, sizeof(got));
}

static void test_stores(void **unused)
{
	static const uint64_t values[] = { 0, 1, -1ull, 0x123456789abcdef0, 0xffff8000 };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_STORE);
	struct state before;
	uint8_t *at;

	(void)unused;
	for (size_t i = 0; i < forms(&in, i); i++)
		for (in.size = 1; in.size <= 8; in.size *= 2)
			for (size_t k = 0; k < 2 * sizeof(values) / sizeof(values[0]); k++) {
				in.b = k & 1 ? k % 7 : JIT_NONE;
				in.imm = values[k / 2];
				if (in.b == in.base)
					in.b = 8;
				fill_memory();
				compile_one(made, in);
				before = some_state();
				at = place(&before, &in);
				run(made, &before, &before, "store");
				check_memory(at, in.size,
					     in.b == JIT_NONE ? in.imm : before.r[in.b], "store");
			}
	unmake(made);
}

static uint64_t combined(const struct jit_insn *in, uint64_t old, uint64_t b)
{
	switch (in->sub) {
	case JIT_ADD:
		return old + b;
	case JIT_SUB:
		return old - b;
	case JIT_OR:
		return old | b;
	case JIT_AND:
		return old & b;
	case JIT_XOR:
		return old ^ b;
	default:
		assert_int_equal(in->sub, JIT_MOV);
		return b;
	}
}

static void test_modify(void **unused)
{
	static const uint8_t subs[] = { JIT_ADD, JIT_SUB, JIT_OR, JIT_AND, JIT_XOR };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_MODIFY);
	struct state before;
	uint64_t want;
	uint8_t *at;

	(void)unused;
	for (size_t i = 0; i < forms(&in, i); i++)
		for (in.size = 1; in.size <= 8; in.size *= 2)
			for (size_t k = 0; k < 2 * sizeof(subs); k++) {
				in.sub = subs[k / 2];
				in.b = k & 1 ? 4 : JIT_NONE;
				in.imm = 0x123456789abcdef1;
				fill_memory();
				compile_one(made, in);
				before = some_state();
				at = place(&before, &in);
				want = combined(&in, read_memory(at, in.size),
						k & 1 ? before.r[4] : in.imm);
				run(made, &before, &before, "modify");
				check_memory(at, in.size, want, "modify");
			}
	unmake(made);
}

/* Atomic instructions are compiled everywhere, and run where the processor has them. */
static bool has_lse(void)
{
#if defined(__aarch64__)
	return getauxval(AT_HWCAP) & HWCAP_ATOMICS;
#else
	return true;
#endif
}

static void check_atomic(struct made *made, struct jit_insn in)
{
	struct state before = some_state(), after;
	uint64_t old, want;
	uint8_t *at;

	fill_memory();
	compile_one(made, in);
	before.r[3] = (uintptr_t)memory.bytes + MIDDLE;
	at = memory.bytes + MIDDLE + in.off;
	old = read_memory(at, in.size);
	want = combined(&in, old, before.r[in.b]);
	after = before;
	if (in.flags)
		after.r[in.b] = old;
	run(made, &before, &after, "atomic");
	check_memory(at, in.size, want, "atomic");
}

static void test_atomics(void **unused)
{
	static const uint8_t subs[] = { JIT_ADD, JIT_OR, JIT_AND, JIT_XOR, JIT_MOV };
	static const int32_t aligned[] = { 0, 8, -16, 0x7f00 };
	static const uint8_t operands[] = { 0, 1, 3, 8 };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_ATOMIC);

	(void)unused;
	in.base = 3;
	for (int n = 0; n < 5 * 4 * 4 * 2 * 2 * 2; n++) {
		in.sub = subs[n % 5];
		in.off = aligned[n / 5 % 4];
		in.b = operands[n / 20 % 4];
		in.size = n / 80 % 2 ? 4 : 8;
		in.flags = n / 160 % 2 ? JIT_FLAG_FETCH : 0;
		if (in.sub == JIT_MOV)
			in.flags = JIT_FLAG_FETCH;
		made->lse = n / 320 % 2 && has_lse();
		check_atomic(made, in);
	}
	unmake(made);
}

static void check_exchange(struct made *made, struct jit_insn in, bool equal)
{
	struct state before = some_state(), after;
	uint64_t old, want;
	uint8_t *at;

	fill_memory();
	compile_one(made, in);
	before.r[3] = (uintptr_t)memory.bytes + MIDDLE;
	at = memory.bytes + MIDDLE + in.off;
	old = read_memory(at, in.size);
	/* Bits above the size do not count. */
	before.r[0] = (in.size == 4 ? old | 5ull << 32 : old) + !equal;
	want = equal ? before.r[in.b] : old;
	after = before;
	after.r[0] = old;
	run(made, &before, &after, "cmpxchg");
	check_memory(at, in.size, want, "cmpxchg");
}

static void test_exchange(void **unused)
{
	static const uint8_t operands[] = { 0, 1, 3, 8 };
	struct made *made = make(1 << 16);
	struct jit_insn in = blank(JIT_CMPXCHG);

	(void)unused;
	in.base = 3;
	for (int n = 0; n < 4 * 2 * 2 * 2 * 2; n++) {
		in.b = operands[n % 4];
		in.size = n & 4 ? 4 : 8;
		in.off = n & 8 ? -24 : 0;
		made->lse = n & 16 && has_lse();
		check_exchange(made, in, n & 32);
	}
	unmake(made);
}

/* A frame of any size: the lowest slot, and one that only an index reaches. */
static void test_frames(void **unused)
{
	static const uint32_t sizes[] = { 16, 512, 528, 4096, 32768, 40000, 1 << 20 };
	struct made *made = make(1 << 16);
	struct jit_insn in;

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int pass = 0; pass < 2; pass++) {
			made->passes = pass ? 0 : VM_PASS_ALL;
			start(made);
			made->function.frame = sizes[i];
			block(made);
			add_move(made, 6, 77);
			add_access(made, JIT_STORE, 6, 10, -(int)sizes[i]);
			add_move(made, 6, -(uint64_t)(sizes[i] / 8));
			in = blank(JIT_LOAD);
			in.dst = 0, in.base = 10, in.index = 6, in.scale = 3;
			add(made, in);
			in.dst = 7, in.off = 8, in.imm = 0;
			add_access(made, JIT_STORE, 0, 10, -(int)sizes[i] + 8);
			add(made, in);
			in = blank(JIT_ADD);
			in.dst = in.a = 0, in.b = 7;
			add(made, in);
			end(made, blank(JIT_EXIT), JIT_NOWHERE, JIT_NOWHERE);
			compile(made);
			if (RUNS)
				assert_int_equal(enter(made, 0, 0), 154);
		}
	unmake(made);
}

static void check_array(struct made *made, struct vm_array *array, uint32_t index, int form)
{
	struct jit_insn in = blank(JIT_ARRAY);
	struct state before = some_state(), after;
	uint64_t want = 0;

	if (form == 0)
		in.base = 3, in.off = 4;
	else if (form == 1)
		in.a = 1;
	else
		in.imm = index;
	if (form == 2 && index >= array->entries)
		return;
	in.size = 0;
	made->image.arrays = array;
	made->image.narrays = 1;
	compile_one(made, in);
	memcpy(memory.bytes + MIDDLE + 4, &index, sizeof(index));
	before.r[3] = (uintptr_t)memory.bytes + MIDDLE;
	before.r[1] = index | 0xffull << 32;
	if (index < array->entries)
		want = (uintptr_t)array->data + (uint64_t)index * array->stride;
	after = before;
	after.r[0] = want;
	run(made, &before, &after, "array");
}

static void test_arrays(void **unused)
{
	static const uint32_t indices[] = { 0, 1, 9, 10, 11, 4999, 5000, 0x7fffffff, 0xffffffff };
	static const uint32_t entries[] = { 1, 10, 5000, 0xffffffff };
	static const uint32_t strides[] = { 1, 8, 24, 4096, 100000 };
	struct made *made = make(1 << 16);
	struct vm_array array = { .data = (void *)0x123456789abc };

	(void)unused;
	for (size_t i = 0; i < 9 * 4 * 5 * 3; i++) {
		array.entries = entries[i / 9 % 4];
		array.stride = strides[i / 36 % 5];
		check_array(made, &array, indices[i % 9], i / 180);
	}
	unmake(made);
}

/* ---- checks ---- */
static struct jit_check_slot slots[40000];
static struct {
	unsigned int count;
	uint32_t number;
	uint64_t address;
} missed;

/* Uses up all registers that a C function may. */
static void miss(struct vm *vm, uint32_t number, uint64_t address)
{
	missed.count++;
	missed.number = number;
	missed.address = address;
	slots[number].start = address - 8;
	slots[number].size = 100;
	(void)vm;
#if defined(__aarch64__)
	__asm__ volatile(
		"mov x0, #1\nmov x1, #1\nmov x2, #1\nmov x3, #1\nmov x4, #1\nmov x5, #1\n"
		"mov x6, #1\nmov x7, #1\nmov x8, #1\nmov x9, #1\nmov x10, #1\nmov x13, #1\n"
		"mov x14, #1\nmov x15, #1" ::
			: "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x13",
			  "x14", "x15");
#endif
}

static uint64_t own_stack, *own_stack_pointer = &own_stack;

static void prepare_checked(struct made *made)
{
	static uint8_t stack[1 << 16];

	own_stack = (uintptr_t)stack + sizeof(stack);
	made->runtime.stack = own_stack_pointer;
	made->runtime.stack_low = (uintptr_t)stack;
	made->runtime.checks = slots;
	made->runtime.check_miss = miss;
	made->checked = true;
}

static void check_check(struct made *made, uint32_t number, int32_t off, uint8_t index)
{
	struct jit_insn in = blank(JIT_CHECK);
	struct state state = some_state();
	uint64_t address;

	in.base = 3, in.off = off, in.index = index, in.scale = 2, in.imm = 4;
	in.target = number;
	compile_one(made, in);
	address = state.r[3] + off + (index == JIT_NONE ? 0 : state.r[index] << 2);
	slots[number] = (struct jit_check_slot){ 0 };
	memset(&missed, 0, sizeof(missed));
	for (int i = 0; RUNS && i < 4; i++) {
		run(made, &state, &state, "check");
		assert_int_equal(missed.count, 1); /* the slot holds what it needs */
		assert_int_equal(missed.number, number);
		assert_int_equal(missed.address, address);
		assert_int_equal(own_stack, made->runtime.stack_low + (1 << 16));
	}
	/* The last address that is allowed, and the first that is not. */
	slots[number].start = address - 100;
	if (RUNS)
		run(made, &state, &state, "check");
	assert_int_equal(missed.count, RUNS);
	slots[number].start = address - 101;
	if (RUNS)
		run(made, &state, &state, "check");
	assert_int_equal(missed.count, 2 * RUNS);
	slots[number].start = address + 1;
	if (RUNS)
		run(made, &state, &state, "check");
	assert_int_equal(missed.count, 3 * RUNS);
}

static void test_checks(void **unused)
{
	struct made *made = make(1 << 16);

	(void)unused;
	prepare_checked(made);
	for (int pass = 0; pass < 2; pass++) {
		made->passes = pass ? 0 : VM_PASS_ALL;
		check_check(made, 0, 0, JIT_NONE);
		check_check(made, 39999, -9, JIT_NONE);
		check_check(made, 257, 0x12345, 7);
	}
	unmake(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),    cmocka_unit_test(test_stores),
		cmocka_unit_test(test_modify),   cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_exchange), cmocka_unit_test(test_frames),
		cmocka_unit_test(test_arrays),   cmocka_unit_test(test_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
