/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measured probe costs, kept in the cache folder per object, events, targets and boot: a second
 * run does not measure again. A cache that cannot be used is no error.
 */
#pragma once

#include <stdbool.h>

struct session;

/* Fills the script's NAME_overhead variables; false: nothing kept. */
bool calibration_cache_read(struct session *session);
void calibration_cache_write(struct session *session);
