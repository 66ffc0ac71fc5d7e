// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "obj/segments.h"

/* A file of headers alone: code at 0x400000, data at 0x601000 from an odd place in the file on. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[4];
};

static const struct image image = {
	.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				 EV_CURRENT },
		    .e_type = ET_EXEC,
		    .e_machine = EM_X86_64,
		    .e_version = EV_CURRENT,
		    .e_phoff = offsetof(struct image, segments),
		    .e_ehsize = sizeof(Elf64_Ehdr),
		    .e_phentsize = sizeof(Elf64_Phdr),
		    .e_phnum = 4 },
	.segments = { { .p_type = PT_NOTE, .p_offset = 0x40, .p_vaddr = 0x999000, .p_filesz = 64 },
		      { .p_type = PT_LOAD, .p_vaddr = 0x400000, .p_filesz = 0x1000 },
		      { .p_type = PT_LOAD,
			.p_offset = 0x1010,
			.p_vaddr = 0x601000,
			.p_filesz = 0x20,
			.p_memsz = 0x3000 },
		      { .p_type = PT_LOAD, .p_offset = 0x1030, .p_vaddr = 0x700000 } },
};

static int read_image(const struct image *from, struct segments *ret)
{
	struct image copy = *from;
	int code;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)&copy, sizeof(copy));
	assert_non_null(elf);
	code = segments_read(elf, ret);
	elf_end(elf);
	return code;
}

static void assert_pair(const struct segments *segments, uint64_t address, uint64_t offset)
{
	uint64_t there = 0, back = 0;

	assert_int_equal(segments_offset_of(segments, address, &there), 0);
	assert_int_equal(there, offset);
	assert_int_equal(segments_address_of(segments, offset, &back), 0);
	assert_int_equal(back, address);
}

static void first_and_last_bytes(void **state)
{
	CLEANUP(segments_deinit) struct segments segments = { 0 };

	assert_int_equal(read_image(&image, &segments), 0);
	assert_int_equal(segments.count, 3);
	assert_pair(&segments, 0x400000, 0);
	assert_pair(&segments, 0x400fff, 0xfff);
	assert_pair(&segments, 0x601000, 0x1010);
	assert_pair(&segments, 0x60101f, 0x102f);
}

/* In front of, between and behind the segments; in memory only; in a segment that is not loaded. */
static void what_no_segment_holds(void **state)
{
	static const uint64_t addresses[] = { 0,        0x3fffff, 0x401000, 0x601020,
					      0x602000, 0x700000, 0x999000, ~0ULL };
	static const uint64_t offsets[] = { 0x1000, 0x100f, 0x1030, ~0ULL };
	CLEANUP(segments_deinit) struct segments segments = { 0 };
	uint64_t ret = 42;
	size_t i;

	assert_int_equal(segments_offset_of(&segments, 0x400000, &ret), -ENOENT);
	assert_int_equal(read_image(&image, &segments), 0);
	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		assert_int_equal(segments_offset_of(&segments, addresses[i], &ret), -ENOENT);
	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		assert_int_equal(segments_address_of(&segments, offsets[i], &ret), -ENOENT);
	assert_int_equal(ret, 42);
}

/* A segment that ends where numbers end: no sum may wrap around. */
static void the_end_of_numbers(void **state)
{
	CLEANUP(segments_deinit) struct segments segments = { 0 };
	struct image high = image;
	uint64_t ret;

	high.segments[1].p_vaddr = ~0ULL - 0xf;
	high.segments[1].p_filesz = 0x1000;
	assert_int_equal(read_image(&high, &segments), 0);
	assert_pair(&segments, ~0ULL, 0xf);
	assert_int_equal(segments_offset_of(&segments, 0, &ret), -ENOENT);
}

static void damaged(void **state)
{
	CLEANUP(segments_deinit) struct segments segments = { 0 };
	struct image bad = image;

	bad.header.e_phoff = 1 << 20;
	assert_int_equal(read_image(&bad, &segments), -EBADMSG);
	assert_int_equal(segments.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_and_last_bytes),
		cmocka_unit_test(what_no_segment_holds),
		cmocka_unit_test(the_end_of_numbers),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
