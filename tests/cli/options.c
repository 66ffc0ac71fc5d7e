// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the command line sets, printed. For options.t.
#include <duet.h>

enum colour { RED, BLUE, GREEN };

u64 limit = 10, wide;
u32 one = 1;
u8 small;
s32 offset;
bool flag;
char name[16];
enum colour colour;
double share;
const int fixed = 3;
struct {
	int a, b;
} pair;
const volatile u64 constant = 1;
u64 read_by_kernel;
s64 STOP, STOP_AT_ALL, FAIL, STOP_AFTER;

ARG(name, "NAME", "whom");
OPTION(limit, "limit", "how many");
OPTION(offset, "call", "how far");

PMU(spin, "cpu-clock");
EVENTS(bare);
ARRAY(cells, 8, u32);
HASH(by_name, 100, u64, u32);
HASH(
	values, 16, u32, struct value { struct pmu_sum spin; });
static u64 ticks;
u64 cpu_mask;

SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	struct value *value;
	struct pmu_sum sum;

	pmu_lap(spin, &sum);
	if (!in_target())
		return 0;
	read_by_kernel = constant;
	__sync_fetch_and_or(&cpu_mask, 1UL << (cpu & 63));
	value = map_at(&values, &zero);
	if (value)
		pmu_add(&value->spin, &sum);
	return 0;
}

u64 bare_counts;
SEC("raw_tp/sys_enter") int on_call(void *ctx)
{
	struct pmu_sum sum;

	if (in_target() && !pmu_read(&bare, &sum) && sum.count)
		bare_counts = 1;
	return 0;
}

SEC("user/start") int started(void)
{
	u64 i;

	printf("started\n");
	for (i = 0; i < 100; i++)
		if (bpf_map_update_elem(&by_name, &i, &one, BPF_ANY))
			break;
	if (FAIL)
		return FAIL;
	if (STOP || STOP_AT_ALL)
		duet_stop(STOP);
	return 0;
}

SEC("user/interval") int tick(const struct duet_tick *t)
{
	ticks++;
	if (STOP_AFTER && ticks == STOP_AFTER)
		duet_stop(0);
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	const u32 *cell;
	u32 i;

	printf("limit %llu small %u offset %d flag %d wide %llu\n", limit, small, offset, flag,
	       wide);
	printf("limit %llu  name %s colour %d share %g\n", limit, name, colour, share);
	printf("kernel read %llu\n", read_by_kernel);
	printf("cells");
	for (i = 0; i < 8; i++) {
		cell = bpf_map_lookup_elem(&cells, &i);
		printf(" %u", cell ? *cell : ~0U);
	}
	printf("\nby_name holds %llu\n", map_count(&by_name));
	printf("bare counts %llu\n", bare_counts);
	printf("ticks %llu\n", ticks);
	printf("cpus %llx\n", cpu_mask);
	print_map(&values, "");
	printf("exit: reason %d status %d\n", e->reason, e->status);
	return fixed - 3;
}
