// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// More counters than the CPU has: each is read at sched_switch and summed up by process.
#include <duet.h>

#define EACH(do) \
	do       \
	(e0) do(e1) do(e2) do(e3) do(e4) do(e5) do(e6) do(e7) do(e8) do(e9) do(e10) do(e11)
PMU_ANY(e0);
PMU_ANY(e1);
PMU_ANY(e2);
PMU_ANY(e3);
PMU_ANY(e4);
PMU_ANY(e5);
PMU_ANY(e6);
PMU_ANY(e7);
PMU_ANY(e8);
PMU_ANY(e9);
PMU_ANY(e10);
PMU_ANY(e11);

struct process {
	duet_pid pid;
	char comm[16];
};
struct use {
	struct pmu_sum e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11;
};
HASH(by_process, 1024, struct process, struct use);

#define LAP(name)                                         \
	if (name##_used && !pmu_lap(name, &delta) && use) \
		pmu_add(&use->name, &delta);

static __always_inline int charge(void)
{
	struct process process = { .pid = bpf_get_current_pid_tgid() >> 32 };
	struct use *use = NULL;
	struct pmu_sum delta;

	bpf_get_current_comm(process.comm, sizeof(process.comm));
	if (in_target())
		use = map_at(&by_process, &process);
	EACH(LAP)
	return 0;
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	return charge();
}

SEC("raw_tp") int flush(void *ctx)
{
	return charge();
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	return print_map(&by_process, "");
}
