/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions by hand, for tests of the vm. */
#pragma once

#include <duet/vm.h>

#include <linux/bpf.h>

#define RAW(op, dst, src, offset, immediate)  \
	((struct bpf_insn){ .code = (op),     \
			    .dst_reg = (dst), \
			    .src_reg = (src), \
			    .off = (offset),  \
			    .imm = (immediate) })

#define MOV_K(dst, imm)                 RAW(0xb7, dst, 0, 0, imm)
#define MOV_X(dst, src)                 RAW(0xbf, dst, src, 0, 0)
#define MOV32_K(dst, imm)               RAW(0xb4, dst, 0, 0, imm)
#define MOV32_X(dst, src)               RAW(0xbc, dst, src, 0, 0)
#define ADD_K(dst, imm)                 RAW(0x07, dst, 0, 0, imm)
#define ADD_X(dst, src)                 RAW(0x0f, dst, src, 0, 0)
#define LDDW_KIND(dst, kind, low, high) RAW(0x18, dst, kind, 0, low), RAW(0, 0, 0, 0, high)
#define LDDW(dst, value) \
	LDDW_KIND(dst, 0, (int32_t)(uint64_t)(value), (int32_t)((uint64_t)(value) >> 32))
#define LDX_B(dst, src, off)      RAW(0x71, dst, src, off, 0)
#define LDX_H(dst, src, off)      RAW(0x69, dst, src, off, 0)
#define LDX_W(dst, src, off)      RAW(0x61, dst, src, off, 0)
#define LDX_DW(dst, src, off)     RAW(0x79, dst, src, off, 0)
#define STX_B(dst, src, off)      RAW(0x73, dst, src, off, 0)
#define STX_W(dst, src, off)      RAW(0x63, dst, src, off, 0)
#define STX_DW(dst, src, off)     RAW(0x7b, dst, src, off, 0)
#define ST_B(dst, off, imm)       RAW(0x72, dst, 0, off, imm)
#define ST_DW(dst, off, imm)      RAW(0x7a, dst, 0, off, imm)
#define ATOMIC(dst, src, off, op) RAW(0xdb, dst, src, off, op)
#define JA(off)                   RAW(0x05, 0, 0, off, 0)
#define JEQ_K(dst, imm, off)      RAW(0x15, dst, 0, off, imm)
#define JNE_K(dst, imm, off)      RAW(0x55, dst, 0, off, imm)
#define CALL(number)              RAW(0x85, 0, 0, 0, number)
#define CALL_LOCAL(distance)      RAW(0x85, 0, 1, 0, distance)
#define CALLX_DST(reg)            RAW(0x8d, reg, 0, 0, 0) /* gcc, clang-19 */
#define CALLX_IMM(reg)            RAW(0x8d, 0, 0, 0, reg) /* clang-14 */
#define EXIT()                    RAW(0x95, 0, 0, 0, 0)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
