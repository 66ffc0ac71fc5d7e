// SPDX-License-Identifier: BSD-2-Clause
/* Kernel symbols, as /proc/kallsyms lists them. */
#include "sym/sym.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct sym_kernel {
	char *path;
	bool tried;
	bool hidden;
	struct buf text; /* names point into it */
	struct sym_kernel_symbol *symbols;
	size_t count, capacity;
	uint32_t *by_name; /* indices, built at the first question for a name */
};

int sym_kernel_open(const char *path, struct sym_kernel **ret, struct err *err)
{
	struct sym_kernel *kernel = calloc(1, sizeof(*kernel));

	if (kernel)
		kernel->path = strdup(path ? path : "/proc/kallsyms");
	if (!kernel || !kernel->path) {
		sym_kernel_close(kernel);
		return err_nomem(err);
	}
	*ret = kernel;
	return 0;
}

void sym_kernel_close(struct sym_kernel *kernel)
{
	if (!kernel)
		return;
	buf_deinit(&kernel->text);
	free(kernel->symbols);
	free(kernel->by_name);
	free(kernel->path);
	free(kernel);
}

/* "ffffffff81000000 T _stext" or "... t name\t[module]", cut in place. False: not such a line. */
static bool parse_line(char *line, struct sym_kernel_symbol *symbol)
{
	char *end, *name, *module;

	symbol->address = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return false;
	symbol->type = end[1];
	name = end + 3;
	module = strpbrk(name, " \t");
	symbol->name = name;
	symbol->module = "";
	if (!module)
		return true;
	*module++ = 0;
	module += strspn(module, " \t[");
	module[strcspn(module, "]")] = 0;
	symbol->module = module;
	return true;
}

/* Of several names at one address the last is found, so the best comes last: global code. */
static int type_rank(char type)
{
	bool code = type == 't' || type == 'T';

	return 2 * code + (isupper((unsigned char)type) != 0);
}

static int by_address(const void *a, const void *b)
{
	const struct sym_kernel_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->type != y->type && type_rank(x->type) != type_rank(y->type))
		return type_rank(x->type) - type_rank(y->type);
	/* The order of the file: the memory of the names is in it. */
	return x->name < y->name ? -1 : x->name > y->name;
}

static int parse_symbols(struct sym_kernel *kernel)
{
	char *line = kernel->text.data, *next;
	bool sorted = true;

	kernel->hidden = true;
	for (; line && *line; line = next) {
		struct sym_kernel_symbol symbol, *added;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (!parse_line(line, &symbol))
			continue;
		added = array_grow(&kernel->symbols, &kernel->count, &kernel->capacity,
				   sizeof(*added));
		if (!added)
			return -ENOMEM;
		*added = symbol;
		kernel->hidden &= !symbol.address;
		sorted &= kernel->count < 2 || by_address(added - 1, added) <= 0;
	}
	if (!sorted)
		qsort(kernel->symbols, kernel->count, sizeof(kernel->symbols[0]), by_address);
	return 0;
}

int sym_kernel_load(struct sym_kernel *kernel, struct err *err)
{
	int code;

	if (kernel->count)
		return 0;
	if (kernel->tried)
		return err_set(err, -ENOENT, "%s: no kernel symbols", kernel->path);
	kernel->tried = true;
	code = buf_read_file(&kernel->text, kernel->path, err);
	if (!code)
		code = parse_symbols(kernel);
	if (code == -ENOMEM)
		return err_nomem(err);
	if (!code && !kernel->count)
		code = err_set(err, -ENOENT, "%s: no kernel symbols", kernel->path);
	return code;
}

size_t sym_kernel_count(struct sym_kernel *kernel)
{
	sym_kernel_load(kernel, NULL);
	return kernel->count;
}

const struct sym_kernel_symbol *sym_kernel_at(struct sym_kernel *kernel, size_t index)
{
	return &kernel->symbols[index];
}

bool sym_kernel_hidden(struct sym_kernel *kernel)
{
	sym_kernel_load(kernel, NULL);
	return kernel->hidden;
}

int sym_kernel_find_address(struct sym_kernel *kernel, uint64_t address, struct sym_place *ret)
{
	size_t low = 0, high;

	sym_kernel_load(kernel, NULL);
	if (kernel->hidden)
		return -ENOENT;
	/* The number of symbols at or in front of the address. */
	for (high = kernel->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (kernel->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Absolute symbols (per-CPU offsets on old kernels) are at small addresses: none of code. */
	if (!low || kernel->symbols[low - 1].address < 1ULL << 32)
		return -ENOENT;
	ret->name = kernel->symbols[low - 1].name;
	ret->module = kernel->symbols[low - 1].module;
	ret->offset = address - kernel->symbols[low - 1].address;
	return 0;
}

static int by_symbol_name(const void *a, const void *b, void *context)
{
	const struct sym_kernel_symbol *symbols = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(symbols[x].name, symbols[y].name);

	return order ? order : (x > y) - (x < y);
}

static int index_names(struct sym_kernel *kernel)
{
	size_t i;

	if (kernel->by_name)
		return 0;
	kernel->by_name = calloc(kernel->count, sizeof(kernel->by_name[0]));
	if (!kernel->by_name)
		return -ENOMEM;
	for (i = 0; i < kernel->count; i++)
		kernel->by_name[i] = i;
	qsort_r(kernel->by_name, kernel->count, sizeof(kernel->by_name[0]), by_symbol_name,
		kernel->symbols);
	return 0;
}

size_t sym_kernel_find_name(struct sym_kernel *kernel, const char *name,
			    const struct sym_kernel_symbol **ret)
{
	size_t low = 0, high, end;

	if (sym_kernel_load(kernel, NULL) || index_names(kernel))
		return 0;
	for (high = kernel->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(kernel->symbols[kernel->by_name[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < kernel->count; end++) {
		if (strcmp(kernel->symbols[kernel->by_name[end]].name, name))
			break;
	}
	if (end > low && ret)
		*ret = &kernel->symbols[kernel->by_name[low]];
	return end - low;
}
