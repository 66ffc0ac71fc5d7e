// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A script with every kind of probe that could be left behind, and a fault on demand.
#include <duet.h>

char BIN[256] = "";
volatile u32 FAULT = 0; /* 1: in user/start, 2: in user/exit */
u64 sleeps, returns, steps, results;

SEC("kprobe/do_nanosleep") int on_sleep(void *ctx)
{
	__sync_fetch_and_add(&sleeps, 1);
	return 0;
}

SEC("kretprobe/do_nanosleep") int on_return(void *ctx)
{
	__sync_fetch_and_add(&returns, 1);
	return 0;
}

SEC("kretprobe/vfs_read") int on_read(void *ctx)
{
	return 0;
}

SEC("uprobe/$BIN:work_step") int on_step(void *ctx)
{
	__sync_fetch_and_add(&steps, 1);
	return 0;
}

SEC("uretprobe/$BIN:work_step") int on_result(void *ctx)
{
	__sync_fetch_and_add(&results, 1);
	return 0;
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	return 0;
}

static __noinline u64 read_at(const u64 *at)
{
	return *at;
}

SEC("user/start") int start(void)
{
	fprintf(stderr, "started\n");
	return FAULT == 1 ? read_at((const u64 *)0x10) : 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	printf("sleeps %llu returns %llu steps %llu results %llu\n", sleeps, returns, steps,
	       results);
	return FAULT == 2 ? read_at((const u64 *)0x10) : 0;
}
