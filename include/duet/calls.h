/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one call cost its own thread. Part of duet.h, kernel half.
 *
 *	PMU(misses, "cache-misses");
 *	CALLS(calls, 10240);
 *	SEC("kprobe/vfs_read") int BPF_KPROBE(enter)
 *	{
 *		return call_enter(&calls, &misses, PT_REGS_IP(ctx)), 0;
 *	}
 *	SEC("kretprobe/vfs_read") int BPF_KRETPROBE(leave)
 *	{
 *		struct pmu_sum d;
 *		if (call_leave(&calls, &misses, &d) == 0)
 *			...
 *	}
 *
 * The counters are the task's: duet's own sched_switch program adds what each thread ran to its
 * total, so that sleep, preemption and migration inside the call drop out. The cost of the probes
 * themselves, those of followed calls inside included, is measured before the run and subtracted; a
 * delta may come out negative and is never clamped. Calls may nest and recurse up to
 * DUET_CALL_DEPTH.
 *
 * The arguments are written `&NAME`: the macros find NAME's companions by name.
 */
#pragma once

/* Companions of every CALLS(), one each per object. */
struct __duet_task_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct duet_task_totals);
};
struct __duet_cpu_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct duet_cpu_last);
};
extern struct __duet_task_map __duet_task SEC(".maps");
extern struct __duet_cpu_map __duet_cpu SEC(".maps");
extern struct duet_calibration __duet_calibration;
/* Set by duet before load in the instance that it calibrates with. */
const volatile __u32 __duet_calibrating __weak = 0;

/*
 * CALLS(name, n): where call_enter() keeps the open calls of each thread. @n is what it is in a
 * HASH(), the number of threads expected; storage is per thread, so it is not a limit. Declares
 *   NAME		task storage of struct duet_calls
 *   NAME_stats		struct duet_call_stats, a global variable that both halves may read
 *   NAME_overhead	what the probe pair costs per PMU slot, set by duet before load: [slot] what of
 *			it lies inside the call; see enum duet_overhead for the rest
 *   NAME_beside	set by duet before load for one CALLS(): its open calls lie beside the totals
 *			in __duet_task, and NAME stays empty; 2: there is no other CALLS()
 */
#define CALLS(name, n)                                                               \
	_Static_assert((n) > 0, "CALLS: the number of threads is positive");         \
	struct __duet_task_map __duet_task __weak SEC(".maps");                      \
	struct __duet_cpu_map __duet_cpu __weak SEC(".maps");                        \
	struct duet_calibration __duet_calibration __weak;                           \
	const volatile __s64 name##_overhead[DUET_OVERHEADS * DUET_PMU_MAX] = { 0 }; \
	const volatile __u32 name##_beside = 0;                                      \
	struct duet_call_stats name##_stats;                                         \
	TASK(name, struct duet_calls)

/* bpf_get_current_task_btf() and bpf_task_storage_get() without struct task_struct, whose debug
 * information would make every object 600 kB. */
static void *(*const __duet_current_task)(void) = (void *)158;
static void *(*const __duet_storage_get)(void *map, void *task, void *value,
					 __u64 flags) = (void *)156;

#define __DUET_ONLY_CALLS 2       /* in NAME_beside */
#define __DUET_NO_TOTAL   (~0ULL) /* in `running`: the total could not be read */

/*
 * The current thread's total of one counter. A program in a preemptible context (uprobe) may lose
 * the CPU between the reads: `switches` tells, and it is tried again.
 */
static __always_inline long __duet_total(struct duet_task_totals *totals, void *pmu, __u32 slot,
					 struct pmu_sum *out)
{
	struct duet_cpu_last *cpu;
	struct pmu_sum now;
	__u64 switches;
	__u32 zero = 0;
	long error = 0;
	int i;

