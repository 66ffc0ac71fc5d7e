/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the calibration share. */
#pragma once

#include "session/internal.h"

/* For qsort() of int64_t. */
int calibrate_compare(const void *a, const void *b);
/*
 * What a nested call with the probes of @pair costs the calls around it: medians by PMU slot into
 * @found where @has says so, both arrays of DUET_PMU_MAX. 0 or -errno.
 */
int calibrate_whole(struct session *session, struct kern_program *const *pair, size_t count,
		    bool *has, int64_t *found, struct err *err);
