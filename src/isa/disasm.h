/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF instructions as text, the way the kernel and llvm-objdump write them. Stateless. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>

/*
 * Writes one instruction as `r0 = *(u64 *)(r1 + 8)` into @text, zero-terminated and cut at @size
 * (64 bytes are enough for every instruction). @left is the number of slots that may be read.
 * Returns the slots consumed: 1, or 2 for a 64-bit load; 0 when @left is 0. What is no
 * instruction comes out as `<invalid 0x....>` and takes one slot.
 */
size_t isa_disassemble(const struct bpf_insn *insn, size_t left, char *text, size_t size);
