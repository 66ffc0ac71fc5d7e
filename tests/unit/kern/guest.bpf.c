// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Kernel half of kern_guest.c: what the development machine's kernel cannot attach. */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 pid = 0;

struct {
	__u64 entered, returned, fentered, fexited, begun, ended;
} counts = {};

#define COUNT(field)                                            \
	do {                                                    \
		if (bpf_get_current_pid_tgid() >> 32 == pid)    \
			__sync_fetch_and_add(&counts.field, 1); \
		return 0;                                       \
	} while (0)

SEC("kprobe/do_nanosleep") int BPF_KPROBE(enter)
{
	COUNT(entered);
}

SEC("kretprobe/do_nanosleep") int BPF_KRETPROBE(leave)
{
	COUNT(returned);
}

SEC("fentry/do_nanosleep") int BPF_PROG(fenter)
{
	COUNT(fentered);
}

SEC("fexit/do_nanosleep") int BPF_PROG(fleave)
{
	COUNT(fexited);
}

SEC("tp/syscalls/sys_enter_nanosleep") int begin_tp(void *ctx)
{
	COUNT(begun);
}

SEC("tp/syscalls/sys_exit_nanosleep") int end_tp(void *ctx)
{
	COUNT(ended);
}

SEC("tp_btf/sched_switch") int begin_tp_btf(void *ctx)
{
	COUNT(begun);
}

SEC("tp_btf/sched_switch") int end_tp_btf(void *ctx)
{
	COUNT(ended);
}
