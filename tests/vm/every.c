// SPDX-License-Identifier: BSD-2-Clause
#include "every.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void every_add(struct every *every, struct bpf_insn insn)
{
	if (every->ncode == every->capacity) {
		every->capacity = every->capacity ? 2 * every->capacity : 256;
		every->code = realloc(every->code, every->capacity * sizeof(insn));
		assert_non_null(every->code);
	}
	every->code[every->ncode++] = insn;
}

void every_add_lddw(struct every *every, uint32_t reg, uint32_t kind, uint64_t value)
{
	const struct bpf_insn pair[] = { LDDW_KIND(reg, kind, (int32_t)value,
						   (int32_t)(value >> 32)) };

	every_add(every, pair[0]);
	every_add(every, pair[1]);
}

static void end_function(struct every *every)
{
	struct vm_function *last;

	if (!every->nfunctions)
		every->functions[every->nfunctions++] =
			(struct vm_function){ .name = "main", .nargs = 5 };
	last = &every->functions[every->nfunctions - 1];
	last->count = every->ncode - last->first;
}

uint32_t every_begin(struct every *every)
{
	end_function(every);
	every->functions[every->nfunctions] =
		(struct vm_function){ .name = "function", .first = every->ncode, .nargs = 5 };
	return every->nfunctions++;
}

void every_deinit(struct every *every)
{
	free(every->code);
	memset(every, 0, sizeof(*every));
}

static int create(const struct every *every, const struct engine *engine, struct vm **ret,
		  char *why, size_t why_size)
{
	struct vm_image image = { VM_IMAGE_SIZES,
				  .code = every->code,
				  .ncode = every->ncode,
				  .functions = every->functions,
				  .nfunctions = every->nfunctions,
				  .natives = every->natives,
				  .nnatives = every->nnatives,
				  .arrays = every->arrays,
				  .narrays = every->narrays };
	struct vm_options options = every->options;
	int rc;

	options.size = sizeof(options);
	options.engine = engine->kind;
	options.checked = engine->checked;
	options.passes_off = engine->passes_off;
	if (engine->budget && !options.instruction_budget)
		options.instruction_budget = 1ull << 40;
	rc = vm_create(&image, &options, ret, why, why_size, NULL);
	if (!rc && engine->checked && every->region)
		assert_int_equal(
			vm_region_add(*ret, every->region, every->region_size, VM_REGION_WRITABLE),
			0);
	return rc;
}

static struct vm *make(struct every *every, const struct engine *engine)
{
	struct vm *vm = NULL;
	char why[256];

	end_function(every);
	if (create(every, engine, &vm, why, sizeof(why)))
		fail_msg("%s: %s", engine->name, why);
	return vm;
}

void every_returns(struct every *every, uint64_t want)
{
	for (size_t i = 0; i < nengines; i++) {
		struct vm_fault fault;
		uint64_t result = 0;
		struct vm *vm;
		char text[160];

		if (!engines[i].landed)
			continue;
		vm = make(every, &engines[i]);
		/* Twice: what the first run leaves behind must not matter. */
		for (int turn = 0; turn < 2; turn++) {
			if (vm_call(vm, 0, every->args, 5, &result, &fault))
				fail_msg("%s: instruction %u: %s", engines[i].name, fault.insn,
					 vm_fault_text(&fault, text, sizeof(text)));
			if (result != want)
				fail_msg("%s: %#llx, not %#llx", engines[i].name,
					 (unsigned long long)result, (unsigned long long)want);
		}
		vm_destroy(vm);
	}
}

static void same_fault(const struct engine *engine, const struct vm_fault *got,
		       const struct vm_fault *want)
{
	if (got->kind != want->kind || got->insn != want->insn || got->ntrace != want->ntrace)
		fail_msg("%s: kind %d at %u, trace of %u, not kind %d at %u, trace of %u",
			 engine->name, got->kind, got->insn, got->ntrace, want->kind, want->insn,
			 want->ntrace);
	for (uint32_t i = 0; i < got->ntrace; i++)
		if (got->trace[i].function != want->trace[i].function ||
		    got->trace[i].insn != want->trace[i].insn)
			fail_msg("%s: trace[%u]: function %u at %u, not function %u at %u",
				 engine->name, i, got->trace[i].function, got->trace[i].insn,
				 want->trace[i].function, want->trace[i].insn);
}

void every_faults(struct every *every, enum vm_fault_kind kind, struct vm_fault *ret)
{
	struct vm_fault first = { 0 }, fault = { 0 };

	for (size_t i = 0; i < nengines; i++) {
		struct vm *vm;
		uint64_t result;

		if (!engines[i].landed)
			continue;
		vm = make(every, &engines[i]);
		for (int turn = 0; turn < 2; turn++) {
			if (vm_call(vm, 0, every->args, 5, &result, &fault) != -EFAULT)
				fail_msg("%s: no fault", engines[i].name);
			assert_int_equal(fault.kind, kind);
			/* How far a recursion gets, and a budget reaches, is each engine's affair. */
			if ((i || turn) && kind != VM_FAULT_STACK && kind != VM_FAULT_BUDGET)
				same_fault(&engines[i], &fault, &first);
			else if (!i && !turn)
				first = fault;
		}
		vm_destroy(vm);
	}
	if (ret)
		*ret = fault;
}

void every_refuses(struct every *every, const char *text)
{
	end_function(every);
	for (size_t i = 0; i < nengines; i++) {
		struct vm *vm = NULL;
		char why[256] = "";

		if (!engines[i].landed)
			continue;
		assert_int_equal(create(every, &engines[i], &vm, why, sizeof(why)), -EINVAL);
		if (!strstr(why, text))
			fail_msg("%s: \"%s\" does not say \"%s\"", engines[i].name, why, text);
	}
}
