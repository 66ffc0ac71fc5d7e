// SPDX-License-Identifier: BSD-2-Clause
#include "sym/sym.h"

#include <stdio.h>
#include <stdlib.h>

#include "sym/internal.h"

int sym_open(struct sym **ret, struct err *err)
{
	struct sym *sym = calloc(1, sizeof(*sym));
	int code;

	if (!sym)
		return err_nomem(err);
	code = sym_kernel_open(NULL, &sym->kernel, err);
	if (code) {
		free(sym);
		return code;
	}
	*ret = sym;
	return 0;
}

void sym_close(struct sym *sym)
{
	size_t i;

	if (!sym)
		return;
	sym_kernel_close(sym->kernel);
	for (i = 0; i < sym->process_count; i++)
		sym_process_free(sym->processes[i]);
	free(sym->processes);
	sym_files_free(sym);
	sym_cgroups_free(sym);
	free(sym);
}

struct sym_kernel *sym_kernel_of(struct sym *sym)
{
	return sym->kernel;
}

const char *sym_place_text(const struct sym_place *place, char *text, size_t size)
{
	unsigned long long offset = place->offset;

	if (!place->name)
		snprintf(text, size, "[%s]+%#llx", place->module, offset);
	else if (*place->module && offset)
		snprintf(text, size, "%s+%#llx [%s]", place->name, offset, place->module);
	else if (*place->module)
		snprintf(text, size, "%s [%s]", place->name, place->module);
	else if (offset)
		snprintf(text, size, "%s+%#llx", place->name, offset);
	else
		snprintf(text, size, "%s", place->name);
	return text;
}
