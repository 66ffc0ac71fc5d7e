/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF objects as programs for program_run(). */
#pragma once

#include "base/buf.h"

/* An object's code, linked, and its data, which the code refers to. */
struct elf_program {
	struct buf code, data;
};

void elf_program_deinit(struct elf_program *program);

/*
 * Takes @bytes, an ELF file or one as hex text, apart: it starts with function `main`, else with the
 * first function outside of .text, else with the first. Functions of .text may be called; data is
 * private to the run. Sections may lie at any address, as those of the conformance runner do. 0, or
 * -1 with the reason in @why.
 */
int elf_program_load(const struct buf *bytes, struct elf_program *ret, char *why, size_t why_size);
