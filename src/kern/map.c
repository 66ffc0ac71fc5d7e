// SPDX-License-Identifier: BSD-2-Clause
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUND_UP(value, to) (((value) + (to)-1) / (to) * (to))

int kern_possible_cpus(void)
{
	return libbpf_num_possible_cpus();
}

size_t kern_map_count(const struct kern *kern)
{
	return kern->nmaps;
}

struct kern_map *kern_map_at(struct kern *kern, size_t index)
{
	return index < kern->nmaps ? &kern->maps[index] : NULL;
}

struct kern_map *kern_map_find(struct kern *kern, const char *name)
{
	size_t i;

	for (i = 0; i < kern->nmaps; i++) {
		if (!strcmp(kern->maps[i].name, name))
			return &kern->maps[i];
	}
	return NULL;
}

const char *kern_map_name(const struct kern_map *map)
{
	return map->name;
}

int kern_map_fd(const struct kern_map *map)
{
	return map->fd;
}

bool kern_map_created(const struct kern_map *map)
{
	return map->fd >= 0;
}

void kern_map_get_info(const struct kern_map *map, struct kern_map_info *ret)
{
	*ret = map->info;
}

static bool type_is_per_cpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE;
}

void kern_map_refresh(struct kern_map *map)
{
	struct kern_map_info *info = &map->info;

	info->type = bpf_map__type(map->map);
	info->key_size = bpf_map__key_size(map->map);
	info->value_size = bpf_map__value_size(map->map);
	info->max_entries = bpf_map__max_entries(map->map);
	if (info->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY && !info->max_entries)
		info->max_entries = kern_possible_cpus(); /* what libbpf will make of it */
	info->flags = bpf_map__map_flags(map->map);
	info->key_type = bpf_map__btf_key_type_id(map->map);
	info->value_type = bpf_map__btf_value_type_id(map->map);
	info->is_data = bpf_map__is_internal(map->map);
	info->per_cpu = type_is_per_cpu(info->type);
	map->readonly = info->is_data &&
			(!strncmp(map->name, ".rodata", 7) || !strncmp(map->name, ".kconfig", 8));
	map->fd = map->kern->loaded && !map->unused ? bpf_map__fd(map->map) : -1;
	if (map->fd < 0)
		map->fd = -1;
}

void kern_map_deinit(struct kern_map *map)
{
	if (map->place && map->place_ours)
		munmap(map->place, map->place_size);
	map->place = NULL;
}

/* ---- before load ---------------------------------------------------------------- */

static int check_early(const struct kern_map *map, struct err *err)
{
	if (!map->kern->loaded)
		return 0;
	return err_set(err, -EBUSY,
		       "map %s: cannot be changed after it was created: do it in user/open",
		       map->name);
}

int kern_map_set_max_entries(struct kern_map *map, uint32_t entries, struct err *err)
{
	int code = check_early(map, err);

	if (code)
		return code;
	if (map->info.is_data)
		return err_set(err, -EINVAL, "map %s: a data section has no max_entries",
			       map->name);
	if (!entries)
		return err_set(err, -EINVAL, "map %s: max_entries must not be 0", map->name);
	code = bpf_map__set_max_entries(map->map, entries);
	if (code)
		return err_set(err, code, "map %s: max_entries: %s", map->name,
			       kern_errno_text(code));
	kern_map_refresh(map);
	return 0;
}

int kern_map_set_initial(struct kern_map *map, const void *data, size_t size, struct err *err)
{
	int code = check_early(map, err);

	if (code)
		return code;
	if (size != map->info.value_size)
		return err_set(err, -EINVAL, "map %s: initial contents of %zu bytes, not %u",
			       map->name, size, map->info.value_size);
	LISTEN(&map->kern->messages);
	code = bpf_map__set_initial_value(map->map, data, size);
	if (code)
		return err_set(err, code, "map %s: initial contents: %s", map->name,
			       kern_errno_text(code));
	return 0;
}

int kern_map_set_unused(struct kern_map *map)
{
	int code;

	if (map->kern->loaded)
		return -EBUSY;
	code = bpf_map__set_autocreate(map->map, false);
	map->unused = !code;
	return code;
}

/* Types that the kernel treats specially inside values; such maps cannot be mapped, or must not
 * be written from outside. */
static bool is_special(const char *name)
{
	static const char *const special[] = {
		"bpf_spin_lock", "bpf_res_spin_lock", "bpf_timer",     "bpf_wq",
		"bpf_list_head", "bpf_list_node",     "bpf_rb_root",   "bpf_rb_node",
		"bpf_refcount",  "bpf_dynptr",        "bpf_task_work", "bpf_dynptr_kern",
	};
	size_t i;

	for (i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (!strcmp(name, special[i]))
			return true;
	}
	return false;
}

