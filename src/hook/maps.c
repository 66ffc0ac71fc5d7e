// SPDX-License-Identifier: BSD-2-Clause
/*
 * Maps from the user half. A mapped array is live memory; every other lookup gives a copy that
 * cannot be written and lives until the hook returns. Before the maps exist: -ENOENT.
 */
#include "hook/internal.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include <duet/shared.h>

#include "base/buf.h"
#include "hook/checked.h"
#include "hook/maps.h"

struct hook_map *hook_map_argument(struct hook_half *half, uint64_t address)
{
	struct hook_map *map = hook_map_of(half, address);

	if (!map)
		vm_raise(half->vm, "the first argument is no map: write &NAME");
	return map;
}

static size_t value_bytes(const struct hook_map *map)
{
	if (!map->info.per_cpu)
		return map->info.value_size;
	return (((size_t)map->info.value_size + 7) & ~(size_t)7) * kern_possible_cpus();
}

static void *need_key(const struct hook_map *map, uint64_t key, bool write)
{
	hook_need(map->half, key, map->info.key_size, write);
	return (void *)key;
}

static void *need_value(const struct hook_map *map, uint64_t value, bool write)
{
	hook_need(map->half, value, map->info.value_size, write);
	return (void *)value;
}

/* A snapshot of the value under @key, or NULL. The caller lends it. */
static const uint8_t *lookup_copy(struct hook_map *map, const void *key)
{
	void *write;
	const uint8_t *copy = hook_snapshot(map->half, value_bytes(map), &write);

	if (!copy)
		vm_raise(map->half->vm, "map lookups of one hook call used up 256 MiB: use "
					"bpf_for_each_map_elem() or return from the hook");
	return kern_map_lookup(map->kern, key, write) ? NULL : copy;
}

static const void *lookup(struct hook_map *map, uint64_t key_address)
{
	const void *key, *copy;
	uint32_t index;

	if (!map->kern)
		return NULL;
	key = need_key(map, key_address, false);
	if (map->memory) {
		memcpy(&index, key, sizeof(index));
		return index < map->info.max_entries ? map->memory + (size_t)index * map->stride
						     : NULL;
	}
	copy = lookup_copy(map, key);
	if (copy)
		hook_lend_copy(map->half, copy, value_bytes(map));
	return copy;
}

NATIVE(fn_lookup)
{
	struct hook_map *map = hook_map_argument(context, a1);

	if (map->kern && map->info.per_cpu)
		vm_raise(map->half->vm, "bpf_map_lookup_elem() of a per-CPU map: use "
					"bpf_map_lookup_percpu_elem(map, key, cpu)");
	return (uintptr_t)lookup(map, a2);
}

NATIVE(fn_lookup_percpu)
{
	struct hook_map *map = hook_map_argument(context, a1);
	const uint8_t *copy;

	if (!map->kern || (uint32_t)a3 >= (uint32_t)kern_possible_cpus())
		return 0;
	if (!map->info.per_cpu)
		vm_raise(map->half->vm,
			 "bpf_map_lookup_percpu_elem() of a map that is not per-CPU: "
			 "use bpf_map_lookup_elem()");
	copy = lookup_copy(map, need_key(map, a2, false));
	if (!copy)
		return 0;
	copy += (size_t)(uint32_t)a3 * ((map->info.value_size + 7) & ~7U);
	hook_lend_copy(map->half, copy, map->info.value_size);
	return (uintptr_t)copy;
}

NATIVE(fn_update)
{
	struct hook_map *map = hook_map_argument(context, a1);
	CLEANUP(free_pointer) uint8_t *spread = NULL;
	size_t stride, i;

	if (!map->kern)
		RETURN_ERROR(-ENOENT);
	need_key(map, a2, false);
	need_value(map, a3, false);
	if (!map->info.per_cpu)
		RETURN_ERROR(kern_map_update(map->kern, (void *)a2, (void *)a3, a4));
	/* As in the kernel half, one value is given; here every CPU gets it. */
	stride = (map->info.value_size + 7) & ~7U;
	spread = calloc(kern_possible_cpus(), stride);
	if (!spread)
		RETURN_ERROR(-ENOMEM);
	for (i = 0; i < (size_t)kern_possible_cpus(); i++)
		memcpy(spread + i * stride, (void *)a3, map->info.value_size);
	RETURN_ERROR(kern_map_update(map->kern, (void *)a2, spread, a4));
}

