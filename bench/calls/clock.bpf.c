// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Only the clock, as function-latency tools do it: a hash table of the threads that are inside, the
 * time at entry, the difference at return as a log2 histogram. No counter, no context switches.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "hand.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} starts SEC(".maps");

const volatile __u32 target;
const volatile __s64 overhead; /* as in hand.bpf.c: one loader for both */
struct hand_result result;

SEC("kprobe") int enter(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), now;
	__u32 thread = id;

	if (id >> 32 != target)
		return 0;
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&starts, &thread, &now, BPF_ANY);
	return 0;
}

static __always_inline __u32 log2_slot(__u64 value)
{
	__u32 slot = 0, shift;

	for (shift = 32; shift; shift /= 2) {
		if (value >> shift) {
			value >>= shift;
			slot += shift;
		}
	}
	return slot & 63;
}

SEC("kretprobe") int leave(void *ctx)
{
	__u64 now = bpf_ktime_get_ns(), *start, delta;
	__u32 thread = bpf_get_current_pid_tgid();

	start = bpf_map_lookup_elem(&starts, &thread);
	if (!start)
		return 0;
	delta = now - *start - overhead;
	__sync_fetch_and_add(&result.slot[log2_slot(delta)], 1);
	__sync_fetch_and_add(&result.sum, delta);
	__sync_fetch_and_add(&result.n, 1);
	bpf_map_delete_elem(&starts, &thread);
	return 0;
}
