// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Fills the ring from a hook, so that nobody reads meanwhile; then user/event sums a field. */
#include <duet.h>

#include "record.h"

u32 ROUNDS = 5;
OPTION(ROUNDS, "rounds", "how often the ring is filled and drained");

RING(ring, RING_BYTES);
u64 produced;
static u64 seen, sum, from;

SEC("raw_tp") int fill(void *ctx)
{
	int i;

	for (i = 0; i < RECORDS_A_RUN; i++) {
		/* The last of a run wakes us. */
		u64 flags = i < RECORDS_A_RUN - 1 ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
		struct record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

		if (!record)
			return 0;
		record->number = produced++;
		record->value = i;
		record->address = 0;
		record->cpu = 0;
		record->kind = 0;
		bpf_ringbuf_submit(record, flags);
	}
	return 0;
}

static u64 cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static int fill_ring(void)
{
	int i, code = 0;

	for (i = 0; i < RECORDS / RECORDS_A_RUN && !code; i++)
		code = probe_run(fill, 0);
	return code;
}

SEC("user/start") int start(void)
{
	return fill_ring();
}

SEC("user/event/ring") int event(const struct record *record, u64 size)
{
	sum += record->value;
	if (++seen == 1)
		from = cpu_time();
	if (seen < RECORDS)
		return 0;
	printf("%.2f\n", ratio(cpu_time() - from, RECORDS - 1));
	seen = 0;
	if (--ROUNDS)
		return fill_ring();
	if (sum != (u64)(RECORDS_A_RUN - 1) * (produced / 2))
		return -EINVAL;
	duet_stop(0);
	return 0;
}
