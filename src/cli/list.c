// SPDX-License-Identifier: BSD-2-Clause
/* duet list */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/signature.h"
#include "hook/hook.h"
#include "kern/kern.h"
#include "obj/types.h"
#include "pmu/pmu.h"

static const char help[] =
	"usage: duet list [events|probes|tools|hooks|functions] [GLOB] [-v] [--checked]\n"
	"  events     what -e and PMU() take on this machine\n"
	"  probes     kernel functions, raw tracepoints and tracepoints\n"
	"  tools      shipped scripts\n"
	"  hooks      sections of the user half\n"
	"  functions  duet's functions for the user half\n"
	"  --checked  functions that `duet run --checked` lets scripts call, the C library's too\n"
	"  -v         for probes and hooks: a SEC line and a signature to paste; else: "
	"descriptions,\n"
	"             with functions' prototypes\n"
	"Without a kind: everything that matches GLOB, or the kinds.\n\n"
	"examples:\n"
	"  duet list events '*cache*'\n"
	"  duet list probes 'vfs_re*' -v\n";

struct listing {
	const char *glob;
	bool verbose, checked;
	size_t shown;
};

static bool matches(const struct listing *list, const char *name)
{
	return !list->glob || !fnmatch(list->glob, name, FNM_CASEFOLD);
}

static void show_event(void *context, const char *name, const char *kind, const char *description)
{
	struct listing *list = context;

	if (!matches(list, name))
		return;
	list->shown++;
	if (list->verbose)
		printf("%-40s %-10s %s\n", name, kind, description);
	else
		printf("%s\n", name);
}

static int list_events(struct listing *list, struct err *err)
{
	pmu_list(show_event, list);
	return 0;
}

static int list_hooks(struct listing *list, struct err *err)
{
	size_t i;

	for (i = 0; i < HOOK_KIND_COUNT; i++) {
		const struct hook_row *row = &hook_rows[i];

		if (!matches(list, row->section))
			continue;
		list->shown++;
		if (list->verbose && row->argument)
			printf("SEC(\"%s\") int NAME(const struct %s *x)\n    %s\n", row->section,
			       row->argument, row->when);
		else if (list->verbose)
			printf("SEC(\"%s\")\n    %s\n", row->section, row->when);
		else
			printf("%-18s %s\n", row->section, row->when);
	}
	return 0;
}

/* As the headers of scripts say it. */
static const struct {
	const char *name, *prototype, *description;
} prototypes[] = {
#include "cli/function_rows.h"
};

static void show_function(void *context, const char *name, const char *theme)
{
	struct listing *list = context;
	size_t i;

	if (!matches(list, name) || !strncmp(name, "__", 2))
		return;
	list->shown++;
	if (!list->verbose) {
		printf("%s\n", name);
		return;
	}
	for (i = 0; i < sizeof(prototypes) / sizeof(prototypes[0]); i++) {
		if (!strcmp(prototypes[i].name, name)) {
			printf("%s\n    %s\n", prototypes[i].prototype, prototypes[i].description);
			return;
		}
	}
	printf("%s\n    %s: no header of duet declares it\n", name, theme);
}

static int list_functions(struct listing *list, struct err *err)
{
	hook_list_functions(show_function, list);
	if (list->checked)
		hook_list_safe_functions(show_function, list);
	else if (!list->glob)
		printf("and every function of this machine's C and math library\n");
	return 0;
}

