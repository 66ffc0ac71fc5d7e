/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests on machines that no guest is share: kernel.h with three counters a CPU. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kernel.h"

static const int four[] = { 0, 1, 2, 3 };
static const unsigned int rates[] = { 1, 2, 3, 4 };

static inline int setup(void **state)
{
	struct fake *fake = malloc(sizeof(*fake));

	fake_create(fake);
	kernel_start(fake, 3);
	*state = fake;
	return 0;
}

static inline int teardown(void **state)
{
	fake_destroy(*state);
	free(*state);
	return 0;
}

static inline struct pmu_counter *open_on(struct fake *fake, const char *text, size_t ncpus,
					  const struct pmu_counter *leader)
{
	struct pmu_counter *counter = NULL;
	struct pmu_event event;
	struct err err = { 0 };

	if (pmu_parse_on(&fake->system, text, &event, &err) ||
	    pmu_open_on(&fake->system, &event, four, ncpus, leader, &counter, &err))
		fail_msg("%s", err.text);
	return counter;
}

static inline uint64_t count_of(const struct pmu_counter *counter)
{
	struct pmu_reading reading;

	assert_int_equal(pmu_read(counter, &reading), 0);
	assert_int_equal(reading.enabled, reading.running);
	return reading.count;
}

static inline void attrs_are(const struct pmu_counter *counter, uint32_t type01, uint64_t config01,
			     uint32_t type23, uint64_t config23)
{
	int cpu;

	for (cpu = 0; cpu < 4; cpu++) {
		const struct perf_event_attr *attr = kernel_attr(pmu_counter_fd(counter, cpu));

		if (!(cpu < 2 ? type01 + 1 : type23 + 1)) {
			assert_null(attr);
			continue;
		}
		assert_int_equal(attr->type, cpu < 2 ? type01 : type23);
		assert_int_equal(attr->config, cpu < 2 ? config01 : config23);
	}
}

#define NONE (uint32_t) - 1

#define ON(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
