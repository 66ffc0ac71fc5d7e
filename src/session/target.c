// SPDX-License-Identifier: BSD-2-Clause
/* Who is measured, and where the programs attach. */
#include "session/internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "sym/sym.h"

static int set_cpu_list(struct session *session, struct err *err)
{
	uint64_t *set = session_variable_data(session, "__duet_cpu_set", 8 * DUET_CPU_SET_WORDS);
	uint32_t *limited = session_variable_data(session, "__duet_target_cpus", 4);
	size_t i;

	if (!session->options->cpus || !set || !limited)
		return 0;
	*limited = 1;
	for (i = 0; i < session->ncpus; i++) {
		if (session->cpus[i] >= 64 * DUET_CPU_SET_WORDS)
			return err_set(err, -E2BIG, "-C: CPU %d: in_target() knows CPUs below %d",
				       session->cpus[i], 64 * DUET_CPU_SET_WORDS);
		set[session->cpus[i] / 64] |= 1ULL << (session->cpus[i] % 64);
	}
	return 0;
}

/* -G: in_target() tests the cgroup of the current thread. */
static int set_cgroups(struct session *session, struct err *err)
{
	const struct session_options *options = session->options;
	struct duet_cgroup_place *places =
		session_variable_data(session, "__duet_cgroup", sizeof(*places) * DUET_CGROUP_MAX);
	uint32_t *count = session_variable_data(session, "__duet_cgroup_count", 4);
	uint32_t *version1 = session_variable_data(session, "__duet_cgroup_v1", 4);
	struct duet_cgroup_layout *layout =
		session_variable_data(session, "__duet_cgroup_at", sizeof(*layout));
	struct sym_cgroup_place found = { 0 }, first = { 0 };
	size_t i;
	int code;

	if (options->ncgroups > DUET_CGROUP_MAX)
		return err_set(err, -E2BIG, "-G: at most %d cgroups", DUET_CGROUP_MAX);
	for (i = 0; i < options->ncgroups; i++) {
		code = sym_cgroup_find(options->cgroups[i], &found, err);
		if (code)
			return err_prepend(err, code, "-G");
		if (i && strcmp(found.controller, first.controller))
			return err_set(err, -EINVAL,
				       "-G: %s and %s are of different hierarchies: name cgroups "
				       "of one",
				       first.path, found.path);
		first = i ? first : found;
		log_verbose("-G %s: cgroup %llu, level %u, %s", options->cgroups[i],
			    (unsigned long long)found.id, found.level, found.path);
		if (places)
			places[i] = (struct duet_cgroup_place){ found.id, found.level, 0 };
	}
	if (!places || !count || !version1 || !layout)
		return 0;
	*count = options->ncgroups;
	*version1 = first.controller[0] != 0;
	return *version1 ? kern_cgroup_layout(first.controller, layout, err) : 0;
}

static bool wants_tasks(const struct session_options *options)
{
	return !options->all && !options->ncgroups &&
	       (options->npids || options->ntids || options->command);
}

uint32_t session_target_kind(const struct session *session)
{
	if (session->options->ncgroups)
		return DUET_TARGET_CGROUPS;
	return session->counted_tasks ? DUET_TARGET_TASKS : DUET_TARGET_ALL;
}

/* Before load: constants that in_target() tests. */
int session_setup_target(struct session *session, struct err *err)
{
	const struct session_options *options = session->options;
	uint32_t *kind = session_variable_data(session, "__duet_target", 4);
	int code;

	code = pmu_parse_cpus(options->cpus, &session->cpus, &session->ncpus, err);
	if (code)
		return err_prepend(err, code, "-C");
	code = set_cpu_list(session, err);
	if (code)
		return code;
	code = set_cgroups(session, err);
	if (code)
		return code;
	session->counted_tasks = wants_tasks(options);
	if (kind)
		*kind = session_target_kind(session);
	else if (session_target_kind(session) != DUET_TARGET_ALL &&
		 kern_program_count(session->kern) && !options->quiet)
		log_note("%s does not limit itself to the target (it has no in_target()): it "
			 "shows the whole system",
			 options->name);
	return 0;
}

/* "uprobe/$BIN:$FUNC" -> "uprobe/" + text of BIN + ":" + text of FUNC */
static int substitute(struct session *session, const char *section, struct buf *ret,
		      struct err *err)
{
	const char *at = section;

