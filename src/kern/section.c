// SPDX-License-Identifier: BSD-2-Clause
#include "kern/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

/* Kinds of programs that we know: a row for each spelling. The first that fits is taken. */
static const struct section_kind kinds[] = {
	{ "kprobe.multi", KIND_KPROBE_MULTI, BPF_PROG_TYPE_KPROBE, false, attach_kprobe_multi },
	{ "kretprobe.multi", KIND_KRETPROBE_MULTI, BPF_PROG_TYPE_KPROBE, false,
	  attach_kprobe_multi },
	{ "kprobe", KIND_KPROBE, BPF_PROG_TYPE_KPROBE, false, attach_kprobe, check_kprobe },
	{ "kretprobe", KIND_KRETPROBE, BPF_PROG_TYPE_KPROBE, false, attach_kretprobe,
	  check_kprobe },
	{ "ksyscall", KIND_KSYSCALL, BPF_PROG_TYPE_KPROBE, false, attach_ksyscall },
	{ "kretsyscall", KIND_KRETSYSCALL, BPF_PROG_TYPE_KPROBE, false, attach_ksyscall },
	{ "uprobe", KIND_UPROBE, BPF_PROG_TYPE_KPROBE, false, attach_uprobe, check_uprobe },
	{ "uprobe.s", KIND_UPROBE, BPF_PROG_TYPE_KPROBE, false, attach_uprobe, check_uprobe },
	{ "uretprobe", KIND_URETPROBE, BPF_PROG_TYPE_KPROBE, false, attach_uprobe, check_uprobe },
	{ "uretprobe.s", KIND_URETPROBE, BPF_PROG_TYPE_KPROBE, false, attach_uprobe, check_uprobe },
	{ "usdt", KIND_USDT, BPF_PROG_TYPE_KPROBE, false, attach_usdt, check_usdt },
	{ "tracepoint", KIND_TRACEPOINT, BPF_PROG_TYPE_TRACEPOINT, false, attach_tracepoint,
	  check_tracepoint },
	{ "tp", KIND_TRACEPOINT, BPF_PROG_TYPE_TRACEPOINT, false, attach_tracepoint,
	  check_tracepoint },
	{ "raw_tracepoint", KIND_RAW_TP, BPF_PROG_TYPE_RAW_TRACEPOINT, false, attach_raw_tp,
	  check_raw_tp },
	{ "raw_tp", KIND_RAW_TP, BPF_PROG_TYPE_RAW_TRACEPOINT, false, attach_raw_tp, check_raw_tp },
	{ "raw_tracepoint.w", KIND_RAW_TP, BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, false,
	  attach_raw_tp, check_raw_tp },
	{ "raw_tp.w", KIND_RAW_TP, BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, false, attach_raw_tp,
	  check_raw_tp },
	{ "tp_btf", KIND_TP_BTF, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "fentry", KIND_FENTRY, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "fentry.s", KIND_FENTRY, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "fexit", KIND_FEXIT, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "fexit.s", KIND_FEXIT, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "fmod_ret", KIND_FMOD_RET, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "fmod_ret.s", KIND_FMOD_RET, BPF_PROG_TYPE_TRACING, true, attach_trace, check_btf },
	{ "lsm", KIND_LSM, BPF_PROG_TYPE_LSM, true, attach_trace, check_btf },
	{ "lsm.s", KIND_LSM, BPF_PROG_TYPE_LSM, true, attach_trace, check_btf },
	{ "iter", KIND_ITER, BPF_PROG_TYPE_TRACING, true, attach_auto },
	{ "iter.s", KIND_ITER, BPF_PROG_TYPE_TRACING, true, attach_auto },
	{ "perf_event", KIND_PERF_EVENT, BPF_PROG_TYPE_PERF_EVENT, false, attach_events },
	{ "syscall", KIND_SYSCALL, BPF_PROG_TYPE_SYSCALL, false, NULL },
};

static const struct section_kind other = { "", KIND_OTHER, BPF_PROG_TYPE_UNSPEC, false,
					   attach_auto };

void section_nearest(const char *section, char *near, size_t size)
{
	struct nearest nearest;
	char kind[64];
	size_t i;

	snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(section, "/:"), section);
	nearest_init(&nearest, kind);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		nearest_offer(&nearest, kinds[i].prefix);
	nearest_text(&nearest, near, size);
}

const struct section_kind *section_parse(const char *section, const char **target)
{
	size_t size = strcspn(section, "/:"), i;

	*target = section[size] && section[size + 1] ? section + size + 1 : NULL;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].prefix) == size && !strncmp(kinds[i].prefix, section, size))
			return &kinds[i];
	}
	return &other;
}
