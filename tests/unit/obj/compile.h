/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test data made by the test: compiles BPF source text with each compiler that duet accepts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct compiler {
	const char *name;    /* "clang-19 v3" */
	const char *command; /* with all flags but input and output */
	bool gcc;
};

/* clang-14, clang-19 at v1 to v4 as far as each has them, and bpf-gcc. */
extern const struct compiler compilers[];
extern const size_t ncompilers;

/* Appends the object to @ret; the source has SEC(), a few types, map macros, no header of the
 * system. Fails the test, with the compiler's words, when it cannot. With
 * DUET_TEST_OBJECTS=FOLDER in the environment objects are kept there, and taken from there: a guest
 * then needs no compiler. */
void compile(const struct compiler *compiler, const char *source, struct buf *ret);
