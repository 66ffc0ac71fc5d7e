// SPDX-License-Identifier: BSD-2-Clause
#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pmu/page.h"

#define FDS   256
#define CPUS  4
#define SLICE 1000 /* ns */
#define WIDTH 48
#define MASK  ((1ULL << WIDTH) - 1)

struct event {
	struct perf_event_attr attr;
	int cpu, leader; /* fd of the leader: its own when it leads */
	bool on, dead, failed, active;
	uint64_t id, count, enabled, running;
	uint64_t start; /* the counter's contents when count was 0 */
	unsigned int slot;
	struct perf_event_mmap_page page;
};

static struct {
	struct event *events[FDS]; /* by descriptor */
	bool online[CPUS], hybrid, old, forbidden;
	unsigned int counters, turn, reads, user_reads, opened;
	uint64_t next_id;
	int user_cpu; /* -1: no reading in user space */
} kernel;

static bool is_hardware(const struct event *event)
{
	return event->attr.type != PERF_TYPE_SOFTWARE;
}

static struct event *event_of(int fd)
{
	return fd >= 0 && fd < FDS ? kernel.events[fd] : NULL;
}

/* 0 or what the kernel says of an event that no PMU of this CPU counts. */
static int check_pmu(const struct perf_event_attr *attr, int cpu)
{
	bool generic = attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE;
	uint32_t type = generic ? attr->config >> 32 : attr->type, mine = cpu < 2 ? 4 : 10;

	if (attr->type == PERF_TYPE_SOFTWARE || attr->type == 30)
		return 0;
	if (generic && kernel.old)
		return type ? -EINVAL : 0;
	if (!type)
		type = PERF_TYPE_RAW;
	return type == (kernel.hybrid ? mine : PERF_TYPE_RAW) ? 0 : -ENOENT;
}

static unsigned int group_size(int leader)
{
	unsigned int size = 0;
	int fd;

	for (fd = 0; fd < FDS; fd++)
		size += kernel.events[fd] && kernel.events[fd]->leader == leader &&
			is_hardware(kernel.events[fd]);
	return size;
}

static int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		       unsigned long flags)
{
	struct event *event;
	int fd, code;

	if (pid != -1 || cpu < 0 || cpu >= CPUS || flags != PERF_FLAG_FD_CLOEXEC)
		return -EINVAL;
	if (!kernel.online[cpu])
		return -ENODEV;
	code = check_pmu(attr, cpu);
	if (code)
		return code;
	if (group_fd >= 0 && (event_of(group_fd)->cpu != cpu || event_of(group_fd)->dead ||
			      group_size(group_fd) >= kernel.counters))
		return -EINVAL;
	event = calloc(1, sizeof(*event));
	fd = dup(STDERR_FILENO);
	if (!event || fd < 0 || fd >= FDS)
		abort();
	free(kernel.events[fd]);
	kernel.events[fd] = event;
	*event = (struct event){ .attr = *attr,
				 .cpu = cpu,
				 .leader = group_fd >= 0 ? group_fd : fd,
				 .on = !attr->disabled,
				 .id = kernel.next_id++ };
	kernel.opened++;
	return fd;
}

static ssize_t kernel_read(int fd, void *data, size_t size)
{
	struct event *event = event_of(fd), *leader = event_of(event->leader);
	uint64_t values[3 + 2 * 16] = { 0, leader->enabled, leader->running };
	int other;

	kernel.reads++;
	if (leader->failed)
		return 0;
	for (other = 0; other < FDS; other++) {
		const struct event *member = kernel.events[other];

		/* A CPU that goes takes groups apart. */
		if (!member || member->leader != event->leader || (event->dead && other != fd))
			continue;
		values[3 + 2 * values[0]] = member->count;
		values[4 + 2 * values[0]++] = member->id;
	}
	if (size < (3 + 2 * values[0]) * 8)
		return -ENOSPC;
	memcpy(data, values, (3 + 2 * values[0]) * 8);
	return (3 + 2 * values[0]) * 8;
}

/* A pinned event gets its counter at once, or never. */
static void pin(struct event *event)
{
	unsigned int used = 0;
	int fd;

	for (fd = 0; fd < FDS; fd++) {
		const struct event *other = kernel.events[fd];

		used += other && other->cpu == event->cpu && other->attr.pinned && other->on &&
			!other->failed && is_hardware(other);
	}
	event->failed = is_hardware(event) && used > kernel.counters;
}

static int kernel_control(int fd, unsigned long request, unsigned long argument)
{
	struct event *event = event_of(fd);

	if (request == PERF_EVENT_IOC_ENABLE && !event->dead) {
		event->on = true;
		if (event->attr.pinned)
			pin(event);
	} else if (request == PERF_EVENT_IOC_DISABLE) {
		event->on = false;
	} else if (request == PERF_EVENT_IOC_ID) {
		*(uint64_t *)argument = event->id;
	}
	return 0;
}

/* ---- pages ------------------------------------------------------------------------------------ */

static void write_page(struct event *event, bool running)
{
	event->active = running;
	event->page.lock += 2;
	event->page.cap_user_rdpmc = event->page.cap_user_time = kernel.user_cpu >= 0;
	event->page.pmc_width = WIDTH;
	event->page.index = running ? event->slot + 1 : 0;
	/* So that offset and the counter's contents, with their sign, are the count. */
	event->page.offset =
		event->count -
		(int64_t)((event->start + event->count) << (64 - WIDTH)) / (1LL << (64 - WIDTH));
	event->page.time_enabled = event->enabled;
	event->page.time_running = event->running;
	event->page.time_mult = 1;
}

