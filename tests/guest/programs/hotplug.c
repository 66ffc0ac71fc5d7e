// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Page faults of each CPU, lapped in the kernel half and totalled in the user half, while CPUs go
// offline and come back; and the calls of a function meanwhile.
#include <duet.h>

PMU(faults, "page-faults");
PMU(minor, "minor-faults");
PMU_GROUP(both, "faults,minor");

CALLS(calls, 64);
EVENTS(exits); /* of programs, by the CPU on which they end */

u64 big_reads,
	wrong_reads; /* reads with 5,120 faults inside, as dd does; with an impossible number */
struct pmu_sum lapped[8];
u64 samples[8], sent[8], refused[8];
u64 received[8]; /* the user half's */
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

SEC("kprobe/vfs_read") int BPF_KPROBE(enter)
{
	if (in_target())
		call_enter(&calls, &faults, PT_REGS_IP(ctx));
	return 0;
}

SEC("kretprobe/vfs_read") int BPF_KRETPROBE(leave)
{
	struct pmu_sum d;

	if (!in_target() || call_leave(&calls, &faults, &d))
		return 0;
	if (d.count - 5110 <= 20)
		__sync_fetch_and_add(&big_reads, 1);
	else if (d.count > 5000)
		__sync_fetch_and_add(&wrong_reads, 1);
	return 0;
}

SEC("perf_event/cpu-clock@99") int sample(void *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu < 8)
		samples[cpu]++;
	return 0;
}

SEC("tp/sched/sched_process_exit") int on_exit(void *ctx)
{
	u64 cpu = bpf_get_smp_processor_id() & 7;

	if (bpf_perf_event_output(ctx, &exits, BPF_F_CURRENT_CPU, &cpu, sizeof(cpu)))
		__sync_fetch_and_add(&refused[cpu & 7], 1);
	else
		__sync_fetch_and_add(&sent[cpu & 7], 1);
	return 0;
}

SEC("user/event/exits") int on_record(const u64 *cpu, u64 size)
{
	received[*cpu & 7]++;
	return 0;
}

SEC("user/exit") int report(void)
{
	struct pmu_sum total, a = {}, b = {};
	int code = pmu_total(&faults, &total);

	printf("total %d %llu\n", code, total.count);
	code = pmu_together(&faults, &a, &minor, &b);
	printf("together %d %llu %llu %d\n", code, a.count, b.count, a.enabled == b.enabled);
	printf("reads %llu wrong %llu\n", big_reads, wrong_reads);
	printf("samples %llu %llu\n", samples[0], samples[1]);
	printf("sent %llu %llu received %llu %llu refused %llu %llu\n", sent[0], sent[1],
	       received[0], received[1], refused[0], refused[1]);
	printf("lapped %llu %llu negative %llu\n", lapped[0].count, lapped[1].count, negative);
	return 0;
}
