// SPDX-License-Identifier: BSD-2-Clause
/* What the object declares: architecture, PMUs and groups, the script's own arguments. */
#include "session/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"

#if defined(__x86_64__)
#define THIS_ARCH "x86_64"
#elif defined(__aarch64__)
#define THIS_ARCH "arm64"
#else
#error "name this architecture as duet.h's .duet.arch note does"
#endif

const struct user_note *session_note(const struct session *session, const char *kind, size_t *from)
{
	const struct user_half *user = session->split.user;

	for (; *from < user->nnotes; (*from)++) {
		if (!strcmp(user->notes[*from].kind, kind))
			return &user->notes[(*from)++];
	}
	return NULL;
}

/* The @index-th NUL-separated string of a note; "" beyond the end. */
static const char *note_field(const struct user_note *note, unsigned int index)
{
	const char *at = note->text, *end = note->text + note->size;

	while (index-- && at < end)
		at += strnlen(at, end - at) + 1;
	return at < end && memchr(at, 0, end - at) ? at : "";
}

int session_check_arch(struct session *session, struct err *err)
{
	size_t from = 0;
	const struct user_note *note = session_note(session, "arch", &from);

	if (!note || !strcmp(note_field(note, 0), THIS_ARCH))
		return 0;
	return err_set(err, -EINVAL,
		       "%s: built for %s, and this machine is %s: build it with `duet build "
		       "--arch " THIS_ARCH "`",
		       session->options->name, note_field(note, 0), THIS_ARCH);
}

struct session_pmu *session_find_pmu(struct session *session, const char *name)
{
	size_t i;

	for (i = 0; i < session->npmus; i++) {
		if (!strcmp(session->pmus[i].name, name))
			return &session->pmus[i];
	}
	return NULL;
}

/* The members of PMU_GROUP(name, "a,b"). */
static int setup_group(struct session *session, const struct user_note *note, struct err *err)
{
	CLEANUP(free_pointer) char *members = strdup(note_field(note, 1));
	char *member, *rest = NULL;

	if (!members)
		return err_nomem(err);
	for (member = strtok_r(members, ", ", &rest); member;
	     member = strtok_r(NULL, ", ", &rest)) {
		struct session_pmu *pmu = session_find_pmu(session, member);

		if (!pmu)
			return err_set(err, -EINVAL,
				       "PMU_GROUP(%s): there is no PMU(%s): a group takes the "
				       "names of PMU()s",
				       note_field(note, 0), member);
		pmu->group = note_field(note, 0);
	}
	return 0;
}

/* --map NAME.event=EVT: a perf event array that is no PMU(). */
static int bind_maps(struct session *session, struct err *err)
{
	size_t i;

	for (i = 0; i < session->options->nmaps; i++) {
		const char *text = session->options->maps[i], *dot = strstr(text, ".event=");
		struct session_pmu *pmu;
		const char *name = NULL;
		char wanted[64];
		int code;
		size_t k;

		if (!dot)
			continue;
		snprintf(wanted, sizeof(wanted), "%.*s", (int)(dot - text), text);
		for (k = 0; k < session->split.user->nmaps && !name; k++) {
			if (!strcmp(session->split.user->maps[k].name, wanted))
				name = session->split.user->maps[k].name;
		}
		if (!name)
			return err_set(err, -ENOENT,
				       "--map %s: the script has no map `%s`: see `duet inspect`",
				       text, wanted);
		pmu = session_find_pmu(session, name);
		if (!pmu) {
			pmu = &session->pmus[session->npmus++];
			*pmu = (struct session_pmu){ .name = name, .slot = -1 };
		}
		code = session_bind_event(pmu, dot + strlen(".event="), err);
		if (code)
			return code;
	}
	return 0;
}

int session_setup_pmus(struct session *session, struct err *err)
{
	const struct user_note *note;
	size_t from = 0, room = session->options->nmaps + 1;
	int code;

	while (session_note(session, "pmu", &from))
		room++;
	session->pmus = calloc(room, sizeof(*session->pmus));
	session->counters = calloc(room, sizeof(*session->counters));
	if (!session->pmus || !session->counters)
		return err_nomem(err);
	for (from = 0; (note = session_note(session, "pmu", &from));) {
		struct session_pmu *pmu = &session->pmus[session->npmus];

		if (session->npmus == DUET_PMU_MAX)
			return err_set(err, -E2BIG, "PMU(%s): a script can have %d PMU()s",
				       note_field(note, 0), DUET_PMU_MAX);
		*pmu = (struct session_pmu){ .name = note_field(note, 0),
					     .declared = note_field(note, 1),
					     .slot = session->npmus++ };
		code = session_bind_event(pmu, note_field(note, 1), err);
		if (code)
			return err_prepend(err, code, "PMU(%s)", pmu->name);
	}
	for (from = 0; (note = session_note(session, "group", &from));) {
		code = setup_group(session, note, err);
		if (code)
			return code;
	}
	code = bind_maps(session, err);
	if (code)
		return code;
	session->ncounters = session->npmus;
	return session_rebind_events(session, err);
}

