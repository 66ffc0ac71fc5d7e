/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every inline function and macro of the kernel half, in programs that a test loads and runs
 * (BPF_PROG_TEST_RUN). The results lie in global variables; tests/headers/headers_test.c knows
 * what must be in them.
 */
#include <duet.h>

PMU(faults, "page-faults");
PMU(task_time, "task-clock");
PMU_GROUP(both, "faults,task_time");
CALLS(calls, 100);
struct process {
	duet_pid pid;
	char comm[16];
};
struct pair {
	struct pmu_sum a, b;
	struct hist h;
	__u64 n;
};
HASH(by_pid, 4, __u32, struct pair);
HIST(hists, 4, __u32);
PERCPU_HASH(percpu_hash, 4, __u32, __u64);
LRU(lru, 4, __u32, __u64);
ARRAY(array, 4, __u64);
PERCPU_ARRAY(percpu_array, 4, __u64);
RING(ring, 4096);
EVENTS(events);
QUEUE(queue, 4, __u64);
STACK(stack, 4, __u64);
STACKS(stacks, 4);
struct prefix {
	__u32 prefixlen, address;
};
LPM(lpm, 4, struct prefix, __u64);

OPTIONS("-d 1s");
RECORD(sampler, "-e cpu-clock -F 99");
char FUNC[32] = "vfs_read";
const volatile __u32 LIMIT = 3;
ARG(FUNC, "FUNC", "function");
OPTION(LIMIT, "limit", "a limit");

__u64 input, divisor, result[16];
struct pmu_sum sum, delta, other;
struct hist hist;
long error[16];

SEC("raw_tp") int counters(void *ctx)
{
	struct pmu_sum now, lap;

	error[0] = pmu_read(&faults, &now);
	pmu_sub(&delta, &now, &sum);
	pmu_add(&sum, &delta);
	error[1] = pmu_lap(faults, &lap);
	result[0] = pmu_value(&lap);
	result[1] = pmu_value(&sum);
	return 0;
}

SEC("raw_tp") int scaled(void *ctx)
{
	result[0] = pmu_value(&sum);
	return 0;
}

SEC("raw_tp") int numbers(void *ctx)
{
	hist_add(&hist, input);
	hist_add(NULL, input);
	result[0] = hist_log2(input);
	result[1] = div_s64(input, divisor);
	result[2] = rem_s64(input, divisor);
	result[3] = in_target();
	return 0;
}

SEC("raw_tp") int lookups(void *ctx)
{
	__u32 key = input;
	struct prefix prefix = { 32, input };
	struct pair *pair = map_at(&by_pid, &key);
	__u64 *record;

	if (pair) {
		hist_add(&pair->h, 5);
		pmu_add(&pair->a, &delta);
		pmu_add(&pair->b, &delta);
		pair->n++;
	}
	hist_add(map_at(&hists, &key), 7);
	record = bpf_ringbuf_reserve(&ring, 1024, 0);
	if (record) {
		*record = input;
		bpf_ringbuf_submit(record, 0);
	}
	error[0] = bpf_ringbuf_output(&ring, &input, sizeof(input), 0);
	error[1] = bpf_map_update_elem(&lpm, &prefix, &input, BPF_ANY);
	error[2] = bpf_map_push_elem(&queue, &input, 0);
	error[3] = bpf_map_push_elem(&stack, &input, 0);
	record = map_at(&lru, &key);
	if (record)
		(*record)++;
	record = map_at(&percpu_hash, &key);
	if (record)
		(*record)++;
	key = 1;
	record = bpf_map_lookup_elem(&array, &key);
	if (record)
		__sync_fetch_and_add(record, 1);
	record = bpf_map_lookup_elem(&percpu_array, &key);
	if (record)
		(*record)++;
	error[4] = bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &input, sizeof(input));
	error[5] = bpf_get_stackid(ctx, &stacks, 0);
	return 0;
}

SEC("raw_tp") int enter(void *ctx)
{
	error[0] = call_enter(&calls, &faults, input);
	return 0;
}

SEC("raw_tp") int leave(void *ctx)
{
	error[0] = call_leave(&calls, &faults, &delta);
	return 0;
}

SEC("raw_tp") int leave_ip(void *ctx)
{
	error[0] = call_leave_ip(&calls, &faults, input, &delta);
	return 0;
}

SEC("raw_tp") int enter2(void *ctx)
{
	error[0] = call_enter2(&calls, &faults, &task_time, input);
	return 0;
}

SEC("raw_tp") int leave2(void *ctx)
{
	error[0] = call_leave2(&calls, &faults, &task_time, &delta, &other);
	return 0;
}

/* The shapes that break older verifiers: results on the stack, read on every path. */
SEC("raw_tp") int on_stack(struct bpf_raw_tracepoint_args *ctx)
{
	struct pmu_sum a, b, c;
	long bad = pmu_lap(faults, &a) | pmu_lap(task_time, &b);

	result[0] = a.count + b.count;
	bad |= call_enter(&calls, &faults, ctx->args[0]);
	bad |= call_leave_ip(&calls, &faults, ctx->args[0], &c);
	result[1] = c.count + c.enabled + c.running;
	bad |= call_leave2(&calls, &faults, &task_time, &a, &b);
	result[2] = a.count + b.count + pmu_value(&a);
	return bad != 0;
}

/* Stands in for duet's own sched_switch program. */
SEC("raw_tp") int prime(void *ctx)
{
	struct duet_cpu_last *cpu;
	__u32 zero = 0;

	cpu = bpf_map_lookup_elem(&__duet_cpu, &zero);
	if (!cpu)
		return 0;
	pmu_read(&faults, &cpu->last[faults_slot & 15]);
	pmu_read(&task_time, &cpu->last[task_time_slot & 15]);
	cpu->valid = ~0ULL;
	return 0;
}

SEC("kprobe") int BPF_KPROBE(kprobe_enter)
{
	if (!in_target())
		return 0;
	return call_enter(&calls, &faults, PT_REGS_IP(ctx)) < 0;
}
OPTIONAL(kprobe_enter);

SEC("kretprobe") int BPF_KRETPROBE(kprobe_leave, long ret)
{
	struct pmu_sum d;

	if (call_leave(&calls, &faults, &d) == 0)
		hist_add(&hist, pmu_value(&d));
	return 0;
}
