/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The memory of totals.bpf.c that user space reads and writes. Included by both. */
#pragma once

#include <duet/shared.h>

struct totals_state {
	/* What a counter gains per context switch of a thread beyond what is the thread's: this
	 * program's cost, and the kernel's way from the tracepoint to the thread. By slot. */
	__duet_u64 cost[DUET_PMU_MAX];
	/* This program's part as duet_totals_cost finds it, and the slots (bits) for which it did. */
	__duet_u64 least[DUET_PMU_MAX];
	__duet_u64 found;
};
