/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is measured. Part of duet.h. Kernel programs of raw_tp, tracepoint and kprobe kind run for
 * everybody: test in_target() before any work (after pmu_lap() at sched_switch).
 */
#pragma once

/* Set by duet before load. */
const volatile __u32 __duet_target __weak = DUET_TARGET_ALL; /* enum duet_target_kind */
const volatile __u32 __duet_target_cpus __weak =
	0; /* not 0: only the CPUs of __duet_cpu_set (-C) */
const volatile __u64 __duet_cpu_set[DUET_CPU_SET_WORDS] __weak = { 0 };

/* The cgroups of -G; of version 1 when __duet_cgroup_v1 is not 0. */
const volatile __u32 __duet_cgroup_count __weak = 0;
const volatile struct duet_cgroup_place __duet_cgroup[DUET_CGROUP_MAX] __weak = {};
const volatile __u32 __duet_cgroup_v1 __weak = 0;
const volatile struct duet_cgroup_layout __duet_cgroup_at __weak = {};

/* Threads that are measured (-p, -t, -- CMD and its later threads and children): kept by duet and
 * its own fork and exit programs; filled before the workload runs. Key: thread id. */
struct __duet_tasks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* else the kernel fills 5 MB at each start */
	__type(key, __u32);
	__type(value, __u64);
};
struct __duet_tasks_map __duet_tasks __weak SEC(".maps");

static __always_inline __u64 __duet_kernel_pointer(__u64 base, __u32 offset)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)(base + offset));
	return value;
}

/* The id of the current thread's cgroup, or of what lies above it, at a level; 0: none so deep. */
static __always_inline __u64 __duet_cgroup_v1_id(__u32 level)
{
	__u64 at = __duet_kernel_pointer(bpf_get_current_task(), __duet_cgroup_at.task_set);
	__u32 own = 0;

	at = __duet_kernel_pointer(at, __duet_cgroup_at.set_state);
	at = __duet_kernel_pointer(at, __duet_cgroup_at.state_cgroup);
	bpf_probe_read_kernel(&own, sizeof(own), (void *)(at + __duet_cgroup_at.cgroup_level));
	if (own < level)
		return 0;
	at = __duet_kernel_pointer(at, __duet_cgroup_at.cgroup_ancestors + level * 8);
	if (__duet_cgroup_at.ancestors_are_ids)
		return at;
	at = __duet_kernel_pointer(at, __duet_cgroup_at.cgroup_node);
	return __duet_kernel_pointer(at, __duet_cgroup_at.node_id);
}

/* Not inlined: scripts test in_target() in many places, and few runs come here. */
static __attribute__((noinline, unused)) int __duet_in_cgroups(void)
{
	__u32 i;

	for (i = 0; i < DUET_CGROUP_MAX; i++) {
		__u32 level;
		__u64 id;

		if (i >= __duet_cgroup_count)
			break;
		level = __duet_cgroup[i].level;
		id = __duet_cgroup_v1 ? __duet_cgroup_v1_id(level)
				      : bpf_get_current_ancestor_cgroup_id(level);
		if (id == __duet_cgroup[i].id)
			return 1;
	}
	return 0;
}

/* Is the current thread, on this CPU, one that the command line asks for (-p -t -C -G -- CMD)?
 * Always true when the whole system is measured. */
static __always_inline bool in_target(void)
{
	__u32 id;

	if (__duet_target_cpus) {
		id = bpf_get_smp_processor_id();
		if (!(__duet_cpu_set[(id >> 6) & (DUET_CPU_SET_WORDS - 1)] >> (id & 63) & 1))
			return false;
	}
	if (__duet_target == DUET_TARGET_ALL)
		return true;
	if (__duet_target == DUET_TARGET_CGROUPS)
		return __duet_in_cgroups();
	id = bpf_get_current_pid_tgid();
	return bpf_map_lookup_elem(&__duet_tasks, &id) != NULL;
}
