// SPDX-License-Identifier: BSD-2-Clause
/* ring OBJECT ROUNDS: the hand-written consumer. Prints ns of CPU per record, a line a round. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "record.h"

struct reader {
	unsigned long long seen, sum, from, to;
};

static unsigned long long cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static int event(void *context, void *data, size_t size)
{
	struct reader *reader = context;
	const struct record *record = data;

	reader->sum += record->value;
	if (++reader->seen == 1)
		reader->from = cpu_time();
	if (reader->seen == RECORDS)
		reader->to = cpu_time();
	return 0;
}

int main(int argc, char **argv)
{
	struct reader reader = { 0 };
	struct bpf_object *object = argc == 3 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct ring_buffer *ring;
	struct bpf_map *map;
	int rounds, i, fill;

	if (!object || bpf_object__load(object)) {
		fprintf(stderr, "usage: ring OBJECT ROUNDS\n");
		return 2;
	}
	map = bpf_object__find_map_by_name(object, "ring");
	fill = bpf_program__fd(bpf_object__find_program_by_name(object, "fill"));
	ring = ring_buffer__new(bpf_map__fd(map), event, &reader, NULL);
	if (!ring)
		return 1;
	for (rounds = atoi(argv[2]); rounds > 0; rounds--) {
		LIBBPF_OPTS(bpf_test_run_opts, opts);

		reader.seen = 0;
		reader.sum = 0;
		for (i = 0; i < RECORDS / RECORDS_A_RUN; i++) {
			if (bpf_prog_test_run_opts(fill, &opts))
				return 1;
		}
		if (ring_buffer__consume(ring) < 0 || reader.seen != RECORDS ||
		    reader.sum != (RECORDS_A_RUN - 1) * (RECORDS / 2ULL)) {
			fprintf(stderr, "ring: %llu of %d records\n", reader.seen, RECORDS);
			return 1;
		}
		printf("%.2f\n", (double)(reader.to - reader.from) / (RECORDS - 1));
	}
	return 0;
}
