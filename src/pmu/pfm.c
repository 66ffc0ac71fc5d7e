// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of libpfm4, where sysfs and the kernel have none: INST_RETIRED:ANY_P, skl::L1D:REPLACEMENT.
 * The library is opened when such a name is met, and then stays: few runs need it, and a machine
 * without it lacks these names only. Its state is its own and belongs to the process.
 */
#include "pmu/parser.h"

#include <dlfcn.h>
#include <errno.h>
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pfm {
	__typeof__(pfm_initialize) *initialize;
	__typeof__(pfm_get_os_event_encoding) *encode;
	__typeof__(pfm_strerror) *text;
	__typeof__(pfm_get_pmu_info) *pmu_info;
	__typeof__(pfm_get_event_info) *event_info;
	__typeof__(pfm_get_event_next) *next;
};

static bool pfm_open(struct pfm *pfm)
{
	void *library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	pfm->initialize = dlsym(library, "pfm_initialize");
	pfm->encode = dlsym(library, "pfm_get_os_event_encoding");
	pfm->text = dlsym(library, "pfm_strerror");
	pfm->pmu_info = dlsym(library, "pfm_get_pmu_info");
	pfm->event_info = dlsym(library, "pfm_get_event_info");
	pfm->next = dlsym(library, "pfm_get_event_next");
	return pfm->initialize && pfm->encode && pfm->text && pfm->pmu_info && pfm->event_info &&
	       pfm->next && pfm->initialize() == PFM_SUCCESS;
}

int pmu_parse_pfm(const struct pmu_parser *parser, const char *name, struct err *why)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	CLEANUP(free_pointer)
	char *full = NULL;
	pfm_perf_encode_arg_t encoded = { .attr = &attr, .fstr = &full, .size = sizeof(encoded) };
	struct pfm pfm = { 0 };
	int code;

	if (!strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") || !pfm_open(&pfm))
		return -ENOENT;
	/* Levels come from our own modifiers. */
	code = pfm.encode(name, PFM_PLM0 | PFM_PLM3 | PFM_PLMH, PFM_OS_PERF_EVENT, &encoded);
	if (code == PFM_ERR_NOTFOUND)
		return -ENOENT;
	if (code != PFM_SUCCESS)
		return err_set(why, -EINVAL, "libpfm4: %s", pfm.text(code));
	/* It would take the kernel's own names in capitals too: perf does not. */
	if (full && !strncmp(full, "perf", 4) && strncmp(name, "perf", 4))
		return -ENOENT;
	parser->event->attr.type = attr.type;
	parser->event->attr.config = attr.config;
	parser->event->attr.config1 = attr.config1;
	parser->event->attr.config2 = attr.config2;
	parser->event->software =
		attr.type == PERF_TYPE_SOFTWARE || attr.type == PERF_TYPE_TRACEPOINT;
	return 0;
}

void pmu_pfm_each(pmu_name_fn fn, void *context)
{
	pfm_pmu_info_t pmu = { .size = sizeof(pmu) };
	pfm_event_info_t event;
	struct pfm pfm = { 0 };
	char kind[64];
	int i, at;

	if (!pfm_open(&pfm))
		return;
	for (i = 0; i < PFM_PMU_MAX; i++) {
		/* libpfm4's own copies of the kernel's generic names are listed already. */
		if (pfm.pmu_info(i, &pmu) != PFM_SUCCESS || !pmu.is_present ||
		    i == PFM_PMU_PERF_EVENT || i == PFM_PMU_PERF_EVENT_RAW)
			continue;
		snprintf(kind, sizeof(kind), "libpfm4 %s", pmu.name);
		for (at = pmu.first_event; at >= 0; at = pfm.next(at)) {
			event = (pfm_event_info_t){ .size = sizeof(event) };
			if (pfm.event_info(at, PFM_OS_PERF_EVENT, &event) == PFM_SUCCESS)
				fn(context, event.name, kind, event.desc ?: "");
		}
	}
}
