/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checked mode: the memory that the code may touch (regions), what each access was last found in
 * (slots), and what C functions demand of their arguments (contracts). All of it hangs off
 * vm->checked, which is NULL in an unchecked vm. One thread, as the vm.
 *
 *	region.c	the set of regions, and the questions to it
 *	check.c		slots, misses, and the public functions
 *	contract.c	calls of C
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm/vm_internal.h"

struct vm_region {
	uint64_t start, size; /* bytes; size is not 0, and start + size does not wrap */
	unsigned int flags;   /* VM_REGION_ */
};

/* Disjoint regions by address, in blocks of limited size: adding and removing stay cheap with
 * hundreds of thousands. */
struct region_block;
struct region_set {
	struct region_block **blocks; /* none is empty */
	size_t nblocks, capacity;
};

/* 0, -EINVAL (empty, or wraps around), -EEXIST (overlaps one), -ENOMEM. */
int region_set_add(struct region_set *set, const struct vm_region *region);
/* Removes the one that starts at @start: 0 or -ENOENT. */
int region_set_remove(struct region_set *set, uint64_t start);
/* The region with the lowest address that ends above @address, or NULL; until the next change. */
const struct vm_region *region_set_next(const struct region_set *set, uint64_t address);
void region_set_release(struct region_set *set);

/* The region that an access last fell into: allowed when address - start <= size, where size is
 * already less the bytes of the access. The same as struct jit_check_slot. */
struct vm_check_slot {
	uint64_t start, size;
};
/* An empty slot allows the last address alone, which no process can touch. */
#define CHECK_SLOT_EMPTY ((struct vm_check_slot){ UINT64_MAX, 0 })

/* An access that a check of compiled code stands for. */
struct vm_check_access {
	uint32_t insn; /* index in vm_image.code */
	int32_t off;   /* from the first byte of the check */
	uint8_t bytes;
	bool write;
};

/* Accesses [first, first of the next) in program order; the check covers @bytes. */
struct vm_check {
	uint32_t first;
	uint32_t bytes;
	bool write;
};

/* Memory that a C function in progress works on, while it calls back: it must stay. */
struct vm_pin {
	const struct vm_pin *outer;
	uint64_t start, size;
};

/* What the demands of a contract were last met by: as good as a look-up while the generation is
 * the same. */
struct vm_contract_plan {
	bool known, calls_back;
	uint8_t count; /* of the arguments that something is demanded of */
	uint8_t args[VM_MAX_ARGUMENTS];
	struct vm_seen {
		uint64_t start, size, generation; /* of the region; size 0: nothing */
	} seen[VM_MAX_ARGUMENTS];
};

struct vm_checked {
	struct region_set regions;
	struct vm_check_slot *slots; /* of the engine: one an op, or one a check */
	struct vm_check_slot *own_slots;
	uint32_t *filled; /* numbers of the slots that are not empty */
	uint32_t nslots, nfilled;
	struct vm_check *checks; /* of compiled code; one more than there are */
	uint32_t nchecks, checks_capacity;
	struct vm_check_access *accesses;
	uint32_t naccesses, accesses_capacity;
	const struct vm_pin *pins;
	struct vm_contract_plan *contracts; /* by native; made when the first is called */
	uint64_t generation;                /* counts removals of regions */
};

/* ---- check.c ---- */
int check_prepare(struct vm *vm, struct err *err);
void check_release(struct vm *vm);
/* Gives the engine @nslots empty slots: in @slots, which stays the engine's, or of our own when
 * NULL. 0 or -ENOMEM. */
int check_slots(struct vm *vm, struct vm_check_slot *slots, uint32_t nslots);
/* Fills in a slot if [address, address + bytes) may be touched. */
bool check_fill(struct vm *vm, uint32_t slot, uint64_t address, uint32_t bytes, bool write);
/* The interpreter's miss, from @op: fills in the slot or raises. */
void check_op(struct vm *vm, const struct vm_op *op, uint64_t address);
/* jit_runtime.check_miss */
void check_miss(struct vm *vm, uint32_t number, uint64_t address);
/* The compiler starts (again): nothing was told yet. */
void check_restart(struct vm *vm);
/* The compiler tells its checks in order of their numbers: 0 or -ENOMEM. */
int check_describe(struct vm *vm, const struct vm_check_access *accesses, uint32_t count,
		   uint32_t bytes, bool write);
/* A fault found by the vm itself. */
void check_raise(struct vm *vm, uint32_t insn, uint64_t address, uint32_t bytes, bool write)
	__attribute__((noreturn));
/* What an address lies in, the live stack included. */
bool check_find(const struct vm *vm, uint64_t address, bool write, struct vm_region *ret);
/* Bytes from @address to the end of that, 0: in nothing. */
uint64_t check_rest(const struct vm *vm, uint64_t address, bool write);

/* ---- contract.c ---- */
/* After vm->nnatives is known: 0 or -ENOMEM. */
int contract_prepare(struct vm *vm);
/* Does it say anything at all? */
bool contract_demands(const struct vm_contract *contract);
/* Are the arguments that it speaks of there, and no doubles? */
bool contract_fits(const struct vm_native *native);
/* Calls native @index with the five values of @args if they keep its contract, or raises. */
uint64_t contract_call(struct vm *vm, uint32_t index, const uint64_t *args);
/* Is the region part of what a C function works on? */
bool contract_pinned(const struct vm *vm, uint64_t start, uint64_t size);
