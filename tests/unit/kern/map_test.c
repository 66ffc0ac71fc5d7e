// SPDX-License-Identifier: BSD-2-Clause
/* Maps of each kind through the functions of the user half, on this machine's kernel. */
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

struct row {
	uint64_t count;
	char text[8];
};

static int load(void **state)
{
	CLEANUP(buf_deinit) struct buf image = { 0 };
	struct kern *kern = NULL;
	struct err err = { 0 };
	size_t i;

	compile("kern.bpf.c", "", &image);
	assert_ok(kern_open(image.data, image.size, "map.o", NULL, &kern, &err));
	for (i = 0; i < kern_program_count(kern); i++)
		assert_ok(kern_program_set_enabled(kern_program_at(kern, i), false, &err));
	assert_ok(kern_map_set_max_entries(kern_map_find(kern, "percpu"), 32, &err));
	assert_int_equal(kern_map_set_max_entries(kern_map_find(kern, "percpu"), 0, &err), -EINVAL);
	assert_int_equal(kern_map_set_max_entries(kern_map_find(kern, ".bss"), 2, &err), -EINVAL);
	assert_ok(kern_map_make_mmapable(kern_map_find(kern, "array")));
	assert_ok(kern_load(kern, &err));
	*state = kern;
	return 0;
}

static int unload(void **state)
{
	kern_close(*state);
	return 0;
}

static struct kern_map *map(void **state, const char *name)
{
	struct kern_map *found = kern_map_find(*state, name);

	if (!found)
		fail_msg("no map %s", name);
	return found;
}

static void test_info(void **state)
{
	struct kern_map_info info;

	kern_map_get_info(map(state, "percpu"), &info);
	assert_int_equal(info.type, BPF_MAP_TYPE_PERCPU_HASH);
	assert_int_equal(info.max_entries, 32);
	assert_true(info.per_cpu && !info.is_data);
	assert_true(info.key_type && info.value_type);
	assert_int_equal(kern_map_value_bytes(map(state, "percpu")), 8 * kern_possible_cpus());
	kern_map_get_info(map(state, "perf"), &info);
	assert_int_equal(info.max_entries, kern_possible_cpus());
	kern_map_get_info(map(state, ".data"), &info);
	assert_true(info.is_data && info.value_type);
	assert_string_equal(kern_map_name(map(state, ".data")), ".data");
}

static void test_hash(void **state)
{
	struct kern_map *hash = map(state, "hash");
	uint64_t value, sum = 0;
	struct kern_rows rows;
	uint32_t key;
	size_t i;

	assert_int_equal(kern_map_entries(hash), 0);
	for (key = 0; key < 3000; key++) {
		value = key * 3;
		assert_int_equal(kern_map_update(hash, &key, &value, BPF_NOEXIST), 0);
	}
	key = 5;
	assert_int_equal(kern_map_update(hash, &key, &value, BPF_NOEXIST), -EEXIST);
	assert_int_equal(kern_map_delete(hash, &key), 0);
	assert_int_equal(kern_map_delete(hash, &key), -ENOENT);
	assert_int_equal(kern_map_lookup(hash, &key, &value), -ENOENT);
	assert_int_equal(kern_map_entries(hash), 2999);
	assert_int_equal(kern_map_read_all(hash, &rows), 0);
	assert_int_equal(rows.count, 2999);
	assert_int_equal(rows.cpus, 1);
	for (i = 0; i < rows.count; i++)
		sum += ((uint64_t *)rows.values)[i] - 2 * ((uint32_t *)rows.keys)[i];
	assert_int_equal(sum, 3000 * 2999 / 2 - 5);
	kern_rows_deinit(&rows);
	assert_int_equal(kern_map_clear(hash), 0);
	assert_int_equal(kern_map_entries(hash), 0);
	assert_int_equal(kern_map_read_all(hash, &rows), 0);
	assert_int_equal(rows.count, 0);
	kern_rows_deinit(&rows);
}

static void test_array(void **state)
{
	struct kern_map *array = map(state, "array");
	struct row row = { 7, "seven" }, *rows;
	struct kern_rows all;
	struct err err = { 0 };
	uint32_t key = 299;
	void *place;

	assert_ok(kern_map_place(array, NULL, &place, &err));
	rows = place;
	assert_int_equal(kern_map_update(array, &key, &row, 0), 0);
	assert_int_equal(rows[299].count, 7);
	rows[298].count = 1;
	key = 298;
	assert_int_equal(kern_map_lookup(array, &key, &row), 0);
	assert_int_equal(row.count, 1);
	assert_int_equal(kern_map_entries(array), 300);
	assert_int_equal(kern_map_read_all(array, &all), 0);
	assert_int_equal(all.count, 300);
	assert_string_equal(((struct row *)all.values)[299].text, "seven");
	kern_rows_deinit(&all);
	assert_int_equal(kern_map_clear(array), 0);
	assert_int_equal(rows[299].count + rows[298].count, 0);
}

