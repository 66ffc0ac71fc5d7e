// SPDX-License-Identifier: BSD-2-Clause
/* The names that a binary offers to probes: function symbols, and USDT probes as the notes of
 * <sys/sdt.h> tell them. For checks and "did you mean": attaching itself is libbpf's. */
#include "kern/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "base/reader.h"
#include "obj/segments.h"

#define STAPSDT_NOTE_TYPE 3

struct binary {
	int fd;
	Elf *elf;
};

static void binary_close(struct binary *binary)
{
	elf_end(binary->elf);
	close_fd(&binary->fd);
}

static int binary_open(struct binary *binary, const char *path, struct err *err)
{
	*binary = (struct binary){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (binary->fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	elf_version(EV_CURRENT);
	binary->elf = elf_begin(binary->fd, ELF_C_READ_MMAP, NULL);
	if (!binary->elf || elf_kind(binary->elf) != ELF_K_ELF)
		return err_set(err, -ENOEXEC, "%s: not an ELF file%s", path,
			       " (a script? name its interpreter's binary)");
	return 0;
}

/* The next section with symbols; NULL in *@section: begin. */
static bool next_table(struct binary *binary, Elf_Scn **section, GElf_Shdr *header)
{
	while ((*section = elf_nextscn(binary->elf, *section))) {
		if (gelf_getshdr(*section, header) &&
		    (header->sh_type == SHT_SYMTAB || header->sh_type == SHT_DYNSYM))
			return true;
	}
	return false;
}

/* The name of the next function that is defined here, from the symbol *@at on; NULL: no more. */
static const char *next_function(struct binary *binary, Elf_Scn *section, const GElf_Shdr *header,
				 size_t *at, GElf_Sym *symbol)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;

	while (data && *at < count && gelf_getsym(data, (*at)++, symbol)) {
		const char *name;

		if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC &&
		    GELF_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC)
			continue;
		if (symbol->st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(binary->elf, header->sh_link, symbol->st_name);
		if (name && name[0])
			return name;
	}
	return NULL;
}

int elfnames_symbols(const char *path, elfnames_fn fn, void *context, struct err *err)
{
	CLEANUP(binary_close)
	struct binary binary;
	int code = binary_open(&binary, path, err);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	if (code)
		return code;
	while (next_table(&binary, &section, &header)) {
		const char *name;
		size_t at = 0;

		while ((name = next_function(&binary, section, &header, &at, &symbol)))
			fn(context, NULL, name);
	}
	return 0;
}

/* Three addresses, then provider, name and arguments, each ended by a zero. */
static void list_note(const void *description, size_t size, size_t address_size, elfnames_fn fn,
		      void *context)
{
	const char *text = description;
	const char *provider = string_at(text, size, 3 * address_size);
	const char *name;

	if (!provider)
		return;
	name = string_at(text, size, (provider - text) + strlen(provider) + 1);
	if (name)
		fn(context, provider, name);
}

int elfnames_usdt(const char *path, elfnames_fn fn, void *context, struct err *err)
{
	CLEANUP(binary_close)
	struct binary binary;
	int code = binary_open(&binary, path, err);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (code)
		return code;
	while ((section = elf_nextscn(binary.elf, section))) {
		size_t at = 0, name, description;
		GElf_Nhdr note;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(section, NULL);
		while (data && (at = gelf_getnote(data, at, &note, &name, &description)) > 0) {
			if (note.n_type == STAPSDT_NOTE_TYPE && note.n_namesz == 8 &&
			    !memcmp((char *)data->d_buf + name, "stapsdt", 8))
				list_note((char *)data->d_buf + description, note.n_descsz,
					  gelf_getclass(binary.elf) == ELFCLASS32 ? 4 : 8, fn,
					  context);
		}
	}
	return 0;
}

/* ---- the code at a probe ------------------------------------------------------------------------ */
static bool find_function(struct binary *binary, Elf_Scn *section, const GElf_Shdr *header,
			  const char *function, GElf_Sym *ret)
{
	const char *name;
	size_t at = 0;

	/* The code of an indirect function is not what runs when it is called. */
	while ((name = next_function(binary, section, header, &at, ret)))
		if (GELF_ST_TYPE(ret->st_info) == STT_FUNC && !strcmp(name, function))
			return true;
	return false;
}

int elfnames_code_at(const char *path, const char *function, uint64_t offset, uint8_t *code,
		     struct err *err)
{
	CLEANUP(binary_close)
	struct binary binary;
	CLEANUP(segments_deinit)
	struct segments segments = { 0 };
	int result = binary_open(&binary, path, err);
	bool found = !function[0];
	uint64_t start = 0;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	if (result)
		return result;
	result = segments_read(binary.elf, &segments);
	if (result)
		return err_set(err, result, "%s: %s", path, strerror(-result));
	while (!found && next_table(&binary, &section, &header))
		found = find_function(&binary, section, &header, function, &symbol) &&
			!segments_offset_of(&segments, symbol.st_value, &start);
	if (!found)
		return err_set(err, -ENOENT, "%s: no function %s", path, function);
	if (pread(binary.fd, code, PROBED_BYTES, start + offset) != PROBED_BYTES)
		return err_set(err, -ENODATA, "%s: ends before the probe", path);
	return 0;
}
