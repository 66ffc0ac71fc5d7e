/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checked mode of the user half: the regions that a script may touch, and what its C functions
 * must be given. In an unchecked half every need is met. Not for others.
 */
#pragma once

#include "hook/internal.h"

#include <errno.h>

/* ---- contracts.c ---- */
/* Frequent contracts: no memory; the first, second, first two arguments are text; the second may
 * be NULL; the second is a function of the script. */
extern const struct vm_contract hook_contract_none, hook_contract_text, hook_contract_second_text,
	hook_contract_maybe_second_text, hook_contract_two_texts, hook_contract_callback;
/* Gives a function of the C library its contract. -EPERM: it may not be called, -EINVAL: not with
 * that prototype. */
int hook_contract_find(struct vm_native *native, struct err *err);
void hook_contract_list(hook_function_fn fn, void *context);

/* ---- checked.c ---- */
/* What stands in for functions of the C library in checked mode. */
extern const struct hook_function hook_functions_checked[];

/* The vm exists: data, literals, the streams and errno become regions. 0 or -ENOMEM. */
int hook_regions_open(struct hook_half *half, struct err *err);
/* The kernel half is there: constants are read-only now, mapped arrays may be touched. */
int hook_regions_connect(struct hook_half *half, struct err *err);
void hook_regions_close(struct hook_half *half);
/* A hook begins: its argument may be read until it ends; then that and all copies are gone. */
int hook_regions_begin(struct hook_half *half, const void *argument, uint64_t size,
		       struct err *err);
void hook_regions_end(struct hook_half *half);
/* The script may read a copy of @size bytes, until the hook returns. Raises when out of memory. */
void hook_lend_copy(struct hook_half *half, const void *copy, size_t size);

/* Each raises a fault of the running function when the script may not touch the memory. */
void hook_need(struct hook_half *half, uint64_t address, size_t size, bool write);
void hook_need_string(struct hook_half *half, uint64_t address);
/* A string, or @limit bytes. */
void hook_need_text(struct hook_half *half, uint64_t address, size_t limit);
/* One of the streams that the script may use. */
FILE *hook_need_file(struct hook_half *half, uint64_t file);
/* Standard output or error. */
void hook_need_descriptor(struct hook_half *half, int fd);
/* The values of a printf into @size bytes at @buf: strings are strings, and neither they nor the
 * format are written over; nothing else is written (%n). */
void hook_need_values(struct hook_half *half, const char *buf, size_t size, const char *format,
		      const uint64_t *values, size_t count);
