// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which program touches how much new memory?
#include <duet.h>

PMU(faults, "page-faults"); // a counter on every CPU; -e faults=EVENT takes another
HASH(by_name, 1024, char[16], struct pmu_sum);

SEC("raw_tp/sched_switch") int on_switch(void *ctx) // in the kernel
{
	struct pmu_sum delta, *sum;
	char comm[16];

	if (pmu_lap(faults, &delta) || !in_target())
		return 0;
	bpf_get_current_comm(comm, sizeof(comm));
	if ((sum = map_at(&by_name, comm)))
		pmu_add(sum, &delta);
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e) // in duet
{
	return print_map(&by_name, "key=program faults=value cols=program,faults sort=-faults");
}
