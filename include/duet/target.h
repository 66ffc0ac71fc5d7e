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

/* Is the current thread, on this CPU, one that the command line asks for (-p -t -C -- CMD)?
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
	id = bpf_get_current_pid_tgid();
	return bpf_map_lookup_elem(&__duet_tasks, &id) != NULL;
}
