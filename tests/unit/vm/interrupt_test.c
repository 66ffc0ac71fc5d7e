// SPDX-License-Identifier: BSD-2-Clause
/* Ways to end a call from outside. */
#include "vm_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static void budget(void **state)
{
	const struct bpf_insn code[] = { MOV_X(0, 1), JEQ_K(0, 0, 2), ADD_K(0, -1), JA(-3),
					 EXIT() };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, NULL, 0 };
	struct vm_options options = { .size = sizeof(options), .instruction_budget = 303 };
	struct vm *vm = make_vm(&image, &options);

	(void)state;
	assert_int_equal(call(vm, 100, 0), 0); /* 1 + 100 x 3 + 2 instructions */
	call_fault(vm, 101, 0, VM_FAULT_BUDGET, "instruction budget used up");
	assert_int_equal(call(vm, 100, 0), 0);
	vm_destroy(vm);
}

static struct vm *_Atomic interrupted; /* for the signal handler */

static void on_timer(int number)
{
	(void)number;
	vm_interrupt(interrupted, false);
}

static const struct bpf_insn endless[] = { JA(-1), EXIT() };

static void interrupt_from_a_signal(void **state)
{
	/* Again and again: one that comes before the call runs is forgotten. */
	struct itimerval soon = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	struct vm *vm = make_simple(endless, COUNT_OF(endless), NULL, 0);

	(void)state;
	interrupted = vm;
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (int i = 0; i < 5; i++)
		call_fault(vm, 0, 0, VM_FAULT_INTERRUPTED, "interrupted");
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	vm_destroy(vm);
}

static void *interrupt_often(void *data)
{
	struct vm *vm = ((void **)data)[0];
	atomic_bool *stop = ((void **)data)[1];

	const struct timespec delay = { .tv_nsec = 20000 };

	while (!*stop) {
		nanosleep(&delay, NULL);
		vm_interrupt(vm, false);
	}
	return NULL;
}

static void interrupt_from_a_thread(void **state)
{
	struct vm *vm = make_simple(endless, COUNT_OF(endless), NULL, 0);
	atomic_bool stop = false;
	void *data[2] = { vm, &stop };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, interrupt_often, data), 0);
	for (int i = 0; i < 20; i++)
		call_fault(vm, 0, 0, VM_FAULT_INTERRUPTED, "interrupted");
	stop = true;
	pthread_join(thread, NULL);
	vm_destroy(vm);
}

/* Interrupts that race with the end of calls and with one another: no hang, no wrong result. */
static void interrupt_storm(void **state)
{
	const struct bpf_insn code[] = { MOV_X(0, 1), JEQ_K(0, 0, 2), ADD_K(0, -1), JA(-3),
					 EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);
	atomic_bool stop = false;
	void *data[2] = { vm, &stop };
	int finished = 0, ended = 0;
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, interrupt_often, data), 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t args[1] = { i % 100 }, result = 1;
		struct vm_fault fault = { 0 };

		if (!vm_call(vm, 0, args, 1, &result, &fault)) {
			finished++;
			assert_int_equal(result, 0);
		} else {
			ended++;
			assert_int_equal(fault.kind, VM_FAULT_INTERRUPTED);
		}
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(finished + ended == 20000);
	assert_int_equal(call(vm, 50, 0), 0);
	vm_destroy(vm);
}

static void sticky_interrupt(void **state)
{
	const struct bpf_insn code[] = { MOV_K(0, 5), EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

	(void)state;
	vm_interrupt(vm, false); /* nothing runs: forgotten */
	assert_int_equal(call(vm, 0, 0), 5);
	vm_interrupt(vm, true);
	call_fault(vm, 0, 0, VM_FAULT_INTERRUPTED, "interrupted");
	assert_int_equal(call(vm, 0, 0), 5);
	vm_destroy(vm);
}

/* A comparator that never returns: the interrupt leaves it and qsort. */
static void endless_comparator(void **state)
{
	const struct bpf_insn code[] = {
		LDDW_KIND(4, BPF_PSEUDO_FUNC, 1, 0), MOV_K(3, 8), CALL(0), EXIT(), JA(-1), EXIT()
	};
	struct vm_function functions[] = { { "main", 0, 5 }, { "compare", 5, 2 } };
	struct vm_native native = { .name = "qsort",
				    .function = qsort,
				    .result = VM_VOID,
				    .nargs = 4,
				    .args = { VM_POINTER, VM_U64, VM_U64, VM_POINTER },
				    .foreign = true };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2, &native, 1 };
	struct vm *vm = make_vm(&image, NULL);
	uint64_t array[4] = { 4, 3, 2, 1 };
	atomic_bool stop = false;
	void *data[2] = { vm, &stop };
	struct vm_fault fault;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, interrupt_often, data), 0);
	for (int i = 0; i < 5; i++) {
		do /* it may come before the comparator runs */
			fault = call_fault(vm, (uintptr_t)array, 4, VM_FAULT_INTERRUPTED,
					   "interrupted");
		while (fault.ntrace != 2);
		assert_int_equal(fault.trace[0].function, 1);
		assert_true(fault.torn);
	}
	stop = true;
	pthread_join(thread, NULL);
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget),
		cmocka_unit_test(interrupt_from_a_signal),
		cmocka_unit_test(interrupt_from_a_thread),
		cmocka_unit_test(interrupt_storm),
		cmocka_unit_test(sticky_interrupt),
		cmocka_unit_test(endless_comparator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
