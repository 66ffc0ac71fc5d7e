// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* What one call of FUNC costs its thread, as examples/func_cost.c asks it of one counter. */
#include <duet.h>

char FUNC[128] = "__arm64_sys_getppid";

PMU(insns, "instructions");
CALLS(calls, 1024);
struct hist per_call;

SEC("kprobe/$FUNC") int BPF_KPROBE(enter)
{
	call_enter(&calls, &insns, PT_REGS_IP(ctx));
	return 0;
}

SEC("kretprobe/$FUNC") int BPF_KRETPROBE(leave)
{
	struct pmu_sum delta;

	if (!call_leave(&calls, &insns, &delta))
		hist_add(&per_call, pmu_value(&delta));
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	return printf("result %llu calls, mean %.0f\n", per_call.n, hist_mean(&per_call)) < 0;
}
