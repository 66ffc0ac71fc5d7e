// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What do a program's own trace points tell?
#include "program.h"

#include <bpf/usdt.bpf.h>

struct usdt_steps {
	__u64 count, sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct usdt_steps);
} usdt_steps SEC(".maps");

SEC("usdt/" WORKLOAD ":workload:step") int BPF_USDT(on_step, long number)
{
	struct usdt_steps *known, fresh = {};
	__u32 id = bpf_get_current_pid_tgid();

	if (!is_target())
		return 0;
	bpf_map_update_elem(&usdt_steps, &id, &fresh, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&usdt_steps, &id);
	if (!known)
		return 0;
	known->count++; /* one thread, one element */
	known->sum += number;
	return 0;
}
