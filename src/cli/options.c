// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Is @text this option? *@ret: the value that hangs on it, NULL when there is none. */
static bool is_option(const struct cli_option *option, const char *text, const char **ret)
{
	size_t size = option->name ? strlen(option->name) : 0;

	*ret = NULL;
	if (text[1] != '-') {
		if (!option->letter || text[1] != option->letter)
			return false;
		*ret = text[2] ? text + 2 : NULL;
		return true;
	}
	if (!size || strncmp(text + 2, option->name, size))
		return false;
	if (text[2 + size] == '=')
		*ret = text + 2 + size + 1;
	return *ret || !text[2 + size];
}

/* The option at argv[*@at]; moves *@at on to the value that it takes. */
static int take_option(const struct cli_option *option, int argc, char **argv, int *at)
{
	const char *text = argv[*at], *value;

	for (; option && (option->name || option->letter); option++) {
		if (!is_option(option, text, &value))
			continue;
		if (option->flag && value)
			return text[1] == '-' ? cli_usage(argv[0], "%s: it takes no value", text)
					      : cli_usage(argv[0], "%s: no such option", text);
		if (option->flag) {
			*option->flag = true;
			return CLI_OK;
		}
		if (!value && ++*at == argc)
			return cli_usage(argv[0], "%s: a value is missing", text);
		*option->value = value ?: argv[*at];
		return CLI_OK;
	}
	return cli_usage(argv[0], "%s: no such option", text);
}

static int take_word(const struct cli_word **words, const char *command, const char *last,
		     const char *text)
{
	if (!*words || !(*words)->value) {
		return last ? cli_usage(command, "%s: one %s at a time", text, last)
			    : cli_usage(command, "%s: it takes no arguments", text);
	}
	*(*words)++->value = text;
	return CLI_OK;
}

bool cli_parse(const struct cli_syntax *syntax, int argc, char **argv, int *status)
{
	const struct cli_word *words = syntax->words;
	const char *last = NULL;
	bool only_words = false;

	*status = CLI_OK;
	for (int i = 1; i < argc && *status == CLI_OK; i++) {
		const char *text = argv[i];

		if (only_words || text[0] != '-' || !text[1]) {
			last = words && words->value ? words->what : last;
			*status = take_word(&words, argv[0], last, text);
		} else if (!strcmp(text, "--")) {
			only_words = true;
		} else if (!strcmp(text, "--help") || !strcmp(text, "-h")) {
			fputs(syntax->help, stdout);
			return false;
		} else {
			*status = take_option(syntax->options, argc, argv, &i);
		}
	}
	return *status == CLI_OK;
}
