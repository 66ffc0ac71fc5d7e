/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbered helpers of SEC("UBPF;perf_record_start") and kin, by the names of the patches that
 * first proposed them. Valid in UBPF; sections only: elsewhere these numbers are the kernel's
 * helpers. Part of duet.h. New scripts use user/... hooks.
 */
#pragma once

/* Context of UBPF;perf_record_end and _exit. */
struct ubpf_record_end {
	int samples;
	int dummy;
};

/* memcmp(3). */
static int (*ubpf_memcmp)(const void *a, const void *b, __u64 size) = (void *)1;
/* memcpy(3). */
static void *(*ubpf_memcpy)(void *to, const void *from, __u64 size) = (void *)2;
/* strcmp(3). */
static int (*ubpf_strcmp)(const char *a, const char *b) = (void *)3;
/* printf(3) with at most 4 values. */
static int (*ubpf_printf)(const char *format, ...) = (void *)4;
/* Copies the element at @key into @value. 0 or -errno. */
static int (*ubpf_map_lookup_elem)(const void *map, const void *key, void *value) = (void *)5;
/* bpf_map_update_elem with these flags. */
static int (*ubpf_map_update_elem)(const void *map, const void *key, const void *value,
				   __u64 flags) = (void *)6;
/* The key behind @key (NULL: the first) into @next. 0, -ENOENT at the end. */
static int (*ubpf_map_get_next_key)(const void *map, const void *key, void *next) = (void *)7;