/* Does the type hold a special field or a tagged pointer (kptr)? Unknown counts as yes. */
static bool holds_special(const struct btf *btf, uint32_t id, int depth)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const struct btf_member *member;
	int i;

	while (type && (btf_is_mod(type) || btf_is_typedef(type)) && !btf_is_type_tag(type))
		type = btf__type_by_id(btf, type->type);
	if (!type || depth > 32 || btf_is_type_tag(type))
		return true;
	if (btf_is_ptr(type)) {
		type = btf__type_by_id(btf, type->type);
		return type && btf_is_type_tag(type);
	}
	if (btf_is_array(type))
		return holds_special(btf, btf_array(type)->type, depth + 1);
	if (!btf_is_composite(type))
		return false;
	if (is_special(btf__name_by_offset(btf, type->name_off)))
		return true;
	member = btf_members(type);
	for (i = 0; i < btf_vlen(type); i++) {
		if (holds_special(btf, member[i].type, depth + 1))
			return true;
	}
	return false;
}

int kern_map_make_mmapable(struct kern_map *map)
{
	const struct btf *btf = bpf_object__btf(map->kern->object);
	size_t i;
	int code;

	if (map->kern->loaded)
		return -EBUSY;
	if (map->info.flags & BPF_F_MMAPABLE)
		return 0;
	if (map->info.type != BPF_MAP_TYPE_ARRAY || bpf_map__pin_path(map->map))
		return -EOPNOTSUPP;
	/* libbpf itself maps only data sections that hold a global variable. */
	if (!btf || (!map->info.value_type && !map->info.is_data) ||
	    (map->info.value_type && holds_special(btf, map->info.value_type, 0)))
		return -EOPNOTSUPP;
	/* An inner map's flags must equal those of its template. */
	for (i = 0; i < map->kern->nmaps; i++) {
		uint32_t type = map->kern->maps[i].info.type;

		if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS || type == BPF_MAP_TYPE_HASH_OF_MAPS)
			return -EOPNOTSUPP;
	}
	code = bpf_map__set_map_flags(map->map, map->info.flags | BPF_F_MMAPABLE);
	if (!code)
		kern_map_refresh(map);
	return code;
}

/* ---- live memory -------------------------------------------------------------------- */

size_t kern_map_place_size(const struct kern_map *map)
{
	size_t page = sysconf(_SC_PAGESIZE), size = map->info.value_size;

	if (!map->info.is_data && !(map->info.flags & BPF_F_MMAPABLE))
		return 0;
	if (!map->info.is_data)
		size = ROUND_UP(size, 8) * map->info.max_entries;
	return ROUND_UP(size, page);
}

int kern_map_place(struct kern_map *map, void *address, void **ret, struct err *err)
{
	int flags = MAP_SHARED | (address ? MAP_FIXED : 0);
	size_t size = kern_map_place_size(map);
	void *place;

	if (!size || map->fd < 0)
		return err_set(err, -EOPNOTSUPP, "map %s: cannot be mapped into memory", map->name);
	if (map->place)
		return err_set(err, -EBUSY, "map %s: is mapped already", map->name);
	place = mmap(address, size, PROT_READ | (map->readonly ? 0 : PROT_WRITE), flags, map->fd,
		     0);
	if (place == MAP_FAILED && !map->readonly && (errno == EPERM || errno == EACCES))
		place = mmap(address, size, PROT_READ, flags, map->fd, 0);
	if (place == MAP_FAILED)
		return err_set(err, -errno, "map %s: cannot be mapped into memory: %s", map->name,
			       strerror(errno));
	map->place = place;
	map->place_size = size;
	map->place_ours = !address;
	map->info.mapped = true;
	*ret = place;
	return 0;
}

/* ---- elements ------------------------------------------------------------------------ */

int kern_map_lookup(const struct kern_map *map, const void *key, void *value)
{
	return map->fd < 0 ? -ENOENT : bpf_map_lookup_elem(map->fd, key, value);
}

int kern_map_update(const struct kern_map *map, const void *key, const void *value, uint64_t flags)
{
	return map->fd < 0 ? -ENOENT : bpf_map_update_elem(map->fd, key, value, flags);
}

int kern_map_delete(const struct kern_map *map, const void *key)
{
	return map->fd < 0 ? -ENOENT : bpf_map_delete_elem(map->fd, key);
}

int kern_map_next_key(const struct kern_map *map, const void *key, void *next)
{
	return map->fd < 0 ? -ENOENT : bpf_map_get_next_key(map->fd, key, next);
}

int kern_map_push(const struct kern_map *map, const void *value, uint64_t flags)
{
	return map->fd < 0 ? -ENOENT : bpf_map_update_elem(map->fd, NULL, value, flags);
}

int kern_map_pop(const struct kern_map *map, void *value)
{
	return map->fd < 0 ? -ENOENT : bpf_map_lookup_and_delete_elem(map->fd, NULL, value);
}

int kern_map_peek(const struct kern_map *map, void *value)
{
	return map->fd < 0 ? -ENOENT : bpf_map_lookup_elem(map->fd, NULL, value);
}
