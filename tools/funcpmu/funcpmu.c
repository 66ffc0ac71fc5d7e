// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What do calls of a function cost the threads that make them? Any events, any functions.
//
//	duet funcpmu vfs_read,vfs_write -- tar cf /dev/null /etc
//	duet funcpmu -e '{cycles,instructions},cache-misses' tcp_sendmsg -p 1234 -d 10
//	duet funcpmu /usr/sbin/mysqld:my_read -e cycles:u,instructions:u -p 1234 -d 10
//	duet funcpmu 'syscalls:sys_enter_read..syscalls:sys_exit_read' -a -- sleep 5
//
// The counters are the thread's own: sleep, preemption and other threads do not count, nor does
// what the probes themselves cost. Calls nest: `self` is what is left when the calls inside that
// are measured too are taken off.
#include <duet.h>
#include <bpf/usdt.bpf.h>

#define FUNCTIONS 64
#define NAME      64

char functions[1024] = "";
ARG(functions, "FUNC[,FUNC...]",
    "FUNC, PATH:FUNC, FUNC+0xN..FUNC+0xM, SUBSYSTEM:A..SUBSYSTEM:B, usdt:PATH:P:A..usdt:PATH:P:B");
u32 by_process = 0;
OPTION(by_process, "by-process", "1: a row for each process");
u32 histograms = 0;
OPTION(histograms, "hist", "1: the distribution of every event over the calls");

PMU_ANY(a);
PMU_ANY(b);
PMU_ANY(c);
PMU_ANY(d);
CALLS(calls, 10240);

struct cost {
	u64 calls;
	struct pmu_sum a, a_self;
	struct pmu_sum b, b_self;
	struct pmu_sum c, c_self;
	struct pmu_sum d, d_self;
	struct hist a_call, b_call, c_call, d_call;
};
struct where {
	u32 function; /* as probe_instance() numbers them */
	u32 pid;
};
ARRAY(__costs, FUNCTIONS, struct cost); /* unless by process */
HASH(__costs_by_process, 4096, struct where, struct cost);

struct row {
	char function[NAME];
	duet_pid pid;
};
struct row_of_all {
	char function[NAME];
};
/* Filled for the report. */
HASH(by_function, FUNCTIONS, struct row_of_all, struct cost);
HASH(by_function_and_process, 4096, struct row, struct cost);

/* ---- kernel half ------------------------------------------------------------------------------ */

const volatile u32 per_process = 0; /* by_process, as a constant */
const volatile u32 single = 0;      /* there is one function: its number is 0 */

static __always_inline struct cost *cost_of(u32 function)
{
	struct where where = { .function = function };

	if (!per_process)
		return bpf_map_lookup_elem(&__costs, &function);
	where.pid = bpf_get_current_pid_tgid() >> 32;
	return map_at(&__costs_by_process, &where);
}

/*
 * As little as possible for each call, all of it atomic; complete() makes the rest of it. @self is
 * what the calls inside cost so far, because mostly there are none.
 */
static __always_inline void charge(struct pmu_sum *sum, struct pmu_sum *self, struct hist *hist,
				   const struct pmu_sum *total, const struct pmu_sum *own)
{
	struct pmu_sum inner;

	if (!total->running)
		return;
	pmu_add(sum, total);
	if (own->running != total->running) {
		pmu_sub(&inner, total, own);
		pmu_add(self, &inner);
	}
	__sync_fetch_and_add(&hist->slot[hist_log2(pmu_value(total)) & 63], 1);
}

static __always_inline int begin(u64 function)
{
	call_enter_any(&calls, &a, &b, &c, &d, function + 1);
	return 0;
}

static __always_inline int end(u64 function)
{
	struct pmu_sum total[DUET_CALL_EVENTS], self[DUET_CALL_EVENTS];
	struct cost *cost;

	if (call_leave_any(&calls, &a, &b, &c, &d, function + 1, total, self))
		return 0;
	cost = cost_of(function);
	if (!cost)
		return 0;
	/* The others are counted in its histogram. */
	if (!total[0].running)
		__sync_fetch_and_add(&cost->calls, 1);
	charge(&cost->a, &cost->a_self, &cost->a_call, &total[0], &self[0]);
	charge(&cost->b, &cost->b_self, &cost->b_call, &total[1], &self[1]);
	charge(&cost->c, &cost->c_self, &cost->c_call, &total[2], &self[2]);
	charge(&cost->d, &cost->d_self, &cost->d_call, &total[3], &self[3]);
	return 0;
}

SEC("kprobe") int enter(struct pt_regs *ctx)
{
	return begin(single ? 0 : probe_instance(ctx));
}

