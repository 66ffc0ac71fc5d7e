// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// CPU 1 goes and comes while a hook runs, and the run ends before anybody could be told.
#include <duet.h>

PMU(faults, "page-faults");

SEC("user/start") int start(void)
{
	system("echo 0 >/sys/devices/system/cpu/cpu1/online");
	system("echo 1 >/sys/devices/system/cpu/cpu1/online");
	duet_stop(0);
	return 0;
}

SEC("user/exit") int report(void)
{
	struct pmu_sum total;

	printf("total %d %d\n", pmu_total(&faults, &total), total.count > 0);
	return 0;
}
