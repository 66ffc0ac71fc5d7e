// SPDX-License-Identifier: BSD-2-Clause
/* duet inspect */
#include "cli/cli.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/listing.h"
#include "cli/options.h"
#include "kern/kern.h"
#include "obj/split.h"

static const char help[] =
	"usage: duet inspect SCRIPT [--dis]\n"
	"Shows what is in a script: programs, hooks, maps, globals, events, "
	"arguments.\n"
	"  --dis   the instructions of both halves too, with their source lines\n\n"
	"example: duet inspect ipc.o --dis\n";

static const char *const map_types[] = {
	[BPF_MAP_TYPE_HASH] = "hash",
	[BPF_MAP_TYPE_ARRAY] = "array",
	[BPF_MAP_TYPE_PROG_ARRAY] = "prog array",
	[BPF_MAP_TYPE_PERF_EVENT_ARRAY] = "perf event array",
	[BPF_MAP_TYPE_PERCPU_HASH] = "per-CPU hash",
	[BPF_MAP_TYPE_PERCPU_ARRAY] = "per-CPU array",
	[BPF_MAP_TYPE_STACK_TRACE] = "stack trace",
	[BPF_MAP_TYPE_CGROUP_ARRAY] = "cgroup array",
	[BPF_MAP_TYPE_LRU_HASH] = "LRU hash",
	[BPF_MAP_TYPE_LRU_PERCPU_HASH] = "LRU per-CPU hash",
	[BPF_MAP_TYPE_LPM_TRIE] = "LPM trie",
	[BPF_MAP_TYPE_QUEUE] = "queue",
	[BPF_MAP_TYPE_STACK] = "stack",
	[BPF_MAP_TYPE_RINGBUF] = "ring buffer",
	[BPF_MAP_TYPE_TASK_STORAGE] = "task storage",
};

static const char *map_type_name(uint32_t type)
{
	return type < sizeof(map_types) / sizeof(map_types[0]) && map_types[type] ? map_types[type]
										  : "other";
}

/* "struct proc", "u64", "char[16]" */
static const char *type_text(const struct types *types, uint32_t id, char *text, size_t size)
{
	const char *name = types_name(types, id);
	const struct btf_array *array;

	if (!id) {
		snprintf(text, size, "-");
		return text;
	}
	switch (types_kind(types, id)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		snprintf(text, size, "struct %s", name[0] ? name : "{...}");
		break;
	case BTF_KIND_ENUM:
		snprintf(text, size, "enum %s", name);
		break;
	case BTF_KIND_PTR:
		snprintf(text, size, "pointer");
		break;
	case BTF_KIND_ARRAY:
		array = (const struct btf_array *)(types_get(types, id) + 1);
		type_text(types, array->type, text, size);
		snprintf(text + strlen(text), size - strlen(text), "[%u]", array->nelems);
		break;
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
		return type_text(types, types_get(types, id)->type, text, size);
	default:
		snprintf(text, size, "%s", name[0] ? name : "?");
	}
	return text;
}

static void print_programs(const struct user_half *user, struct kern *kern)
{
	size_t i;

	printf("programs of the kernel half\n");
	for (i = 0; i < user->nprograms; i++)
		printf("  %-24s SEC(\"%s\")\n", user->programs[i].name, user->programs[i].section);
	if (!user->nprograms)
		printf("  none\n");
	printf("hooks of the user half\n");
	for (i = 0; i < user->nhooks; i++)
		printf("  %-24s SEC(\"%s\")%s\n", user->hooks[i].name, user->hooks[i].section,
		       user->hooks[i].lua ? " Lua" : "");
	if (!user->nhooks)
		printf("  none: maps are printed at the end\n");
}

static void print_maps(const struct types *types, struct kern *kern)
{
	char key[128], value[128];
	size_t i;

	printf("maps\n");
	for (i = 0; i < kern_map_count(kern); i++) {
		struct kern_map *map = kern_map_at(kern, i);
		struct kern_map_info info;

		kern_map_get_info(map, &info);
		if (info.is_data || !strncmp(kern_map_name(map), "__duet_", 7))
			continue;
		printf("  %-24s %s, ", kern_map_name(map), map_type_name(info.type));
		if (info.max_entries)
			printf("%u entries, ", info.max_entries);
		printf("%s -> %s (%u -> %u bytes)\n",
		       type_text(types, info.key_type, key, sizeof(key)),
		       type_text(types, info.value_type, value, sizeof(value)), info.key_size,
		       info.value_size);
	}
}

