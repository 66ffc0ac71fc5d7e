/* SPDX-License-Identifier: BSD-2-Clause */
/* Assembled code as a BPF object file, with types and lines. Stateless; safe on any thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "isa/asm.h"

/*
 * Appends the object to @ret. @file and @text (of @size bytes) are the source, for .BTF.ext. Local
 * calls and addresses of functions become relocations; names that the program does not define
 * become undefined symbols, functions among them with the prototype u64 f(u64, u64, u64, u64, u64).
 * -ENOMEM, or -EINVAL with "LINE:1: why".
 */
int obj_write(const struct isa_program *program, const char *file, const char *text, size_t size,
	      struct buf *ret, struct err *err);
