// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Who gets how much work out of each cycle? Instructions per cycle (IPC), per process.
//
//	duet run ipc.c -- make -j8
//	duet run ipc.c -p 1234 -d 5
//	duet run ipc.c -e insns=instructions:u -e cycles=cycles:u -- ./server
//
// A low IPC at high cycles is a process that waits for memory. Where the machine has no counters
// the columns say so, and the switches are still right.
#include <duet.h>

PMU(cycles, "cycles");
PMU(insns, "instructions");
PMU_GROUP(ipc, "cycles,insns");

struct proc {
	duet_pid pid;
	char comm[16];
};
struct use {
	struct pmu_sum cycles, insns;
	u64 switches;
};
HASH(by_proc, 10240, struct proc, struct use);

/* Lap first, for everybody: what another process ran must not be charged to the next one. */
static __always_inline void charge(void)
{
	struct proc who = { .pid = bpf_get_current_pid_tgid() >> 32 };
	struct pmu_sum c, i;
	struct use *u;
	long bad = pmu_lap(cycles, &c) | pmu_lap(insns, &i);

	if (bad || !in_target())
		return;
	bpf_get_current_comm(who.comm, sizeof(who.comm));
	u = map_at(&by_proc, &who);
	if (!u)
		return;
	pmu_add(&u->cycles, &c);
	pmu_add(&u->insns, &i);
	__sync_fetch_and_add(&u->switches, 1);
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	charge();
	return 0;
}

/* No target: duet runs it once on each CPU at the end, for the slice that is still running. */
SEC("raw_tp") int flush(void *ctx)
{
	charge();
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	print_map(&by_proc, "sort=-cycles top=20 ipc=insns/cycles:.2");
	printf("%llu processes\n", map_count(&by_proc));
	return 0;
}
