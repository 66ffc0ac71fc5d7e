// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Does the kernel keep time by itself? A timer that winds itself up again.
#include "program.h"

#define CLOCK_MONOTONIC 1
#define PERIOD_NS       1000000

struct clock {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock);
} clock SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ticks SEC(".maps");

static int tick(void *map, __u32 *key, struct clock *clock)
{
	__u64 *count;
	__u32 zero = 0;

	count = bpf_map_lookup_elem(&ticks, &zero);
	if (count)
		__sync_fetch_and_add(count, 1);
	bpf_timer_start(&clock->timer, PERIOD_NS, 0);
	return 0;
}

SEC("fentry/do_nanosleep") int BPF_PROG(wind_up)
{
	struct clock *first;
	__u32 zero = 0;

	if (!is_target())
		return 0;
	first = bpf_map_lookup_elem(&clock, &zero);
	if (!first || bpf_timer_init(&first->timer, &clock, CLOCK_MONOTONIC))
		return 0; /* it runs already */
	bpf_timer_set_callback(&first->timer, tick);
	bpf_timer_start(&first->timer, PERIOD_NS, 0);
	return 0;
}
