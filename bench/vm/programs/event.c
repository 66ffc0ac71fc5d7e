// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * A user/event handler: C code calls it for each record of a ring; it finds the counters of the
 * record's key in a hash table of the script's own, and counts the value in their histogram.
 */
#include "program.h"

#define SLOTS 256

struct record {
	u64 number, value, address;
	u32 cpu, kind;
};

struct counters {
	u64 key, n, sum, most;
	u32 log2[32];
};

static struct counters table[SLOTS];
static u64 full;

extern u64 bench_each_record(const void *records, u64 size, int (*handler)(const void *, u64));

CALLED int on_record(const void *data, u64 size)
{
	const struct record *record = data;
	u64 key = record->address >> 4 << 8 | record->kind | 1ULL << 63;
	u64 slot = key * 0x9e3779b97f4a7c15ULL >> 56, tries;

	if (size < sizeof(*record))
		return -22;
	for (tries = 0; tries < SLOTS; tries++) {
		struct counters *found = &table[slot & (SLOTS - 1)];

		if (!found->n)
			found->key = key;
		if (found->key == key) {
			found->n++;
			found->sum += record->value;
			if (found->most < record->value)
				found->most = record->value;
			found->log2[log2_of(record->value) & 31]++;
			return 0;
		}
		slot++;
	}
	full++;
	return 0;
}

PASS(event, const void *records)
{
	u64 i, sum = bench_each_record(records, size, on_record);

	if (seed > 1) /* the last round has the number 1, and tells */
		return sum;
	for (i = 0; i < SLOTS; i++) {
		sum = sum * 7 + table[i].sum + table[i].n + table[i].most + table[i].log2[20];
		__builtin_memset(&table[i], 0, sizeof(table[i]));
	}
	return sum + full;
}
