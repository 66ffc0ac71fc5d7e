// SPDX-License-Identifier: BSD-2-Clause
/* What a map held at the last print, found again by key. */
#include "report/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t view_value_stride(const struct report_map *map)
{
	return map->cpus > 1 ? ((size_t)map->value_size + 7) / 8 * 8 : map->value_size;
}

size_t view_value_bytes(const struct report_map *map)
{
	return view_value_stride(map) * (map->cpus ? map->cpus : 1);
}

void view_past_deinit(struct view_past *past)
{
	free(past->keys);
	free(past->values);
	free(past->slots);
	*past = (struct view_past){ 0 };
}

/* FNV-1a, 64 bits. */
static uint64_t hash(const uint8_t *key, size_t size)
{
	uint64_t value = 0xcbf29ce484222325;

	while (size--)
		value = (value ^ *key++) * 0x100000001b3;
	return value ^ value >> 32;
}

static int index_rows(struct view_past *past)
{
	size_t i, at;

	past->nslots = 16;
	while (past->nslots < past->count * 2)
		past->nslots *= 2;
	past->slots = calloc(past->nslots, sizeof(*past->slots));
	if (!past->slots)
		return -ENOMEM;
	for (i = 0; i < past->count; i++) {
		at = hash(past->keys + i * past->key_size, past->key_size) & (past->nslots - 1);
		while (past->slots[at])
			at = (at + 1) & (past->nslots - 1);
		past->slots[at] = i + 1;
	}
	return 0;
}

int view_past_keep(struct view_past *past, const struct report_map *map)
{
	struct view_past next = { .count = map->count,
				  .key_size = map->key_size,
				  .value_size = view_value_bytes(map) };
	size_t keys = next.count * next.key_size, values = next.count * next.value_size;

	next.keys = malloc(keys + 1);
	next.values = malloc(values + 1);
	if (!next.keys || !next.values) {
		view_past_deinit(&next);
		return -ENOMEM;
	}
	if (keys)
		memcpy(next.keys, map->keys, keys);
	if (values)
		memcpy(next.values, map->values, values);
	if (index_rows(&next)) {
		view_past_deinit(&next);
		return -ENOMEM;
	}
	view_past_deinit(past);
	*past = next;
	return 0;
}

const uint8_t *view_past_find(const struct view_past *past, const uint8_t *key)
{
	size_t at;

	if (!past->nslots)
		return NULL;
	at = hash(key, past->key_size) & (past->nslots - 1);
	while (past->slots[at]) {
		size_t row = past->slots[at] - 1;

		if (!memcmp(past->keys + row * past->key_size, key, past->key_size))
			return past->values + row * past->value_size;
		at = (at + 1) & (past->nslots - 1);
	}
	return NULL;
}
