// SPDX-License-Identifier: BSD-2-Clause
/*
 * Accesses of checked code. Each access, or each check that the compiler made of several, has a
 * slot with the region that it last fell into; only what does not fit the slot comes here. A slot
 * is emptied when its region is removed, so that nothing outlives the memory it stood for.
 *
 * The stack is no region of the set: its live part, from the running function's frame up, changes
 * with every call. A slot filled in by a deeper call may allow dead frames until it is needed
 * elsewhere; they are the vm's own memory.
 */
#include "vm/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int check_prepare(struct vm *vm, struct err *err)
{
	if (!vm->options.checked)
		return 0;
	vm->checked = calloc(1, sizeof(*vm->checked));
	return vm->checked ? 0 : err_nomem(err);
}

void check_release(struct vm *vm)
{
	struct vm_checked *checked = vm->checked;

	if (!checked)
		return;
	region_set_release(&checked->regions);
	free(checked->own_slots);
	free(checked->contracts);
	free(checked->filled);
	free(checked->checks);
	free(checked->accesses);
	free(checked);
	vm->checked = NULL;
}

int check_slots(struct vm *vm, struct vm_check_slot *slots, uint32_t nslots)
{
	struct vm_checked *checked = vm->checked;

	free(checked->own_slots);
	free(checked->filled);
	checked->own_slots = NULL;
	checked->nfilled = 0;
	checked->nslots = nslots;
	checked->filled = calloc(nslots + 1, sizeof(*checked->filled));
	if (!slots)
		slots = checked->own_slots = malloc((nslots + 1) * sizeof(*slots));
	if (!checked->filled || !slots)
		return -ENOMEM;
	checked->slots = slots;
	for (uint32_t i = 0; i < nslots; i++)
		slots[i] = CHECK_SLOT_EMPTY;
	return 0;
}

/* ---- what an address lies in ---- */

/* The part of the stack that calls in progress use; false: none is in progress. */
static bool live_stack(const struct vm *vm, struct vm_region *ret)
{
	uint64_t low = vm_stack_live(vm);

	if (!low)
		return false;
	*ret = (struct vm_region){ low, vm->stack_top - low, VM_REGION_WRITABLE };
	return ret->size != 0;
}

bool check_find(const struct vm *vm, uint64_t address, bool write, struct vm_region *ret)
{
	const struct vm_region *next;

	if (live_stack(vm, ret) && address - ret->start < ret->size)
		return true;
	next = region_set_next(&vm->checked->regions, address);
	if (!next || next->start > address || (write && !(next->flags & VM_REGION_WRITABLE)))
		return false;
	*ret = *next;
	return true;
}

uint64_t check_rest(const struct vm *vm, uint64_t address, bool write)
{
	struct vm_region region;

	if (!check_find(vm, address, write, &region))
		return 0;
	return region.start + region.size - address;
}

static bool may(const struct vm *vm, uint64_t address, size_t size, bool write)
{
	return !vm->checked || !size || check_rest(vm, address, write) >= size;
}

bool vm_may_read(const struct vm *vm, uint64_t address, size_t size)
{
	return may(vm, address, size, false);
}

bool vm_may_write(const struct vm *vm, uint64_t address, size_t size)
{
	return may(vm, address, size, true);
}

size_t vm_region_rest(const struct vm *vm, uint64_t address, bool write)
{
	return vm->checked ? check_rest(vm, address, write) : SIZE_MAX;
}

/* ---- slots ---- */
bool check_fill(struct vm *vm, uint32_t number, uint64_t address, uint32_t bytes, bool write)
{
	struct vm_checked *checked = vm->checked;
	struct vm_check_slot *slot = &checked->slots[number];
	struct vm_region region;

	if (!check_find(vm, address, write, &region) || region.size < bytes ||
	    address - region.start > region.size - bytes)
		return false;
	if (slot->start == CHECK_SLOT_EMPTY.start)
		checked->filled[checked->nfilled++] = number;
	slot->start = region.start;
	slot->size = region.size - bytes;
	return true;
}

static void empty_slots(struct vm_checked *checked, uint64_t start, uint64_t size)
{
	uint32_t kept = 0;

	checked->generation++;
	for (uint32_t i = 0; i < checked->nfilled; i++) {
		struct vm_check_slot *slot = &checked->slots[checked->filled[i]];

		if (slot->start - start < size)
			*slot = CHECK_SLOT_EMPTY;
		else
			checked->filled[kept++] = checked->filled[i];
	}
	checked->nfilled = kept;
}

