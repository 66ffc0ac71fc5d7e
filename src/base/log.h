/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Diagnostics on stderr. One level for the process (the only mutable global of duet), set once by
 * the command line: -q shows nothing but errors, -v adds explanations, -vv adds libbpf's own words.
 * Thread safe: each call is one write.
 */
#pragma once

enum log_level {
	LOG_QUIET,   /* errors only (they are printed by cli/, not here) */
	LOG_NOTE,    /* default: things that a user must know, one line each */
	LOG_VERBOSE, /* -v */
	LOG_DEBUG,   /* -vv */
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* "duet: TEXT\n" when the level is at least that of the name. */
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
