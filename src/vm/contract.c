// SPDX-License-Identifier: BSD-2-Clause
/* Calls of C in checked mode: every argument is held against the function's contract first. */
#include "vm/checked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong with an argument, into the fault that ends the call. */
struct breach {
	uint64_t address, size;
	bool write, is_code; /* is_code: not memory is missing, but a function */
	char what[100];
};

static void raise_breach(struct vm *vm, const struct vm_native *native, const struct breach *breach)
	__attribute__((noreturn));
static void raise_breach(struct vm *vm, const struct vm_native *native, const struct breach *breach)
{
	struct vm_fault fault = {
		.kind = VM_FAULT_ARGUMENT,
		.insn = VM_INSN_OF_PC,
		.address = breach->address,
		.size = breach->size > UINT32_MAX ? UINT32_MAX : breach->size,
		.native = native ? native->name : NULL,
		.write = breach->write,
		.read = !breach->write && !breach->is_code,
	};

	snprintf(fault.text, sizeof(fault.text), "%s", breach->what);
	fault_raise_as(vm, &fault);
}

static void say_access(struct breach *breach, uint32_t argument)
{
	char which[24] = "";

	if (argument)
		snprintf(which, sizeof(which), "argument %u: ", argument);
	snprintf(breach->what, sizeof(breach->what), "%s%s of %llu byte%s at 0x%llx", which,
		 breach->write ? "write" : "read", (unsigned long long)breach->size,
		 breach->size == 1 ? "" : "s", (unsigned long long)breach->address);
}

bool contract_pinned(const struct vm *vm, uint64_t start, uint64_t size)
{
	for (const struct vm_pin *pin = vm->checked->pins; pin; pin = pin->outer)
		if (pin->start - start < size || start - pin->start < pin->size)
			return true;
	return false;
}

/* Bytes that the table demands of argument @i; UINT64_MAX when the product is too big. */
static uint64_t demanded(const struct vm_contract *contract, int i, const uint64_t *args)
{
	uint64_t size = contract->args[i].bytes ? contract->args[i].bytes : 1;

	if (contract->args[i].count &&
	    __builtin_mul_overflow(size, args[contract->args[i].count - 1], &size))
		return UINT64_MAX;
	if (contract->args[i].times &&
	    __builtin_mul_overflow(size, args[contract->args[i].times - 1], &size))
		return UINT64_MAX;
	return size;
}

static bool is_string(const struct vm *vm, uint64_t address)
{
	uint64_t rest = check_rest(vm, address, false);

	return rest && memchr((const void *)(uintptr_t)address, 0, rest);
}

bool vm_may_read_string(const struct vm *vm, uint64_t address)
{
	return !vm->checked || is_string(vm, address);
}

static bool keeps(struct vm *vm, const struct vm_contract *contract, int i, const uint64_t *args,
		  struct breach *breach)
{
	const struct vm_address *known;

	*breach = (struct breach){ .address = args[i] };
	switch ((enum vm_demand)contract->args[i].demand) {
	case VM_ANY:
		return true;
	case VM_READ:
	case VM_WRITE:
	case VM_CHANGE:
		breach->write = contract->args[i].demand != VM_READ;
		breach->size = demanded(contract, i, args);
		if (!breach->size || check_rest(vm, args[i], breach->write) >= breach->size)
			return true;
		say_access(breach, i + 1);
		return false;
	case VM_STRING:
		if (is_string(vm, args[i]))
			return true;
		snprintf(breach->what, sizeof(breach->what),
			 check_rest(vm, args[i], false)
				 ? "argument %d: the string at 0x%llx has no end in its memory"
				 : "argument %d: read of a string at 0x%llx",
			 i + 1, (unsigned long long)args[i]);
		return false;
	case VM_CALLBACK:
		known = closure_find(vm, args[i]);
		if (known && !known->native)
			return true;
		breach->is_code = true;
		snprintf(breach->what, sizeof(breach->what),
			 "argument %d: 0x%llx is no function of the program", i + 1,
			 (unsigned long long)args[i]);
		return false;
	}
	return false;
}

/* The region that the argument was last found in, if it lies in there again. */
static bool as_before(const struct vm *vm, const struct vm_seen *seen, uint64_t address,
		      uint64_t size)
{
	return seen->generation == vm->checked->generation && size <= seen->size &&
	       address - seen->start <= seen->size - size;
}

/* Memory of that argument: most calls pass what the last one passed. */
static bool keeps_again(struct vm *vm, const struct vm_contract *contract,
			struct vm_contract_plan *plan, int i, const uint64_t *args)
{
	struct vm_seen *seen = &plan->seen[i];
	uint8_t demand = contract->args[i].demand;
	struct vm_region region;
	uint64_t size;

