/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What every program of the bench starts with. One source is compiled three ways: by duet (BPF, for
 * our VM), by gcc -O2 (native), and with -DKERNEL for the kernel's own JIT.
 *
 *	PASS(name, type *memory) { ... }	one pass; sees `memory`, `size` (bytes) and `seed`
 *
 * and the macro writes the function that is measured: bench_name(rounds, memory, size) makes so
 * many passes. The three see the same text, so they do the same work.
 */
#pragma once

#ifdef __bpf__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
#define SEC(text) __attribute__((section(text), used))
#define CODE
#define START(name) SEC("user/start") u64 bench_##name
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#define TEXT(part) #part
#define SECTION(p) __attribute__((section(TEXT(p))))
#define CODE       SECTION(BENCH_SECTION) /* tells how large the program is */
/* clang-format off */
#define START(name)                      \
	u64 bench_##name(u64, void *, u64); \
	CODE u64 bench_##name
/* clang-format on */
#endif

#define INLINE static inline __attribute__((always_inline))
#define CALLED static __attribute__((noinline)) CODE /* a call on either side */

#ifdef KERNEL
/* The kernel repeats it; what it works on is a map that the bench sees too. */
u8 bench_memory[KERNEL_BYTES] SEC(".data.memory");
u64 bench_result;
#define PASS(name, pointer)                                                     \
	INLINE u64 one_pass(pointer, u64 size, u64 seed);                       \
	SEC("tc") int bench_##name(void *context)                               \
	{                                                                       \
		bench_result = one_pass((void *)bench_memory, KERNEL_BYTES, 1); \
		return 0;                                                       \
	}                                                                       \
	char LICENSE[] SEC("license") = "Dual BSD/GPL";                         \
	INLINE u64 one_pass(pointer, u64 size, u64 seed)
#else
#define PASS(name, pointer)                                              \
	INLINE u64 one_pass(pointer, u64 size, u64 seed);                \
	START(name)(u64 rounds, void *memory, u64 size)                  \
	{                                                                \
		u64 sum = 0;                                             \
                                                                         \
		for (; rounds; rounds--) {                               \
			sum = sum * 31 + one_pass(memory, size, rounds); \
			asm volatile("" ::: "memory");                   \
		}                                                        \
		return sum;                                              \
	}                                                                \
	INLINE u64 one_pass(pointer, u64 size, u64 seed)
#endif

/* Position of the highest set bit, as duet.h finds it: BPF has no instruction for it. */
INLINE u32 log2_of(u64 value)
{
	u32 result, shift;

	result = (value > 0xffffffff) << 5;
	value >>= result;
	shift = (value > 0xffff) << 4;
	value >>= shift;
	result |= shift;
	shift = (value > 0xff) << 3;
	value >>= shift;
	result |= shift;
	shift = (value > 0xf) << 2;
	value >>= shift;
	result |= shift;
	shift = (value > 0x3) << 1;
	value >>= shift;
	return result | shift | value >> 1;
}
