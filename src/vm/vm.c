// SPDX-License-Identifier: BSD-2-Clause
#include <duet/vm.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vm/checked.h"
#include "vm/jit/engine.h"
#include "vm/signals.h"

#define DEFAULT_STACK (1u << 20)

static void fill_options(struct vm *vm)
{
	struct vm_options *ours = &vm->options;

	if (!ours->stack_bytes)
		ours->stack_bytes = DEFAULT_STACK;
	if (!ours->call_depth)
		ours->call_depth = ours->stack_bytes / VM_MIN_FRAME + 1;
	if (ours->instruction_budget > INT64_MAX)
		ours->instruction_budget = INT64_MAX; /* compiled code counts below zero */
	vm->context = ours->context;
	vm->call_by_number = ours->callx_by_number;
}

static int by_first(const void *a, const void *b, void *data)
{
	const struct vm_code *functions = data;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (functions[i].first != functions[k].first)
		return functions[i].first < functions[k].first ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int take_functions(struct vm *vm, const struct vm_image *image, struct err *err)
{
	vm->functions = calloc(image->nfunctions, sizeof(*vm->functions));
	vm->order = calloc(image->nfunctions, sizeof(*vm->order));
	if (!vm->functions || !vm->order)
		return err_nomem(err);
	vm->nfunctions = image->nfunctions;
	for (uint32_t i = 0; i < vm->nfunctions; i++) {
		vm->functions[i].first = image->functions[i].first;
		vm->functions[i].count = image->functions[i].count;
		vm->functions[i].vm = vm;
		vm->functions[i].index = i;
		vm->order[i] = i;
		if (image->functions[i].first >= image->ncode)
			return err_set(err, -EINVAL, "function %s: starts past the end of the code",
				       image->functions[i].name);
	}
	qsort_r(vm->order, vm->nfunctions, sizeof(*vm->order), by_first, vm->functions);
	/* Two names of one function share its code. */
	for (uint32_t i = 0; i < vm->nfunctions; i++) {
		const struct vm_code *code = &vm->functions[vm->order[i]], *last;

		last = vm->nordered ? &vm->functions[vm->order[vm->nordered - 1]] : NULL;
		if (last && last->first == code->first && last->count == code->count)
			continue;
		vm->order[vm->nordered++] = vm->order[i];
	}
	return 0;
}

int vm_make_stack(struct vm *vm, struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = (vm->options.stack_bytes + page - 1) & ~(page - 1);
	uint8_t *map;

	map = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (map == MAP_FAILED)
		return err_nomem(err);
	vm->stack_map = map;
	vm->stack_map_size = size + 2 * page;
	if (mprotect(map + page, size, PROT_READ | PROT_WRITE))
		return err_nomem(err);
	vm->stack_low = (uintptr_t)map + page;
	vm->stack_top = vm->stack_low + size;
	vm->stack = vm->stack_top;
	return 0;
}

/* BEST: the compiler, unless it cannot. */
static int prepare_engine(struct vm *vm, struct err *err)
{
	enum vm_engine_kind kind = vm->options.engine;
	int rc;

	if (kind > VM_ENGINE_JIT)
		return err_set(err, -EINVAL, "engine %d: there is none", kind);
	if (kind != VM_ENGINE_INTERPRETER) {
		vm->engine = &vm_jit;
		rc = vm->engine->prepare(vm, err);
		if (rc != -ENOTSUP || kind == VM_ENGINE_JIT)
			return rc;
		vm->engine->release(vm);
	}
	vm->engine = &vm_interpreter;
	return vm->engine->prepare(vm, err);
}

static int vm_init(struct vm *vm, uint32_t *bad_insn, struct err *err)
{
	const struct vm_image *image = &vm->image;
	int rc;

	fill_options(vm);
	if (!image->ncode || !image->nfunctions)
		return err_set(err, -EINVAL, "no code");
	if (image->ncode > VM_MAX_CODE)
		return err_set(err, -EINVAL, "%zu instructions are too many: at most %d",
			       image->ncode, VM_MAX_CODE);
	rc = check_prepare(vm, err);
	rc = rc ? rc : take_functions(vm, image, err);
	rc = rc ? rc : vm_validate(vm, image, bad_insn, err);
	rc = rc ? rc : native_prepare(vm, image, err);
	return rc ? rc : prepare_engine(vm, err);
}

static void vm_free(struct vm *vm)
{
	if (vm->engine)
		vm->engine->release(vm);
	check_release(vm);
	if (vm->stack_map)
		munmap(vm->stack_map, vm->stack_map_size);
	free(vm->natives);
	free(vm->own_natives);
	free(vm->order);
	free(vm->functions);
	free(vm);
}

int vm_create(const struct vm_image *image, const struct vm_options *options, struct vm **ret,
	      char *message, size_t message_size, uint32_t *bad_insn)
{
	struct err err = { 0 };
	struct vm *vm;
	int rc;

	if (message && message_size)
		message[0] = '\0';
	vm = calloc(1, sizeof(*vm));
	rc = vm ? abi_take_image(vm, image, &err) : err_nomem(&err);
	rc = rc ? rc : abi_take_options(vm, options, &err);
	rc = rc ? rc : signal_handlers_get(&err);
	if (!rc) {
		rc = vm_init(vm, bad_insn, &err);
		if (rc)
			signal_handlers_put();
	}
	if (!rc) {
		*ret = vm;
		return 0;
	}
	if (message)
		snprintf(message, message_size, "%s", err.text);
	if (vm)
		vm_free(vm);
	return rc;
}

void vm_destroy(struct vm *vm)
{
	if (!vm)
		return;
	if (atomic_load(&vm->threads)) {
		/* They may be anywhere, waiting in C too: their code stays, closed, for good. */
		vm->abandoned = true;
		signal_handlers_keep();
		vm->engine->interrupt(vm);
		return;
	}
	signal_handlers_put();
	vm_free(vm);
}

static void activate(struct vm_activation *activation, struct vm *vm)
{
	activation->vm = vm;
	activation->outer = fault_running();
	activation->pc = vm->pc;
	activation->registers = vm->registers;
	fault_set_running(activation);
}

static void deactivate(const struct vm_activation *activation)
{
	struct vm *vm = activation->vm;

	vm->pc = activation->pc;
	vm->registers = activation->registers;
	fault_set_running(activation->outer);
}

uint64_t vm_stack_live(const struct vm *vm)
{
	return vm->engine->stack_live(vm);
}

void vm_reset(struct vm *vm)
{
	vm->pc = NULL;
	vm->registers = NULL;
	vm->frame = vm->frames;
	vm->target = 0;
	vm->stack = vm->stack_top;
	atomic_store(&vm->base, NULL);
}

uint64_t vm_call_nested(struct vm *vm, uint32_t function, const uint64_t *args)
{
	struct vm_activation activation;
	uint64_t result = 0;

	if (!atomic_load(&vm->base)) { /* C code calls while no vm_call() runs */
		vm_call(vm, function, args, VM_MAX_ARGUMENTS, &result, NULL);
		return result;
	}
	if (!vm_runs_here(vm)) /* it runs in another thread: there is nobody to tell */
		return 0;
	activate(&activation, vm);
	result = vm->engine->call(vm, &activation, function, args);
	deactivate(&activation);
	return result;
}

/* What an outermost call does once the vm is entered: one function, or C code that calls many. */
struct body {
	uint32_t function;
	const uint64_t *args;
	int (*drive)(void *context); /* NULL: the function */
	void *context;
};

/* A fault lands here by siglongjmp: what it needs is in @base, whose address did not change. */
static int call_outermost(struct vm *vm, const struct body *body, uint64_t *result)
{
	struct vm_base base;
	uint64_t value;

	base.limit = vm_stack_limit;
	if (sigsetjmp(base.jump, 0)) {
		vm_stack_limit = base.limit;
		fault_set_running(base.activation.outer);
		vm_reset(vm);
		return -EFAULT;
	}
	activate(&base.activation, vm);
	if (vm->checked) /* what an earlier fault left */
		vm->checked->pins = NULL;
	if (vm->jit)
		vm_stack_limit = signal_stack_limit(vm->stack_allowance, vm->stack_below);
	atomic_store_explicit(&vm->base, &base, memory_order_release);
	if (body->drive)
		value = body->drive(body->context);
	else
		value = vm->engine->call(vm, &base.activation, body->function, body->args);
	deactivate(&base.activation);
	vm_stack_limit = base.limit;
	atomic_store_explicit(&vm->base, NULL, memory_order_release);
	if (fault_take_from_thread(vm))
		return -EFAULT;
	if (result)
		*result = value;
	return 0;
}

static int enter(struct vm *vm, const struct body *body, uint64_t *result, struct vm_fault *fault)
{
	int rc;

	rc = signal_thread_prepare();
	if (rc)
		return rc;
	/* The number of this call: an interrupt that was meant for an earlier one is not for it. */
	atomic_store_explicit(&vm->sequence,
			      atomic_load_explicit(&vm->sequence, memory_order_relaxed) + 1,
			      memory_order_release);
	atomic_store_explicit(&vm->thread_faults, 0, memory_order_relaxed);
	vm->budget = vm->options.instruction_budget;
	rc = call_outermost(vm, body, result);
	if (rc && fault)
		*fault = vm->fault;
	return rc;
}

int vm_call(struct vm *vm, uint32_t function, const uint64_t *args, size_t nargs, uint64_t *result,
	    struct vm_fault *fault)
{
	uint64_t all[VM_MAX_ARGUMENTS] = { 0 };
	struct body body = { .function = function, .args = all };
	uint64_t value;

	if (function >= vm->nfunctions || nargs > VM_MAX_ARGUMENTS)
		return -EINVAL;
	for (size_t i = 0; i < nargs; i++)
		all[i] = args[i];
	if (!atomic_load_explicit(&vm->base, memory_order_relaxed))
		return enter(vm, &body, result, fault);
	value = vm_call_nested(vm, function, all);
	if (result)
		*result = value;
	return 0;
}

int vm_enter(struct vm *vm, int (*drive)(void *context), void *context, int *ret,
	     struct vm_fault *fault)
{
	struct body body = { .drive = drive, .context = context };
	uint64_t value;
	int rc;

	if (atomic_load_explicit(&vm->base, memory_order_relaxed))
		return -EBUSY;
	rc = enter(vm, &body, &value, fault);
	if (!rc && ret)
		*ret = (int)value;
	return rc;
}

/* An interrupt for a later call, or for whichever comes first, stays. */
static bool is_weaker(uint64_t old, uint64_t word)
{
	if ((old & 3) == VM_INTERRUPT_STICKY)
		return false;
	return (word & 3) == VM_INTERRUPT_STICKY || old < word;
}

void vm_interrupt(struct vm *vm, bool sticky)
{
	uint64_t word = atomic_load(&vm->sequence) << 2 | VM_INTERRUPT_CALL, old;

	if (sticky)
		word = VM_INTERRUPT_STICKY;
	else if (!atomic_load(&vm->base))
		return;
	old = atomic_load(&vm->interrupt);
	while (is_weaker(old, word) && !atomic_compare_exchange_weak(&vm->interrupt, &old, word))
		;
	vm->engine->interrupt(vm);
}

static bool is_meant(const struct vm *vm, uint64_t word)
{
	if ((word & 3) == VM_INTERRUPT_STICKY)
		return true;
	return word && word >> 2 == atomic_load_explicit(&vm->sequence, memory_order_relaxed);
}

bool vm_take_interrupt(struct vm *vm)
{
	return is_meant(vm, atomic_exchange(&vm->interrupt, VM_INTERRUPT_NONE));
}

bool vm_interrupt_pending(const struct vm *vm)
{
	return is_meant(vm, atomic_load(&vm->interrupt));
}

const char *vm_engine_name(const struct vm *vm)
{
	return vm->jit ? jit_name(vm) : "interpreter";
}

void *vm_function_address(struct vm *vm, uint32_t function)
{
	return function < vm->nfunctions ? vm->engine->address(vm, function) : NULL;
}

void vm_raise(struct vm *vm, const char *text)
{
	struct vm_fault what = { .kind = VM_FAULT_ABORT, .insn = VM_INSN_OF_PC };

	snprintf(what.text, sizeof(what.text), "%s", text);
	fault_raise_as(vm, &what);
}
