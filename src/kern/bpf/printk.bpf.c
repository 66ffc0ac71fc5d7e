// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Lines of bpf_printk() into a ring. On the raw tracepoint, because a perf event on the same
 * tracepoint sees nothing of a program that itself runs on a tracepoint: perf allows one record
 * per context at a time, and the outer one holds it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define LINE  1024 /* BPF_TRACE_PRINTK_SIZE of the kernel */
#define SHORT 256

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} lines SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static void lose(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&lost, &zero);

	if (count)
		__sync_fetch_and_add(count, 1);
}

SEC("raw_tp/bpf_trace_printk") int duet_printk(struct bpf_raw_tracepoint_args *ctx)
{
	const void *text = (const void *)ctx->args[0];
	char line[SHORT], *whole;
	long size = bpf_probe_read_kernel_str(line, sizeof(line), text);

	if (size <= 0)
		return 0;
	if (size < SHORT) {
		if (bpf_ringbuf_output(&lines, line, size & (SHORT - 1), 0))
			lose();
		return 0;
	}
	whole = bpf_ringbuf_reserve(&lines, LINE, 0);
	if (!whole) {
		lose();
		return 0;
	}
	if (bpf_probe_read_kernel_str(whole, LINE, text) < 0)
		whole[0] = 0;
	bpf_ringbuf_submit(whole, 0);
	return 0;
}