static void print_value(const struct types *types, const struct user_variable *variable,
			const void *data)
{
	uint32_t id = types_resolve(types, variable->type);
	int64_t number = 0;

	if (types_kind(types, id) == BTF_KIND_INT && variable->size <= 8) {
		memcpy(&number, data, variable->size);
		printf(" = %lld", (long long)number);
	} else if (types_kind(types, id) == BTF_KIND_ARRAY && memchr(data, 0, variable->size) &&
		   *(const char *)data) {
		const struct btf_array *array =
			(const struct btf_array *)(types_get(types, id) + 1);

		if (types_size(types, array->type) == 1)
			printf(" = \"%s\"", (const char *)data);
	}
}

/* What duet.h's macros declare beside what the script wrote. */
static bool is_internal(const struct user_half *user, const char *name)
{
	size_t size = strlen(name), i;

	if (!strncmp(name, "__", 2) || !strncmp(name, "LICENSE", 7) || strstr(name, ".__"))
		return true;
	for (i = 0; i < user->nmaps; i++) {
		const char *map = user->maps[i].name;
		size_t length = strlen(map);

		if (length < size && !strncmp(name, map, length) &&
		    (!strcmp(name + length, "_slot") || !strcmp(name + length, "_stats") ||
		     !strcmp(name + length, "_overhead") || !strcmp(name + length, "_beside")))
			return true;
	}
	return false;
}

static void print_variables(const struct types *types, const struct user_half *user)
{
	char type[128];
	size_t i;

	printf("variables (* can be set with --set)\n");
	for (i = 0; i < user->nvariables; i++) {
		const struct user_variable *variable = &user->variables[i];
		const struct user_data *data = &user->data[variable->data];
		bool settable = !variable->readonly || variable->is_volatile;

		if (is_internal(user, variable->name))
			continue;
		printf("%c %-24s %s", settable ? '*' : ' ', variable->name,
		       type_text(types, variable->type, type, sizeof(type)));
		if (data->initial)
			print_value(types, variable,
				    (const char *)data->initial + variable->offset);
		printf("\n");
	}
}

/* NUL-separated fields of a note, one after the other. */
static void print_note(const struct user_note *note, size_t skip)
{
	const char *at = note->text, *end = note->text + note->size, *next;

	for (; at < end; at = next) {
		next = at + strnlen(at, end - at) + 1;
		if (skip)
			skip--;
		else
			printf("  %-*.*s", next < end ? 24 : 0, (int)(end - at), at);
	}
	printf("\n");
}

static void print_notes(const struct user_half *user)
{
	static const struct {
		const char *kind, *title;
		size_t skip;
	} kinds[] = {
		{ "pmu", "events: PMU(name, event), rebound with -e name=event", 0 },
		{ "group", "groups of events", 0 },
		{ "record", "sampling", 0 },
		{ "options", "options of duet record", 0 },
		{ "argument", "arguments", 1 },
		{ "optional", "optional programs", 0 },
		{ "arch", "built for", 0 },
	};
	size_t k, i;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		bool titled = false;

		for (i = 0; i < user->nnotes; i++) {
			if (strcmp(user->notes[i].kind, kinds[k].kind))
				continue;
			if (!titled)
				printf("%s\n", kinds[k].title);
			titled = true;
			print_note(&user->notes[i], kinds[k].skip);
		}
	}
}

/* What a program of this section, or a map of this type, asks of the kernel. */
static const struct {
	const char *section;
	enum kern_feature feature;
} section_needs[] = {
	{ "kprobe.multi", KERN_FEATURE_KPROBE_MULTI },
	{ "kretprobe.multi", KERN_FEATURE_KPROBE_MULTI },
	{ "kprobe", KERN_FEATURE_KPROBE },
	{ "kretprobe", KERN_FEATURE_KPROBE },
	{ "ksyscall", KERN_FEATURE_KPROBE },
	{ "kretsyscall", KERN_FEATURE_KPROBE },
	{ "fentry", KERN_FEATURE_FENTRY },
	{ "fexit", KERN_FEATURE_FENTRY },
	{ "fmod_ret", KERN_FEATURE_FENTRY },
	{ "uprobe", KERN_FEATURE_UPROBE },
	{ "uretprobe", KERN_FEATURE_UPROBE },
	{ "usdt", KERN_FEATURE_UPROBE },
	{ "tracepoint", KERN_FEATURE_TRACEFS },
	{ "tp/", KERN_FEATURE_TRACEFS },
	{ "raw_t", KERN_FEATURE_RAW_TRACEPOINT },
	{ "tp_btf", KERN_FEATURE_BTF },
	{ "iter", KERN_FEATURE_BTF },
};

