// SPDX-License-Identifier: BSD-2-Clause
/*
 * Addresses of functions. C code calls a BPF function through a libffi closure; a callx of BPF
 * code to such an address is recognised and stays in the engine.
 */
#include "vm/vm_internal.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t address_hash(uint64_t address)
{
	return (address >> 4) * 0x9e3779b97f4a7c15ull >> 32;
}

static void address_add(struct vm *vm, uint64_t address, uint32_t index, bool native)
{
	uint32_t i = address_hash(address) & vm->address_mask;

	while (vm->addresses[i].address && vm->addresses[i].address != address)
		i = (i + 1) & vm->address_mask;
	if (!vm->addresses[i].address)
		vm->addresses[i] = (struct vm_address){ address, index, native };
}

const struct vm_address *closure_find(const struct vm *vm, uint64_t address)
{
	uint32_t i = address_hash(address) & vm->address_mask;

	if (!address)
		return NULL;
	while (vm->addresses[i].address) {
		if (vm->addresses[i].address == address)
			return &vm->addresses[i];
		i = (i + 1) & vm->address_mask;
	}
	return NULL;
}

/* What C calls: @values are pointers to five integers. */
static void closure_enter(ffi_cif *cif, void *result, void **values, void *data)
{
	struct vm_code *code = data;
	uint64_t args[VM_MAX_ARGUMENTS];

	(void)cif;
	for (int i = 0; i < VM_MAX_ARGUMENTS; i++)
		args[i] = *(uint64_t *)values[i];
	*(ffi_arg *)result = vm_call_nested(code->vm, code->index, args);
}

int closure_prepare(struct vm *vm, struct err *err)
{
	uint32_t size = 8;

	while (size < 2 * (vm->nfunctions + vm->nnatives))
		size *= 2;
	vm->addresses = calloc(size, sizeof(*vm->addresses));
	if (!vm->addresses)
		return err_nomem(err);
	vm->address_mask = size - 1;
	for (uint32_t i = 0; i < vm->nnatives; i++)
		if (vm->natives[i].function)
			address_add(vm, (uintptr_t)vm->natives[i].function, i, true);
	return 0;
}

void closure_release(struct vm *vm)
{
	for (uint32_t i = 0; vm->functions && i < vm->nfunctions; i++)
		if (vm->functions[i].closure)
			ffi_closure_free(vm->functions[i].closure);
	free(vm->addresses);
}

void closure_add(struct vm *vm, uint64_t address, uint32_t function)
{
	address_add(vm, address, function, false);
}

const struct vm_native *closure_native(const struct vm *vm, uint64_t target)
{
	const struct vm_address *known;

	if (vm->call_by_number && target < vm->nnatives)
		return vm->natives[target].native;
	known = closure_find(vm, target);
	return known && known->native ? vm->natives[known->index].native : NULL;
}

static bool prepare_cif(struct vm *vm)
{
	for (int i = 0; i < VM_MAX_ARGUMENTS; i++)
		vm->closure_types[i] = &ffi_type_uint64;
	return ffi_prep_cif(&vm->closure_cif, FFI_DEFAULT_ABI, VM_MAX_ARGUMENTS, &ffi_type_uint64,
			    vm->closure_types) == FFI_OK;
}

void *closure_address(struct vm *vm, uint32_t function)
{
	struct vm_code *code = &vm->functions[function];
	void *address;

	if (code->address)
		return code->address;
	if (!vm->closure_types[0] && !prepare_cif(vm))
		return NULL;
	code->closure = ffi_closure_alloc(sizeof(*code->closure), &address);
	if (!code->closure)
		return NULL;
	if (ffi_prep_closure_loc(code->closure, &vm->closure_cif, closure_enter, code, address) !=
	    FFI_OK) {
		ffi_closure_free(code->closure);
		code->closure = NULL;
		return NULL;
	}
	code->address = address;
	closure_add(vm, (uintptr_t)address, function);
	return address;
}
