// SPDX-License-Identifier: BSD-2-Clause
/* --set VAR=VALUE and --map NAME.value[...]=N, typed by BTF. */
#include "session/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/nearest.h"

static const struct {
	const char *name;
	int number;
} system_calls[] = {
#include "syscalls.inc"
};

const struct user_variable *session_variable(const struct session *session, const char *name)
{
	const struct user_half *user = session->split.user;
	size_t i;

	for (i = 0; i < user->nvariables; i++) {
		if (!strcmp(user->variables[i].name, name))
			return &user->variables[i];
	}
	return NULL;
}

bool session_is_overhead(const struct session *session, const struct user_variable *variable,
			 char *calls, size_t size)
{
	size_t length = strlen(variable->name), suffix = strlen("_overhead");
	char stats[160];

	if (length <= suffix || strcmp(variable->name + length - suffix, "_overhead") ||
	    variable->size != DUET_OVERHEADS * sizeof(int64_t) * DUET_PMU_MAX)
		return false;
	length -= suffix;
	if (calls)
		snprintf(calls, size, "%.*s", (int)length, variable->name);
	snprintf(stats, sizeof(stats), "%.*s_stats", (int)length, variable->name);
	return session_variable(session, stats);
}

void *session_variable_data(const struct session *session, const char *name, size_t size)
{
	const struct user_variable *variable = session_variable(session, name);

	if (!variable || variable->size < size)
		return NULL;
	return (char *)hook_half_data(session->half, variable->data) + variable->offset;
}

/* A number as people write it: 10, 0x1f, -3, 64k, 500us, read. */
static int parse_number(const char *text, int64_t *ret)
{
	static const struct {
		const char *suffix;
		int shift;
	} sizes[] = { { "k", 10 }, { "K", 10 }, { "M", 20 }, { "G", 30 }, { "T", 40 } };
	uint64_t duration = hook_parse_duration(text);
	unsigned long long value;
	bool negative = text[0] == '-';
	char *end;
	size_t i;

	if (isdigit((unsigned char)text[negative])) {
		errno = 0;
		value = strtoull(text + negative, &end, 0);
		if (errno)
			return -ERANGE;
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (!strcmp(end, sizes[i].suffix)) {
				if (value >> (63 - sizes[i].shift))
					return -ERANGE;
				value <<= sizes[i].shift;
				end += 1;
				break;
			}
		}
		if (*end && duration && !negative)
			value = duration;
		else if (*end)
			return -EINVAL;
		if (negative && value > (unsigned long long)INT64_MAX + 1)
			return -ERANGE;
		*ret = negative ? -(int64_t)value : (int64_t)value;
		return 0;
	}
	for (i = 0; i < sizeof(system_calls) / sizeof(system_calls[0]); i++) {
		if (!strcmp(system_calls[i].name, text)) {
			*ret = system_calls[i].number;
			return 0;
		}
	}
	return -EINVAL;
}

/* An enumerator of @type by name. */
static bool find_enumerator(const struct types *types, uint32_t id, const char *text, int64_t *ret)
{
	const struct btf_type *type = types_get(types, id);
	const struct btf_enum *values = (const struct btf_enum *)(type + 1);
	uint32_t i;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		if (!strcmp(types_string(types, values[i].name_off), text)) {
			*ret = values[i].val;
			return true;
		}
	}
	return false;
}

/* Does @value fit @size bytes of this signedness? */
static bool fits(int64_t value, uint32_t size, bool is_signed, bool negative)
{
	int64_t high;

	if (size >= 8)
		return is_signed || !negative;
	high = (int64_t)1 << (size * 8 - is_signed);
	return value < high && value >= (is_signed ? -high : 0);
}

