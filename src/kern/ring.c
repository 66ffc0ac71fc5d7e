// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records from the kernel half. The ring buffer is read by our own loop, as the kernel's
 * Documentation/bpf/ringbuf.rst lays it out; perf-event arrays through libbpf.
 */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#define PERF_PAGES 64 /* per CPU; a power of two */

struct kern_ring {
	kern_record_fn record;
	kern_lost_fn lost;
	void *context;
	size_t page;
	/* ring buffer */
	int map_fd;
	unsigned long *consumer; /* our position as producers see it, a page of its own */
	unsigned long at;        /* our position: what lies before is handed out */
	const unsigned long *producer;
	const uint8_t *data; /* mapped twice in a row: no record is ever in two pieces */
	size_t mask;
	/* perf-event array: by CPU, NULL where there is none; all NULL for a ring buffer */
	struct perf_buffer **buffers;
	int nbuffers, epoll_fd; /* of the buffers' own */
	size_t limit;           /* of the running consume; 0: none */
	int count, stop;
};

void kern_ring_close(struct kern_ring *ring)
{
	if (!ring)
		return;
	while (ring->nbuffers)
		perf_buffer__free(ring->buffers[--ring->nbuffers]);
	free(ring->buffers);
	if (ring->epoll_fd >= 0)
		close(ring->epoll_fd);
	if (ring->consumer)
		munmap(ring->consumer, ring->page);
	if (ring->producer)
		munmap((void *)ring->producer, ring->page + 2 * (ring->mask + 1));
	free(ring);
}

int kern_ring_fd(const struct kern_ring *ring)
{
	return ring->buffers ? ring->epoll_fd : ring->map_fd;
}

static int open_ringbuf(struct kern_ring *ring, const struct kern_map *map)
{
	size_t size = map->info.max_entries;
	void *address;

	ring->map_fd = map->fd;
	ring->mask = size - 1;
	address = mmap(NULL, ring->page, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);
	if (address == MAP_FAILED)
		return -errno;
	ring->consumer = address;
	ring->at = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
	address = mmap(NULL, ring->page + 2 * size, PROT_READ, MAP_SHARED, map->fd, ring->page);
	if (address == MAP_FAILED)
		return -errno;
	ring->producer = address;
	ring->data = (uint8_t *)address + ring->page;
	return 0;
}

/* Where a consume stands. */
struct position {
	unsigned long at, published, end;
};

/*
 * Nothing more is complete: publishes our position. A producer wakes us only when it finds our
 * published position at its record, so before we return we publish and look once more. true: there
 * is more.
 */
