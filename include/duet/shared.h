/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both halves of a script and duet itself lay out alike. Included by duet.h (clang, target
 * bpf) and by duet's own C code, so: fixed-width types only, no pointers in shared structures.
 * Structures that hooks receive are extended only at their end.
 */
#pragma once

#ifdef __bpf__
typedef __u8 __duet_u8;
typedef __s32 __duet_s32;
typedef __u32 __duet_u32;
typedef __s64 __duet_s64;
typedef __u64 __duet_u64;
#else
#include <stdint.h>
typedef uint8_t __duet_u8;
typedef int32_t __duet_s32;
typedef uint32_t __duet_u32;
typedef int64_t __duet_s64;
typedef uint64_t __duet_u64;
#endif

/* A counter value, or a delta of one. Scaled when printed, never before. */
struct pmu_sum {
	__duet_u64 count;
	__duet_u64 enabled; /* ns that the event was enabled */
	__duet_u64 running; /* ns that it really counted: 0 means "not counted" */
};

/* log2 histogram: slot[0] holds values <= 1, slot[i] values in [2^i, 2^(i+1)). A value below 0 is
 * counted in slot[0]; `sum` is signed in that sense (two's complement). */
struct hist {
	__duet_u64 slot[64];
	__duet_u64 sum;
	__duet_u64 n;
};

#define DUET_PMU_MAX    16 /* PMU()s in one script */
#define DUET_CALL_DEPTH 16 /* open calls of one thread that are followed */

#define DUET_CALL_EVENTS 4 /* counters of one call at most */

/* One thread's stack of open calls of one CALLS(). */
struct duet_call {
	__duet_u64 ip;
	__duet_s64 state; /* 0, or the -errno with which the counters could not be read on entry */
	struct pmu_sum at[DUET_CALL_EVENTS];
	struct pmu_sum
		inner[DUET_CALL_EVENTS]; /* of the calls inside that ended, call_enter_any() */
};

struct duet_calls {
	__duet_u32 depth; /* open calls; those beyond DUET_CALL_DEPTH are counted only */
	__duet_u32 found; /* scratch of call_leave_ip() */
	struct duet_call call[DUET_CALL_DEPTH];
};

/* One thread's counter totals, kept by duet's own sched_switch program (map __duet_task, task
 * storage). `switches` changes whenever the thread was scheduled out: readers retry on it. */
struct duet_task_totals {
	__duet_u64 switches;
	struct pmu_sum total[DUET_PMU_MAX];
	struct duet_calls calls; /* of the script's first CALLS(): one look-up gives both */
};

/* The counters of this CPU when its current thread was switched in, or when it was last read by
 * the sched_switch program (map __duet_cpu, per-CPU array of one). Bit i of valid: last[i] is set. */
struct duet_cpu_last {
	__duet_u64 valid;
	struct pmu_sum last[DUET_PMU_MAX];
};

/* Parts of NAME_overhead of a CALLS(), DUET_PMU_MAX slots each: what a pair of probes costs. */
enum duet_overhead {
	DUET_OVERHEAD_ALONE,  /* the part that lies inside an outermost call */
	DUET_OVERHEAD_NESTED, /* the same inside a call with others around it */
	DUET_OVERHEAD_ALL,    /* the whole cost of a nested call: what those around it see */
	DUET_OVERHEADS
};

/* Counted by call_enter/call_leave, one per CALLS(): entered = left + in flight + unmatched. */
struct duet_call_stats {
	__duet_u64 entered;
	__duet_u64 left;
	__duet_u64 too_deep; /* entries beyond DUET_CALL_DEPTH: counted, not measured */
	__duet_u64 no_entry; /* returns without an open call (it was entered before we attached) */
	__duet_u64 no_value; /* returns for which no delta could be made */
	__duet_u64
		unmatched; /* open calls given up: call_leave_ip() found an outer one, or no memory */
};

#define DUET_CALIBRATION_SAMPLES 256 /* raw deltas kept while calibrating */

/* Raw deltas of call_leave() in the order they came, written only while __duet_calibrating is set
 * (global variable __duet_calibration). n keeps counting when raw[] is full. */
struct duet_calibration {
	__duet_u64 n;
	struct duet_raw_delta {
		__duet_s64 count;
		__duet_u32 slot; /* the PMU's NAME_slot */
		__duet_u32 unused;
	} raw[DUET_CALIBRATION_SAMPLES];
};

