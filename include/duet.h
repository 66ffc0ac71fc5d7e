/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * duet.h: what a duet script includes. One C file compiles into one BPF object with two halves:
 *
 *   kernel half	ordinary libbpf-style programs: SEC("kprobe/vfs_read"), SEC("raw_tp/sched_switch")
 *   user half		programs in SEC("user/HOOK"), run by duet in its own BPF virtual machine
 *
 * Both halves see the same maps and the same global variables. What each half may call:
 *
 *   header		kernel half	user half
 *   duet/maps.h	declarations, map_at(), counted bpf_ringbuf_reserve/output	+ map_*()
 *   duet/pmu.h		PMU(), pmu_read(), pmu_lap() ...	declarations, pmu_value()
 *   duet/calls.h	CALLS(), call_enter(), call_leave()	the counts in NAME_stats
 *   duet/calls_any.h	call_enter_any(), call_leave_any(), probe_instance()	-
 *   duet/hist.h	HIST(), hist_add()	+ hist_quantile(), hist_move(), print_hist()
 *   duet/target.h	in_target()	-
 *   duet/hooks.h	ARG(), OPTION(), OPTIONAL(), OPTIONS(), RECORD()	the same, hook arguments
 *   duet/control.h	-	probe_*(), prog_*(), event_*(), record_*(), duet_*()
 *   duet/report.h	-	print_map(), table(), print_hist(), ratio(), f64_*()
 *   duet/print.h	-	printf(), fprintf(), snprintf(), text()
 *   duet/libc.h	types and constants	the C and math library
 *
 * The bpf_*() helpers have the same names and numbers in both halves. A kernel program that
 * reaches a function of the user half is refused when the object is opened, with both names.
 *
 * Functions return 0 (or a count) and a negative errno (-ENOENT ...) unless they say otherwise.
 * Every out-parameter is written on every path, as the verifier of older kernels insists.
 * Include this file first: it brings the kernel's types (vmlinux.h) and libbpf's macros.
 */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include <duet/shared.h>

/* The kernel lets only GPL-compatible programs read counters and stacks. A script under another
 * compatible licence defines DUET_LICENSE before this header. */
#ifndef DUET_LICENSE
#define DUET_LICENSE "Dual BSD/GPL"
#endif
#ifndef DUET_NO_LICENSE /* the script has its own SEC("license") variable */
static const char __duet_license[] SEC("license") = DUET_LICENSE;
#endif

/* The architecture that the object was built for: duet refuses another one by name. */
#if defined(__TARGET_ARCH_x86)
static const char __duet_arch[] SEC(".duet.arch") = "x86_64";
#elif defined(__TARGET_ARCH_arm64)
static const char __duet_arch[] SEC(".duet.arch") = "arm64";
#else
#error "no __TARGET_ARCH_x86 or __TARGET_ARCH_arm64: compile with `duet build` or the flags of `duet cflags`"
#endif

#ifndef NULL
#define NULL ((void *)0)
#endif

/*
 * Meaning travels in typedef names: print_map() and table() show a field of such a type as what
 * it is. (Attributes on integers do not survive every compiler; typedef names do.)
 */
typedef __u64 duet_ns;     /* nanoseconds: 1.5 ms */
typedef __u64 duet_bytes;  /* 12.3 MiB */
typedef __u64 duet_cgroup; /* bpf_get_current_cgroup_id(): the cgroup's path */
typedef __u64 duet_kaddr;  /* kernel address: function+offset */
typedef __s32 duet_kstack; /* bpf_get_stackid(): kernel stack in a STACKS() map */
typedef __s32 duet_ustack; /* the same with BPF_F_USER_STACK */
typedef __u32 duet_pid;    /* thread group id; duet_ustack beside it is that process's */
typedef __u32 duet_cpu;    /* CPU number */

/*
 * Signed division, which BPF has only from instruction set v4 on (clang-14 crashes on `/` and `%`
 * of signed values, clang-19 allows them in the user half; kernels take them from 6.6 on).
 * Truncates towards zero like C. Division by 0 gives 0, its remainder is @a, as BPF defines it.
 */
static __always_inline __s64 div_s64(__s64 a, __s64 b)
{
	__u64 ua = a < 0 ? -(__u64)a : (__u64)a, ub = b < 0 ? -(__u64)b : (__u64)b;
	__u64 quotient = ub ? ua / ub : 0;

	return (a < 0) != (b < 0) ? -quotient : quotient;
}

/* The remainder of div_s64(): has the sign of @a. */
static __always_inline __s64 rem_s64(__s64 a, __s64 b)
{
	__u64 ua = a < 0 ? -(__u64)a : (__u64)a, ub = b < 0 ? -(__u64)b : (__u64)b;
	__u64 remainder = ub ? ua % ub : ua;

	return a < 0 ? -remainder : remainder;
}

#include <duet/libc.h>
#include <duet/maps.h>
#include <duet/pmu.h>
#include <duet/hist.h>
#include <duet/target.h>
#include <duet/calls.h>
#include <duet/calls_any.h>
#include <duet/hooks.h>
#include <duet/control.h>
#include <duet/report.h>
#include <duet/print.h>
#include <duet/ubpf.h>
