// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which single system calls were the slowest, and whose were they?
//
//	duet run events.c -- find /usr -name '*.h'
//	duet run events.c --set DELAY_US=50 -- dd if=/dev/zero of=/dev/null count=100000
//
// Every system call of the target becomes a record in a ring buffer; the user half keeps the
// slowest and sorts them with qsort(). The ring is small: what finds no room is counted, and
// produced = handled + lost always holds.
#include <duet.h>

const volatile u64 DELAY_US = 0; /* a slow handler, to see losses */

struct record {
	u64 ns;
	u32 tid;
	u32 call;
	char comm[16];
};
RING(events, 4096);
HASH(started, 65536, u32, u64);
u64 produced, lost;

SEC("raw_tp/sys_enter") int on_enter(void *ctx)
{
	u32 tid = bpf_get_current_pid_tgid();
	u64 now = bpf_ktime_get_ns();

	if (in_target())
		bpf_map_update_elem(&started, &tid, &now, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_exit") int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tid = bpf_get_current_pid_tgid();
	u64 now = bpf_ktime_get_ns(), *since = bpf_map_lookup_elem(&started, &tid);
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	struct record *record;

	if (!since)
		return 0;
	__sync_fetch_and_add(&produced, 1);
	record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&lost, 1);
	} else {
		record->ns = now - *since;
		record->tid = tid;
#if defined(__TARGET_ARCH_arm64)
		record->call = BPF_CORE_READ(regs, syscallno);
#else
		record->call = BPF_CORE_READ(regs, orig_ax);
#endif
		bpf_get_current_comm(record->comm, sizeof(record->comm));
		bpf_ringbuf_submit(record, 0);
	}
	bpf_map_delete_elem(&started, &tid);
	return 0;
}

#define KEEP 1024
#define SHOW 10
static struct record kept[KEEP];
static u64 nkept, handled, total_ns;

static int slower_first(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return (y->ns > x->ns) - (y->ns < x->ns);
}

SEC("user/event/events") int on_event(const struct record *record, u64 size)
{
	handled++;
	total_ns += record->ns;
	if (nkept == KEEP) { /* forget the faster half */
		qsort(kept, nkept, sizeof(kept[0]), slower_first);
		nkept = KEEP / 2;
	}
	kept[nkept++] = *record;
	if (DELAY_US)
		usleep(DELAY_US);
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	u64 i;

	qsort(kept, nkept, sizeof(kept[0]), slower_first);
	printf("%-16s %8s %6s %12s %8s\n", "COMM", "TID", "CALL", "us", "share");
	for (i = 0; i < nkept && i < SHOW; i++) {
		const struct record *r = &kept[i];

		printf("%-16s %8u %6u %12.3f %7.1f%%\n", r->comm, r->tid, r->call,
		       ratio(r->ns, 1000), f64_mul(ratio(r->ns, total_ns), 100.0));
	}
	printf("produced %llu = handled %llu + lost %llu\n", produced, handled, lost);
	return 0;
}
