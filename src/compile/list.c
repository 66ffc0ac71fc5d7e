// SPDX-License-Identifier: BSD-2-Clause
/* An argument vector that owns its strings. */
#include "compile/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

void list_deinit(struct list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct list){ 0 };
}

static int list_take(struct list *list, char *text)
{
	if (!text)
		return -ENOMEM;
	if (list->count + 2 > list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 32;
		char **items = realloc(list->items, capacity * sizeof(*items));

		if (!items) {
			free(text);
			return -ENOMEM;
		}
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = text;
	list->items[list->count] = NULL;
	return 0;
}

int list_add(struct list *list, const char *text)
{
	return list_take(list, strdup(text));
}

int list_add_format(struct list *list, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int code;

	va_start(args, format);
	code = vasprintf(&text, format, args);
	va_end(args);
	return list_take(list, code < 0 ? NULL : text);
}

/* The next word of @text into @word; the rest, NULL at the end or for an open quote. */
static const char *next_word(const char *text, struct buf *word, bool *found)
{
	char quote = 0;

	*found = false;
	text += strspn(text, " \t\n");
	for (; *text; text++) {
		if (!quote && strchr(" \t\n", *text))
			break;
		*found = true;
		if (quote == *text) {
			quote = 0;
			continue;
		}
		if (!quote && (*text == '\'' || *text == '"')) {
			quote = *text;
			continue;
		}
		if (*text == '\\' && quote != '\'' && text[1])
			text++;
		if (buf_append(word, text, 1))
			return NULL;
	}
	return quote ? NULL : text;
}

int list_add_words(struct list *list, const char *text, struct err *err)
{
	const char *rest = text;
	bool found;

	while (rest) {
		CLEANUP(buf_deinit)
		struct buf word = { 0 };

		rest = next_word(rest, &word, &found);
		if (!rest)
			break;
		if (!found)
			return 0;
		if (list_add(list, word.data ? word.data : ""))
			return err_nomem(err);
	}
	return err_set(err, -EINVAL, "--cflags '%s': a quote is not closed", text);
}
