// SPDX-License-Identifier: BSD-2-Clause
/* malloc and kin for scripts: their own heap (heap.h). */
#include "hook/internal.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(struct hook_half *half, size_t size)
{
	return hook_heap_alloc(half->heap, size);
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
	if (is_foreign(half, pointer))
		free(pointer);
	else if (!hook_heap_free(half->heap, pointer))
		vm_raise(half->vm, "free() of an address that malloc() did not return, or twice");
	return 0;
}

NATIVE(fn_realloc)
{
	struct hook_half *half = context;
	void *old = (void *)a1, *block;
	size_t have;

	if (!old)
		return (uintptr_t)allocate(half, a2);
	if (is_foreign(half, old))
		return (uintptr_t)realloc(old, a2);
	have = hook_heap_size(half->heap, old);
	if (!have)
		vm_raise(half->vm, "realloc() of an address that malloc() did not return");
	if (a2 <= have && a2)
		return a1;
	block = allocate(half, a2);
	if (block) {
		memcpy(block, old, have < a2 ? have : a2);
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
	return duplicate(context, (const char *)a1, strnlen((const char *)a1, a2));
}

const struct hook_function hook_functions_memory[] = {
	{ "malloc", fn_malloc }, { "calloc", fn_calloc },
	{ "free", fn_free },     { "realloc", fn_realloc },
	{ "strdup", fn_strdup }, { "strndup", fn_strndup },
	{ NULL, NULL },
};
