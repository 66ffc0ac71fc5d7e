/* SPDX-License-Identifier: BSD-2-Clause */
/* C signatures of kernel functions from BTF, ready to paste into a script. */
#pragma once

#include <stdint.h>

#include "obj/types.h"

/* Prints `SEC("KIND/NAME")` and the head of a program for it. @kind: "kprobe" or "raw_tp". */
void cli_print_signature(const struct types *types, const char *kind, const char *name,
			 uint32_t proto);
