// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the user half can do, one line of output per feature. For user.t.
#include <duet.h>

/* ---- maps of every kind, filled by both halves ------------------------------------------------- */
HASH(hash, 64, u32, u64);
LRU(lru, 64, u32, u64);
ARRAY(array, 4, u64);
PERCPU_ARRAY(percpu_array, 2, u64);
PERCPU_HASH(percpu_hash, 8, u32, u64);
QUEUE(queue, 8, u32);
STACK(stack, 8, u32);
STACKS(stacks, 64);
struct prefix {
	u32 prefixlen;
	u8 address[4];
};
LPM(routes, 8, struct prefix, u32);
HIST(hists, 8, u32);
struct hist whole;
u64 calls;

SEC("raw_tp/sys_enter") int on_call(void *ctx)
{
	u32 zero = 0, one = 1;
	u64 *value, first = 1;

	if (!in_target())
		return 0;
	__sync_fetch_and_add(&calls, 1);
	value = bpf_map_lookup_elem(&array, &one);
	if (value)
		__sync_fetch_and_add(value, 1);
	value = bpf_map_lookup_elem(&percpu_array, &one);
	if (value)
		*value += 1;
	value = bpf_map_lookup_elem(&percpu_hash, &zero);
	if (value)
		*value += 1;
	else
		bpf_map_update_elem(&percpu_hash, &zero, &first, BPF_NOEXIST);
	hist_add(&whole, 100);
	hist_add(map_at(&hists, &one), 1000);
	bpf_get_stackid(ctx, &stacks, 0);
	return 0;
}

/* ---- pointer tables, static data ------------------------------------------------------------------ */
static int twice(int x)
{
	return 2 * x;
}
static int square(int x)
{
	return x * x;
}
static const struct {
	const char *name;
	int (*function)(int x);
} table_of[] = { { "twice", twice }, { "square", square } };
static const char *const words[] = { "zero", "one", "two" };
static const char *changing[] = { "old", "old" };
static int (*chosen)(int x) = twice;

static __noinline void pointers(void)
{
	u32 i;

	printf("table:");
	for (i = 0; i < 2; i++)
		printf(" %s %d", table_of[i].name, table_of[i].function(7));
	changing[1] = words[2];
	printf("; %s %s; %d", changing[0], changing[1], chosen(4));
	chosen = square;
	printf(" %d\n", chosen(4));
}

