// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Who runs at what IPC and with how many misses, now? By process, thread, or cgroup.
//
//	duet ipctop                         # a table that is redrawn each second
//	duet ipctop --by thread -p 1234 -I 500
//	duet ipctop --by cgroup --sort ipc --top 5 -d 10
//	duet ipctop -e cycles:u,LLC-load-misses,branch-misses
//
// IPC is instructions per cycle; misses are per 1,000 instructions. Where the machine counts
// neither, time, faults and switches are shown instead.
#include <duet.h>

char by[16] = "process";
OPTION(by, "by", "process, thread or cgroup (container)");
char sort[16] = "time";
OPTION(sort, "sort", "time (the first event), ipc (the worst first) or misses");
u32 top = 20;
OPTION(top, "top", "rows: 20");

PMU_ANY(first);
PMU_ANY(second);
PMU_ANY(third);
PMU_GROUP(together, "first,second,third");

struct process {
	duet_pid pid;
	char comm[16];
};
struct thread {
	duet_pid pid;
	u32 tid;
	char comm[16];
};
struct use {
	struct pmu_sum first, second, third;
};
HASH(by_process, 10240, struct process, struct use);
HASH(by_thread, 10240, struct thread, struct use);
HASH(by_cgroup, 4096, duet_cgroup, struct use);

/* ---- kernel half ------------------------------------------------------------------------------ */

enum { BY_PROCESS, BY_THREAD, BY_CGROUP };
const volatile u32 grouping = BY_PROCESS;

static __always_inline struct use *use_of_current(void)
{
	u64 id = bpf_get_current_pid_tgid();

	if (grouping == BY_CGROUP) {
		duet_cgroup cgroup = bpf_get_current_cgroup_id();

		return map_at(&by_cgroup, &cgroup);
	}
	if (grouping == BY_THREAD) {
		struct thread thread = { .pid = id >> 32, .tid = id };

		bpf_get_current_comm(thread.comm, sizeof(thread.comm));
		return map_at(&by_thread, &thread);
	}
	struct process process = { .pid = id >> 32 };

	bpf_get_current_comm(process.comm, sizeof(process.comm));
	return map_at(&by_process, &process);
}

/* Laps first, for everybody: what one ran must not be charged to the next. */
static __always_inline int charge(void)
{
	struct pmu_sum a = {}, b = {}, c = {};
	long bad = 0;
	struct use *use;

	if (first_used)
		bad |= pmu_lap(first, &a);
	if (second_used)
		bad |= pmu_lap(second, &b);
	if (third_used)
		bad |= pmu_lap(third, &c);
	/* The idle thread of a CPU is nobody. */
	if (bad || !bpf_get_current_pid_tgid() || !in_target())
		return 0;
	use = use_of_current();
	if (!use)
		return 0;
	if (first_used)
		pmu_add(&use->first, &a);
	if (second_used)
		pmu_add(&use->second, &b);
	if (third_used)
		pmu_add(&use->third, &c);
	return 0;
}

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	return charge();
}

/* No target: run on each CPU before a report, for the slice that is still running. */
SEC("raw_tp") int flush(void *ctx)
{
	return charge();
}

/* ---- user half -------------------------------------------------------------------------------- */

/* With the default events there are an IPC and a miss rate to compute. */
static u32 standard, misses, quiet, sort_by;
enum { SORT_TIME, SORT_IPC, SORT_MISSES };

static int usage(const char *option, const char *value, const char *known)
{
	fprintf(stderr, "ipctop: --%s %s: it takes %s\n", option, value, known);
	return duet_stop(2);
}

static void choose_events(void)
{
	if (pmu_bound(&first) || pmu_bound(&second) || pmu_bound(&third))
		return;
	if (event_supported("cycles") && event_supported("instructions")) {
		pmu_event(&first, "cycles");
		pmu_event(&second, "instructions");
		standard = 1;
		misses = event_supported("cache-misses");
		if (misses)
			pmu_event(&third, "cache-misses");
		return;
	}
	fprintf(stderr, "ipctop: this machine counts no cycles: task-clock, page-faults and "
			"context-switches instead (duet doctor says why)\n");
	pmu_event(&first, "task-clock");
	pmu_event(&second, "page-faults");
	pmu_event(&third, "context-switches");
}

SEC("user/open") int prepare(const struct duet_options *options)
{
	u32 grouped = BY_PROCESS;

	if (!strcmp(by, "thread"))
		grouped = BY_THREAD;
	else if (!strcmp(by, "cgroup") || !strcmp(by, "container"))
		grouped = BY_CGROUP;
	else if (strcmp(by, "process"))
		return usage("by", by, "process, thread or cgroup");
	set_constant(grouping, grouped);
	if (!strcmp(sort, "ipc"))
		sort_by = SORT_IPC;
	else if (!strcmp(sort, "misses"))
		sort_by = SORT_MISSES;
	else if (strcmp(sort, "time"))
		return usage("sort", sort, "time, ipc or misses");
	if (grouped != BY_PROCESS)
		map_max_entries(&by_process, 1);
	if (grouped != BY_THREAD)
		map_max_entries(&by_thread, 1);
	if (grouped != BY_CGROUP)
		map_max_entries(&by_cgroup, 1);
	choose_events();
	report_top(top);
	/* Into a file, only what was asked for: each -I, or one table at the end. */
	quiet = !options->interval_ns && !isatty(1);
	return 0;
}

/* One table for each way to look: option strings are literals, so that they can be checked. */
#define EACH(show, map, options)                                                                   \
	do {                                                                                       \
		if (sort_by == SORT_IPC && standard && misses)                                     \
			show(map,                                                                  \
			     "sort=ipc ipc=second/first:.2 mpki=third*1000/second:.2 " options);   \
		else if (sort_by == SORT_IPC && standard)                                          \
			show(map, "sort=ipc ipc=second/first:.2 " options);                        \
		else if (sort_by == SORT_MISSES && standard && misses)                             \
			show(map,                                                                  \
			     "sort=-mpki ipc=second/first:.2 mpki=third*1000/second:.2 " options); \
		else if (sort_by == SORT_MISSES)                                                   \
			show(map, "sort=-second,-first " options);                                 \
		else if (standard && misses)                                                       \
			show(map, "sort=-first ipc=second/first:.2 "                               \
				  "mpki=third*1000/second:.2 " options);                           \
		else if (standard)                                                                 \
			show(map, "sort=-first ipc=second/first:.2 " options);                     \
		else                                                                               \
			show(map, "sort=-first " options);                                         \
	} while (0)

SEC("user/interval") int tick(const struct duet_tick *t)
{
	if (quiet)
		return 0;
	probe_run(&flush, -1);
	if (grouping == BY_THREAD)
		EACH(table, &by_thread, "title='threads' since-last live");
	else if (grouping == BY_CGROUP)
		EACH(table, &by_cgroup, "title='cgroups' key=cgroup since-last live");
	else
		EACH(table, &by_process, "title='processes' since-last live");
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	if (!quiet)
		return 0;
	if (grouping == BY_THREAD)
		EACH(print_map, &by_thread, "title='threads'");
	else if (grouping == BY_CGROUP)
		EACH(print_map, &by_cgroup, "title='cgroups' key=cgroup");
	else
		EACH(print_map, &by_process, "title='processes'");
	return 0;
}
