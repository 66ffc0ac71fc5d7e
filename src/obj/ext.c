// SPDX-License-Identifier: BSD-2-Clause
/* .BTF.ext: where functions have their types, instructions their lines, CO-RE its relocations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/reader.h"
#include "obj/object.h"

#define CORE_KIND_MAX 12 /* BPF_CORE_TYPE_MATCHES */

/* The fixed part of struct btf_ext_header, of which no header installed has a definition. */
struct ext_header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t hdr_len;
	struct {
		uint32_t offset, length;
	} parts[3]; /* func_info, line_info, core_relo; the last is absent in old ones */
};

enum ext_part { EXT_FUNC_INFO, EXT_LINE_INFO, EXT_CORE_RELO };

static const struct {
	const char *name;
	uint32_t record; /* least size of a record in the file */
	size_t element;  /* ours */
} parts[] = {
	[EXT_FUNC_INFO] = { "func_info", 8, sizeof(struct object_func_info) },
	[EXT_LINE_INFO] = { "line_info", 16, sizeof(struct object_line) },
	[EXT_CORE_RELO] = { "core_relo", 16, sizeof(struct object_core_reloc) },
};

struct ext_array {
	void *elements;
	size_t count, capacity;
};

static bool is_string(const struct obj *obj, uint32_t offset)
{
	size_t size;
	const struct btf_header *header = types_data(obj->types, &size);

	return offset < header->str_len;
}

static const char *read_record(const struct obj *obj, enum ext_part part, uint32_t section,
			       struct reader *reader, void *element)
{
	uint32_t offset = reader_u32(reader);
	struct object_func_info *func = element;
	struct object_line *line = element;
	struct object_core_reloc *core = element;

	if (section && (offset % 8 || offset >= obj->headers[section].sh_size))
		return "an instruction outside its section";
	switch (part) {
	case EXT_FUNC_INFO:
		*func = (struct object_func_info){ section, offset, reader_u32(reader) };
		if (types_kind(obj->types, func->type) != BTF_KIND_FUNC)
			return "a function whose type is none";
		break;
	case EXT_LINE_INFO:
		*line = (struct object_line){ .section = section, .offset = offset };
		line->file = reader_u32(reader);
		line->text = reader_u32(reader);
		line->position = reader_u32(reader);
		if (!is_string(obj, line->file) || !is_string(obj, line->text))
			return "a line whose text is outside the strings";
		break;
	case EXT_CORE_RELO:
		*core = (struct object_core_reloc){ .section = section, .offset = offset };
		core->type = reader_u32(reader);
		core->access = reader_u32(reader);
		core->kind = reader_u32(reader);
		if (!types_get(obj->types, core->type) || !is_string(obj, core->access))
			return "a relocation of no type";
		if (core->kind > CORE_KIND_MAX)
			return "a relocation of unknown kind";
		break;
	}
	return NULL;
}

/* Records of one section; those of a section that is not in the file are checked and dropped. */
static const char *read_section(const struct obj *obj, enum ext_part part, struct reader *reader,
				uint32_t record_size, struct ext_array *array)
{
	uint32_t name = reader_u32(reader), count = reader_u32(reader), section;

	if (reader->failed || !count || !is_string(obj, name))
		return "a bad section header";
	section = obj_find_section(obj, types_string(obj->types, name));
	if (section && !section_is_code(&obj->headers[section]))
		return "a section without code";
	for (uint32_t i = 0; i < count; i++) {
		const void *record = reader_take(reader, record_size);
		struct reader inside = reader_over(record, record ? record_size : 0);
		uint64_t element[4] = { 0 };
		const char *why =
			record ? read_record(obj, part, section, &inside, element) : "cut short";
		void *place;

		if (why)
			return why;
		if (!section)
			continue;
		place = array_grow(&array->elements, &array->count, &array->capacity,
				   parts[part].element);
		if (!place)
			return "out of memory";
		memcpy(place, element, parts[part].element);
	}
	return NULL;
}