NATIVE(fn_delete)
{
	struct hook_map *map = hook_map_argument(context, a1);

	RETURN_ERROR(map->kern ? kern_map_delete(map->kern, need_key(map, a2, false)) : -ENOENT);
}

NATIVE(fn_next_key)
{
	struct hook_map *map = hook_map_argument(context, a1);

	if (!map->kern)
		RETURN_ERROR(-ENOENT);
	if (a2)
		need_key(map, a2, false);
	RETURN_ERROR(kern_map_next_key(map->kern, (void *)a2, need_key(map, a3, true)));
}

NATIVE(fn_push)
{
	struct hook_map *map = hook_map_argument(context, a1);

	RETURN_ERROR(map->kern ? kern_map_push(map->kern, need_value(map, a2, false), a3)
			       : -ENOENT);
}

NATIVE(fn_pop)
{
	struct hook_map *map = hook_map_argument(context, a1);

	RETURN_ERROR(map->kern ? kern_map_pop(map->kern, need_value(map, a2, true)) : -ENOENT);
}

NATIVE(fn_peek)
{
	struct hook_map *map = hook_map_argument(context, a1);

	RETURN_ERROR(map->kern ? kern_map_peek(map->kern, need_value(map, a2, true)) : -ENOENT);
}

/* callback(map, key, value, ctx): 0 goes on, 1 stops. Returns elements visited. */
NATIVE(fn_for_each)
{
	struct hook_map *map = hook_map_argument(context, a1);
	long (*callback)(uint64_t, uint64_t, uint64_t, uint64_t) = (void *)a2;
	struct kern_rows rows = { 0 };
	const uint8_t *keys, *values;
	void *write_keys, *write_values;
	size_t i;
	int code;

	if (!map->kern)
		RETURN_ERROR(-ENOENT);
	code = kern_map_read_all(map->kern, &rows);
	if (code)
		RETURN_ERROR(code);
	/* Into snapshot memory: the rows survive nothing, also not a fault in the callback. */
	keys = hook_snapshot(map->half, rows.count * rows.key_size, &write_keys);
	values = hook_snapshot(map->half, rows.count * rows.value_size, &write_values);
	if (keys && values && rows.count) {
		memcpy(write_keys, rows.keys, rows.count * rows.key_size);
		memcpy(write_values, rows.values, rows.count * rows.value_size);
		hook_lend_copy(map->half, keys, rows.count * rows.key_size);
		hook_lend_copy(map->half, values, rows.count * rows.value_size);
	}
	code = keys && values ? 0 : -ENOMEM;
	i = rows.count;
	kern_rows_deinit(&rows);
	if (code)
		RETURN_ERROR(code);
	for (rows.count = i, i = 0; i < rows.count; i++) {
		if (callback(a1, (uintptr_t)keys + i * map->info.key_size,
			     (uintptr_t)values + i * value_bytes(map), a3))
			return i + 1;
	}
	return i;
}

NATIVE(fn_count)
{
	struct hook_map *map = hook_map_argument(context, a1);
	int64_t count = map->kern ? kern_map_entries(map->kern) : 0;

	return count < 0 ? 0 : count;
}

NATIVE(fn_clear)
{
	struct hook_map *map = hook_map_argument(context, a1);

	RETURN_ERROR(map->kern ? kern_map_clear(map->kern) : -ENOENT);
}

NATIVE(fn_max_entries)
{
	struct hook_half *half = context;
	struct hook_map *map = hook_map_argument(half, a1);

	RETURN_ERROR(half->options.ops->map_entries(half->options.run, map->name, a2));
}

/* ---- histograms in maps and globals ---------------------------------------------- */
NATIVE(fn_map_hist)
{
	struct hook_map *map = hook_map_argument(context, a1);

	if (map->kern && map->info.value_size != sizeof(struct hist))
		vm_raise(map->half->vm, "map_hist(): the map's values are no struct hist");
	return (uintptr_t)lookup(map, a2);
}

/* Takes a window: every slot is exchanged with 0, so that an add in between is in the next one. */
static void move_hist(struct hist *to, struct hist *from)
{
	size_t i;

	for (i = 0; i < 64; i++)
		to->slot[i] = __atomic_exchange_n(&from->slot[i], 0, __ATOMIC_RELAXED);
	to->sum = __atomic_exchange_n(&from->sum, 0, __ATOMIC_RELAXED);
	to->n = __atomic_exchange_n(&from->n, 0, __ATOMIC_RELAXED);
}

