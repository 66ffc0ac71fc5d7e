/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounds-checked reader over bytes that nobody has checked yet (files, sysfs, ring records).
 * It borrows the bytes. After the first read past the end every further read fails too, so a
 * caller may do several and test once. Integers are in the byte order of this machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *data;
	size_t size;
	size_t offset;
	bool failed;
};

static inline struct reader reader_over(const void *data, size_t size)
{
	return (struct reader){ .data = data, .size = size };
}

/* The next @size bytes, or NULL. The result points into the source; alignment is the source's. */
static inline const void *reader_take(struct reader *reader, size_t size)
{
	const void *taken;

	if (reader->failed || size > reader->size - reader->offset) {
		reader->failed = true;
		return NULL;
	}
	taken = reader->data + reader->offset;
	reader->offset += size;
	return taken;
}

static inline uint64_t reader_integer(struct reader *reader, size_t size)
{
	const void *taken = reader_take(reader, size);
	uint64_t value = 0;

	if (taken)
		memcpy(&value, taken, size); /* little endian: duet supports no other */
	return value;
}

static inline uint32_t reader_u32(struct reader *reader)
{
	return reader_integer(reader, 4);
}

static inline uint64_t reader_u64(struct reader *reader)
{
	return reader_integer(reader, 8);
}

/* Is [offset, offset + size) inside a region of @total bytes? Never overflows. */
static inline bool range_inside(uint64_t offset, uint64_t size, uint64_t total)
{
	return offset <= total && size <= total - offset;
}

/* The string at @offset of a string table, or NULL when it is outside or not terminated. */
static inline const char *string_at(const char *strings, size_t size, uint64_t offset)
{
	if (offset >= size || !memchr(strings + offset, 0, size - offset))
		return NULL;
	return strings + offset;
}
