// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Page faults of each CPU, lapped in the kernel half and totalled in the user half, while CPUs go
// offline and come back; and the calls of a function meanwhile.
#include <duet.h>

PMU(faults, "page-faults");
PMU(minor, "minor-faults");
PMU_GROUP(both, "faults,minor");

struct pmu_sum lapped[8];
u64 negative;

static __always_inline void lap(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct pmu_sum delta;

	if (pmu_lap(faults, &delta) || cpu >= 8)
		return;
	/* (Time may go back some ns, where the kernel ends an event: sums are right again.) */
	if ((s64)delta.count < 0 || (s64)delta.enabled < -1000000)
		negative++;
	pmu_add(&lapped[cpu], &delta);
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	lap();
	return 0;
}

SEC("raw_tp") int flush(void *ctx)
{
	lap();
	return 0;
}

SEC("user/exit") int report(void)
{
	struct pmu_sum total, a = {}, b = {};
	int code = pmu_total(&faults, &total);

	printf("total %d %llu\n", code, total.count);
	code = pmu_together(&faults, &a, &minor, &b);
	printf("together %d %llu %llu %d\n", code, a.count, b.count, a.enabled == b.enabled);
	printf("lapped %llu %llu negative %llu\n", lapped[0].count, lapped[1].count, negative);
	return 0;
}
