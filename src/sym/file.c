// SPDX-License-Identifier: BSD-2-Clause
/* Symbols of ELF files, by libelf, which checks bounds. */
#include "sym/sym.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "obj/segments.h"

#define BUILD_ID_MAX 64
#define TWINS_MAX    64 /* symbols at one address that are compared */

struct sym_file {
	struct sym_file_symbol *symbols;
	size_t count, capacity;
	char **names; /* string tables that the names point into */
	size_t names_count, names_capacity;
	struct segments segments;
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_size;
};

static void close_elf(Elf **elf)
{
	elf_end(*elf);
}

void sym_file_close(struct sym_file *file)
{
	size_t i;

	if (!file)
		return;
	for (i = 0; i < file->names_count; i++)
		free(file->names[i]);
	free(file->names);
	free(file->symbols);
	segments_deinit(&file->segments);
	free(file);
}

/* A copy of string table @index, with a 0 byte behind it. NULL: damaged, or no memory. */
static const char *keep_names(struct sym_file *file, Elf *elf, size_t index, size_t *size)
{
	Elf_Scn *section = elf_getscn(elf, index);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	char **kept, *copy;

	if (!data || !data->d_buf || !data->d_size)
		return NULL;
	copy = malloc(data->d_size + 1);
	kept = copy ? array_grow(&file->names, &file->names_count, &file->names_capacity,
				 sizeof(*kept))
		    : NULL;
	if (!kept) {
		free(copy);
		return NULL;
	}
	memcpy(copy, data->d_buf, data->d_size);
	copy[data->d_size] = 0;
	*kept = copy;
	*size = data->d_size;
	return copy;
}

static bool is_wanted(const GElf_Sym *symbol)
{
	unsigned char type = GELF_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS && symbol->st_name &&
	       (type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC);
}

static int add_symbols(struct sym_file *file, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t size, names_size, i, count;
	const char *names;

	if (!data || !data->d_size || header->sh_type == SHT_NOBITS)
		return 0;
	size = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	names = keep_names(file, elf, header->sh_link, &names_size);
	if (!names || !size)
		return -EBADMSG;
	count = data->d_size / size;
	for (i = 1; i < count && i <= INT32_MAX; i++) {
		struct sym_file_symbol *added;
		GElf_Sym symbol;

		if (!gelf_getsym(data, i, &symbol))
			return -EBADMSG;
		if (!is_wanted(&symbol) || symbol.st_name >= names_size)
			continue;
		added = array_grow(&file->symbols, &file->count, &file->capacity, sizeof(*added));
		if (!added)
			return -ENOMEM;
		added->address = symbol.st_value;
		added->size = symbol.st_size;
		added->name = names + symbol.st_name;
		added->function = GELF_ST_TYPE(symbol.st_info) != STT_OBJECT;
		added->exported = header->sh_type == SHT_DYNSYM;
	}
	return 0;
}

static void read_build_id(struct sym_file *file, Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t at = 0, name, description;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &description)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp((char *)data->d_buf + name, "GNU", 4) || note.n_descsz > BUILD_ID_MAX)
			continue;
		file->build_id_size = note.n_descsz;
		memcpy(file->build_id, (char *)data->d_buf + description, note.n_descsz);
	}
}

/* Adds what @path holds; the segments only when @main, for a debug file has none of its own. */
static int read_elf(struct sym_file *file, const char *path, bool main)
{
	CLEANUP(close_fd)
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(close_elf)
	Elf *elf = NULL;
	Elf_Scn *section = NULL;
	int code = 0;

	if (fd < 0)
		return -errno;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	if (main)
		code = segments_read(elf, &file->segments);
	while (!code && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			return -EBADMSG;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			code = add_symbols(file, elf, section, &header);
		else if (header.sh_type == SHT_NOTE && main)
			read_build_id(file, section);
	}
	return code;
}

