/* SPDX-License-Identifier: BSD-2-Clause */
/* duet's own BPF programs: opened from memory, loaded, attached. One thread. */
#pragma once

#include <bpf/libbpf.h>
#include <stddef.h>

#include "base/err.h"

enum own_name {
	OWN_TOTALS,
	OWN_TARGET,
	OWN_TRIGGER,
	OWN_PRINTK,
	OWN_CODE,
};

struct own_image {
	const void *data;
	size_t size;
};
struct own_image own_image(enum own_name name);

#define OWN_LINKS 8

struct own {
	struct bpf_object *object;
	struct bpf_link *links[OWN_LINKS];
	size_t nlinks;
};

/* Opened, not loaded: -errno with the reason. */
int own_open(struct own *own, enum own_name name, struct err *err);
/* @fd's map takes the place of @map; @fd stays the caller's. */
int own_reuse(struct own *own, const char *map, int fd, struct err *err);
/* @program is not loaded. Before load. */
void own_skip(struct own *own, const char *program);
int own_load(struct own *own, struct err *err);
/* Raw tracepoint program @program at its section's tracepoint. */
int own_attach(struct own *own, const char *program, struct err *err);
void own_detach(struct own *own);
int own_program_fd(const struct own *own, const char *program);
int own_map_fd(const struct own *own, const char *map);
void own_close(struct own *own); /* accepts a zeroed one */

/* Sets @size bytes of the constant variable @name (in .rodata). Before load. */
int own_set(struct own *own, const char *name, const void *value, size_t size, struct err *err);
