// SPDX-License-Identifier: BSD-2-Clause
/* Budget, stack and room; what unwinders and fault handlers are told. */
#include "x86_fixture.h"

#include <signal.h>
#include <ucontext.h>

static sigjmp_buf away;
static void *from;

static void __attribute__((noreturn)) leave(struct vm *vm)
{
	(void)vm;
	from = __builtin_return_address(0);
	assert_int_equal((uintptr_t)__builtin_frame_address(0) & 15, 0);
	siglongjmp(away, 1);
}

static bool leaves(struct machine *m)
{
	if (sigsetjmp(away, 1))
		return true;
	run(m);
	return false;
}

static void budgets(void **state)
{
	struct machine m;
	int64_t budget;
	struct jit_insn move = blank(JIT_MOV, 8);

	(void)state;
	machine_make(&m);
	m.runtime.budget = &budget;
	m.runtime.spent = leave;
	make_stubs(&m);
	m.runtime.has_budget = true;
	start(&m);
	last_block(&m)->cost = 10;
	move.dst = 3;
	add(&m, blank(JIT_JUMP, 8));
	last_block(&m)->next = 1;
	start_block(&m);
	last_block(&m)->cost = 5;
	add(&m, move);
	finish(&m);
	budget = 15;
	assert_false(leaves(&m));
	assert_int_equal(budget, 0);
	assert_true(leaves(&m));
	assert_int_equal(budget, -10);
	budget = 14;
	assert_true(leaves(&m));
	assert_int_equal(budget, -1);
	assert_in_range((uintptr_t)from, (uintptr_t)m.memory + m.functions[0].first,
			(uintptr_t)m.memory + m.functions[0].end);
	machine_release(&m);
}

static __thread uint64_t limit;

static void stack_limits(void **state)
{
	struct machine m;
	uint64_t pointer;

	(void)state;
	machine_make(&m);
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	m.runtime.limit_offset = (int64_t)((uintptr_t)&limit - pointer);
	m.runtime.overflow = leave;
	make_stubs(&m);
	for (uint32_t frame = 64; frame <= 8192; frame += 8128) {
		for (int recursive = 0; recursive < 2; recursive++) {
			m.function.frame = frame;
			m.function.recursive = recursive;
			start(&m);
			finish(&m);
			limit = 0;
			assert_false(leaves(&m));
			limit = UINT64_MAX;
			assert_int_equal(leaves(&m), recursive || frame > 1024);
		}
	}
	/* The place is the caller's: here, C. */
	assert_true((uintptr_t)from < (uintptr_t)m.memory ||
		    (uintptr_t)from > (uintptr_t)m.memory + m.code.size);
	machine_release(&m);
}

static void heap_limits(void **state)
{
	uint64_t stack[16], *top = stack + 16;
	struct machine m;

	(void)state;
	machine_make(&m);
	m.runtime.overflow = leave;
	m.runtime.stack = (uint64_t *)&top;
	m.runtime.stack_low = (uintptr_t)stack;
	make_stubs(&m);
	m.function.checked = true;
	start(&m);
	finish(&m);
	assert_false(leaves(&m));
	m.function.frame = 128;
	start(&m);
	finish(&m);
	assert_false(leaves(&m));
	top--;
	assert_true(leaves(&m));
	assert_ptr_equal(top, stack + 15);
	machine_release(&m);
}

/* ---- what unwinders and handlers are told ---- */