static bool look_again(struct kern_ring *ring, struct position *position)
{
	unsigned long seen = position->end;

	if (position->published == position->at && position->at < position->end)
		return false; /* its producer will wake us */
	__atomic_store_n(ring->consumer, position->at, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	position->end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	if (position->published == position->at && position->end == seen)
		return false;
	position->published = position->at;
	return true;
}

#define AHEAD 1024 /* bytes: what is fetched while a record is read */

/* The length with its header, rounded up. */
static inline unsigned long step_over(uint32_t size)
{
	return ((size & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;
}

/*
 * Plain records from ring->at on, up to @stop and at most @left of them, straight to
 * @direct->call(). Returns how many are left; ring->at tells where it ended. Nothing but this loop
 * is run for most records, so it does as little as it can.
 */
static size_t hand_out_directly(struct kern_ring *ring, unsigned long stop, size_t left,
				const struct kern_direct *direct, int *code)
{
	const uint32_t *attention = direct->attention;
	unsigned long at = ring->at;

	while (at < stop && left) {
		const uint8_t *header = ring->data + (at & ring->mask);
		uint32_t size = __atomic_load_n((const uint32_t *)header, __ATOMIC_ACQUIRE);
		uint64_t result;

		if (size & (BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT))
			break;
		__builtin_prefetch(header + AHEAD);
		at += step_over(size);
		ring->at = at; /* the call may not return */
		left--;
		result = direct->call((uintptr_t)header + BPF_RINGBUF_HDR_SZ, size);
		if ((uint32_t)result | *attention) {
			*code = direct->after(direct->context, result);
			if (*code < 0)
				break;
		}
	}
	return left;
}

static size_t hand_out(struct kern_ring *ring, unsigned long stop, size_t left, int *code)
{
	while (ring->at < stop && left && *code >= 0) {
		const uint8_t *header = ring->data + (ring->at & ring->mask);
		uint32_t size = __atomic_load_n((const uint32_t *)header, __ATOMIC_ACQUIRE);

		if (size & BPF_RINGBUF_BUSY_BIT)
			break;
		ring->at += step_over(size);
		if (size & BPF_RINGBUF_DISCARD_BIT)
			continue;
		left--;
		*code = ring->record(ring->context, header + BPF_RINGBUF_HDR_SZ, size);
	}
	return left;
}

/* Is the record at our position there, but not to be handed out? Then it is passed over. */
static bool pass_over(struct kern_ring *ring, unsigned long end)
{
	const void *header = ring->data + (ring->at & ring->mask);
	uint32_t size;

	if (ring->at >= end)
		return false;
	size = __atomic_load_n((const uint32_t *)header, __ATOMIC_ACQUIRE);
	if (size & BPF_RINGBUF_BUSY_BIT || !(size & BPF_RINGBUF_DISCARD_BIT))
		return false;
	ring->at += step_over(size);
	return true;
}

/*
 * Hands out what is complete. Our position is published every eighth of the ring, not for each
 * record: the producers' cache line then stays with them.
 */
static int consume_ringbuf(struct kern_ring *ring, size_t limit, const struct kern_direct *direct)
{
	/* A call that was left by siglongjmp() has not published where it was. */
	struct position position = { .published = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED),
				     .end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) };
	size_t step = (ring->mask + 1) / 8, all = limit ? limit : INT32_MAX, left = all;
	int code = 0;

	while (left && code >= 0) {
		unsigned long before = ring->at, stop = position.published + step;

		stop = stop < position.end ? stop : position.end;
		left = direct ? hand_out_directly(ring, stop, left, direct, &code)
			      : hand_out(ring, stop, left, &code);
		position.at = ring->at;
		if (position.at - position.published >= step) {
			__atomic_store_n(ring->consumer, position.at, __ATOMIC_RELEASE);
			position.published = position.at;
		} else if (position.at == before && !pass_over(ring, position.end) &&
			   !look_again(ring, &position)) {
			break;
		}
	}
	__atomic_store_n(ring->consumer, ring->at, __ATOMIC_RELEASE);
	return code < 0 ? code : (int)(all - left);
}

static enum bpf_perf_event_ret perf_record(void *context, int cpu, struct perf_event_header *event)
{
	struct kern_ring *ring = context;
	int code = 0;

	if (event->type == PERF_RECORD_SAMPLE) {
		struct {
			struct perf_event_header header;
			uint32_t size;
			uint8_t data[];
		} *sample = (void *)event;

		code = ring->record(ring->context, sample->data, sample->size);
		ring->count++;
	} else if (event->type == PERF_RECORD_LOST) {
		struct {
			struct perf_event_header header;
			uint64_t id, lost;
		} *lost = (void *)event;

		if (ring->lost)
			ring->lost(ring->context, cpu, lost->lost);
	}
	if (code < 0)
		ring->stop = code;
	if (code < 0 || (ring->limit && (size_t)ring->count >= ring->limit))
		return LIBBPF_PERF_EVENT_DONE;
	return LIBBPF_PERF_EVENT_CONT;
}

/* A buffer for each CPU by itself, which comes and goes with it. -ENODEV: it is offline. */
static int open_buffer(struct kern_ring *ring, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_BPF_OUTPUT,
					.sample_type = PERF_SAMPLE_RAW,
					.sample_period = 1,
					.wakeup_events = 1 };
	int key = cpu;
	LIBBPF_OPTS(perf_buffer_raw_opts, options, .cpu_cnt = 1, .cpus = &cpu, .map_keys = &key);
	struct perf_buffer *buffer =
		perf_buffer__new_raw(ring->map_fd, PERF_PAGES, &attr, perf_record, ring, &options);
	struct epoll_event event = { .events = EPOLLIN };

	if (!buffer)
		return -errno;
	if (epoll_ctl(ring->epoll_fd, EPOLL_CTL_ADD, perf_buffer__epoll_fd(buffer), &event)) {
		int code = -errno;

		perf_buffer__free(buffer);
		return code;
	}
	ring->buffers[cpu] = buffer;
	return 0;
}

