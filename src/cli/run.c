// SPDX-License-Identifier: BSD-2-Clause
/* duet run */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "session/session.h"

enum {
	OPT_SET = 256,
	OPT_MAP,
	OPT_JSON,
	OPT_CSV,
	OPT_DRY_RUN,
	OPT_CHECKED,
	OPT_OVERHEAD,
	OPT_CFLAGS,
	OPT_HELP,
};

static const struct option options[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, 't' },
	{ "all-cpus", no_argument, NULL, 'a' },
	{ "cpu", required_argument, NULL, 'C' },
	{ "cgroup", required_argument, NULL, 'G' },
	{ "freq", required_argument, NULL, 'F' },
	{ "count", required_argument, NULL, 'c' },
	{ "call-graph", no_argument, NULL, 'g' },
	{ "interval", required_argument, NULL, 'I' },
	{ "output", required_argument, NULL, 'o' },
	{ "field-separator", required_argument, NULL, 'x' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "csv", no_argument, NULL, OPT_CSV },
	{ "duration", required_argument, NULL, 'd' },
	{ "user", required_argument, NULL, 'u' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "set", required_argument, NULL, OPT_SET },
	{ "map", required_argument, NULL, OPT_MAP },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "checked", no_argument, NULL, OPT_CHECKED },
	{ "overhead", no_argument, NULL, OPT_OVERHEAD },
	{ "cflags", required_argument, NULL, OPT_CFLAGS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: duet run SCRIPT [options] [ARGUMENTS] [-- CMD ...]\n"
	"SCRIPT: a .c file, a .o of `duet build`, a .s for `duet asm`, - (C on standard input),\n"
	"or a shipped tool.\n"
	"Runs until CMD ends, the processes of -p end, -d is over, or Ctrl-C; then reports.\n\n"
	"who is measured (nothing given: the whole system)\n"
	"  -- CMD ...          CMD and its later threads and children\n"
	"  -p PID[,PID...]     processes, with their later threads and children\n"
	"  -t TID[,TID...]     threads\n"
	"  -G CGROUP           a cgroup (path, or the id of a container) with all below it; repeat "
	"for more\n"
	"  -a                  everybody, while CMD runs\n"
	"  -C CPUS             these CPUs only: 0,2-5\n"
	"  -u USER             CMD runs as this user\n"
	"how\n"
	"  -e NAME=EVENT       binds PMU(NAME) of the script to another event: -e cycles=cycles:u\n"
	"  --set VAR=VALUE     a variable of the script: 10, 64k, 500us, a system call's name, a "
	"text\n"
	"  --map NAME.value[0,2..5]=N, NAME.value[all]=N, NAME.event=EVENT, NAME.max_entries=N\n"
	"  -I MS               interval of SEC(\"user/interval\"): 1000\n"
	"  -d SECONDS          ends after that time (also 500ms, 2m)\n"
	"output\n"
	"  -j, --json          one JSON document per line; --csv, -x SEPARATOR: CSV\n"
	"  -o FILE             reports go to FILE, which appears when it is whole\n"
	"  -q                  only errors beside the report; -v says more; -vv everything\n"
	"other\n"
	"  --dry-run           checks and loads everything, attaches nothing\n"
	"  --checked           every memory access of the user half is checked; calls of safe\n"
	"                      functions only (`duet list functions --checked`)\n"
	"  --overhead          at the end, on standard error: what each probe cost, per hit and "
	"per\n"
	"                      second\n"
	"  --cflags FLAGS      for the compiler, with a .c\n\n"
	"exit status: 2 usage; 1 a failure of duet or of a hook; else what duet_stop() said; else\n"
	"CMD's own (128+signal, 127 not found); 0 after Ctrl-C with a report.\n\n"
	"examples:\n"
	"  duet run ipc.c -- make -j4\n"
	"  duet run ipc.c -p 1234 -d 10 --json\n"
	"  duet run func_cost.c --set FUNC=vfs_read -e insns=instructions:u -- tar cf /dev/null "
	".\n";

/* A growing list of texts. */
struct list {
	const char **items;
	size_t count, capacity;
};

struct run {
	struct session_options session;
	struct list events, sets, maps, arguments, cgroups;
	pid_t *pids, *tids;
	size_t npids, ntids, pids_capacity, tids_capacity;
	const char *script;
	char *separator;
	char **command;
	struct cli_script_options compile;
	int verbose;
	bool help;
};

static int add(struct list *list, const char *text)
{
	const char **item = array_grow(&list->items, &list->count, &list->capacity, sizeof(*item));

	if (!item)
		return -ENOMEM;
	*item = text;
	return 0;
}

/* "12,34" */
static int add_ids(const char *text, pid_t **ids, size_t *count, size_t *capacity)
{
	for (;;) {
		char *end;
		long id = strtol(text, &end, 10);
		pid_t *item;

		if (end == text || id < 1 || id > INT32_MAX || (*end && *end != ','))
			return -EINVAL;
		item = array_grow(ids, count, capacity, sizeof(*item));
		if (!item)
			return -ENOMEM;
		*item = id;
		if (!*end)
			return 0;
		text = end + 1;
	}
}

static int take_who(struct run *run, int option, const char *value)
{
	switch (option) {
	case 'a':
		run->session.all = true;
		return 0;
	case 'C':
		run->session.cpus = value;
		return 0;
	case 'p':
	case 't':
		if (option == 'p' ? add_ids(value, &run->pids, &run->npids, &run->pids_capacity)
				  : add_ids(value, &run->tids, &run->ntids, &run->tids_capacity))
			return cli_usage("run", "-%c %s: no list of process ids", option, value);
		return 0;
	default:
		run->session.user = value;
		return 0;
	}
}

static int take_output(struct run *run, int option, const char *value)
{
	switch (option) {
	case OPT_JSON:
	case 'j':
		run->session.format = REPORT_JSON;
		return 0;
	case OPT_CSV:
		run->session.format = REPORT_CSV;
		return 0;
	case 'x':
		if (!strcmp(value, "\\t"))
			value = "\t";
		if (strlen(value) != 1)
			return cli_usage("run", "-x %s: the separator is one character", value);
		run->session.separator = value[0];
		run->session.format = REPORT_CSV;
		return 0;
	case 'o':
		run->session.output = value;
		return 0;
	case 'q':
		run->session.quiet = true;
		return 0;
	default:
		run->verbose++;
		return 0;
	}
}

static int take_option(struct run *run, int option, const char *value)
{
	switch (option) {
	case 'a':
	case 'C':
	case 'p':
	case 't':
	case 'u':
		return take_who(run, option, value);
	case OPT_JSON:
	case OPT_CSV:
	case 'j':
	case 'x':
	case 'o':
	case 'q':
	case 'v':
		return take_output(run, option, value);
	case 'e':
		return add(&run->events, value);
	case 'G':
		return add(&run->cgroups, value);
	case OPT_SET:
		return add(&run->sets, value);
	case OPT_MAP:
		return add(&run->maps, value);
	case 'I':
		run->session.interval_ns = cli_parse_milliseconds(value);
		return run->session.interval_ns >= 1000
			       ? 0
			       : cli_usage("run", "-I %s: milliseconds, or a number with a unit",
					   value);
	case 'd':
		run->session.duration_ns = cli_parse_seconds(value);
		return run->session.duration_ns
			       ? 0
			       : cli_usage("run", "-d %s: seconds, or a number with a unit", value);
	case OPT_DRY_RUN:
		run->session.dry_run = true;
		return 0;
	case OPT_CFLAGS:
		run->compile.cflags = value;
		return 0;
	case OPT_HELP:
		run->help = true;
		return 0;
	case OPT_CHECKED:
		run->session.checked = true;
		return 0;
	case OPT_OVERHEAD:
		run->session.overhead = true;
		return 0;
	default:
		return cli_usage("run", "-%c: that samples: not in duet run", option);
	}
}

/* What getopt does not know may be an option of the script. */
static int take_unknown(struct run *run, char **argv, int before)
{
	const char *text = argv[before];

	if (optopt && optopt < 256 && isprint(optopt) && strncmp(text, "--", 2)) {
		const char *known = strchr("eptCGFcIoxdu", optopt);

		return cli_usage("run", known ? "-%c: a value is missing" : "-%c: no such option",
				 optopt);
	}
	if (!strncmp(text, "--", 2) && !optopt)
		return add(&run->arguments, text);
	return cli_usage("run",
			 strchr(text, '=') ? "%s: it takes no value" : "%s: a value is missing",
			 text);
}

/* getopt takes --call for --call-graph: such an option is the script's. */
static bool is_abbreviated(const char *text, int index)
{
	return index >= 0 && !strncmp(text, "--", 2) &&
	       strcspn(text + 2, "=") != strlen(options[index].name);
}

static int take_abbreviated(struct run *run, char **argv, int before)
{
	int code = add(&run->arguments, argv[before]);

	return code || optind == before + 1 ? code : add(&run->arguments, optarg);
}

static int parse(struct run *run, int argc, char **argv)
{
	int option, i, own = argc;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			run->command = argv + i + 1;
			own = i;
			break;
		}
	}
	opterr = 0;
	optind = 1;
	for (;;) {
		int before = optind, index = -1, code;

		option =
			getopt_long(own, argv, "-:e:p:t:aC:G:F:c:gI:o:x:jd:u:qvh", options, &index);
		if (option < 0)
			break;
		if (option == 'h')
			option = OPT_HELP;
		if (option == 1) {
			code = run->script ? add(&run->arguments, optarg) : 0;
			if (!run->script)
				run->script = optarg;
		} else if (option == '?' || option == ':') {
			code = take_unknown(run, argv, before);
		} else if (is_abbreviated(argv[before], index)) {
			code = take_abbreviated(run, argv, before);
		} else {
			code = take_option(run, option, optarg);
		}
		if (code)
			return code < 0 ? CLI_FAILURE : code;
	}
	return 0;
}

