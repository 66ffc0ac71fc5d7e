// SPDX-License-Identifier: BSD-2-Clause
/* hand OBJECT FUNCTION CMD ...: loads the hand-written programs, runs CMD as their target. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hand.h"

static int fail(const char *what)
{
	fprintf(stderr, "hand: %s: %s\n", what, strerror(errno));
	return 1;
}

static int open_counters(int map)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS };
	int cpu, cpus = libbpf_num_possible_cpus();

	for (cpu = 0; cpu < cpus; cpu++) {
		int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0 || bpf_map_update_elem(map, &cpu, &fd, BPF_ANY))
			return -1;
	}
	return 0;
}

/* The constants of .rodata, in the order in which the object has them. */
struct constants {
	unsigned int target;
	long long overhead;
};

static int load(struct bpf_object *object, pid_t target)
{
	struct constants constants = { .target = target };
	struct bpf_map *map, *counter = bpf_object__find_map_by_name(object, "counter");

	bpf_object__for_each_map (map, object) {
		if (strstr(bpf_map__name(map), ".rodata") &&
		    bpf_map__set_initial_value(map, &constants, sizeof(constants)))
			return -1;
	}
	if (counter)
		bpf_map__set_max_entries(counter, libbpf_num_possible_cpus());
	if (bpf_object__load(object) || (counter && open_counters(bpf_map__fd(counter))))
		return -1;
	return 0;
}

static int attach(struct bpf_object *object, const char *function)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, object) {
		const char *section = bpf_program__section_name(program);
		struct bpf_link *link =
			strstr(section, "probe")
				? bpf_program__attach_kprobe(
					  program, strstr(section, "kret") != NULL, function)
				: bpf_program__attach(program);

		if (!link)
			return -1;
	}
	return 0;
}

static void print_result(struct bpf_object *object)
{
	struct hand_result result;
	unsigned int zero = 0;
	struct bpf_map *map;

	bpf_object__for_each_map (map, object) {
		if (strstr(bpf_map__name(map), ".bss") &&
		    !bpf_map_lookup_elem(bpf_map__fd(map), &zero, &result))
			printf("result %llu calls, mean %.0f\n", result.n,
			       (double)(long long)result.sum / result.n);
	}
}

int main(int argc, char **argv)
{
	struct bpf_object *object = argc > 3 ? bpf_object__open_file(argv[1], NULL) : NULL;
	int gate[2], status;
	pid_t child;
	char go;

	if (!object || pipe(gate))
		return fail("usage: hand OBJECT FUNCTION CMD ...");
	child = fork();
	if (!child) {
		close(gate[1]);
		if (read(gate[0], &go, 1) == 1)
			execvp(argv[3], argv + 3);
		_exit(127);
	}
	if (load(object, child))
		return fail("load");
	if (attach(object, argv[2]))
		return fail("attach");
	if (write(gate[1], "g", 1) != 1 || waitpid(child, &status, 0) < 0)
		return fail(argv[3]);
	print_result(object);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