/* What the kernel half could not do, by map: records of varying size, one behind the other, in the
 * data section ".data.duet" (absent when the script has no such place). Several records may carry
 * the same name: one per place in the source. */
enum duet_failure_kind {
	DUET_FAILURE_FULL, /* map_at(): the map was full */
	DUET_FAILURE_RING, /* bpf_ringbuf_reserve/output: no room */
};
struct duet_failure {
	__duet_u64 failed;
	__duet_u32 kind; /* enum duet_failure_kind */
	__duet_u32
		size; /* bytes of the name that follows: the map as the source wrote it ("&by_proc"),
			  * NUL-padded to a multiple of 8 */
};

#define DUET_CPU_SET_WORDS 16 /* 64 CPUs each, for -C */

/* Why the run ends (struct duet_exit.reason). */
enum duet_reason {
	DUET_REASON_END,      /* CMD ended, all targets ended */
	DUET_REASON_DURATION, /* -d is over */
	DUET_REASON_SIGNAL,   /* SIGINT or SIGTERM */
	DUET_REASON_STOP,     /* duet_stop() */
	DUET_REASON_ERROR,    /* a hook failed or faulted, or duet did */
};

struct duet_exit {
	__duet_s32 reason; /* enum duet_reason */
	__duet_s32 status; /* what duet will exit with, as far as known */
	__duet_u64 samples;
	__duet_u64 lost;
};

struct duet_tick {
	__duet_u64 n;          /* 1, 2, 3 ... */
	__duet_u64 missed;     /* ticks that passed unserved since the last call */
	__duet_u64 now;        /* CLOCK_MONOTONIC, ns */
	__duet_u64 since_last; /* ns since the last call (or since start) */
};

struct duet_lost {
	__duet_u64 n;
	__duet_u32 what; /* 0: records of a perf-event array, 1: failed ring buffer reservations */
	__duet_u32 cpu;  /* ~0: unknown */
};

struct duet_child {
	__duet_u32 pid;    /* thread group id */
	__duet_u32 parent; /* thread group id of the parent, for fork */
	__duet_s32 status; /* wait status, for exit */
	char comm[16];
};

struct duet_signal {
	__duet_s32 number;
};

/* The run's options, as user/open and user/init see them. */
struct duet_options {
	__duet_u64 interval_ns; /* -I, 0: not given */
	__duet_u64 duration_ns; /* -d, 0: not given */
	__duet_u32 target;      /* enum duet_target_kind */
	__duet_u32 pid;  /* first of -p/-t, 0: none (CMD's pid is known from user/start on) */
	__duet_u32 cpus; /* CPUs that are measured */
	__duet_u32 dry_run;
};

enum duet_target_kind {
	DUET_TARGET_ALL,     /* in_target() is true for everybody */
	DUET_TARGET_TASKS,   /* threads in map __duet_tasks */
	DUET_TARGET_CGROUPS, /* members of __duet_cgroups and of all below them */
};

#define DUET_CGROUP_MAX 16 /* cgroups that -G takes */

/* A cgroup by its id (the inode number of its directory) and how deep it lies: 0 is the root. */
struct duet_cgroup_place {
	__duet_u64 id;
	__duet_u32 level;
	__duet_u32 unused;
};

/* Where a version 1 hierarchy is found from a task: byte offsets in this kernel's structures. */
struct duet_cgroup_layout {
	__duet_u32 task_set;          /* task_struct: css_set */
	__duet_u32 set_state;         /* css_set: state of this hierarchy's controller */
	__duet_u32 state_cgroup;      /* cgroup_subsys_state: cgroup */
	__duet_u32 cgroup_level;      /* cgroup */
	__duet_u32 cgroup_ancestors;  /* cgroup: array, from the root on */
	__duet_u32 cgroup_node;       /* cgroup: kernfs_node */
	__duet_u32 node_id;           /* kernfs_node */
	__duet_u32 ancestors_are_ids; /* before Linux 6.1 */
};

struct duet_cost {
	__duet_u64 wall;        /* ns since the last call */
	__duet_u64 cpu_self;    /* ns of CPU that duet itself used */
	__duet_u64 cpu_probes;  /* ns of CPU spent in the script's kernel programs */
	__duet_u64 cpu_samples; /* ns of CPU spent taking samples */
};
