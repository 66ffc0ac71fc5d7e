// SPDX-License-Identifier: BSD-2-Clause
#include "host.h"

#define JIT_LANDED         true
#define CHECKED_LANDED     true
#define CHECKED_JIT_LANDED true

#define WITHOUT(pass)                                                                  \
	{                                                                              \
		"compiler without " #pass, VM_ENGINE_JIT, .landed = JIT_LANDED,        \
							  .passes_off = VM_PASS_##pass \
	}

/* The interpreter comes first: it is what others are compared with where the kernel cannot be. */
const struct engine engines[] = {
	{ "interpreter", VM_ENGINE_INTERPRETER, .landed = true },
	{ "compiler", VM_ENGINE_JIT, .landed = JIT_LANDED },
	WITHOUT(COPY),
	WITHOUT(DEAD),
	WITHOUT(ADDRESS),
	WITHOUT(MODIFY),
	WITHOUT(DIVIDE),
	WITHOUT(INLINE),
	WITHOUT(LAYOUT),
	WITHOUT(ALIGN),
	WITHOUT(SHORT),
	WITHOUT(SHIFT),
	WITHOUT(NARROW),
	WITHOUT(PROLOGUE),
	WITHOUT(NEAR),
	WITHOUT(SWITCH),
	{ "compiler without passes", VM_ENGINE_JIT, .landed = JIT_LANDED,
	  .passes_off = VM_PASS_ALL },
	{ "compiler with a budget", VM_ENGINE_JIT, .budget = true, .landed = JIT_LANDED },
	{ "interpreter with a budget", VM_ENGINE_INTERPRETER, .budget = true, .landed = true },
	{ "checked interpreter", VM_ENGINE_INTERPRETER, .checked = true, .landed = CHECKED_LANDED },
	{ "checked compiler", VM_ENGINE_JIT, .checked = true, .landed = CHECKED_JIT_LANDED },
	{ "checked compiler without CHECKS", VM_ENGINE_JIT, .checked = true,
	  .landed = CHECKED_JIT_LANDED, .passes_off = VM_PASS_CHECKS },
	{ "checked compiler without passes", VM_ENGINE_JIT, .checked = true,
	  .landed = CHECKED_JIT_LANDED, .passes_off = VM_PASS_ALL },
};

const size_t nengines = sizeof(engines) / sizeof(engines[0]);
