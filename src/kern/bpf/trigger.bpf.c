// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Never attached: BPF_PROG_TEST_RUN of a program of this kind makes the kernel call its empty
 * functions bpf_fentry_test1..., each once. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("fentry/bpf_fentry_test1") int duet_trigger(void *ctx)
{
	return 0;
}
