/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMU events: from text to perf_event_attr, opened per CPU. No libbpf here. One thread.
 * Sources: perf_event_open(2), tools' event names as `perf list` shows them.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * Where events come from. Functions without a system argument, and a NULL argument, mean this
 * machine; tests give a directory of their own and an open() that fails as they like.
 */
struct pmu_page_machine;
struct pmu_system {
	const char *sysfs;   /* "/sys" */
	const char *procfs;  /* "/proc" */
	const char *tracefs; /* "/sys/kernel/tracing" */
	/* As perf_event_open(2): descriptor, or -errno. */
	int (*open)(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags);
	/* As read(2), ioctl(2), and mmap(2) of the event's first page; -errno, NULL. */
	ssize_t (*read)(int fd, void *data, size_t size);
	int (*control)(int fd, unsigned long request, unsigned long argument);
	struct perf_event_mmap_page *(*map)(int fd);
	void (*unmap)(struct perf_event_mmap_page *page);
	const struct pmu_page_machine *machine; /* pmu/page.h */
};
extern const struct pmu_system pmu_this_machine;

/* One event as text asked for it: "cycles", "instructions:u", "LLC-load-misses", "r1a8:k",
 * "cpu/event=0x3c,umask=1/u", "page-faults", "sched:sched_switch", "mem:0x1000/8:w:u", and names of
 * libpfm4 ("INST_RETIRED:ANY_P"). */
struct pmu_event {
	char text[128]; /* canonical, as reports name it; what name= said, if given */
	/* size, type, config*, exclude_*, precise_ip, pinned and exclusive are set. */
	struct perf_event_attr attr;
	bool software;     /* no counter of the CPU is used */
	char unit[16];     /* "" or "ns" ... */
	double scale;      /* the printed value is count * scale in `unit`; 1 for most */
	char pmu[64];      /* PMU of sysfs, "" for the kernel's generic names */
	char cpumask[256]; /* CPUs on which it can be opened (uncore PMUs), "" for all */
	char missing[160]; /* why this machine cannot have it (its PMU is absent), "" if it may */
	uint64_t period;   /* from period=, 0: not given */
	uint64_t freq;     /* from freq=, Hz, 0: not given */
	bool precise_max;  /* :P, as precise as sampling can be here */
	bool sample_read;  /* :S, samples are to carry the values of the group: nobody asks yet */
	bool weak;         /* :W, the group that it leads is all together or not at all */
};

/*
 * -EINVAL for bad syntax, with the position; -ENOENT for an unknown name, with nearest names;
 * -EOPNOTSUPP for a modifier or term that perf knows and duet does not (yet).
 * An event of a well-known kind of PMU that this machine lacks ("cpu/..." in a VM) is parsed, with
 * `missing` set; opening it gives PMU_NOT_SUPPORTED.
 */
int pmu_parse(const char *text, struct pmu_event *ret, struct err *err);
int pmu_parse_on(const struct pmu_system *system, const char *text, struct pmu_event *ret,
		 struct err *err);

/* How often to sample: one of both is not 0. */
struct pmu_rate {
	uint64_t period; /* events between samples */
	uint64_t freq;   /* samples per second and CPU, Hz */
};
#define PMU_DEFAULT_FREQ 997
/* "EVENT@FREQ", "EVENT" (997 Hz, or what period= or freq= in it says). As pmu_parse(). */
int pmu_parse_sampling(const char *text, struct pmu_event *event, struct pmu_rate *rate,
		       struct err *err);

/* The software event that a tool may declare in place of @text where there is no hardware PMU
 * (modifiers kept out): "cpu-clock" for cycles. NULL: there is none. duet never does so itself. */
const char *pmu_substitute(const char *text);

