// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A script's kernel half as own_test.c needs it: the maps that duet's own programs fill. */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include <duet/shared.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 pid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct duet_task_totals);
} __duet_task SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct duet_cpu_last);
} __duet_cpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} __duet_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} faults SEC(".maps");

/* What the last getpgid(-7) of each thread saw: key is the thread id. */
struct seen {
	__u64 total[3];
	__u64 enabled;
	__u64 valid;
	__s64 error;
	__u64 measured;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct seen);
} seen SEC(".maps");

SEC("raw_tp/sys_enter") int on_syscall(__u64 *ctx)
{
	__u32 zero = 0, id = bpf_get_current_pid_tgid();
	struct duet_task_totals *totals;
	struct bpf_perf_event_value now;
	struct duet_cpu_last *last;
	struct seen result = {};

	if (bpf_get_current_pid_tgid() >> 32 != pid || ctx[1] != NUMBER)
		return 0;
	totals = bpf_task_storage_get(&__duet_task, bpf_get_current_task_btf(), 0,
				      BPF_LOCAL_STORAGE_GET_F_CREATE);
	last = bpf_map_lookup_elem(&__duet_cpu, &zero);
	if (!totals || !last)
		return 0;
	result.error = bpf_perf_event_read_value(&faults, BPF_F_CURRENT_CPU, &now, sizeof(now));
	result.total[0] = totals->total[0].count + now.counter - last->last[0].count;
	result.enabled = totals->total[0].enabled;
	result.total[1] = totals->total[1].count;
	result.total[2] = totals->switches;
	result.valid = last->valid;
	result.measured = bpf_map_lookup_elem(&__duet_tasks, &id) != 0;
	bpf_map_update_elem(&seen, &id, &result, BPF_ANY);
	return 0;
}

int calls_entered, calls_left;

SEC("uprobe") int BPF_KPROBE(on_enter)
{
	__sync_fetch_and_add(&calls_entered, 1);
	return 0;
}

SEC("uretprobe") int BPF_KRETPROBE(on_return)
{
	__sync_fetch_and_add(&calls_left, 1);
	return 0;
}

SEC("raw_tp") int talk(void *ctx)
{
	bpf_printk("duet test %d says %d", pid, 42);
	return 0;
}