static int set_integer(const struct types *types, uint32_t id, void *at, uint32_t size,
		       const char *value, struct err *err)
{
	const struct btf_type *type = types_get(types, id);
	bool is_signed = false, is_bool = false;
	int64_t number;
	int code = -EINVAL;

	if (BTF_INFO_KIND(type->info) == BTF_KIND_INT) {
		uint32_t encoding = BTF_INT_ENCODING(*(const uint32_t *)(type + 1));

		is_signed = encoding & BTF_INT_SIGNED;
		is_bool = encoding & BTF_INT_BOOL;
	}
	if (BTF_INFO_KIND(type->info) == BTF_KIND_ENUM &&
	    find_enumerator(types, id, value, &number))
		code = 0;
	else if (is_bool && (!strcmp(value, "true") || !strcmp(value, "false")))
		code = (number = value[0] == 't', 0);
	else
		code = parse_number(value, &number);
	if (code == -EINVAL)
		return err_set(err, code,
			       "`%s` is no number: write 10, 0x1f, 64k, 500us or a system call's "
			       "name",
			       value);
	if (code || !fits(number, size, is_signed, value[0] == '-') ||
	    (is_bool && (number < 0 || number > 1)))
		return err_set(err, -ERANGE, "`%s` does not fit %s%u bits", value,
			       is_bool     ? "a bool of "
			       : is_signed ? "a signed integer of "
					   : "an unsigned integer of ",
			       size * 8);
	memcpy(at, &number, size);
	return 0;
}

static int set_value(const struct types *types, uint32_t type_id, void *at, uint32_t size,
		     const char *value, struct err *err)
{
	uint32_t id = types_resolve(types, type_id);
	const struct btf_type *type = types_get(types, id);
	const struct btf_array *array;
	double number;
	char *end;

	switch (types_kind(types, id)) {
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
		if (size > 8)
			break;
		return set_integer(types, id, at, size, value, err);
	case BTF_KIND_FLOAT:
		number = strtod(value, &end);
		if (end == value || *end)
			return err_set(err, -EINVAL, "`%s` is no number", value);
		if (size == 4)
			memcpy(at, &(float){ number }, 4);
		else if (size == 8)
			memcpy(at, &number, 8);
		return 0;
	case BTF_KIND_ARRAY:
		array = (const struct btf_array *)(type + 1);
		if (types_size(types, array->type) != 1)
			break;
		if (strlen(value) >= size)
			return err_set(err, -E2BIG,
				       "`%s` is longer than the %u bytes of the variable", value,
				       size - 1);
		memset(at, 0, size);
		memcpy(at, value, strlen(value));
		return 0;
	default:
		break;
	}
	return err_set(err, -EOPNOTSUPP,
		       "only numbers, enumerations and char arrays can be set from outside");
}

static int no_such_variable(const struct session *session, const char *name, struct err *err)
{
	const struct user_half *user = session->split.user;
	struct nearest nearest;
	char near[256];
	size_t i;

	nearest_init(&nearest, name);
	for (i = 0; i < user->nvariables; i++) {
		if (strncmp(user->variables[i].name, "__", 2))
			nearest_offer(&nearest, user->variables[i].name);
	}
	nearest_text(&nearest, near, sizeof(near));
	err_set(err, -ENOENT, "the script has no variable `%s`", name);
	if (near[0])
		return err_hint(err, -ENOENT, "did you mean %s?", near);
	return err_hint(err, -ENOENT, "see `duet inspect %s`", session->options->name);
}

int session_set_variable(struct session *session, const char *name, const char *value,
			 struct err *err)
{
	const struct user_variable *variable = session_variable(session, name);
	const struct types *types = obj_types(session->obj);
	void *at;
	int code;

	if (!variable)
		return no_such_variable(session, name, err);
	if (!variable->type || !types)
		return err_set(err, -EINVAL, "%s: no BTF: compile with -g", name);
	if (variable->readonly && !variable->is_volatile)
		return err_set(err, -EPERM,
			       "%s is plain `const`: the compiler has put its value into the code "
			       "already: declare it `const volatile`",
			       name);
	at = (char *)hook_half_data(session->half, variable->data) + variable->offset;
	code = set_value(types, variable->type, at, variable->size, value, err);
	return code ? err_prepend(err, code, "%s", name) : 0;
}

