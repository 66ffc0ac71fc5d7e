// SPDX-License-Identifier: BSD-2-Clause
/* Task totals: duet's own sched_switch program on the script's maps __duet_task and __duet_cpu. */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "kern/bpf/totals_state.h"
#include "kern/own.h"

#define COST_RUNS 8 /* the least of them counts */

struct totals {
	struct own own;
	int self; /* pidfd of this process while its main thread is followed, else 0 */
};

bool kern_totals_needed(struct kern *kern)
{
	struct kern_map *map = kern_map_find(kern, "__duet_task");

	return map && kern_map_created(map);
}

static int reuse_maps(struct kern *kern, struct own *own, struct err *err)
{
	static const char *const names[] = { "__duet_task", "__duet_cpu" };
	size_t i;

	for (i = 0; i < 2; i++) {
		struct kern_map *map = kern_map_find(kern, names[i]);
		int code;

		if (!map || !kern_map_created(map))
			return err_set(err, -ENOENT, "map %s: not in the script", names[i]);
		code = own_reuse(own, names[i], map->fd, err);
		if (code)
			return code;
	}
	return 0;
}

static int load(struct kern *kern, struct own *own, uint32_t slots, struct err *err)
{
	uint32_t cpus = kern_possible_cpus();
	struct bpf_map *events;
	int code;

	code = own_open(own, OWN_TOTALS, err);
	if (!code)
		code = reuse_maps(kern, own, err);
	if (!code)
		code = own_set(own, "slots", &slots, sizeof(slots), err);
	if (!code)
		code = own_set(own, "cpus", &cpus, sizeof(cpus), err);
	if (code)
		return code;
	events = bpf_object__find_map_by_name(own->object, "events");
	bpf_map__set_max_entries(events, slots * cpus);
	return own_load(own, err);
}

static int fill_events(const struct own *own, const int *fds, size_t slots, const int *cpus,
		       size_t ncpus, struct err *err)
{
	int map = own_map_fd(own, "events"), possible = kern_possible_cpus(), code;
	size_t slot, k;

	for (slot = 0; slot < slots; slot++) {
		for (k = 0; k < ncpus; k++) {
			uint32_t index = slot * possible + cpus[k];
			int fd = fds[slot * ncpus + k];

			if (fd < 0)
				continue;
			code = bpf_map_update_elem(map, &index, &fd, BPF_ANY);
			if (code)
				return err_set(err, code, "counter %zu of CPU %d: %s", slot,
					       cpus[k], kern_errno_text(code));
		}
	}
	return 0;
}

int kern_totals_start(struct kern *kern, const int *fds, size_t slots, const int *cpus,
		      size_t ncpus, struct err *err)
{
	struct totals *totals;
	int code;

	if (!slots || slots > DUET_PMU_MAX || kern->totals)
		return err_set(err, -EINVAL, "task totals: %zu counters", slots);
	totals = calloc(1, sizeof(*totals));
	if (!totals)
		return err_nomem(err);
	kern->totals = totals;
	LISTEN(NULL);
	code = load(kern, &totals->own, slots, err);
	if (!code)
		code = fill_events(&totals->own, fds, slots, cpus, ncpus, err);
	if (!code)
		code = own_attach(&totals->own, "duet_totals", err);
	if (!code) {
		code = kern_run_on_cpus(own_program_fd(&totals->own, "duet_totals_start"), -1);
		if (code)
			err_set(err, code, "task totals: first reading: %s", kern_errno_text(code));
	}
	if (code)
		kern_totals_stop(kern);
	return code;
}

