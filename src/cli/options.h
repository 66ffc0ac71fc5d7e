/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of each command but `duet run`, whose scripts have options of their own: a table
 * of options, and so many other words. Options and words may be mixed; `-` alone is a word; behind
 * `--` all are words.
 */
#pragma once

#include <stdbool.h>

struct cli_option {
	const char *name;   /* "output" for --output; NULL: it has only the letter */
	char letter;        /* 'o' for -o; 0: it has only the name */
	bool *flag;         /* set when it is given; or: */
	const char **value; /* it takes a value */
};

struct cli_word {
	const char *what; /* "FILE.s": one FILE.s at a time */
	const char **value;
};

/* Both tables end with a row of zeros; NULL: none. Texts of argv are lent to what they set. --help
 * and -h need no row. */
struct cli_syntax {
	const char *help;
	const struct cli_option *options;
	const struct cli_word *words;
};

/* argv[0] is the command's name. False: the command ends with *@status, for its help was asked for
 * or its usage is wrong, and that has been printed. */
bool cli_parse(const struct cli_syntax *syntax, int argc, char **argv, int *status);