int session_apply_sets(struct session *session, struct err *err)
{
	size_t i;

	for (i = 0; i < session->options->nsets; i++) {
		CLEANUP(free_pointer) char *text = strdup(session->options->sets[i]);
		char *equals = text ? strchr(text, '=') : NULL;
		int code;

		if (!text)
			return err_nomem(err);
		if (!equals || equals == text)
			return err_set(err, -EINVAL, "--set %s: write VAR=VALUE", text);
		*equals = 0;
		code = session_set_variable(session, text, equals + 1, err);
		if (code)
			return err_prepend(err, code, "--set");
	}
	return 0;
}

/* ---- --map ------------------------------------------------------------------------------ */
struct map_setting {
	char name[64];
	const char *what;    /* "value", "event", "max_entries" */
	const char *indices; /* inside [], or NULL for all */
	size_t indices_size;
	const char *value;
};

static int parse_map(const char *text, struct map_setting *ret, struct err *err)
{
	const char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL, *bracket;

	if (!dot || !equals || (size_t)(dot - text) >= sizeof(ret->name))
		return err_set(err, -EINVAL,
			       "--map %s: write NAME.value[0,2..5]=N, NAME.value[all]=N, "
			       "NAME.event=EVENT or NAME.max_entries=N",
			       text);
	*ret = (struct map_setting){ .what = dot + 1, .value = equals + 1 };
	memcpy(ret->name, text, dot - text);
	bracket = strchr(dot, '[');
	if (bracket && bracket < equals) {
		ret->indices = bracket + 1;
		ret->indices_size = strcspn(bracket + 1, "]");
		if (bracket[1 + ret->indices_size] != ']' ||
		    bracket + 2 + ret->indices_size != equals)
			return err_set(err, -EINVAL, "--map %s: the ] is missing", text);
	}
	return 0;
}

static bool setting_is(const struct map_setting *setting, const char *what)
{
	size_t size = strlen(what);

	return !strncmp(setting->what, what, size) && strchr("[=", setting->what[size]);
}

static struct kern_map *find_map(struct session *session, const char *text, const char *name,
				 struct err *err)
{
	struct kern_map *map = kern_map_find(session->kern, name);
	struct nearest nearest;
	char near[256];
	size_t i;

	if (map)
		return map;
	nearest_init(&nearest, name);
	for (i = 0; i < kern_map_count(session->kern); i++)
		nearest_offer(&nearest, kern_map_name(kern_map_at(session->kern, i)));
	nearest_text(&nearest, near, sizeof(near));
	err_set(err, -ENOENT, "--map %s: the script has no map `%s`", text, name);
	if (near[0])
		err_hint(err, -ENOENT, "did you mean %s?", near);
	else
		err_hint(err, -ENOENT, "see `duet inspect %s`", session->options->name);
	return NULL;
}

/* @apply false: checks only. */
static int set_index(const struct session *session, struct kern_map *map, uint32_t index,
		     const char *text, bool apply, struct err *err)
{
	const struct types *types = obj_types(session->obj);
	CLEANUP(free_pointer) uint8_t *value = NULL;
	struct kern_map_info info;
	size_t stride, cpu, cpus;
	int64_t number;
	int code;

	kern_map_get_info(map, &info);
	cpus = info.per_cpu ? kern_possible_cpus() : 1;
	stride = info.per_cpu ? (info.value_size + 7) & ~7U : info.value_size;
	value = calloc(cpus, stride);
	if (!value)
		return err_nomem(err);
	if (info.value_type && types) {
		code = set_value(types, info.value_type, value, info.value_size, text, err);
	} else {
		code = info.value_size > 8 || parse_number(text, &number)
			       ? err_set(err, -EINVAL, "`%s` is no number", text)
			       : 0;
		if (!code)
			memcpy(value, &number, info.value_size);
	}
	if (code || !apply)
		return code;
	for (cpu = 1; cpu < cpus; cpu++)
		memcpy(value + cpu * stride, value, stride);
	code = kern_map_update(map, &index, value, 0);
	return code ? err_set(err, code, "index %u: %s", index, strerror(-code)) : 0;
}

