/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The script's own heap: what a script breaks is not duet's malloc, and what a fault leaves behind
 * goes with the heap. Blocks carry a mark, so that a wrong free is told, not obeyed.
 * Not thread safe. Sizes in bytes, blocks aligned to 16.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hook_heap;

/* Reserves address space (1 GiB by default, touched as used). NULL when out of memory. */
struct hook_heap *hook_heap_create(size_t limit);
void hook_heap_destroy(struct hook_heap *heap);

void *hook_heap_alloc(struct hook_heap *heap, size_t size); /* NULL: heap full */
/* Bytes usable at @pointer, or 0 when it is no live block of this heap. */
size_t hook_heap_size(const struct hook_heap *heap, const void *pointer);
/* false when @pointer is no live block. */
bool hook_heap_free(struct hook_heap *heap, void *pointer);
bool hook_heap_owns(const struct hook_heap *heap, const void *pointer);
