// SPDX-License-Identifier: BSD-2-Clause
/* --overhead: what the run's kernel programs, duet's own among them, took of the machine. */
#include "session/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/log.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Before anything is attached. */
int session_overhead_start(struct session *session, struct err *err)
{
	if (!session->options->overhead)
		return 0;
	session->overhead_since = now_ns();
	return kern_enable_statistics(session->kern, err);
}

struct taking {
	struct session *session;
	double seconds;
	uint64_t ns;
};

static void take_one(void *context, const char *name, const char *section,
		     const struct kern_program_info *info)
{
	struct taking *taking = context;

	if (!info->run_count)
		return;
	taking->ns += info->run_ns;
	buf_printf(&taking->session->overhead, "  %-20s %-32s %10llu %10.1f %12.3f\n", name,
		   section, (unsigned long long)info->run_count,
		   (double)info->run_ns / info->run_count, info->run_ns / 1e6 / taking->seconds);
}

/* While the programs are still there. The text is told after the report. */
void session_overhead_take(struct session *session)
{
	struct taking taking = { session, (now_ns() - session->overhead_since) / 1e9, 0 };
	struct buf *text = &session->overhead;

	if (!session->options->overhead || !session->overhead_since)
		return;
	buf_printf(text, "what the probes cost, over %.3f s\n  %-20s %-32s %10s %10s %12s\n",
		   taking.seconds, "program", "section", "hits", "ns a hit", "ms a second");
	kern_visit_costs(session->kern, take_one, &taking);
	buf_printf(text, "  all: %.3f ms a second, %.3f %% of %zu CPUs\n",
		   taking.ns / 1e6 / taking.seconds,
		   taking.ns / 1e7 / taking.seconds / session->ncpus, session->ncpus);
}

void session_overhead_tell(struct session *session)
{
	if (session->overhead.data && session->overhead.size)
		fputs(session->overhead.data, stderr);
	buf_deinit(&session->overhead);
}
