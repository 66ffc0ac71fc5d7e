// SPDX-License-Identifier: BSD-2-Clause
/*
 * The compiler as an engine: all functions of a vm are compiled when it is created, into one piece
 * of memory. A compiled function is a function of C: it runs on the thread's stack, and whoever has
 * its address calls it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vm/checked.h"
#include "vm/jit/compiled.h"
#include "vm/jit/passes.h"

#define MOST_CODE (1ul << 30) /* offsets and relative jumps have room for more */

typedef uint64_t function_of_c(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* ---- what compiled code calls ------------------------------------------------------ */

static void overflow(struct vm *vm) __attribute__((noreturn));
static void overflow(struct vm *vm)
{
	fault_raise(vm, VM_FAULT_STACK);
}

static void spent(struct vm *vm) __attribute__((noreturn));
static void spent(struct vm *vm)
{
	fault_raise(vm, VM_FAULT_BUDGET);
}

static void *address_of(const struct jit *jit, uint32_t range)
{
	return jit->memory.code + jit->ranges[range].first;
}

/* @target is noted, for faults: a call of what is no function is a fault when it gets there. */
static void *callx_target(struct vm *vm, uint64_t target)
{
	const struct vm_address *known = closure_find(vm, target);
	const struct jit *jit = vm->jit;
	struct vm_fault fault = { .kind = VM_FAULT_EXECUTE,
				  .insn = VM_INSN_OF_PC,
				  .address = target,
				  .signal = SIGSEGV };
	uint32_t native = JIT_NOWHERE;

	vm->target = target;
	if (known && !known->native)
		return (void *)(uintptr_t)target;
	if (known)
		native = known->index;
	else if (vm->call_by_number && target < vm->nnatives && vm->natives[target].function)
		native = target;
	if (native != JIT_NOWHERE)
		return jit->thunks[native] ? address_of(jit, jit->thunks[native])
					   : vm->natives[native].function;
	if (!target || vm->checked)
		fault_raise_as(vm, &fault);
	return (void *)(uintptr_t)target;
}

/* ---- compiling ------------------------------------------------------------------------ */

struct compiler {
	struct vm *vm;
	struct jit *jit;
	struct jit_code code;
	struct jit_function function;
	bool *recursive;
	bool has_callx;
	uint32_t nthunks;
	uint32_t naccesses; /* of memory: what checks there can be */
	struct err *err;
};

/* A native that callx cannot call as the function of C that it is. */
static bool needs_thunk(const struct vm *vm, uint32_t native)
{
	const struct vm_native_plan *plan = &vm->natives[native];

	return plan->function && (plan->id != VM_OP_CALL_WHOLE || vm->checked);
}

static void survey(struct compiler *c)
{
	const struct vm_image *image = &c->vm->image;

	for (size_t i = 0; i < image->ncode; i++) {
		const struct isa_row *row = isa_row(isa_find(&image->code[i]));

		c->has_callx |= row->form == ISA_FORM_CALLX;
		/* A call may be a lookup, which reads its index. */
		c->naccesses += isa_touches_memory(row) || row->form == ISA_FORM_CALL;
		i += isa_slots(row) - 1;
	}
	for (uint32_t i = 0; c->has_callx && i < c->vm->nnatives; i++)
		c->nthunks += needs_thunk(c->vm, i);
}

/* Of two clusters of natives, the larger one: libraries and the program itself lie far apart. */
static struct jit_near where_natives_are(const struct vm *vm)
{
	struct jit_near clusters[2] = { { UINTPTR_MAX, 0 }, { UINTPTR_MAX, 0 } };
	uintptr_t address = (uintptr_t)overflow, first = 0;
	uint32_t members[2] = { 0 };

	for (uint32_t i = 0; i < vm->nnatives; i++) {
		uintptr_t function = (uintptr_t)vm->natives[i].function;
		int k;

		if (!function)
			continue;
		if (!first)
			first = function;
		k = (function > first ? function - first : first - function) >> 30 != 0;
		members[k]++;
		if (function < clusters[k].low)
			clusters[k].low = function;
		if (function > clusters[k].high)
			clusters[k].high = function;
	}
	if (vm->options.passes_off & VM_PASS_NEAR)
		return (struct jit_near){ first ? first : address, 0 };
	if (vm->checked)
		return (struct jit_near){ address, address };
	if (!members[0])
		return (struct jit_near){ 0 };
	return clusters[members[1] > members[0]];
}

static void set_runtime(struct jit *jit, struct vm *vm)
{
	jit->runtime = (struct jit_runtime){
		.vm = vm,
		.limit_offset = (char *)&vm_stack_limit - (char *)__builtin_thread_pointer(),
		.overflow = overflow,
		.callx_target = callx_target,
		.has_budget = vm->options.instruction_budget != 0,
		.budget = (int64_t *)&vm->budget,
		.spent = spent,
		.stack = &vm->stack,
		.stack_low = vm->stack_low,
		.checks = (struct jit_check_slot *)jit->memory.data,
		.check_miss = check_miss,
		.checked_call = contract_call,
	};
}

/* Back ends append to what is there: a new attempt starts from nothing. */
static void start_code(struct compiler *c)
{
	struct jit_code *code = &c->code;

	code->bytes = c->jit->memory.buffer;
	code->address = (uintptr_t)c->jit->memory.code;
	code->capacity = c->jit->memory.code_size;
	code->size = code->nplaces = code->nsteps = code->npatches = 0;
	code->full = false;
	code->functions = c->jit->ranges;
	code->runtime = &c->jit->runtime;
	memset(c->jit->ranges, 0, c->jit->nranges * sizeof(*c->jit->ranges));
	c->jit->nemitted = 0;
	c->function.nchecks = 0;
	check_restart(c->vm);
}

static int emit(struct compiler *c, uint32_t range)
{
	int rc = jit_optimise(&c->function);

	rc = rc ? rc : c->jit->target->function(&c->code, &c->function);
	if (!rc)
		c->jit->emitted[c->jit->nemitted++] = range;
	return rc;
}

static int emit_function(struct compiler *c, uint32_t index)
{
	struct jit_function *function = &c->function;
	int rc;

	function->index = index;
	function->recursive = c->recursive[index];
	rc = jit_lower(function);
	return rc ? rc : emit(c, index);
}

/* { return native(r1, ...); } */
static int emit_thunk(struct compiler *c, uint32_t native, uint32_t index)
{
	const struct vm_native *what = &c->vm->image.natives[native];
	struct jit_function *function = &c->function;
	const struct jit_insn blank = { .width = 8,
					.dst = JIT_NONE,
					.a = JIT_NONE,
					.b = JIT_NONE,
					.base = JIT_NONE,
					.index = JIT_NONE };

	function->ninsns = function->nblocks = function->norder = function->ntargets = 0;
	if (jit_reserve(function, 16, 1))
		return -ENOMEM;
	function->index = index;
	function->recursive = false;
	function->frame = 0;
	function->ninsns = 2;
	function->insns[0] = function->insns[1] = blank;
	function->insns[0].op = JIT_CALL_C;
	function->insns[0].target = native;
	function->insns[0].size = what->with_context ? VM_MAX_ARGUMENTS : what->nargs;
	function->insns[1].op = JIT_EXIT;
	function->nblocks = 1;
	function->blocks[0] =
		(struct jit_block){ .count = 2, .taken = JIT_NOWHERE, .next = JIT_NOWHERE };
	return emit(c, index);
}

static int emit_thunks(struct compiler *c)
{
	uint32_t index = c->vm->nfunctions;
	int rc = 0;

	for (uint32_t i = 0; c->nthunks && i < c->vm->nnatives && !rc; i++) {
		if (!needs_thunk(c->vm, i))
			continue;
		c->jit->thunks[i] = index;
		rc = emit_thunk(c, i, index++);
	}
	return rc;
}

/* Two names of one function are one function. */
static void fill_aliases(struct compiler *c)
{
	for (uint32_t i = 0; i < c->vm->nfunctions; i++) {
		uint32_t original = jit_function_at(c->vm, c->vm->functions[i].first);

		c->jit->ranges[i] = c->jit->ranges[original];
	}
}

static int emit_all(struct compiler *c)
{
	const struct jit_target *target = c->jit->target;
	uint32_t enter;
	int rc;

	start_code(c);
	rc = target->begin(&c->code, &enter);
	for (uint32_t i = 0; i < c->vm->nordered && !rc && !c->code.full; i++)
		rc = emit_function(c, c->vm->order[i]);
	if (!rc && !c->code.full)
		rc = emit_thunks(c);
	if (rc || c->code.full)
		return rc;
	fill_aliases(c);
	return target->finish(&c->code);
}

/* Memory for all that can be needed by the back end's own account; more if that was wrong. */
static int compile_all(struct compiler *c)
{
	const struct vm *vm = c->vm;
	size_t data = vm->checked ? c->naccesses * sizeof(struct jit_check_slot) : 0;
	size_t ninsns = vm->image.ncode + c->naccesses * (vm->checked ? 1 : 0) + 2 * c->nthunks;
	size_t size = c->jit->target->bound(ninsns, vm->nordered + c->nthunks);
	struct jit_near near = where_natives_are(vm);
	int rc;

	do {
		jit_memory_release(&c->jit->memory);
		if (size > MOST_CODE)
			return err_set(c->err, -ENOTSUP, "%zu instructions: too many to compile",
				       vm->image.ncode);
		rc = jit_memory_create(&c->jit->memory, size, data, &near, c->err);
		if (rc)
			return rc;
		set_runtime(c->jit, c->vm);
		rc = emit_all(c);
		size *= 2;
	} while (!rc && c->code.full);
	return rc;
}

/*
 * Stack that functions take without a check in between: a function that checks answers for itself
 * alone. No chain of the others meets one twice.
 */
static void find_depth(struct compiler *c)
{
	uint64_t most = 0, sum = 0;

	for (uint32_t i = 0; i < c->jit->nemitted; i++) {
		uint32_t index = c->jit->emitted[i];
		const struct jit_range *range = &c->jit->ranges[index];
		uint64_t depth = sizeof(uint64_t);

		for (uint32_t k = 0; k < range->nsteps; k++)
			if (c->code.steps[range->first_step + k].depth + sizeof(uint64_t) > depth)
				depth = c->code.steps[range->first_step + k].depth +
					sizeof(uint64_t);
		if (index < c->vm->nfunctions && c->recursive[index])
			most = depth > most ? depth : most;
		else
			sum += depth;
	}
	c->jit->depth = most + sum;
}

static int keep_tables(struct compiler *c)
{
	struct jit *jit = c->jit;

	jit->places = c->code.places;
	jit->nplaces = c->code.nplaces;
	jit->stubs = c->code.stubs;
	c->code.places = NULL;
	find_depth(c);
	return jit_frames_register(jit, &c->code);
}

static int make_tables(struct compiler *c)
{
	struct vm *vm = c->vm;
	struct jit *jit = c->jit;

	jit->nranges = vm->nfunctions + c->nthunks;
	jit->ranges = calloc(jit->nranges, sizeof(*jit->ranges));
	jit->emitted = calloc(jit->nranges, sizeof(*jit->emitted));
	jit->code = malloc(vm->image.ncode * sizeof(*jit->code));
	c->recursive = calloc(vm->nfunctions, sizeof(*c->recursive));
	if (!jit->ranges || !jit->emitted || !jit->code || !c->recursive)
		return -ENOMEM;
	memcpy(jit->code, vm->image.code, vm->image.ncode * sizeof(*jit->code));
	if (c->has_callx && vm->nnatives) {
		jit->thunks = calloc(vm->nnatives, sizeof(*jit->thunks));
		if (!jit->thunks)
			return -ENOMEM;
	}
	return jit_find_recursion(vm, &vm->image, c->recursive);
}

static int compile(struct compiler *c)
{
	struct vm *vm = c->vm;
	int rc;

	survey(c);
	rc = make_tables(c);
	c->function.vm = vm;
	c->function.image = &vm->image;
	c->function.checked = vm->options.checked;
	c->function.passes = VM_PASS_ALL & ~vm->options.passes_off;
	c->function.target = c->jit->target;
	c->function.err = c->err;
	rc = rc ? rc : compile_all(c);
	if (!rc && vm->checked)
		rc = check_slots(vm, (struct vm_check_slot *)c->jit->memory.data,
				 c->function.nchecks);
	rc = rc ? rc : keep_tables(c);
	return rc ? rc : jit_memory_seal(&c->jit->memory, c->code.size, vm, c->err);
}

static void release_compiler(struct compiler *c)
{
	jit_release(&c->function);
	free(c->code.places);
	free(c->code.steps);
	free(c->code.patches);
	free(c->recursive);
}

/* ---- the engine ------------------------------------------------------------------------ */

/* Also what the machine saves for each frame of the interpreter's size. */
static void set_bounds(struct vm *vm)
{
	vm->stack_allowance = vm->options.stack_bytes + vm->options.stack_bytes / 4;
	vm->stack_below = vm->jit->depth;
}

static int prepare(struct vm *vm, struct err *err)
{
	struct compiler c = { .vm = vm, .err = err };
	int rc;

	if (!jit_host())
		return err_set(err, -ENOTSUP, "there is no compiler for this machine");
	vm->jit = c.jit = calloc(1, sizeof(*c.jit));
	if (!vm->jit)
		return err_nomem(err);
	c.jit->target = jit_host();
	c.jit->memory.slot = -1;
	rc = closure_prepare(vm, err);
	if (!rc && vm->checked)
		rc = vm_make_stack(vm, err);
	rc = rc ? rc : compile(&c);
	release_compiler(&c);
	if (rc)
		return rc == -ENOMEM ? err_nomem(err) : rc;
	set_bounds(vm);
	for (uint32_t i = 0; i < vm->nfunctions; i++)
		closure_add(vm, (uintptr_t)address_of(vm->jit, i), i);
	return 0;
}

static void release(struct vm *vm)
{
	struct jit *jit = vm->jit;

	if (!jit)
		return;
	closure_release(vm);
	jit_frames_release(jit);
	jit_memory_release(&jit->memory);
	free(jit->code);
	free(jit->places);
	free(jit->ranges);
	free(jit->emitted);
	free(jit->thunks);
	free(jit);
	vm->jit = NULL;
}

/* The bound is checked where recursion is; here, that what does not check has room. */
static uint64_t call(struct vm *vm, const struct vm_activation *activation, uint32_t function,
		     const uint64_t *args)
{
	function_of_c *code = (function_of_c *)address_of(vm->jit, function);

	(void)activation;
	if ((uintptr_t)__builtin_frame_address(0) < vm_stack_limit)
		fault_raise(vm, VM_FAULT_STACK);
	return code(args[0], args[1], args[2], args[3], args[4]);
}

static void interrupt(struct vm *vm)
{
	jit_memory_open(&vm->jit->memory, false);
}

const char *jit_name(const struct vm *vm)
{
	return vm->jit->target->name;
}

static uint64_t stack_live(const struct vm *vm)
{
	return atomic_load(&vm->base) ? vm->stack : 0;
}

static void *address(struct vm *vm, uint32_t function)
{
	return address_of(vm->jit, function);
}

const struct vm_engine vm_jit = {
	.prepare = prepare,
	.release = release,
	.call = call,
	.interrupt = interrupt,
	.describe = jit_describe,
	.trace = jit_trace,
	.stack_live = stack_live,
	.address = address,
};
