// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every call of loops(), or level1() to level8(), of loops_workload: least, median and most of what
// it cost itself, and with the calls inside. With --depth N the calls of loops() are told apart by
// how deep they lay: of each N that end, the innermost is the first.
#include <duet.h>

#define LEVELS  8
#define SAMPLES 16384

char BIN[256] = "";
ARG(BIN, "BIN", "loops_workload");
u32 depth = 1;
OPTION(depth, "depth", "of the recursion, 8 at most");
u32 levels = 0;
OPTION(levels, "levels", "1: level1() to level8() instead");

PMU_ANY(event);
PMU_ANY(none1);
PMU_ANY(none2);
PMU_ANY(none3);
CALLS(calls, 64);

struct one_call {
	s64 total, self;
	u64 function;
};
ARRAY(samples, SAMPLES, struct one_call);
u64 count;

SEC("uprobe/$BIN:loops") int enter(struct pt_regs *ctx)
{
	call_enter_any(&calls, &event, &none1, &none2, &none3, probe_instance(ctx) + 1);
	return 0;
}

SEC("uretprobe/$BIN:loops") int leave(struct pt_regs *ctx)
{
	struct pmu_sum total[DUET_CALL_EVENTS], self[DUET_CALL_EVENTS];
	struct one_call *sample;
	u32 i;

	if (call_leave_any(&calls, &event, &none1, &none2, &none3, probe_instance(ctx) + 1, total,
			   self))
		return 0;
	i = __sync_fetch_and_add(&count, 1);
	sample = bpf_map_lookup_elem(&samples, &i);
	if (!sample)
		return 0;
	sample->total = total[0].count;
	sample->self = self[0].count;
	sample->function = probe_instance(ctx);
	return 0;
}

SEC("user/init") int attach_all(const struct duet_options *options)
{
	char name[300];
	int i, error = 0;

	for (i = 1; i <= LEVELS && levels && !error; i++) {
		snprintf(name, sizeof(name), "uprobe:%s:level%d", BIN, i);
		error = probe_attach(&enter, name);
		snprintf(name, sizeof(name), "uretprobe:%s:level%d", BIN, i);
		if (!error)
			error = probe_attach(&leave, name);
	}
	return error;
}

static s64 values[SAMPLES];

static int compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

static void show(const char *what, u32 n)
{
	qsort(values, n, sizeof(values[0]), compare);
	printf(" %s %lld %lld %lld", what, values[0], values[n / 2], values[n - 1]);
}

static void show_calls(u64 function, u32 from, u32 step)
{
	u32 i, n = 0, seen = 0, k;

	for (k = 0; k < 2; k++) {
		n = seen = 0;
		for (i = 0; i < count && i < SAMPLES; i++) {
			struct one_call *sample = bpf_map_lookup_elem(&samples, &i);

			if (sample->function == function && seen++ % step == from)
				values[n++] = k ? sample->total : sample->self;
		}
		if (!n)
			return;
		if (!k)
			printf("%llu.%u calls %u", function, from, n);
		show(k ? "total" : "self", n);
	}
	printf("\n");
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	u32 i;

	for (i = 0; i < depth && i < 8; i++)
		show_calls(0, i, depth);
	/* probe_attach() took the place of the section's target. */
	for (i = 1; i < LEVELS && levels; i++)
		show_calls(i, 0, 1);
	printf("entered %llu left %llu missed %llu\n", calls_stats.entered, calls_stats.left,
	       calls_stats.unmatched + calls_stats.no_entry + calls_stats.no_value);
	return 0;
}
