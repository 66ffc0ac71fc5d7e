// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which process runs for how long, and how often does it touch new memory?
#include <duet.h>

PMU(cpu_time, "task-clock");
PMU(faults, "page-faults");
struct who { duet_pid pid; char comm[16]; };
struct use { struct pmu_sum cpu_time, faults; };
HASH(by_process, 10240, struct who, struct use);

SEC("raw_tp/sched_switch") int on_switch(void *ctx) /* in the kernel */
{
	struct who who = { .pid = bpf_get_current_pid_tgid() >> 32 };
	struct pmu_sum time, fault;
	struct use *use;
	long bad = pmu_lap(cpu_time, &time) | pmu_lap(faults, &fault);

	bpf_get_current_comm(who.comm, sizeof(who.comm));
	if (bad || !in_target() || !(use = map_at(&by_process, &who)))
		return 0;
	pmu_add(&use->cpu_time, &time);
	pmu_add(&use->faults, &fault);
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e) /* in duet */
{
	return print_map(&by_process, "sort=-cpu_time top=10");
}
