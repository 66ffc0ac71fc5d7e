// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whole maps at one time. Hash tables may change while they are read: in batches the kernel gives
 * each bucket whole, so no key comes twice and the walk ends; key by key a walk whose key was
 * deleted starts anew, so keys are remembered and the number of steps is bounded.
 */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES (256 * 1024)

struct walk {
	const struct kern_map *map;
	struct kern_rows rows;
	size_t capacity;
	uint32_t *slots; /* of the key set: row index + 1, 0: empty */
	size_t nslots;
	bool count_only;
};

void kern_rows_deinit(struct kern_rows *rows)
{
	free(rows->keys);
	free(rows->values);
	*rows = (struct kern_rows){ 0 };
}

static int reserve(struct walk *walk, size_t more)
{
	struct kern_rows *rows = &walk->rows;
	size_t wanted = rows->count + more, capacity = walk->capacity ? walk->capacity : 64;
	uint8_t *keys, *values;

	if (wanted <= walk->capacity)
		return 0;
	while (capacity < wanted)
		capacity *= 2;
	keys = reallocarray(rows->keys, capacity, rows->key_size);
	if (keys)
		rows->keys = keys;
	values = reallocarray(rows->values, capacity, rows->value_size);
	if (values)
		rows->values = values;
	if (!keys || !values)
		return -ENOMEM;
	walk->capacity = capacity;
	return 0;
}

static uint64_t hash_key(const uint8_t *key, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	while (size--)
		hash = (hash ^ *key++) * 0x100000001b3;
	return hash ^ hash >> 32;
}

static const uint8_t *row_key(const struct walk *walk, size_t row)
{
	return walk->rows.keys + row * walk->rows.key_size;
}

/* Slot of @key: the one that holds it, or the empty one where it belongs. */
static uint32_t *find_slot(const struct walk *walk, const uint8_t *key)
{
	size_t at = hash_key(key, walk->rows.key_size) & (walk->nslots - 1);

	while (walk->slots[at] &&
	       memcmp(row_key(walk, walk->slots[at] - 1), key, walk->rows.key_size))
		at = (at + 1) & (walk->nslots - 1);
	return &walk->slots[at];
}

static int grow_set(struct walk *walk)
{
	uint32_t *former = walk->slots;
	size_t i;

	if (walk->nslots >= (walk->rows.count + 1) * 2)
		return 0;
	walk->nslots = walk->nslots ? walk->nslots * 2 : 256;
	walk->slots = calloc(walk->nslots, sizeof(*walk->slots));
	if (!walk->slots) {
		walk->slots = former;
		return -ENOMEM;
	}
	free(former);
	for (i = 0; i < walk->rows.count; i++)
		*find_slot(walk, row_key(walk, i)) = i + 1;
	return 0;
}

/* Key by key; @key and @next have room for a key each, @value for a value. */
static int walk_keys(struct walk *walk, uint8_t *key, uint8_t *next, uint8_t *value)
{
	const struct kern_map *map = walk->map;
	uint64_t steps = (uint64_t)map->info.max_entries * 4 + 1024;
	const uint8_t *at = NULL;
	int code;

	while (steps--) {
		code = bpf_map_get_next_key(map->fd, at, next);
		if (code == -ENOENT)
			return 0;
		if (code)
			return code;
		code = reserve(walk, 1);
		if (!code)
			code = grow_set(walk);
		if (code)
			return code;
		if (!*find_slot(walk, next) && !bpf_map_lookup_elem(map->fd, next, value)) {
			struct kern_rows *rows = &walk->rows;

			memcpy(rows->keys + rows->count * rows->key_size, next, rows->key_size);
			memcpy(rows->values + rows->count * rows->value_size, value,
			       rows->value_size);
			*find_slot(walk, next) = ++rows->count;
		}
		memcpy(key, next, walk->rows.key_size);
		at = key;
	}
	return 0; /* it changes faster than we read: what was there is there */
}

/* -EOPNOTSUPP: this kernel or kind of map has no batches. */
static int walk_batches(struct walk *walk)
{
	const struct kern_map *map = walk->map;
	struct kern_rows *rows = &walk->rows;
	size_t cursor_size = rows->key_size > 8 ? rows->key_size : 8;
	uint32_t room = BATCH_BYTES / (rows->key_size + rows->value_size) + 16, got;
	CLEANUP(free_pointer)
	uint8_t *cursors = calloc(2, cursor_size);
	bool first = true;
	size_t total = 0;
	int code;

	if (!cursors)
		return -ENOMEM;
	if (room > map->info.max_entries + 16)
		room = map->info.max_entries + 16;
	for (;;) {
		if (walk->count_only)
			rows->count = 0;
		code = reserve(walk, room);
		if (code)
			return code;
		got = room;
		code = bpf_map_lookup_batch(map->fd, first ? NULL : cursors, cursors + cursor_size,
					    rows->keys + rows->count * rows->key_size,
					    rows->values + rows->count * rows->value_size, &got,
					    NULL);
		if (code == -ENOSPC && room < UINT32_MAX / 2) {
			room *= 2; /* a bucket with more elements than there was room for */
			continue;
		}
		if (code && code != -ENOENT)
			return first && !total ? -EOPNOTSUPP : code;
		rows->count += got;
		total += got;
		if (code == -ENOENT)
			break;
		memcpy(cursors, cursors + cursor_size, cursor_size);
		first = false;
	}
	rows->count = total;
	return 0;
}

