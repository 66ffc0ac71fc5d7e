/* SPDX-License-Identifier: BSD-2-Clause */
/* Map functions that other tables of this folder offer under helper numbers. Not for others. */
#pragma once

#include "hook/internal.h"

struct hook_map_natives {
	struct hook_function lookup, update, delete, push, pop, peek, for_each, percpu, next_key;
};
extern const struct hook_map_natives hook_map_natives;

/* The map behind a script's argument; raises in the script when it is none. */
struct hook_map *hook_map_argument(struct hook_half *half, uint64_t address);
