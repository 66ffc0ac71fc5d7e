// SPDX-License-Identifier: BSD-2-Clause
/* Script functions in threads that the script makes, and in signal handlers. */
#include "threads.h"
#include "vm_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static uint64_t cell;

/*
 * main(cell, start): pthread_create(&thread, 0, start, cell); pthread_join(thread, 0);
 * returns *cell.
 */
#define MAIN                                                                                     \
	MOV_X(6, 1), MOV_X(3, 2), MOV_X(4, 1), MOV_X(1, 10), ADD_K(1, -8), MOV_K(2, 0), CALL(0), \
		LDX_DW(1, 10, -8), MOV_K(2, 0), CALL(1), LDX_DW(0, 6, 0), EXIT()
#define MAIN_COUNT 12

static const struct vm_native natives[] = {
	{ .name = "pthread_create",
	  .function = pthread_create,
	  .result = VM_S32,
	  .nargs = 4,
	  .args = { VM_POINTER, VM_POINTER, VM_POINTER, VM_POINTER },
	  .foreign = true },
	{ .name = "pthread_join",
	  .function = pthread_join,
	  .result = VM_S32,
	  .nargs = 2,
	  .args = { VM_U64, VM_POINTER },
	  .foreign = true },
	{ .name = "strlen",
	  .function = strlen,
	  .result = VM_U64,
	  .nargs = 1,
	  .args = { VM_POINTER },
	  .foreign = true },
};

static struct vm *make(const struct bpf_insn *code, size_t n)
{
	const struct vm_function functions[] = {
		{ "main", 0, MAIN_COUNT, 2 },
		{ "thread", MAIN_COUNT, n - MAIN_COUNT, 1 },
	};
	const struct vm_image image = { VM_IMAGE_SIZES,   code, n, functions, 2, natives,
					COUNT_OF(natives) };

	return make_vm(&image, NULL);
}

static void start_is_a_script_function(void **state)
{
	const struct bpf_insn code[] = { MAIN,         LDX_DW(2, 1, 0),
					 ADD_K(2, 42), STX_DW(1, 2, 0),
					 MOV_K(0, 0),  EXIT() };
	struct vm *vm = make(code, COUNT_OF(code));
	uint64_t start = (uintptr_t)vm_function_address(vm, 1);

	(void)state;
	for (int i = 0; i < 3; i++) {
		cell = i;
		assert_int_equal(call(vm, (uintptr_t)&cell, start), 42 + i);
	}
	vm_destroy(vm);
}

/* A fault there ends that thread, and then the call that started it. */
static void fault_in_a_thread(void **state)
{
	const struct bpf_insn code[] = { MAIN, MOV_K(2, 16), LDX_W(0, 2, 4), EXIT() };
	struct vm *vm = make(code, COUNT_OF(code));
	uint64_t start = (uintptr_t)vm_function_address(vm, 1);
	struct vm_fault fault;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fault = call_fault(vm, (uintptr_t)&cell, start, VM_FAULT_READ,
				   "read of 4 bytes at 0x14");
		assert_int_equal(fault.insn, MAIN_COUNT + 1);
		assert_int_equal(fault.ntrace, 1);
		assert_int_equal(fault.trace[0].function, 1);
	}
	vm_destroy(vm);
}

static void fault_in_c_in_a_thread(void **state)
{
	const struct bpf_insn code[] = { MAIN, MOV_K(1, 0), CALL(2), EXIT() };
	struct vm *vm = make(code, COUNT_OF(code));
	struct vm_fault fault = { 0 };
	uint64_t args[2] = { (uintptr_t)&cell, (uintptr_t)vm_function_address(vm, 1) };

	(void)state;
	assert_int_equal(vm_call(vm, 0, args, 2, NULL, &fault), -14);
	assert_int_equal(fault.kind, VM_FAULT_NATIVE);
	assert_string_equal(fault.native, "strlen");
	assert_true(fault.foreign);
	assert_int_equal(fault.insn, MAIN_COUNT + 1);
	vm_destroy(vm);
}