/* The same event on a list of CPUs. */
struct pmu_counter;
enum pmu_state {
	PMU_OPEN,
	PMU_NOT_SUPPORTED, /* the machine lacks it: reported, the run goes on */
};
/*
 * Opens per CPU (pid -1), disabled. A missing event is not a failure: 0 with state
 * PMU_NOT_SUPPORTED and the reason in @err (errno ENOENT, ENODEV, EOPNOTSUPP, EINVAL of a
 * known-good attr); permission, EMFILE and the like fail with what, why and what to do.
 * @leader: counter that leads the group, or NULL. @cpus: array of @ncpus ids; of an uncore PMU
 * only those in its cpumask are opened. A member of a group starts and stops with its leader; one
 * that opens alone but not in the group is opened alone (pmu_counter_grouped() is false, @err says
 * why). err->code is 0 when there is nothing to say. Read and close members before their leader:
 * the kernel lets those that are left behind run on, each for itself.
 */
int pmu_open(const struct pmu_event *event, const int *cpus, size_t ncpus,
	     const struct pmu_counter *leader, struct pmu_counter **ret, struct err *err);
int pmu_open_on(const struct pmu_system *system, const struct pmu_event *event, const int *cpus,
		size_t ncpus, const struct pmu_counter *leader, struct pmu_counter **ret,
		struct err *err);
/* Opens for sampling by BPF programs (SEC("perf_event/EVENT@FREQ")): no ring, disabled. */
int pmu_open_sampling(const struct pmu_event *event, const struct pmu_rate *rate, const int *cpus,
		      size_t ncpus, struct pmu_counter **ret, struct err *err);
void pmu_close(struct pmu_counter *counter);
DEFINE_CLEANUP(struct pmu_counter *, pmu_close);

enum pmu_state pmu_counter_state(const struct pmu_counter *counter);
const struct pmu_event *pmu_counter_event(const struct pmu_counter *counter);
/* Why it is not supported, or not in its group; "" otherwise. */
const char *pmu_counter_reason(const struct pmu_counter *counter);
/* On every CPU in the group of its leader. A leader is not "grouped". */
bool pmu_counter_grouped(const struct pmu_counter *counter);
/* The fd on @cpu, or -1. Owned by the counter. */
int pmu_counter_fd(const struct pmu_counter *counter, int cpu);
/* On all CPUs; 0 for one that is not supported. A leader takes its members along. */
int pmu_enable(struct pmu_counter *counter);
int pmu_disable(struct pmu_counter *counter);
int pmu_enable_cpu(struct pmu_counter *counter, int cpu);
/* Sampling only; acts at once. -EINVAL for 0, or for a period of an event with a frequency. */
int pmu_set_rate(struct pmu_counter *counter, const struct pmu_rate *rate);

/*
 * @cpu went offline: its event, which the kernel has ended, is closed, and what it counted is kept.
 * Members before their leader. Nothing happens where it is not open.
 */
void pmu_cpu_offline(struct pmu_counter *counter, int cpu);
/*
 * @cpu came online (again): the event is opened there like on the others, disabled, in the group of
 * @leader (NULL: none). 0 also where its PMU does not count on this CPU. -ENOMEM, or as pmu_open().
 */
int pmu_cpu_online(struct pmu_counter *counter, const struct pmu_counter *leader, int cpu);
/*
 * How long the event that is open on @cpu has been on (ns): from the moment when the kernel ends it
 * this stands still. 0 also for a pinned one that found no counter. -ENOENT: it is not open there;
 * else -errno of read(2).
 */
int pmu_cpu_time(const struct pmu_counter *counter, int cpu, uint64_t *ret);

/*
 * count, enabled, running (ns) of one CPU, with what it counted before it was offline. A pinned
 * event that found no counter reads as zeros: running 0 means "not counted". Where the CPU allows
 * it, and it is the one that runs the caller, there is no system call (pmu/page.h). -ENOENT: not
 * opened on @cpu; else -errno of read(2).
 */
struct pmu_reading {
	uint64_t count, enabled, running;
};
int pmu_read_cpu(const struct pmu_counter *counter, int cpu, struct pmu_reading *ret);
/* Sums over all CPUs, unscaled. -EOPNOTSUPP when not supported. */
int pmu_read(const struct pmu_counter *counter, struct pmu_reading *ret);
/*
 * The same of @count counters of one group, of each CPU's by one read(2): all are of the same time,
 * enabled and running are equal, and ratios of them are true. -EXDEV: they are not in one group on
 * every CPU; *ret is untouched then.
 */
