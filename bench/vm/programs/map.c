// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Counts by key in an array map, as scripts do; native code indexes the same memory. */
#include "program.h"

#define VALUES 1024

#ifdef __bpf__
struct {
	u32 (*type)[2]; /* BPF_MAP_TYPE_ARRAY */
	u32 (*max_entries)[VALUES];
	u32 (*map_flags)[1024]; /* BPF_F_MMAPABLE */
	u32 *key;
	u64 *value;
} values SEC(".maps");
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

INLINE u64 *lookup(u32 key)
{
	return bpf_map_lookup_elem(&values, &key);
}
#define PRESENT(value) ((value) != 0)
#else
extern u64 bench_values[];
#define PRESENT(value) 1 /* an array's element is */

INLINE u64 *lookup(u32 key)
{
	return &bench_values[key];
}
#endif

PASS(map_lookup, const u16 *keys)
{
	u64 i;

	for (i = 0; i < size / 2; i++) {
		u64 *value = lookup(keys[i] & (VALUES - 1));

		if (PRESENT(value))
			*value += seed;
	}
	return seed;
}
