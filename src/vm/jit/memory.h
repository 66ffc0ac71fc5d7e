/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of compiled code, never writable and executable at once, and the list of all live code of
 * the process, which signal handlers read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct vm;

/*
 *	guard page | code | guard page | data | guard page
 *
 * Without data the two last are not there. Code is written elsewhere, in @buffer.
 */
struct jit_memory {
	uint8_t *map;
	size_t map_size;
	uint8_t *code, *data;
	size_t code_size, data_size; /* whole pages; what the code does not need becomes guard */
	uint8_t *buffer;             /* code_size bytes, until it is sealed */
	int slot;                    /* in the list, -1: not in it */
};

/* Where code should be: within 2 GiB of all of [low, high]. high 0: far from low; both: anywhere. */
struct jit_near {
	uintptr_t low, high;
};

/* Reserves room, and a buffer to write the code to. 0, -ENOMEM. */
int jit_memory_create(struct jit_memory *memory, size_t code, size_t data,
		      const struct jit_near *near, struct err *err);
/* The code is complete, @size bytes: executable from now on, and found by jit_memory_owner(). 0,
 * -ENOMEM; -ENOTSUP where the system forbids it. */
int jit_memory_seal(struct jit_memory *memory, size_t size, struct vm *vm, struct err *err);
void jit_memory_release(struct jit_memory *memory);

/* Takes the permission to execute away, or gives it back. Async-signal-safe. 0 or -errno. */
int jit_memory_open(const struct jit_memory *memory, bool open);

/* The vm whose code contains a machine address, or NULL. Async-signal-safe, no locks. */
struct vm *jit_memory_owner(uintptr_t pc);
/* Is there any? */
bool jit_memory_any(void);
