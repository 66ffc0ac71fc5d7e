// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What does one call of a kernel function cost its caller?
//
//	duet run func_cost.c vfs_read -- cat /etc/services
//	duet run func_cost.c --set FUNC=do_nanosleep -p 1234 -d 10
//	duet run func_cost.c -e insns=page-faults -e cycles=task-clock vfs_read -- ls -R /usr
//
// The counters are the thread's own: what others run while it sleeps inside the function does not
// count, nor do the probes, whose cost duet measures before the run (-v shows it). Calls that nest
// and calls of different threads are kept apart.
#include <duet.h>

char FUNC[128] = "vfs_read";
ARG(FUNC, "FUNC", "kernel function (duet list probes)");

PMU(insns, "instructions");
PMU(cycles, "cycles");
CALLS(calls, 10240);

struct hist insns_per_call, cycles_per_call;

SEC("kprobe/$FUNC") int BPF_KPROBE(enter)
{
	if (in_target())
		call_enter2(&calls, &insns, &cycles, PT_REGS_IP(ctx));
	return 0;
}

SEC("kretprobe/$FUNC") int BPF_KRETPROBE(leave)
{
	struct pmu_sum i, c;

	if (!in_target() || call_leave2(&calls, &insns, &cycles, &i, &c))
		return 0;
	if (i.running)
		hist_add(&insns_per_call, pmu_value(&i));
	if (c.running)
		hist_add(&cycles_per_call, pmu_value(&c));
	return 0;
}

/* One counter: the mean and two quantiles, then its distribution. */
static void show(const char *name, const struct hist *hist, s64 overhead)
{
	double mean = hist_mean(hist);

	if (!hist->n) {
		printf("%s: not counted\n", name);
		return;
	}
	if (duet_verbose())
		printf("%s: raw %.1f, overhead %lld, difference %.1f\n", name,
		       f64_add(mean, f64_from_s64(overhead)), overhead, mean);
	printf("%s: mean %.1f, p50 %llu, p99 %llu\n", name, mean, hist_quantile(hist, 500),
	       hist_quantile(hist, 990));
	print_hist(hist, "");
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	const struct duet_call_stats *s = &calls_stats;
	u64 in_flight = s->entered - s->left - s->unmatched;

	printf("%s: %llu entered, %llu returned, %llu in flight, %llu without entry, "
	       "%llu too deep, %llu without value\n",
	       FUNC, s->entered, s->left, in_flight, s->no_entry, s->too_deep, s->no_value);
	show("insns", &insns_per_call, calls_overhead[insns_slot & (DUET_PMU_MAX - 1)]);
	show("cycles", &cycles_per_call, calls_overhead[cycles_slot & (DUET_PMU_MAX - 1)]);
	return 0;
}