/* ---- ARG(var, "NAME", "help"), OPTION(var, "name", "help") -------------------------------- */
struct argument {
	bool option;
	const char *variable, *name, *help;
};

static bool next_argument(const struct session *session, size_t *from, struct argument *ret)
{
	const struct user_note *note = session_note(session, "argument", from);

	if (!note)
		return false;
	*ret = (struct argument){ .option = note_field(note, 0)[0] == 'o',
				  .variable = note_field(note, 1),
				  .name = note_field(note, 2),
				  .help = note_field(note, 3) };
	return true;
}

static int no_such_option(const struct session *session, const char *text, struct err *err)
{
	const char *script = session->options->name;
	struct argument argument;
	struct nearest nearest;
	char name[64], near[256];
	size_t from = 0;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	nearest_init(&nearest, name);
	while (next_argument(session, &from, &argument)) {
		char option[80];

		snprintf(option, sizeof(option), "--%s", argument.name);
		if (argument.option)
			nearest_offer(&nearest, option);
	}
	nearest_text(&nearest, near, sizeof(near));
	err_set(err, -EINVAL, "%s: neither duet run nor %s has such an option", name, script);
	return near[0] ? err_hint(err, -EINVAL, "did you mean %s?", near)
		       : err_hint(err, -EINVAL, "see `duet run %s --help`", script);
}

static int set_option(struct session *session, const struct argument *argument, const char *value,
		      struct err *err)
{
	int code = session_set_variable(session, argument->variable, value, err);

	return code ? err_prepend(err, code, "--%s", argument->name) : 0;
}

static int apply_option(struct session *session, const char *text, const char *value,
			bool *took_value, struct err *err)
{
	struct argument argument;
	size_t from = 0;

	while (next_argument(session, &from, &argument)) {
		size_t size = strlen(argument.name);

		if (!argument.option || strncmp(text + 2, argument.name, size))
			continue;
		if (text[2 + size] == '=')
			return set_option(session, &argument, text + 3 + size, err);
		if (text[2 + size])
			continue;
		if (!value)
			return err_set(err, -EINVAL, "%s: a value is missing: %s", text,
				       argument.help);
		*took_value = true;
		return set_option(session, &argument, value, err);
	}
	return no_such_option(session, text, err);
}

int session_apply_arguments(struct session *session, struct err *err)
{
	const struct session_options *options = session->options;
	size_t i, from = 0;
	int code;

	for (i = 0; i < options->narguments; i++) {
		const char *text = options->arguments[i];
		struct argument argument = { 0 };
		bool took_value = false;

		if (!strncmp(text, "--", 2)) {
			code = apply_option(session, text,
					    i + 1 < options->narguments ? options->arguments[i + 1]
									: NULL,
					    &took_value, err);
			i += took_value;
		} else {
			bool found;

			/* @from goes on: each positional argument has its own ARG(). */
			do
				found = next_argument(session, &from, &argument);
			while (found && argument.option);
			if (!found)
				return err_set(err, -EINVAL,
					       "`%s`: %s takes no such argument: a command to "
					       "measure goes behind --",
					       text, options->name);
			code = session_set_variable(session, argument.variable, text, err);
			if (code)
				err_prepend(err, code, "%s", argument.name);
		}
		if (code)
			return code;
	}
	return 0;
}

int session_describe_arguments(const void *object, size_t size, const char *name, char **ret,
			       struct err *err)
{
	CLEANUP(obj_close_cleanup) struct obj *obj = NULL;
	CLEANUP(buf_deinit) struct buf text = { 0 };
	struct session session = { 0 };
	struct argument argument;
	size_t from = 0;
	int code;

	code = obj_open(object, size, name, &obj, err);
	if (!code)
		code = obj_split(obj, NULL, &session.split, err);
	if (code)
		return code;
	buf_puts(&text, "");
	while (next_argument(&session, &from, &argument))
		buf_printf(&text, "  %s%-18s %s\n", argument.option ? "--" : "  ", argument.name,
			   argument.help);
	split_deinit(&session.split);
	if (buf_reserve(&text, 1))
		return err_nomem(err);
	*ret = take_pointer(text.data);
	return 0;
}
