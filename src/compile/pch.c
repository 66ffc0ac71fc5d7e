// SPDX-License-Identifier: BSD-2-Clause
/*
 * A precompiled header: the kernel's types are 135,000 lines, which clang would read on every
 * edit. Its name carries compiler, flags, and contents and times of all headers in it.
 */
#include "compile/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char *skip_comments(const char *text, const char *end)
{
	for (;;) {
		while (text < end && isspace((unsigned char)*text))
			text++;
		if (end - text >= 2 && text[0] == '/' && text[1] == '/') {
			while (text < end && *text != '\n')
				text++;
		} else if (end - text >= 2 && text[0] == '/' && text[1] == '*') {
			text = memmem(text + 2, end - text - 2, "*/", 2);
			if (!text)
				return end;
			text += 2;
		} else {
			return text;
		}
	}
}

enum pch_kind pch_wanted(const char *source, size_t size, const char *folder)
{
	const char *end = source + size, *text = skip_comments(source, end);
	char path[PATH_MAX], name[64];
	int taken = 0;
	char open;

	if (text == end || *text != '#')
		return PCH_NONE;
	/* The source is NUL-terminated (struct buf). */
	if (sscanf(text, "#%*[ \t]include%n", &taken) < 0 || !taken)
		sscanf(text, "#include%n", &taken);
	if (!taken || sscanf(text + taken, " %c%63[^>\"\n]", &open, name) != 2)
		return PCH_NONE;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (open == '"' && !access(path, F_OK))
		return PCH_NONE;
	if (!strcmp(name, "duet.h"))
		return PCH_DUET;
	return !strcmp(name, "vmlinux.h") ? PCH_VMLINUX : PCH_NONE;
}

/* The header itself is compiled: nothing but what clang checks anyway must stay in place. */
static int build(const struct compile_compiler *compiler, const struct list *flags,
		 const char *header, const char *output)
{
	CLEANUP(list_deinit)
	struct list argv = { 0 };
	CLEANUP(buf_deinit)
	struct buf messages = { 0 };
	size_t i;
	int code;

	code = list_add(&argv, compiler->path);
	for (i = 0; i < flags->count && !code; i++)
		code = list_add(&argv, flags->items[i]);
	if (code || list_add(&argv, "-x") || list_add(&argv, "c-header") ||
	    list_add(&argv, header) || list_add(&argv, "-o") || list_add(&argv, output))
		return -ENOMEM;
	return process_run(argv.items, -1, &messages);
}

bool pch_make(const struct workspace *workspace, const struct compile_compiler *compiler,
	      const struct list *flags, const struct headers *headers, enum pch_kind kind,
	      char path[PATH_MAX])
{
	char temporary[PATH_MAX], header[PATH_MAX + 16], name[HASH_TEXT_SIZE];
	struct hash hash = headers->stamp;
	size_t i;

	if (kind == PCH_NONE || workspace->temporary)
		return false;
	hash_word(&hash, compiler_identity(compiler->path));
	hash_word(&hash, kind);
	for (i = 0; i < flags->count; i++)
		hash_text(&hash, flags->items[i]);
	hash_name(&hash, name);
	if (snprintf(path, PATH_MAX, "%s/pch-%s", workspace->path, name) >= PATH_MAX)
		return false;
	if (!access(path, R_OK)) {
		workspace_touch(path);
		return true;
	}
	snprintf(header, sizeof(header), "%s/%s",
		 kind == PCH_DUET ? headers->duet : headers->vmlinux,
		 kind == PCH_DUET ? "duet.h" : "vmlinux.h");
	workspace_temporary(workspace, temporary);
	if (!build(compiler, flags, header, temporary) && !rename(temporary, path))
		return true;
	unlink(temporary);
	return false;
}