	if (demand < VM_READ || demand > VM_CHANGE)
		return false;
	size = demanded(contract, i, args);
	if (seen->size && as_before(vm, seen, args[i], size))
		return true;
	if (!check_find(vm, args[i], demand != VM_READ, &region))
		return false;
	*seen = (struct vm_seen){ region.start, region.size, vm->checked->generation };
	return as_before(vm, seen, args[i], size);
}

static void check_arguments(struct vm *vm, const struct vm_native *native,
			    struct vm_contract_plan *plan, const uint64_t *args)
{
	const struct vm_contract *contract = native->contract;
	struct breach breach;
	uint64_t address = 0;

	for (int k = 0; k < plan->count; k++) {
		int i = plan->args[k];

		if (contract->args[i].optional && !args[i])
			continue;
		if (!keeps_again(vm, contract, plan, i, args) &&
		    !keeps(vm, contract, i, args, &breach))
			raise_breach(vm, native, &breach);
	}
	if (!contract->check || !contract->check(vm, args, &address))
		return;
	breach = (struct breach){ .address = address };
	snprintf(breach.what, sizeof(breach.what), "bad argument: 0x%llx",
		 (unsigned long long)address);
	raise_breach(vm, native, &breach);
}

int contract_prepare(struct vm *vm)
{
	struct vm_checked *checked = vm->checked;

	if (checked)
		checked->contracts = calloc(vm->nnatives, sizeof(*checked->contracts));
	return checked && !checked->contracts ? -ENOMEM : 0;
}

static struct vm_contract_plan *plan_of(struct vm *vm, uint32_t index)
{
	const struct vm_contract *contract = vm->natives[index].native->contract;
	struct vm_contract_plan *plan = &vm->checked->contracts[index];

	if (plan->known)
		return plan;
	for (int i = 0; i < VM_MAX_ARGUMENTS; i++) {
		if (contract->args[i].demand == VM_ANY)
			continue;
		plan->args[plan->count++] = i;
		plan->calls_back |= contract->args[i].demand == VM_CALLBACK;
	}
	plan->known = true;
	return plan;
}

bool contract_demands(const struct vm_contract *contract)
{
	for (int i = 0; i < VM_MAX_ARGUMENTS; i++)
		if (contract->args[i].demand != VM_ANY)
			return true;
	return contract->check != NULL;
}

bool contract_fits(const struct vm_native *native)
{
	for (int i = 0; native->contract && i < VM_MAX_ARGUMENTS; i++) {
		if (native->contract->args[i].demand == VM_ANY || native->with_context)
			continue;
		if (i >= native->nargs || native->args[i] == VM_FLOAT ||
		    native->args[i] == VM_DOUBLE)
			return false;
	}
	return true;
}

/* Memory arguments of a function that calls back are pinned: the callback must not free them. */
static uint64_t call_pinned(struct vm *vm, const struct vm_native_plan *plan, const uint64_t *args)
{
	const struct vm_contract *contract = plan->native->contract;
	struct vm_checked *checked = vm->checked;
	const struct vm_pin *outer = checked->pins;
	struct vm_pin pins[VM_MAX_ARGUMENTS];
	uint64_t result;

	for (int i = 0; i < VM_MAX_ARGUMENTS; i++) {
		if (contract->args[i].demand < VM_READ || contract->args[i].demand > VM_CHANGE)
			continue;
		pins[i] = (struct vm_pin){ checked->pins, args[i], demanded(contract, i, args) };
		checked->pins = &pins[i];
	}
	result = native_call(vm, plan, args);
	checked->pins = outer;
	return result;
}

uint64_t contract_call(struct vm *vm, uint32_t index, const uint64_t *args)
{
	const struct vm_native_plan *plan = &vm->natives[index];
	const struct vm_native *native = plan->native;
	struct vm_contract_plan *contract;
	uint64_t taken[VM_MAX_ARGUMENTS];

	if (!native->contract || !plan->function) {
		struct vm_fault fault = { .kind = VM_FAULT_EXECUTE,
					  .insn = VM_INSN_OF_PC,
					  .address = (uintptr_t)plan->function };

		fault_raise_as(vm, &fault);
	}
	/* What the function will see: a narrow size is checked as it is used. */
	native_take(native, args, taken);
	contract = plan_of(vm, index);
	check_arguments(vm, native, contract, taken);
	return contract->calls_back ? call_pinned(vm, plan, taken) : native_call(vm, plan, taken);
}

void vm_raise_argument(struct vm *vm, uint64_t address, size_t size, bool write)
{
	struct breach breach = { .address = address, .size = size, .write = write };

	say_access(&breach, 0);
	raise_breach(vm, NULL, &breach);
}

void vm_raise_string(struct vm *vm, uint64_t address)
{
	struct breach breach = { .address = address };

	snprintf(breach.what, sizeof(breach.what), "read of a string at 0x%llx",
		 (unsigned long long)address);
	raise_breach(vm, NULL, &breach);
}
