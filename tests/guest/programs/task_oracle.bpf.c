// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The call tests' own probes: what a function costs one thread, read from an event that belongs to
 * that thread. Nothing of duet is used.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "task_oracle.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 thread = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} event SEC(".maps");

struct oracle_result result;

SEC("kprobe") int oracle_enter(void *ctx)
{
	struct bpf_perf_event_value now;

	if ((__u32)bpf_get_current_pid_tgid() != thread)
		return 0;
	if (!bpf_perf_event_read_value(&event, 0, &now, sizeof(now)))
		result.entry = now.counter;
	return 0;
}

SEC("kretprobe") int oracle_leave(void *ctx)
{
	struct bpf_perf_event_value now;
	__u64 i;

	if ((__u32)bpf_get_current_pid_tgid() != thread || !result.entry ||
	    bpf_perf_event_read_value(&event, 0, &now, sizeof(now)))
		return 0;
	i = result.count;
	if (i < ORACLE_MAX)
		result.delta[i] = now.counter - result.entry;
	result.count = i + 1;
	result.entry = 0;
	return 0;
}