static void test_per_cpu(void **state)
{
	struct kern_map *percpu = map(state, "percpu");
	int cpus = kern_possible_cpus(), i;
	uint64_t *value = calloc(cpus, 8);
	struct kern_rows rows;
	uint32_t key = 9;

	for (i = 0; i < cpus; i++)
		value[i] = 100 + i;
	assert_int_equal(kern_map_update(percpu, &key, value, 0), 0);
	memset(value, 0, cpus * 8);
	assert_int_equal(kern_map_lookup(percpu, &key, value), 0);
	assert_int_equal((uint32_t)value[cpus - 1], 100 + cpus - 1);
	assert_int_equal(kern_map_read_all(percpu, &rows), 0);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.cpus, cpus);
	assert_int_equal(rows.value_size, cpus * 8);
	assert_int_equal(*(uint32_t *)(rows.values + 8 * (cpus - 1)), 100 + cpus - 1);
	kern_rows_deinit(&rows);
	assert_int_equal(kern_map_entries(map(state, "percpu_array")), 3);
	free(value);
}

static void test_queue(void **state)
{
	struct kern_map *queue = map(state, "queue");
	struct kern_rows rows;
	uint64_t value;

	assert_int_equal(kern_map_pop(queue, &value), -ENOENT);
	for (value = 1; value <= 8; value++)
		assert_int_equal(kern_map_push(queue, &value, 0), 0);
	assert_int_equal(kern_map_push(queue, &value, 0), -E2BIG);
	assert_int_equal(kern_map_peek(queue, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(kern_map_pop(queue, &value), 0);
	assert_int_equal(kern_map_pop(queue, &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(kern_map_read_all(queue, &rows), -EOPNOTSUPP);
	assert_int_equal(kern_map_clear(queue), 0);
	assert_int_equal(kern_map_peek(queue, &value), -ENOENT);
}

static void test_lpm_and_lru(void **state)
{
	struct {
		uint32_t bits;
		uint8_t data[4];
	} key = { 8, { 10, 0, 0, 0 } };
	struct kern_map *lpm = map(state, "lpm"), *lru = map(state, "lru");
	struct kern_rows rows;
	uint32_t value = 8;
	uint64_t i;

	assert_int_equal(kern_map_update(lpm, &key, &value, 0), 0);
	key.bits = 16;
	value = 16;
	assert_int_equal(kern_map_update(lpm, &key, &value, 0), 0);
	key.bits = 32;
	key.data[1] = 5;
	assert_int_equal(kern_map_lookup(lpm, &key, &value), 0);
	assert_int_equal(value, 8);
	assert_int_equal(kern_map_entries(lpm), 2);
	assert_int_equal(kern_map_read_all(lpm, &rows), 0);
	assert_int_equal(rows.count, 2);
	kern_rows_deinit(&rows);
	for (i = 0; i < 1000; i++)
		assert_int_equal(kern_map_update(lru, &i, &i, 0), 0);
	assert_in_range(kern_map_entries(lru), 1, 128);
	assert_int_equal(kern_map_entries(map(state, "stacks")), 0);
	assert_int_equal(kern_map_entries(map(state, "ring")), -EOPNOTSUPP);
}

struct changer {
	struct kern_map *map;
	volatile bool stop;
};

static void *change(void *argument)
{
	struct changer *changer = argument;
	uint32_t key;
	uint64_t value;

	for (value = 1; !changer->stop; value++) {
		key = value * 2654435761u % 4000;
		if (value % 2)
			kern_map_update(changer->map, &key, &value, 0);
		else
			kern_map_delete(changer->map, &key);
	}
	return NULL;
}

static int compare_keys(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void test_changing_hash(void **state)
{
	struct changer changer = { .map = map(state, "hash") };
	struct kern_rows rows;
	pthread_t thread;
	int round;
	size_t i;

	pthread_create(&thread, NULL, change, &changer);
	for (round = 0; round < 20; round++) {
		assert_int_equal(kern_map_read_all(changer.map, &rows), 0);
		assert_true(rows.count <= 4000);
		qsort(rows.keys, rows.count, 4, compare_keys);
		for (i = 1; i < rows.count; i++)
			assert_true(((uint32_t *)rows.keys)[i - 1] != ((uint32_t *)rows.keys)[i]);
		kern_rows_deinit(&rows);
	}
	changer.stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(kern_map_clear(changer.map), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info),          cmocka_unit_test(test_hash),
		cmocka_unit_test(test_array),         cmocka_unit_test(test_per_cpu),
		cmocka_unit_test(test_queue),         cmocka_unit_test(test_lpm_and_lru),
		cmocka_unit_test(test_changing_hash),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