	slot &= DUET_PMU_MAX - 1;
	cpu = bpf_map_lookup_elem(&__duet_cpu, &zero);
	if (!cpu || !(cpu->valid >> slot & 1)) {
		out->running = __DUET_NO_TOTAL;
		return -EAGAIN;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < 4; i++) {
		switches = *(volatile __u64 *)&totals->switches;
		error = pmu_read(pmu, &now);
		if (error)
			break;
		out->count = totals->total[slot].count + now.count - cpu->last[slot].count;
		out->enabled = totals->total[slot].enabled + now.enabled - cpu->last[slot].enabled;
		out->running = totals->total[slot].running + now.running - cpu->last[slot].running;
		barrier();
		if (*(volatile __u64 *)&totals->switches == switches)
			return 0;
		error = -EBUSY;
	}
	out->running = __DUET_NO_TOTAL;
	return error;
}

/* The verifier must see the bound on the very register that is used: hence the barrier. */
static __always_inline struct duet_call *__duet_call_at(struct duet_calls *open, __u32 depth)
{
	barrier_var(depth);
	return &open->call[depth & (DUET_CALL_DEPTH - 1)];
}

/* The totals of the current thread. Only threads that are measured ever get any, so that who has
 * them needs no second look-up. NULL: not measured (*error -ESRCH), or no memory. */
