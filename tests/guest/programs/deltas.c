// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every call of loops(), or level1() to level8(), of loops_workload: least, median and most of what
// it cost itself, and with the calls inside. With --depth N the calls of loops() are told apart by
// how deep they lay: of each N that end, the innermost is the first. With --from and --to it is what
// lies between these two probes, of kind usdt, uprobe, kprobe, tp, raw_tp or tp_btf.
#include <duet.h>
#include <bpf/usdt.bpf.h>

#define LEVELS  8
#define SAMPLES 16384

char BIN[256] = "";
ARG(BIN, "BIN", "loops_workload");
u32 depth = 1;
OPTION(depth, "depth", "of the recursion, 8 at most");
u32 levels = 0;
OPTION(levels, "levels", "1: level1() to level8() instead");

char from[300] = "";
OPTION(from, "from", "KIND:PLACE that begins a call");
char to[300] = "";
OPTION(to, "to", "KIND:PLACE that ends one");

u32 around = 0;
OPTION(around, "around", "1: calls of parents() too, and only them with 2");

PMU_ANY(event);
PMU_ANY(none1);
PMU_ANY(none2);
PMU_ANY(none3);
CALLS(calls, 64);
CALLS(outer, 64);

struct one_call {
	s64 total, self;
	u64 function;
};
ARRAY(samples, SAMPLES, struct one_call);
u64 count;
ARRAY(outer_samples, SAMPLES, s64);
u64 outer_count;
u64 switches;
u32 armed;

static __always_inline int begin(u64 function)
{
	call_enter_any(&calls, &event, &none1, &none2, &none3, function + 1);
	return 0;
}

static __always_inline int end(u64 function)
{
	struct pmu_sum total[DUET_CALL_EVENTS], self[DUET_CALL_EVENTS];
	struct one_call *sample;
	u32 i;

	if (call_leave_any(&calls, &event, &none1, &none2, &none3, function + 1, total, self))
		return 0;
	i = __sync_fetch_and_add(&count, 1);
	sample = bpf_map_lookup_elem(&samples, &i);
	if (!sample)
		return 0;
	sample->total = total[0].count;
	sample->self = self[0].count;
	sample->function = function;
	return 0;
}

SEC("uprobe/$BIN:loops") int enter(struct pt_regs *ctx)
{
	return begin(probe_instance(ctx));
}

SEC("uretprobe/$BIN:loops") int leave(struct pt_regs *ctx)
{
	return end(probe_instance(ctx));
}

/* Not in the order in which they run. */
SEC("usdt") int leave_usdt(struct pt_regs *ctx)
{
	return end(bpf_usdt_cookie(ctx));
}

SEC("usdt") int enter_usdt(struct pt_regs *ctx)
{
	return begin(bpf_usdt_cookie(ctx));
}

SEC("tp") int enter_tp(void *ctx)
{
	return begin(0);
}

SEC("tp") int leave_tp(void *ctx)
{
	return end(0);
}

SEC("raw_tp") int enter_raw_tp(void *ctx)
{
	return begin(0);
}

SEC("raw_tp") int leave_raw_tp(void *ctx)
{
	return end(0);
}

SEC("tp_btf") int enter_tp_btf(void *ctx)
{
	return begin(0);
}

SEC("tp_btf") int leave_tp_btf(void *ctx)
{
	return end(0);
}

/* It can be loaded nowhere else, and has nothing to do with calls. */
SEC("tp_btf/sched_switch") int bystander(u64 *ctx)
{
	const u64 *former = (const void *)ctx[1];

	__sync_fetch_and_add(&switches, *former != 0);
	return 0;
}

/* It ends duet when it runs before the script does. */
SEC("uprobe/$BIN:main") int fuse(struct pt_regs *ctx)
{
	if (!armed)
		bpf_send_signal(9);
	return 0;
}

SEC("uprobe/$BIN:parents") int enter_around(struct pt_regs *ctx)
{
	call_enter(&outer, &event, 1);
	return 0;
}

SEC("uretprobe/$BIN:parents") int leave_around(struct pt_regs *ctx)
{
	struct pmu_sum delta;
	s64 *sample;
	u32 i;

	if (call_leave(&outer, &event, &delta))
		return 0;
	i = __sync_fetch_and_add(&outer_count, 1);
	sample = bpf_map_lookup_elem(&outer_samples, &i);
	if (sample)
		*sample = delta.count;
	return 0;
}

#define CHOOSE(kind, program)                         \
	if (!strncmp(from, kind ":", sizeof(kind))) { \
		prog_target(&enter##program, from);   \
		prog_target(&leave##program, to);     \
	} else {                                      \
		prog_disable(&enter##program);        \
		prog_disable(&leave##program);        \
	}

SEC("user/open") int choose(const struct duet_options *options)
{
	bool plain = strstr(from, "probe:");

	if (plain) {
		prog_target(&enter, from);
		prog_target(&leave, to);
	} else if (from[0] || around) {
		prog_disable(&enter);
		prog_disable(&leave);
	}
	if (!around) {
		prog_disable(&enter_around);
		prog_disable(&leave_around);
	}
	CHOOSE("usdt", _usdt)
	CHOOSE("tp", _tp)
	CHOOSE("raw_tp", _raw_tp)
	CHOOSE("tp_btf", _tp_btf)
	if (!strncmp(from, "tp_btf", 6))
		prog_disable(&bystander);
	return 0;
}

SEC("user/init") int attach_all(const struct duet_options *options)
{
	char name[300];
	int i, error = 0;

	armed = 1;
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
	for (i = 0; i < outer_count && i < SAMPLES; i++) {
		s64 *sample = bpf_map_lookup_elem(&outer_samples, &i);

		values[i] = *sample;
	}
	if (outer_count) {
		printf("around");
		show("calls of parents()", outer_count);
		printf("\n");
	}
	printf("entered %llu left %llu missed %llu\n", calls_stats.entered, calls_stats.left,
	       calls_stats.unmatched + calls_stats.no_entry + calls_stats.no_value);
	return 0;
}
