// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Memory that is not the script's, by many ways: --set HOW=N, numbers of the enum.
#include <duet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum how {
	DO_NOTHING,
	DO_FORGED_READ,
	DO_FORGED_WRITE,
	DO_PAST_GLOBAL,
	DO_BEFORE_GLOBAL,
	DO_WRITE_CONSTANT,
	DO_PAST_HEAP,
	DO_FREED,
	DO_REALLOCED,
	DO_SHRUNK,
	DO_STALE_SNAPSHOT,
	DO_PAST_SNAPSHOT,
	DO_WRITE_SNAPSHOT,
	DO_PAST_ARRAY,
	DO_MAP_ITSELF,
	DO_DEAD_FRAME,
	DO_ARGUMENT_PAST,
	DO_ARGUMENT_WRITE,
	DO_MEMCPY_FROM,
	DO_MEMCPY_TO,
	DO_SNPRINTF_TO,
	DO_SNPRINTF_STRING,
	DO_SNPRINTF_FORMAT,
	DO_SNPRINTF_ITSELF,
	DO_STRCAT_ITSELF,
	DO_PRINTF_N,
	DO_QSORT_BASE,
	DO_QSORT_COMPARATOR,
	DO_QSORT_FREES,
	DO_STRLEN_ENDLESS,
	DO_STRCPY_TOO_LONG,
	DO_STRTOL_END,
	DO_LOOKUP_KEY,
	DO_UPDATE_VALUE,
	DO_HIST_FORGED,
	DO_COMM,
	DO_PRINT_MAP_TEXT,
	DO_FILE_FORGED,
	DO_DOUBLE_FREE,
	DO_WILD_CALL,
	DO_ATOMIC_PAST,
	DO_EVENT_PAST,
	DO_EVENT_STALE,
};
volatile u32 HOW = DO_NOTHING;

HASH(table, 16, u32, u64);
ARRAY(numbers, 4, u64);
RING(events, 4096);

SEC("tp/syscalls/sys_enter_getppid") int on_call(void *ctx)
{
	u64 *record;

	if (!in_target())
		return 0;
	record = bpf_ringbuf_reserve(&events, 16, 0);
	if (record) {
		record[0] = record[1] = 5;
		bpf_ringbuf_submit(record, 0);
	}
	return 0;
}

/* Between bytes that must stay as they are. */
static struct {
	u8 before[64];
	volatile u8 bytes[64];
	u8 after[64];
} guarded;
static const char constant[8] = "constan";
static const u64 *old_copy;
static volatile u64 past = 64;

static int compare(const void *a, const void *b)
{
	return *(const u8 *)a - *(const u8 *)b;
}

static void *block;

static int free_in_compare(const void *a, const void *b)
{
	free(block);
	return 0;
}

static __noinline volatile u64 *dead(void)
{
	volatile u64 local[4] = { 1 };
	volatile u64 *pointer = local;

	asm volatile("" : "+r"(pointer)::"memory");
	return pointer;
}

static int do_strings(void)
{
	char small[8];
	unsigned long long size = 16;

	switch (HOW) {
	case DO_SNPRINTF_TO:
		return snprintf((char *)guarded.bytes, 100000, "%d", 5);
	case DO_SNPRINTF_STRING:
		return snprintf(small, sizeof(small), "%d %s", 1, (const char *)0x1234);
	case DO_SNPRINTF_FORMAT:
		return __snprintf_n(small, sizeof(small), (const char *)0x1234, &size, 1);
	case DO_SNPRINTF_ITSELF:
		memset(small, 0, sizeof(small));
		return snprintf(small, sizeof(small), "%s%s", small, small);
	case DO_STRCAT_ITSELF:
		block = malloc(size * 8);
		strcpy(block, "text");
		strcat(block, block);
		return 0;
	case DO_PRINTF_N: {
		const char *format = "%d%n";
		unsigned long long values[] = { 1, (unsigned long)&guarded };

		asm volatile("" : "+r"(format));
		return __printf_n(format, values, 2);
	}
	case DO_STRLEN_ENDLESS:
		block = malloc(16);
		memset(block, 'x', size);
		return strlen(block);
	case DO_STRCPY_TOO_LONG:
		block = malloc(4);
		strcpy(block, "longer than four");
		return 0;
	case DO_STRTOL_END:
		return strtol("5", (char **)0x1234, 10);
	case DO_PRINT_MAP_TEXT: {
		const char *options = (const char *)0x1234;

		asm volatile("" : "+r"(options));
		return __print_map(&table, options);
	}
	case DO_FILE_FORGED:
		return fputs("text", (FILE *)&guarded);
	}
	return 0;
}

