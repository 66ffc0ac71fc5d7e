// SPDX-License-Identifier: BSD-2-Clause
/* Counters read in user space. Source: linux/perf_event.h, struct perf_event_mmap_page. */
#include "pmu/page.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fixup.h"

#define TRIES 16
/*
 * Two migrations of this thread, away from the event's CPU and back, would hide from two looks at
 * the CPU's number. They take far longer than this: some microseconds.
 */
#define TICKS_MAX 8192

/* ---- the machine ---------------------------------------------------------------------------- */

static int this_cpu(void *context)
{
	int cpu = sched_getcpu();

	(void)context;
	return cpu < 0 ? -errno : cpu;
}

#if defined(__x86_64__)

static uint64_t ticks(void *context)
{
	(void)context;
	return __builtin_ia32_rdtsc();
}

static int counter(void *context, uint32_t index, uint64_t *ret)
{
	uint32_t low = 0, high = 0;
	int code = -EPERM;

	(void)context;
	__asm__ volatile("1:\trdpmc\n\txorl %2, %2\n2:\n" FIXUP("1b", "2b")
			 : "+a"(low), "+d"(high), "+r"(code)
			 : "c"(index)
			 : "cc", "memory");
	*ret = (uint64_t)high << 32 | low;
	return code;
}

#elif defined(__aarch64__)

static uint64_t ticks(void *context)
{
	uint64_t value;

	(void)context;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
	return value;
}

/* The register is part of the instruction. */
#define ARM_READ(name)                                                                 \
	__asm__ volatile("1:\tmrs %0, " name "\n\tmov %w1, #0\n2:\n" FIXUP("1b", "2b") \
			 : "+r"(value), "+r"(code)::"memory")
#define ARM_COUNTER(number)                          \
	case number:                                 \
		ARM_READ("pmevcntr" #number "_el0"); \
		break;
#define ARM_CYCLES 31

static int counter(void *context, uint32_t index, uint64_t *ret)
{
	uint64_t value = 0;
	int code = -EPERM;

	(void)context;
	__asm__ volatile("isb" ::: "memory");
	switch (index) {
		ARM_COUNTER(0)
		ARM_COUNTER(1)
		ARM_COUNTER(2)
		ARM_COUNTER(3)
		ARM_COUNTER(4)
		ARM_COUNTER(5)
		ARM_COUNTER(6)
		ARM_COUNTER(7)
		ARM_COUNTER(8)
		ARM_COUNTER(9)
		ARM_COUNTER(10)
		ARM_COUNTER(11)
		ARM_COUNTER(12)
		ARM_COUNTER(13)
		ARM_COUNTER(14)
		ARM_COUNTER(15)
		ARM_COUNTER(16)
		ARM_COUNTER(17)
		ARM_COUNTER(18)
		ARM_COUNTER(19)
		ARM_COUNTER(20)
		ARM_COUNTER(21)
		ARM_COUNTER(22)
		ARM_COUNTER(23)
		ARM_COUNTER(24)
		ARM_COUNTER(25)
		ARM_COUNTER(26)
		ARM_COUNTER(27)
		ARM_COUNTER(28)
		ARM_COUNTER(29)
		ARM_COUNTER(30)
	case ARM_CYCLES:
		ARM_READ("pmccntr_el0");
	}
	*ret = value;
	return code;
}

#else
#error "say how this architecture reads a counter and its clock"
#endif

const struct pmu_page_machine pmu_page_this_machine = {
	.cpu = this_cpu,
	.ticks = ticks,
	.counter = counter,
};

/* ---- the page ------------------------------------------------------------------------------- */

struct perf_event_mmap_page *pmu_page_map(int fd)
{
	void *page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

void pmu_page_unmap(struct perf_event_mmap_page *page)
{
	if (page)
		munmap(page, sysconf(_SC_PAGESIZE));
}

/* Without the time, nobody could tell an event that ran from one that waited. */
bool pmu_page_is_useful(const struct perf_event_mmap_page *page)
{
	return page->cap_user_rdpmc && page->cap_user_time;
}

/* ns from the moment when the kernel wrote the page until @now. */
static uint64_t since_written(const struct perf_event_mmap_page *page, uint64_t now)
{
	uint64_t quotient, rest;

	/* The clock may have fewer bits than 64. */
	if (page->cap_user_time_short)
		now = page->time_cycles + ((now - page->time_cycles) & page->time_mask);
	quotient = now >> page->time_shift;
	rest = now & ((1ULL << page->time_shift) - 1);
	return page->time_offset + quotient * page->time_mult +
	       (rest * page->time_mult >> page->time_shift);
}

/* One attempt; what it read is good if the kernel has not written in between. */
static int read_fields(const struct pmu_page_machine *machine,
		       const struct perf_event_mmap_page *page, uint64_t now,
		       struct pmu_reading *ret)
{
	const volatile struct perf_event_mmap_page *live = page;
	uint32_t index = live->index;
	uint16_t width = live->pmc_width;
	uint64_t since, value;
	int code;

	if (!index || !pmu_page_is_useful(page) || !width || width > 64)
		return -EAGAIN;
	code = machine->counter(machine->context, index - 1, &value);
	if (code)
		return code;
	/* The hardware's value counts from a negative one on, up to the next interrupt. */
	value = (uint64_t)((int64_t)(value << (64 - width)) >> (64 - width));
	since = since_written(page, now);
	*ret = (struct pmu_reading){
		.count = live->offset + value,
		.enabled = live->time_enabled + since,
		.running = live->time_running + since,
	};
	return 0;
}

static bool is_elsewhere(const struct pmu_page_machine *machine, int cpu)
{
	return cpu >= 0 && machine->cpu(machine->context) != cpu;
}

int pmu_page_read(const struct pmu_page_machine *machine, const struct perf_event_mmap_page *page,
		  int cpu, struct pmu_reading *ret)
{
	struct pmu_reading reading;
	int i;

	for (i = 0; i < TRIES; i++) {
		uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		uint64_t now = machine->ticks(machine->context);
		int code;

		if (is_elsewhere(machine, cpu))
			return -EAGAIN;
		if (lock & 1) /* it writes */
			continue;
		code = read_fields(machine, page, now, &reading);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != lock)
			continue;
		if (code)
			return code;
		if (is_elsewhere(machine, cpu))
			return -EAGAIN;
		if (cpu >= 0 && machine->ticks(machine->context) - now > TICKS_MAX)
			continue;
		*ret = reading;
		return 0;
	}
	return -EAGAIN;
}
