// SPDX-License-Identifier: BSD-2-Clause
#include "hook/internal.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

const struct hook_row hook_rows[HOOK_KIND_COUNT] = {
	{ HOOK_OPEN, "user/open", false, false, "duet_options",
	  "object read, nothing loaded: set variables, sizes, targets" },
	{ HOOK_INIT, "user/init", false, false, "duet_options",
	  "maps exist, nothing attached, workload not started" },
	{ HOOK_START, "user/start", false, false, NULL,
	  "probes attached, counters on, workload just released" },
	{ HOOK_INTERVAL, "user/interval", true, false, "duet_tick",
	  "periodically: -I (1s when absent), or as named: user/interval/100ms" },
	{ HOOK_EVENT, "user/event", true, true, NULL,
	  "each record of ring buffer or perf-event array MAP: user/event/MAP" },
	{ HOOK_SAMPLE, "user/sample", true, false, "duet_sample", "each sample of `duet record`" },
	{ HOOK_LOST, "user/lost", false, false, "duet_lost", "records were lost" },
	{ HOOK_CHILD_FORK, "user/child/fork", false, false, "duet_child",
	  "a thread group of the target forked" },
	{ HOOK_CHILD_EXEC, "user/child/exec", false, false, "duet_child",
	  "a process of the target executed a program" },
	{ HOOK_CHILD_EXIT, "user/child/exit", false, false, "duet_child",
	  "a process of the target ended" },
	{ HOOK_SIGNAL, "user/signal", true, true, "duet_signal",
	  "duet got the signal: user/signal/USR1" },
	{ HOOK_EXIT, "user/exit", false, false, "duet_exit",
	  "on every way out: end, SIGINT, error, fault" },
};

/* Names that earlier systems used for the same moments. */
static const struct {
	const char *section;
	enum hook_kind kind;
} aliases[] = {
	{ "perf_record_start", HOOK_START },
	{ "perf_record_end", HOOK_EXIT },
	{ "perf_record_exit", HOOK_EXIT },
};

uint64_t hook_parse_duration(const char *text)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 } };
	char *end;
	double value;
	size_t i;

	if (!isdigit((unsigned char)text[0]))
		return 0;
	value = strtod(text, &end);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(end, units[i].unit) && value * units[i].ns < 9e18)
			return value * units[i].ns;
	}
	return 0;
}

int hook_parse_signal(const char *text)
{
	int number;
	char *end;

	if (isdigit((unsigned char)text[0])) {
		number = strtol(text, &end, 10);
		return *end || number >= NSIG ? 0 : number;
	}
	if (!strncmp(text, "SIG", 3))
		text += 3;
	for (number = 1; number < NSIG; number++) {
		const char *name = sigabbrev_np(number);

		if (name && !strcmp(name, text))
			return number;
	}
	return 0;
}

static int unknown_section(const char *section, struct err *err)
{
	struct nearest nearest;
	char near[256];
	size_t i;

	nearest_init(&nearest, section);
	for (i = 0; i < HOOK_KIND_COUNT; i++)
		nearest_offer(&nearest, hook_rows[i].section);
	nearest_text(&nearest, near, sizeof(near));
	err_set(err, -EINVAL, "SEC(\"%s\"): there is no such hook", section);
	return near[0] ? err_hint(err, -EINVAL, "did you mean %s?", near)
		       : err_hint(err, -EINVAL, "see `duet list hooks`");
}

static int parse_parameter(struct hook_program *program, struct err *err)
{
	const char *text = program->parameter;

	if (program->kind == HOOK_INTERVAL && text) {
		program->interval_ns = hook_parse_duration(text);
		if (program->interval_ns < 1000)
			return err_set(err, -EINVAL,
				       "SEC(\"%s\"): `%s` is no interval of at least 1us: write a "
				       "number and ns, us, ms, s or m",
				       program->section, text);
	}
	if (program->kind == HOOK_SIGNAL) {
		program->signal = hook_parse_signal(text);
		if (!program->signal)
			return err_set(err, -EINVAL,
				       "SEC(\"%s\"): there is no signal `%s`: see `kill -l`",
				       program->section, text);
		if (program->signal == SIGKILL || program->signal == SIGSTOP ||
		    program->signal == SIGSEGV || program->signal == SIGBUS ||
		    program->signal == SIGFPE || program->signal == SIGILL ||
		    program->signal == SIGABRT || program->signal == SIGALRM)
			return err_set(err, -EINVAL, "SEC(\"%s\"): this signal cannot be a hook",
				       program->section);
	}
	return 0;
}

int hook_parse_section(const char *section, struct hook_program *program, struct err *err)
{
	const char *name = section;
	size_t i;

	program->section = section;
	if (!strncmp(name, "UBPF;", 5) || !strncmp(name, "UBPF-lua;", 9)) {
		name = strchr(name, ';') + 1;
		program->ubpf = true;
		for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
			if (!strcmp(name, aliases[i].section)) {
				program->kind = aliases[i].kind;
				return 0;
			}
		}
		return unknown_section(section, err);
	}
	if (!strncmp(name, "lua/", 4))
		name += 4;
	else if (!strncmp(name, "user/", 5))
		name += 5;
	for (i = 0; i < HOOK_KIND_COUNT; i++) {
		const struct hook_row *row = &hook_rows[i];
		const char *short_name = row->section + 5;
		size_t size = strlen(short_name);

		if (strncmp(name, short_name, size))
			continue;
		if (!name[size] && !row->must) {
			program->kind = row->kind;
			return 0;
		}
		if (name[size] == '/' && row->parameter && name[size + 1]) {
			program->kind = row->kind;
			program->parameter = name + size + 1;
			return parse_parameter(program, err);
		}
	}
	return unknown_section(section, err);
}

/* A hook's argument must be (void), or a pointer to the hook's structure. */
int hook_check_prototype(const struct types *types, uint32_t function,
			 const struct hook_program *program, struct err *err)
{
	const struct hook_row *row = &hook_rows[program->kind];
	const struct btf_type *proto;
	const struct btf_param *params;
	uint32_t id, target, nparams;

	if (!types || !function || program->ubpf)
		return 0;
	proto = types_get(types, types_get(types, function)->type);
	nparams = BTF_INFO_VLEN(proto->info);
	if (!nparams)
		return 0;
	params = (const struct btf_param *)(proto + 1);
	id = types_resolve(types, params[0].type);
	if (program->kind == HOOK_EVENT && nparams <= 2 && types_kind(types, id) == BTF_KIND_PTR)
		return 0;
	if (types_kind(types, id) != BTF_KIND_PTR || nparams > 1)
		goto wrong;
	target = types_resolve(types, types_get(types, id)->type);
	if (!target) /* const void * */
		return 0;
	if (row->argument && types_kind(types, target) == BTF_KIND_STRUCT &&
	    !strcmp(types_name(types, target), row->argument))
		return 0;
wrong:
	if (program->kind == HOOK_EVENT)
		return err_set(err, -EINVAL,
			       "%s: %s receives (const struct YOURS *record, u64 size)",
			       program->name, program->section);
	return err_set(err, -EINVAL, "%s: %s receives %s%s%s, not this argument", program->name,
		       program->section, row->argument ? "(const struct " : "(void)",
		       row->argument ?: "", row->argument ? " *) or (void)" : "");
}
