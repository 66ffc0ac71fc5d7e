// SPDX-License-Identifier: BSD-2-Clause
/* Cgroups of version 1: no helper tells a program where a task is there, so it follows pointers. */
#include "kern/internal.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/offsets.h"

static void btf_free_cleanup(struct btf **btf)
{
	btf__free(*btf);
}

/* The place of @controller in css_set.subsys: enumerator CONTROLLER_cgrp_id of this kernel. */
static int controller_index(const char *controller, uint32_t *ret, struct err *err)
{
	CLEANUP(btf_free_cleanup) struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type;
	char wanted[64];
	int id, i;

	if (libbpf_get_error(btf)) {
		btf = NULL;
		return err_set(err, -ENOENT, "this kernel has no BTF (/sys/kernel/btf/vmlinux)");
	}
	snprintf(wanted, sizeof(wanted), "%s_cgrp_id", controller);
	id = btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM);
	type = id < 0 ? NULL : btf__type_by_id(btf, id);
	for (i = 0; type && i < btf_vlen(type); i++) {
		if (!strcmp(btf__name_by_offset(btf, btf_enum(type)[i].name_off), wanted)) {
			*ret = btf_enum(type)[i].val;
			return 0;
		}
	}
	return err_set(err, -ENOENT, "this kernel has no cgroup controller %s", controller);
}

int kern_cgroup_layout(const char *controller, struct duet_cgroup_layout *ret, struct err *err)
{
	struct field_offset fields[] = {
		{ "task_struct", "cgroups", FIELD_POINTER },
		{ "css_set", "subsys", FIELD_ARRAY },
		{ "cgroup_subsys_state", "cgroup", FIELD_POINTER },
		{ "cgroup", "level", FIELD_INT },
		{ "cgroup", "kn", FIELD_POINTER },
		{ "kernfs_node", "id", FIELD_INT },
		{ "cgroup", "ancestors", FIELD_ARRAY },
	};
	const int count = sizeof(fields) / sizeof(fields[0]);
	uint32_t index = 0;
	int code = controller_index(controller, &index, err);

	if (code)
		return code;
	code = offsets_find(NULL, fields, count, err);
	if (code == -ENOENT) {
		fields[count - 1].field = "ancestor_ids";
		ret->ancestors_are_ids = 1;
		code = offsets_find(NULL, fields, count, err);
	}
	if (code)
		return code;
	ret->task_set = fields[0].offset;
	ret->set_state = fields[1].offset + index * sizeof(uint64_t);
	ret->state_cgroup = fields[2].offset;
	ret->cgroup_level = fields[3].offset;
	ret->cgroup_node = fields[4].offset;
	ret->node_id = fields[5].offset;
	ret->cgroup_ancestors = fields[6].offset;
	return 0;
}
