// SPDX-License-Identifier: BSD-2-Clause
/* The columns of a map: what its key and value flatten to, and paths into them. */
#include "report/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "report/emit.h"

#define COLUMNS_MAX   128 /* a value with more members is one column */
#define NAME_MAX_     256
#define MEMBERS_MAX   100000
#define ANONYMOUS_MAX 1000 /* structs without a name that are searched for a member */

struct view_column *view_column_find(struct report_view *view, const char *name, size_t size)
{
	size_t i;

	for (i = 0; i < view->ncolumns; i++) {
		if (strlen(view->columns[i].name) == size &&
		    !memcmp(view->columns[i].name, name, size))
			return &view->columns[i];
	}
	return NULL;
}

struct view_column *view_column_add(struct report_view *view, const char *name)
{
	struct view_column *column;
	char unique[NAME_MAX_ + 32];
	unsigned int again = 1;

	snprintf(unique, sizeof(unique), "%.*s", NAME_MAX_, name);
	while (view_column_find(view, unique, strlen(unique)))
		snprintf(unique, sizeof(unique), "%.*s_%u", NAME_MAX_, name, ++again);
	column = array_grow(&view->columns, &view->ncolumns, &view->columns_capacity,
			    sizeof(*column));
	if (!column)
		return NULL;
	column->digits = -1;
	column->root = VIEW_NONE;
	column->name = strdup(unique);
	if (!column->name) {
		view->ncolumns--;
		return NULL;
	}
	return column;
}

static int add_place(struct report_view *view, const struct place *place, const char *name)
{
	struct view_column *column;
	char full[NAME_MAX_ + 8];

	/* A value member with the name of a key member keeps both apart. */
	snprintf(full, sizeof(full), "%.*s", NAME_MAX_, name);
	if (!place->key && view_column_find(view, name, strlen(name)))
		snprintf(full, sizeof(full), "value.%.*s", NAME_MAX_, name);
	column = view_column_add(view, full);
	if (!column)
		return -ENOMEM;
	column->place = *place;
	if (!place->key)
		counter_mark(&column->place, view->counters, view->ncounters, name);
	return 0;
}

/* @left: members that may still be looked at; structs without members would nest for ever. */
static int flatten(struct report_view *view, const struct place *place, const char *name,
		   unsigned int depth, unsigned int *left)
{
	uint32_t count, i;
	int code;

	if ((place->class != PLACE_STRUCT && place->class != PLACE_UNION) ||
	    depth >= EMIT_DEPTH_MAX / 2)
		return add_place(view, place, *name ? name : place->key ? "key" : "value");
	count = place_members(view->types, place);
	for (i = 0; i < count; i++) {
		const char *own;
		struct place member = place_member(view->types, place, i, &own);
		bool composite = member.class == PLACE_STRUCT || member.class == PLACE_UNION;
		char full[NAME_MAX_];

		if (!*own && !composite)
			continue; /* padding */
		snprintf(full, sizeof(full), "%s%s%s", name, *name && *own ? "." : "", own);
		code = flatten(view, &member, full, depth + 1, left);
		if (code)
			return code;
		if (view->ncolumns > COLUMNS_MAX || !*left)
			return -E2BIG;
		--*left;
		/* The members of a union are the same bytes: one is enough. */
		if (place->class == PLACE_UNION)
			break;
	}
	return 0;
}

static void drop_columns(struct report_view *view, size_t keep)
{
	while (view->ncolumns > keep)
		free(view->columns[--view->ncolumns].name);
}

/* A part (key or value) as columns; one of raw bytes when its type is not known. */
static int add_part(struct report_view *view, const struct place *part)
{
	size_t before = view->ncolumns;
	unsigned int left = MEMBERS_MAX;
	int code = flatten(view, part, "", 0, &left);

	if (code != -E2BIG)
		return code;
	drop_columns(view, before);
	return add_place(view, part, part->key ? "key" : "value");
}

static int rename_key(struct report_view *view, size_t keys, struct err *err)
{
	struct view_column *taken;
	char *name;

	if (!view->key_name)
		return 0;
	if (keys != 1)
		return err_set(err, -EINVAL,
			       "key=%s: the key has %zu columns (%s, ...): rename none of them",
			       view->key_name, keys, keys ? view->columns[0].name : "");
	taken = view_column_find(view, view->key_name, strlen(view->key_name));
	if (taken && taken != &view->columns[0])
		return err_set(err, -EINVAL, "key=%s: there is a column of this name already",
			       view->key_name);
	name = strdup(view->key_name);
	if (!name)
		return err_nomem(err);
	free(view->columns[0].name);
	view->columns[0].name = name;
	return 0;
}

