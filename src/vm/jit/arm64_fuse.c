// SPDX-License-Identifier: BSD-2-Clause
/* What several instructions of the form are in one of the machine. */
#include "vm/jit/arm64.h"

unsigned int a64_fuse(struct a64 *e, const struct jit_insn *in, unsigned int left)
{
	(void)e, (void)in, (void)left;
	return 0;
}

bool a64_select(struct a64 *e, const struct jit_block *block, const struct jit_insn *in,
		uint32_t *next)
{
	(void)e, (void)block, (void)in, (void)next;
	return false;
}

/* Gives registers to the constants that loops need; false: there are none. */
bool a64_hoist(struct a64 *e)
{
	e->nhoisted = 0;
	e->collecting = false;
	return false;
}
