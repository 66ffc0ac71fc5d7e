// SPDX-License-Identifier: BSD-2-Clause
/*
 * Many events of one kind. What hook_call() does around each program is done once around all of
 * them, and the rest only when somebody raised half->attention: a snapshot was taken, the run is to
 * stop. A compiled program that is alone is then a plain function of C.
 */
#include "hook/checked.h"

#include <errno.h>
#include <string.h>

static bool runs(const struct hook_batch *batch, size_t index)
{
	const struct hook_program *program = &batch->half->programs[index];

	return program->kind == batch->kind &&
	       (!batch->match || batch->match(program, batch->match_context));
}

/* The program of @batch when it is alone and compiled. */
static void find_direct(struct hook_batch *batch)
{
	struct hook_half *half = batch->half;
	size_t found = 0, size;

	batch->direct = NULL;
	for (size_t i = 0; i < half->nprograms; i++) {
		if (!runs(batch, i))
			continue;
		batch->only = i;
		found++;
	}
	/* Checked: each record is a region for as long as its program runs. */
	if (found == 1 && !half->options.checked &&
	    vm_machine_code(half->vm, half->program_function[batch->only], &size))
		batch->direct = (uint64_t(*)(uint64_t, uint64_t))vm_function_address(
			half->vm, half->program_function[batch->only]);
}

/* What the program at @index returned: 1: the next may run, 0: not, or an error that ends all. */
static int take_result(struct hook_batch *batch, size_t index, uint64_t result)
{
	/* int functions leave the upper half undefined: the contract is int. */
	int32_t number = (int32_t)result;

	if (number >= 0)
		return !number;
	return hook_returned_error(batch->half, index, number, batch->err) ?: 1;
}

int hook_batch_after(struct hook_batch *batch, uint64_t result)
{
	int code = take_result(batch, batch->only, result);

	batch->half->snapshots.used = 0;
	batch->half->attention = 0;
	return code < 0 ? code : 0;
}

int hook_batch_run(struct hook_batch *batch, const void *argument, uint64_t size)
{
	struct hook_half *half = batch->half;
	uint64_t args[2] = { (uintptr_t)argument, size }, result;
	int code = 1;

	for (size_t i = 0; i < half->nprograms && code > 0; i++) {
		if (!runs(batch, i))
			continue;
		batch->only = i;
		half->snapshots.used = 0;
		code = hook_regions_begin(half, argument, size, batch->err);
		if (code)
			break;
		code = vm_call(half->vm, half->program_function[i], args, 2, &result, NULL);
		hook_regions_end(half);
		code = code ? err_set(batch->err, code, "%s: %s", half->programs[i].section,
				      strerror(-code))
			    : take_result(batch, i, result);
	}
	half->attention = 0;
	return code < 0 ? code : 0;
}

static int drive(void *context)
{
	struct hook_batch *batch = context;

	return batch->drive(batch->context, batch);
}

int hook_run_batch(struct hook_half *half, struct hook_batch *batch, int *ret, struct err *err)
{
	struct vm_fault fault;
	int code;

	batch->half = half;
	batch->err = err;
	batch->attention = &half->attention;
	find_direct(batch);
	half->attention = 0;
	half->snapshots.used = 0;
	half->current = batch->kind;
	half->running = true;
	code = vm_enter(half->vm, drive, batch, ret, &fault);
	half->running = false;
	hook_regions_end(half);
	if (code == -EFAULT)
		return hook_take_fault(half, &half->programs[batch->only], &fault, err);
	if (code)
		return err_set(err, code, "%s", strerror(-code));
	hook_flush_text(half);
	code = report_failed(half->options.report);
	if (code) /* whatever the script makes of it: nobody sees what it prints */
		return err_set(err, code, "output: %s", strerror(-code));
	return 0;
}
