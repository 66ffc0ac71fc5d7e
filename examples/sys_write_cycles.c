// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What does the cycle counter read whenever a program writes?
//
//	duet run sys_write_cycles.c -- dd if=/dev/zero of=/dev/null count=5
//	duet run sys_write_cycles.c -e counter=cpu-clock -- ls
//
// The very first use of PMU counters in BPF programs, from 2015: one line per write(2), live.
#include <duet.h>

PMU(counter, "cycles");

#if defined(__TARGET_ARCH_arm64)
const volatile u32 NR = 64;
#else
const volatile u32 NR = 1;
#endif
OPTION(NR, "syscall", "the system call to watch: write");

SEC("raw_tp/sys_enter") int on_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct pmu_sum sum;

	if (ctx->args[1] != NR || !in_target())
		return 0;
	if (pmu_read(&counter, &sum))
		bpf_printk("bpf count: CPU-%d not supported", bpf_get_smp_processor_id());
	else
		bpf_printk("bpf count: CPU-%d %llu", bpf_get_smp_processor_id(), sum.count);
	return 0;
}
