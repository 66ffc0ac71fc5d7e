/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of one script: from the object's bytes to the exit status. Everything that a run opens
 * is released before session_run() returns, on every path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "report/report.h"

struct session_options {
	const char *name;   /* of the script, for messages */
	const void *object; /* ELF bytes, borrowed */
	size_t object_size;

	/* Who is measured. Nothing given: the whole system. */
	bool all;          /* -a */
	const pid_t *pids; /* -p */
	size_t npids;
	const pid_t *tids; /* -t */
	size_t ntids;
	const char *const *cgroups; /* -G: paths or ids of containers; with all below them */
	size_t ncgroups;
	const char *cpus;     /* -C, NULL: all that are online */
	char *const *command; /* -- CMD, NULL-terminated; NULL: none */
	const char *user;     /* -u: CMD runs as this user; NULL: as we do */

	uint64_t interval_ns; /* -I, 0: not given */
	uint64_t duration_ns; /* -d, 0: not given */

	const char *const *events; /* -e NAME=EVENT */
	size_t nevents;
	const char *const *sets; /* --set VAR=VALUE */
	size_t nsets;
	const char *const *maps; /* --map NAME.what=value */
	size_t nmaps;
	const char *const *arguments; /* the script's own, by ARG() and OPTION() */
	size_t narguments;

	enum report_format format;
	char separator;     /* CSV */
	const char *output; /* -o, NULL: stdout */
	bool overhead;      /* --overhead: what the probes cost goes to standard error at the end */
	bool dry_run;
	bool checked; /* every access of the user half is checked */
	bool quiet;
};

/*
 * 0 with the exit status that duet ends with in *@status (the report was printed). -errno with the
 * reason in @err, and the status in @status too: 1, or 126/127 when CMD cannot be executed.
 * Takes over SIGINT, SIGTERM and the script's signals while it runs.
 */
int session_run(const struct session_options *options, int *status, struct err *err);

/* The script's own arguments as text for --help; NULL when out of memory. Caller frees. */
int session_describe_arguments(const void *object, size_t size, const char *name, char **ret,
			       struct err *err);