static int do_calls(void)
{
	u8 bytes[16] = { 3, 1, 2 };
	u64 size = past;
	int (*wild)(void) = (void *)0x1234;
	u32 key = 1;

	switch (HOW) {
	case DO_MEMCPY_FROM:
		memcpy(bytes, (const void *)0x1234, size / 8);
		return bytes[0];
	case DO_MEMCPY_TO:
		block = malloc(8);
		memcpy(block, bytes, size / 4);
		return 0;
	case DO_QSORT_BASE:
		block = malloc(8);
		qsort(block, 9, 1, compare);
		return 0;
	case DO_QSORT_COMPARATOR:
		qsort(bytes, 3, 1, (void *)0x1234);
		return 0;
	case DO_QSORT_FREES:
		block = malloc(16);
		memset(block, 0, size / 4);
		qsort(block, 16, 1, free_in_compare);
		return 0;
	case DO_LOOKUP_KEY:
		return !bpf_map_lookup_elem(&table, (void *)0x1234);
	case DO_UPDATE_VALUE:
		return bpf_map_update_elem(&table, &key, (void *)0x1234, BPF_ANY);
	case DO_HIST_FORGED:
		return hist_quantile((void *)0x1234, 500);
	case DO_COMM:
		return bpf_get_current_comm((void *)0x1234, 16);
	case DO_WILD_CALL:
		asm volatile("" : "+r"(wild));
		return wild();
	}
	return do_strings();
}

static int do_memory(void)
{
	volatile u8 *bytes = guarded.bytes, *heap;
	u32 key = 1;
	const volatile u64 *value;
	u64 *number;

	switch (HOW) {
	case DO_FORGED_READ:
		return *(volatile int *)0x7ffffff0;
	case DO_FORGED_WRITE:
		*(volatile int *)0x12345678 = 1;
		return 0;
	case DO_PAST_GLOBAL:
		return bytes[past * 4096];
	case DO_BEFORE_GLOBAL:
		return bytes[-(long)(past * 4096)];
	case DO_WRITE_CONSTANT:
		*(volatile char *)&constant[1] = 1;
		return 0;
	case DO_PAST_HEAP:
		heap = malloc(past);
		heap[past - 1] = 1;
		return heap[past];
	case DO_FREED:
		heap = malloc(past);
		heap[0] = 1;
		free((void *)heap);
		return heap[0];
	case DO_REALLOCED:
		heap = malloc(past);
		block = realloc((void *)heap, past * 100);
		return heap[0];
	case DO_SHRUNK:
		heap = malloc(past);
		block = realloc((void *)heap, 10);
		return heap[9] + heap[10];
	case DO_STALE_SNAPSHOT:
		return old_copy ? *(volatile const u64 *)old_copy : -1;
	case DO_PAST_SNAPSHOT:
		value = bpf_map_lookup_elem(&table, &key);
		return value ? value[0] + value[1] : -1;
	case DO_WRITE_SNAPSHOT:
		value = bpf_map_lookup_elem(&table, &key);
		if (value)
			*(u64 *)value = 1;
		return 0;
	case DO_PAST_ARRAY:
		number = bpf_map_lookup_elem(&numbers, &key);
		return number ? ((volatile u64 *)number)[2] + ((volatile u64 *)number)[3] : -1;
	case DO_MAP_ITSELF:
		return *(volatile int *)&table;
	case DO_DEAD_FRAME:
		return *dead();
	case DO_DOUBLE_FREE:
		heap = malloc(past);
		free((void *)heap);
		free((void *)heap);
		return 0;
	case DO_ATOMIC_PAST:
		heap = malloc(past);
		__sync_fetch_and_add((u64 *)(heap + past - 4), 1);
		return 0;
	}
	return do_calls();
}

SEC("user/init") int init(const struct duet_options *options)
{
	u64 value = 7;
	u32 key = 1;

	memset(&guarded, 0xc5, sizeof(guarded));
	bpf_map_update_elem(&table, &key, &value, BPF_ANY);
	old_copy = bpf_map_lookup_elem(&table, &key);
	if (!old_copy || *old_copy != 7)
		return -1;
	if (HOW == DO_ARGUMENT_PAST)
		return ((const volatile u8 *)options)[sizeof(*options)] * 0;
	if (HOW == DO_ARGUMENT_WRITE)
		((struct duet_options *)options)->pid = 1;
	return 0;
}

SEC("user/start") int start(void)
{
	do_memory();
	return 0;
}

static const volatile u64 *last_record;
static u64 sum;

SEC("user/event/events") int on_event(const u64 *record, u64 size)
{
	sum += record[0] + record[size / 8 - 1];
	if (HOW == DO_EVENT_PAST)
		sum += ((const volatile u64 *)record)[size / 8];
	if (HOW == DO_EVENT_STALE && last_record)
		sum += *last_record;
	last_record = record;
	return 0;
}

static u32 wrong_guards;

SEC("user/exit") int done(const struct duet_exit *why)
{
	for (u32 i = 0; i < 64; i++)
		wrong_guards += guarded.before[i] != 0xc5 || guarded.after[i] != 0xc5;
	printf("guards %s\n", wrong_guards ? "CHANGED" : "whole");
	return 0;
}
