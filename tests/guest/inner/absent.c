// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A probe of a function that does not exist.
#include <duet.h>

HASH(counts, 16, u32, u64);

SEC("kprobe/do_nanosleeep") int unchecked(void *ctx)
{
	u32 key = 1;
	u64 *count = bpf_map_lookup_elem(&counts, &key);

	if (count)
		*count += 1;
	return 0;
}

SEC("user/exit") int report(void)
{
	return print_map(&counts, "");
}