static __always_inline struct duet_task_totals *__duet_totals_make(void *task, long *error)
{
	struct duet_task_totals *totals;

	*error = -ESRCH;
	if (__duet_target_cpus && !in_target())
		return NULL;
	totals = __duet_storage_get(&__duet_task, task, 0, 0);
	if (totals || !in_target())
		return totals;
	*error = -ENOMEM;
	return __duet_storage_get(&__duet_task, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The verifier wants the pointer tested before anything is added to it: hence the barrier. */
static __always_inline struct duet_calls *
__duet_calls_of(struct duet_task_totals *totals, void *calls, void *task, __u32 beside, __u64 flags)
{
	if (!totals)
		return NULL;
	barrier_var(totals);
	return beside ? &totals->calls : __duet_storage_get(calls, task, 0, flags);
}

/* The frame of a call that begins; NULL: *error as call_enter() returns it. */
static __always_inline struct duet_call *
__duet_call_push(void *calls, struct duet_call_stats *stats, __u32 beside, __u64 ip,
		 struct duet_task_totals **totals, long *error)
{
	void *task = __duet_current_task();
	struct duet_calls *open;
	struct duet_call *call;
	__u32 depth;

	*totals = __duet_totals_make(task, error);
	if (!*totals && *error == -ESRCH)
		return NULL;
	__sync_fetch_and_add(&stats->entered, 1);
	open = __duet_calls_of(*totals, calls, task, beside, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!open) {
		__sync_fetch_and_add(&stats->unmatched, 1);
		*error = -ENOMEM;
		return NULL;
	}
	depth = open->depth;
	open->depth = depth + 1;
	if (depth >= DUET_CALL_DEPTH) {
		__sync_fetch_and_add(&stats->too_deep, 1);
		*error = -E2BIG;
		return NULL;
	}
	call = __duet_call_at(open, depth);
	call->ip = ip;
	return call;
}

static __always_inline long __duet_call_enter(void *calls, struct duet_call_stats *stats,
					      __u32 beside, __u64 ip, void *pmu_a, __u32 slot_a,
					      void *pmu_b, __u32 slot_b)
{
	struct duet_task_totals *totals;
	struct duet_call *call;
	long error = 0;

	call = __duet_call_push(calls, stats, beside, ip, &totals, &error);
	if (!call || !totals)
		return error;
	error = __duet_total(totals, pmu_a, slot_a, &call->at[0]);
	if (pmu_b && !__duet_total(totals, pmu_b, slot_b, &call->at[1]))
		error = 0; /* one of the two is enough */
	call->state = error;
	return error;
}

/* One counter of a call that ends: delta = now - at entry - overhead. @outer: calls around it. */
static __always_inline long __duet_call_delta(struct duet_task_totals *totals, void *pmu,
					      __u32 slot, const volatile __s64 *overhead,
					      __u32 outer, const struct pmu_sum *entry,
					      struct pmu_sum *delta)
{
	struct pmu_sum now;
	long error;

	slot &= DUET_PMU_MAX - 1;
	if (entry->running == __DUET_NO_TOTAL)
		return -ENOENT;
	error = __duet_total(totals, pmu, slot, &now);
	if (error)
		return error;
	if (now.running == entry->running) {
		if (now.count == entry->count || now.enabled != entry->enabled)
			return -ENODATA;
		/* The kernel's clock stood still (an unstable TSC), and the counter did not. */
		now.enabled++;
		now.running++;
	}
	pmu_sub(delta, &now, entry);
	if (outer)
		delta->count -= overhead[DUET_OVERHEAD_NESTED * DUET_PMU_MAX + slot];
	else
		delta->count -= overhead[slot];
	return 0;
}

/* Only once all counters of the call are read: it must not cost the second one anything. */
static __always_inline void __duet_calibration_note(__u32 slot, const struct pmu_sum *delta)
{
	__u64 i;

	slot &= DUET_PMU_MAX - 1;
	if (!delta->running)
		return;
	i = __sync_fetch_and_add(&__duet_calibration.n, 1);
	if (i < DUET_CALIBRATION_SAMPLES) {
		__duet_calibration.raw[i].count = delta->count; /* no overhead is known yet */
		__duet_calibration.raw[i].slot = slot;
	}
}

static __always_inline void __duet_sum_clear(struct pmu_sum *sum)
{
	sum->count = 0;
	sum->enabled = 0;
	sum->running = 0;
}

/*
 * The depth at which the innermost open call of @ip lies, plus 1; 0: none. The result goes through
 * memory, where the verifier loses its value: it would go through the rest for each one otherwise.
 */
static __always_inline __u32 __duet_call_find(struct duet_calls *open, __u32 depth, __u64 ip)
{
	__u32 i;

	open->found = 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < DUET_CALL_DEPTH; i++)
		if (i < depth && open->call[i].ip == ip)
			open->found = i + 1;
	return *(volatile __u32 *)&open->found;
}

/* The innermost open call (of @ip, unless that is 0), and how many are around it; calls inside it
 * are given up. NULL: *error as call_leave() returns it. */
static __always_inline struct duet_call *__duet_call_pop(void *calls, struct duet_call_stats *stats,
							 __u32 beside, __u64 ip,
							 struct duet_task_totals **totals,
							 struct duet_calls **ret_open, __u32 *outer,
							 long *error)
{
	void *task = __duet_current_task();
	struct duet_calls *open;
	__u32 depth;

	*error = -ENOENT;
	*totals = __duet_storage_get(&__duet_task, task, 0, 0);
	open = __duet_calls_of(*totals, calls, task, beside, 0);
	if (!open || !open->depth) {
		if (in_target())
			__sync_fetch_and_add(&stats->no_entry, 1);
		return NULL;
	}
	depth = open->depth - 1;
	if (ip && depth < DUET_CALL_DEPTH && __duet_call_at(open, depth)->ip != ip) {
		__u32 found = __duet_call_find(open, depth, ip);

		if (!found) {
			__sync_fetch_and_add(&stats->no_entry, 1);
			return NULL;
		}
		__sync_fetch_and_add(&stats->unmatched, depth + 1 - found);
		depth = found - 1;
	}
	open->depth = depth;
	__sync_fetch_and_add(&stats->left, 1);
	*error = -E2BIG;
	if (depth >= DUET_CALL_DEPTH)
		return NULL;
	*ret_open = open;
	*outer = depth;
	*error = 0;
	return __duet_call_at(open, depth);
}

/*
 * The calls around one that ended must not pay for its probes: the thread never counted them. Last,
 * when all is read. Atomic, because a uprobe's program may lose the CPU to the sched_switch program
 * in the middle of it.
 */
static __always_inline void __duet_call_forget(struct duet_task_totals *totals, __u32 slot,
					       const volatile __s64 *overhead)
{
	slot &= DUET_PMU_MAX - 1;
	__sync_fetch_and_add(&totals->total[slot].count,
			     -overhead[DUET_OVERHEAD_ALL * DUET_PMU_MAX + slot]);
}

/* May there be calls around it? */
static __always_inline int __duet_call_is_seen(__u32 outer, __u32 beside)
{
	return outer || beside != __DUET_ONLY_CALLS;
}

static __always_inline long __duet_call_leave(void *calls, struct duet_call_stats *stats,
					      __u32 beside, const volatile __s64 *overhead,
					      __u64 ip, void *pmu_a, __u32 slot_a,
					      struct pmu_sum *delta_a, void *pmu_b, __u32 slot_b,
					      struct pmu_sum *delta_b)
{
	struct duet_task_totals *totals;
	struct duet_calls *open;
	struct duet_call *call;
	__u32 outer = 0;
	long error;

	__duet_sum_clear(delta_a);
	if (pmu_b)
		__duet_sum_clear(delta_b);
	call = __duet_call_pop(calls, stats, beside, ip, &totals, &open, &outer, &error);
	if (!call || !totals)
		return error;
	error = call->state;
	if (!error) {
		error = __duet_call_delta(totals, pmu_a, slot_a, overhead, outer, &call->at[0],
					  delta_a);
		if (pmu_b && !__duet_call_delta(totals, pmu_b, slot_b, overhead, outer,
						&call->at[1], delta_b))
			error = 0;
	}
	if (__duet_call_is_seen(outer, beside)) {
		__duet_call_forget(totals, slot_a, overhead);
		if (pmu_b)
			__duet_call_forget(totals, slot_b, overhead);
	}
	if (__duet_calibrating) {
		__duet_calibration_note(slot_a, delta_a);
		if (pmu_b)
			__duet_calibration_note(slot_b, delta_b);
	}
	if (error)
		__sync_fetch_and_add(&stats->no_value, 1);
	return error;
}

/*
 * call_enter(&calls, &pmu, ip): the current thread enters a function; @ip tells functions apart
 * (PT_REGS_IP(ctx), bpf_get_func_ip(ctx), or any number but 0). Threads that in_target() does not
 * accept are left alone (-ESRCH), so that the script need not ask it.
 * 0; -ESRCH; -E2BIG: more than DUET_CALL_DEPTH open; -ENOMEM; -EAGAIN and -ENOENT: no counter on
 * this CPU.
 * A failed call is still open: its call_leave() tells the error and the outer calls stay right.
 */
#define call_enter(calls, pmu, ip)                                                               \
	({                                                                                       \
		__u64 __ip = (ip);                                                               \
		barrier_var(__ip);                                                               \
		__duet_call_enter(calls, calls##_stats, *calls##_beside, __ip, pmu, *pmu##_slot, \
				  NULL, 0);                                                      \
	})
/* call_enter2(&calls, &pmu_a, &pmu_b, ip): the same with two counters, read one after the other. */
#define call_enter2(calls, pmu_a, pmu_b, ip)                                          \
	({                                                                            \
		__u64 __ip = (ip);                                                    \
		barrier_var(__ip);                                                    \
		__duet_call_enter(calls, calls##_stats, *calls##_beside, __ip, pmu_a, \
				  *pmu_a##_slot, pmu_b, *pmu_b##_slot);               \
	})

/*
 * call_leave(&calls, &pmu, &delta): the innermost open call of the current thread ends; *delta is
 * what it cost, nested calls included.
 * 0; -ENOENT: no open call (not measured, or entered before the probes were attached); -ENODATA:
 * the event did not run meanwhile (multiplexed); -E2BIG, -ENOMEM, -EAGAIN: as call_enter() said.
 * *delta is all zero (not counted) unless 0 is returned.
 */
#define call_leave(calls, pmu, delta) call_leave_ip(calls, pmu, 0, delta)
/* call_leave_ip(&calls, &pmu, ip, &delta): ends the innermost open call of function @ip; open calls
 * inside it are given up: their return was missed (longjmp, tail call). For several functions. */
#define call_leave_ip(calls, pmu, ip, delta)                                                      \
	({                                                                                        \
		__u64 __ip = (ip);                                                                \
		__duet_call_leave(calls, calls##_stats, *calls##_beside, *calls##_overhead, __ip, \
				  pmu, *pmu##_slot, delta, NULL, 0, NULL);                        \
	})
/* call_leave2(&calls, &pmu_a, &pmu_b, &delta_a, &delta_b): the same with two counters. 0 when at
 * least one was counted: the other's delta may say "not counted" (running 0). */
#define call_leave2(calls, pmu_a, pmu_b, delta_a, delta_b)                                    \
	__duet_call_leave(calls, calls##_stats, *calls##_beside, *calls##_overhead, 0, pmu_a, \
			  *pmu_a##_slot, delta_a, pmu_b, *pmu_b##_slot, delta_b)
