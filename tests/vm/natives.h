/* SPDX-License-Identifier: BSD-2-Clause */
/* The C functions that generated programs call: see enum generate_native. */
#pragma once

#include "generate.h"

/* GENERATE_NATIVES of them. The context is a struct generate_memory. */
extern const struct vm_native natives[GENERATE_NATIVES];
/* What a program passes for an array. */
uint64_t native_handle(uint32_t array);