SEC("kretprobe") int leave(struct pt_regs *ctx)
{
	return end(single ? 0 : probe_instance(ctx));
}

SEC("tracepoint") int enter_tracepoint(void *ctx)
{
	return begin(probe_instance(ctx));
}

SEC("tracepoint") int leave_tracepoint(void *ctx)
{
	return end(probe_instance(ctx));
}

SEC("usdt") int enter_usdt(struct pt_regs *ctx)
{
	return begin(bpf_usdt_cookie(ctx));
}

SEC("usdt") int leave_usdt(struct pt_regs *ctx)
{
	return end(bpf_usdt_cookie(ctx));
}

/* ---- user half: from the names to probes ------------------------------------------------------ */

/* Kinds of a target, by its shape. */
enum { KERNEL, USER, PAIR_KERNEL, PAIR_USER, PAIR_TRACEPOINT, PAIR_USDT };

static char name_of[FUNCTIONS][NAME];
static char first_of[FUNCTIONS][256], last_of[FUNCTIONS][256];
static u32 kind_of[FUNCTIONS];
static u32 count;
static u32 live;

static int usage(const char *what, const char *why)
{
	fprintf(stderr, "funcpmu: %s: %s: see `duet funcpmu --help`\n", what, why);
	duet_stop(2);
	return 1;
}

static int kind_of_pair(const char *text)
{
	const char *colon = strchr(text, ':');

	if (!strncmp(text, "usdt:", 5))
		return PAIR_USDT;
	if (!colon)
		return PAIR_KERNEL;
	return strchr(text, '/') && strchr(text, '/') < colon ? PAIR_USER : PAIR_TRACEPOINT;
}

/* One of the FUNC,FUNC... */
static int take(const char *text)
{
	static const char *const prefix[] = { "kprobe:", "uprobe:", "kprobe:", "uprobe:", "", "" };
	static const char *const suffix[] = { "kretprobe:", "uretprobe:", "kprobe:",
					      "uprobe:",    "",           "" };
	const char *dots = strstr(text, "..");
	u32 size = dots ? dots - text : strlen(text), kind;

	if (count == FUNCTIONS)
		return usage(text, "too many functions: 64 at most");
	if (!size || size > 200 || (dots && (!dots[2] || strlen(dots) > 200)))
		return usage(text, "no function");
	if (dots)
		kind = kind_of_pair(text);
	else
		kind = strchr(text, ':') ? USER : KERNEL;
	kind_of[count] = kind;
	snprintf(name_of[count], NAME, "%s", text);
	snprintf(first_of[count], 256, "%s%.*s", prefix[kind], (int)size, text);
	snprintf(last_of[count], 256, "%s%s", suffix[kind], dots ? dots + 2 : text);
	count++;
	return 0;
}

static int take_all(void)
{
	char list[1024], *at = list, *comma;
	int error;

	if (!functions[0])
		return usage("which FUNC?", "name one, or several with commas");
	snprintf(list, sizeof(list), "%s", functions);
	do {
		comma = strchr(at, ',');
		if (comma)
			*comma = 0;
		error = take(at);
		at = comma + 1;
	} while (comma && !error);
	return error;
}

/* Without -e: how fast, and how good with the cache; or what any machine can count. */
static void choose_events(void)
{
	if (pmu_bound(&a) || pmu_bound(&b) || pmu_bound(&c) || pmu_bound(&d))
		return;
	if (event_supported("instructions")) {
		pmu_event(&a, "cycles");
		pmu_event(&b, "instructions");
		if (event_supported("cache-misses"))
			pmu_event(&c, "cache-misses");
		return;
	}
	fprintf(stderr, "funcpmu: this machine counts no cycles: task-clock, page-faults and "
			"context-switches instead (duet doctor says why)\n");
	pmu_event(&a, "task-clock");
	pmu_event(&b, "page-faults");
	pmu_event(&c, "context-switches");
}

SEC("user/open") int prepare(const struct duet_options *options)
{
	bool pairs = false, usdt = false, plain = false;
	int error = take_all();
	u32 i;

	if (error)
		return error;
	choose_events();
	set_constant(per_process, by_process);
	set_constant(single, count == 1);
	if (by_process) {
		map_max_entries(&by_function, 1);
	} else {
		map_max_entries(&__costs_by_process, 1);
		map_max_entries(&by_function_and_process, 1);
	}
	live = options->interval_ns != 0;
	for (i = 0; i < count; i++) {
		pairs |= kind_of[i] == PAIR_TRACEPOINT;
		usdt |= kind_of[i] == PAIR_USDT;
		plain |= kind_of[i] < PAIR_TRACEPOINT;
	}
	if (pairs + usdt + plain > 1)
		return usage(functions, "tracepoints, USDT probes and functions cannot be mixed");
	/* What the probes cost is measured with the first pair. */
	if (plain) {
		prog_target(&enter, first_of[0]);
		prog_target(&leave, last_of[0]);
	} else {
		prog_disable(&enter);
		prog_disable(&leave);
	}
	if (pairs) {
		prog_target(&enter_tracepoint, first_of[0]);
		prog_target(&leave_tracepoint, last_of[0]);
	} else {
		prog_disable(&enter_tracepoint);
		prog_disable(&leave_tracepoint);
	}
	if (usdt) {
		prog_target(&enter_usdt, first_of[0]);
		prog_target(&leave_usdt, last_of[0]);
	} else {
		prog_disable(&enter_usdt);
		prog_disable(&leave_usdt);
	}
	return 0;
}

