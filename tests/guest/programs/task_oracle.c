// SPDX-License-Identifier: BSD-2-Clause
/*
 * task_oracle OBJECT FUNCTION CMD...: runs CMD with events of its first thread (not inherited), and
 * prints how many calls of FUNCTION it made and how many instructions they cost it, probes
 * included: `calls N mean M median D ns T`.
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

static int open_event(__u64 config, pid_t thread)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = config,
	};
	int fd = syscall(SYS_perf_event_open, &attr, thread, -1, -1, 0);

	if (fd < 0)
		die("perf_event_open");
	return fd;
}

static void set(struct bpf_object *object, const char *map, __u32 key, const void *value)
{
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, map), &key, value, 0))
		die(map);
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
	printf("calls %llu mean %.1f median %llu ns %.0f\n", result->count,
	       count ? (double)sum / count : 0.0, count ? result->delta[count / 2] : 0,
	       count ? (double)result->ns / count : 0.0);
}

/* libbpf names it after the object. */
static struct bpf_map *bss(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map (map, object) {
		if (strstr(bpf_map__name(map), ".bss"))
			return map;
	}
	die(".bss");
	return NULL;
}

int main(int argc, char **argv)
{
	static struct oracle_result result;
	struct bpf_object *object;
	struct bpf_program *program;
	int gate[2], fd, other, status;
	struct oracle_call none = { 0 };
	__u64 yes = 1;
	__u32 zero = 0;
	pid_t child;
	char byte;

	if (argc < 4 || pipe(gate))
		return 2;
	child = fork();
	if (!child) {
		close(gate[1]);
		if (read(gate[0], &byte, 1) == 1)
			execvp(argv[3], argv + 3);
		_exit(127);
	}
	fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, child);
	other = open_event(PERF_COUNT_HW_CPU_CYCLES, child);
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		die(argv[1]);
	if (bpf_object__load(object))
		die("load");
	set(object, "first", zero, &fd);
	set(object, "second", zero, &other);
	set(object, "threads", child, &yes);
	set(object, "calls", child, &none);
	bpf_object__for_each_program (program, object) {
		int leave = !strcmp(bpf_program__name(program), "oracle_leave");

		if (!bpf_program__attach_kprobe(program, leave, argv[2]))
			die(argv[2]);
	}
	if (write(gate[1], "", 1) != 1)
		die("release");
	waitpid(child, &status, 0);
	if (bpf_map_lookup_elem(bpf_map__fd(bss(object)), &zero, &result))
		die("result");
	report(&result);
	return status ? 1 : 0;
}
