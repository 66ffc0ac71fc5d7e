/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share. Not for others. */
#pragma once

#include "hook/hook.h"

#include <duet/vm.h>

#include "hook/heap.h"
#include "kern/kern.h"
#include "report/report.h"

/* What a map address in user-half code points to. */
struct hook_map {
	struct hook_half *half;
	const char *name;
	struct kern_map *kern;     /* NULL before hook_half_connect() and for maps not created */
	struct kern_map_info info; /* valid with kern */
	uint8_t *memory;           /* live memory of an mmapable array, or NULL */
	uint32_t stride;           /* bytes from element to element in memory */
	uint32_t variable_type;    /* BTF struct of the declaration */
};

/* A print_map()/table() call site: its options, compiled. */
struct hook_view {
	const struct hook_map *map;
	char *options;
	struct report_view *view;
};

/* Read-only copies of map values, valid until the hook returns: one memory, mapped twice. */
struct hook_snapshots {
	uint8_t *writable;
	const uint8_t *readable; /* what scripts see: a write faults */
	size_t size, used;
};

struct hook_half {
	struct hook_options options;
	const struct types *types;
	struct kern *kern;
	void **data;       /* memory of each user_half.data */
	size_t *data_size; /* bytes mapped */
	struct hook_map *maps;
	struct hook_program *programs;
	uint32_t *program_function;
	bool *told_error; /* per program: a negative return was told */
	size_t nprograms;
	struct vm_native *natives;
	size_t nnatives, natives_capacity;
	struct vm_function *functions;
	struct bpf_insn *code; /* linked */
	uint32_t ncode;
	uint32_t *origins;       /* of code: slot in user_half.code; NULL: it is the same */
	uint64_t upper;          /* of the last 128-bit result: see hook/soft.h */
	struct vm_array *arrays; /* that the vm knows the memory of */
	size_t narrays;
	struct vm *vm;
	struct hook_heap *heap;
	struct hook_snapshots snapshots;
	struct hook_view *views;
	size_t nviews, views_capacity;
	struct hook_taken *taken; /* hist_take() */
	FILE **files;             /* checked mode: opened by fopen() */
	size_t nfiles, files_capacity;
	const void *argument; /* checked mode: of the hook that runs */
	char lent[256];       /* checked mode: the last text of strerror() and kin */
	FILE *text;           /* the script's stdout: every byte goes through the report */
	bool running, dead;
	bool told_record; /* "not in duet run" was said */
	enum hook_kind current;
	/* Within a batch: something is to be done before the next event (hook_batch_after()). */
	uint32_t attention;
};

/* ---- the table of functions: one array a theme ------------------------------- */
typedef uint64_t (*hook_native_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, void *half);

struct hook_function {
	const char *name;
	hook_native_fn function;
	const struct vm_contract *contract; /* what it does not check itself, by hook_need...() */
	enum vm_intrinsic intrinsic;        /* what the compiler may do instead of calling it */
};

#define HOOK_MAX_VALUES 32 /* a format can consume that many: absent ones read as 0 */

#define NATIVE(name)                                                                          \
	static uint64_t name(uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, \
			     void *context)
/* Natives see small integers as the register holds them: negative errors are sign-extended. */
#define RETURN_ERROR(error) return (uint64_t)(int64_t)(error)

extern const struct hook_function hook_functions_text[], hook_functions_math[],
	hook_functions_maps[], hook_functions_reports[], hook_functions_control[],
	hook_functions_memory[];

/* Function of a kernel helper number, NULL: it means nothing in user space. */
const struct hook_function *hook_helper(int32_t number);
const struct hook_function *hook_ubpf_helper(int32_t number);
const char *hook_helper_name(int32_t number);

/* ---- parts ---------------------------------------------------------------------- */
/* half.c: what a fault of a program means for the half; -EFAULT with the words in @err. */
int hook_take_fault(struct hook_half *half, const struct hook_program *program,
		    const struct vm_fault *fault, struct err *err);
/* A program returned a negative number: 0, or the error that ends the run. */
int hook_returned_error(struct hook_half *half, size_t index, int64_t result, struct err *err);
int hook_parse_section(const char *section, struct hook_program *program, struct err *err);
int hook_check_prototype(const struct types *types, uint32_t function,
			 const struct hook_program *program, struct err *err);
/* Fills one native for extern @name; -ENOENT and friends with the reason. */
int hook_resolve(struct hook_half *half, const struct user_extern *external,
		 struct vm_native *native, struct err *err);
/* "FILE:LINE" of an instruction of the linked code, or "instruction N". */
const char *hook_where(const struct hook_half *half, uint32_t insn, char *text, size_t size);
/* Which hook program a function belongs to, or NULL. */
const struct hook_program *hook_program_of(const struct hook_half *half, uint32_t function);
int hook_link(struct hook_half *half, struct err *err);
/* Sets half->vm, from what is linked. */
int hook_create_vm(struct hook_half *half, struct err *err);
/* Maps are in memory now: look-ups in arrays need no calls any more, where that is possible. */
int hook_arrays_connect(struct hook_half *half, struct err *err);
int hook_open_text(struct hook_half *half, struct err *err);
void hook_close_text(struct hook_half *half);
/* printf with values in memory; into the script's stdout, or into @buf. Raises on %L. */
int hook_print(struct hook_half *half, const char *format, const uint64_t *values, size_t count);
int hook_format(struct hook_half *half, char *buf, size_t size, const char *format,
		const uint64_t *values, size_t count);
/* Pushes the script's buffered text out, before something else prints. */
void hook_flush_text(struct hook_half *half);
int hook_compile_views(struct hook_half *half, struct err *err);
void hook_free_views(struct hook_half *half);
void hook_free_taken(struct hook_half *half);
struct hook_map *hook_map_of(struct hook_half *half, uint64_t address);
void hook_describe_fault(struct hook_half *half, const struct hook_program *program,
			 const struct vm_fault *fault, struct err *err);
/* Memory for @size bytes of snapshot: *write to fill in, returns what the script may read. */
const void *hook_snapshot(struct hook_half *half, size_t size, void **write);
