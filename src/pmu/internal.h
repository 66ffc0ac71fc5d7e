/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share. */
#pragma once

#include "base/nearest.h"
#include "pmu/pmu.h"

/* A generic event of the kernel. */
struct pmu_name {
	const char *name;
	const char *alias; /* a second name, or NULL */
	uint32_t type;     /* PERF_TYPE_* */
	uint64_t config;
	const char *unit;
	const char *substitute; /* software event in its place, or NULL */
	const char *description;
};
extern const struct pmu_name pmu_names[]; /* ends with a NULL name */

const struct pmu_name *pmu_name_find(const char *text, size_t size);

/*
 * A cache event: any spelling that perf takes. The canonical name goes to @name (of @name_size).
 * -ENOENT: not the name of a cache; -EINVAL: a cache, but no such operation or result (the reason
 * is in @err, without the event's text).
 */
int pmu_cache_find(const char *text, size_t size, uint64_t *config, char *name, size_t name_size,
		   struct err *err);
/* All cache events that exist, as canonical names. */
void pmu_cache_each(void (*fn)(void *context, const char *name), void *context);

/* All names of libpfm4 for the PMUs of this machine. */
void pmu_pfm_each(pmu_name_fn fn, void *context);

/* ---- sysfs ------------------------------------------------------------------------------- */
/* Contents of a file without the trailing newline; size or -errno. -E2BIG if it does not fit. */
int pmu_read_file(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

bool pmu_sysfs_exists(const struct pmu_system *system, const char *pmu);
/* Type, cpumask. -ENOENT: no such PMU. */
int pmu_sysfs_init(const struct pmu_system *system, const char *pmu, struct pmu_event *event);
/* Puts @value where format/TERM says. -ENOENT: no such term; -ERANGE: *max is the largest that
 * fits; -EBADMSG: the kernel's format text is not understood. */
int pmu_sysfs_set_term(const struct pmu_system *system, const char *pmu, const char *term,
		       uint64_t value, struct perf_event_attr *attr, uint64_t *max);
/* Terms of events/NAME; its unit and scale go to @event. -ENOENT: no such event. */
int pmu_sysfs_alias(const struct pmu_system *system, const char *pmu, const char *name, char *terms,
		    size_t size, struct pmu_event *event);
/* A file of events/ that describes another: NAME.unit, NAME.scale ... */
bool pmu_sysfs_is_detail(const char *name);
/* The PMU that has an event of this bare name: 0 or -ENOENT. */
int pmu_sysfs_find_alias(const struct pmu_system *system, const char *name, char *pmu, size_t size);
/* Every name in a directory below the devices: PMUs for "", "PMU/format", "PMU/events". */
void pmu_sysfs_each(const struct pmu_system *system, const char *directory,
		    void (*fn)(void *context, const char *name), void *context);
/* Is it the PMU of the CPU's cores, or of one kind of them? */
bool pmu_sysfs_is_core(const struct pmu_system *system, const char *pmu);
/* Is there a PMU of the CPU's core? */
bool pmu_sysfs_has_core(const struct pmu_system *system);
/* A name of sysfs that can be put into a path: no '/', no leading dot. */
bool pmu_sysfs_name_ok(const char *name);

/* Sets type and config to those of a generic name or cache event on @pmu, one of several kinds of
 * cores: cpu_core/cycles/. -ENOENT: no such name, or there is one kind only. */
int pmu_generic_of(const struct pmu_system *system, const char *pmu, const char *name,
		   struct perf_event_attr *attr);

static inline const struct pmu_system *pmu_system_or_this(const struct pmu_system *system)
{
	return system ? system : &pmu_this_machine;
}
