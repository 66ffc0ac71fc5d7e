// SPDX-License-Identifier: BSD-2-Clause
/*
 * Look-ups in mapped arrays without a call: the vm is made again when the arrays lie in memory, and
 * knows their addresses. That moves functions, so it happens only where no pointer to one can have
 * been kept: data holds none, and no program has run, or could have made one.
 */
#include "hook/internal.h"
#include "hook/soft.h"

#include <errno.h>
#include <stdlib.h>

static bool makes_pointers(const struct hook_half *half)
{
	const struct user_half *user = half->options.user;
	size_t i;

	for (i = 0; i < user->nrefs; i++) {
		if (user->refs[i].kind == USER_REF_FUNCTION &&
		    user->code[user->refs[i].at].code != (BPF_JMP | BPF_CALL))
			return true;
	}
	return false;
}

static bool keeps_pointers(const struct user_half *user)
{
	size_t i, k;

	for (i = 0; i < user->ndata; i++) {
		for (k = 0; k < user->data[i].nrefs; k++) {
			if (user->data[i].refs[k].kind == USER_REF_FUNCTION)
				return true;
		}
	}
	return false;
}

static bool looks_up(const struct hook_half *half)
{
	size_t i;

	for (i = 0; i < half->nnatives; i++) {
		if (half->natives[i].intrinsic == VM_ARRAY_LOOKUP)
			return true;
	}
	return false;
}

static int list_arrays(struct hook_half *half)
{
	const struct user_half *user = half->options.user;
	size_t i;

	half->arrays = calloc(user->nmaps + 1, sizeof(*half->arrays));
	if (!half->arrays)
		return -ENOMEM;
	for (i = 0; i < user->nmaps; i++) {
		const struct hook_map *map = &half->maps[i];

		if (map->memory)
			half->arrays[half->narrays++] =
				(struct vm_array){ .handle = (uintptr_t)map,
						   .data = map->memory,
						   .stride = map->stride,
						   .entries = map->info.max_entries };
	}
	return 0;
}

int hook_arrays_connect(struct hook_half *half, struct err *err)
{
	struct vm *before = half->vm;
	int code;

	/* Checked mode looks at each key: there a call is as good. */
	if (!before || half->options.checked || !looks_up(half) ||
	    keeps_pointers(half->options.user) ||
	    (hook_any(half, HOOK_OPEN) && makes_pointers(half)))
		return 0;
	if (list_arrays(half))
		return err_nomem(err);
	if (!half->narrays)
		return 0;
	code = hook_create_vm(half, err);
	if (code) {
		half->vm = before;
		return code;
	}
	vm_destroy(before);
	return hook_widen_allow(half, err);
}
