// SPDX-License-Identifier: BSD-2-Clause
/* A fault in words: where, in which hook, what, why, and how the script came there. */
#include "hook/checked.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

/* What an address that is in no region was meant for, most likely. */
static const char *checked_hint(const struct hook_half *half, const struct vm_fault *fault)
{
	const struct user_half *user = half->options.user;
	const char *at = (const char *)(uintptr_t)fault->address;
	size_t i;

	if (fault->address - (uintptr_t)half->snapshots.readable < half->snapshots.size)
		return "a lookup's copy is valid until its hook returns, and not beyond its size";
	if (hook_heap_owns(half->heap, at))
		return "in the heap: freed, or past the end of its block?";
	for (i = 0; i < user->ndata; i++) {
		if (fault->address - (uintptr_t)half->data[i] < half->data_size[i])
			return "past the end of the script's variables";
	}
	for (i = 0; i < user->nmaps; i++) {
		if (fault->address - (uintptr_t)&half->maps[i] < sizeof(half->maps[i]))
			return "a map is no memory: use bpf_map_lookup_elem()";
	}
	return "no memory of the script";
}

static const char *hint_for(const struct hook_half *half, const struct vm_fault *fault)
{
	uint64_t snapshots = (uintptr_t)half->snapshots.readable, first;
	const struct user_half *user = half->options.user;
	size_t i;

	if (fault->kind == VM_FAULT_WRITE && fault->address - snapshots < half->snapshots.size)
		return "what a lookup returns is a copy: use bpf_map_update_elem()";
	for (i = 0; i < user->ndata; i++) {
		first = (uintptr_t)half->data[i];
		if (fault->kind == VM_FAULT_WRITE && fault->address - first < half->data_size[i])
			return user->data[i].readonly ? "constants can be changed in user/open only"
						      : NULL;
	}
	if ((fault->kind == VM_FAULT_READ || fault->kind == VM_FAULT_WRITE ||
	     fault->kind == VM_FAULT_ARGUMENT) &&
	    fault->address < 4096)
		return "a NULL pointer: test what a lookup or a function returned";
	if (half->options.checked &&
	    (fault->kind == VM_FAULT_READ || fault->kind == VM_FAULT_WRITE ||
	     (fault->kind == VM_FAULT_ARGUMENT && (fault->read || fault->write))))
		return checked_hint(half, fault);
	if (fault->kind == VM_FAULT_STACK)
		return "recursion without an end?";
	if (fault->kind == VM_FAULT_NATIVE)
		return "a bad argument?";
	return NULL;
}

void hook_describe_fault(struct hook_half *half, const struct hook_program *program,
			 const struct vm_fault *fault, struct err *err)
{
	CLEANUP(buf_deinit) struct buf trace = { 0 };
	char what[256], where[300], at[300];
	const char *hint = hint_for(half, fault);
	uint32_t i;

	hook_where(half, fault->insn, where, sizeof(where));
	err_set(err, -EFAULT, "%s: %s: %s", where, program->section,
		vm_fault_text(fault, what, sizeof(what)));
	if (hint)
		err_hint(err, -EFAULT, "%s", hint);
	/* A plain fault in the hook itself needs no trace. */
	for (i = 0; i < fault->ntrace && fault->ntrace > 1 && i < 8; i++) {
		uint32_t function = fault->trace[i].function;

		buf_printf(&trace, "%s%s (%s)", i ? " < " : "",
			   function < half->options.user->nfunctions
				   ? half->options.user->functions[function].name
				   : "?",
			   hook_where(half, fault->trace[i].insn, at, sizeof(at)));
	}
	if (trace.size)
		err_hint(err, -EFAULT, "called: %s%s", trace.data,
			 fault->ntrace > 8 ? " < ..." : "");
}
