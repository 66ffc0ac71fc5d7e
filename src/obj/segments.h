/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The segments of an ELF file that are loaded: from addresses as linked to places in the file, and
 * back. The caller owns the arrays; any thread that has one may ask.
 */
#pragma once

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct segment {
	uint64_t offset;  /* in the file */
	uint64_t address; /* as linked */
	uint64_t size;    /* bytes in the file: what follows in memory is in no file */
};

struct segments {
	struct segment *all; /* in the file's order */
	size_t count, capacity;
};

/* Adds those of @elf to @ret, which begins as zeros. -EBADMSG: damaged; -ENOMEM. */
int segments_read(Elf *elf, struct segments *ret);
void segments_deinit(struct segments *segments);
/* -ENOENT: no segment of the file holds it. */
int segments_offset_of(const struct segments *segments, uint64_t address, uint64_t *ret);
int segments_address_of(const struct segments *segments, uint64_t offset, uint64_t *ret);
