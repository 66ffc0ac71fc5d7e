// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of C functions. Integers go straight from BPF registers to the argument registers of C;
 * floating point, of which BPF has no registers, goes through libffi with what was prepared when
 * the vm was created.
 */
#include "vm/signals.h"
#include "vm/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t integer_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static ffi_type *ffi_type_of(enum vm_class class)
{
	switch (class) {
	case VM_VOID:
		return &ffi_type_void;
	case VM_U8:
		return &ffi_type_uint8;
	case VM_S8:
		return &ffi_type_sint8;
	case VM_U16:
		return &ffi_type_uint16;
	case VM_S16:
		return &ffi_type_sint16;
	case VM_U32:
		return &ffi_type_uint32;
	case VM_S32:
		return &ffi_type_sint32;
	case VM_U64:
		return &ffi_type_uint64;
	case VM_S64:
		return &ffi_type_sint64;
	case VM_POINTER:
		return &ffi_type_pointer;
	case VM_FLOAT:
		return &ffi_type_float;
	case VM_DOUBLE:
		return &ffi_type_double;
	}
	return NULL;
}

/* An integer of a class, as a 64-bit register holds it. */
static uint64_t extend(enum vm_class class, uint64_t value)
{
	switch (class) {
	case VM_VOID:
		return 0;
	case VM_U8:
		return (uint8_t)value;
	case VM_S8:
		return (int8_t)value;
	case VM_U16:
		return (uint16_t)value;
	case VM_S16:
		return (int16_t)value;
	case VM_U32:
	case VM_FLOAT:
		return (uint32_t)value;
	case VM_S32:
		return (int32_t)value;
	default:
		return value;
	}
}

static bool is_floating(enum vm_class class)
{
	return class == VM_FLOAT || class == VM_DOUBLE;
}

static bool is_whole(enum vm_class class)
{
	return class == VM_U64 || class == VM_S64 || class == VM_POINTER;
}

static int native_plan(const struct vm *vm, struct vm_native_plan *plan,
		       const struct vm_native *native, struct err *err)
{
	bool simple = is_whole(native->result);
	ffi_type *result;

	plan->native = native;
	plan->function = native->function;
	plan->by_ffi = is_floating(native->result);
	if (vm->checked && !contract_fits(native))
		return err_set(err, -EINVAL,
			       "native function %s: its contract demands something of an argument "
			       "that is no pointer or not there",
			       native->name);
	if (native->with_context) {
		plan->id = VM_OP_CALL_CONTEXT;
		plan->by_ffi = false;
		return 0;
	}
	if (native->nargs > VM_MAX_ARGUMENTS)
		return err_set(err, -EINVAL, "native function %s: takes %u arguments: at most %d",
			       native->name, native->nargs, VM_MAX_ARGUMENTS);
	result = ffi_type_of(native->result);
	for (uint32_t i = 0; i < native->nargs; i++) {
		plan->types[i] = ffi_type_of(native->args[i]);
		if (!plan->types[i] || native->args[i] == VM_VOID)
			result = NULL;
		plan->by_ffi |= is_floating(native->args[i]);
		/* C functions may rely on the caller's extension to 32 bits, not on more. */
		simple &= is_whole(native->args[i]) || native->args[i] == VM_U32 ||
			  native->args[i] == VM_S32;
	}
	if (!result)
		return err_set(err, -EINVAL, "native function %s: a class is unknown",
			       native->name);
	plan->id = simple && !plan->by_ffi ? VM_OP_CALL_WHOLE : VM_OP_CALL_OTHER;
	if (plan->by_ffi &&
	    ffi_prep_cif(&plan->cif, FFI_DEFAULT_ABI, native->nargs, result, plan->types) != FFI_OK)
		return err_set(err, -ENOTSUP, "native function %s: libffi cannot call it",
			       native->name);
	return 0;
}

/* Threads of a script must be ready for its faults: pthread_create() is ours. */
static int replace_natives(struct vm *vm)
{
	struct vm_image *image = &vm->image;
	size_t i;

	for (i = 0; i < image->nnatives; i++)
		if (image->natives[i].function == (void *)pthread_create)
			break;
	if (i == image->nnatives)
		return 0;
	if (!vm->own_natives) {
		vm->own_natives = malloc(image->nnatives * sizeof(*vm->own_natives));
		if (!vm->own_natives)
			return -ENOMEM;
		memcpy(vm->own_natives, image->natives, image->nnatives * sizeof(*vm->own_natives));
		image->natives = vm->own_natives;
	}
	for (; i < image->nnatives; i++)
		if (vm->own_natives[i].function == (void *)pthread_create)
			vm->own_natives[i].function = (void *)signal_thread_create;
	return 0;
}

int native_prepare(struct vm *vm, const struct vm_image *image, struct err *err)
{
	int rc;

	vm->nnatives = image->nnatives;
	if (!image->nnatives)
		return 0;
	vm->natives = calloc(image->nnatives, sizeof(*vm->natives));
	if (!vm->natives || replace_natives(vm) || contract_prepare(vm))
		return err_nomem(err);
	for (size_t i = 0; i < image->nnatives; i++) {
		rc = native_plan(vm, &vm->natives[i], &image->natives[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

/* libffi reads each argument from its own type's width: right on a little endian machine. */
static uint64_t call_by_ffi(const struct vm_native_plan *plan, const uint64_t *args)
{
	void *values[VM_MAX_ARGUMENTS];
	union {
		ffi_arg integer;
		uint64_t bits;
	} result = { 0 };

	for (int i = 0; i < VM_MAX_ARGUMENTS; i++)
		values[i] = (void *)&args[i];
	ffi_call((ffi_cif *)&plan->cif, FFI_FN(plan->function), &result, values);
	return extend(plan->native->result, result.bits);
}

void native_take(const struct vm_native *native, const uint64_t *args, uint64_t *ret)
{
	for (uint32_t i = 0; i < VM_MAX_ARGUMENTS; i++)
		ret[i] = native->with_context || i >= native->nargs
				 ? args[i]
				 : extend(native->args[i], args[i]);
}

uint64_t native_call(struct vm *vm, const struct vm_native_plan *plan, const uint64_t *args)
{
	const struct vm_native *native = plan->native;
	uint64_t a[VM_MAX_ARGUMENTS], result;

	if (native->with_context)
		return ((uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				     void *))plan->function)(args[0], args[1], args[2], args[3],
							     args[4], vm->context);
	if (plan->by_ffi)
		return call_by_ffi(plan, args);
	memcpy(a, args, sizeof(a));
	for (uint32_t i = 0; i < native->nargs; i++)
		a[i] = extend(native->args[i], args[i]);
	result = ((integer_function *)plan->function)(a[0], a[1], a[2], a[3], a[4]);
	return extend(native->result, result);
}
