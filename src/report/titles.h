/* SPDX-License-Identifier: BSD-2-Clause */
/* Titles of columns. Stateless. */
#pragma once

#include "report/report.h"

#define TITLE_MAX 192

/* The title of @column (its name in option strings) goes to @title; false: it is not to be shown,
 * because its counter was bound to no event. */
bool title_of(const struct report_options *options, const char *column, char *title, size_t size);