static int list_tools(struct listing *list, struct err *err)
{
	struct dirent **entries;
	char path[4096];
	int count, i;

	if (cli_data_folder("tools", path, sizeof(path)))
		return 0;
	count = scandir(path, &entries, NULL, alphasort);
	for (i = 0; i < count; i++) {
		char *name = entries[i]->d_name, *dot = strrchr(name, '.');

		if (dot && !strcmp(dot, ".o")) {
			*dot = 0;
			if (matches(list, name)) {
				list->shown++;
				printf("%s\n", name);
			}
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return 0;
}

/* ---- probes -------------------------------------------------------------------------------------- */

static void show_probe(struct listing *list, const struct types *types, const char *kind,
		       const char *name, uint32_t proto)
{
	char section[300];

	snprintf(section, sizeof(section), "%s/%s", kind, name);
	if (!matches(list, name) && !matches(list, section))
		return;
	list->shown++;
	if (list->verbose && proto)
		cli_print_signature(types, kind, name, proto);
	else
		printf("%s\n", section);
}

/* Functions and raw tracepoints are in the kernel's BTF, with their types. */
static void list_btf_probes(struct listing *list, const struct types *types)
{
	uint32_t id, pointer, proto;

	for (id = 1; id < types_count(types); id++) {
		const char *name = types_name(types, id);

		if (types_kind(types, id) == BTF_KIND_FUNC) {
			show_probe(list, types, "kprobe", name, types_get(types, id)->type);
		} else if (types_kind(types, id) == BTF_KIND_TYPEDEF &&
			   !strncmp(name, "btf_trace_", 10)) {
			pointer = types_resolve(types, id);
			proto = types_kind(types, pointer) == BTF_KIND_PTR
					? types_get(types, pointer)->type
					: 0;
			show_probe(list, types, "raw_tp", name + 10, proto);
		}
	}
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type == DT_DIR;
}

/* The context of a tracepoint is a structure of its own, or that of its class, which cannot be told
 * from its name. */
static void print_tracepoint(const struct types *types, const char *system, const char *event)
{
	char name[300];

	snprintf(name, sizeof(name), "trace_event_raw_%s", event);
	if (!strcmp(system, "syscalls"))
		snprintf(name, sizeof(name), "trace_event_raw_sys_%s",
			 strncmp(event, "sys_exit", 8) ? "enter" : "exit");
	if (!types_find(types, BTF_KIND_STRUCT, name))
		snprintf(name, sizeof(name), "trace_entry");
	printf("SEC(\"tracepoint/%s/%s\")\nint %s(struct %s *ctx)\n\n", system, event, event, name);
}

static void list_events_of(struct listing *list, const struct types *types, const char *events,
			   const char *system)
{
	struct dirent **entries;
	char path[4096], name[512];
	int count, i;

	snprintf(path, sizeof(path), "%s/%s", events, system);
	count = scandir(path, &entries, visible, alphasort);
	for (i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "tracepoint/%s/%s", system, entries[i]->d_name);
		if (matches(list, name) || matches(list, name + strlen("tracepoint/")) ||
		    matches(list, entries[i]->d_name)) {
			list->shown++;
			if (list->verbose)
				print_tracepoint(types, system, entries[i]->d_name);
			else
				printf("%s\n", name);
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static int list_probes(struct listing *list, struct err *err)
{
	CLEANUP(buf_deinit) struct buf btf = { 0 };
	CLEANUP(types_close_cleanup) struct types *types = NULL;
	const char *tracefs;
	struct dirent **systems;
	struct err reason = { 0 };
	char path[4096];
	int code = buf_read_file(&btf, "/sys/kernel/btf/vmlinux", err), count, i;

	if (!code)
		code = types_open(btf.data, btf.size, &types, err);
	if (code)
		return code;
	list_btf_probes(list, types);
	tracefs = kern_tracefs(&reason);
	if (!tracefs) {
		fprintf(stderr, "duet: tracepoints are not listed: %s\n", reason.text);
		return 0;
	}
	snprintf(path, sizeof(path), "%s/events", tracefs);
	count = scandir(path, &systems, visible, alphasort);
	for (i = 0; i < count; i++) {
		list_events_of(list, types, path, systems[i]->d_name);
		free(systems[i]);
	}
	if (count >= 0)
		free(systems);
	return 0;
}

static const struct {
	const char *kind;
	int (*list)(struct listing *list, struct err *err);
} kinds[] = {
	{ "events", list_events }, { "probes", list_probes },       { "tools", list_tools },
	{ "hooks", list_hooks },   { "functions", list_functions },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int list_kind(const char *kind, struct listing *list)
{
	struct err err = { 0 };
	size_t i;

	for (i = 0; i < KINDS; i++) {
		if (kind && strcmp(kind, kinds[i].kind))
			continue;
		if (kinds[i].list(list, &err))
			return cli_fail(&err);
	}
	if (!list->shown && list->glob) {
		err_set(&err, -ENOENT, "%s: nothing here has such a name: see `duet list %s`",
			list->glob, kind ?: "--help");
		return cli_fail(&err);
	}
	return CLI_OK;
}

static bool is_kind(const char *word)
{
	for (size_t i = 0; word && i < KINDS; i++) {
		if (!strcmp(kinds[i].kind, word))
			return true;
	}
	return false;
}

int cli_list(int argc, char **argv)
{
	struct listing list = { 0 };
	const char *first = NULL, *second = NULL, *kind;
	const struct cli_option options[] = { { "verbose", 'v', .flag = &list.verbose },
					      { "checked", .flag = &list.checked },
					      {} };
	const struct cli_word words[] = { { "GLOB", &first }, { "GLOB", &second }, {} };
	int status;

	if (!cli_parse(&(struct cli_syntax){ help, options, words }, argc, argv, &status))
		return status;
	kind = is_kind(first) ? first : NULL;
	list.glob = kind ? second : first;
	if (!kind && second)
		return cli_usage("list", "%s: one GLOB at a time", second);
	if (!kind && !list.glob)
		return fputs(help, stdout), CLI_OK;
	return list_kind(kind, &list);
}
