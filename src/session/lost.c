// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel half could not do, from its own counters: full maps and rings. */
#include "session/internal.h"

#include <string.h>

#include "base/log.h"

typedef void (*failure_visitor)(const struct duet_failure *failure, void *context);

/* Each place of the source that can fail has a record, see struct duet_failure. */
static void visit_failures(const struct session *session, failure_visitor visit, void *context)
{
	const struct user_half *user = session->split.user;
	size_t i, at;

	for (i = 0; i < user->ndata; i++) {
		const char *data;

		if (strcmp(user->data[i].name, ".data.duet"))
			continue;
		data = hook_half_data(session->half, i);
		for (at = 0; at + sizeof(struct duet_failure) <= user->data[i].size;) {
			const struct duet_failure *failure = (const void *)(data + at);

			if (failure->size % 8 || failure->size > user->data[i].size - at)
				return;
			at += sizeof(*failure) + failure->size;
			visit(failure, context);
		}
	}
}

static void add_lost(const struct duet_failure *failure, void *context)
{
	uint64_t *lost = context;

	if (failure->kind == DUET_FAILURE_RING)
		*lost += *(const volatile uint64_t *)&failure->failed;
}

void session_tell_lost(struct session *session)
{
	uint64_t lost = 0, told = session->lost_told;

	visit_failures(session, add_lost, &lost);
	if (lost == told || session->failure.code)
		return;
	session->lost_told = lost;
	session_lost(session, 1, ~0U, lost - told);
}

static void note_failure(const struct duet_failure *failure, void *context)
{
	const char *name = (const char *)(failure + 1);
	bool full = failure->kind == DUET_FAILURE_FULL;

	(void)context;
	if (!failure->failed)
		return;
	name += *name == '&';
	log_note("%s %.*s was full: %llu %s: enlarge it with --map %.*s.max_entries=N",
		 full ? "map" : "ring", (int)failure->size, name,
		 (unsigned long long)failure->failed,
		 full ? "values are missing" : "records were lost", (int)failure->size, name);
}

void session_tell_failures(struct session *session)
{
	session_tell_lost(session);
	visit_failures(session, note_failure, NULL);
}
