/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Option strings as words: `top=3 since-last title='two words' ipc=insns / cycles:.2`. Blanks
 * inside quotes, brackets and around operators belong to a word. The words own their texts.
 */
#pragma once

#include "report/view.h"

#define OPTIONS_MAX 64

struct option_word {
	char *name;
	char *value; /* NULL: no `=` */
};

struct options {
	struct option_word words[OPTIONS_MAX];
	size_t count;
};

int options_split(const char *text, struct options *ret, struct err *err);
void options_deinit(struct options *options);
/* unit=ns, unit=bytes. */
int option_unit(const struct option_word *word, enum value_unit *ret, struct err *err);

/* Everything that report_view_compile() does after the view knows its map. */
int view_options_apply(struct report_view *view, const char *text, struct err *err);
