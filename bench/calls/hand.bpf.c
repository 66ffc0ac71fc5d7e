// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * By hand, for one function and one counter: what ran since the last switch belongs to the task
 * that ran; a call's cost is its task's total at return less that at entry, less the overhead of
 * the probes; scaled when the counter was multiplexed; log2 histogram. Calls of the target's
 * process only. One open call a task: the function is known not to nest.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "hand.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct task {
	struct bpf_perf_event_value total, at;
	__u32 open;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} counter SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_perf_event_value);
} last SEC(".maps");

const volatile __u32 target;
const volatile __s64 overhead;
struct hand_result result;

static __always_inline int read_counter(struct bpf_perf_event_value *now)
{
	return bpf_perf_event_read_value(&counter, BPF_F_CURRENT_CPU, now, sizeof(*now));
}

static __always_inline int total_now(const struct task *task, struct bpf_perf_event_value *total)
{
	struct bpf_perf_event_value now, *base;
	__u32 zero = 0;

	base = bpf_map_lookup_elem(&last, &zero);
	if (!base || read_counter(&now))
		return -1;
	total->counter = task->total.counter + now.counter - base->counter;
	total->enabled = task->total.enabled + now.enabled - base->enabled;
	total->running = task->total.running + now.running - base->running;
	return 0;
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	struct bpf_perf_event_value now, *base;
	struct task *task;
	__u32 zero = 0;

	base = bpf_map_lookup_elem(&last, &zero);
	if (!base || read_counter(&now))
		return 0;
	task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (task) {
		task->total.counter += now.counter - base->counter;
		task->total.enabled += now.enabled - base->enabled;
		task->total.running += now.running - base->running;
	}
	*base = now;
	return 0;
}

SEC("kprobe") int enter(void *ctx)
{
	struct task *task;

	if (bpf_get_current_pid_tgid() >> 32 != target)
		return 0;
	task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (task)
		task->open = !total_now(task, &task->at);
	return 0;
}

static __always_inline __u32 log2_slot(__u64 value)
{
	__u32 slot = 0, shift;

	if ((__s64)value < 0)
		return 0;
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
	struct bpf_perf_event_value end;
	__u64 value, enabled, running;
	struct task *task;

	if (bpf_get_current_pid_tgid() >> 32 != target)
		return 0;
	task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (!task || !task->open || total_now(task, &end))
		return 0;
	task->open = 0;
	value = end.counter - task->at.counter - overhead;
	enabled = end.enabled - task->at.enabled;
	running = end.running - task->at.running;
	if (!running)
		return 0;
	if (running != enabled)
		value = value * enabled / running;
	__sync_fetch_and_add(&result.slot[log2_slot(value)], 1);
	__sync_fetch_and_add(&result.sum, value);
	__sync_fetch_and_add(&result.n, 1);
	return 0;
}