static int check(struct run *run)
{
	if (run->help)
		return 0;
	if (!run->script)
		return cli_usage("run", "which SCRIPT?");
	if (run->command && !run->command[0])
		return cli_usage("run", "-- without a command behind it");
	if (run->command && (run->npids || run->ntids))
		return cli_usage("run", "-p and -t measure what runs already: not together with -- "
					"CMD");
	if (run->cgroups.count && (run->npids || run->ntids || run->session.all))
		return cli_usage("run",
				 "-G: not together with -p, -t or -a: each says alone who is "
				 "measured");
	if (run->session.user && !run->command)
		return cli_usage("run", "-u: there is no -- CMD to run as %s", run->session.user);
	return 0;
}

static int print_help(const struct run *run)
{
	struct buf object = { 0 };
	struct err err = { 0 };
	char *arguments = NULL;

	fputs(help, stdout);
	if (run->script && !cli_load_script(run->script, &run->compile, &object, &err) &&
	    !session_describe_arguments(object.data, object.size, run->script, &arguments, &err) &&
	    arguments[0])
		printf("\narguments of %s:\n%s", run->script, arguments);
	free(arguments);
	buf_deinit(&object);
	return CLI_OK;
}

/* setpriv(1) knows all about groups and capabilities. Lives as long as the process. */
static int as_user(struct run *run, struct err *err)
{
	const struct passwd *user = getpwnam(run->session.user);
	char **command, *uid, *gid;
	size_t count = 0;

	if (!user)
		return err_set(err, -ENOENT, "-u %s: there is no such user", run->session.user);
	while (run->command[count])
		count++;
	command = calloc(count + 6, sizeof(*command));
	if (!command || asprintf(&uid, "--reuid=%u", user->pw_uid) < 0 ||
	    asprintf(&gid, "--regid=%u", user->pw_gid) < 0)
		return err_nomem(err);
	command[0] = "setpriv";
	command[1] = uid;
	command[2] = gid;
	command[3] = "--init-groups";
	command[4] = "--";
	memcpy(command + 5, run->command, count * sizeof(*command));
	run->command = command;
	return 0;
}

