/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growable byte buffer. Always zero-terminated behind `size`, so that text can be used as a
 * string. The buffer owns `data`; buf_deinit() frees it. Zero-initialised (`struct buf b = { 0 }`)
 * is an empty buffer. Not thread safe.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/err.h"

struct buf {
	char *data;
	size_t size;     /* bytes used */
	size_t capacity; /* bytes allocated */
};

void buf_deinit(struct buf *buf); /* also a cleanup function: CLEANUP(buf_deinit) struct buf b */

/* All return 0 or -ENOMEM; on failure the buffer is as it was. */
int buf_reserve(struct buf *buf, size_t more);
int buf_append(struct buf *buf, const void *data, size_t size);
int buf_puts(struct buf *buf, const char *text);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args);

/* Appends the whole of file @path; 0 or -errno with the reason. */
int buf_read_file(struct buf *buf, const char *path, struct err *err);
/* Appends all that @fd still gives. */
int buf_read_fd(struct buf *buf, int fd);

/*
 * Grows an array by one element: `p = array_grow(&array, &count, &capacity, sizeof(*array))`
 * returns the zeroed new element, or NULL when out of memory (the array is then as it was).
 */
void *array_grow(void *array_pointer, size_t *count, size_t *capacity, size_t element_size);
