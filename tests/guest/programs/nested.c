// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How many page faults did each call of nest() of calls_workload take? Nested calls included.
#include <duet.h>

char BIN[256] = "";
ARG(BIN, "BIN", "calls_workload");

PMU(faults, "page-faults");
CALLS(calls, 64);

u64 calls_with[64]; /* by the number of faults; [63]: all the others */

SEC("uprobe/$BIN:nest") int BPF_KPROBE(enter)
{
	if (in_target())
		call_enter(&calls, &faults, PT_REGS_IP(ctx));
	return 0;
}

SEC("uretprobe/$BIN:nest") int BPF_KRETPROBE(leave)
{
	struct pmu_sum d;
	u64 n;

	if (!in_target() || call_leave(&calls, &faults, &d))
		return 0;
	n = d.count;
	if (n > 63)
		n = 63;
	__sync_fetch_and_add(&calls_with[n & 63], 1);
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	const struct duet_call_stats *s = &calls_stats;
	u32 i;

	printf("entered %llu left %llu no_entry %llu too_deep %llu no_value %llu\n", s->entered,
	       s->left, s->no_entry, s->too_deep, s->no_value);
	for (i = 0; i < 64; i++)
		if (calls_with[i])
			printf("faults %u calls %llu\n", i, calls_with[i]);
	return 0;
}