static int compare_places(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right; /* section and offset come first in all of them */

	if (a[0] != b[0])
		return a[0] < b[0] ? -1 : 1;
	return a[1] < b[1] ? -1 : a[1] > b[1];
}

static int read_part(const struct obj *obj, enum ext_part part, struct reader reader,
		     struct ext_array *array, struct err *err)
{
	uint32_t record_size;
	const char *why = NULL;

	if (!reader.size)
		return 0;
	record_size = reader_u32(&reader);
	if (reader.failed || record_size < parts[part].record || record_size % 4 ||
	    record_size > 4096)
		why = "bad record size";
	while (!why && reader.offset < reader.size)
		why = read_section(obj, part, &reader, record_size, array);
	if (why)
		return object_refuse(obj, err, "section .BTF.ext: %s: %s", parts[part].name, why);
	if (array->count)
		qsort(array->elements, array->count, parts[part].element, compare_places);
	return 0;
}

int object_read_ext(struct obj *obj, struct err *err)
{
	uint32_t section = obj_find_section(obj, ".BTF.ext");
	size_t size = 0, wanted;
	const uint8_t *data = section ? obj_section_data(obj, section, &size) : NULL;
	struct ext_array arrays[3] = { 0 };
	struct ext_header header = { 0 };
	int code = 0;

	if (!data)
		return 0;
	if (size < 24)
		return object_refuse(obj, err, "section .BTF.ext: cut short");
	memcpy(&header, data, 8);
	if (header.magic != BTF_MAGIC || header.version != BTF_VERSION || header.flags ||
	    header.hdr_len < 24 || header.hdr_len > size || header.hdr_len % 4)
		return object_refuse(obj, err, "section .BTF.ext: bad header");
	wanted = header.hdr_len < sizeof(header) ? 24 : sizeof(header);
	memcpy(&header, data, wanted);
	for (int part = 0; part < 3 && !code; part++) {
		if (!range_inside(header.parts[part].offset, header.parts[part].length,
				  size - header.hdr_len) ||
		    header.parts[part].offset % 4) {
			code = object_refuse(obj, err, "section .BTF.ext: %s: outside the section",
					     parts[part].name);
			break;
		}
		code = read_part(obj, part,
				 reader_over(data + header.hdr_len + header.parts[part].offset,
					     header.parts[part].length),
				 &arrays[part], err);
	}
	obj->func_infos = arrays[EXT_FUNC_INFO].elements;
	obj->nfunc_infos = arrays[EXT_FUNC_INFO].count;
	obj->lines = arrays[EXT_LINE_INFO].elements;
	obj->nlines = arrays[EXT_LINE_INFO].count;
	obj->core_relocs = arrays[EXT_CORE_RELO].elements;
	obj->ncore_relocs = arrays[EXT_CORE_RELO].count;
	return code;
}

bool obj_line_of(const struct obj *obj, uint32_t section, uint64_t offset, struct obj_line *ret)
{
	uint32_t low = 0, high = obj->nlines;
	const struct object_line *line;
	const char *text;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		line = &obj->lines[middle];
		if (line->section < section || (line->section == section && line->offset <= offset))
			low = middle + 1;
		else
			high = middle;
	}
	line = low ? &obj->lines[low - 1] : NULL;
	/* Line 0: code that the compiler made up; the line before it is the best there is. */
	while (line && line > obj->lines && line->section == section && !(line->position >> 10))
		line--;
	if (!line || line->section != section || !(line->position >> 10))
		return false;
	/* A line of the function before says nothing about this one. */
	if (object_function_around(obj, section, line->offset) !=
	    object_function_around(obj, section, offset))
		return false;
	text = types_string(obj->types, line->text);
	ret->file = types_string(obj->types, line->file);
	ret->text = text + strspn(text, " \t");
	ret->line = line->position >> 10;
	ret->column = line->position & 0x3ff;
	return true;
}
