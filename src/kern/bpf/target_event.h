/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What target_tree.c sets in target.bpf.c, and what that tells it. */
#pragma once

#include <duet/shared.h>

enum target_event_kind {
	TARGET_FORK,
	TARGET_EXEC,
	TARGET_EXIT,
};

struct target_event {
	__duet_u32 what; /* enum target_event_kind */
	struct duet_child child;
};

/* Byte offsets in struct task_struct and struct signal_struct. */
struct target_offsets {
	__duet_u32 pid; /* the thread's id */
	__duet_u32 tgid;
	__duet_u32 comm;
	__duet_u32 exit_code;
	__duet_u32 group_leader;
	__duet_u32 signal;
	__duet_u32 signal_live;
	__duet_u32 signal_flags;
	__duet_u32 signal_group_exit_code;
};
