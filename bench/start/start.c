// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* bpftrace's `uprobe:BINARY:bench_work { @[pid] = count(); }`: the same map, the same numbers. */
#include <duet.h>

char BINARY[256] = "";

PERCPU_HASH(calls, 4096, u64, u64);

SEC("uprobe/$BINARY:bench_work") int work(void *ctx)
{
	u64 pid = bpf_get_current_pid_tgid() >> 32, *count = map_at(&calls, &pid);

	if (count)
		*count += 1;
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	return print_map(&calls, "");
}
