// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Who sleeps? Told line by line, with bpf_printk.
#include "program.h"

static int is_workload(const char *comm)
{
	return comm[0] == 'w' && comm[1] == 'o' && comm[2] == 'r' && comm[3] == 'k' &&
	       comm[4] == 'l';
}

SEC("tp/syscalls/sys_enter_clock_nanosleep") int tell(void *ctx)
{
	char comm[16] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	if (is_target() && is_workload(comm))
		bpf_printk("sleep of %s", comm);
	return 0;
}