/* "0,2..5", "all" */
static int set_indices(const struct session *session, struct kern_map *map,
		       const struct map_setting *setting, bool apply, struct err *err)
{
	struct kern_map_info info;
	const char *at = setting->indices, *end;
	uint64_t first, last;
	int code;

	kern_map_get_info(map, &info);
	if (!at || !strncmp(at, "all]", 4)) {
		for (first = 0, last = info.max_entries; first < last; first++) {
			code = set_index(session, map, first, setting->value, apply, err);
			if (code)
				return code;
		}
		return 0;
	}
	end = at + setting->indices_size;
	while (at < end) {
		char *next;

		first = last = strtoull(at, &next, 0);
		if (next == at)
			return err_set(err, -EINVAL, "`%.*s` is no list of indices",
				       (int)setting->indices_size, setting->indices);
		if (!strncmp(next, "..", 2) || !strncmp(next, "...", 3))
			last = strtoull(next + strspn(next, "."), &next, 0);
		if (last < first || last >= info.max_entries)
			return err_set(err, -ERANGE, "index %llu: the map has entries 0..%u",
				       (unsigned long long)last, info.max_entries - 1);
		for (; first <= last; first++) {
			code = set_index(session, map, first, setting->value, apply, err);
			if (code)
				return code;
		}
		at = next + (*next == ',');
		if (next < end && *next != ',')
			return err_set(err, -EINVAL, "`%.*s` is no list of indices",
				       (int)setting->indices_size, setting->indices);
	}
	return 0;
}

static int check_max_entries(struct session *session, const char *text,
			     const struct map_setting *setting, struct err *err)
{
	struct kern_map *map = find_map(session, text, setting->name, err);
	int64_t number;
	int code;

	if (!map)
		return -ENOENT;
	if (parse_number(setting->value, &number) || number < 1 || number > UINT32_MAX)
		return err_set(err, -EINVAL, "--map %s: `%s` is no number of entries", text,
			       setting->value);
	code = kern_map_set_max_entries(map, number, err);
	return code ? err_prepend(err, code, "--map %s", text) : 0;
}

static int check_value(struct session *session, const char *text, const struct map_setting *setting,
		       struct err *err)
{
	struct kern_map *map = find_map(session, text, setting->name, err);
	struct kern_map_info info;
	int code;

	if (!map)
		return -ENOENT;
	kern_map_get_info(map, &info);
	if (info.key_size != 4)
		return err_set(err, -EINVAL,
			       "--map %s: values are set by index: the map's key is not an "
			       "integer of 4 bytes",
			       text);
	code = set_indices(session, map, setting, false, err);
	return code ? err_prepend(err, code, "--map %s", text) : 0;
}

/* Before load: what is wrong with a value is told while nothing has happened yet. */
int session_check_maps(struct session *session, struct err *err)
{
	size_t i, count = session->options->nmaps;
	bool values;

	/* Sizes first: indices depend on them. */
	for (i = 0; i < 2 * count; i++) {
		const char *text = session->options->maps[i % count];
		struct map_setting setting;
		int code = parse_map(text, &setting, err);

		if (code)
			return code;
		values = i >= count;
		if (setting_is(&setting, "max_entries"))
			code = values ? 0 : check_max_entries(session, text, &setting, err);
		else if (setting_is(&setting, "value"))
			code = values ? check_value(session, text, &setting, err) : 0;
		else if (!setting_is(&setting, "event"))
			code = err_set(err, -EINVAL,
				       "--map %s: only value, event and max_entries can be set",
				       text);
		else if (!find_map(session, text, setting.name, err))
			code = -ENOENT;
		if (code)
			return code;
	}
	return 0;
}

int session_apply_map_values(struct session *session, struct err *err)
{
	size_t i;

	for (i = 0; i < session->options->nmaps; i++) {
		const char *text = session->options->maps[i];
		struct map_setting setting;
		struct kern_map *map;
		int code;

		code = parse_map(text, &setting, err);
		if (code || !setting_is(&setting, "value"))
			continue;
		map = find_map(session, text, setting.name, err);
		if (!map)
			return -ENOENT;
		code = set_indices(session, map, &setting, true, err);
		if (code)
			return err_prepend(err, code, "--map %s", text);
	}
	return 0;
}
