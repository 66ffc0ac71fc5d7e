// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Programs that the verifier refuses, one per CASE. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#if CASE == 3
char LICENSE[] SEC("license") = "Proprietary";
#else
char LICENSE[] SEC("license") = "GPL";
#endif

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} map SEC(".maps");

static __attribute__((noinline)) int helper(void *ctx)
{
	__u64 *value;
	__u32 key = 1;

	value = bpf_map_lookup_elem(&map, &key);
	return *value; /* line IN_CALL */
}

SEC("raw_tp") int refused(__u64 *ctx)
{
	__u64 *value;
	__u32 key = 1;

	value = bpf_map_lookup_elem(&map, &key);
#if CASE == 0
	return *value; /* line NULL */
#elif CASE == 1
	return *(int *)ctx[0]; /* line SCALAR */
#elif CASE == 2
	return helper(ctx);
#else
	bpf_trace_printk("x", 2); /* line GPL */
	return 0;
#endif
}