int pmu_read_together(const struct pmu_counter *const *counters, size_t count,
		      struct pmu_reading *ret);

/* "0-3,7" -> ids, ascending, each once; online CPUs for NULL. A CPU that is not online is -ENODEV
 * with the online ones. Caller frees *ret. */
int pmu_parse_cpus(const char *text, int **ret, size_t *count, struct err *err);
int pmu_parse_cpus_on(const struct pmu_system *system, const char *text, int **ret, size_t *count,
		      struct err *err);

/* For `duet list events` and `doctor`. Calls back with canonical names; @kind is "hardware",
 * "software", "cache", or the PMU's name; @description may be "". */
typedef void (*pmu_name_fn)(void *context, const char *name, const char *kind,
			    const char *description);
void pmu_list(pmu_name_fn fn, void *context);
void pmu_list_on(const struct pmu_system *system, pmu_name_fn fn, void *context);
/* Does it open (on CPU 0 or any)? 0, or -errno with the reason and the remedy in @err. */
int pmu_probe(const char *text, struct err *err);
/* Counts the calling thread alone, on every CPU, from now on; later threads are not included. The
 * fd is the caller's to close; read(2) gives a struct pmu_reading. -errno: it cannot be. */
int pmu_open_self(const struct pmu_event *event);
/* Generic events that doctor asks pmu_probe() for, in reading order; NULL-terminated. */
extern const char *const pmu_probe_names[];
/* What the counters of one PMU of the CPU's cores can take at this moment. */
struct pmu_capacity {
	char pmu[64];
	int cpu;           /* the first of its CPUs: there it was measured */
	const char *event; /* with copies of this event; NULL: it counts none of those tried */
	unsigned int free; /* so many of them counted at once, beside what others have pinned */
};
/* Opens and closes pinned events: others' events without a pin miss some microseconds. Caller frees
 * *ret; none where there is no such PMU. -ENOMEM. */
int pmu_capacities(struct pmu_capacity **ret, size_t *count, struct err *err);
int pmu_capacities_on(const struct pmu_system *system, struct pmu_capacity **ret, size_t *count,
		      struct err *err);
/* How many of some events count at once, beside what others have pinned. */
struct pmu_fit {
	int cpu;            /* where it was tried */
	char pmu[64];       /* of its core, when they do not fit */
	unsigned int asked; /* of the events, so many want a counter of the core */
	unsigned int fit;   /* and so many get one */
};
/* Tries it, like pmu_capacities(): each pinned, alone, on the first of @cpus; of several kinds of
 * cores the tightest is told. Events that cannot be opened, and those of other PMUs, are passed
 * over. -ENOMEM. */
int pmu_fit(const struct pmu_event *const *events, size_t count, const int *cpus, size_t ncpus,
	    struct pmu_fit *ret);
int pmu_fit_on(const struct pmu_system *system, const struct pmu_event *const *events, size_t count,
	       const int *cpus, size_t ncpus, struct pmu_fit *ret);
/* Is this a virtual machine, whose host may give it counters or not? @who: by whose word (a name of
 * the firmware's or device tree's), "" if not. NULL: this machine. */
bool pmu_is_virtual(const struct pmu_system *system, char *who, size_t size);
/* A process that has events open, and how many. */
struct pmu_user {
	pid_t pid;
	char comm[64];
	unsigned int events;
};
/* All but this one; of others' processes root alone is told. Caller frees *ret. -errno. */
int pmu_users(struct pmu_user **ret, size_t *count);
int pmu_users_on(const struct pmu_system *system, struct pmu_user **ret, size_t *count);
/*
 * Makes room for @needed more descriptors than are open now: raises RLIMIT_NOFILE's soft (and, if
 * allowed, hard) limit; never lowers it. *granted: how many more there can be. -EMFILE with needed
 * and granted when it is not enough. @granted may be NULL.
 */
int pmu_raise_file_limit(size_t needed, size_t *granted, struct err *err);
