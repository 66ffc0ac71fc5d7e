// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_printk() live, by the tracepoint that each call passes: other readers of the trace buffer
 * lose nothing. One perf ring per CPU; what is there at one time comes in the order of its making.
 */
#include "kern/internal.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reader.h"

#define RING_PAGES 32 /* a power of two */

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct line {
	uint64_t time;
	size_t offset, size; /* in text */
};

struct kern_printk {
	kern_line_fn line;
	void *context;
	int epoll;
	size_t page_size;
	uint32_t text_offset; /* of the __data_loc in the record */
	struct ring *rings;
	size_t nrings, rings_capacity;
	struct buf text; /* of the lines that are collected */
	struct line *lines;
	size_t nlines, lines_capacity;
	uint64_t lost;
};

void kern_printk_close(struct kern_printk *printk)
{
	size_t i;

	if (!printk)
		return;
	if (printk->lost)
		log_note("%llu lines of bpf_printk() were lost", (unsigned long long)printk->lost);
	for (i = 0; i < printk->nrings; i++) {
		if (printk->rings[i].page)
			munmap(printk->rings[i].page, (RING_PAGES + 1) * printk->page_size);
		close_fd(&printk->rings[i].fd);
	}
	close_fd(&printk->epoll);
	buf_deinit(&printk->text);
	free(printk->lines);
	free(printk->rings);
	free(printk);
}

static int open_ring(struct kern_printk *printk, int id, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
					.size = sizeof(attr),
					.config = id,
					.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
					.sample_period = 1,
					.wakeup_events = 1 };
	struct epoll_event event = { .events = EPOLLIN };
	struct ring *ring;
	void *address;
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno; /* ENODEV: that CPU is offline */
	ring = array_grow(&printk->rings, &printk->nrings, &printk->rings_capacity, sizeof(*ring));
	if (!ring) {
		close(fd);
		return -ENOMEM;
	}
	ring->fd = fd;
	address = mmap(NULL, (RING_PAGES + 1) * printk->page_size, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
		return -errno;
	ring->page = address;
	event.data.fd = fd;
	return epoll_ctl(printk->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* "field:__data_loc char[] bpf_string;	offset:8;" */
static int find_text_offset(const char *root, uint32_t *ret)
{
	CLEANUP(buf_deinit)
	struct buf format = { 0 };
	const char *field;
	char path[256];
	int code;

	snprintf(path, sizeof(path), "%s/events/bpf_trace/bpf_trace_printk/format", root);
	code = buf_read_file(&format, path, NULL);
	if (code)
		return code;
	field = strstr(format.data, "bpf_string;");
	if (!field || sscanf(field, "bpf_string; offset:%u", ret) != 1)
		return -EINVAL;
	return 0;
}

static int open_rings(struct kern_printk *printk, struct err *err)
{
	const char *root = kern_tracefs(err);
	int id, cpu, code, cpus = kern_possible_cpus();

	if (!root)
		return err && err->code ? err->code : -ENOENT;
	id = tracefs_event_id(root, "bpf_trace", "bpf_trace_printk");
	code = id < 0 ? id : find_text_offset(root, &printk->text_offset);
	if (code)
		return err_set(err, code, "tracepoint bpf_trace_printk: %s", kern_errno_text(code));
	for (cpu = 0; cpu < cpus && !code; cpu++)
		code = open_ring(printk, id, cpu);
	if (code && !explain_permission(code, err))
		err_set(err, code, "tracepoint bpf_trace_printk: %s", kern_errno_text(code));
	return code;
}

int kern_printk_open(kern_line_fn line, void *context, struct kern_printk **ret, struct err *err)
{
	CLEANUP(kern_printk_close_cleanup)
	struct kern_printk *printk = calloc(1, sizeof(*printk));
	int code;

	if (!printk)
		return err_nomem(err);
	printk->line = line;
	printk->context = context;
	printk->page_size = sysconf(_SC_PAGESIZE);
	printk->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (printk->epoll < 0)
		return err_set(err, -errno, "epoll: %s", strerror(errno));
	code = open_rings(printk, err);
	if (code)
		return code;
	*ret = take_pointer(printk);
	return 0;
}

int kern_printk_fd(const struct kern_printk *printk)
{
	return printk->epoll;
}

/* u64 time, u32 size, the tracepoint's record. */
static int keep_line(struct kern_printk *printk, struct reader *record)
{
	uint64_t time = reader_u64(record);
	uint32_t size = reader_u32(record), where;
	const char *raw = reader_take(record, size), *text;
	struct line *line;
	int code;

	if (!raw || !range_inside(printk->text_offset, sizeof(where), size))
		return 0;
	memcpy(&where, raw + printk->text_offset, sizeof(where));
	text = string_at(raw, size, where & 0xffff);
	if (!text)
		return 0;
	line = array_grow(&printk->lines, &printk->nlines, &printk->lines_capacity, sizeof(*line));
	if (!line)
		return -ENOMEM;
	*line = (struct line){ time, printk->text.size, strlen(text) };
	code = buf_append(&printk->text, text, line->size + 1);
	if (code)
		printk->nlines--;
	return code;
}

static int read_ring(struct kern_printk *printk, struct ring *ring)
{
	size_t size = RING_PAGES * printk->page_size;
	const char *data = (const char *)ring->page + printk->page_size;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	int code = 0;

	while (tail < head && !code) {
		struct perf_event_header header;
		char record[65536];
		size_t at = tail % size, first;

		/* Records are aligned to 8 bytes: a header is never in two pieces. */
		memcpy(&header, data + at, sizeof(header));
		if (header.size < sizeof(header))
			break;
		first = size - at < header.size ? size - at : header.size;
		memcpy(record, data + at, first);
		memcpy(record + first, data, header.size - first);
		tail += header.size;

		struct reader reader = reader_over(record, header.size);

		reader_take(&reader, sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE) {
			code = keep_line(printk, &reader);
		} else if (header.type == PERF_RECORD_LOST) {
			reader_u64(&reader); /* id */
			printk->lost += reader_u64(&reader);
		}
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	return code;
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

int kern_printk_consume(struct kern_printk *printk)
{
	size_t i;
	int code = 0, count;

	for (i = 0; i < printk->nrings && !code; i++)
		code = read_ring(printk, &printk->rings[i]);
	if (printk->nlines > 1)
		qsort(printk->lines, printk->nlines, sizeof(*printk->lines), by_time);
	for (i = 0; i < printk->nlines; i++)
		printk->line(printk->context, printk->text.data + printk->lines[i].offset,
			     printk->lines[i].size);
	count = printk->nlines;
	printk->nlines = 0;
	printk->text.size = 0;
	return code ? code : count;
}