/* /usr/lib/debug/.build-id/ab/cdef....debug; that there is none is no error. */
static void read_debug_file(struct sym_file *file)
{
	CLEANUP(buf_deinit)
	struct buf path = { 0 };
	size_t i;

	if (file->build_id_size < 2)
		return;
	buf_puts(&path, "/usr/lib/debug/.build-id/");
	for (i = 0; i < file->build_id_size; i++)
		buf_printf(&path, "%02x%s", file->build_id[i], i ? "" : "/");
	if (!buf_puts(&path, ".debug"))
		read_elf(file, path.data, false);
}

/* Of several symbols at one address the last is found: functions, sized and exported ones. */
static int rank(const struct sym_file_symbol *symbol)
{
	return 4 * symbol->function + 2 * (symbol->size != 0) + symbol->exported;
}

static int by_address(const void *a, const void *b)
{
	const struct sym_file_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	return strcmp(x->name, y->name);
}

/* Sorts, and drops names that both tables hold. */
static void order_symbols(struct sym_file *file)
{
	size_t i, j, kept = 0;

	qsort(file->symbols, file->count, sizeof(file->symbols[0]), by_address);
	for (i = 0; i < file->count; i++) {
		const struct sym_file_symbol *symbol = &file->symbols[i];
		bool again = false;

		/* A better ranked twin follows at the same address. */
		for (j = i + 1; j < file->count && j < i + TWINS_MAX && !again &&
				file->symbols[j].address == symbol->address;
		     j++)
			again = !strcmp(file->symbols[j].name, symbol->name);
		if (!again)
			file->symbols[kept++] = *symbol;
	}
	file->count = kept;
}

int sym_file_open(const char *path, struct sym_file **ret, struct err *err)
{
	CLEANUP(sym_file_close_cleanup)
	struct sym_file *file = calloc(1, sizeof(*file));
	int code;

	if (!file)
		return err_nomem(err);
	code = read_elf(file, path, true);
	if (code)
		return err_set(err, code, "%s: %s", path,
			       code == -ENOEXEC   ? "no ELF file"
			       : code == -EBADMSG ? "damaged ELF file"
						  : strerror(-code));
	read_debug_file(file);
	if (file->count)
		order_symbols(file);
	*ret = take_pointer(file);
	return 0;
}

size_t sym_file_count(const struct sym_file *file)
{
	return file->count;
}

const struct sym_file_symbol *sym_file_at(const struct sym_file *file, size_t index)
{
	return &file->symbols[index];
}

/* How far back to look for a symbol that covers an address: aliases and nested objects. */
#define LOOK_BACK 16

const struct sym_file_symbol *sym_file_find_address(const struct sym_file *file, uint64_t address)
{
	const struct sym_file_symbol *unsized = NULL;
	size_t low = 0, high, i;

	for (high = file->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (file->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; i < LOOK_BACK && i < low; i++) {
		const struct sym_file_symbol *symbol = &file->symbols[low - 1 - i];

		if (address - symbol->address < symbol->size)
			return symbol;
		/* Hand-written assembly has no sizes: it reaches up to the next symbol. */
		if (!i && !symbol->size)
			unsized = symbol;
	}
	return unsized;
}

const struct sym_file_symbol *sym_file_find_name(const struct sym_file *file, const char *name)
{
	const struct sym_file_symbol *found = NULL;
	size_t i;

	for (i = 0; i < file->count; i++) {
		const struct sym_file_symbol *symbol = &file->symbols[i];

		if ((!found || rank(symbol) > rank(found)) && !strcmp(symbol->name, name))
			found = symbol;
	}
	return found;
}

int sym_file_address_of(const struct sym_file *file, uint64_t offset, uint64_t *ret)
{
	return segments_address_of(&file->segments, offset, ret);
}

int sym_file_offset_of(const struct sym_file *file, uint64_t address, uint64_t *ret)
{
	return segments_offset_of(&file->segments, address, ret);
}