static int open_perf(struct kern_ring *ring, const struct kern_map *map)
{
	int possible = kern_possible_cpus(), cpu, opened = 0, code = possible;

	if (possible < 0)
		return possible;
	ring->map_fd = map->fd;
	ring->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ring->epoll_fd < 0)
		return -errno;
	ring->buffers = calloc(possible, sizeof(*ring->buffers));
	if (!ring->buffers)
		return -ENOMEM;
	/* The script may have made it smaller. */
	ring->nbuffers =
		possible < (int)map->info.max_entries ? possible : (int)map->info.max_entries;
	for (cpu = 0; cpu < ring->nbuffers; cpu++) {
		code = open_buffer(ring, cpu);
		if (code && code != -ENODEV)
			return code;
		opened += !code;
	}
	return opened ? 0 : code;
}

/* One CPU after the other, so that a limit or a stop holds for all of them. */
static int consume_perf(struct kern_ring *ring, size_t limit)
{
	int cpu;

	ring->limit = limit;
	ring->count = 0;
	ring->stop = 0;
	for (cpu = 0; cpu < ring->nbuffers; cpu++) {
		int code =
			ring->buffers[cpu] ? perf_buffer__consume_buffer(ring->buffers[cpu], 0) : 0;

		/* DONE (0) and CONT (-2) are the values of enum bpf_perf_event_ret. */
		if (code && code != LIBBPF_PERF_EVENT_CONT && code != -ENOENT)
			return code;
		if (ring->stop || (limit && (size_t)ring->count >= limit))
			break;
	}
	return ring->stop ? ring->stop : ring->count;
}

void kern_ring_cpu_went(struct kern_ring *ring, int cpu)
{
	if (cpu < 0 || cpu >= ring->nbuffers)
		return;
	LISTEN(NULL);
	perf_buffer__free(ring->buffers[cpu]); /* leaves the epoll set by itself */
	ring->buffers[cpu] = NULL;
}

int kern_ring_cpu_came(struct kern_ring *ring, int cpu)
{
	int code;

	if (cpu < 0 || cpu >= ring->nbuffers || ring->buffers[cpu])
		return 0;
	LISTEN(NULL);
	code = open_buffer(ring, cpu);
	return code == -ENODEV ? 0 : code;
}

int kern_ring_open(struct kern_map *map, kern_record_fn record, kern_lost_fn lost, void *context,
		   struct kern_ring **ret, struct err *err)
{
	CLEANUP(kern_ring_close_cleanup)
	struct kern_ring *ring = calloc(1, sizeof(*ring));
	int code;

	if (!ring)
		return err_nomem(err);
	LISTEN(map->kern ? &map->kern->messages : NULL);
	ring->epoll_fd = -1;
	ring->record = record;
	ring->lost = lost;
	ring->context = context;
	ring->page = sysconf(_SC_PAGESIZE);
	if (map->fd < 0)
		code = -ENOENT;
	else if (map->info.type == BPF_MAP_TYPE_RINGBUF)
		code = open_ringbuf(ring, map);
	else if (map->info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		code = open_perf(ring, map);
	else
		return err_set(err, -EINVAL, "map %s: neither a ring buffer nor a perf-event array",
			       map->name);
	if (code)
		return err_set(err, code, "map %s: cannot be read: %s", map->name,
			       kern_errno_text(code));
	*ret = take_pointer(ring);
	return 0;
}

int kern_ring_consume(struct kern_ring *ring, size_t limit)
{
	if (!ring->buffers) /* libbpf has no part in it */
		return consume_ringbuf(ring, limit, NULL);
	LISTEN(NULL);
	return consume_perf(ring, limit);
}

bool kern_ring_is_direct(const struct kern_ring *ring)
{
	return !ring->buffers;
}

int kern_ring_consume_direct(struct kern_ring *ring, size_t limit, const struct kern_direct *direct)
{
	return consume_ringbuf(ring, limit, direct);
}
