/* SPDX-License-Identifier: BSD-2-Clause */
/* What BTF says about maps and variables. Not for others. */
#pragma once

#include "hook/internal.h"

/* Types and sizes of a map as report/ wants them, no rows; works before the maps exist. */
void hook_map_shape(const struct hook_half *half, const struct hook_map *map,
		    struct report_map *ret);
/* Can all its elements be listed? (No rings, no perf events, no maps named `__*`.) */
bool hook_map_printable(const struct hook_map *map);
/* The variable at an address, or "". */
const char *hook_variable_name(const struct hook_half *half, uint64_t address);
/* Every global variable that the kernel half may have changed. */
int hook_dump_variables(struct hook_half *half, struct err *err);
