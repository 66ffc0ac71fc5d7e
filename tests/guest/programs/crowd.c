// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Eight events of the command line: are the first two in one group, and do all count?
#include <duet.h>

PMU_ANY(first);
PMU_ANY(second);
PMU_ANY(third);
PMU_ANY(fourth);
PMU_ANY(fifth);
PMU_ANY(sixth);
PMU_ANY(seventh);
PMU_ANY(eighth);

SEC("user/exit") int report(void)
{
	struct pmu_sum a = {}, b = {};

	printf("together %d\n", pmu_together(&first, &a, &second, &b));
	pmu_total(&first, &a);
	pmu_total(&eighth, &b);
	printf("shares %llu %llu\n", a.running * 100 / a.enabled, b.running * 100 / b.enabled);
	return 0;
}
