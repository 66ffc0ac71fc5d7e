// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which threads are there?
#include "program.h"

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid, tgid;
	char comm[16];
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} threads SEC(".maps");

SEC("iter/task") int list(struct bpf_iter__task *ctx)
{
	static const char format[] = "%d %d\n";
	struct task_struct *task = ctx->task;
	__u64 arguments[2], *count;
	__u32 zero = 0;

	if (!task || (target_pid && task->tgid != (int)target_pid))
		return 0;
	arguments[0] = task->tgid;
	arguments[1] = task->pid;
	bpf_seq_printf(ctx->meta->seq, format, sizeof(format), arguments, sizeof(arguments));
	count = bpf_map_lookup_elem(&threads, &zero);
	if (count)
		(*count)++;
	return 0;
}
