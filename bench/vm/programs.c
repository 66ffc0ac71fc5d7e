// SPDX-License-Identifier: BSD-2-Clause
/* The programs, and what their memory holds before a measurement: the same for all sides. */
#include "bench.h"

#include <string.h>

static uint64_t random_state;

void bench_random_seed(uint64_t seed)
{
	random_state = seed;
}

static uint64_t next_random(void)
{
	random_state += 0x9e3779b97f4a7c15ULL;
	uint64_t z = random_state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static void zeroes(uint8_t *memory, uint32_t size)
{
	memset(memory, 0, size);
}

static void noise(uint8_t *memory, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		memory[i] = next_random();
}

/* Numbers with any number of bits, none zero; like times and sizes, few have more than 40. */
static void numbers(uint8_t *memory, uint32_t size)
{
	uint64_t *values = (uint64_t *)memory;

	for (uint32_t i = 0; i < size / 8; i++) {
		uint64_t value = next_random();
		unsigned int bits = value % 8 ? value % 40 : value % 64;

		values[i] = next_random() >> (63 - bits) | 1;
	}
}

static void histogram(uint8_t *memory, uint32_t size)
{
	numbers(memory, size);
	memset(memory, 0, 64 * 8);
}

/* Paths: alike for 5 to 28 characters. */
static void strings(uint8_t *memory, uint32_t size)
{
	memset(memory, 0, size);
	for (uint32_t i = 0; i < size; i += 32) {
		uint32_t length = 5 + next_random() % 24;

		memcpy(memory + i, "/usr/lib/modules/6.12/kernel/x", length);
		memory[i + length] = 'a' + next_random() % 2;
	}
}

static void records(uint8_t *memory, uint32_t size)
{
	struct {
		uint64_t number, value, address;
		uint32_t cpu, kind;
	} *record = (void *)memory;

	for (uint32_t i = 0; i < size / sizeof(*record); i++) {
		record[i].number = i;
		record[i].value = next_random() >> 40 >> next_random() % 20;
		record[i].address = 0xffff800000000000ULL + next_random() % 24 * 64;
		record[i].cpu = next_random() % 4;
		record[i].kind = next_random() % 3;
	}
}

#define EXISTS(name, entry)                                                   \
	uint64_t bench_##entry(uint64_t rounds, void *memory, uint64_t size); \
	extern const char __start_bench_code_##name[], __stop_bench_code_##name[]
#define PROGRAM(name, entry) \
#name, #entry, bench_##entry, __start_bench_code_##name, __stop_bench_code_##name

EXISTS(sieve, sieve);
EXISTS(xor, xor);
EXISTS(fnv, fnv);
EXISTS(log2, log2);
EXISTS(strcmp, strcmp);
EXISTS(divide, divide);
EXISTS(constant, constant);
EXISTS(helper, helper);
EXISTS(map, map_lookup);
EXISTS(local, local_call);
EXISTS(switch, switch_dispatch);
EXISTS(trivial, trivial_call);
EXISTS(report, report);
EXISTS(event, event);

static const char calls_ours[] = "calls a C function of ours";

const struct bench_program bench_programs[] = {
	{ PROGRAM(sieve, sieve), "sieve", true, 8192, 200, zeroes },
	{ PROGRAM(xor, xor), "byte xor", true, 8192, 200, noise },
	{ PROGRAM(fnv, fnv), "FNV-1a", true, 8192, 250, noise },
	{ PROGRAM(log2, log2), "log2 histogram", true, 16384, 250, histogram },
	{ PROGRAM(strcmp, strcmp), "strcmp", true, 16384, 200, strings },
	{ PROGRAM(divide, divide), "division by variable", true, 8192, 1200, numbers },
	{ PROGRAM(constant, constant), "division by constant", true, 8192, 900, numbers },
	{ PROGRAM(helper, helper), "helper calls", true, 8192, 2400, numbers, calls_ours },
	{ PROGRAM(map, map_lookup), "map lookups", true, 8192, 250, noise },
	{ PROGRAM(local, local_call), "local calls", true, 8192, 800, numbers },
	{ PROGRAM(switch, switch_dispatch), "switch dispatch", false, 8192, 180, noise },
	{ PROGRAM(trivial, trivial_call), "trivial call", false, 8192, 700, zeroes, calls_ours },
	{ PROGRAM(report, report), "report of 10,000 rows", false, 320000, 9, zeroes, calls_ours },
	{ PROGRAM(event, event), "event handler", false, 32768, 350, records, calls_ours },
};
const size_t bench_nprograms = sizeof(bench_programs) / sizeof(bench_programs[0]);