SEC("user/init") int attach_all(const struct duet_options *options)
{
	const void *first = &enter, *last = &leave;
	int error;
	u32 i;

	if (kind_of[0] == PAIR_TRACEPOINT) {
		first = &enter_tracepoint;
		last = &leave_tracepoint;
	} else if (kind_of[0] == PAIR_USDT) {
		first = &enter_usdt;
		last = &leave_usdt;
	}
	if (options->dry_run)
		return 0;
	for (i = 0; i < count; i++) {
		error = probe_attach(first, first_of[i]);
		if (!error)
			error = probe_attach(last, last_of[i]);
		if (error)
			return error;
	}
	return 0;
}

/* ---- user half: the report -------------------------------------------------------------------- */

static struct cost copy;

static void complete(const struct pmu_sum *sum, struct pmu_sum *self, struct hist *hist)
{
	u32 i;

	pmu_sub(self, sum, self);
	hist->n = 0;
	for (i = 0; i < 64; i++)
		hist->n += hist->slot[i];
	hist->sum = sum->running ? pmu_value(sum) : 0;
}

static void copy_cost(const struct cost *cost)
{
	memcpy(&copy, cost, sizeof(copy));
	complete(&copy.a, &copy.a_self, &copy.a_call);
	complete(&copy.b, &copy.b_self, &copy.b_call);
	complete(&copy.c, &copy.c_self, &copy.c_call);
	complete(&copy.d, &copy.d_self, &copy.d_call);
	copy.calls += copy.a_call.n;
}

static long add_row(void *map, const void *key, void *value, void *context)
{
	const struct where *where = key;
	struct row row = { .pid = where->pid };

	if (where->function >= FUNCTIONS)
		return 0;
	copy_cost(value);
	memcpy(row.function, name_of[where->function], NAME);
	bpf_map_update_elem(&by_function_and_process, &row, &copy, BPF_ANY);
	return 0;
}

static void add_rows(void)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct cost *cost = bpf_map_lookup_elem(&__costs, &i);
		struct row_of_all row = {};

		if (!cost)
			continue;
		copy_cost(cost);
		if (!copy.calls)
			continue;
		memcpy(row.function, name_of[i], NAME);
		bpf_map_update_elem(&by_function, &row, &copy, BPF_ANY);
	}
}

#define COLUMNS                                                                              \
	"calls,a,a_mean,a_call.p50,a_call.p99,a_self,b,b_mean,b_call.p50,b_call.p99,b_self," \
	"c,c_mean,c_call.p50,c_call.p99,c_self,d,d_mean,d_call.p50,d_call.p99,d_self "       \
	"a_mean=a/calls:.1 b_mean=b/calls:.1 c_mean=c/calls:.1 d_mean=d/calls:.1 sort=-a,-b"

static void print_costs(void)
{
	if (by_process)
		bpf_for_each_map_elem(&__costs_by_process, add_row, NULL, 0);
	else
		add_rows();
	if (by_process)
		print_map(&by_function_and_process, "title='calls by function and process' "
						    "cols=function,pid," COLUMNS);
	else
		print_map(&by_function, "title='calls by function' cols=function," COLUMNS);
}

SEC("user/interval") int tick(const struct duet_tick *t)
{
	if (live)
		print_costs();
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	const struct duet_call_stats *s = &calls_stats;
	u64 in_flight = s->entered - s->left - s->unmatched;

	if (!count)
		return 0;
	print_costs();
	if (histograms && by_process)
		print_hists(&by_function_and_process, "");
	else if (histograms)
		print_hists(&by_function, "");
	if (in_flight || s->no_entry || s->too_deep || s->no_value || s->unmatched)
		printf("%llu calls entered, %llu returned; %llu still inside, %llu without entry, "
		       "%llu returns missed, %llu too deep, %llu without value\n",
		       s->entered, s->left, in_flight, s->no_entry, s->unmatched, s->too_deep,
		       s->no_value);
	return 0;
}
