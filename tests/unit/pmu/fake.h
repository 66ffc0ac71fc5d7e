/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine made of files in a temporary directory. */
#pragma once

#include "pmu/pmu.h"

struct fake {
	char root[64];
	char sysfs[96], procfs[96], tracefs[96];
	struct pmu_system system;
};

/* PMUs: "cpu" (type 4, formats, aliases), "uncore_x" (type 30, cpumask "1", unit and scale),
 * "odd" (type 31, formats that are not understood); CPUs 0-3 are online; a tracepoint; paranoid 2. */
void fake_create(struct fake *fake);
void fake_destroy(struct fake *fake);

/* One more file, below the root; a file or directory less. */
#define FAKE_DEVICES "sys/bus/event_source/devices/"
void fake_write(const struct fake *fake, const char *name, const char *text);
void fake_remove(const struct fake *fake, const char *name);
