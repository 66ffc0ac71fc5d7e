// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How often is a function called, and what does it return?
#include "program.h"

struct steps {
	__u64 calls, returns, sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steps);
} steps SEC(".maps");

SEC("uprobe/" WORKLOAD ":work_step") int BPF_KPROBE(step_enter, long number)
{
	struct steps *all;
	__u32 zero = 0;

	if (!is_target())
		return 0;
	all = bpf_map_lookup_elem(&steps, &zero);
	if (all)
		__sync_fetch_and_add(&all->calls, 1);
	return 0;
}

SEC("uretprobe/" WORKLOAD ":work_step") int BPF_KRETPROBE(step_leave, long result)
{
	struct steps *all;
	__u32 zero = 0;

	if (!is_target())
		return 0;
	all = bpf_map_lookup_elem(&steps, &zero);
	if (!all)
		return 0;
	__sync_fetch_and_add(&all->returns, 1);
	__sync_fetch_and_add(&all->sum, result);
	return 0;
}
