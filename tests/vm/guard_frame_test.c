// SPDX-License-Identifier: BSD-2-Clause
/*
 * Compiled functions never write outside of their frames and keep the registers that a function of
 * C keeps: random programs are called as functions of C on a stack that is full of known bytes.
 * In checked mode, where frames lie on the vm's own stack, it is that one which is filled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guard_call.h"
#include "host.h"
#include "vm/jit/compiled.h"

#define STACK    65536
#define ABOVE    4096 /* of the stack: its users so far */
#define FILL     0xa7
#define PROGRAMS 400
#define SEED     90000

static uint8_t stack[STACK] __attribute__((aligned(4096)));

static bool is_filled(const uint8_t *from, const uint8_t *to)
{
	while (from < to)
		if (*from++ != FILL)
			return false;
	return true;
}

static bool calls_c(const struct host *host)
{
	for (size_t i = 0; i < host->ncode; i++)
		if (host->code[i].code == (BPF_JMP | BPF_CALL) && !host->code[i].src_reg)
			return true;
	return false;
}

static void call_as_c(struct host *host, const struct generate_memory *start, uint64_t seed)
{
	const uint64_t args[5] = { 1, 2, 3, 4, 5 };
	uint8_t *top = stack + STACK - ABOVE;
	struct guard_call end;
	void *function = vm_function_address(host->vm, host->main[0]);
	uint64_t before;

	assert_non_null(function);
	memset(stack, FILL, sizeof(stack));
	host->memory = *start;
	before = guard_call(function, args, top, &end);
	if (before != end.stack)
		fail_msg("seed %llu: the stack pointer moved", (unsigned long long)seed);
	for (unsigned int i = 0; i < guard_kept; i++)
		if (end.kept[i] != guard_value(i))
			fail_msg("seed %llu: kept register %u holds %llx", (unsigned long long)seed,
				 i, (unsigned long long)end.kept[i]);
	if (!is_filled(top, stack + STACK))
		fail_msg("seed %llu: wrote above its frame", (unsigned long long)seed);
	/* C functions take what they want. */
	if (!calls_c(host) &&
	    !is_filled(stack, (uint8_t *)(uintptr_t)before - host->vm->jit->depth))
		fail_msg("seed %llu: wrote below its frame", (unsigned long long)seed);
}

static void call_checked(struct host *host, const struct generate_memory *start, uint64_t seed)
{
	struct vm *vm = host->vm;
	uint8_t *low = (uint8_t *)(uintptr_t)vm->stack_low, *top;
	uint64_t frames = 0;
	char why[256];

	/* No function is in progress twice. */
	for (uint32_t i = 0; i < vm->nfunctions; i++)
		frames += vm->functions[i].frame;
	top = (uint8_t *)(uintptr_t)vm->stack_top - frames;
	memset(low, FILL, vm->stack_top - vm->stack_low);
	if (host_run(host, 0, start, why, sizeof(why)))
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
	if (!is_filled(low, top))
		fail_msg("seed %llu: wrote below its frame", (unsigned long long)seed);
}

static void run_all(bool checked, uint32_t passes_off)
{
	const struct engine engine = { .kind = VM_ENGINE_JIT,
				       .checked = checked,
				       .passes_off = passes_off };
	static struct generated program;
	static struct host host;
	struct generate_memory start, left;
	char why[256];

	for (uint64_t seed = SEED; seed < SEED + PROGRAMS; seed++) {
		struct random random = { seed };

		generate(&random, false, &program);
		generate_memory(&random, &start);
		host_clear(&host);
		host_add(&host, &program);
		if (host_create(&host, &engines[0], why, sizeof(why)))
			fail_msg("%s", why);
		assert_int_equal(host_run(&host, 0, &start, why, sizeof(why)), 0);
		left = host.memory;
		host_destroy(&host);
		if (host_create(&host, &engine, why, sizeof(why)))
			fail_msg("%s", why);
		if (checked)
			call_checked(&host, &start, seed);
		else
			call_as_c(&host, &start, seed);
		assert_memory_equal(&host.memory, &left, sizeof(left));
		host_destroy(&host);
	}
}

static void frames_hold(void **state)
{
	(void)state;
	run_all(false, 0);
}

static void frames_hold_without_passes(void **state)
{
	(void)state;
	run_all(false, VM_PASS_ALL);
}

static void checked_frames_hold(void **state)
{
	(void)state;
	run_all(true, 0);
	run_all(true, VM_PASS_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_hold),
		cmocka_unit_test(frames_hold_without_passes),
		cmocka_unit_test(checked_frames_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
