// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page of an event says that its counter may be read in user space, but the kernel has
 * forbidden it meanwhile: the instruction faults, for real. Read by a program in the vm, whose
 * handlers of signals mend it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "../vm/vm_fixture.h"
#include "pmu/page.h"

static const struct perf_event_mmap_page page = {
	.lock = 8,
	.index = 1,
	.cap_user_rdpmc = 1,
	.cap_user_time = 1,
	.pmc_width = 48,
	.time_mult = 1,
};

static int64_t read_page(uint64_t times)
{
	struct pmu_reading reading = { 1, 2, 3 };
	int code = 0;

	while (times--)
		code = pmu_page_read(&pmu_page_this_machine, &page, -1, &reading);
	if (code && (reading.count != 1 || reading.enabled != 2 || reading.running != 3))
		return -EIO;
	return code;
}

static const struct vm_native natives[] = { { .name = "read_page",
					      .function = read_page,
					      .result = VM_S64,
					      .nargs = 1,
					      .args = { VM_U64 } } };

static const struct bpf_insn code[] = { CALL(0), EXIT() };

/* Nothing to be seen where everybody may read counters all the time (rdpmc is 2). */
static bool always_allowed(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/cpu/rdpmc", "r");
	bool always = file && fgetc(file) == '2';

	if (file)
		fclose(file);
	return always;
}

static void a_refused_instruction_is_no_fault(void **state)
{
	struct vm *vm = make_simple(code, COUNT_OF(code), natives, 1);
	int64_t result = call(vm, 3, 0); /* which fails the test at a fault of the script */

	if (always_allowed())
		print_message("user space may always read counters here\n");
	else
		assert_int_equal(result, -EPERM);
	vm_destroy(vm);
}

static void *in_thread(void *result)
{
	*(int64_t *)result = read_page(1000);
	return NULL;
}

/* The vm need not run there, nor is there an alternate stack. */
static void nor_in_other_threads(void **state)
{
	struct vm *vm = make_simple(code, COUNT_OF(code), natives, 1);
	int64_t results[2] = { 0 };
	pthread_t threads[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, in_thread, &results[i]), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		if (!always_allowed())
			assert_int_equal(results[i], -EPERM);
	}
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_instruction_is_no_fault),
		cmocka_unit_test(nor_in_other_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