/* ---- calls ---------------------------------------------------------------------------------------- */
static __noinline u64 factorial(u32 n)
{
	return n < 2 ? 1 : n * factorial(n - 1);
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static __noinline void sorting(void)
{
	int numbers[] = { 5, -3, 9, 0, 7 }, key = 7, *found;

	qsort(numbers, 5, sizeof(int), by_number);
	found = bsearch(&key, numbers, 5, sizeof(int), by_number);
	printf("sorted: %d %d %d %d %d, 7 at %lld; 10! = %llu\n", numbers[0], numbers[1],
	       numbers[2], numbers[3], numbers[4], found ? (long long)(found - numbers) : -1LL,
	       factorial(10));
}

/* ---- printf, text, files ------------------------------------------------------------------------- */
static __noinline void text_and_files(void)
{
	char buffer[64], line[64], *copy = strdup("copy"), *block = malloc(1000);
	FILE *file;

	printf("mix: %d %s %.2f %c %5.1f%% %x %lld %-4s| %llu %s %g\n", -1, "text", 2.5, 'c', 99.5,
	       255U, -5000000000LL, "ab", ~0ULL, copy, 1e100);
	text(buffer, "%s-%d", "text", 7);
	memset(block, 'x', 999);
	block[999] = 0;
	printf("text: %s, %llu, %d\n", buffer, (u64)strlen(block), strcmp(copy, "copy"));
	free(block);
	free(copy);
	file = fopen("/proc/self/comm", "r");
	if (file && fgets(line, sizeof(line), file))
		printf("file: %s", line);
	if (file)
		fclose(file);
	printf("numbers: %ld %.3f %.1f %.1f %d\n", strtol("0x10", NULL, 0), sqrt(2.0),
	       f64_add(strtod("1.5", NULL), 2.0), pow(2.0, 10.0), f64_lt(1.0, ratio(3, 2)));
	snprintf(buffer, sizeof(buffer), "%08.3f", ratio(22, 7));
	puts(buffer);
	fprintf(stderr, "to standard error %d\n", 1);
}

/* ---- maps from this half ----------------------------------------------------------------------------- */
static long add_up(void *map, const void *key, void *value, void *sum)
{
	*(u64 *)sum += *(u64 *)value;
	return 0;
}

static long count_to(u32 index, void *context)
{
	*(u64 *)context += index;
	return index == 9;
}

static __noinline void hashes(void)
{
	u64 value, sum = 0, loops = 0, *found;
	u32 key, next, steps = 0;

	for (key = 0; key < 10; key++) {
		value = key * key;
		bpf_map_update_elem(&hash, &key, &value, BPF_NOEXIST);
		bpf_map_update_elem(&lru, &key, &value, BPF_ANY);
	}
	key = 3;
	printf("hash: %d %d %d", (int)bpf_map_update_elem(&hash, &key, &value, BPF_NOEXIST),
	       (int)bpf_map_delete_elem(&hash, &key), (int)bpf_map_delete_elem(&hash, &key));
	found = bpf_map_lookup_elem(&hash, &key);
	printf(" %s", found ? "there" : "gone");
	key = 4;
	found = bpf_map_lookup_elem(&hash, &key);
	bpf_for_each_map_elem(&hash, add_up, &sum, 0);
	for (next = 0, key = 0; !map_next_key(&hash, steps ? &key : NULL, &next); key = next)
		steps++;
	printf(" %llu, count %llu, sum %llu, steps %u, lru %llu\n", found ? *found : 0,
	       map_count(&hash), sum, steps, map_count(&lru));
	map_clear(&hash);
	printf("loop: %ld %llu; cleared %llu\n", bpf_loop(100, count_to, &loops, 0), loops,
	       map_count(&hash));
}

static __noinline void others(void)
{
	struct prefix net = { 8, { 10 } }, host = { 32, { 10, 1, 2, 3 } };
	u32 value, popped = 0, key = 0, *route;
	u64 *live;

	for (value = 1; value <= 3; value++) {
		bpf_map_push_elem(&queue, &value, BPF_ANY);
		bpf_map_push_elem(&stack, &value, BPF_ANY);
	}
	bpf_map_pop_elem(&queue, &popped);
	printf("queue %u", popped);
	bpf_map_peek_elem(&queue, &popped);
	printf(" %u", popped);
	bpf_map_pop_elem(&stack, &popped);
	printf(", stack %u", popped);
	value = 99;
	bpf_map_update_elem(&routes, &net, &value, BPF_ANY);
	route = bpf_map_lookup_elem(&routes, &host);
	printf(", route %u", route ? *route : 0);
	live = bpf_map_lookup_elem(&array, &key);
	if (live)
		*live = 42; /* no system call: the same memory */
	live = bpf_map_lookup_elem(&array, &key);
	printf(", array %llu\n", live ? *live : 0);
}

static __noinline void filled_by_the_kernel_half(void)
{
	u32 one = 1, zero = 0, cpu;
	u64 *value, *live, array_sum = 0, hash_sum = 0;
	const struct hist *taken;
	static struct hist moved; /* clang-14: 512 bytes of stack */

	for (cpu = 0; cpu < 8; cpu++) {
		value = bpf_map_lookup_percpu_elem(&percpu_array, &one, cpu);
		array_sum += value ? *value : 0;
		value = bpf_map_lookup_percpu_elem(&percpu_hash, &zero, cpu);
		hash_sum += value ? *value : 0;
	}
	live = bpf_map_lookup_elem(&array, &one);
	taken = map_hist(&hists, &one);
	printf("same: %d %d %d %d %d, stacks %d\n", calls > 0, array_sum == calls,
	       hash_sum == calls, live && *live == calls, taken && taken->n == calls,
	       map_count(&stacks) > 0);
	printf("hist: p50 %d, mean %.1f\n",
	       hist_quantile(&whole, 500) >= 64 && hist_quantile(&whole, 500) < 128,
	       hist_mean(&whole));
	print_hist(&whole, "title=calls unit=ns");
	print_hists(&hists, "");
	hist_move(&moved, &whole);
	printf("moved %d %d\n", moved.n == calls, whole.n == 0);
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	pointers();
	sorting();
	text_and_files();
	hashes();
	others();
	filled_by_the_kernel_half();
	printf("%d cpus, %d ns\n", duet_cpus() > 0, bpf_ktime_get_ns() > 1000);
	return 0;
}
