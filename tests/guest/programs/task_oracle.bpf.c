// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The call tests' own probes, as such a tool is usually written: a hash table of the threads that
 * are measured, one of the call that each has open, its time, and two events that belong to the
 * thread itself.
 * Nothing of duet is used.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "task_oracle.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} first SEC(".maps"), second SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct oracle_call);
} calls SEC(".maps");

struct oracle_result result;

SEC("kprobe") int oracle_enter(void *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct oracle_call *call;

	if (!bpf_map_lookup_elem(&threads, &thread))
		return 0;
	call = bpf_map_lookup_elem(&calls, &thread);
	if (!call)
		return 0;
	bpf_perf_event_read_value(&first, 0, &call->first, sizeof(call->first));
	bpf_perf_event_read_value(&second, 0, &call->second, sizeof(call->second));
	call->time = bpf_ktime_get_ns();
	return 0;
}

SEC("kretprobe") int oracle_leave(void *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct oracle_call *call, now = {};
	__u64 i;

	if (!bpf_map_lookup_elem(&threads, &thread))
		return 0;
	call = bpf_map_lookup_elem(&calls, &thread);
	if (!call || !call->time)
		return 0;
	now.time = bpf_ktime_get_ns();
	if (bpf_perf_event_read_value(&first, 0, &now.first, sizeof(now.first)) ||
	    bpf_perf_event_read_value(&second, 0, &now.second, sizeof(now.second)))
		return 0;
	i = result.count++;
	if (i < ORACLE_MAX)
		result.delta[i] = now.first.counter - call->first.counter;
	result.ns += now.time - call->time;
	return 0;
}
