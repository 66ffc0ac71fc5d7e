// SPDX-License-Identifier: BSD-2-Clause
#include "obj/segments.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

#include "base/buf.h"

int segments_read(Elf *elf, struct segments *ret)
{
	size_t count, i;

	if (elf_getphdrnum(elf, &count))
		return -EBADMSG;
	for (i = 0; i < count; i++) {
		struct segment *segment;
		GElf_Phdr header;

		if (!gelf_getphdr(elf, i, &header))
			return -EBADMSG;
		if (header.p_type != PT_LOAD)
			continue;
		segment = array_grow(&ret->all, &ret->count, &ret->capacity, sizeof(*segment));
		if (!segment)
			return -ENOMEM;
		*segment = (struct segment){ header.p_offset, header.p_vaddr, header.p_filesz };
	}
	return 0;
}

void segments_deinit(struct segments *segments)
{
	free(segments->all);
	*segments = (struct segments){ 0 };
}

int segments_offset_of(const struct segments *segments, uint64_t address, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < segments->count; i++) {
		const struct segment *segment = &segments->all[i];

		if (address >= segment->address && address - segment->address < segment->size) {
			*ret = address - segment->address + segment->offset;
			return 0;
		}
	}
	return -ENOENT;
}

int segments_address_of(const struct segments *segments, uint64_t offset, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < segments->count; i++) {
		const struct segment *segment = &segments->all[i];

		if (offset >= segment->offset && offset - segment->offset < segment->size) {
			*ret = offset - segment->offset + segment->address;
			return 0;
		}
	}
	return -ENOENT;
}