static int run_session(struct run *run)
{
	struct session_options *session = &run->session;
	struct buf object = { 0 };
	struct err err = { 0 };
	int status = CLI_FAILURE, code;

	log_set_level(session->quiet     ? LOG_QUIET
		      : run->verbose > 1 ? LOG_DEBUG
		      : run->verbose     ? LOG_VERBOSE
					 : LOG_NOTE);
	run->compile.explain = run->verbose;
	if (session->user && as_user(run, &err))
		return cli_fail(&err);
	if (cli_load_script(run->script, &run->compile, &object, &err))
		return cli_fail(&err);
	session->name = strcmp(run->script, "-") ? run->script : "<stdin>";
	session->object = object.data;
	session->object_size = object.size;
	session->pids = run->pids;
	session->npids = run->npids;
	session->tids = run->tids;
	session->ntids = run->ntids;
	session->command = run->command;
	session->events = run->events.items;
	session->nevents = run->events.count;
	session->sets = run->sets.items;
	session->nsets = run->sets.count;
	session->cgroups = run->cgroups.items;
	session->ncgroups = run->cgroups.count;
	session->maps = run->maps.items;
	session->nmaps = run->maps.count;
	session->arguments = run->arguments.items;
	session->narguments = run->arguments.count;
	code = session_run(session, &status, &err);
	if (code)
		cli_fail(&err);
	buf_deinit(&object);
	return status;
}

int cli_run(int argc, char **argv)
{
	struct run run = { 0 };
	int status = parse(&run, argc, argv);

	if (!status)
		status = check(&run);
	if (!status)
		status = run.help ? print_help(&run) : run_session(&run);
	free(run.events.items);
	free(run.sets.items);
	free(run.maps.items);
	free(run.cgroups.items);
	free(run.arguments.items);
	free(run.pids);
	free(run.tids);
	return status;
}