	while (*at) {
		size_t plain = strcspn(at, "$"), size;
		const struct user_variable *variable;
		const char *text;
		char name[64];

		if (buf_append(ret, at, plain))
			return err_nomem(err);
		at += plain;
		if (!*at)
			break;
		size = strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_");
		snprintf(name, sizeof(name), "%.*s", (int)size, at + 1);
		at += 1 + size;
		variable = session_variable(session, name);
		if (!variable)
			return err_set(err, -EINVAL,
				       "SEC(\"%s\"): there is no variable `%s`: declare "
				       "char %s[128] = \"...\"",
				       section, name, name);
		text = (const char *)hook_half_data(session->half, variable->data) +
		       variable->offset;
		if (!memchr(text, 0, variable->size))
			return err_set(err, -EINVAL,
				       "SEC(\"%s\"): %s is no char array that ends in a zero byte",
				       section, name);
		if (!text[0])
			return err_set(err, -EINVAL,
				       "SEC(\"%s\"): %s is empty: give it with --set %s=...",
				       section, name, name);
		if (buf_puts(ret, text))
			return err_nomem(err);
	}
	return 0;
}

int session_substitute_targets(struct session *session, struct err *err)
{
	size_t i, from = 0;
	const struct user_note *note;

	for (i = 0; i < kern_program_count(session->kern); i++) {
		struct kern_program *program = kern_program_at(session->kern, i);
		CLEANUP(buf_deinit) struct buf text = { 0 };
		int code;

		if (!strchr(kern_program_section(program), '$'))
			continue;
		code = substitute(session, kern_program_section(program), &text, err);
		if (!code)
			code = kern_program_set_target(program, text.data, err);
		if (code)
			return err_prepend(err, code, "%s", kern_program_name(program));
	}
	while ((note = session_note(session, "optional", &from))) {
		struct kern_program *program = kern_program_find(session->kern, note->text);

		if (program)
			kern_program_set_optional(program);
	}
	return 0;
}

static int watch(struct session *session, pid_t id, bool thread, struct err *err);

static int target_ended(void *context, pid_t id)
{
	struct session *session = context;

	if (!--session->watched)
		loop_stop(session->loop);
	return 0;
}

static int watch(struct session *session, pid_t id, bool thread, struct err *err)
{
	int code = loop_watch_task(session->loop, id, thread, target_ended, session, NULL, err);

	if (!code)
		session->watched++;
	return code;
}

static int child_event(void *context, const char *what, const struct duet_child *child)
{
	struct session *session = context;
	enum hook_kind kind = !strcmp(what, "fork")   ? HOOK_CHILD_FORK
			      : !strcmp(what, "exec") ? HOOK_CHILD_EXEC
						      : HOOK_CHILD_EXIT;

	return session_run_hook(session, kind, child, sizeof(*child));
}

static int target_ready(void *context, int fd, uint32_t events)
{
	struct session *session = context;
	int count = kern_target_consume(session->kern);

	return count < 0 && count != -EINTR ? count : 0;
}

/* After load: threads go into the map, duet's own programs follow their children. */
int session_start_target(struct session *session, struct err *err)
{
	const struct session_options *options = session->options;
	struct kern_target_options target = {
		.child = child_event,
		.context = session,
		.want_children = hook_any(session->half, HOOK_CHILD_FORK) ||
				 hook_any(session->half, HOOK_CHILD_EXEC) ||
				 hook_any(session->half, HOOK_CHILD_EXIT),
	};
	size_t i;
	int code;

	if (!session->counted_tasks)
		return 0;
	code = kern_target_start(session->kern, &target, err);
	for (i = 0; !code && i < options->npids; i++) {
		code = kern_target_add_process(session->kern, options->pids[i], err);
		if (!code)
			code = watch(session, options->pids[i], false, err);
		if (code)
			err_prepend(err, code, "-p %d", options->pids[i]);
	}
	for (i = 0; !code && i < options->ntids; i++) {
		code = kern_target_add_thread(session->kern, options->tids[i], err);
		if (!code)
			code = watch(session, options->tids[i], true, err);
		if (code)
			err_prepend(err, code, "-t %d", options->tids[i]);
	}
	if (!code && session->child)
		code = kern_target_add_process(session->kern, loop_child_pid(session->child), err);
	if (code)
		return code;
	if (kern_target_fd(session->kern) < 0)
		return 0;
	return loop_fd(session->loop, kern_target_fd(session->kern), 1 /* EPOLLIN */, target_ready,
		       session, NULL, err);
}
