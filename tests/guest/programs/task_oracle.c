// SPDX-License-Identifier: BSD-2-Clause
/*
 * task_oracle OBJECT FUNCTION instructions|cycles CMD...: runs CMD with an event of its first
 * thread (not inherited), and prints how many calls of FUNCTION it made and what they cost it,
 * probes included: `calls N mean M median D`.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "task_oracle.h"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int open_event(const char *name, pid_t thread)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = !strcmp(name, "cycles") ? PERF_COUNT_HW_CPU_CYCLES
						  : PERF_COUNT_HW_INSTRUCTIONS,
	};
	int fd = syscall(SYS_perf_event_open, &attr, thread, -1, -1, 0);

	if (fd < 0)
		die(name);
	return fd;
}

static int compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

static void report(struct oracle_result *result)
{
	__u64 count = result->count < ORACLE_MAX ? result->count : ORACLE_MAX, sum = 0, i;

	for (i = 0; i < count; i++)
		sum += result->delta[i];
	qsort(result->delta, count, sizeof(result->delta[0]), compare);
	printf("calls %llu mean %.1f median %llu\n", result->count,
	       count ? (double)sum / count : 0.0, count ? result->delta[count / 2] : 0);
}

/* The name of the section .bss or .rodata in libbpf's map names. */
static struct bpf_map *data_map(struct bpf_object *object, const char *suffix)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		if (strstr(bpf_map__name(map), suffix))
			return map;
	}
	fprintf(stderr, "task_oracle: no %s\n", suffix);
	exit(1);
}

int main(int argc, char **argv)
{
	static struct oracle_result result;
	struct bpf_object *object;
	struct bpf_program *program;
	int gate[2], fd, status;
	__u32 zero = 0;
	pid_t child;
	char byte;

	if (argc < 5 || pipe(gate))
		return 2;
	child = fork();
	if (!child) {
		close(gate[1]);
		if (read(gate[0], &byte, 1) == 1)
			execvp(argv[4], argv + 4);
		_exit(127);
	}
	fd = open_event(argv[3], child);
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		die(argv[1]);
	bpf_map__set_initial_value(data_map(object, ".rodata"), &child, sizeof(child));
	if (bpf_object__load(object))
		die("load");
	bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "event"), &zero, &fd, 0);
	bpf_object__for_each_program(program, object) {
		int leave = !strcmp(bpf_program__name(program), "oracle_leave");

		if (!bpf_program__attach_kprobe(program, leave, argv[2]))
			die(argv[2]);
	}
	if (write(gate[1], "", 1) != 1)
		die("release");
	waitpid(child, &status, 0);
	if (bpf_map_lookup_elem(bpf_map__fd(data_map(object, ".bss")), &zero, &result))
		die("result");
	report(&result);
	return status ? 1 : 0;
}
