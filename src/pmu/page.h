/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A counter read without a system call, through the page that the kernel keeps for its event
 * (struct perf_event_mmap_page in linux/perf_event.h). Any thread.
 */
#pragma once

#include "pmu/pmu.h"

/* The instructions that it takes; tests have others. */
struct pmu_page_machine {
	int (*cpu)(void *context);        /* on which this thread runs; -errno */
	uint64_t (*ticks)(void *context); /* the clock that the page's time fields speak of */
	/* Counter @index, from 0, as the hardware has it: page->pmc_width bits are good. 0, or -EPERM:
	 * the CPU refused the instruction. */
	int (*counter)(void *context, uint32_t index, uint64_t *ret);
	void *context;
};
extern const struct pmu_page_machine pmu_page_this_machine;

/* The page of an event, or NULL: there is none, or nothing can be gained by it. */
struct perf_event_mmap_page *pmu_page_map(int fd);
void pmu_page_unmap(struct perf_event_mmap_page *page); /* NULL is fine */
bool pmu_page_is_useful(const struct perf_event_mmap_page *page);

/*
 * @cpu: the event's; -1 for an event of the calling thread. 0, or -EAGAIN where read(2) must do: the
 * thread runs elsewhere, the event has no counter at this moment (index 0: it waits for its turn,
 * is disabled, or has been ended), the CPU or the kernel does not allow it, or the page did not
 * come to rest. -EPERM: the kernel has forbidden it since it wrote the page (rdpmc set to 0). The
 * instruction has faulted then, which only the vm's handler of signals mends (base/fixup.h): not to
 * be tried again.
 */
int pmu_page_read(const struct pmu_page_machine *machine, const struct perf_event_mmap_page *page,
		  int cpu, struct pmu_reading *ret);