int vm_region_add(struct vm *vm, const void *address, size_t size, unsigned int flags)
{
	struct vm_region region = { (uintptr_t)address, size, flags };

	return vm->checked ? region_set_add(&vm->checked->regions, &region) : 0;
}

int vm_region_clear(struct vm *vm, const void *address, size_t size)
{
	struct vm_checked *checked = vm->checked;
	uint64_t start = (uintptr_t)address;
	const struct vm_region *region;

	if (!checked || !size)
		return 0;
	if (contract_pinned(vm, start, size))
		return -EBUSY;
	empty_slots(checked, start, size);
	while ((region = region_set_next(&checked->regions, start)) &&
	       region->start - start < size) {
		uint64_t end = region->start + region->size;

		if (region->start < start) {
			start = end;
			continue;
		}
		region_set_remove(&checked->regions, region->start);
	}
	return 0;
}

int vm_region_remove(struct vm *vm, const void *address)
{
	struct vm_checked *checked = vm->checked;
	uint64_t start = (uintptr_t)address;
	const struct vm_region *region;

	if (!checked)
		return 0;
	region = region_set_next(&checked->regions, start);
	if (!region || region->start != start)
		return -ENOENT;
	if (contract_pinned(vm, start, region->size))
		return -EBUSY;
	empty_slots(checked, start, 1);
	return region_set_remove(&checked->regions, start);
}

/* ---- misses ---- */
void check_raise(struct vm *vm, uint32_t insn, uint64_t address, uint32_t bytes, bool write)
{
	struct vm_fault fault = {
		.kind = write ? VM_FAULT_WRITE : VM_FAULT_READ,
		.insn = insn,
		.address = address,
		.size = bytes,
		.write = write,
		.read = !write,
	};

	fault_raise_as(vm, &fault);
}

void check_op(struct vm *vm, const struct vm_op *op, uint64_t address)
{
	const struct isa_row *row = isa_row(op->id);
	bool write = row->form != ISA_FORM_LOAD;

	if (!check_fill(vm, op - vm->ops, address, row->width, write))
		check_raise(vm, VM_INSN_OF_PC, address, row->width, write);
}

/*
 * A check may cover what lies in several regions, or more than the accesses behind it: then each
 * of them is asked for, in the order of the program, and the slot stays as it was.
 */
void check_miss(struct vm *vm, uint32_t number, uint64_t address)
{
	struct vm_checked *checked = vm->checked;
	const struct vm_check *check = &checked->checks[number];

	if (check_fill(vm, number, address, check->bytes, check->write))
		return;
	for (uint32_t i = check[0].first; i < check[1].first; i++) {
		const struct vm_check_access *access = &checked->accesses[i];
		uint64_t at = address + access->off;

		if (!may(vm, at, access->bytes, access->write))
			check_raise(vm, access->insn, at, access->bytes, access->write);
	}
}

void check_restart(struct vm *vm)
{
	if (vm->checked)
		vm->checked->nchecks = vm->checked->naccesses = 0;
}

static void *grow(void *array, uint32_t *capacity, size_t need, size_t size)
{
	size_t wanted = 2 * need + 64;
	void *bigger;

	if (need <= *capacity)
		return array;
	bigger = realloc(array, wanted * size);
	if (bigger)
		*capacity = wanted;
	return bigger;
}

int check_describe(struct vm *vm, const struct vm_check_access *accesses, uint32_t count,
		   uint32_t bytes, bool write)
{
	struct vm_checked *checked = vm->checked;
	void *bigger;

	bigger = grow(checked->checks, &checked->checks_capacity, checked->nchecks + 2,
		      sizeof(*checked->checks));
	if (!bigger)
		return -ENOMEM;
	checked->checks = bigger;
	bigger = grow(checked->accesses, &checked->accesses_capacity, checked->naccesses + count,
		      sizeof(*checked->accesses));
	if (!bigger)
		return -ENOMEM;
	checked->accesses = bigger;
	checked->checks[checked->nchecks++] = (struct vm_check){ checked->naccesses, bytes, write };
	memcpy(checked->accesses + checked->naccesses, accesses, count * sizeof(*accesses));
	checked->naccesses += count;
	checked->checks[checked->nchecks].first = checked->naccesses;
	return 0;
}
