// SPDX-License-Identifier: BSD-2-Clause
/* vm_enter(): many calls in one entry. */
#include "vm_fixture.h"

#include <errno.h>
#include <string.h>

typedef uint64_t function_type(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct batch {
	struct vm *vm;
	uint64_t sum;
	unsigned int done, bad_from;
	bool direct, interrupted;
};

/* main(a, address) { return a + *(u64 *)address; } */
static const struct bpf_insn code[] = { LDX_DW(0, 2, 0), ADD_X(0, 1), EXIT() };

static int drive(void *context)
{
	struct batch *batch = context;
	function_type *direct = (function_type *)vm_function_address(batch->vm, 0);
	uint64_t ten = 10;

	for (unsigned int i = 0; i < 100; i++) {
		uint64_t args[] = { i, i < batch->bad_from ? (uintptr_t)&ten : 8 }, value = 0;

		if (batch->interrupted && i == 50)
			vm_interrupt(batch->vm, false);
		if (batch->direct)
			value = direct(args[0], args[1], 0, 0, 0);
		else
			assert_int_equal(vm_call(batch->vm, 0, args, 2, &value, NULL), 0);
		batch->sum += value;
		batch->done++;
	}
	return -7;
}

static struct vm *make(void)
{
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

	assert_non_null(vm_function_address(vm, 0));
	return vm;
}

static void calls_in_one_entry(void **state)
{
	struct vm *vm = make();

	(void)state;
	for (int direct = 0; direct < 2; direct++) {
		struct batch batch = { .vm = vm, .bad_from = 100, .direct = direct };
		struct vm_fault fault;
		int ret = 0;

		assert_int_equal(vm_enter(vm, drive, &batch, &ret, &fault), 0);
		assert_int_equal(ret, -7);
		assert_int_equal(batch.sum, 99 * 50 + 1000);
	}
	vm_destroy(vm);
}

static void a_fault_ends_it(void **state)
{
	struct vm *vm = make();
	uint64_t five = 5;

	(void)state;
	for (int direct = 0; direct < 2; direct++) {
		struct batch batch = { .vm = vm, .bad_from = 70, .direct = direct };
		struct vm_fault fault;
		char text[100];
		int ret = 1;

		assert_int_equal(vm_enter(vm, drive, &batch, &ret, &fault), -EFAULT);
		assert_string_equal(vm_fault_text(&fault, text, sizeof(text)),
				    "read of 8 bytes at 0x8");
		assert_int_equal(batch.done, 70);
		assert_int_equal(ret, 1);
		assert_int_equal(fault.ntrace, 1);
		assert_int_equal(fault.insn, 0);
		/* The vm stays usable. */
		assert_int_equal(call(vm, 1, (uintptr_t)&five), 6);
	}
	vm_destroy(vm);
}

static void an_interrupt_ends_it(void **state)
{
	struct vm *vm = make();

	(void)state;
	for (int direct = 0; direct < 2; direct++) {
		struct batch batch = {
			.vm = vm, .bad_from = 100, .direct = direct, .interrupted = true
		};
		struct vm_fault fault;
		int ret;

		assert_int_equal(vm_enter(vm, drive, &batch, &ret, &fault), -EFAULT);
		assert_int_equal(fault.kind, VM_FAULT_INTERRUPTED);
		assert_int_equal(batch.done, 50);
	}
	vm_destroy(vm);
}

static int enter_again(void *context)
{
	struct batch *batch = context;
	int ret;

	return vm_enter(batch->vm, drive, batch, &ret, NULL);
}

static void not_inside_itself(void **state)
{
	struct batch batch = { .vm = make(), .bad_from = 100 };
	int ret = 0;

	(void)state;
	assert_int_equal(vm_enter(batch.vm, enter_again, &batch, &ret, NULL), 0);
	assert_int_equal(ret, -EBUSY);
	vm_destroy(batch.vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_in_one_entry),
		cmocka_unit_test(a_fault_ends_it),
		cmocka_unit_test(an_interrupt_ends_it),
		cmocka_unit_test(not_inside_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
