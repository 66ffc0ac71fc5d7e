/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reason of a failure, as text on the caller's stack.
 *
 * Functions return >= 0 or -errno; where a user needs the reason, their last parameter is a
 * `struct err *err`, which may be NULL. A text reads `what: why: hint`. Callers prepend context.
 * No function here allocates; all are safe on any thread as long as each thread has its own err.
 */
#pragma once

struct err {
	int code;        /* the -errno that was returned, 0 while nothing failed */
	char text[1400]; /* one line, no trailing newline */
};

/* Sets the text and returns @code (a negative errno). A longer text is cut, never overrun. */
int err_set(struct err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "TEXT: " in front of what is there; returns err->code, or @code where err is NULL. */
int err_prepend(struct err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Appends ": TEXT" (a hint: what to do). Returns err->code, or @code where err is NULL. */
int err_hint(struct err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The usual answer to a failed allocation: sets "out of memory" and returns -ENOMEM. */
int err_nomem(struct err *err);
