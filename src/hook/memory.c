// SPDX-License-Identifier: BSD-2-Clause
/* malloc and kin for scripts: their own heap (heap.h). */
#include "hook/checked.h"

#include <stdlib.h>
#include <string.h>

/* In checked mode each block is a region of exactly what was asked for. */
static void *allocate(struct hook_half *half, size_t size)
{
	void *block = hook_heap_alloc(half->heap, size);

	if (block && size && vm_region_add(half->vm, block, size, VM_REGION_WRITABLE)) {
		hook_heap_free(half->heap, block);
		return NULL;
	}
	return block;
}

static void forget(struct hook_half *half, const void *block)
{
	if (vm_region_remove(half->vm, block) == -EBUSY)
		vm_raise(half->vm, "free() or realloc() of memory that a function of the C library "
				   "is working on");
}

/* Blocks that the C library itself allocated (getline, realpath ...) are not in our heap. */
static bool is_foreign(struct hook_half *half, void *pointer)
{
	return !hook_heap_owns(half->heap, pointer);
}

NATIVE(fn_malloc)
{
	return (uintptr_t)allocate(context, a1);
}

NATIVE(fn_calloc)
{
	size_t size;
	void *block;

	if (__builtin_mul_overflow(a1, a2, &size))
		return 0;
	block = allocate(context, size);
	return (uintptr_t)(block ? memset(block, 0, size) : NULL);
}

NATIVE(fn_free)
{
	struct hook_half *half = context;
	void *pointer = (void *)a1;

	if (!pointer)
		return 0;
	if (is_foreign(half, pointer) && !half->options.checked) {
		free(pointer);
		return 0;
	}
	if (!hook_heap_size(half->heap, pointer))
		vm_raise(half->vm, "free() of an address that malloc() did not return, or twice");
	forget(half, pointer);
	hook_heap_free(half->heap, pointer);
	return 0;
}

NATIVE(fn_realloc)
{
	struct hook_half *half = context;
	void *old = (void *)a1, *block;
	size_t have;

	if (!old)
		return (uintptr_t)allocate(half, a2);
	if (is_foreign(half, old) && !half->options.checked)
		return (uintptr_t)realloc(old, a2);
	have = hook_heap_size(half->heap, old);
	if (!have)
		vm_raise(half->vm, "realloc() of an address that malloc() did not return");
	if (a2 <= have && a2) {
		forget(half, old);
		return vm_region_add(half->vm, old, a2, VM_REGION_WRITABLE) ? 0 : a1;
	}
	block = allocate(half, a2);
	if (block) {
		memcpy(block, old, have < a2 ? have : a2);
		forget(half, old);
		hook_heap_free(half->heap, old);
	}
	return (uintptr_t)block;
}

static uint64_t duplicate(struct hook_half *half, const char *text, size_t size)
{
	char *copy = allocate(half, size + 1);

	if (!copy)
		return 0;
	memcpy(copy, text, size);
	copy[size] = 0;
	return (uintptr_t)copy;
}

NATIVE(fn_strdup)
{
	return duplicate(context, (const char *)a1, strlen((const char *)a1));
}

NATIVE(fn_strndup)
{
	hook_need_text(context, a1, a2);
	return duplicate(context, (const char *)a1, strnlen((const char *)a1, a2));
}

const struct hook_function hook_functions_memory[] = {
	{ "malloc", fn_malloc, &hook_contract_none },
	{ "calloc", fn_calloc, &hook_contract_none },
	{ "free", fn_free, &hook_contract_none },
	{ "realloc", fn_realloc, &hook_contract_none },
	{ "strdup", fn_strdup, &hook_contract_text },
	{ "strndup", fn_strndup, &hook_contract_none },
	{ NULL },
};