static void places_and_steps(void **state)
{
	struct machine m;
	struct vm_native native = { .function = leave };
	const struct jit_frame_step *steps;
	uint32_t last = 0, depth = 0;

	(void)state;
	machine_make(&m);
	m.image.natives = &native;
	m.function.calls = true;
	start(&m);
	add(&m, blank(JIT_CALL_C, 8));
	finish(&m);
	assert_true(m.code.nplaces >= m.function.ninsns);
	for (size_t i = 0; i < m.code.nplaces; i++) {
		assert_true(!i || m.code.places[i].offset >= m.code.places[i - 1].offset);
		assert_in_range(m.code.places[i].offset, m.functions[0].first, m.functions[0].end);
	}
	steps = m.code.steps + m.functions[0].first_step;
	assert_int_equal(m.functions[0].nsteps, 5); /* rbx r13 r14 r15, the frame */
	for (uint32_t i = 0; i < 4; i++) {
		static const uint8_t dwarf[] = { 3, 13, 14, 15 };

		assert_true(steps[i].offset > last);
		assert_int_equal(steps[i].reg, dwarf[i]);
		assert_int_equal(steps[i].depth, depth += 8);
		assert_int_equal(steps[i].slot, depth);
		last = steps[i].offset;
	}
	assert_int_equal(steps[4].reg, JIT_NONE);
	assert_int_equal((steps[4].depth + 8) % 16, 0);
	assert_true(m.code.stubs.nsteps >= 2 * (5 + 7));
	machine_release(&m);
}

static uint64_t addresses[8];
static size_t naddresses;

static void on_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)number, (void)info;
	addresses[naddresses++] =
		jit_x86.fault_address((const uint8_t *)c->uc_mcontext.gregs[REG_RIP], context);
	siglongjmp(away, 1);
}

/* Addresses that no page can have: the kernel does not tell which it was. */
static void fault_addresses(void **state)
{
	static const uint8_t ops[] = { JIT_LOAD, JIT_STORE, JIT_MODIFY, JIT_ATOMIC, JIT_CMPXCHG };
	static const uint8_t sizes[] = { 1, 2, 4, 8 };
	const uint64_t wild = 0xdead000000000000;
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old;
	struct machine m;

	(void)state;
	machine_make(&m);
	sigaction(SIGSEGV, &action, &old);
	for (uint32_t n = 0; n < COUNT_OF(ops) * 4 * 10 * 3; n++) {
		struct jit_insn insn = blank(ops[n % COUNT_OF(ops)], 8);
		uint32_t rest = n / COUNT_OF(ops);
		struct state *s = state_of(&m);

		insn.size = sizes[rest % 4];
		if (insn.op >= JIT_ATOMIC && insn.size < 4)
			continue;
		insn.base = rest / 4 % 10;
		insn.off = rest / 40 == 0 ? 0 : rest / 40 == 1 ? 16 : -4096;
		insn.index = rest / 40 == 2 && insn.base != 3 ? 3 : JIT_NONE;
		insn.scale = insn.index == JIT_NONE ? 0 : 2;
		insn.sub = JIT_OR;
		insn.flags = insn.op == JIT_ATOMIC ? JIT_FLAG_FETCH : 0;
		insn.b = 4;
		insn.dst = insn.op == JIT_LOAD ? 5 : JIT_NONE;
		start(&m);
		add(&m, insn);
		finish(&m);
		scramble(s);
		s->r[3] = 0x100;
		s->r[insn.base] = wild;
		naddresses = 0;
		if (!sigsetjmp(away, 1))
			run(&m);
		assert_int_equal(naddresses, 1);
		assert_int_equal(addresses[0],
				 wild + insn.off + (insn.index == JIT_NONE ? 0 : 0x400));
	}
	sigaction(SIGSEGV, &old, NULL);
	machine_release(&m);
}

/* Too little room is said, and nothing is written behind it. */
static void no_room(void **state)
{
	struct machine m;
	size_t size;

	(void)state;
	machine_make(&m);
	start(&m);
	store_all(&m);
	add(&m, blank(JIT_EXIT, 8));
	for (size = m.code.size; size < m.code.size + 2000; size += 13) {
		memset(m.memory + size, 0xee, 64);
		m.code.capacity = size;
		m.code.full = false;
		m.code.size = m.stubs_end;
		m.functions[0].end = 0;
		assert_int_equal(jit_x86.function(&m.code, &m.function), 0);
		for (size_t i = 0; i < 64; i++)
			assert_int_equal(m.memory[size + i], 0xee);
		if (!m.code.full)
			break;
		assert_int_equal(m.functions[0].end, 0);
	}
	assert_false(m.code.full);
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budgets),         cmocka_unit_test(stack_limits),
		cmocka_unit_test(heap_limits),     cmocka_unit_test(places_and_steps),
		cmocka_unit_test(fault_addresses), cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
