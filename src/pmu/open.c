// SPDX-License-Identifier: BSD-2-Clause
/* Opening events on CPUs, and telling "this machine lacks it" from real failures. */
#include "pmu/counter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int system_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		       unsigned long flags)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);

	return fd < 0 ? -errno : fd;
}

static ssize_t system_read(int fd, void *data, size_t size)
{
	ssize_t got = read(fd, data, size);

	return got < 0 ? -errno : got;
}

static int system_control(int fd, unsigned long request, unsigned long argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

const struct pmu_system pmu_this_machine = {
	.sysfs = "/sys",
	.procfs = "/proc",
	.tracefs = "/sys/kernel/tracing",
	.open = system_open,
	.read = system_read,
	.control = system_control,
	.map = pmu_page_map,
	.unmap = pmu_page_unmap,
	.machine = &pmu_page_this_machine,
};

bool pmu_means_not_supported(int code)
{
	return code == -ENOENT || code == -ENODEV || code == -ENXIO || code == -EOPNOTSUPP ||
	       code == -EINVAL || code == -ENOSYS;
}

static void explain_missing(const struct pmu_system *system, const struct pmu_event *event,
			    int code, char *text, size_t size)
{
	bool core = event->attr.type == PERF_TYPE_HARDWARE ||
		    event->attr.type == PERF_TYPE_HW_CACHE || event->attr.type == PERF_TYPE_RAW;

	if (*event->missing)
		snprintf(text, size, "%s", event->missing);
	else if (code == -ENOSYS)
		snprintf(text, size, "this kernel has no perf events");
	else if (core && !pmu_sysfs_has_core(system))
		snprintf(text, size, "this machine has no hardware PMU (a VM without vPMU?)");
	else if (code == -ENODEV)
		snprintf(text, size, "no CPU that is measured counts it");
	else if (code == -EOPNOTSUPP && event->attr.precise_ip)
		snprintf(text, size, "the CPU cannot sample it precisely: leave out :p");
	else if (code == -EOPNOTSUPP && event->attr.sample_period)
		snprintf(text, size, "the PMU cannot sample it");
	else
		snprintf(text, size, "the %s has no such event (%s)", core ? "CPU" : "PMU",
			 strerrorname_np(-code));
}

static int explain_permission(const struct pmu_system *system, const struct pmu_event *event,
			      int code, struct err *err)
{
	char text[32];
	int level;

	if (pmu_read_file(text, sizeof(text), "%s/sys/kernel/perf_event_paranoid", system->procfs) <
	    0)
		return err_set(err, code, "event '%s': %s: this kernel has no perf events",
			       event->text, strerror(-code));
	level = atoi(text);
	if (level > 0)
		return err_set(err, code,
			       "event '%s': %s: kernel.perf_event_paranoid is %d, counting whole "
			       "CPUs needs 0: run as root, give duet CAP_PERFMON, or "
			       "sysctl kernel.perf_event_paranoid=0",
			       event->text, strerror(-code), level);
	return err_set(err, code,
		       "event '%s': %s: kernel.perf_event_paranoid (%d) is not in the way: "
		       "a container's seccomp profile, or the lockdown, forbids perf_event_open; "
		       "give the container CAP_PERFMON",
		       event->text, strerror(-code), level);
}

static int explain_failure(const struct pmu_system *system, const struct pmu_event *event, int cpu,
			   size_t ncpus, int code, struct err *err)
{
	struct rlimit files;

	switch (code) {
	case -EACCES:
	case -EPERM:
		return explain_permission(system, event, code, err);
	case -EMFILE:
		getrlimit(RLIMIT_NOFILE, &files);
		return err_set(err, code,
			       "event '%s': needs %zu file descriptors, the limit of all is %llu: "
			       "raise it with ulimit -n",
			       event->text, ncpus, (unsigned long long)files.rlim_cur);
	case -EBUSY:
		return err_set(err, code, "event '%s': CPU %d: the PMU is in use by another tool",
			       event->text, cpu);
	case -ENOSPC:
		return err_set(err, code, "event '%s': CPU %d: all its counters are reserved",
			       event->text, cpu);
	}
	return err_set(err, code, "event '%s': CPU %d: %s", event->text, cpu, strerror(-code));
}

/* :P, as precise as the PMU allows, is found by trying. */
static int open_precise(const struct pmu_system *system, const struct pmu_event *event,
			struct perf_event_attr *attr, int cpu, int group_fd)
{
	int code;

	if (!event->precise_max || !attr->sample_period)
		return system->open(attr, -1, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
	for (attr->precise_ip = 3;; attr->precise_ip--) {
		code = system->open(attr, -1, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
		if (code >= 0 || !attr->precise_ip || !pmu_means_not_supported(code))
			return code;
	}
}

/*
 * Whether a group fits is asked by the kernel when a member is opened; that of arm64 then passes over
 * a leader that is off (validate_event() in drivers/perf/arm_pmu.c), and a group with one member too
 * many never counts. So the leader is on for that moment. What it counts in it is forgotten.
 */
static int open_member(const struct pmu_counter *counter, struct perf_event_attr *attr,
		       int group_fd, int cpu)
{
	const struct pmu_system *system = counter->system;
	bool woken =
		!counter->event.software && !system->control(group_fd, PERF_EVENT_IOC_ENABLE, 0);
	int fd = open_precise(system, &counter->event, attr, cpu, group_fd);

	if (woken) {
		system->control(group_fd, PERF_EVENT_IOC_DISABLE, 0);
		system->control(group_fd, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	}
	return fd;
}

/* In the group if it can be, else alone. */
static int open_attr(const struct pmu_counter *counter, const struct perf_event_attr *attr,
		     int group_fd, struct pmu_place *place)
{
	struct perf_event_attr tried = *attr;
	int fd;

	place->grouped = false;
	if (group_fd >= 0) {
		/* Members run with their leader; pinned and exclusive are the leader's. */
		tried.disabled = tried.pinned = tried.exclusive = 0;
		fd = open_member(counter, &tried, group_fd, place->cpu);
		place->grouped = fd >= 0;
		if (fd >= 0 || !pmu_means_not_supported(fd))
			return fd;
		tried = *attr;
	}
	return open_precise(counter->system, &counter->event, &tried, place->cpu, -1);
}

int pmu_open_place(const struct pmu_counter *counter, const struct pmu_counter *leader,
		   struct pmu_place *place)
{
	int group_fd = leader ? pmu_counter_fd(leader, place->cpu) : -1, fd;
	struct perf_event_attr attr = counter->attr;

	if (pmu_kinds_attr(counter->kinds, counter->nkinds, place->cpu, &attr)) {
		fd = open_attr(counter, &attr, group_fd, place);
		/* Older kernels know no PMU in config, and choose it by the CPU. */
		if (fd >= 0 || !pmu_means_not_supported(fd))
			return fd;
	}
	return open_attr(counter, &counter->attr, group_fd, place);
}

/* Fills @counter; the reason of a missing event goes to it, that of a failure to @err. */
static int open_all(struct pmu_counter *counter, const struct pmu_counter *leader, struct err *err)
{
	size_t i, opened = 0, grouped = 0;
	bool none = !counter->count || *counter->event.missing;
	int missing = -ENODEV;

	for (i = 0; i < counter->count && !none; i++) {
		struct pmu_place *place = &counter->places[i];
		int fd = pmu_open_place(counter, leader, place);

		if (fd < 0 && !pmu_means_not_supported(fd))
			return explain_failure(counter->system, &counter->event, place->cpu,
					       counter->count, fd, err);
		place->fd = fd < 0 ? -1 : fd;
		if (fd < 0)
			missing = fd;
		opened += fd >= 0;
		grouped += place->grouped;
	}
	counter->state = opened ? PMU_OPEN : PMU_NOT_SUPPORTED;
	counter->grouped = opened && grouped == opened;
	if (!counter->count && *counter->event.cpumask)
		snprintf(counter->reason, sizeof(counter->reason),
			 "PMU %s counts on CPU %.64s only, which is not measured",
			 counter->event.pmu, counter->event.cpumask);
	else if (!opened)
		explain_missing(counter->system, &counter->event, missing, counter->reason,
				sizeof(counter->reason));
	else if (!counter->grouped && leader && leader->state == PMU_OPEN)
		snprintf(counter->reason, sizeof(counter->reason),
			 "cannot be in one group with '%s': counted alone", leader->event.text);
	return 0;
}

/* The CPUs of @cpus on which the event can be opened. */
static int choose_cpus(struct pmu_counter *counter, const int *cpus, size_t ncpus, struct err *err)
{
	CLEANUP(free_pointer)
	int *mask = NULL;
	size_t i, j, count = 0;
	int code;

	if (*counter->event.cpumask) {
		code = pmu_cpu_list(counter->event.cpumask, &mask, &count);
		if (code)
			return err_set(err, code, "event '%s': cpumask '%s' of its PMU: %s",
				       counter->event.text, counter->event.cpumask,
				       strerror(-code));
	}
	for (i = 0; i < ncpus; i++) {
		for (j = 0; j < count && mask[j] != cpus[i]; j++)
			;
		if (mask && j == count)
			continue;
		counter->places[counter->count++] = (struct pmu_place){ .cpu = cpus[i], .fd = -1 };
	}
	return 0;
}

static int open_counter(const struct pmu_system *system, const struct pmu_event *event,
			const struct pmu_rate *rate, const int *cpus, size_t ncpus,
			const struct pmu_counter *leader, struct pmu_counter **ret, struct err *err)
{
	CLEANUP(pmu_close_cleanup)
	struct pmu_counter *counter = NULL;
	int code;

	counter = calloc(1, sizeof(*counter));
	if (!counter)
		return err_nomem(err);
	counter->places = calloc(ncpus + 1, sizeof(*counter->places));
	if (!counter->places)
		return err_nomem(err);
	counter->system = pmu_system_or_this(system);
	counter->event = *event;
	counter->attr = event->attr;
	counter->attr.disabled = 1;
	counter->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_GROUP |
				    PERF_FORMAT_ID;
	if (rate) {
		counter->attr.freq = rate->freq != 0;
		counter->attr.sample_period = rate->freq ? rate->freq : rate->period;
	}
	if (pmu_is_generic(event) &&
	    pmu_kinds_find(counter->system, &counter->kinds, &counter->nkinds))
		return err_nomem(err);
	code = choose_cpus(counter, cpus, ncpus, err);
	if (!code)
		code = open_all(counter, leader, err);
	if (code)
		return code;
	if (err)
		*err = (struct err){ 0 };
	if (*counter->reason)
		err_set(err, counter->state == PMU_OPEN ? -EINVAL : -EOPNOTSUPP, "event '%s'%s: %s",
			counter->event.text, counter->state == PMU_OPEN ? "" : ": not supported",
			counter->reason);
	*ret = take_pointer(counter);
	return 0;
}

int pmu_open_on(const struct pmu_system *system, const struct pmu_event *event, const int *cpus,
		size_t ncpus, const struct pmu_counter *leader, struct pmu_counter **ret,
		struct err *err)
{
	return open_counter(system, event, NULL, cpus, ncpus, leader, ret, err);
}

int pmu_open(const struct pmu_event *event, const int *cpus, size_t ncpus,
	     const struct pmu_counter *leader, struct pmu_counter **ret, struct err *err)
{
	return open_counter(NULL, event, NULL, cpus, ncpus, leader, ret, err);
}

static int check_rate(const struct pmu_event *event, const struct pmu_rate *rate, struct err *err)
{
	char text[32];
	uint64_t max;

	if (!rate->freq == !rate->period)
		return err_set(err, -EINVAL,
			       "event '%s': sampling needs either a period or a frequency",
			       event->text);
	if (pmu_read_file(text, sizeof(text), "%s/sys/kernel/perf_event_max_sample_rate",
			  pmu_this_machine.procfs) < 0)
		return 0;
	max = strtoull(text, NULL, 10);
	if (rate->freq > max)
		return err_set(err, -EINVAL,
			       "event '%s': %llu samples per second: at most %llu: raise "
			       "kernel.perf_event_max_sample_rate",
			       event->text, (unsigned long long)rate->freq,
			       (unsigned long long)max);
	return 0;
}

int pmu_open_sampling(const struct pmu_event *event, const struct pmu_rate *rate, const int *cpus,
		      size_t ncpus, struct pmu_counter **ret, struct err *err)
{
	int code = check_rate(event, rate, err);

	return code ? code : open_counter(NULL, event, rate, cpus, ncpus, NULL, ret, err);
}

int pmu_open_self(const struct pmu_event *event)
{
	struct perf_event_attr attr = event->attr;

	if (*event->missing || *event->cpumask)
		return -EOPNOTSUPP;
	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return system_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int pmu_probe(const char *text, struct err *err)
{
	CLEANUP(pmu_close_cleanup)
	struct pmu_counter *counter = NULL;
	CLEANUP(free_pointer)
	int *cpus = NULL;
	struct pmu_event event;
	size_t count;
	int code;

	code = pmu_parse(text, &event, err);
	if (code)
		return code;
	code = pmu_parse_cpus(NULL, &cpus, &count, err);
	if (code)
		return code;
	code = pmu_open(&event, cpus, count, NULL, &counter, err);
	if (code)
		return code;
	return counter->state == PMU_OPEN ? 0 : -EOPNOTSUPP;
}
