// SPDX-License-Identifier: BSD-2-Clause
/* The life of a run, stage by stage. */
#include "session/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "sym/sym.h"

/* ---- nothing loaded yet --------------------------------------------------------------------- */

static int open_object(struct session *session, struct err *err)
{
	const struct session_options *options = session->options;
	int code;

	code = obj_open(options->object, options->object_size, options->name, &session->obj, err);
	if (code)
		return code;
	if (obj_user_needs_kernel_types(session->obj)) {
		CLEANUP(buf_deinit) struct buf btf = { 0 };

		code = buf_read_file(&btf, "/sys/kernel/btf/vmlinux", err);
		if (!code)
			code = types_open(btf.data, btf.size, &session->kernel_types, err);
		if (code)
			return err_prepend(err, code, "the user half reads kernel structures");
	}
	return obj_split(session->obj, session->kernel_types, &session->split, err);
}

/* A regular file appears under its name only when it is whole. */
static int open_output(struct session *session, struct err *err)
{
	const char *path = session->options->output;
	struct stat status;

	session->out = stdout;
	if (!path || !strcmp(path, "-"))
		return 0;
	/* A device, a pipe, what a link leads to: written to, never replaced. */
	if (!lstat(path, &status) && !S_ISREG(status.st_mode)) {
		session->out = fopen(path, "we");
	} else if (asprintf(&session->out_temporary, "%s.duet-%d", path, getpid()) < 0) {
		session->out_temporary = NULL;
		return err_nomem(err);
	} else {
		session->out = fopen(session->out_temporary, "we");
	}
	if (!session->out) {
		int code = -errno;

		session->out = stdout;
		free(take_pointer(session->out_temporary));
		return err_set(err, code, "-o %s: %s", path, strerror(-code));
	}
	return 0;
}

static int close_output(struct session *session, bool keep, struct err *err)
{
	const char *path = session->options->output;
	int code = 0;

	if (!session->out || session->out == stdout)
		return 0;
	if (fclose(session->out))
		code = err_set(err, -errno, "-o %s: %s", path, strerror(errno));
	session->out = stdout;
	if (!session->out_temporary)
		return code;
	if (code || !keep)
		unlink(session->out_temporary);
	else if (rename(session->out_temporary, path))
		code = err_set(err, -errno, "-o %s: %s", path, strerror(errno));
	return code;
}

static int open_report(struct session *session, struct err *err)
{
	struct report_options options = { .format = session->options->format,
					  .separator = session->options->separator,
					  .counters = session->counters,
					  .ncounters = session->ncounters };
	struct winsize window;
	int code;

	code = open_output(session, err);
	if (code)
		return code;
	options.out = session->out;
	if (!ioctl(fileno(session->out), TIOCGWINSZ, &window))
		options.width = window.ws_col;
	options.names = session_names(session);
	return report_create(&options, &session->report, err);
}

static int open_kernel_half(struct session *session, struct err *err)
{
	int code = kern_open(session->split.kernel, session->split.kernel_size,
			     session->options->name, obj_types(session->obj), &session->kern, err);

	if (!code)
		kern_set_object(session->kern, session->obj);
	return code;
}

static int open_user_half(struct session *session, struct err *err)
{
	struct hook_options options = { .obj = session->obj,
					.user = session->split.user,
					.ops = &session_ops,
					.run = session,
					.report = session->report,
					.out = session->out,
					.counters = session->counters,
					.ncounters = session->ncounters,
					.checked = session->options->checked };

	return hook_half_open(&options, &session->half, err);
}

static void fill_options(const struct session *session, struct duet_options *ret)
{
	const struct session_options *options = session->options;

	*ret = (struct duet_options){
		.interval_ns = options->interval_ns,
		.duration_ns = options->duration_ns,
		.target = session_target_kind(session),
		.cpus = session->ncpus,
		.dry_run = options->dry_run,
	};
	if (options->npids)
		ret->pid = options->pids[0];
	else if (options->ntids)
		ret->pid = options->tids[0];
}

static int run_options_hook(struct session *session, enum hook_kind kind, struct err *err)
{
	struct duet_options argument;

	fill_options(session, &argument);
	return hook_run(session->half, kind, NULL, NULL, &argument, sizeof(argument), err);
}

static int run_open_hooks(struct session *session, struct err *err)
{
	return run_options_hook(session, HOOK_OPEN, err);
}

/* ---- load ------------------------------------------------------------------------------------- */

