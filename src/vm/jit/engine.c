// SPDX-License-Identifier: BSD-2-Clause
#include "vm/jit/engine.h"

#include <errno.h>

#include "vm/jit/jit.h"

enum jit_fetch jit_on_fetch(struct vm_signal *signal, struct vm **ret)
{
	(void)signal, (void)ret;
	return JIT_FETCH_OTHER;
}

struct vm *jit_owner(struct vm_signal *signal, uintptr_t until)
{
	(void)signal, (void)until;
	return NULL;
}

void jit_second_fault(void)
{
}

static int prepare(struct vm *vm, struct err *err)
{
	(void)vm;
	return err_set(err, -ENOTSUP, "no compiler");
}

static void release(struct vm *vm)
{
	(void)vm;
}

const struct vm_engine vm_jit = {
	.prepare = prepare,
	.release = release,
};