static bool has_core_relocations(const struct obj *obj)
{
	uint32_t section = obj_find_section(obj, ".BTF.ext");
	const struct {
		uint16_t magic;
		uint8_t version, flags;
		uint32_t header, functions, functions_size, lines, lines_size;
		uint32_t relocations, relocations_size;
	} * ext;
	size_t size;

	if (!section)
		return false;
	ext = obj_section_data(obj, section, &size);
	return ext && size >= sizeof(*ext) && ext->header >= sizeof(*ext) &&
	       ext->relocations_size > 4; /* the size of a record comes first */
}

static void print_needs(const struct obj *obj, const struct user_half *user, struct kern *kern)
{
	bool needed[KERN_FEATURE_COUNT] = { 0 };
	size_t i, k;

	needed[KERN_FEATURE_BTF] = has_core_relocations(obj);
	for (i = 0; i < user->nprograms; i++) {
		const char *section = user->programs[i].section;

		section += *section == '?';
		for (k = 0; k < sizeof(section_needs) / sizeof(section_needs[0]); k++) {
			if (!strncmp(section, section_needs[k].section,
				     strlen(section_needs[k].section))) {
				needed[section_needs[k].feature] = true;
				break;
			}
		}
	}
	for (i = 0; i < kern_map_count(kern); i++) {
		struct kern_map_info info;

		kern_map_get_info(kern_map_at(kern, i), &info);
		if (info.type == BPF_MAP_TYPE_RINGBUF)
			needed[KERN_FEATURE_RINGBUF] = true;
		if (info.type == BPF_MAP_TYPE_TASK_STORAGE)
			needed[KERN_FEATURE_TASK_STORAGE] = true;
	}
	printf("needs of the kernel\n");
	for (i = 0; i < KERN_FEATURE_COUNT; i++) {
		struct err err = { 0 };
		int yes = needed[i] ? kern_feature(i, &err) : 0;

		if (needed[i])
			printf("  %-24s %s\n", kern_feature_row(i)->name,
			       yes > 0 ? "this one has it"
			       : yes   ? "unknown whether this one has it"
				       : "this one lacks it");
	}
}

static int inspect(const char *script, bool dis, struct err *err)
{
	CLEANUP(buf_deinit) struct buf object = { 0 };
	CLEANUP(obj_close_cleanup) struct obj *obj = NULL;
	CLEANUP(kern_close_cleanup) struct kern *kern = NULL;
	CLEANUP(split_deinit) struct split split = { 0 };
	struct cli_script_options options = { 0 };
	int code;

	code = cli_load_script(script, &options, &object, err);
	if (!code)
		code = obj_open(object.data, object.size, script, &obj, err);
	if (!code)
		code = obj_split(obj, NULL, &split, err);
	if (!code)
		code = kern_open(split.kernel, split.kernel_size, script, obj_types(obj), &kern,
				 err);
	if (code)
		return code;
	print_programs(split.user, kern);
	print_maps(obj_types(obj), kern);
	print_variables(obj_types(obj), split.user);
	print_notes(split.user);
	print_needs(obj, split.user, kern);
	if (dis) {
		printf("\n");
		listing_print(&(struct listing){ .obj = obj, .user = split.user });
	}
	return 0;
}

int cli_inspect(int argc, char **argv)
{
	const char *script = NULL;
	bool dis = false;
	const struct cli_option options[] = { { "dis", .flag = &dis }, {} };
	const struct cli_word words[] = { { "SCRIPT", &script }, {} };
	struct err err = { 0 };
	int status;

	if (!cli_parse(&(struct cli_syntax){ help, options, words }, argc, argv, &status))
		return status;
	if (!script)
		return cli_usage("inspect", "which SCRIPT?");
	return inspect(script, dis, &err) ? cli_fail(&err) : CLI_OK;
}
