// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's generic events by name, as perf spells them. */
#include "pmu/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HARDWARE(event) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event
#define SOFTWARE(event) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event

const struct pmu_name pmu_names[] = {
	{ "cycles", "cpu-cycles", HARDWARE(CPU_CYCLES), "", "cpu-clock", "core clock cycles" },
	{ "instructions", NULL, HARDWARE(INSTRUCTIONS), "", NULL, "instructions retired" },
	{ "cache-references", NULL, HARDWARE(CACHE_REFERENCES), "", NULL,
	  "accesses that reach the last-level cache" },
	{ "cache-misses", NULL, HARDWARE(CACHE_MISSES), "", NULL, "last-level cache misses" },
	{ "branches", "branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS), "", NULL,
	  "branches retired" },
	{ "branch-misses", NULL, HARDWARE(BRANCH_MISSES), "", NULL, "branches mispredicted" },
	{ "bus-cycles", NULL, HARDWARE(BUS_CYCLES), "", "cpu-clock", "bus clock cycles" },
	{ "stalled-cycles-frontend", "idle-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND), "",
	  NULL, "cycles in which no instruction was issued" },
	{ "stalled-cycles-backend", "idle-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND), "",
	  NULL, "cycles in which no instruction could retire" },
	{ "ref-cycles", NULL, HARDWARE(REF_CPU_CYCLES), "", "cpu-clock",
	  "cycles at the nominal frequency" },
	{ "cpu-clock", NULL, SOFTWARE(CPU_CLOCK), "ns", NULL, "time of the CPU" },
	{ "task-clock", NULL, SOFTWARE(TASK_CLOCK), "ns", NULL, "time of the task" },
	{ "page-faults", "faults", SOFTWARE(PAGE_FAULTS), "", NULL, "page faults" },
	{ "context-switches", "cs", SOFTWARE(CONTEXT_SWITCHES), "", NULL, "context switches" },
	{ "cpu-migrations", "migrations", SOFTWARE(CPU_MIGRATIONS), "", NULL,
	  "moves of a task to another CPU" },
	{ "minor-faults", NULL, SOFTWARE(PAGE_FAULTS_MIN), "", NULL,
	  "page faults without input or output" },
	{ "major-faults", NULL, SOFTWARE(PAGE_FAULTS_MAJ), "", NULL,
	  "page faults that read from a device" },
	{ "alignment-faults", NULL, SOFTWARE(ALIGNMENT_FAULTS), "", NULL,
	  "unaligned accesses that the kernel handled" },
	{ "emulation-faults", NULL, SOFTWARE(EMULATION_FAULTS), "", NULL,
	  "instructions that the kernel emulated" },
	{ "dummy", NULL, SOFTWARE(DUMMY), "", NULL, "counts nothing; carries side-band records" },
	{ "bpf-output", NULL, SOFTWARE(BPF_OUTPUT), "", NULL,
	  "records of bpf_perf_event_output()" },
	{ "cgroup-switches", NULL, SOFTWARE(CGROUP_SWITCHES), "", NULL,
	  "context switches to a task of another cgroup" },
	{ NULL },
};

const char *const pmu_probe_names[] = {
	"cycles",    "instructions",  "cache-references", "cache-misses",
	"branches",  "branch-misses", "LLC-load-misses",  "dTLB-load-misses",
	"cpu-clock", "task-clock",    "page-faults",      "context-switches",
	NULL,
};

static bool equals(const char *name, const char *text, size_t size)
{
	return name && strlen(name) == size && !memcmp(name, text, size);
}

const struct pmu_name *pmu_name_find(const char *text, size_t size)
{
	const struct pmu_name *row;

	for (row = pmu_names; row->name; row++) {
		if (equals(row->name, text, size) || equals(row->alias, text, size))
			return row;
	}
	return NULL;
}

const char *pmu_substitute(const char *text)
{
	const struct pmu_name *row = pmu_name_find(text, strcspn(text, ":/"));

	return row ? row->substitute : NULL;
}

