// SPDX-License-Identifier: BSD-2-Clause
/* Names for reports: cgroups, addresses, stacks. Read at the first question. */
#include "session/internal.h"

#include <string.h>

#include "base/log.h"
#include "sym/sym.h"

static struct sym *symbols(struct session *session)
{
	if (!session->sym && sym_open(&session->sym, NULL))
		return NULL;
	return session->sym;
}

static const char *cgroup_name(void *context, uint64_t id)
{
	struct sym *sym = symbols(context);

	return sym ? sym_cgroup_path(sym, id) : NULL;
}

static const char *kernel_name(void *context, uint64_t address)
{
	struct session *session = context;
	struct sym *sym = symbols(session);
	struct sym_place place;

	if (!sym || sym_kernel_find_address(sym_kernel_of(sym), address, &place))
		return NULL;
	return sym_place_text(&place, session->name, sizeof(session->name));
}

static const char *user_name(void *context, uint32_t pid, uint64_t address)
{
	struct session *session = context;
	struct sym *sym = symbols(session);
	struct sym_place place;

	if (!sym || !pid || sym_process_find(sym, pid, address, &place))
		return NULL;
	return sym_place_text(&place, session->name, sizeof(session->name));
}

/* Stacks are in the script's stack trace map; ids are unique in each, and scripts have one. */
static size_t stack_addresses(void *context, int32_t id, bool user, uint64_t *addresses, size_t max)
{
	struct session *session = context;
	uint64_t trace[128] = { 0 };
	size_t i, count;

	for (i = 0; id >= 0 && i < kern_map_count(session->kern); i++) {
		struct kern_map *map = kern_map_at(session->kern, i);
		struct kern_map_info info;

		kern_map_get_info(map, &info);
		if (info.type != BPF_MAP_TYPE_STACK_TRACE || info.value_size > sizeof(trace) ||
		    kern_map_lookup(map, &id, trace))
			continue;
		for (count = 0; count < max && count < info.value_size / 8 && trace[count]; count++)
			addresses[count] = trace[count];
		return count;
	}
	return 0;
}

struct report_names session_names(struct session *session)
{
	return (struct report_names){ .context = session,
				      .cgroup = cgroup_name,
				      .kernel_address = kernel_name,
				      .user_address = user_name,
				      .stack = stack_addresses };
}