/* CALLS(): the open calls of the first one lie beside the totals (1, or 2 when it is the only one),
 * the others' in their own maps. */
static void choose_calls(struct session *session)
{
	const struct user_half *user = session->split.user;
	size_t i, suffix = strlen("_beside");
	uint32_t *first = NULL;

	for (i = 0; i < user->nvariables; i++) {
		const char *name = user->variables[i].name;
		size_t length = strlen(name);
		char stats[160];
		uint32_t *beside;

		if (length <= suffix || strcmp(name + length - suffix, "_beside"))
			continue;
		snprintf(stats, sizeof(stats), "%.*s_stats", (int)(length - suffix), name);
		beside = session_variable_data(session, name, sizeof(*beside));
		if (!beside || !session_variable(session, stats))
			continue;
		if (first) {
			*first = 1;
			return;
		}
		first = beside;
		*first = 2;
	}
}

/* Numbers that the header's inline functions read as constants. */
static int number_pmus(struct session *session, struct err *err)
{
	char name[160];
	size_t i;

	choose_calls(session);
	for (i = 0; i < session->npmus; i++) {
		uint32_t *slot, *used;

		snprintf(name, sizeof(name), "%s_slot", session->pmus[i].name);
		slot = session_variable_data(session, name, sizeof(*slot));
		if (slot && session->pmus[i].slot >= 0)
			*slot = session->pmus[i].slot;
		snprintf(name, sizeof(name), "%s_used", session->pmus[i].name);
		used = session_variable_data(session, name, sizeof(*used));
		if (used)
			*used = 1;
	}
	return 0;
}

int session_hand_over_data(struct session *session, struct kern *kern, struct err *err)
{
	const struct user_half *user = session->split.user;
	size_t i;

	for (i = 0; i < user->ndata; i++) {
		struct kern_map *map =
			user->data[i].in_kernel ? kern_map_find(kern, user->data[i].name) : NULL;
		int code;

		if (!map)
			continue;
		kern_map_make_mmapable(map);
		code = kern_map_set_initial(map, hook_half_data(session->half, i),
					    user->data[i].size, err);
		if (code)
			return err_prepend(err, code, "%s", user->data[i].name);
	}
	for (i = 0; i < user->nmaps; i++) {
		struct kern_map *map = kern_map_find(kern, user->maps[i].name);

		if (map && !user->maps[i].kernel_uses && !strncmp(user->maps[i].name, "__duet_", 7))
			kern_map_set_unused(map);
		else if (map)
			kern_map_make_mmapable(map);
		/* in_target() does not look at it: its buckets need not be there. */
		if (map && !session->counted_tasks && !strcmp(user->maps[i].name, "__duet_tasks"))
			kern_map_set_max_entries(map, 1, NULL);
	}
	return 0;
}

/* For programs and maps, ours too; the counters' own share comes when they are opened. */
static int raise_file_limit(struct session *session, struct err *err)
{
	size_t needed = kern_map_count(session->kern) + kern_program_count(session->kern) + 64;

	return pmu_raise_file_limit(needed, NULL, err);
}

static int load(struct session *session, struct err *err)
{
	int code;

	code = session_hand_over_data(session, session->kern, err);
	if (!code)
		code = kern_check_targets(session->kern, err);
	if (!code)
		code = kern_load(session->kern, err);
	if (!code)
		code = hook_half_connect(session->half, session->kern, err);
	return code;
}

/* ---- loaded: from here on user/exit runs on every way out --------------------------------------- */

static int run_init_hooks(struct session *session, struct err *err)
{
	session->phase = PHASE_INIT;
	return run_options_hook(session, HOOK_INIT, err);
}

static int child_ended(void *context, struct loop_child *child, int wait_status)
{
	struct session *session = context;

	loop_stop(session->loop);
	return 0;
}

static int spawn(struct session *session, struct err *err)
{
	const struct session_options *options = session->options;
	bool machine_stdout = options->format != REPORT_TEXT && session->out == stdout;
	struct loop_command command = { .argv = options->command,
					.stdout_fd = machine_stdout ? STDERR_FILENO : -1 };

	if (!options->command)
		return 0;
	return loop_spawn(session->loop, &command, child_ended, session, &session->child, err);
}

static int attach(struct session *session, struct err *err)
{
	struct kern_attach_options options = { .pid = session_probe_pid(session) };

	/* From here on there is something to detach and to report. */
	session->phase = PHASE_RUN;
	return kern_attach(session->kern, &options, err);
}

