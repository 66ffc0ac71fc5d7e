// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Who is measured: keeps the map of threads that in_target() looks at. A thread that a measured
 * one creates is measured; one that is gone is taken out only when its task is freed, because its
 * last context switch must still count. Also tells user space of the tree's processes.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "target_event.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */

/*
 * Where the fields are in this kernel. Found by offsets.c in its BTF: the same by CO-RE makes
 * libbpf parse all of that, which takes longer than the rest of a run's start.
 */
const volatile struct target_offsets at = {};

const volatile __u32 want_children = 0;

__u64 not_followed;  /* threads for which the map had no room */
__u64 events_failed; /* events for which the ring had none */

/* Thread id -> address of its task, or 0 when user space put it in. The script's own map takes the
 * place of this one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* else the kernel fills 5 MB first */
	__type(key, __u32);
	__type(value, __u64);
} __duet_tasks SEC(".maps");

/* Processes whose exit was told: two last threads may both see that they are the last. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u8);
} __duet_exited SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} __duet_children SEC(".maps");

static __always_inline __u32 read_u32(__u64 base, __u32 offset)
{
	__u32 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)(base + offset));
	return value;
}

static __always_inline __u64 read_pointer(__u64 base, __u32 offset)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)(base + offset));
	return value;
}

static __always_inline void tell(__u32 what, __u64 task, __u32 parent, int status)
{
	struct target_event *event;

	event = bpf_ringbuf_reserve(&__duet_children, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&events_failed, 1);
		return;
	}
	event->what = what;
	event->child.pid = read_u32(task, at.tgid);
	event->child.parent = parent;
	event->child.status = status;
	bpf_probe_read_kernel(event->child.comm, sizeof(event->child.comm),
			      (void *)(task + at.comm));
	bpf_ringbuf_submit(event, 0);
}

SEC("raw_tp/sched_process_fork") int duet_target_fork(__u64 *ctx)
{
	__u64 parent = ctx[0], child = ctx[1];
	__u32 id = read_u32(parent, at.pid);

	if (!bpf_map_lookup_elem(&__duet_tasks, &id))
		return 0;
	id = read_u32(child, at.pid);
	if (bpf_map_update_elem(&__duet_tasks, &id, &child, BPF_ANY))
		__sync_fetch_and_add(&not_followed, 1);
	if (want_children && read_u32(child, at.tgid) == id)
		tell(TARGET_FORK, child, read_u32(parent, at.tgid), 0);
	return 0;
}

/* A thread that executes a program while its process has others takes over the process id: it
 * changes its thread id, ctx[1] is the former one. */
SEC("raw_tp/sched_process_exec") int duet_target_exec(__u64 *ctx)
{
	__u64 task = ctx[0];
	__u32 id = read_u32(task, at.pid), former = ctx[1];

	if (former != id) {
		if (!bpf_map_lookup_elem(&__duet_tasks, &former))
			return 0;
		if (bpf_map_update_elem(&__duet_tasks, &id, &task, BPF_ANY))
			__sync_fetch_and_add(&not_followed, 1);
		bpf_map_delete_elem(&__duet_tasks, &former);
	} else if (!bpf_map_lookup_elem(&__duet_tasks, &id)) {
		return 0;
	}
	if (want_children)
		tell(TARGET_EXEC, task, 0, 0);
	return 0;
}

SEC("raw_tp/sched_process_exit") int duet_target_exit(__u64 *ctx)
{
	__u64 task = ctx[0], process;
	__u32 id = read_u32(task, at.pid);
	__u8 one = 1;
	int status;

	if (!want_children || !bpf_map_lookup_elem(&__duet_tasks, &id))
		return 0;
	process = read_pointer(task, at.signal);
	if ((int)read_u32(process, at.signal_live) > 0)
		return 0;
	if (bpf_map_update_elem(&__duet_exited, &process, &one, BPF_NOEXIST))
		return 0;
	if (read_u32(process, at.signal_flags) & SIGNAL_GROUP_EXIT)
		status = read_u32(process, at.signal_group_exit_code);
	else
		status = read_u32(read_pointer(task, at.group_leader), at.exit_code);
	tell(TARGET_EXIT, task, 0, status);
	return 0;
}

/* The id may belong to a younger thread by now: then the map holds that one's address. */
SEC("raw_tp/sched_process_free") int duet_target_free(__u64 *ctx)
{
	__u64 task = ctx[0], process, *value;
	__u32 id = read_u32(task, at.pid);

	value = bpf_map_lookup_elem(&__duet_tasks, &id);
	if (value && (!*value || *value == task))
		bpf_map_delete_elem(&__duet_tasks, &id);
	if (want_children && read_u32(task, at.tgid) == id) {
		process = read_pointer(task, at.signal);
		bpf_map_delete_elem(&__duet_exited, &process);
	}
	return 0;
}