int kern_totals_set_cpu(struct kern *kern, int cpu, const int *fds, size_t slots, struct err *err)
{
	int map, possible = kern_possible_cpus(), code = 0;
	bool any = false;
	size_t slot;

	LISTEN(NULL);
	if (!kern->totals)
		return 0;
	map = own_map_fd(&kern->totals->own, "events");
	for (slot = 0; slot < slots; slot++) {
		uint32_t index = slot * possible + cpu;

		bpf_map_delete_elem(map, &index); /* -ENOENT: it had none */
		any = any || fds[slot] >= 0;
	}
	if (!any)
		return 0;
	/* Without counters it forgets its bases: nothing is charged for what the new ones begin at. */
	code = kern_run_on_cpus(own_program_fd(&kern->totals->own, "duet_totals"), cpu);
	if (!code)
		code = fill_events(&kern->totals->own, fds, slots, &cpu, 1, err);
	if (!code)
		code = kern_run_on_cpus(own_program_fd(&kern->totals->own, "duet_totals_start"),
					cpu);
	return code ? err_set(err, code, "task totals: CPU %d: %s", cpu, kern_errno_text(code)) : 0;
}

int kern_totals_flush(struct kern *kern)
{
	LISTEN(NULL);
	if (!kern->totals)
		return 0;
	return kern_run_on_cpus(own_program_fd(&kern->totals->own, "duet_totals"), -1);
}

int kern_totals_follow_self(struct kern *kern, struct err *err)
{
	struct duet_task_totals none = { 0 };
	int self, code;

	if (!kern->totals)
		return err_set(err, -EINVAL, "task totals: not started");
	self = pidfd_open(getpid(), 0);
	if (self < 0)
		return err_set(err, -errno, "pidfd_open: %s", kern_errno_text(-errno));
	code = bpf_map_update_elem(own_map_fd(&kern->totals->own, "__duet_task"), &self, &none,
				   BPF_NOEXIST);
	if (code) {
		close(self);
		return err_set(err, code, "task totals: our own: %s", kern_errno_text(code));
	}
	kern->totals->self = self;
	return 0;
}

int kern_totals_read_self(struct kern *kern, struct duet_task_totals *ret)
{
	if (!kern->totals || !kern->totals->self)
		return -EINVAL;
	return bpf_map_lookup_elem(own_map_fd(&kern->totals->own, "__duet_task"),
				   &kern->totals->self, ret);
}

void kern_totals_forget_self(struct kern *kern)
{
	if (!kern->totals || !kern->totals->self)
		return;
	bpf_map_delete_elem(own_map_fd(&kern->totals->own, "__duet_task"), &kern->totals->self);
	close(kern->totals->self);
	kern->totals->self = 0;
}

/* The state of the programs: libbpf names the map after the object. */
static int state_map(const struct kern *kern)
{
	return own_map_fd(&kern->totals->own, "duet.bss");
}

int kern_totals_own_cost(struct kern *kern, int cpu, int64_t *ret)
{
	struct totals_state state;
	uint32_t zero = 0;
	int i, code = 0;

	if (!kern->totals)
		return -EINVAL;
	for (i = 0; i < COST_RUNS && !code; i++)
		code = kern_run_on_cpus(own_program_fd(&kern->totals->own, "duet_totals_cost"),
					cpu);
	if (code >= 0)
		code = bpf_map_lookup_elem(state_map(kern), &zero, &state);
	if (code)
		return code;
	memcpy(ret, state.least, sizeof(state.least));
	return 0;
}

int kern_totals_set_cost(struct kern *kern, const int64_t *cost)
{
	struct totals_state state = { 0 };
	uint32_t zero = 0;

	if (!kern->totals)
		return -EINVAL;
	memcpy(state.cost, cost, sizeof(state.cost));
	return bpf_map_update_elem(state_map(kern), &zero, &state, BPF_ANY);
}

void kern_totals_stop(struct kern *kern)
{
	if (!kern->totals)
		return;
	kern_totals_forget_self(kern);
	own_close(&kern->totals->own);
	free(kern->totals);
	kern->totals = NULL;
}

const struct own *totals_own(const struct kern *kern)
{
	return kern->totals ? &kern->totals->own : NULL;
}