static int release(struct session *session, struct err *err)
{
	int code;

	if (session->child) {
		code = loop_child_release(session->child, err);
		if (code) {
			/* CMD could not start: the shell's 127 or 126, nothing measured. */
			session->exec_failed = true;
			return code;
		}
	}
	session->released = true;
	if (!session->options->quiet && !session->child)
		log_note("attached%s", session->options->duration_ns ? "" : ": Ctrl-C ends");
	log_verbose("attached %.3f s after the start", (double)clock() / CLOCKS_PER_SEC);
	return hook_run(session->half, HOOK_START, NULL, NULL, NULL, 0, err);
}

/* In this order. Those before `load` need nothing of the kernel. */
/* clang-format off */
static int (*const stages_open[])(struct session *session, struct err *err) = {
	session_take_signals,
	open_object,
	session_check_arch,
	session_setup_pmus,
	session_parse_events,
	open_report,
	open_kernel_half,
	open_user_half,
	session_take_script_signals,
	session_check_rings,
	session_setup_target,
	session_apply_sets,
	session_apply_arguments,
	run_open_hooks,
	session_drop_unbound_pmus,
	session_parse_events,
	session_substitute_targets,
	session_check_maps,
	number_pmus,
	raise_file_limit,
	session_calibrate,
	load,
};
/* clang-format on */
static int (*const stages_run[])(struct session *session, struct err *err) = {
	session_follow_cpus,
	session_open_counters,
	session_follow_sleep,
	session_apply_map_values,
	run_init_hooks,
	spawn,
	session_start_target,
	session_enable_counters,
	session_open_rings,
	session_open_printk,
	session_overhead_start,
	attach,
	session_resume_counters,
	release,
	session_loop,
};

static void close_session(struct session *session)
{
	session_close_rings(session);
	kern_close(session->kern);
	session_close_counters(session);
	hook_half_close(session->half);
	report_destroy(session->report);
	sym_close(session->sym);
	session_free_intervals(session);
	alarm(0); /* the loop gives SIGALRM its old meaning back */
	loop_close(session->loop);
	split_deinit(&session->split);
	types_close(session->kernel_types);
	obj_close(session->obj);
	free(session->out_temporary);
}

/* Stages until one fails, SIGINT comes or the script stops the run. */
static int run_stages(struct session *session,
		      int (*const *stages)(struct session *session, struct err *err), size_t count,
		      struct err *err)
{
	size_t i;

	for (i = 0; i < count; i++) {
		int code = stages[i](session, err);

		/* A system call that the signal ended is no failure. */
		if (code && !(session->signalled && (code == -EINTR || code == -EAGAIN)))
			return code;
		if (session->signalled || session->stop_asked)
			return 0;
	}
	return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int run(struct session *session, int *status, struct err *err)
{
	int code = run_stages(session, stages_open, COUNT(stages_open), err);

	if (!code && session->signalled)
		code = err_set(err, -EINTR, "%s: interrupted before anything was measured",
			       session->options->name);
	if (!code && session->options->dry_run) {
		log_note("%s: sound: nothing was attached", session->options->name);
		*status = session->stop_asked ? session->stop_status : 0;
		return 0;
	}
	if (code || session->stop_asked) {
		*status = code ? 1 : session->stop_status;
		return code;
	}
	if (run_stages(session, stages_run, COUNT(stages_run), err) && !session->exec_failed)
		session_fail(session, err);
	if (session->phase == PHASE_OPEN)
		session->phase = PHASE_INIT;
	session_finish(session);
	if (session->exec_failed && !session->failure.code) {
		session->failure = *err;
		*status = loop_child_status(session->child);
	} else {
		*status = session->failure.code ? 1 : session->exit.status;
	}
	*err = session->failure;
	return session->failure.code;
}

/* The report that -o shows under its name: also one that ends with a fault, not half of one. */
static bool is_whole(const struct session *session, int code)
{
	return (!code || session->phase == PHASE_EXIT) &&
	       !(session->report && report_failed(session->report));
}

int session_run(const struct session_options *options, int *status, struct err *err)
{
	struct session session = { .options = options, .out = stdout };
	struct err output = { 0 };
	int code;

	*status = 1;
	code = loop_open(&session.loop, err);
	if (code)
		return code;
	code = run(&session, status, err);
	if (close_output(&session, is_whole(&session, code), &output) && !code) {
		*err = output;
		*status = 1;
		code = output.code;
	}
	close_session(&session);
	return code;
}
