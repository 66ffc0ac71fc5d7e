/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two files of obj/write.h share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "isa/asm.h"

struct writer_section {
	const char *name;
	uint32_t type, link, info, entsize, align;
	uint64_t flags, size; /* size: of NOBITS */
	struct buf data;
	uint32_t name_offset, offset;
};

/* Where the writer put things: by index in the program. */
struct writer {
	const struct isa_program *program;
	const char *file, *text;
	size_t text_size;
	struct writer_section *sections; /* 0 is ELF's null section */
	size_t nsections, sections_capacity;
	struct {
		uint32_t section, offset, symbol;
	} * functions, *symbols;
	uint32_t rodata, bss;
	bool failed; /* out of memory */
	struct err *err;
};

/* write_btf.c: .BTF and .BTF.ext. */
void writer_add_types(struct writer *w, struct buf *btf, struct buf *ext);
/* Appends; a failure is noted in @w. Returns the offset before. */
uint32_t writer_put(struct writer *w, struct buf *buf, const void *data, size_t size);
uint32_t writer_put_text(struct writer *w, struct buf *buf, const char *text);
bool writer_is_function(const struct writer *w, uint32_t symbol);
