// SPDX-License-Identifier: BSD-2-Clause
/* How long the compiler takes. */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

#include "vm/jit/compiled.h"

/* The compiler alone: vm_create() is mostly the kernel's work for pages, which this is not about. */
static int compile(struct vm *vm, struct jit_function *function, struct jit_code *code,
		   bool *recursive)
{
	uint32_t enter;
	int rc;

	code->size = code->nplaces = code->nsteps = code->npatches = 0;
	memset(code->functions, 0, vm->nfunctions * sizeof(*code->functions));
	rc = jit_find_recursion(vm, &vm->image, recursive);
	rc = rc ? rc : function->target->begin(code, &enter);
	for (uint32_t i = 0; i < vm->nordered && !rc; i++) {
		function->index = vm->order[i];
		function->recursive = recursive[function->index];
		rc = jit_lower(function);
		rc = rc ? rc : jit_optimise(function);
		rc = rc ? rc : function->target->function(code, function);
	}
	return rc ? rc : function->target->finish(code);
}

double compile_us(const struct vm_image *image, unsigned int rounds, double *create_us)
{
	struct vm_options options = { .size = sizeof(options), .engine = VM_ENGINE_JIT };
	struct jit_function function = { .passes = VM_PASS_ALL, .target = jit_host() };
	struct jit_code code = { 0 };
	double us[MAX_ROUNDS] = { 0 }, all[MAX_ROUNDS] = { 0 }, start;
	bool *recursive;
	struct vm *vm = NULL;

	for (unsigned int i = 0; i < rounds; i++) {
		start = now_ns();
		if (vm_create(image, &options, &vm, NULL, 0, NULL))
			return 0;
		all[i] = (now_ns() - start) / 1000;
		if (i + 1 < rounds)
			vm_destroy(vm);
	}
	if (!vm)
		return 0;
	function.vm = vm;
	function.image = &vm->image;
	code.capacity = function.target->bound(image->ncode, image->nfunctions);
	code.bytes = malloc(code.capacity);
	code.address = (uintptr_t)vm->jit->memory.code;
	code.functions = calloc(vm->nfunctions, sizeof(*code.functions));
	code.runtime = &vm->jit->runtime;
	recursive = calloc(vm->nfunctions, sizeof(*recursive));
	for (unsigned int i = 0; i < rounds && code.bytes && code.functions && recursive; i++) {
		start = now_ns();
		if (compile(vm, &function, &code, recursive))
			break;
		us[i] = (now_ns() - start) / 1000;
	}
	jit_release(&function);
	free(recursive);
	free(code.bytes);
	free(code.functions);
	free(code.places);
	free(code.steps);
	free(code.patches);
	vm_destroy(vm);
	if (create_us)
		*create_us = median(all, rounds);
	return median(us, rounds);
}

double measure_compile(size_t ninsns, unsigned int rounds, double *create_us)
{
	struct bench_image image;

	return image_make(ninsns, &image) ? 0 : compile_us(&image.vm, rounds, create_us);
}
