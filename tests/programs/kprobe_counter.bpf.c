// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How often does each process sleep?
#include "program.h"

struct sleeper {
	__u64 calls;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct sleeper);
} sleepers SEC(".maps");

SEC("kprobe/do_nanosleep") int BPF_KPROBE(count_sleep)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct sleeper *known, fresh = { .calls = 1 };

	if (!is_target())
		return 0;
	known = bpf_map_lookup_elem(&sleepers, &pid);
	if (known) {
		__sync_fetch_and_add(&known->calls, 1);
		return 0;
	}
	bpf_get_current_comm(fresh.comm, sizeof(fresh.comm));
	if (bpf_map_update_elem(&sleepers, &pid, &fresh, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&sleepers, &pid);
		if (known)
			__sync_fetch_and_add(&known->calls, 1);
	}
	return 0;
}
