// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The filling half of the hand-written consumer. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} ring SEC(".maps");

__u64 produced;

SEC("raw_tp") int fill(void *ctx)
{
	int i;

	for (i = 0; i < RECORDS_A_RUN; i++) {
		struct record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

		if (!record)
			return 0;
		record->number = produced++;
		record->value = i;
		record->address = 0;
		record->cpu = 0;
		record->kind = 0;
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	}
	return 0;
}
