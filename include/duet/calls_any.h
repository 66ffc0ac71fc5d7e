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
 * @id tells functions apart, as in call_enter(); never 0. The first counter without an event ends the
 * list; those behind it cost nothing, and of their sums only the total's `running` is set, to 0.
 */
#pragma once

/* probe_instance(ctx): which target a program of kprobe, uprobe or tracepoint kind runs at: 0 for
 * the first (its section's, or that of the first probe_attach() in user/init), then 1, 2 ... */
#define probe_instance(ctx) bpf_get_attach_cookie(ctx)

#define __DUET_ANY_AT(pmu, i)                                          \
	__duet_sum_clear(&__call->inner[i]);                           \
	if (!__duet_total(__totals, pmu, *pmu##_slot, &__call->at[i])) \
	__error = 0

/* What is done for each counter that got an event: the first without one ends the list. Reading
 * the constants costs more than the rest. */
#define __DUET_ANY_EACH(a, b, c, d, do_a, do_b, do_c, do_d) \
	if (*a##_used) {                                    \
		do_a;                                       \
		if (*b##_used) {                            \
			do_b;                               \
			if (*c##_used) {                    \
				do_c;                       \
				if (*d##_used) {            \
					do_d;               \
				}                           \
			}                                   \
		}                                           \
	}

/* 0 when at least one of the counters could be read. The error stays with the call. */
#define call_enter_any(calls, a, b, c, d, id)                                                     \
	({                                                                                        \
		struct duet_task_totals *__totals;                                                \
		long __error = 0;                                                                 \
		__u64 __id = (id);                                                                \
		struct duet_call *__call;                                                         \
                                                                                                  \
		barrier_var(__id);                                                                \
		__call = __duet_call_push(calls, calls##_stats, *calls##_beside, __id, &__totals, \
					  &__error);                                              \
		if (__call && __totals) {                                                         \
			__error = -ENOENT;                                                        \
			__DUET_ANY_EACH(a, b, c, d, __DUET_ANY_AT(a, 0), __DUET_ANY_AT(b, 1),     \
					__DUET_ANY_AT(c, 2), __DUET_ANY_AT(d, 3))                 \
			__call->state = __error;                                                  \
		}                                                                                 \
		__error;                                                                          \
	})

static __always_inline long __duet_any_delta(struct duet_task_totals *totals, void *pmu, __u32 slot,
					     const volatile __s64 *overhead, __u32 around,
					     const struct pmu_sum *at, const struct pmu_sum *inner,
					     struct pmu_sum *outer, struct pmu_sum *total,
					     struct pmu_sum *self)
{
	long error = __duet_call_delta(totals, pmu, slot, overhead, around, at, total);

	if (error)
		return error;
	pmu_sub(self, total, inner);
	if (outer) {
		outer->count += total->count;
		outer->enabled += total->enabled;
		outer->running += total->running;
	}
	return 0;
}

#define __DUET_ANY_DELTA(calls, pmu, i)                                                        \
	if (__call &&                                                                          \
	    !__duet_any_delta(__totals, pmu, *pmu##_slot, *calls##_overhead, __around,         \
			      &__call->at[i], &__call->inner[i],                               \
			      __outer ? &__outer->inner[i] : NULL, &__total[i], &__self[i])) { \
		__error = 0;                                                                   \
	} else {                                                                               \
		__duet_sum_clear(&__total[i]);                                                 \
		__duet_sum_clear(&__self[i]);                                                  \
	}
#define __DUET_ANY_FORGET(calls, pmu) __duet_call_forget(__totals, *pmu##_slot, *calls##_overhead)
#define __DUET_ANY_NOTE(pmu, i)       __duet_calibration_note(*pmu##_slot, &__total[i])

/*
 * 0 when at least one counter was read: those that were not say "not counted" (running 0) in @total
 * and @self, arrays of DUET_CALL_EVENTS sums in the order of the counters. -ENOENT: no open call.
 * (The arrays are memory, hence barrier_var: as values clang would carry all of them, zeros for the
 * most part, through each branch.)
 */
#define call_leave_any(calls, a, b, c, d, id, total, self)                                         \
	({                                                                                         \
		struct pmu_sum *__total = (total), *__self = (self);                               \
		struct duet_task_totals *__totals;                                                 \
		struct duet_call *__call, *__outer = NULL;                                         \
		struct duet_calls *__open;                                                         \
		__u32 __around = 0, __beside = *calls##_beside;                                    \
		__u64 __id = (id);                                                                 \
		long __error;                                                                      \
                                                                                                   \
		barrier_var(__id);                                                                 \
		barrier_var(__total);                                                              \
		barrier_var(__self);                                                               \
		__total[0].running = __total[1].running = __total[2].running =                     \
			__total[3].running = 0;                                                    \
		__call = __duet_call_pop(calls, calls##_stats, __beside, __id, &__totals, &__open, \
					 &__around, &__error);                                     \
		if (__call && __around)                                                            \
			__outer = __duet_call_at(__open, __around - 1);                            \
		if (__call && __call->state)                                                       \
			__error = __call->state, __call = NULL;                                    \
		else if (__call)                                                                   \
			__error = -ENODATA;                                                        \
		__DUET_ANY_EACH(a, b, c, d, __DUET_ANY_DELTA(calls, a, 0),                         \
				__DUET_ANY_DELTA(calls, b, 1), __DUET_ANY_DELTA(calls, c, 2),      \
				__DUET_ANY_DELTA(calls, d, 3))                                     \
		if (__call && __duet_call_is_seen(__around, __beside)) {                           \
			__DUET_ANY_EACH(a, b, c, d, __DUET_ANY_FORGET(calls, a),                   \
					__DUET_ANY_FORGET(calls, b), __DUET_ANY_FORGET(calls, c),  \
					__DUET_ANY_FORGET(calls, d))                               \
		}                                                                                  \
		if (__duet_calibrating && !__error) {                                              \
			__DUET_ANY_EACH(a, b, c, d, __DUET_ANY_NOTE(a, 0), __DUET_ANY_NOTE(b, 1),  \
					__DUET_ANY_NOTE(c, 2), __DUET_ANY_NOTE(d, 3))              \
		}                                                                                  \
		if (__error && __error != -ENOENT)                                                 \
			__sync_fetch_and_add(&(calls##_stats)->no_value, 1);                       \
		__error;                                                                           \
	})