#define SPELLINGS 6
/* First spelling: the canonical one. */
static const struct {
	unsigned int operations; /* bits 1 << PERF_COUNT_HW_CACHE_OP_* that perf offers */
	const char *spellings[SPELLINGS];
} caches[PERF_COUNT_HW_CACHE_MAX] = {
	[PERF_COUNT_HW_CACHE_L1D] = { 7, { "L1-dcache", "l1-d", "l1d", "L1-data" } },
	[PERF_COUNT_HW_CACHE_L1I] = { 5, { "L1-icache", "l1-i", "l1i", "L1-instruction" } },
	[PERF_COUNT_HW_CACHE_LL] = { 7, { "LLC", "L2" } },
	[PERF_COUNT_HW_CACHE_DTLB] = { 7, { "dTLB", "d-tlb", "Data-TLB" } },
	[PERF_COUNT_HW_CACHE_ITLB] = { 1, { "iTLB", "i-tlb", "Instruction-TLB" } },
	[PERF_COUNT_HW_CACHE_BPU] = { 1, { "branch", "bpu", "btb", "bpc" } },
	[PERF_COUNT_HW_CACHE_NODE] = { 7, { "node" } },
};
/* First the form in "-misses" names, then the plural that stands alone. */
static const char *const operations[PERF_COUNT_HW_CACHE_OP_MAX][SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = { "load", "loads", "read" },
	[PERF_COUNT_HW_CACHE_OP_WRITE] = { "store", "stores", "write" },
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = { "prefetch", "prefetches", "speculative-read",
					      "speculative-load" },
};
static const char *const results[PERF_COUNT_HW_CACHE_RESULT_MAX][SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = { "refs", "Reference", "ops", "access" },
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = { "misses", "miss" },
};

/* The number of characters of @text that are one of @spellings, up to its end or a '-'. */
static size_t spelled(const char *const spellings[SPELLINGS], const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < SPELLINGS && spellings[i]; i++) {
		size_t length = strlen(spellings[i]);

		if (length <= size && !memcmp(spellings[i], text, length) &&
		    (length == size || text[length] == '-'))
			return length;
	}
	return 0;
}

static void cache_name(int cache, int operation, int result, char *name, size_t size)
{
	const char *const *words = operations[operation];

	if (result == PERF_COUNT_HW_CACHE_RESULT_MISS)
		snprintf(name, size, "%s-%s-misses", caches[cache].spellings[0], words[0]);
	else
		snprintf(name, size, "%s-%s", caches[cache].spellings[0], words[1]);
}

/* One "-word" of a cache event: an operation or a result, each at most once. Its size, or 0. */
static size_t cache_word(const char *text, size_t size, int *operation, int *result)
{
	size_t length;
	int i;

	for (i = 0; *operation < 0 && i < PERF_COUNT_HW_CACHE_OP_MAX; i++) {
		length = spelled(operations[i], text, size);
		if (length) {
			*operation = i;
			return length;
		}
	}
	for (i = 0; *result < 0 && i < PERF_COUNT_HW_CACHE_RESULT_MAX; i++) {
		length = spelled(results[i], text, size);
		if (length) {
			*result = i;
			return length;
		}
	}
	return 0;
}

int pmu_cache_find(const char *text, size_t size, uint64_t *config, char *name, size_t name_size,
		   struct err *err)
{
	int cache, operation = -1, result = -1;
	size_t at = 0;

	for (cache = 0; cache < PERF_COUNT_HW_CACHE_MAX; cache++) {
		at = spelled(caches[cache].spellings, text, size);
		if (at)
			break;
	}
	if (!at)
		return -ENOENT;
	while (at < size) {
		size_t length = cache_word(text + at + 1, size - at - 1, &operation, &result);

		if (!length)
			return -ENOENT;
		at += 1 + length;
	}
	if (operation < 0)
		operation = PERF_COUNT_HW_CACHE_OP_READ;
	if (result < 0)
		result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	if (!(caches[cache].operations & 1u << operation))
		return err_set(err, -EINVAL, "%s events know no %s", caches[cache].spellings[0],
			       operations[operation][1]);
	*config = cache | operation << 8 | result << 16;
	cache_name(cache, operation, result, name, name_size);
	return 0;
}

void pmu_cache_each(void (*fn)(void *context, const char *name), void *context)
{
	int cache, operation, result;
	char name[64];

	for (cache = 0; cache < PERF_COUNT_HW_CACHE_MAX; cache++) {
		for (operation = 0; operation < PERF_COUNT_HW_CACHE_OP_MAX; operation++) {
			if (!(caches[cache].operations & 1u << operation))
				continue;
			for (result = 0; result < PERF_COUNT_HW_CACHE_RESULT_MAX; result++) {
				cache_name(cache, operation, result, name, sizeof(name));
				fn(context, name);
			}
		}
	}
}