int view_columns_build(struct report_view *view, struct err *err)
{
	struct view_column *column;
	size_t keys;

	if (view->key_size && add_part(view, &view->key))
		return err_nomem(err);
	keys = view->ncolumns;
	if (view->percpu) {
		column = view_column_add(view, "cpu");
		if (!column)
			return err_nomem(err);
		column->cpu = true;
	}
	if (add_part(view, &view->value))
		return err_nomem(err);
	/* A value that is one counter is known by the map's name. */
	column = &view->columns[view->ncolumns - 1];
	if (view->ncolumns > keys && !strcmp(column->name, "value"))
		counter_mark(&column->place, view->counters, view->ncounters, view->name);
	return rename_key(view, keys, err);
}

/* ---- paths ---------------------------------------------------------------------------------- */
static int step_member(const struct types *types, struct place *place, const char *name,
		       size_t size, unsigned int *left)
{
	uint32_t count, i;

	if (place->class != PLACE_STRUCT && place->class != PLACE_UNION &&
	    place->class != PLACE_COUNTER && place->class != PLACE_HIST)
		return -ENOENT;
	count = place_members(types, place);
	for (i = 0; i < count; i++) {
		const char *own;
		struct place member = place_member(types, place, i, &own);

		if (strlen(own) == size && size && !memcmp(own, name, size)) {
			*place = member;
			return 0;
		}
		if (!*own && *left && --*left && !step_member(types, &member, name, size, left)) {
			*place = member;
			return 0;
		}
	}
	return -ENOENT;
}

static int step_element(const struct types *types, struct place *place, const char **path)
{
	unsigned long long index;
	char *end;

	if (place->class != PLACE_ARRAY || (*path)[1] < '0' || (*path)[1] > '9')
		return -ENOENT;
	index = strtoull(*path + 1, &end, 10);
	if (*end != ']' || index >= place_elements(types, place))
		return -ENOENT;
	*place = place_element(types, place, index);
	*path = end + 1;
	return 0;
}

/* @path ("a.b[2].c") from @place on. */
static int walk_path(const struct report_view *view, struct place *place, const char *path,
		     const char **rest)
{
	while (*path) {
		unsigned int left = ANONYMOUS_MAX;
		size_t size;

		if (*path == '[') {
			if (step_element(view->types, place, &path))
				return -ENOENT;
			continue;
		}
		if (*path == '.')
			path++;
		size = strcspn(path, ".[");
		if (place->class == PLACE_HIST && path[size] != '[') {
			*rest = path;
			return 0;
		}
		if (step_member(view->types, place, path, size, &left))
			return -ENOENT;
		if (!place->key)
			counter_mark(place, view->counters, view->ncounters, path);
		path += size;
	}
	*rest = path;
	return 0;
}

static int try_path(const struct report_view *view, const struct place *from, const char *path,
		    struct place *ret, const char **rest)
{
	struct place place = *from;
	int code = walk_path(view, &place, path, rest);

	if (!code)
		*ret = place;
	return code;
}

int view_path(struct report_view *view, const char *path, size_t size, struct place *ret,
	      const char **rest)
{
	static const char *const roots[] = { "value", "key" };
	const struct place *places[] = { &view->value, &view->key };
	struct view_column *column = view_column_find(view, path, size);
	size_t i, length;

	if (column && !column->computed && !column->cpu) {
		*ret = column->place;
		*rest = "";
		return 0;
	}
	for (i = 0; i < view->ncolumns; i++) {
		column = &view->columns[i];
		length = strlen(column->name);
		if (!column->computed && !column->cpu && !strncmp(path, column->name, length) &&
		    (path[length] == '.' || path[length] == '[') &&
		    !try_path(view, &column->place, path + length, ret, rest))
			return 0;
	}
	for (i = 0; i < 2; i++) {
		length = strlen(roots[i]);
		if (!strncmp(path, roots[i], length) &&
		    (path[length] == '.' || path[length] == '[') &&
		    !try_path(view, places[i], path + length, ret, rest))
			return 0;
		if (!try_path(view, places[i], path, ret, rest))
			return 0;
	}
	return -ENOENT;
}

int view_no_column(const struct report_view *view, const char *name, size_t size, struct err *err)
{
	char wanted[128], text[512], list[900] = "";
	struct nearest nearest;
	size_t i, used = 0;

	snprintf(wanted, sizeof(wanted), "%.*s", (int)(size < 127 ? size : 127), name);
	nearest_init(&nearest, wanted);
	for (i = 0; i < view->ncolumns; i++) {
		const char *column = view->columns[i].name;

		nearest_offer(&nearest, column);
		if (used + strlen(column) + 8 < sizeof(list))
			used += snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
					 column);
		else if (used + 5 < sizeof(list) && list[used - 1] != '.')
			used += snprintf(list + used, sizeof(list) - used, " ...");
	}
	nearest_text(&nearest, text, sizeof(text));
	if (*text)
		return err_set(err, -EINVAL, "no column `%s`: did you mean %s?: columns: %s",
			       wanted, text, list);
	return err_set(err, -EINVAL, "no column `%s`: columns: %s", wanted, list);
}
