// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Kernel half of kern_test.c: programs that act for process `pid` only, and a map of each kind. */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 pid = 0;
const volatile __u32 limit = 7;
__u64 raw_count, tp_count, entered, returned, usdt_sum, run_count, ring_failed, inner_seen;
__u64 initial = 42;

struct row {
	__u64 count;
	char text[8];
};
struct locked {
	struct bpf_spin_lock lock;
	__u64 value;
};
struct stack {
	__u64 ip[16];
};

#define MAP(map, kind, entries, K, V)              \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_##kind); \
		__uint(max_entries, entries);      \
		__type(key, K);                    \
		__type(value, V);                  \
	} map SEC(".maps")

MAP(array, ARRAY, 300, __u32, struct row);
MAP(locks, ARRAY, 4, __u32, struct locked);
MAP(hash, HASH, 4096, __u32, __u64);
MAP(percpu, PERCPU_HASH, 64, __u32, __u32);
MAP(percpu_array, PERCPU_ARRAY, 3, __u32, struct row);
MAP(lru, LRU_HASH, 128, __u64, __u64);
MAP(stacks, STACK_TRACE, 64, __u32, struct stack);

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, 8);
	__uint(value_size, 4);
} lpm SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 8);
	__uint(value_size, 8);
} queue SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} perf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} __duet_unused SEC(".maps");

static __always_inline bool mine(void)
{
	return bpf_get_current_pid_tgid() >> 32 == pid;
}

SEC("raw_tp/sys_enter") int on_syscall(void *ctx)
{
	if (mine())
		__sync_fetch_and_add(&raw_count, 1);
	return 0;
}

SEC("tp/sched/sched_process_fork") int on_fork(void *ctx)
{
	if (mine())
		__sync_fetch_and_add(&tp_count, 1);
	return 0;
}

SEC("uprobe/$BIN:$FUNC") int BPF_KPROBE(on_enter, long number)
{
	struct row *row;
	__u32 key = 5;

	entered += number;
	row = bpf_map_lookup_elem(&array, &key);
	if (row)
		row->count++;
	return 0;
}

SEC("uretprobe") int BPF_KRETPROBE(on_return, long value)
{
	returned += value;
	return 0;
}

SEC("usdt/$BIN:duet_test:step") int BPF_USDT(on_step, long number)
{
	usdt_sum += number;
	return 0;
}

SEC("raw_tp") int bare(void *ctx)
{
	__u64 record = __sync_fetch_and_add(&run_count, 1);

	if (bpf_ringbuf_output(&ring, &record, sizeof(record), 0))
		__sync_fetch_and_add(&ring_failed, 1);
	bpf_perf_event_output(ctx, &perf, BPF_F_CURRENT_CPU, &record, sizeof(record));
	return 0;
}

SEC("raw_tp") int talk(void *ctx)
{
	bpf_printk("duet test says %d", pid);
	return 0;
}

SEC("syscall") int call(void *ctx)
{
	inner_seen = limit;
	return 0;
}

SEC("perf_event/cpu-clock@99") int on_sample(void *ctx)
{
	return 0;
}

SEC("fentry") int BPF_PROG(no_target)
{
	return 0;
}
