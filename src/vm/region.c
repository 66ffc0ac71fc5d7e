// SPDX-License-Identifier: BSD-2-Clause
/*
 * The set of regions: blocks of up to BLOCK_REGIONS, each sorted, and sorted among themselves. A
 * lookup is two binary searches; a change moves at most a block and the list of blocks.
 */
#include "vm/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_REGIONS 128

struct region_block {
	uint32_t count;
	struct vm_region regions[BLOCK_REGIONS];
};

static uint64_t end_of(const struct vm_region *region)
{
	return region->start + region->size;
}

/* Index of the first block that ends above @address: set->nblocks when there is none. */
static size_t find_block(const struct region_set *set, uint64_t address)
{
	size_t low = 0, high = set->nblocks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct region_block *block = set->blocks[middle];

		if (end_of(&block->regions[block->count - 1]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint32_t find_region(const struct region_block *block, uint64_t address)
{
	uint32_t low = 0, high = block->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (end_of(&block->regions[middle]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct vm_region *region_set_next(const struct region_set *set, uint64_t address)
{
	size_t at = find_block(set, address);

	if (at == set->nblocks)
		return NULL;
	return &set->blocks[at]->regions[find_region(set->blocks[at], address)];
}

static struct region_block *insert_block(struct region_set *set, size_t at)
{
	struct region_block *block = malloc(sizeof(*block));

	if (!block)
		return NULL;
	if (set->nblocks == set->capacity) {
		size_t capacity = set->capacity ? 2 * set->capacity : 16;
		struct region_block **blocks =
			realloc(set->blocks, capacity * sizeof(*set->blocks));

		if (!blocks) {
			free(block);
			return NULL;
		}
		set->blocks = blocks;
		set->capacity = capacity;
	}
	memmove(set->blocks + at + 1, set->blocks + at, (set->nblocks - at) * sizeof(*set->blocks));
	set->blocks[at] = block;
	set->nblocks++;
	block->count = 0;
	return block;
}

/* Where a region at @start belongs, with room for one more. NULL: out of memory. */
static struct region_block *make_room(struct region_set *set, uint64_t start)
{
	size_t at = find_block(set, start);
	struct region_block *block, *upper;
	uint32_t half = BLOCK_REGIONS / 2;

	if (!set->nblocks)
		return insert_block(set, 0);
	if (at == set->nblocks) { /* behind all: a full block stays full, heaps grow upwards */
		block = set->blocks[at - 1];
		return block->count < BLOCK_REGIONS ? block : insert_block(set, at);
	}
	block = set->blocks[at];
	if (block->count < BLOCK_REGIONS)
		return block;
	upper = insert_block(set, at + 1);
	if (!upper)
		return NULL;
	memcpy(upper->regions, block->regions + half, half * sizeof(*upper->regions));
	upper->count = half;
	block->count = half;
	return start < upper->regions[0].start ? block : upper;
}

int region_set_add(struct region_set *set, const struct vm_region *region)
{
	const struct vm_region *next = region_set_next(set, region->start);
	struct region_block *block;
	uint32_t at;

	if (!region->size || region->start + region->size < region->start)
		return -EINVAL;
	if (next && next->start < end_of(region))
		return -EEXIST;
	block = make_room(set, region->start);
	if (!block)
		return -ENOMEM;
	at = find_region(block, region->start);
	memmove(block->regions + at + 1, block->regions + at,
		(block->count - at) * sizeof(*block->regions));
	block->regions[at] = *region;
	block->count++;
	return 0;
}

int region_set_remove(struct region_set *set, uint64_t start)
{
	size_t i = find_block(set, start);
	struct region_block *block;
	uint32_t at;

	if (i == set->nblocks)
		return -ENOENT;
	block = set->blocks[i];
	at = find_region(block, start);
	if (block->regions[at].start != start)
		return -ENOENT;
	block->count--;
	memmove(block->regions + at, block->regions + at + 1,
		(block->count - at) * sizeof(*block->regions));
	if (block->count)
		return 0;
	free(block);
	set->nblocks--;
	memmove(set->blocks + i, set->blocks + i + 1, (set->nblocks - i) * sizeof(*set->blocks));
	return 0;
}

void region_set_release(struct region_set *set)
{
	for (size_t i = 0; i < set->nblocks; i++)
		free(set->blocks[i]);
	free(set->blocks);
	*set = (struct region_set){ 0 };
}