static void overflow_in_a_thread(void **state)
{
	const struct bpf_insn code[] = { MAIN, ST_DW(10, -8, 1), CALL_LOCAL(-2), EXIT() };
	struct vm *vm = make(code, COUNT_OF(code));
	uint64_t start = (uintptr_t)vm_function_address(vm, 1);
	struct vm_fault fault;

	(void)state;
	fault = call_fault(vm, (uintptr_t)&cell, start, VM_FAULT_STACK,
			   "stack overflow: calls nest too deep");
	assert_int_equal(fault.trace[0].function, 1);
	vm_destroy(vm);
}

static struct vm *_Atomic interrupted;

static void on_timer(int number)
{
	(void)number;
	vm_interrupt(interrupted, false);
}

/* The thread never ends by itself, and the call waits for it in C. */
static void interrupt_ends_threads(void **state)
{
	const struct bpf_insn code[] = { MAIN, JA(-1), EXIT() };
	struct itimerval soon = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	struct vm *vm = make(code, COUNT_OF(code));
	uint64_t start = (uintptr_t)vm_function_address(vm, 1);
	int before = threads_now();

	(void)state;
	interrupted = vm;
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (int i = 0; i < 3; i++)
		call_fault(vm, (uintptr_t)&cell, start, VM_FAULT_INTERRUPTED, "interrupted");
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	vm_destroy(vm);
	while (threads_now() != before) /* one may have gone on when its call was ended */
		usleep(1000);
}

/* handler(number) { *cell = number; } or faults; main(...) { raise(SIGUSR1) ... } */
static void script_function_as_signal_handler(void **state)
{
	const struct bpf_insn code[] = {
		CALL(0),         LDX_DW(0, 6, 0), EXIT(),          LDDW(2, (uintptr_t)&cell),
		STX_DW(2, 1, 0), EXIT(),          LDX_DW(0, 1, 0), EXIT(),
	};
	const struct vm_function functions[] = { { "main", 0, 3, 1 },
						 { "handler", 3, 4, 1 },
						 { "bad", 7, 2, 1 } };
	const struct vm_native native = { .name = "raise",
					  .function = raise,
					  .result = VM_S32,
					  .nargs = 1,
					  .args = { VM_S32 },
					  .foreign = true };
	struct bpf_insn with[COUNT_OF(code) + 1];
	struct vm_image image = { VM_IMAGE_SIZES, with, COUNT_OF(with), functions, 3, &native, 1 };
	struct vm_function moved[3];
	struct vm *vm;
	struct vm_fault fault;

	(void)state;
	/* main starts with r6 = &cell */
	with[0] = MOV_X(6, 2);
	memcpy(with + 1, code, sizeof(code));
	memcpy(moved, functions, sizeof(moved));
	moved[0].count++;
	moved[1].first++;
	moved[2].first++;
	image.functions = moved;
	vm = make_vm(&image, NULL);
	signal(SIGUSR1, (void (*)(int))vm_function_address(vm, 1));
	cell = 0;
	assert_int_equal(call(vm, SIGUSR1, (uintptr_t)&cell), SIGUSR1);
	signal(SIGUSR1, (void (*)(int))vm_function_address(vm, 2));
	fault = call_fault(vm, SIGUSR1, (uintptr_t)&cell, VM_FAULT_READ, "read of 8 bytes at 0xa");
	assert_int_equal(fault.ntrace, 2);
	assert_int_equal(fault.trace[0].function, 2);
	assert_int_equal(fault.trace[1].function, 0);
	assert_true(fault.torn);
	signal(SIGUSR1, SIG_DFL);
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_is_a_script_function),
		cmocka_unit_test(fault_in_a_thread),
		cmocka_unit_test(fault_in_c_in_a_thread),
		cmocka_unit_test(overflow_in_a_thread),
		cmocka_unit_test(interrupt_ends_threads),
		cmocka_unit_test(script_function_as_signal_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
