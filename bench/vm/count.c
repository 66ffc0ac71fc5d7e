// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions in place of time: the arm64 guest counts them exactly, the same on every run. Of one
 * pass: what sixteen take less what eight take, so that entry and preparation drop out.
 */
#include "measure.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t counted(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

#define PASSES_COUNTED 8
#define LIMIT          1.15
#define FLOOR          0.8

int count_instructions(const char *directory, const struct bench_program *const *programs, size_t n)
{
	int fd = open_counter(), ten = 0;
	double sum = 0, mean;

	if (fd < 0) {
		fprintf(stderr, "bench-vm: instructions: %s\n", strerror(errno));
		return 1;
	}
	printf("vm: instructions of a pass by the JIT / by gcc -O2\n  %-22s %12s %12s %8s\n", "",
	       "native", "JIT", "ratio");
	for (size_t i = 0; i < n; i++) {
		uint64_t native[2], jit[2];
		double ratio;

		for (int twice = 0; twice < 2; twice++)
			if (count_program(directory, programs[i], PASSES_COUNTED << twice, counted,
					  fd, &native[twice], &jit[twice]))
				return 1;
		native[0] = (native[1] - native[0]) / PASSES_COUNTED;
		jit[0] = (jit[1] - jit[0]) / PASSES_COUNTED;
		ratio = (double)jit[0] / native[0];
		printf("  %-22s %12llu %12llu %8.3f\n", programs[i]->title,
		       (unsigned long long)native[0], (unsigned long long)jit[0], ratio);
		fflush(stdout);
		if (programs[i]->ten) {
			sum += log(ratio < FLOOR ? FLOOR : ratio);
			ten++;
		}
	}
	mean = ten ? exp(sum / ten) : 0;
	printf("  %-34s %13s %8.3f   limit %.2f  %s\n", "geometric mean of the ten upper programs",
	       "", mean, LIMIT, ten == 10 && mean <= LIMIT ? "met" : "MISSED");
	return 0;
}