/* In batches these never show a key twice: arrays have each once, hashes come by buckets. */
static bool batches_are_exact(uint32_t type)
{
	return type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH ||
	       type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static int walk_map(struct walk *walk)
{
	struct kern_rows *rows = &walk->rows;
	int code = -EOPNOTSUPP;

	if (batches_are_exact(walk->map->info.type))
		code = walk_batches(walk);
	if (code == -EOPNOTSUPP) {
		CLEANUP(free_pointer)
		uint8_t *scratch = malloc(2 * (size_t)rows->key_size + rows->value_size);

		if (!scratch)
			return -ENOMEM;
		rows->count = 0;
		code = walk_keys(walk, scratch, scratch + rows->key_size,
				 scratch + 2 * (size_t)rows->key_size);
	}
	free(walk->slots);
	return code;
}

/* Maps whose elements have keys that can be walked and values that can be looked up. */
static bool can_walk(uint32_t type)
{
	return batches_are_exact(type) || type == BPF_MAP_TYPE_LPM_TRIE ||
	       type == BPF_MAP_TYPE_STACK_TRACE || type == BPF_MAP_TYPE_CGROUP_STORAGE;
}

size_t kern_map_value_bytes(const struct kern_map *map)
{
	if (!map->info.per_cpu)
		return map->info.value_size;
	return ((size_t)map->info.value_size + 7) / 8 * 8 * kern_possible_cpus();
}

static int start_walk(const struct kern_map *map, struct walk *walk)
{
	if (map->fd < 0)
		return -ENOENT;
	if (!can_walk(map->info.type) || !map->info.key_size || !map->info.value_size)
		return -EOPNOTSUPP;
	*walk = (struct walk){ .map = map };
	walk->rows.key_size = map->info.key_size;
	walk->rows.value_size = kern_map_value_bytes(map);
	walk->rows.cpus = map->info.per_cpu ? kern_possible_cpus() : 1;
	return 0;
}

int kern_map_read_all(const struct kern_map *map, struct kern_rows *ret)
{
	struct walk walk;
	int code = start_walk(map, &walk);

	if (code)
		return code;
	code = walk_map(&walk);
	if (code) {
		kern_rows_deinit(&walk.rows);
		return code;
	}
	*ret = walk.rows;
	return 0;
}

int64_t kern_map_entries(const struct kern_map *map)
{
	struct walk walk;
	size_t count;
	int code = start_walk(map, &walk);

	if (code)
		return code;
	if (map->info.type == BPF_MAP_TYPE_ARRAY || map->info.type == BPF_MAP_TYPE_PERCPU_ARRAY)
		return map->info.max_entries;
	walk.count_only = true;
	code = walk_map(&walk);
	count = walk.rows.count;
	kern_rows_deinit(&walk.rows);
	return code ? code : (int64_t)count;
}

/* Arrays have no deletion: their values become zero. */
static int clear_array(const struct kern_map *map)
{
	CLEANUP(free_pointer)
	void *zero = calloc(1, kern_map_value_bytes(map));
	uint32_t i;
	int code = 0;

	if (!zero)
		return -ENOMEM;
	for (i = 0; i < map->info.max_entries && !code; i++)
		code = bpf_map_update_elem(map->fd, &i, zero, 0);
	return code;
}

static int clear_queue(const struct kern_map *map)
{
	CLEANUP(free_pointer)
	void *value = malloc(map->info.value_size);
	uint64_t limit = (uint64_t)map->info.max_entries * 2;
	int code = 0;

	if (!value)
		return -ENOMEM;
	while (!code && limit--)
		code = kern_map_pop(map, value);
	return code == -ENOENT ? 0 : code;
}

int kern_map_clear(const struct kern_map *map)
{
	uint32_t type = map->info.type;
	struct kern_rows rows;
	size_t i;
	int code;

	if (map->fd < 0)
		return -ENOENT;
	if (type == BPF_MAP_TYPE_QUEUE || type == BPF_MAP_TYPE_STACK)
		return clear_queue(map);
	if (type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY)
		return clear_array(map);
	code = kern_map_read_all(map, &rows);
	if (code)
		return code;
	for (i = 0; i < rows.count && !code; i++) {
		code = bpf_map_delete_elem(map->fd, rows.keys + i * rows.key_size);
		if (code == -ENOENT)
			code = 0;
	}
	kern_rows_deinit(&rows);
	return code;
}
