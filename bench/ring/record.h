/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What both consumers read. */
#pragma once

#define RING_BYTES    (16 << 20)
#define RECORDS       200000 /* per fill: 8 MB with headers, so the ring never runs full */
#define RECORDS_A_RUN 1000   /* by one run of the filling program */

struct record {
	__u64 number, value, address;
	__u32 cpu, kind;
};
