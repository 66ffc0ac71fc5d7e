/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel at the boundary of perf_event_open(2), read(2), ioctl(2) and mmap(2), for what the guests
 * cannot do: kinds of cores, counters that wrap, CPUs that come and go. Four CPUs; one at a time.
 */
#pragma once

#include "fake.h"

/* Puts it into @fake->system: all CPUs online, no event open. */
void kernel_start(struct fake *fake, unsigned int counters);
/* CPUs 0 and 1 are of cpu_core (type 4), 2 and 3 of cpu_atom (type 10), in place of "cpu". */
void kernel_make_hybrid(struct fake *fake);
/* It knows nothing of types in the upper half of config (and chooses the PMU by the CPU). */
void kernel_make_old(void);

/* Time passes on every CPU that is online, in slices between which events take turns; each event
 * that has a counter gains @rate[cpu] a ns. */
void kernel_run(uint64_t ns, const unsigned int rate[4]);
/* Events of a CPU end for good when it goes. */
void kernel_set_online(int cpu, bool online);

/* Raw contents of the counter of the event behind @fd, as the hardware has it: 48 bits. */
void kernel_set_counter(int fd, uint64_t value);
/* Where the caller runs, for reading without a system call; off: no event may be read so. */
void kernel_allow_user_reads(int cpu);
/* They are refused from now on, whatever the pages say. */
void kernel_forbid_user_reads(void);
unsigned int kernel_user_reads(void); /* how often it was tried */

/* What was opened last, and how often read(2) was called. */
const struct perf_event_attr *kernel_attr(int fd);
unsigned int kernel_reads(void);
unsigned int kernel_opened(void);
