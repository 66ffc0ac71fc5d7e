// SPDX-License-Identifier: BSD-2-Clause
/* Actions on the run: probes, events, the end. What they do is the session's (struct hook_ops). */
#include "hook/checked.h"
#include "hook/maps.h"

#include <errno.h>
#include <string.h>

#include <duet/shared.h>

#include "base/log.h"

/* &prog in user-half code is the name of the kernel program (link.c). */
static const char *program_argument(struct hook_half *half, uint64_t address)
{
	const struct user_half *user = half->options.user;
	size_t i;

	for (i = 0; i < user->nprograms; i++) {
		if (address == (uintptr_t)user->programs[i].name)
			return user->programs[i].name;
	}
	vm_raise(half->vm, "the first argument is no kernel program: write its name");
}

#define OPS(half) ((half)->options.ops)
#define RUN(half) ((half)->options.run)

NATIVE(fn_stop)
{
	struct hook_half *half = context;

	half->attention = true;
	RETURN_ERROR(OPS(half)->stop(RUN(half), (int)a1));
}

NATIVE(fn_probe_run)
{
	struct hook_half *half = context;

	RETURN_ERROR(OPS(half)->probe_run(RUN(half), program_argument(half, a1), (int)a2));
}

NATIVE(fn_probe_attach)
{
	struct hook_half *half = context;

	RETURN_ERROR(
		OPS(half)->probe_attach(RUN(half), program_argument(half, a1), (const char *)a2));
}

NATIVE(fn_probe_enable)
{
	struct hook_half *half = context;

	RETURN_ERROR(OPS(half)->probe_enable(RUN(half), program_argument(half, a1), true));
}

NATIVE(fn_probe_disable)
{
	struct hook_half *half = context;

	RETURN_ERROR(OPS(half)->probe_enable(RUN(half), program_argument(half, a1), false));
}

NATIVE(fn_prog_target)
{
	struct hook_half *half = context;

	RETURN_ERROR(
		OPS(half)->program_target(RUN(half), program_argument(half, a1), (const char *)a2));
}

NATIVE(fn_pmu_event)
{
	struct hook_half *half = context;

	RETURN_ERROR(OPS(half)->event_text(RUN(half), hook_map_argument(half, a1)->name,
					   (const char *)a2));
}

NATIVE(fn_event_supported)
{
	struct hook_half *half = context;

	return OPS(half)->event_supported((const char *)a1) == 1;
}

NATIVE(fn_pmu_bound)
{
	struct hook_half *half = context;

	return OPS(half)->event_bound(RUN(half), hook_map_argument(half, a1)->name) == 1;
}

NATIVE(fn_pmu_total)
{
	struct hook_half *half = context;

	memset((void *)a2, 0, sizeof(struct pmu_sum));
	RETURN_ERROR(OPS(half)->pmu_read(RUN(half), hook_map_argument(half, a1)->name, -1,
					 (uint64_t *)a2));
}

NATIVE(fn_pmu_together)
{
	struct hook_half *half = context;
	const char *const names[] = { hook_map_argument(half, a1)->name,
				      hook_map_argument(half, a3)->name };
	uint64_t *const values[] = { (uint64_t *)a2, (uint64_t *)a4 };

	memset((void *)a2, 0, sizeof(struct pmu_sum));
	memset((void *)a4, 0, sizeof(struct pmu_sum));
	RETURN_ERROR(OPS(half)->pmu_together(RUN(half), names, values));
}

NATIVE(fn_cost)
{
	struct hook_half *half = context;

	RETURN_ERROR(OPS(half)->cost(RUN(half), (uint64_t *)a1));
}

/* assert() of a script: the hook ends like after any fault, with the words of the script. */
NATIVE(fn_assert)
{
	struct hook_half *half = context;
	char text[160];

	snprintf(text, sizeof(text), "%.90s:%d: assertion `%.50s` failed", (const char *)a2,
		 (int)a3, (const char *)a1);
	vm_raise(half->vm, text);
}

NATIVE(fn_cpus)
{
	struct hook_half *half = context;

	return OPS(half)->cpus(RUN(half));
}

NATIVE(fn_verbose)
{
	return log_get_level() >= LOG_VERBOSE;
}

/* What `duet record` will do; in a run without it the answer is one error number. */
NATIVE(fn_not_recording)
{
	struct hook_half *half = context;

	if (!half->told_record) {
		half->told_record = true;
		log_note("this script records samples or steers them: not in duet run: its "
			 "record_*() and event_*() calls return -EOPNOTSUPP");
	}
	RETURN_ERROR(-EOPNOTSUPP);
}

NATIVE(fn_no_samples)
{
	return 0;
}

static const struct vm_contract cost_out = { .args = { { VM_WRITE,
							 .bytes = sizeof(struct duet_cost) } } };
static const struct vm_contract sum_out = {
	.args = { { VM_ANY }, { VM_WRITE, .bytes = sizeof(struct pmu_sum) } }
};
static const struct vm_contract sums_out = { .args = {
						     { VM_ANY },
						     { VM_WRITE, .bytes = sizeof(struct pmu_sum) },
						     { VM_ANY },
						     { VM_WRITE, .bytes = sizeof(struct pmu_sum) },
					     } };

const struct hook_function hook_functions_control[] = {
	{ "duet_stop", fn_stop, &hook_contract_none },
	{ "duet_cost", fn_cost, &cost_out },
	{ "duet_cpus", fn_cpus, &hook_contract_none },
	{ "duet_verbose", fn_verbose, &hook_contract_none },
	{ "__duet_assert", fn_assert, &hook_contract_two_texts },
	{ "probe_run", fn_probe_run, &hook_contract_none },
	{ "probe_attach", fn_probe_attach, &hook_contract_second_text },
	{ "probe_enable", fn_probe_enable, &hook_contract_none },
	{ "probe_disable", fn_probe_disable, &hook_contract_none },
	{ "prog_target", fn_prog_target, &hook_contract_second_text },
	{ "prog_enable", fn_probe_enable, &hook_contract_none },
	{ "prog_disable", fn_probe_disable, &hook_contract_none },
	{ "pmu_event", fn_pmu_event, &hook_contract_second_text },
	{ "pmu_bound", fn_pmu_bound, &hook_contract_none },
	{ "event_supported", fn_event_supported, &hook_contract_text },
	{ "pmu_total", fn_pmu_total, &sum_out },
	{ "pmu_together", fn_pmu_together, &sums_out },
	{ "event_period", fn_not_recording, &hook_contract_none },
	{ "event_freq", fn_not_recording, &hook_contract_none },
	{ "event_enable", fn_not_recording, &hook_contract_none },
	{ "event_disable", fn_not_recording, &hook_contract_none },
	{ "event_samples", fn_no_samples, &hook_contract_none },
	{ "record_start", fn_not_recording, &hook_contract_none },
	{ "record_stop", fn_not_recording, &hook_contract_none },
	{ "record_snapshot", fn_not_recording, &hook_contract_none },
	{ "record_rotate", fn_not_recording, &hook_contract_none },
	{ "record_mark", fn_not_recording, &hook_contract_none },
	{ NULL },
};
