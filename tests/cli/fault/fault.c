// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which fault, in which hook? --set HOOK=N --set HOW=N, numbers of the enums.
#include <duet.h>

enum hook {
	IN_NOWHERE,
	IN_OPEN,
	IN_INIT,
	IN_START,
	IN_INTERVAL,
	IN_EVENT,
	IN_LOST,
	IN_CHILD,
	IN_SIGNAL,
	IN_EXIT
};
enum how {
	DO_NONE,
	DO_READ_NEAR_NULL,
	DO_WRITE_SNAPSHOT,
	DO_WRITE_CONSTANT,
	DO_WRITE_NULL,
	DO_WILD_CALL,
	DO_FREE_TWICE,
	DO_STRLEN_NULL,
	DO_DEEP_RECURSION,
	DO_BIG_FRAMES,
	DO_ENDLESS_LOOP,
	DO_ENDLESS_COMPARATOR,
	DO_FAULT_IN_COMPARATOR,
	DO_DIVIDE_BY_ZERO,
	DO_STOP_7,
	DO_RETURN_ERROR,
	DO_ENDLESS_SLEEP,
	DO_WILD_READ,
};
volatile u32 HOOK = IN_NOWHERE, HOW = DO_NONE;

RING(events, 4096);
HASH(table_of_sleeps, 16, u32, u64);
HASH(never, 1, u32, u64);
u64 __calls, zero;
static const char constant[16] = "constant";

SEC("tp/syscalls/sys_enter_getppid") int on_call(void *ctx)
{
	u64 one = 1, *record;
	u32 key = 7;

	if (!in_target())
		return 0;
	__sync_fetch_and_add(&__calls, 1);
	bpf_map_update_elem(&table_of_sleeps, &key, &one, BPF_ANY);
	record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
	if (record) {
		*record = 0x1234;
		bpf_ringbuf_submit(record, 0);
	}
	return 0;
}

static __noinline u64 read_at(const u64 *at)
{
	return *at; /* line of read_at */
}

static __noinline int recurse(u64 depth)
{
	volatile u64 mine = depth;

	return depth ? recurse(depth + 1) + mine : 0;
}

static __noinline int big_frames(u64 depth)
{
	volatile char mine[400];

	mine[depth % 400] = depth;
	return depth ? big_frames(depth + 1) + mine[7] : 0;
}

static int endless(const void *a, const void *b)
{
	for (;;)
		__calls += zero;
	return 0;
}

static int faulty(const void *a, const void *b)
{
	return read_at((const u64 *)0x18);
}

static __noinline int memory_fault(void)
{
	u32 key = 7, fresh = 8;
	u64 one = 1, *value;

	switch (HOW) {
	case DO_READ_NEAR_NULL:
		return read_at((const u64 *)0x10);
	case DO_WILD_READ:
		return read_at((const u64 *)0x123456789000);
	case DO_WRITE_SNAPSHOT:
		bpf_map_update_elem(&table_of_sleeps, &fresh, &one, BPF_ANY);
		value = bpf_map_lookup_elem(&table_of_sleeps, &fresh);
		if (value)
			*value = 2; /* line of the snapshot */
		return 0;
	case DO_WRITE_CONSTANT:
		*(volatile char *)constant = 'x'; /* line of the constant */
		return 0;
	case DO_WRITE_NULL:
		*(volatile u32 *)zero = 1; /* line of the NULL pointer */
		return 0;
	default:
		(void)key;
		return 0;
	}
}

static __noinline int foreign_fault(void)
{
	static u64 numbers[4] = { 4, 3, 2, 1 };
	int (*wild)(int) = (int (*)(int))(0x4444440 + zero);
	void *memory;

	switch (HOW) {
	case DO_WILD_CALL:
		return wild(1); /* line of the wild call */
	case DO_FREE_TWICE:
		memory = malloc(40);
		free(memory);
		free(memory);
		return 0;
	case DO_STRLEN_NULL:
		return strlen((const char *)zero); /* line of strlen */
	case DO_ENDLESS_COMPARATOR:
		qsort(numbers, 4, sizeof(numbers[0]), endless);
		return 0;
	case DO_FAULT_IN_COMPARATOR:
		qsort(numbers, 4, sizeof(numbers[0]), faulty);
		return 0;
	case DO_ENDLESS_SLEEP:
		for (;;)
			usleep(100000);
		return 0;
	default:
		return 0;
	}
}

static __noinline int other_fault(void)
{
	u32 divisor = zero, dividend = 7 + zero;

	switch (HOW) {
	case DO_DEEP_RECURSION:
		return recurse(1);
	case DO_BIG_FRAMES:
		return big_frames(1);
	case DO_ENDLESS_LOOP:
		for (;;)
			__calls += zero;
		return 0;
	case DO_DIVIDE_BY_ZERO:
		printf("7 / 0 = %u, 7 %% 0 = %u\n", dividend / divisor, dividend % divisor);
		return 0;
	case DO_STOP_7:
		duet_stop(7);
		return 0;
	case DO_RETURN_ERROR:
		return -EINVAL;
	default:
		return 0;
	}
}

static __noinline int fail_in(u32 hook)
{
	int result;

	if (HOOK != hook)
		return 0;
	fprintf(stderr, "in hook %u\n", hook);
	result = memory_fault() + foreign_fault();
	return result + other_fault();
}

SEC("user/open") int on_open(const struct duet_options *o)
{
	return fail_in(IN_OPEN);
}

SEC("user/init") int on_init(const struct duet_options *o)
{
	return fail_in(IN_INIT);
}

SEC("user/start") int on_start(void)
{
	fprintf(stderr, "started\n");
	if (HOOK == IN_LOST) /* the ring overflows meanwhile: it has room for 256 records */
		while (__calls < 600)
			usleep(1000);
	fprintf(stderr, "goes on\n");
	return fail_in(IN_START);
}

SEC("user/interval/20ms") int on_interval(const struct duet_tick *t)
{
	return fail_in(IN_INTERVAL);
}

SEC("user/event/events") int on_event(const u64 *record, u64 size)
{
	return fail_in(IN_EVENT);
}

SEC("user/lost") int on_lost(const struct duet_lost *l)
{
	return fail_in(IN_LOST);
}

SEC("user/child/fork") int on_fork(const struct duet_child *c)
{
	return fail_in(IN_CHILD);
}

SEC("user/signal/USR1") int on_signal(const struct duet_signal *s)
{
	return fail_in(IN_SIGNAL);
}

SEC("user/exit") int on_exit(const struct duet_exit *e)
{
	printf("exit: why %d status %d calls %llu\n", e->reason, e->status, __calls);
	fflush(stdout);
	return fail_in(IN_EXIT);
}