static struct perf_event_mmap_page *kernel_map(int fd)
{
	struct event *event = event_of(fd);

	if (kernel.user_cpu < 0)
		return NULL;
	write_page(event, event->active);
	return &event->page;
}

static void kernel_unmap(struct perf_event_mmap_page *page)
{
	(void)page;
}

static int machine_cpu(void *context)
{
	(void)context;
	return kernel.user_cpu;
}

static uint64_t machine_ticks(void *context)
{
	(void)context;
	return 0;
}

static int machine_counter(void *context, uint32_t index, uint64_t *ret)
{
	int fd;

	(void)context;
	*ret = 0;
	kernel.user_reads++;
	if (kernel.forbidden)
		return -EPERM;
	for (fd = 0; fd < FDS; fd++) {
		const struct event *event = kernel.events[fd];

		/* What this CPU has in its counter of this number, whoever asks. */
		if (event && event->cpu == kernel.user_cpu && is_hardware(event) && !event->dead &&
		    event->slot == index) {
			*ret = (event->start + event->count) & MASK;
			break;
		}
	}
	return 0;
}

static const struct pmu_page_machine machine = { machine_cpu, machine_ticks, machine_counter,
						 NULL };

/* ---- time --------------------------------------------------------------------------------------- */

/* One slice for the group of @leader, if counters are left for it. */
static void run_group(int leader, const unsigned int rate[CPUS], unsigned int left[CPUS])
{
	struct event *first = kernel.events[leader];
	unsigned int needed = group_size(leader);
	bool fits = first->on && !first->dead && !first->failed && left[first->cpu] >= needed;
	int fd;

	if (first->on && !first->dead && !fits && first->attr.pinned)
		first->failed = true;
	if (fits)
		left[first->cpu] -= needed;
	for (fd = 0; fd < FDS; fd++) {
		struct event *event = kernel.events[fd];

		if (!event || event->leader != leader || event->dead || !first->on)
			continue;
		event->enabled += SLICE;
		event->running += fits ? SLICE : 0;
		event->count += fits ? (uint64_t)SLICE * rate[event->cpu] : 0;
		event->slot = is_hardware(event) ? (unsigned int)fd : ~0U - 1;
		write_page(event, fits);
	}
}

void kernel_run(uint64_t ns, const unsigned int rate[CPUS])
{
	int leaders[FDS], count = 0, pinned, fd, i;

	for (fd = 0; fd < FDS; fd++) {
		if (kernel.events[fd] && kernel.events[fd]->leader == fd)
			leaders[count++] = fd;
	}
	for (; ns >= SLICE; ns -= SLICE, kernel.turn++) {
		unsigned int left[CPUS] = { kernel.counters, kernel.counters, kernel.counters,
					    kernel.counters };

		for (pinned = 1; pinned >= 0; pinned--) {
			for (i = 0; i < count; i++) {
				fd = leaders[(i + kernel.turn / CPUS) % count];
				if (kernel.events[fd]->attr.pinned == pinned)
					run_group(fd, rate, left);
			}
		}
	}
}

void kernel_set_online(int cpu, bool online)
{
	int fd;

	kernel.online[cpu] = online;
	for (fd = 0; fd < FDS && !online; fd++) {
		struct event *event = kernel.events[fd];

		if (!event || event->cpu != cpu)
			continue;
		if (event->attr.type == 30) { /* an uncore PMU's events move on */
			event->cpu = 0;
			continue;
		}
		event->dead = true;
		event->on = false;
		write_page(event, false);
	}
}

void kernel_set_counter(int fd, uint64_t value)
{
	kernel.events[fd]->start = value - kernel.events[fd]->count;
	write_page(kernel.events[fd], kernel.events[fd]->active);
}

void kernel_allow_user_reads(int cpu)
{
	kernel.user_cpu = cpu;
}

void kernel_forbid_user_reads(void)
{
	kernel.forbidden = true;
}

unsigned int kernel_user_reads(void)
{
	return kernel.user_reads;
}

const struct perf_event_attr *kernel_attr(int fd)
{
	return event_of(fd) ? &event_of(fd)->attr : NULL;
}

unsigned int kernel_reads(void)
{
	return kernel.reads;
}

unsigned int kernel_opened(void)
{
	return kernel.opened;
}

void kernel_make_old(void)
{
	kernel.old = true;
}

void kernel_make_hybrid(struct fake *fake)
{
	kernel.hybrid = true;
	fake_remove(fake, FAKE_DEVICES "cpu");
	fake_write(fake, FAKE_DEVICES "cpu_core/type", "4\n");
	fake_write(fake, FAKE_DEVICES "cpu_core/cpus", "0-1\n");
	fake_write(fake, FAKE_DEVICES "cpu_core/format/event", "config:0-7\n");
	fake_write(fake, FAKE_DEVICES "cpu_atom/type", "10\n");
	fake_write(fake, FAKE_DEVICES "cpu_atom/cpus", "2-3\n");
	fake_write(fake, FAKE_DEVICES "cpu_atom/format/event", "config:0-7\n");
}

void kernel_start(struct fake *fake, unsigned int counters)
{
	int i;

	for (i = 0; i < FDS; i++)
		free(kernel.events[i]);
	memset(&kernel, 0, sizeof(kernel));
	for (i = 0; i < CPUS; i++)
		kernel.online[i] = true;
	kernel.counters = counters;
	kernel.next_id = 100;
	kernel.user_cpu = -1;
	fake->system.open = kernel_open;
	fake->system.read = kernel_read;
	fake->system.control = kernel_control;
	fake->system.map = kernel_map;
	fake->system.unmap = kernel_unmap;
	fake->system.machine = &machine;
}
