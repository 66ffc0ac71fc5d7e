// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How long do system calls take?
#include "program.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} entered SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 40);
	__type(key, __u32);
	__type(value, __u64);
} latency SEC(".maps");

SEC("tp/raw_syscalls/sys_enter") int enter(void *ctx)
{
	__u32 id = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	if (is_target())
		bpf_map_update_elem(&entered, &id, &now, BPF_ANY);
	return 0;
}

SEC("tp/raw_syscalls/sys_exit") int leave(void *ctx)
{
	__u32 id = bpf_get_current_pid_tgid(), slot = 0;
	__u64 *start, *count, spent;

	if (!is_target())
		return 0;
	start = bpf_map_lookup_elem(&entered, &id);
	if (!start)
		return 0;
	spent = bpf_ktime_get_ns() - *start;
	bpf_map_delete_elem(&entered, &id);
	while (spent > 1 && slot < 39) {
		spent >>= 1;
		slot++;
	}
	count = bpf_map_lookup_elem(&latency, &slot);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}
