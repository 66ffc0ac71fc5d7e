/* SPDX-License-Identifier: BSD-2-Clause */
/* What every report test needs: types out of a compiler, an output to read back. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "obj/types.h"
#include "report/report.h"

#include "data.h"

/* cmocka group set-up and tear-down; *state is a struct types. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

uint32_t fixture_struct(const struct types *types, const char *name);
uint32_t fixture_typedef(const struct types *types, const char *name);

/* A report into a temporary file. */
struct sink {
	FILE *file;
	struct report *report;
	char *text;
};
void sink_open(struct sink *sink, struct report_options options);
/* All that was written since the last call; valid until the next. */
const char *sink_text(struct sink *sink);
void sink_close(struct sink *sink);

/* Compiles, prints, and gives the text. */
const char *sink_print(struct sink *sink, const struct report_map *map, const char *options,
		       const struct report_counter *counters, size_t ncounters);
