// SPDX-License-Identifier: BSD-2-Clause
#include "kern/own.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kern/internal.h"

static int own_failed(int code, const char *what, struct err *err)
{
	struct err why = { 0 };

	if (explain_permission(code, &why))
		return err_set(err, code, "duet's own kernel program: %s: %s", what, why.text);
	return err_set(err, code, "duet's own kernel program: %s: %s", what, kern_errno_text(code));
}

int own_open(struct own *own, enum own_name name, struct err *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "duet");
	struct own_image image = own_image(name);

	*own = (struct own){ 0 };
	own->object = bpf_object__open_mem(image.data, image.size, &opts);
	return own->object ? 0 : own_failed(-errno, "open", err);
}

int own_reuse(struct own *own, const char *map, int fd, struct err *err)
{
	struct bpf_map *found = bpf_object__find_map_by_name(own->object, map);
	int code = found ? bpf_map__reuse_fd(found, fd) : -ENOENT;

	return code ? own_failed(code, map, err) : 0;
}

static int set_bytes(struct bpf_map *map, size_t offset, const void *value, size_t size)
{
	size_t bytes;
	const void *initial = bpf_map__initial_value(map, &bytes);
	CLEANUP(free_pointer)
	char *copy = NULL;

	if (!initial || size > bytes || offset > bytes - size)
		return -EINVAL;
	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, initial, bytes);
	memcpy(copy + offset, value, size);
	return bpf_map__set_initial_value(map, copy, bytes);
}

int own_set(struct own *own, const char *name, const void *value, size_t size, struct err *err)
{
	const struct btf *btf = bpf_object__btf(own->object);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC), i, code = -ENOENT;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_var_secinfo *info = section ? btf_var_secinfos(section) : NULL;
	struct bpf_map *map = bpf_object__find_map_by_name(own->object, "duet.rodata");

	for (i = 0; map && section && i < btf_vlen(section); i++) {
		const struct btf_type *variable = btf__type_by_id(btf, info[i].type);

		if (!strcmp(btf__name_by_offset(btf, variable->name_off), name)) {
			code = info[i].size == size ? set_bytes(map, info[i].offset, value, size)
						    : -EINVAL;
			break;
		}
	}
	return code ? own_failed(code, name, err) : 0;
}

void own_skip(struct own *own, const char *program)
{
	struct bpf_program *found = bpf_object__find_program_by_name(own->object, program);

	if (found)
		bpf_program__set_autoload(found, false);
}

int own_load(struct own *own, struct err *err)
{
	struct messages messages = { 0 };
	int code;

	LISTEN(&messages);
	code = bpf_object__load(own->object);
	if (code) {
		own_failed(code, "load", err);
		if (messages.reason[0])
			err_hint(err, code, "%s", messages.reason);
		if (messages.log.size)
			log_verbose("the verifier on duet's own program:\n%s", messages.log.data);
	}
	messages_deinit(&messages);
	return code;
}

int own_attach(struct own *own, const char *program, struct err *err)
{
	struct bpf_program *found = bpf_object__find_program_by_name(own->object, program);
	struct bpf_link *link;

	if (!found || own->nlinks == OWN_LINKS)
		return own_failed(-ENOENT, program, err);
	link = bpf_program__attach(found);
	if (!link)
		return own_failed(-errno, program, err);
	own->links[own->nlinks++] = link;
	return 0;
}

void own_detach(struct own *own)
{
	while (own->nlinks)
		bpf_link__destroy(own->links[--own->nlinks]);
}

int own_program_fd(const struct own *own, const char *program)
{
	struct bpf_program *found = bpf_object__find_program_by_name(own->object, program);

	return found ? bpf_program__fd(found) : -ENOENT;
}

int own_map_fd(const struct own *own, const char *map)
{
	struct bpf_map *found = bpf_object__find_map_by_name(own->object, map);

	return found ? bpf_map__fd(found) : -ENOENT;
}

void own_close(struct own *own)
{
	own_detach(own);
	bpf_object__close(own->object);
	own->object = NULL;
}
