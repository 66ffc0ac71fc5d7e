// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions in place of time: the arm64 guest counts them exactly. One line a program:
 *	NAME NATIVE JIT
 * of eight passes: what sixteen take less what eight take, so that entry and preparation drop out.
 */
#include "measure.h"

#include <errno.h>
#include <linux/perf_event.h>
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
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t counted(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

int count_instructions(const char *directory, const struct bench_program *const *programs, size_t n)
{
	int fd = open_counter();

	if (fd < 0) {
		fprintf(stderr, "bench-vm: instructions: %s\n", strerror(errno));
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t native[2], jit[2];

		for (int twice = 0; twice < 2; twice++)
			if (count_program(directory, programs[i], 8 << twice, counted, fd,
					  &native[twice], &jit[twice]))
				return 1;
		printf("%s %llu %llu\n", programs[i]->name,
		       (unsigned long long)(native[1] - native[0]),
		       (unsigned long long)(jit[1] - jit[0]));
		fflush(stdout);
	}
	return 0;
}
