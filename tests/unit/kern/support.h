/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of this folder share. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "kern/kern.h"

/* Compiles tests/unit/kern/SOURCE with the flags into @image; skips when there is no clang. */
void compile(const char *source, const char *flags, struct buf *image);

#define assert_ok(call)                                                   \
	do {                                                              \
		struct err *__e = &err;                                   \
		int __code = (call);                                      \
		if (__code < 0)                                           \
			fail_msg("%s: %d: %s", #call, __code, __e->text); \
	} while (0)

#define assert_text(text, part)                                       \
	do {                                                          \
		if (!strstr((text), (part)))                          \
			fail_msg("no \"%s\" in: %s", (part), (text)); \
	} while (0)
