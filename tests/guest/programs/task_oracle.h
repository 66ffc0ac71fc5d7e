/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by both halves of the oracle. */
#pragma once

#define ORACLE_MAX 8192

struct oracle_call {
	struct bpf_perf_event_value first, second;
	__u64 time;
};

struct oracle_result {
	__u64 ns; /* of all calls */
	__u64 count;
	__u64 delta[ORACLE_MAX];
};
