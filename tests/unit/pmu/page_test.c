// SPDX-License-Identifier: BSD-2-Clause
/* Counters read without a system call: the arithmetic on pages made here, then the real thing where
 * the CPU and the kernel allow it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "pmu/page.h"

/* A machine whose next answers are written down. */
static struct {
	int cpu[4]; /* one after the other, then the last */
	unsigned int cpus_asked, counters_asked, index;
	uint64_t ticks, tick, counter;
	struct perf_event_mmap_page *page; /* the kernel writes it while the counter is read: */
	unsigned int writes;               /* so many times */
	uint64_t written;                  /* adds so much to offset each time */
} world;

static int next_cpu(void *context)
{
	unsigned int i = world.cpus_asked++;

	return world.cpu[i < 3 ? i : 3];
}

static uint64_t next_ticks(void *context)
{
	world.ticks += world.tick;
	return world.ticks;
}

static int next_counter(void *context, uint32_t index, uint64_t *ret)
{
	world.counters_asked++;
	world.index = index;
	if (world.writes) {
		world.writes--;
		world.page->lock += 2;
		world.page->offset += world.written;
	}
	*ret = world.counter;
	return 0;
}

static const struct pmu_page_machine machine = { next_cpu, next_ticks, next_counter, NULL };

static struct perf_event_mmap_page good_page(void)
{
	memset(&world, 0, sizeof(world));
	world.ticks = 1000;
	return (struct perf_event_mmap_page){
		.lock = 8,
		.index = 3,
		.offset = 500,
		.time_enabled = 70,
		.time_running = 60,
		.cap_user_rdpmc = 1,
		.cap_user_time = 1,
		.pmc_width = 48,
		.time_mult = 1,
	};
}

static void value_is_offset_and_counter(void **state)
{
	struct perf_event_mmap_page page = good_page();
	struct pmu_reading reading;

	world.counter = 77;
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
	assert_int_equal(reading.count, 577);
	assert_int_equal(world.index, 2);
	assert_int_equal(reading.enabled, 1070);
	assert_int_equal(reading.running, 1060);
	assert_int_equal(world.counters_asked, 1);
}

/* The kernel sets a counter to minus the period: up to the interrupt its value is negative. */
static void narrow_counters_keep_their_sign(void **state)
{
	static const struct {
		uint16_t width;
		uint64_t counter, offset, count;
	} rows[] = {
		{ 48, 0xffffffffff00, 0x100, 0 },
		{ 48, 0xffffffffffff, 0x100, 0xff },
		{ 48, 0, 0x100, 0x100 },
		{ 48, 0x7fffffffffff, 1, 0x800000000000 },
		{ 48, 0x800000000000, 0x800000000000, 0 },
		{ 32, 0xfffffff0, 0x7fffffff00000010, 0x7fffffff00000000 },
		{ 32, 0x7fffffff, 0, 0x7fffffff },
		{ 64, 0xffffffffffffffff, 2, 1 },
		{ 1, 1, 1, 0 },
		/* Bits above the width say nothing. */
		{ 48, 0xabcd000000000005, 1, 6 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perf_event_mmap_page page = good_page();
		struct pmu_reading reading;

		page.pmc_width = rows[i].width;
		page.offset = rows[i].offset;
		world.counter = rows[i].counter;
		assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
		if (reading.count != rows[i].count)
			fail_msg("row %zu: %llx", i, (unsigned long long)reading.count);
	}
}

/* Over the interrupt and the wrap, with the kernel a little late: never backwards. */
static void wrap_goes_on_forwards(void **state)
{
	const uint64_t mask = (1ULL << 48) - 1, start = -1000ULL & mask;
	struct perf_event_mmap_page page = good_page();
	struct pmu_reading reading;
	uint64_t done, last = 0;

	page.offset = 1000;
	for (done = 0; done < 3000; done += 7) {
		world.counter = (start + done) & mask;
		if (done > 1500 && page.offset == 1000) { /* it sets the counter back by 2000 */
			page.lock += 2;
			page.offset += 2000;
		}
		if (page.offset == 3000)
			world.counter = (world.counter - 2000) & mask;
		assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
		assert_int_equal(reading.count, done);
		assert_true(reading.count >= last);
		last = reading.count;
	}
}

static void what_the_kernel_writes_in_between_is_read_again(void **state)
{
	struct perf_event_mmap_page page = good_page();
	struct pmu_reading reading = { .count = 7 };

	world.page = &page;
	world.writes = 3;
	world.written = 10;
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
	assert_int_equal(world.counters_asked, 4);
	assert_int_equal(reading.count, 530);
	/* It writes for ever: read(2) knows. */
	reading.count = 7;
	world.writes = 1000;
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), -EAGAIN);
	assert_int_equal(reading.count, 7);
	/* It is in the middle of it. */
	page.lock |= 1;
	world.writes = world.counters_asked = 0;
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), -EAGAIN);
	assert_int_equal(world.counters_asked, 0);
}

static void read_must_do(const char *what, const struct perf_event_mmap_page *page, int cpu)
{
	struct pmu_reading reading = { 1, 2, 3 };

	if (pmu_page_read(&machine, page, cpu, &reading) != -EAGAIN)
		fail_msg("%s: %llu", what, (unsigned long long)reading.count);
	assert_int_equal(reading.count, 1);
	assert_int_equal(reading.running, 3);
}

