// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Task totals: whatever the counters of a CPU gained between two context switches belongs to the
 * thread that ran. Only threads that have storage (somebody asked for their total) are charged.
 *
 * Runs with the run queue locked, for every context switch: nothing here may be superfluous.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "totals_state.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load; being constants, they leave of the unrolled loops only what is used. */
const volatile __u32 slots = 0;
const volatile __u32 cpus = 1;

/* [slot][cpu] */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} events SEC(".maps");

/* The script's own maps take the place of these two. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct duet_task_totals);
} __duet_task SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct duet_cpu_last);
} __duet_cpu SEC(".maps");

static __always_inline long read_slot(__u32 slot, __u32 cpu, struct pmu_sum *now)
{
	_Static_assert(sizeof(*now) == sizeof(struct bpf_perf_event_value), "one layout");
	return bpf_perf_event_read_value(&events, slot * cpus + cpu, (void *)now, sizeof(*now));
}

struct totals_state state;

/*
 * A counter that cannot be read loses its base: what it counts until it can be read again belongs
 * to nobody. The thread that comes pays for the rest of this run, and for the beginning of the one
 * that ends its slice: its base is put ahead by as much.
 */
static __always_inline void change(struct duet_cpu_last *last)
{
	struct duet_task_totals *totals;
	__u32 cpu = bpf_get_smp_processor_id(), count = slots;
	__u64 valid;
	__u32 i;

	totals = bpf_task_storage_get(&__duet_task, bpf_get_current_task_btf(), 0, 0);
	valid = last->valid;
#pragma clang loop unroll(full)
	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct pmu_sum now;

		if (i >= count)
			break;
		if (read_slot(i, cpu, &now)) {
			valid &= ~(1ULL << i);
			continue;
		}
		if (totals && (valid & 1ULL << i)) {
			totals->total[i].count += now.count - last->last[i].count;
			totals->total[i].enabled += now.enabled - last->last[i].enabled;
			totals->total[i].running += now.running - last->last[i].running;
		}
		last->last[i].count = now.count + state.cost[i];
		last->last[i].enabled = now.enabled;
		last->last[i].running = now.running;
		valid |= 1ULL << i;
	}
	last->valid = valid;
	if (totals)
		totals->switches++;
}

/* In tracepoint sched_switch the current thread is still the one that leaves, also when it is
 * dying: its storage goes only when its last reference does. */
SEC("raw_tp/sched_switch") int duet_totals(void *ctx)
{
	struct duet_cpu_last *last;
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&__duet_cpu, &zero);
	if (last)
		change(last);
	return 0;
}

/*
 * Run a few times by user space, on a thread that has storage: what the counters gain between two
 * readings that follow each other is what a change costs. The least counts: an interrupt may fall
 * in between.
 */
SEC("raw_tp") int duet_totals_cost(void *ctx)
{
	__u64 before[DUET_PMU_MAX] = {}, valid = 0, gained;
	struct duet_cpu_last *last;
	__u32 zero = 0, i, k, count = slots;

	last = bpf_map_lookup_elem(&__duet_cpu, &zero);
	if (!last)
		return 0;
#pragma clang loop unroll(disable)
	for (k = 0; k < 3; k++) {
		valid = last->valid;
		for (i = 0; i < DUET_PMU_MAX; i++)
			before[i] = last->last[i].count;
		change(last);
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < DUET_PMU_MAX; i++) {
		if (i >= count)
			break;
		if (!(valid & last->valid & 1ULL << i))
			continue;
		gained = last->last[i].count - before[i];
		if (!(state.found & 1ULL << i) || gained < state.least[i])
			state.least[i] = gained;
		state.found |= 1ULL << i;
	}
	return 0;
}

/* Run once on each CPU when the counters start: the base of the threads that run right now. */
SEC("raw_tp") int duet_totals_start(void *ctx)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id(), count = slots;
	struct duet_cpu_last *last;
	__u32 i;

	last = bpf_map_lookup_elem(&__duet_cpu, &zero);
	if (!last)
		return 0;
#pragma clang loop unroll(full)
	for (i = 0; i < DUET_PMU_MAX; i++) {
		struct pmu_sum now;

		if (i >= count)
			break;
		if ((last->valid & 1ULL << i) || read_slot(i, cpu, &now))
			continue;
		last->last[i] = now;
		last->valid |= 1ULL << i;
	}
	return 0;
}
