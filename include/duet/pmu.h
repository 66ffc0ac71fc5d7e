/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMU counters by declaration. Part of duet.h.
 *
 *	PMU(cycles, "cycles");
 *	...
 *	struct pmu_sum d;
 *	if (pmu_lap(cycles, &d) == 0)
 *		pmu_add(&total->cycles, &d);
 *
 * duet opens the event on every measured CPU before the programs are attached; `-e NAME=EVENT` on
 * the command line binds the same NAME to another event. An event that this machine lacks does
 * not end the run: its sums stay "not counted" (running 0) and reports say `not supported`.
 *
 * A counter runs per CPU. Use pmu_lap() at sched_switch to charge what ran since the last switch,
 * and call_enter()/call_leave() (duet/calls.h) for what one call cost its own thread.
 */
#pragma once

/* What duet reads before anything runs: strings separated by NULs, in a section per kind. */
#define __DUET_NOTE(kind) SEC(".duet." kind)

/*
 * PMU(name, "event"): event names as `perf list` and `duet list events` show them, rNNN,
 * pmu/term=value/, modifiers :u :k. At most DUET_PMU_MAX in a script. Declares
 *   NAME		the perf event array: one slot per CPU, sized and filled by duet
 *   NAME_slot		the number of this PMU in per-task totals, set by duet before load
 */
#define PMU(name, event)                                     \
	struct {                                             \
		__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
		__uint(key_size, 4);                         \
		__uint(value_size, 4);                       \
	} name SEC(".maps");                                 \
	PERCPU(__duet_lap_##name, struct pmu_sum);           \
	const volatile __u32 name##_slot = 0;                \
	static const char __duet_pmu_##name[] __DUET_NOTE("pmu") = #name "\0" event

/*
 * PMU_ANY(name): a counter whose event the command line says: `-e cycles,instructions` binds the
 * PMU_ANY()s in their order, `-e '{cycles,instructions}'` as one group, and pmu_event() in user/open
 * any of them. Declares besides
 *   NAME_used		0 when it got no event: the kernel half need not read it
 * Columns called NAME or NAME_... are printed under the event's name, or not at all.
 */
#define PMU_ANY(name)  \
	PMU(name, ""); \
	const volatile __u32 name##_used = 0

/* PMU_GROUP(name, "pmu1,pmu2"): these PMU()s are opened as one perf group: they count at the same
 * times, so that their ratio is true even when the hardware has too few counters. */
#define PMU_GROUP(name, members) \
	static const char __duet_group_##name[] __DUET_NOTE("group") = #name "\0" members

/* ---- kernel half: reading ---------------------------------------------------------------------- */

/* The counter of this CPU now, since it was opened. 0; -ENOENT: not open on this CPU (not
 * supported, or outside -C); -EBUSY and other negative errno. *out is zeroed on failure. */
static __always_inline long pmu_read(void *pmu, struct pmu_sum *out)
{
	_Static_assert(sizeof(*out) == 24, "struct bpf_perf_event_value");
	return bpf_perf_event_read_value(pmu, BPF_F_CURRENT_CPU, (void *)out, sizeof(*out));
}

static __always_inline long __duet_pmu_lap(void *pmu, void *lap, struct pmu_sum *delta)
{
	struct pmu_sum now, *last;
	__u32 zero = 0;
	long error;

	delta->count = 0;
	delta->enabled = 0;
	delta->running = 0;
	error = pmu_read(pmu, &now);
	if (error && error != -ENOENT)
		return error;
	last = bpf_map_lookup_elem(lap, &zero);
	if (!last)
		return -ENOENT;
	if (error) { /* when a CPU that was offline counts again, it begins at nothing */
		last->count = 0;
		last->enabled = 1;
		last->running = 0;
		return 0;
	}
	if (!last->enabled) {
		*last = now;
		return -EAGAIN;
	}
	delta->count = now.count - last->count;
	delta->enabled = now.enabled - last->enabled;
	delta->running = now.running - last->running;
	*last = now;
	return 0;
}

/*
 * pmu_lap(name, &delta): what this CPU counted since the last lap of the same PMU on this CPU.
 * 0; -EAGAIN on a CPU's first lap (there is nothing to subtract from yet); other negative errno.
 * An event that is not supported gives 0 and a delta that says "not counted" (running 0), so that
 * a script's other numbers stay right. Not for preemptible programs (uprobes).
 */
#define pmu_lap(name, delta) __duet_pmu_lap(&name, &__duet_lap_##name, delta)

/* ---- arithmetic --------------------------------------------------------------------------------- */

/* delta = a - b, field by field (two's complement: may be negative). */
static __always_inline void pmu_sub(struct pmu_sum *delta, const struct pmu_sum *a,
				    const struct pmu_sum *b)
{
	delta->count = a->count - b->count;
	delta->enabled = a->enabled - b->enabled;
	delta->running = a->running - b->running;
}

/* to += delta, atomically: the value may be shared by CPUs. */
static __always_inline void pmu_add(struct pmu_sum *to, const struct pmu_sum *delta)
{
	__sync_fetch_and_add(&to->count, delta->count);
	__sync_fetch_and_add(&to->enabled, delta->enabled);
	__sync_fetch_and_add(&to->running, delta->running);
}

/* position of the highest set bit: 0 for 0 and 1, 63 at most. */
static __always_inline __u32 __duet_log2(__u64 value)
{
	__u32 result = 0;

	if (value >> 32) {
		value >>= 32;
		result += 32;
	}
	if (value >> 16) {
		value >>= 16;
		result += 16;
	}
	if (value >> 8) {
		value >>= 8;
		result += 8;
	}
	if (value >> 4) {
		value >>= 4;
		result += 4;
	}
	if (value >> 2) {
		value >>= 2;
		result += 2;
	}
	return result + (__u32)(value >> 1);
}

/*
 * The count scaled to the whole time that the event was enabled: count * enabled / running, in
 * integers without overflow (relative error below 2^-27 down to a share of 1/16). Negative deltas
 * keep their sign (two's complement). ~0 when not counted: test `running` first where -1 is a
 * possible delta. For single values: sums go into a report as struct pmu_sum, which scales once.
 */
static __always_inline __u64 pmu_value(const struct pmu_sum *sum)
{
	__u64 count = sum->count, enabled = sum->enabled, running = sum->running;
	__u32 bits;
	int negative;

	if (!running)
		return ~0ULL;
	if (running == enabled)
		return count;
	bits = __duet_log2(enabled | running);
	if (bits > 31) {
		enabled >>= bits - 31;
		running >>= bits - 31;
		if (!running)
			running = 1;
	}
	negative = (__s64)count < 0;
	if (negative)
		count = -count;
	count = count / running * enabled + count % running * enabled / running;
	return negative ? -count : count;
}
