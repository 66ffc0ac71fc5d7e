/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs given as hex bytes, the way the conformance cases are: r1 = memory, r2 = its length,
 * helper 5 unwinds. */
#pragma once

#include <duet/vm.h>

#include <stdint.h>

#include "base/buf.h"

/* Appends the bytes; blanks between them are optional. -1 when the text is not hex. */
int program_from_hex(const char *text, struct buf *ret);

/* Runs @code on @memory, which it may change, as engine, checked and passes_off of @how say (NULL:
 * interpreter). 0 with r0, or -1 with the reason in @why. */
int program_run(const struct buf *code, struct buf *memory, const struct vm_options *how,
		uint64_t *result, char *why, size_t why_size);

/* A function starts at 0 and wherever a local call goes. @ret has room for one per instruction and
 * one more. Returns their number. */
size_t program_functions(const struct bpf_insn *code, size_t ncode, struct vm_function *ret);
