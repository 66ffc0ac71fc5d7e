// SPDX-License-Identifier: BSD-2-Clause
/*
 * One compiled script in the cache: a single file, so that it appears by one rename.
 *
 *	duet-object 1 HASH		of everything below
 *	COMPILER DEPENDENCIES DIAGNOSTICS OBJECT	identity, count, bytes, bytes
 *	HASH PATH			for each file that the script included
 *	diagnostics, object
 */
#include "compile/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define MAGIC "duet-object 1 "

static int entry_path(const struct workspace *workspace, const struct entry_key *key,
		      char path[PATH_MAX])
{
	char name[HASH_TEXT_SIZE];

	hash_name(&key->hash, name);
	return snprintf(path, PATH_MAX, "%s/object-%s", workspace->path, name) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

static int hash_file(const char *path, char name[HASH_TEXT_SIZE])
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	struct hash hash = { 0 };
	int code = buf_read_file(&text, path, NULL);

	if (code)
		return code;
	hash_data(&hash, text.data, text.size);
	hash_name(&hash, name);
	return 0;
}

/* One "HASH PATH" line: is the file as it was? */
static bool dependency_holds(char *line)
{
	char name[HASH_TEXT_SIZE];

	if (strlen(line) < HASH_TEXT_SIZE || line[HASH_TEXT_SIZE - 1] != ' ')
		return false;
	line[HASH_TEXT_SIZE - 1] = 0;
	return !hash_file(line + HASH_TEXT_SIZE, name) && !strcmp(name, line);
}

/* Splits off the line at @*cursor; NULL at the end. */
static char *take_line(char **cursor)
{
	char *line = *cursor, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = 0;
	*cursor = end + 1;
	return line;
}

static int parse(struct buf *file, const struct entry_key *key, struct compile_result *ret)
{
	size_t ndeps, diagnostics, object, i;
	char *cursor = file->data, *line;
	char name[HASH_TEXT_SIZE];
	struct hash hash = { 0 };
	uint64_t compiler;

	line = take_line(&cursor);
	if (!line || strncmp(line, MAGIC, strlen(MAGIC)))
		return -ENOENT;
	hash_data(&hash, cursor, file->data + file->size - cursor);
	hash_name(&hash, name);
	if (strcmp(name, line + strlen(MAGIC)))
		return -ENOENT;
	line = take_line(&cursor);
	if (!line ||
	    sscanf(line, "%" SCNx64 " %zu %zu %zu", &compiler, &ndeps, &diagnostics, &object) != 4)
		return -ENOENT;
	if (key->compiler && compiler != key->compiler)
		return -ENOENT;
	for (i = 0; i < ndeps; i++) {
		line = take_line(&cursor);
		if (!line || !dependency_holds(line))
			return -ENOENT;
	}
	if ((size_t)(file->data + file->size - cursor) != diagnostics + object)
		return -ENOENT;
	if (buf_append(&ret->diagnostics, cursor, diagnostics) ||
	    buf_append(&ret->object, cursor + diagnostics, object))
		return -ENOMEM;
	return 0;
}

int entry_load(const struct workspace *workspace, const struct entry_key *key,
	       struct compile_result *ret)
{
	CLEANUP(buf_deinit)
	struct buf file = { 0 };
	char path[PATH_MAX];
	int code;

	if (workspace->temporary || entry_path(workspace, key, path))
		return -ENOENT;
	code = buf_read_file(&file, path, NULL);
	if (!code && file.size)
		code = parse(&file, key, ret);
	else
		code = -ENOENT;
	if (!code) {
		ret->cached = true;
		workspace_touch(path);
	}
	return code;
}

static bool is_skipped(const char *path, const char *source, const char *const *skip)
{
	size_t size;

	if (!strcmp(path, source))
		return true;
	for (; *skip; skip++) {
		size = strlen(*skip);
		if (size && !strncmp(path, *skip, size) && path[size] == '/')
			return true;
	}
	return false;
}

/* The prerequisites of a make rule: blanks separate, `\ ` and `$$` escape, `\` newline goes on. */
static int add_dependencies(const char *rule, const char *source, const char *const *skip,
			    struct buf *lines, size_t *count)
{
	const char *from = strstr(rule, ": ");

	if (!from)
		return -EINVAL;
	for (from += 2; *from;) {
		char path[PATH_MAX], name[HASH_TEXT_SIZE];
		size_t size = 0;

		if (strchr(" \n", *from) || (*from == '\\' && from[1] == '\n')) {
			from++;
			continue;
		}
		for (; *from && !strchr(" \n", *from) && size + 1 < sizeof(path); from++) {
			if (*from == '\\' && from[1] == '\n')
				break;
			if ((*from == '\\' && from[1] && strchr(" #\\", from[1])) ||
			    (*from == '$' && from[1] == '$'))
				from++;
			path[size++] = *from;
		}
		path[size] = 0;
		if (!size || is_skipped(path, source, skip))
			continue;
		if (strchr(path, '\n') || hash_file(path, name))
			return -EINVAL;
		if (buf_printf(lines, "%s %s\n", name, path))
			return -ENOMEM;
		++*count;
	}
	return 0;
}

void entry_store(const struct workspace *workspace, const struct entry_key *key,
		 const char *depfile, const char *source, const char *const *skip,
		 const struct compile_result *result)
{
	CLEANUP(buf_deinit)
	struct buf rule = { 0 };
	CLEANUP(buf_deinit)
	struct buf lines = { 0 };
	CLEANUP(buf_deinit)
	struct buf body = { 0 };
	CLEANUP(buf_deinit)
	struct buf file = { 0 };
	char path[PATH_MAX], name[HASH_TEXT_SIZE];
	struct hash hash = { 0 };
	size_t count = 0;

	if (workspace->temporary || entry_path(workspace, key, path) ||
	    buf_read_file(&rule, depfile, NULL) || !rule.size ||
	    add_dependencies(rule.data, source, skip, &lines, &count))
		return;
	if (buf_printf(&body, "%" PRIx64 " %zu %zu %zu\n", key->compiler, count,
		       result->diagnostics.size, result->object.size) ||
	    buf_append(&body, lines.data, lines.size) ||
	    buf_append(&body, result->diagnostics.data, result->diagnostics.size) ||
	    buf_append(&body, result->object.data, result->object.size))
		return;
	hash_data(&hash, body.data, body.size);
	hash_name(&hash, name);
	if (buf_printf(&file, MAGIC "%s\n", name) || buf_append(&file, body.data, body.size))
		return;
	/* A cache that cannot be written costs time, not the run. */
	write_by_rename(path, file.data, file.size, NULL);
}
