/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What compilers call where BPF has no instruction: arithmetic on floating point, on 128 bits, signed
 * division. The names are those of the compilers' own run-time libraries. Not for others.
 */
#pragma once

#include "hook/checked.h"

/* soft.c: results of 64 bits. wide.c: results of 128 bits. */
extern const struct hook_function hook_functions_soft[], hook_functions_wide[];

/*
 * gcc-bpf takes the upper half of a 128-bit result from r1, which a C function cannot set. Behind
 * every call of such a function instructions are put that load it: half->code and what refers to it
 * become longer. 0, -ENOMEM, or -EINVAL when a jump becomes too long.
 */
int hook_widen(struct hook_half *half, struct err *err);
/* The vm exists: what those instructions read may be read. */
int hook_widen_allow(struct hook_half *half, struct err *err);
