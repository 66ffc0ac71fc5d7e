/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#pragma once

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 target_pid = 0; /* 0: all processes */

static __always_inline int is_target(void)
{
	return !target_pid || bpf_get_current_pid_tgid() >> 32 == target_pid;
}
