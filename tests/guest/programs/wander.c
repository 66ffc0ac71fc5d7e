// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// All calls of wander() of wander_workload in one sum, which all CPUs add to.
#include <duet.h>

char BIN[256] = "";
ARG(BIN, "BIN", "wander_workload");

PMU(faults, "page-faults");
CALLS(calls, 64);

struct pmu_sum total;
u64 count;

SEC("uprobe/$BIN:wander") int BPF_KPROBE(enter)
{
	call_enter(&calls, &faults, PT_REGS_IP(ctx));
	return 0;
}

SEC("uretprobe/$BIN:wander") int BPF_KRETPROBE(leave)
{
	struct pmu_sum delta;

	if (call_leave(&calls, &faults, &delta))
		return 0;
	pmu_add(&total, &delta);
	__sync_fetch_and_add(&count, 1);
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	printf("calls %llu faults %llu\n", count, total.count);
	printf("missed %llu\n",
	       calls_stats.no_entry + calls_stats.no_value + calls_stats.unmatched);
	return 0;
}
