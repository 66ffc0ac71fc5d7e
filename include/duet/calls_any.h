/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls with up to four counters that the command line chooses. Part of duet.h, kernel half.
 *
 *	PMU_ANY(a); PMU_ANY(b); PMU_ANY(c); PMU_ANY(d);
 *	CALLS(calls, 10240);
 *	... call_enter_any(&calls, &a, &b, &c, &d, id) at the entry,
 *	... call_leave_any(&calls, &a, &b, &c, &d, id, total, self) at the return: @total and @self
 *	are arrays of DUET_CALL_EVENTS sums; self is total less the calls inside that were followed.
 *
 * @id tells functions apart, as in call_enter(); never 0. Counters that got no event cost nothing.
 */
#pragma once

/* probe_instance(ctx): which target a program of kprobe, uprobe or tracepoint kind runs at: 0 for
 * the one of its section or prog_target(), then 1, 2 ... for each probe_attach(). */
#define probe_instance(ctx) bpf_get_attach_cookie(ctx)

#define __DUET_ANY_AT(totals, pmu, place)                                      \
	do {                                                                   \
		if (*pmu##_used) {                                             \
			if (!__duet_total(totals, pmu, *pmu##_slot, &(place))) \
				__error = 0;                                   \
		}                                                              \
	} while (0)

/* The frame of a call that begins; *error as call_enter() returns it. */
static __always_inline struct duet_call *__duet_any_push(void *calls, struct duet_call_stats *stats,
							 __u32 beside, __u64 id,
							 struct duet_task_totals **totals,
							 long *error)
{
	void *task = __duet_current_task();
	struct duet_calls *open;
	struct duet_call *call;
	__u32 depth, i;

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
	call->ip = id;
	for (i = 0; i < DUET_CALL_EVENTS; i++)
		__duet_sum_clear(&call->inner[i]);
	return call;
}

/* 0 when at least one of the counters could be read. The error stays with the call. */
#define call_enter_any(calls, a, b, c, d, id)                                                    \
	({                                                                                       \
		struct duet_task_totals *__totals;                                               \
		long __error = 0;                                                                \
		__u64 __id = (id);                                                               \
		struct duet_call *__call;                                                        \
                                                                                                 \
		barrier_var(__id);                                                               \
		__call = __duet_any_push(calls, calls##_stats, *calls##_beside, __id, &__totals, \
					 &__error);                                              \
		if (__call && __totals) {                                                        \
			__error = -ENOENT;                                                       \
			__DUET_ANY_AT(__totals, a, __call->at[0]);                               \
			__DUET_ANY_AT(__totals, b, __call->at[1]);                               \
			__DUET_ANY_AT(__totals, c, __call->at[2]);                               \
			__DUET_ANY_AT(__totals, d, __call->at[3]);                               \
			__call->state = __error;                                                 \
		}                                                                                \
		__error;                                                                         \
	})

/* The innermost open call of @id, and the depth at which it lies; those inside it are given up. */
static __always_inline struct duet_call *__duet_any_pop(void *calls, struct duet_call_stats *stats,
							__u32 beside, __u64 id,
							struct duet_task_totals **totals,
							struct duet_call **outer, long *error)
{
	void *task = __duet_current_task();
	struct duet_calls *open;
	__u32 depth;

	*error = -ENOENT;
	*outer = NULL;
	*totals = __duet_storage_get(&__duet_task, task, 0, 0);
	open = __duet_calls_of(*totals, calls, task, beside, 0);
	if (!open || !open->depth) {
		if (in_target())
			__sync_fetch_and_add(&stats->no_entry, 1);
		return NULL;
	}
	depth = open->depth - 1;
	if (depth < DUET_CALL_DEPTH && __duet_call_at(open, depth)->ip != id) {
		__u32 found = __duet_call_find(open, depth, id);

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
	if (depth)
		*outer = __duet_call_at(open, depth - 1);
	*error = 0;
	return __duet_call_at(open, depth);
}

static __always_inline long __duet_any_delta(struct duet_task_totals *totals, void *pmu, __u32 slot,
					     const volatile __s64 *overhead,
					     const struct pmu_sum *at, const struct pmu_sum *inner,
					     struct pmu_sum *outer, struct pmu_sum *total,
					     struct pmu_sum *self)
{
	long error = __duet_call_delta(totals, pmu, slot, overhead, at, total);

	if (error)
		return error;
	pmu_sub(self, total, inner);
	if (outer) {
		outer->count += total->count + overhead[slot & (DUET_PMU_MAX - 1)];
		outer->enabled += total->enabled;
		outer->running += total->running;
	}
	return 0;
}

#define __DUET_ANY_DELTA(calls, pmu, i)                                                         \
	do {                                                                                    \
		__duet_sum_clear(&__total[i]);                                                  \
		__duet_sum_clear(&__self[i]);                                                   \
		if (*pmu##_used && __call) {                                                    \
			if (!__duet_any_delta(__totals, pmu, *pmu##_slot, *calls##_overhead,    \
					      &__call->at[i], &__call->inner[i],                \
					      __outer ? &__outer->inner[i] : NULL, &__total[i], \
					      &__self[i]))                                      \
				__error = 0;                                                    \
		}                                                                               \
	} while (0)

#define __DUET_ANY_NOTE(calls, pmu, i)                                                        \
	do {                                                                                  \
		if (*pmu##_used)                                                              \
			__duet_calibration_note(*pmu##_slot, *calls##_overhead, &__total[i]); \
	} while (0)

/*
 * 0 when at least one counter was read: those that were not say "not counted" (running 0) in @total
 * and @self, arrays of DUET_CALL_EVENTS sums in the order of the counters. -ENOENT: no open call.
 */
#define call_leave_any(calls, a, b, c, d, id, total, self)                                      \
	({                                                                                      \
		struct pmu_sum *__total = (total), *__self = (self);                            \
		struct duet_task_totals *__totals;                                              \
		struct duet_call *__call, *__outer;                                             \
		__u64 __id = (id);                                                              \
		long __error;                                                                   \
                                                                                                \
		barrier_var(__id);                                                              \
		__call = __duet_any_pop(calls, calls##_stats, *calls##_beside, __id, &__totals, \
					&__outer, &__error);                                    \
		if (__call && __call->state)                                                    \
			__error = __call->state, __call = NULL;                                 \
		else if (__call)                                                                \
			__error = -ENODATA;                                                     \
		__DUET_ANY_DELTA(calls, a, 0);                                                  \
		__DUET_ANY_DELTA(calls, b, 1);                                                  \
		__DUET_ANY_DELTA(calls, c, 2);                                                  \
		__DUET_ANY_DELTA(calls, d, 3);                                                  \
		if (__duet_calibrating && !__error) {                                           \
			__DUET_ANY_NOTE(calls, a, 0);                                           \
			__DUET_ANY_NOTE(calls, b, 1);                                           \
			__DUET_ANY_NOTE(calls, c, 2);                                           \
			__DUET_ANY_NOTE(calls, d, 3);                                           \
		}                                                                               \
		if (__error && __error != -ENOENT)                                              \
			__sync_fetch_and_add(&(calls##_stats)->no_value, 1);                    \
		__error;                                                                        \
	})
