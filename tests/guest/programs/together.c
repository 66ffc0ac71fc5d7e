// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Nine events on six counters and the one of cycles: two of them are a group, of one time.
#include <duet.h>

PMU(insns, "instructions:u");
PMU(cycles, "cycles:u");
PMU(third, "instructions:u");
PMU(fourth, "instructions:u");
PMU(fifth, "instructions:u");
PMU(sixth, "instructions:u");
PMU(seventh, "instructions:u");
PMU(eighth, "instructions:u");
PMU(ninth, "instructions:u");
PMU_GROUP(ipc, "insns,cycles");

struct sums {
	struct pmu_sum insns, cycles, third;
};
HASH(by_name, 1, char[8], struct sums);

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	return 0;
}

SEC("user/exit") int report(void)
{
	struct pmu_sum i = {}, c = {}, other = {};
	struct sums sums = {};
	int code = pmu_together(&insns, &i, &cycles, &c);

	printf("together %d %llu %llu\n", code, i.count, c.count);
	printf("times %llu %llu %llu %llu\n", i.enabled, c.enabled, i.running, c.running);
	printf("apart %d\n", pmu_together(&insns, &i, &third, &other) == -EXDEV);
	pmu_total(&insns, &sums.insns);
	pmu_total(&cycles, &sums.cycles);
	pmu_total(&third, &sums.third);
	bpf_map_update_elem(&by_name, "all", &sums, BPF_ANY);
	return print_map(&by_name, "cols=group,alone group=cycles/insns:.2 alone=cycles/third:.2");
}
