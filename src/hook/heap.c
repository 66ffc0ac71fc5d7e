// SPDX-License-Identifier: BSD-2-Clause
#include "hook/heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Size classes: powers of two and the half steps between, from 16 bytes up. */
#define CLASSES   64
#define LIVE_MARK 0x6475657461766569ULL
#define FREE_MARK 0x6475657466726565ULL
#define HEADER    16

struct block {
	uint64_t mark; /* LIVE_MARK or FREE_MARK, mixed with the address */
	uint32_t class;
	uint32_t unused;
	struct block *next; /* only while free; the payload otherwise */
};

struct hook_heap {
	uint8_t *base;
	size_t limit, used;
	struct block *free[CLASSES];
};

static size_t class_size(uint32_t class)
{
	size_t power = (size_t)16 << (class / 2);

	return class % 2 ? power + power / 2 : power;
}

static uint32_t class_of(size_t size)
{
	uint32_t class = 0;

	while (class < CLASSES && class_size(class) < size)
		class ++;
	return class;
}

struct hook_heap *hook_heap_create(size_t limit)
{
	struct hook_heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->limit = limit ? limit : (size_t)1 << 30;
	heap->base = mmap(NULL, heap->limit, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (heap->base == MAP_FAILED) {
		free(heap);
		return NULL;
	}
	return heap;
}

void hook_heap_destroy(struct hook_heap *heap)
{
	if (!heap)
		return;
	munmap(heap->base, heap->limit);
	free(heap);
}

static uint64_t mark_of(const struct block *block, uint64_t mark)
{
	return mark ^ (uintptr_t)block;
}

void *hook_heap_alloc(struct hook_heap *heap, size_t size)
{
	uint32_t class = class_of(size ? size : 1);
	struct block *block;
	size_t need;

	if (class >= CLASSES)
		return NULL;
	block = heap->free[class];
	if (block && block->mark == mark_of(block, FREE_MARK)) {
		heap->free[class] = block->next;
	} else {
		need = HEADER + ((class_size(class) + 15) & ~(size_t)15);
		if (need > heap->limit - heap->used)
			return NULL;
		block = (struct block *)(heap->base + heap->used);
		heap->used += need;
		block->class = class;
	}
	block->mark = mark_of(block, LIVE_MARK);
	return (uint8_t *)block + HEADER;
}

bool hook_heap_owns(const struct hook_heap *heap, const void *pointer)
{
	const uint8_t *at = pointer;

	return at >= heap->base && at < heap->base + heap->limit;
}

static struct block *live_block(const struct hook_heap *heap, const void *pointer)
{
	struct block *block = (struct block *)((uintptr_t)pointer - HEADER);

	if (!hook_heap_owns(heap, block) || (uintptr_t)pointer % 16 ||
	    (const uint8_t *)pointer > heap->base + heap->used ||
	    block->mark != mark_of(block, LIVE_MARK) || block->class >= CLASSES)
		return NULL;
	return block;
}

size_t hook_heap_size(const struct hook_heap *heap, const void *pointer)
{
	struct block *block = live_block(heap, pointer);

	return block ? class_size(block->class) : 0;
}

bool hook_heap_free(struct hook_heap *heap, void *pointer)
{
	struct block *block = live_block(heap, pointer);

	if (!block)
		return false;
	block->mark = mark_of(block, FREE_MARK);
	block->next = heap->free[block->class];
	heap->free[block->class] = block;
	return true;
}
