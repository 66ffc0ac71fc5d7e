// SPDX-License-Identifier: BSD-2-Clause
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

void buf_deinit(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ 0 };
}

int buf_reserve(struct buf *buf, size_t more)
{
	size_t need, capacity = buf->capacity ? buf->capacity : 256;
	char *data;

	if (__builtin_add_overflow(buf->size, more, &need) || need + 1 < need)
		return -ENOMEM;
	need++;
	if (need <= buf->capacity)
		return 0;
	while (capacity < need) {
		if (__builtin_mul_overflow(capacity, (size_t)2, &capacity))
			return -ENOMEM;
	}
	data = realloc(buf->data, capacity);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->capacity = capacity;
	data[buf->size] = 0;
	return 0;
}

int buf_append(struct buf *buf, const void *data, size_t size)
{
	int err = buf_reserve(buf, size);

	if (err)
		return err;
	if (size)
		memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	buf->data[buf->size] = 0;
	return 0;
}

int buf_puts(struct buf *buf, const char *text)
{
	return buf_append(buf, text, strlen(text));
}

int buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;
	int size, err;

	va_copy(again, args);
	size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (size < 0)
		return -EINVAL;
	err = buf_reserve(buf, size);
	if (err)
		return err;
	vsnprintf(buf->data + buf->size, size + 1, format, args);
	buf->size += size;
	return 0;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	int err;

	va_start(args, format);
	err = buf_vprintf(buf, format, args);
	va_end(args);
	return err;
}

int buf_read_fd(struct buf *buf, int fd)
{
	for (;;) {
		ssize_t got;
		int err = buf_reserve(buf, 16384);

		if (err)
			return err;
		got = read(fd, buf->data + buf->size, buf->capacity - buf->size - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return 0;
		buf->size += got;
		buf->data[buf->size] = 0;
	}
}

int buf_read_file(struct buf *buf, const char *path, struct err *err)
{
	CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	int code = fd < 0 ? -errno : buf_read_fd(buf, fd);

	if (code)
		return err_set(err, code, "%s: %s", path, strerror(-code));
	return 0;
}

void *array_grow(void *array_pointer, size_t *count, size_t *capacity, size_t element_size)
{
	char **array = array_pointer, *grown;
	size_t bytes, wanted;

	if (*count == *capacity) {
		wanted = *capacity ? *capacity * 2 : 16;
		if (__builtin_mul_overflow(wanted, element_size, &bytes))
			return NULL;
		grown = realloc(*array, bytes);
		if (!grown)
			return NULL;
		*array = grown;
		*capacity = wanted;
	}
	grown = *array + element_size * (*count)++;
	memset(grown, 0, element_size);
	return grown;
}
