// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's JIT on the same source: a program of kind tc, whose memory is a map, run by
 * BPF_PROG_TEST_RUN, which repeats it and tells its average time.
 */
#include "bench.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int silent(enum libbpf_print_level level, const char *format, va_list values)
{
	(void)level, (void)format, (void)values;
	return 0;
}

static void *map_memory(const struct bpf_object *object, const char *section, size_t *size)
{
	struct bpf_map *map;
	void *memory;

	bpf_object__for_each_map (map, object) {
		if (!strstr(bpf_map__name(map), section))
			continue;
		*size = (bpf_map__value_size(map) + 4095) & ~4095u;
		memory = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
		return memory == MAP_FAILED ? NULL : memory;
	}
	return NULL;
}

/* The verifier's last word. */
static void last_line(const char *log, char *why, size_t why_size)
{
	const char *at = log, *line = "", *end;

	for (; (end = strchr(at, '\n')); at = end + 1)
		if (end > at && strncmp(at, "processed ", 10))
			line = at;
	snprintf(why, why_size, "%.*s", (int)strcspn(line, "\n"), line);
}

int kernel_open(const char *path, const char *entry, struct bench_kernel *ret, char *why,
		size_t why_size)
{
	static char log[1 << 20];
	LIBBPF_OPTS(bpf_object_open_opts, options, .kernel_log_buf = log,
		    .kernel_log_size = sizeof(log));
	struct bpf_program *program;
	struct bpf_object *object;
	size_t size;

	libbpf_set_print(silent);
	log[0] = '\0';
	object = bpf_object__open_file(path, &options);
	if (!object) {
		snprintf(why, why_size, "%s", strerror(errno));
		return -errno;
	}
	if (bpf_object__load(object)) {
		last_line(log, why, why_size);
		if (!why[0])
			snprintf(why, why_size, "%s", strerror(errno));
		bpf_object__close(object);
		return -EINVAL;
	}
	program = bpf_object__find_program_by_name(object, entry);
	ret->program = program ? bpf_program__fd(program) : -1;
	ret->memory = map_memory(object, ".data.memory", &ret->memory_size);
	ret->result = map_memory(object, ".bss", &size);
	if (ret->program < 0 || !ret->memory || !ret->result) {
		snprintf(why, why_size, "the object has not what it should");
		return -EINVAL;
	}
	return 0;
}

int kernel_run(const struct bench_kernel *kernel, uint32_t repeat, double *ns)
{
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = repeat);
	int rc = bpf_prog_test_run_opts(kernel->program, &options);

	*ns = options.duration;
	return rc;
}
