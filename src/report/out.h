/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text under construction, with one sticky error, and the shapes in which numbers are written.
 * Emitters append without looking back; report_commit() looks once, before anything is written.
 * An out owns its bytes. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct out {
	struct buf buf;
	int error; /* 0, or -ENOMEM once an append failed: what follows is dropped */
};

void out_deinit(struct out *out);
void out_clear(struct out *out); /* empties, keeps the memory; also forgets the error */
void out_append(struct out *out, const void *data, size_t size);
void out_puts(struct out *out, const char *text);
void out_putc(struct out *out, char c);
void out_fill(struct out *out, char c, size_t count);
void out_printf(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "" when nothing was appended. */
const char *out_text(const struct out *out);

/* Plain, or as 1,234,567. */
void out_integer(struct out *out, __int128 value, bool thousands);
/* Fixed point with that many digits; always '.', whatever the locale says. NaN and infinities
 * never arrive here. */
void out_real(struct out *out, double value, int digits, bool thousands);
/* The shortest text that reads back as the same double. */
void out_exact(struct out *out, double value);
void out_short(struct out *out, double value); /* three digits, 1.39e-43 */
void out_ns(struct out *out, double value);    /* "750 ns", "1.25 ms" */
void out_bytes(struct out *out, double value); /* "512 B", "1.50 KiB" */
/* A power-of-two bound as DTrace writes it: 512, 1K, 2M; exact. @exponent 0..64. */
void out_power(struct out *out, unsigned int exponent);

/* Appends @size bytes as valid UTF-8: each byte that is none becomes U+FFFD. */
void out_utf8(struct out *out, const void *data, size_t size);
/* Appends UTF-8 for a terminal: control characters are written as \n, \t, \x1b. */
void out_visible(struct out *out, const char *text, size_t size);
/* Columns that UTF-8 text takes on a terminal. */
size_t utf8_width(const char *text, size_t size);
/* Bytes of the longest prefix that fits into @width columns. */
size_t utf8_fit(const char *text, size_t size, size_t width);