static void otherwise_read_must_do(void **state)
{
	struct perf_event_mmap_page page;

	page = good_page();
	page.index = 0;
	read_must_do("it has no counter now", &page, 0);
	assert_int_equal(world.counters_asked, 0);
	page = good_page();
	page.cap_user_rdpmc = 0;
	read_must_do("the CPU does not allow it", &page, 0);
	assert_int_equal(world.counters_asked, 0);
	page = good_page();
	page.cap_user_time = 0;
	read_must_do("nobody tells for how long it ran", &page, 0);
	page = good_page();
	page.pmc_width = 0;
	read_must_do("no width", &page, 0);
	page = good_page();
	page.pmc_width = 65;
	read_must_do("too wide", &page, 0);
	page = good_page();
	read_must_do("of another CPU", &page, 1);
	assert_int_equal(world.counters_asked, 0);
	page = good_page();
	world.cpu[1] = world.cpu[2] = world.cpu[3] = 1;
	read_must_do("moved while it was read", &page, 0);
	page = good_page();
	world.cpu[0] = -ENOSYS;
	read_must_do("no CPU's number", &page, 0);
	page = good_page();
	world.tick = 1000000;
	read_must_do("away for so long that it may have been elsewhere", &page, 0);
}

/* An event of a thread goes with it. */
static void own_event_is_read_wherever(void **state)
{
	struct perf_event_mmap_page page = good_page();
	struct pmu_reading reading;

	world.cpu[0] = world.cpu[1] = 5;
	world.tick = 1000000;
	assert_int_equal(pmu_page_read(&machine, &page, -1, &reading), 0);
	assert_int_equal(world.cpus_asked, 0);
}

static void time_is_scaled(void **state)
{
	struct perf_event_mmap_page page = good_page();
	struct pmu_reading reading;

	/* 2.5 ns a tick: more bits than a product of 64 would keep. */
	page.time_shift = 30;
	page.time_mult = 5u << 29;
	world.ticks = 1ULL << 61;
	page.time_offset = -(5ULL << 60);
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
	assert_int_equal(reading.enabled, 70);
	world.ticks += 1000;
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
	assert_int_equal(reading.enabled, 70 + 2500);
	assert_int_equal(reading.running, 60 + 2500);
	/* A clock of 32 bits, which has wrapped since the page was written. */
	page = good_page();
	page.cap_user_time_short = 1;
	page.time_mask = 0xffffffff;
	page.time_cycles = 0x5fffffff0;
	page.time_offset = -0x5fffffff0;
	world.ticks = 0x10;
	assert_int_equal(pmu_page_read(&machine, &page, 0, &reading), 0);
	assert_int_equal(reading.enabled, 70 + 0x20);
}

/* ---- the real thing ------------------------------------------------------------------------------ */

#if defined(__aarch64__)
static bool allow_user_reads(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_user_access", "w");
	bool good = file && fputs("1", file) >= 0;

	return file && !fclose(file) && good;
}
#endif

/* Two instructions a round. */
static void __attribute__((noinline)) spin(uint64_t rounds)
{
#if defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds)::"cc");
#else
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds)::"cc");
#endif
}

static void page_and_read_agree(void **state)
{
	enum { ROUNDS = 1000000 };
	struct pmu_reading before, after, called;
	struct perf_event_mmap_page *page;
	struct pmu_event event;
	unsigned int i;
	int fd, code;

	assert_int_equal(pmu_parse("instructions:u", &event, NULL), 0);
#if defined(__aarch64__)
	if (!allow_user_reads())
		return print_message("kernel.perf_user_access cannot be set here\n");
	event.attr.config1 = 2; /* the kernel wants it asked for: arm64's perf.rst */
#endif
	fd = pmu_open_self(&event);
	if (fd < 0)
		return print_message("no instructions are counted here\n");
	page = pmu_page_map(fd);
	assert_non_null(page);
	if (!pmu_page_is_useful(page)) {
		pmu_page_unmap(page);
		close(fd);
		return print_message("the kernel allows no reading in user space\n");
	}
	for (i = 0; i < 20; i++) {
		assert_int_equal(pmu_page_read(&pmu_page_this_machine, page, -1, &before), 0);
		spin(ROUNDS);
		code = pmu_page_read(&pmu_page_this_machine, page, -1, &after);
		assert_int_equal(read(fd, &called, sizeof(called)), sizeof(called));
		assert_int_equal(code, 0);
		assert_in_range(after.count - before.count, 2 * ROUNDS, 2 * ROUNDS + 200);
		assert_in_range(called.count - after.count, 1, 2000);
		assert_true(after.enabled > before.enabled && called.enabled >= after.enabled);
		assert_int_equal(after.enabled - after.running, called.enabled - called.running);
	}
	print_message("%u times %d instructions: the last %llu by the page, %llu more at read(2)\n",
		      i, 2 * ROUNDS, (unsigned long long)(after.count - before.count),
		      (unsigned long long)(called.count - after.count));
	/* Without a counter the page says so. */
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(page->index, 0);
	assert_int_equal(pmu_page_read(&pmu_page_this_machine, page, -1, &after), -EAGAIN);
	pmu_page_unmap(page);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_is_offset_and_counter),
		cmocka_unit_test(narrow_counters_keep_their_sign),
		cmocka_unit_test(wrap_goes_on_forwards),
		cmocka_unit_test(what_the_kernel_writes_in_between_is_read_again),
		cmocka_unit_test(otherwise_read_must_do),
		cmocka_unit_test(own_event_is_read_wherever),
		cmocka_unit_test(time_is_scaled),
		cmocka_unit_test(page_and_read_agree),
	};

	return cmocka_run_group_tests_name("pmu page", tests, NULL, NULL);
}
