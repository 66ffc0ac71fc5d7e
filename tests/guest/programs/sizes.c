// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every thread of the targets, and beside their sum what the whole system counted meanwhile.
#include <duet.h>

PMU_ANY(event);

struct thread {
	duet_pid pid;
	u32 tid;
};
struct use {
	struct pmu_sum event;
	char comm[16]; /* the last */
};
HASH(by_thread, 8192, struct thread, struct use);

static __always_inline void charge(void)
{
	u64 id = bpf_get_current_pid_tgid();
	struct thread thread = { .pid = id >> 32, .tid = id };
	struct pmu_sum delta;
	struct use *use;

	if (pmu_lap(event, &delta) || !in_target())
		return;
	use = map_at(&by_thread, &thread);
	if (!use)
		return;
	pmu_add(&use->event, &delta);
	bpf_get_current_comm(use->comm, sizeof(use->comm));
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	charge();
	return 0;
}

SEC("raw_tp") int flush(void *ctx)
{
	charge();
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	struct pmu_sum all;

	if (pmu_total(&event, &all))
		return 0;
	print_map(&by_thread, "");
	printf("total %llu\n", pmu_value(&all));
	return 0;
}
