// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_btf(const char *path, struct types **ret)
{
	int fd = open(path, O_RDONLY), code = -1;
	struct err err = { 0 };
	Elf_Scn *section = NULL;
	size_t names;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		gelf_getshdr(section, &header);
		if (strcmp(elf_strptr(elf, names, header.sh_name), ".BTF"))
			continue;
		data = elf_getdata(section, NULL);
		code = types_open(data->d_buf, data->d_size, ret, &err);
		if (code)
			print_error("%s\n", err.text);
	}
	elf_end(elf);
	close(fd);
	return code;
}

int fixture_setup(void **state)
{
	char path[] = "/tmp/duet-report-test-XXXXXX", command[1000];
	int fd = mkstemp(path), code;

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "%s -target bpf -g -O2 -I%s/include -I%s -c %s/types.bpf.c -o %s", BPF_CLANG,
		 SOURCE_ROOT, TEST_DIR, TEST_DIR, path);
	assert_int_equal(system(command), 0);
	code = read_btf(path, (struct types **)state);
	unlink(path);
	return code;
}

int fixture_teardown(void **state)
{
	types_close(*state);
	return 0;
}

uint32_t fixture_struct(const struct types *types, const char *name)
{
	uint32_t id = types_find(types, BTF_KIND_STRUCT, name);

	assert_int_not_equal(id, 0);
	return id;
}

uint32_t fixture_typedef(const struct types *types, const char *name)
{
	uint32_t id = types_find(types, BTF_KIND_TYPEDEF, name);

	assert_int_not_equal(id, 0);
	return id;
}

void sink_open(struct sink *sink, struct report_options options)
{
	struct err err = { 0 };

	*sink = (struct sink){ .file = tmpfile() };
	assert_non_null(sink->file);
	options.out = sink->file;
	assert_int_equal(report_create(&options, &sink->report, &err), 0);
}

const char *sink_text(struct sink *sink)
{
	struct err err = { 0 };
	long size;

	assert_int_equal(report_finish(sink->report, &err), 0);
	size = lseek(fileno(sink->file), 0, SEEK_END);
	free(sink->text);
	sink->text = calloc(1, size + 1);
	assert_int_equal(pread(fileno(sink->file), sink->text, size, 0), size);
	assert_int_equal(ftruncate(fileno(sink->file), 0), 0);
	lseek(fileno(sink->file), 0, SEEK_SET);
	return sink->text;
}

void sink_close(struct sink *sink)
{
	report_destroy(sink->report);
	fclose(sink->file);
	free(sink->text);
}

const char *sink_print(struct sink *sink, const struct report_map *map, const char *options,
		       const struct report_counter *counters, size_t ncounters)
{
	struct report_view *view = NULL;
	struct err err = { 0 };

	if (report_view_compile(map, options, counters, ncounters, &view, &err)) {
		free(sink->text);
		sink->text = strdup(err.text);
		return sink->text;
	}
	assert_int_equal(report_map_print(sink->report, view, map, &err), 0);
	report_view_free(view);
	return sink_text(sink);
}
