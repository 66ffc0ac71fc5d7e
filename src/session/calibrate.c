// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a pair of probes itself costs. A second, throw-away instance of the kernel half is attached
 * to a function that does nothing; the median of its raw deltas is, per PMU, what call_leave()
 * will subtract. Kept per object, events and boot in a small cache file.
 */
#include "session/internal.h"

int session_calibrate(struct session *session, struct err *err)
{
	return 0;
}
