// SPDX-License-Identifier: BSD-2-Clause
#include "hook/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"

#define SNAPSHOT_BYTES ((size_t)256 << 20) /* address space; touched as used */

static int open_snapshots(struct hook_snapshots *snapshots, struct err *err)
{
	CLEANUP(close_fd) int fd = memfd_create("duet-snapshots", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, SNAPSHOT_BYTES))
		return err_set(err, -errno, "memory for map snapshots: %s", strerror(errno));
	snapshots->writable = mmap(NULL, SNAPSHOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (snapshots->writable == MAP_FAILED) {
		snapshots->writable = NULL;
		return err_nomem(err);
	}
	snapshots->size = SNAPSHOT_BYTES;
	snapshots->readable = mmap(NULL, SNAPSHOT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (snapshots->readable == MAP_FAILED) {
		snapshots->readable = NULL;
		return err_nomem(err);
	}
	return 0;
}

static void close_snapshots(struct hook_snapshots *snapshots)
{
	if (snapshots->writable)
		munmap(snapshots->writable, snapshots->size);
	if (snapshots->readable)
		munmap((void *)snapshots->readable, snapshots->size);
}

const void *hook_snapshot(struct hook_half *half, size_t size, void **write)
{
	struct hook_snapshots *snapshots = &half->snapshots;
	size_t at = snapshots->used;

	size = (size + 15) & ~(size_t)15;
	if (size > snapshots->size - at)
		return NULL;
	snapshots->used += size;
	half->attention = true;
	*write = snapshots->writable + at;
	return snapshots->readable + at;
}

static int open_data(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t page = sysconf(_SC_PAGESIZE), i;

	half->data = calloc(user->ndata + 1, sizeof(*half->data));
	half->data_size = calloc(user->ndata + 1, sizeof(*half->data_size));
	if (!half->data || !half->data_size)
		return err_nomem(err);
	for (i = 0; i < user->ndata; i++) {
		const struct user_data *data = &user->data[i];
		size_t size = ((size_t)data->size + page) / page * page;

		half->data[i] = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (half->data[i] == MAP_FAILED) {
			half->data[i] = NULL;
			return err_nomem(err);
		}
		half->data_size[i] = size;
		if (data->initial)
			memcpy(half->data[i], data->initial, data->size);
	}
	return 0;
}

static int open_maps(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t i;

	half->maps = calloc(user->nmaps + 1, sizeof(*half->maps));
	if (!half->maps)
		return err_nomem(err);
	for (i = 0; i < user->nmaps; i++) {
		half->maps[i].half = half;
		half->maps[i].name = user->maps[i].name;
		half->maps[i].variable_type = user->maps[i].variable_type;
	}
	return 0;
}

static int open_programs(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t i;
	int code;

	half->programs = calloc(user->nhooks + 1, sizeof(*half->programs));
	half->program_function = calloc(user->nhooks + 1, sizeof(*half->program_function));
	half->told_error = calloc(user->nhooks + 1, sizeof(*half->told_error));
	if (!half->programs || !half->program_function || !half->told_error)
		return err_nomem(err);
	for (i = 0; i < user->nhooks; i++) {
		const struct user_hook *hook = &user->hooks[i];
		struct hook_program *program = &half->programs[half->nprograms];

		if (hook->lua)
			return err_set(err, -EOPNOTSUPP,
				       "%s: SEC(\"%s\"): Lua hooks are not in this version: write "
				       "the hook in C",
				       hook->name, hook->section);
		program->name = hook->name;
		code = hook_parse_section(hook->section, program, err);
		if (code)
			return err_prepend(err, code, "%s", hook->name);
		code = hook_check_prototype(half->types, user->functions[hook->function].type,
					    program, err);
		if (code)
			return code;
		half->program_function[half->nprograms++] = hook->function;
	}
	return 0;
}

int hook_half_open(const struct hook_options *options, struct hook_half **ret, struct err *err)
{
	CLEANUP(hook_half_close_cleanup) struct hook_half *half = calloc(1, sizeof(*half));
	int code;

	if (!half)
		return err_nomem(err);
	half->options = *options;
	half->types = obj_types(options->obj);
	half->heap = hook_heap_create(0);
	if (!half->heap)
		return err_nomem(err);
	code = open_snapshots(&half->snapshots, err);
	if (!code)
		code = hook_open_text(half, err);
	if (!code)
		code = open_data(half, err);
	if (!code)
		code = open_maps(half, err);
	if (!code)
		code = open_programs(half, err);
	if (!code)
		code = hook_link(half, err);
	if (!code && !options->link_only)
		code = hook_compile_views(half, err);
	if (code)
		return code;
	*ret = take_pointer(half);
	return 0;
}

void hook_half_close(struct hook_half *half)
{
	size_t i;

	if (!half)
		return;
	hook_free_views(half);
	hook_free_taken(half);
	hook_regions_close(half);
	vm_destroy(half->vm);
	hook_close_text(half);
	for (i = 0; half->data && i < half->options.user->ndata; i++) {
		if (half->data[i])
			munmap(half->data[i], half->data_size[i]);
	}
	close_snapshots(&half->snapshots);
	hook_heap_destroy(half->heap);
	free(half->data);
	free(half->data_size);
	free(half->maps);
	free(half->programs);
	free(half->program_function);
	free(half->told_error);
	free(half->natives);
	free(half->functions);
	free(half->arrays);
	free(half->code);
	free(half->origins);
	free(half);
}

const struct vm *hook_half_vm(const struct hook_half *half)
{
	return half->vm;
}

static int connect_map(struct hook_map *map, struct kern *kern, struct err *err)
{
	struct kern_map *found = kern_map_find(kern, map->name);
	void *memory;

	if (!found || !kern_map_created(found))
		return 0;
	kern_map_get_info(found, &map->info);
	map->kern = found;
	if (!kern_map_place_size(found))
		return 0;
	map->stride = (map->info.value_size + 7) & ~7U;
	if (kern_map_place(found, NULL, &memory, err))
		return err_prepend(err, -EINVAL, "map %s", map->name);
	map->memory = memory; /* goes with the kern */
	return 0;
}

/* The kernel's memory comes to where the half's own was, so that pointers stay right. */
static int connect_data(struct hook_half *half, size_t index, struct err *err)
{
	const struct user_data *data = &half->options.user->data[index];
	struct kern_map *map = data->in_kernel ? kern_map_find(half->kern, data->name) : NULL;
	void *placed;
	int code;

	if (!map || !kern_map_created(map)) {
		if (data->readonly &&
		    mprotect(half->data[index], half->data_size[index], PROT_READ))
			return err_set(err, -errno, "%s: %s", data->name, strerror(errno));
		return 0;
	}
	code = kern_map_place(map, half->data[index], &placed, err);
	return code < 0 ? err_prepend(err, code, "%s", data->name) : 0;
}

int hook_half_connect(struct hook_half *half, struct kern *kern, struct err *err)
{
	size_t i;
	int code;

	half->kern = kern;
	for (i = 0; i < half->options.user->ndata; i++) {
		code = connect_data(half, i, err);
		if (code)
			return code;
	}
	for (i = 0; i < half->options.user->nmaps; i++) {
		code = connect_map(&half->maps[i], kern, err);
		if (code)
			return code;
	}
	code = hook_regions_connect(half, err);
	return code ? code : hook_arrays_connect(half, err);
}

void *hook_half_data(struct hook_half *half, uint32_t data)
{
	return half->data[data];
}

size_t hook_program_count(const struct hook_half *half)
{
	return half->nprograms;
}

const struct hook_program *hook_program_at(const struct hook_half *half, size_t index)
{
	return &half->programs[index];
}

bool hook_any(const struct hook_half *half, enum hook_kind kind)
{
	size_t i;

	for (i = 0; i < half->nprograms; i++) {
		if (half->programs[i].kind == kind)
			return true;
	}
	return false;
}

struct hook_map *hook_map_of(struct hook_half *half, uint64_t address)
{
	uint64_t first = (uintptr_t)half->maps;
	size_t count = half->options.user->nmaps;

	if (address < first || address >= first + count * sizeof(struct hook_map) ||
	    (address - first) % sizeof(struct hook_map))
		return NULL;
	return (struct hook_map *)(uintptr_t)address;
}

bool hook_half_dead(const struct hook_half *half)
{
	return half->dead;
}

bool hook_running(const struct hook_half *half)
{
	return half->running;
}

void hook_interrupt(struct hook_half *half, bool sticky)
{
	if (half->vm)
		vm_interrupt(half->vm, sticky);
}

int hook_take_fault(struct hook_half *half, const struct hook_program *program,
		    const struct vm_fault *fault, struct err *err)
{
	half->dead = fault->foreign && fault->kind != VM_FAULT_ABORT;
	if (!half->dead)
		hook_flush_text(half);
	hook_describe_fault(half, program, fault, err);
	return -EFAULT;
}

int hook_call(struct hook_half *half, size_t index, const void *argument, uint64_t size,
	      int64_t *ret, struct err *err)
{
	const struct hook_program *program = &half->programs[index];
	uint64_t args[2] = { (uintptr_t)argument, size }, result = 0;
	struct vm_fault fault;
	int code;

	if (half->dead)
		return err_set(err, -EFAULT, "%s: not run after a fault inside the C library",
			       program->section);
	half->snapshots.used = 0;
	half->current = program->kind;
	code = hook_regions_begin(half, argument, size, err);
	if (code)
		return code;
	half->running = true;
	code = vm_call(half->vm, half->program_function[index], args, 2, &result, &fault);
	half->running = false;
	hook_regions_end(half);
	if (code == -EFAULT)
		return hook_take_fault(half, program, &fault, err);
	if (code)
		return err_set(err, code, "%s: %s", program->section, strerror(-code));
	hook_flush_text(half);
	code = report_failed(half->options.report);
	if (code) /* whatever the script makes of it: nobody sees what it prints */
		return err_set(err, code, "output: %s", strerror(-code));
	/* int functions leave the upper half undefined: the contract is int. */
	*ret = (int32_t)result;
	return 0;
}

/*
 * An error that the script itself noticed. Before the run it stops everything, at the end it is a
 * report that is missing; in between it is told, once for each program, and the run goes on.
 */
int hook_returned_error(struct hook_half *half, size_t index, int64_t result, struct err *err)
{
	const struct hook_program *program = &half->programs[index];
	bool final = program->kind == HOOK_OPEN || program->kind == HOOK_INIT ||
		     program->kind == HOOK_EXIT;
	struct err text;

	if (!final && half->told_error[index])
		return 0;
	err_set(&text, result < -4095 ? -EINVAL : (int)result, "%s: %s returned %lld%s%s",
		program->name, program->section, (long long)result, result >= -133 ? ": " : "",
		result >= -133 ? strerror(-result) : "");
	if (final) {
		if (err)
			*err = text;
		return text.code;
	}
	half->told_error[index] = true;
	log_note("%s (told once; the run goes on)", text.text);
	return 0;
}

int hook_run(struct hook_half *half, enum hook_kind kind,
	     bool (*match)(const struct hook_program *program, const void *context),
	     const void *context, const void *argument, uint64_t size, struct err *err)
{
	size_t i;

	for (i = 0; i < half->nprograms; i++) {
		const struct hook_program *program = &half->programs[i];
		int64_t result;
		int code;

		if (program->kind != kind || (match && !match(program, context)))
			continue;
		code = hook_call(half, i, argument, size, &result, err);
		if (code)
			return code;
		if (result < 0) {
			code = hook_returned_error(half, i, result, err);
			if (code)
				return code;
			continue;
		}
		if (result)
			break;
	}
	return 0;
}
