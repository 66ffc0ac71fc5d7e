// SPDX-License-Identifier: BSD-2-Clause
/* -e: events for the counters of the script, by name or as a list for those that it leaves open. */
#include "session/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

int session_bind_event(struct session_pmu *pmu, const char *event, struct err *err)
{
	if (strlen(event) >= sizeof(pmu->event))
		return err_set(err, -EINVAL, "event `%.40s...`: longer than %zu bytes", event,
			       sizeof(pmu->event) - 1);
	strcpy(pmu->event, event);
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static struct session_pmu *next_open_one(struct session *session)
{
	size_t i;

	for (i = 0; i < session->npmus; i++) {
		if (session_pmu_is_open_to_all(&session->pmus[i]) && !session->pmus[i].event[0])
			return &session->pmus[i];
	}
	return NULL;
}

static size_t count_open_ones(const struct session *session)
{
	size_t i, count = 0;

	for (i = 0; i < session->npmus; i++)
		count += session_pmu_is_open_to_all(&session->pmus[i]);
	return count;
}

/* Where the item that begins at @text ends: at a comma outside slashes and braces. */
static size_t item_size(const char *text)
{
	bool slashes = false;
	int braces = 0;
	size_t i;

	for (i = 0; text[i]; i++) {
		if (text[i] == '/')
			slashes = !slashes;
		braces += !slashes && text[i] == '{';
		braces -= !slashes && text[i] == '}';
		if (text[i] == ',' && !slashes && braces <= 0)
			break;
	}
	return i;
}

/* @modifiers of a group are those of each member too, as in perf. */
static int bind_next(struct session *session, const char *item, size_t size, const char *group,
		     const char *modifiers, struct err *err)
{
	struct session_pmu *pmu = next_open_one(session);
	char event[sizeof(pmu->event) * 2];
	const char *glue = "";
	int code;

	if (!pmu)
		return err_set(err, -E2BIG, "-e: %s takes at most %zu events",
			       session->options->name, count_open_ones(session));
	if (!size)
		return err_set(err, -EINVAL, "-e: an event is missing beside a comma");
	if (*modifiers && item[size - 1] != '/' && !memchr(item, ':', size))
		glue = ":";
	snprintf(event, sizeof(event), "%.*s%s%s", (int)size, item, glue, modifiers);
	code = session_bind_event(pmu, event, err);
	pmu->group = group;
	return code;
}

/* "{a,b}:u" */
static int bind_group(struct session *session, const char *item, size_t size, struct err *err)
{
	/* Names that no script can give: their number is that of PMU()s at most. */
	static const char *const names[] = {
		"{1}", "{2}", "{3}", "{4}", "{5}", "{6}", "{7}", "{8}"
	};
	const char *close = memchr(item, '}', size), *at;
	char modifiers[16] = "";
	int code = 0;

	if (!close)
		return err_set(err, -EINVAL, "-e: the brace in `%.*s` is not closed", (int)size,
			       item);
	if (close + 1 < item + size) {
		if (close[1] != ':' || item + size - close - 2 >= (ptrdiff_t)sizeof(modifiers))
			return err_set(err, -EINVAL,
				       "-e: `%.*s` behind a group: write {a,b}:MODIFIERS",
				       (int)(item + size - close - 1), close + 1);
		memcpy(modifiers, close + 2, item + size - close - 2);
	}
	if (session->event_groups == sizeof(names) / sizeof(names[0]))
		return err_set(err, -E2BIG, "-e: at most %zu groups",
			       sizeof(names) / sizeof(names[0]));
	for (at = item + 1; !code; at++) {
		size_t one = item_size(at);

		if (at + one > close)
			one = close - at;
		code = bind_next(session, at, one, names[session->event_groups], modifiers, err);
		at += one;
		if (at >= close)
			break;
	}
	session->event_groups++;
	return code;
}

static int bind_list(struct session *session, const char *text, struct err *err)
{
	int code;

	for (;; text++) {
		size_t size = item_size(text);

		code = *text == '{' ? bind_group(session, text, size, err)
				    : bind_next(session, text, size, NULL, "", err);
		text += size;
		if (code || !*text)
			return code;
	}
}

/* ---- by name --------------------------------------------------------------------------------- */

static int no_such_name(const struct session *session, const char *text, const char *name,
			bool named, struct err *err)
{
	struct nearest nearest;
	char near[256];
	size_t i;

	nearest_init(&nearest, name);
	for (i = 0; i < session->npmus; i++)
		nearest_offer(&nearest, session->pmus[i].name);
	nearest_text(&nearest, near, sizeof(near));
	err_set(err, -EINVAL, "-e %s: %s", text,
		named ? "the script has no PMU() of this name"
		      : "write NAME=EVENT, with the NAME of a PMU() of the script");
	if (near[0])
		return err_hint(err, -EINVAL, "did you mean %s?", near);
	for (i = 0, near[0] = 0; i < session->npmus; i++) {
		strncat(near, i ? ", " : "", sizeof(near) - strlen(near) - 1);
		strncat(near, session->pmus[i].name, sizeof(near) - strlen(near) - 1);
	}
	return err_hint(err, -EINVAL, near[0] ? "it has %s" : "it has no PMU()", near);
}

/* "NAME=": the size of NAME, 0 when the text does not begin so. */
static size_t name_size(const char *text)
{
	size_t size = 0;

	while (isalnum((unsigned char)text[size]) || text[size] == '_')
		size++;
	return text[size] == '=' ? size : 0;
}

int session_rebind_events(struct session *session, struct err *err)
{
	size_t i;

	for (i = 0; i < session->options->nevents; i++) {
		const char *text = session->options->events[i];
		size_t size = name_size(text);
		struct session_pmu *pmu = NULL;
		char name[64];
		int code;

		snprintf(name, sizeof(name), "%.*s", (int)(size ? size : strcspn(text, "=")), text);
		if (size && text[size + 1])
			pmu = session_find_pmu(session, name);
		if (pmu)
			code = session_bind_event(pmu, text + size + 1, err);
		else if (!size && *text && count_open_ones(session))
			code = bind_list(session, text, err);
		else
			code = no_such_name(session, text, name, size, err);
		if (code)
			return code;
	}
	return 0;
}

/* After user/open. Those that nobody bound go behind the others: reports leave their columns out,
 * nothing else knows them. */
int session_drop_unbound_pmus(struct session *session, struct err *err)
{
	struct session_pmu bound[DUET_PMU_MAX + 1], unbound[DUET_PMU_MAX + 1];
	size_t nbound = 0, nunbound = 0, i, slot = 0;

	(void)err;
	for (i = 0; i < session->npmus && i <= DUET_PMU_MAX; i++) {
		if (session_pmu_is_open_to_all(&session->pmus[i]) && !session->pmus[i].event[0])
			unbound[nunbound++] = session->pmus[i];
		else
			bound[nbound++] = session->pmus[i];
	}
	if (!nunbound)
		return 0;
	/* Bare maps (--map NAME.event) may be more: they lie behind all PMU()s and stay. */
	memmove(&session->pmus[nbound], &session->pmus[nbound + nunbound],
		(session->npmus - nbound - nunbound) * sizeof(*session->pmus));
	memcpy(session->pmus, bound, nbound * sizeof(*bound));
	session->npmus -= nunbound;
	memcpy(&session->pmus[session->npmus], unbound, nunbound * sizeof(*unbound));
	for (i = 0; i < session->npmus; i++) {
		if (session->pmus[i].slot >= 0)
			session->pmus[i].slot = slot++;
	}
	for (i = 0; i < nunbound; i++)
		session->counters[session->npmus + i] = (struct report_counter){
			.member = unbound[i].name, .event = "", .by_event = true
		};
	return 0;
}