NATIVE(fn_hist_move)
{
	move_hist((struct hist *)a1, (struct hist *)a2);
	return 0;
}

/* What came in since the last take of the same map and key; the state goes with the half. */
struct hook_taken {
	struct hook_taken *next;
	const struct hook_map *map;
	struct hist last;
	uint8_t key[];
};

static struct hook_taken *taken_of(struct hook_half *half, const struct hook_map *map,
				   const void *key)
{
	struct hook_taken *taken;

	for (taken = half->taken; taken; taken = taken->next) {
		if (taken->map == map && !memcmp(taken->key, key, map->info.key_size))
			return taken;
	}
	taken = calloc(1, sizeof(*taken) + map->info.key_size);
	if (!taken)
		return NULL;
	taken->map = map;
	memcpy(taken->key, key, map->info.key_size);
	taken->next = half->taken;
	half->taken = taken;
	return taken;
}

void hook_free_taken(struct hook_half *half)
{
	while (half->taken) {
		struct hook_taken *next = half->taken->next;

		free(half->taken);
		half->taken = next;
	}
}

NATIVE(fn_hist_take)
{
	struct hook_half *half = context;
	const struct hist *now = (const struct hist *)fn_map_hist(a1, a2, 0, 0, 0, context);
	struct hook_taken *taken;
	const void *readable;
	struct hist *window;
	void *write;
	size_t i;

	if (!now)
		return 0;
	taken = taken_of(half, hook_map_of(half, a1), (const void *)a2);
	readable = hook_snapshot(half, sizeof(*window), &write);
	if (!taken || !readable)
		return 0;
	window = write;
	for (i = 0; i < 64; i++)
		window->slot[i] = now->slot[i] - taken->last.slot[i];
	window->sum = now->sum - taken->last.sum;
	window->n = now->n - taken->last.n;
	hook_lend_copy(half, readable, sizeof(*window));
	taken->last = *now;
	return (uintptr_t)readable;
}

NATIVE(fn_hist_quantile)
{
	return report_hist_quantile((const struct hist *)a1, (uint32_t)a2);
}

NATIVE(fn_hist_mean)
{
	const struct hist *hist = (const struct hist *)a1;
	double mean = hist->n ? (double)(int64_t)hist->sum / (double)hist->n : 0;
	uint64_t bits;

	memcpy(&bits, &mean, sizeof(bits));
	return bits;
}

static const struct vm_contract hist_in = { .args = { { VM_READ, .bytes = sizeof(struct hist) } } };
static const struct vm_contract two_hists_out = {
	.args = { { VM_WRITE, .bytes = sizeof(struct hist) },
		  { VM_CHANGE, .bytes = sizeof(struct hist) } }
};

const struct hook_function hook_functions_maps[] = {
	{ "map_count", fn_count, &hook_contract_none },
	{ "map_clear", fn_clear, &hook_contract_none },
	{ "map_max_entries", fn_max_entries, &hook_contract_none },
	{ "map_hist", fn_map_hist, &hook_contract_none },
	{ "map_next_key", fn_next_key, &hook_contract_none },
	{ "hist_move", fn_hist_move, &two_hists_out },
	{ "hist_take", fn_hist_take, &hook_contract_none },
	{ "hist_quantile", fn_hist_quantile, &hist_in },
	{ "hist_mean", fn_hist_mean, &hist_in },
	{ NULL },
};

const struct hook_map_natives hook_map_natives = {
	.lookup = { "bpf_map_lookup_elem", fn_lookup, &hook_contract_none },
	.update = { "bpf_map_update_elem", fn_update, &hook_contract_none },
	.delete = { "bpf_map_delete_elem", fn_delete, &hook_contract_none },
	.push = { "bpf_map_push_elem", fn_push, &hook_contract_none },
	.pop = { "bpf_map_pop_elem", fn_pop, &hook_contract_none },
	.peek = { "bpf_map_peek_elem", fn_peek, &hook_contract_none },
	.for_each = { "bpf_for_each_map_elem", fn_for_each, &hook_contract_callback },
	.percpu = { "bpf_map_lookup_percpu_elem", fn_lookup_percpu, &hook_contract_none },
	.next_key = { "ubpf_map_get_next_key", fn_next_key, &hook_contract_none },
};
