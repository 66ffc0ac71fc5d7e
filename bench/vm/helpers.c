// SPDX-License-Identifier: BSD-2-Clause
/* The C functions that the programs call, of both sides: another file, so that nothing is inlined. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t bench_values[BENCH_VALUES];

uint64_t bench_mix(uint64_t a, uint64_t b)
{
	return (a ^ b) + (a << 3);
}

uint64_t bench_call_many(uint64_t (*function)(uint64_t), uint64_t count, uint64_t first)
{
	while (count--)
		first = function(first);
	return first;
}

uint64_t bench_print_row(char *line, uint64_t size, uint64_t key, uint64_t count, uint64_t mean)
{
	return snprintf(line, size, "%8llu %12llu %10llu\n", (unsigned long long)key,
			(unsigned long long)count, (unsigned long long)mean);
}

uint64_t bench_each_record(const void *records, uint64_t size,
			   int (*handler)(const void *, uint64_t))
{
	uint64_t failed = 0, at;

	for (at = 0; at + 32 <= size; at += 32)
		failed += handler((const char *)records + at, 32) != 0;
	return failed;
}

/* Our VM sees the array as an array map: a lookup that it may do itself. */
static uint64_t *look_up(uint64_t *values, const uint32_t *key)
{
	return *key < BENCH_VALUES ? &values[*key] : NULL;
}

/* Checked mode: what they may touch. */
static const struct vm_contract none = { 0 };
static const struct vm_contract lookup_contract = { .args = { [1] = { VM_READ, .bytes = 4 } } };
static const struct vm_contract call_contract = { .args = { [0] = { VM_CALLBACK } } };
static const struct vm_contract line_contract = { .args = { [0] = { VM_WRITE, .count = 2 } } };
static const struct vm_contract each_contract = {
	.args = { [0] = { VM_READ, .count = 2 }, [2] = { VM_CALLBACK } }
};
static const struct vm_contract qsort_contract = {
	.args = { [0] = { VM_CHANGE, .count = 2, .times = 3 }, [3] = { VM_CALLBACK } }
};

#define ARGS(n, ...) .nargs = (n), .args = { __VA_ARGS__ }
static const struct vm_native natives[] = {
	{ "bench_mix", bench_mix, VM_U64, ARGS(2, VM_U64, VM_U64), .contract = &none },
	{ "bench_call_many", bench_call_many, VM_U64, ARGS(3, VM_POINTER, VM_U64, VM_U64),
	  .contract = &call_contract },
	{ "bench_print_row", bench_print_row, VM_U64,
	  ARGS(5, VM_POINTER, VM_U64, VM_U64, VM_U64, VM_U64), .contract = &line_contract },
	{ "bench_each_record", bench_each_record, VM_U64, ARGS(3, VM_POINTER, VM_U64, VM_POINTER),
	  .contract = &each_contract },
	{ "qsort", qsort, VM_VOID, ARGS(4, VM_POINTER, VM_U64, VM_U64, VM_POINTER), .foreign = true,
	  .contract = &qsort_contract },
	{ "bpf_map_lookup_elem", look_up, VM_POINTER, ARGS(2, VM_POINTER, VM_POINTER),
	  .intrinsic = VM_ARRAY_LOOKUP, .contract = &lookup_contract },
};

const struct vm_native *bench_native(const char *name)
{
	for (size_t i = 0; i < sizeof(natives) / sizeof(natives[0]); i++)
		if (!strcmp(natives[i].name, name))
			return &natives[i];
	return NULL;
}
