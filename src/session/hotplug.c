// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPUs that go offline and come (back) online during a run. The kernel tells on a netlink socket;
 * the counters of a CPU end when it goes and are opened anew when it comes.
 */
#include "session/internal.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define KERNEL_EVENTS 1 /* multicast group of uevents that the kernel sends */

bool session_measures(const struct session *session, int cpu)
{
	size_t i;

	for (i = 0; i < session->ncpus && session->cpus[i] != cpu; i++)
		;
	return i < session->ncpus;
}

/* -C names those that are measured; without it all are. */
static int measure(struct session *session, int cpu)
{
	int *cpus;

	if (session_measures(session, cpu))
		return 0;
	if (session->options->cpus)
		return -ENOENT;
	cpus = realloc(session->cpus, (session->ncpus + 1) * sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	session->cpus = cpus;
	cpus[session->ncpus++] = cpu;
	return 0;
}

static void empty_slot(struct session *session, const char *name, int cpu)
{
	struct kern_map *map = kern_map_find(session->kern, name);

	if (map && kern_map_created(map))
		kern_map_delete(map, &cpu);
}

/* Where totals are kept, @cpu's counters are these from now on. */
static int tell_totals(struct session *session, int cpu, struct err *err)
{
	int fds[DUET_PMU_MAX], slots = 0;
	size_t i;

	for (i = 0; i < session->npmus; i++) {
		const struct session_pmu *pmu = &session->pmus[i];

		if (pmu->slot < 0)
			continue;
		fds[pmu->slot] = pmu_counter_fd(pmu->counter, cpu);
		slots = slots > pmu->slot ? slots : pmu->slot + 1;
	}
	return kern_totals_set_cpu(session->kern, cpu, fds, slots, err);
}

static void cpu_went(struct session *session, int cpu)
{
	struct err ignored = { 0 };
	size_t i;

	session_rings_cpu_went(session, cpu);
	if (session->witness)
		pmu_cpu_offline(session->witness, cpu);
	if (!session_measures(session, cpu))
		return;
	for (i = session->npmus; i-- > 0;) {
		struct session_pmu *pmu = &session->pmus[i];

		pmu_cpu_offline(pmu->counter, cpu);
		if (pmu_counter_fd(pmu->counter, cpu) < 0)
			empty_slot(session, pmu->name, cpu);
	}
	for (i = 0; i < session->nsamplers; i++)
		pmu_cpu_offline(session->samplers[i].counter, cpu);
	tell_totals(session, cpu, &ignored);
}

/*
 * A switch on @cpu while its slots are empty: programs that lap there forget where the former
 * counters stood.
 */
static void switch_there(struct session *session, int cpu)
{
	const struct timespec moment = { 0, 1000 };
	cpu_set_t former, set;
	size_t i;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (!sched_getaffinity(0, sizeof(former), &former) &&
	    !sched_setaffinity(0, sizeof(set), &set)) {
		nanosleep(&moment, NULL);
		sched_setaffinity(0, sizeof(former), &former);
	}
	for (i = 0; i < kern_program_count(session->kern); i++) {
		struct kern_program *program = kern_program_at(session->kern, i);

		if (kern_program_state(program) == KERN_PROGRAM_BARE &&
		    !strncmp(kern_program_section(program), "raw_t", 5))
			kern_program_run(program, cpu);
	}
}

static int open_there(struct session *session, int cpu, struct err *err)
{
	size_t i;
	int code;

	for (i = 0; i < session->npmus; i++) {
		struct session_pmu *pmu = &session->pmus[i];

		code = pmu_cpu_online(pmu->counter, session_group_leader(session, pmu), cpu);
		if (code)
			return err_set(err, code, "%s: %s", pmu->event, strerror(-code));
		code = session_fill_slot(session->kern, pmu->name, pmu->counter, cpu, err);
		if (code)
			return code;
	}
	code = session_enable_pmus(session, cpu, err);
	return code ? code : tell_totals(session, cpu, err);
}

static int sample_there(struct session *session, int cpu, struct err *err)
{
	size_t i;

	for (i = 0; i < session->nsamplers; i++) {
		struct session_sampler *sampler = &session->samplers[i];
		int code = pmu_cpu_online(sampler->counter, NULL, cpu);
		int fd = pmu_counter_fd(sampler->counter, cpu);

		if (!code && fd >= 0)
			code = kern_program_add_event(sampler->program, fd, err);
		if (code)
			return code;
		pmu_enable_cpu(sampler->counter, cpu);
	}
	return 0;
}

/* What is there whether the CPU is measured or not: programs run on it in any case. */
static void serve_there(struct session *session, int cpu)
{
	int code = session_rings_cpu_came(session, cpu);

	if (code)
		log_note("CPU %d came online: EVENTS() has no buffer there: %s", cpu,
			 strerror(-code));
	if (session->witness && !pmu_cpu_online(session->witness, NULL, cpu))
		pmu_enable_cpu(session->witness, cpu);
}

void session_cpu_came(struct session *session, int cpu)
{
	struct err err = { 0 };
	int code;

	cpu_went(session, cpu); /* nobody may have told that it did */
	serve_there(session, cpu);
	code = measure(session, cpu);
	if (code == -ENOENT)
		return;
	if (!code) {
		switch_there(session, cpu);
		code = open_there(session, cpu, &err);
	}
	if (!code)
		code = sample_there(session, cpu, &err);
	if (code)
		log_note("CPU %d came online and is not measured: %s", cpu,
			 err.text[0] ? err.text : strerror(-code));
}

/* "online@/devices/system/cpu/cpu3" and the like. */
static void serve(struct session *session, const char *text)
{
	int cpu, end = 0;

	if (sscanf(text, "offline@/devices/system/cpu/cpu%d%n", &cpu, &end) == 1 && !text[end]) {
		log_verbose("CPU %d went offline", cpu);
		cpu_went(session, cpu);
	} else if (sscanf(text, "online@/devices/system/cpu/cpu%d%n", &cpu, &end) == 1 &&
		   !text[end]) {
		log_verbose("CPU %d came online", cpu);
		session_cpu_came(session, cpu);
	}
}

static int consume(void *context, int fd, uint32_t events)
{
	struct session *session = context;
	char text[4096];

	for (;;) {
		struct sockaddr_nl from = { 0 };
		socklen_t size = sizeof(from);
		ssize_t got = recvfrom(fd, text, sizeof(text) - 1, MSG_DONTWAIT,
				       (struct sockaddr *)&from, &size);

		if (got < 0 && errno == ENOBUFS) {
			log_note("news of CPUs were lost: what came online may not be measured");
			continue;
		}
		if (got <= 0)
			return 0;
		text[got] = 0;
		if (!from.nl_pid) /* of the kernel */
			serve(session, text);
	}
}

/* Before the CPUs' counters are opened: what changes from then on is served by the loop. */
int session_follow_cpus(struct session *session, struct err *err)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_EVENTS };
	CLEANUP(close_fd)
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);
	int code;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		log_verbose("CPUs that come online are not followed: netlink: %s", strerror(errno));
		return 0;
	}
	code = loop_fd(session->loop, fd, EPOLLIN, consume, session, &session->uevents_source, err);
	if (!code)
		session->uevents = take_fd(fd);
	return code;
}
