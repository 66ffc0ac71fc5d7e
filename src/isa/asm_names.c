// SPDX-License-Identifier: BSD-2-Clause
/* Labels, functions and other names, once all of the text is read. */
#include "isa/asm_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"

struct isa_symbol *asm_find_symbol(struct assembler *as, struct asm_name name)
{
	for (size_t i = 0; i < as->program.nsymbols; i++) {
		if (!asm_compare_names(asm_name_of(as->program.symbols[i].name), name))
			return &as->program.symbols[i];
	}
	return NULL;
}

struct isa_symbol *asm_add_symbol(struct assembler *as, struct asm_name name)
{
	struct isa_symbol *symbol = array_grow(&as->program.symbols, &as->program.nsymbols,
					       &as->symbols_capacity, sizeof(*symbol));

	if (symbol)
		symbol->name = asm_own(as, name.at, name.size);
	return symbol && symbol->name ? symbol : NULL;
}

static int by_label(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	int order = asm_compare_names(x->name, y->name);

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return order ?: (x->line > y->line) - (x->line < y->line);
}

static int by_function_name(const void *a, const void *b)
{
	const struct isa_function *x = *(void *const *)a, *y = *(void *const *)b;

	return strcmp(x->name, y->name) ?: (x->line > y->line) - (x->line < y->line);
}

static const struct isa_function *find_function(const struct assembler *as, struct asm_name name)
{
	size_t low = 0, high = as->program.nfunctions;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = asm_compare_names(asm_name_of(as->by_name[middle]->name), name);

		if (!order)
			return as->by_name[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int sort_names(struct assembler *as)
{
	struct isa_program *program = &as->program;
	size_t i;

	as->by_name = calloc(program->nfunctions + 1, sizeof(*as->by_name));
	if (!as->by_name)
		return err_nomem(as->err);
	for (i = 0; i < program->nfunctions; i++)
		as->by_name[i] = &program->functions[i];
	qsort(as->by_name, program->nfunctions, sizeof(*as->by_name), by_function_name);
	for (i = 1; i < program->nfunctions; i++) {
		if (!strcmp(as->by_name[i]->name, as->by_name[i - 1]->name))
			return err_set(as->err, -EINVAL, "%u:1: function `%s` is there already",
				       as->by_name[i]->line, as->by_name[i]->name);
	}
	for (i = 0; i < program->nsymbols; i++) {
		const struct isa_function *same =
			find_function(as, asm_name_of(program->symbols[i].name));

		if (same)
			return err_set(as->err, -EINVAL, "%u:1: `%s` is there already: function",
				       same->line, same->name);
	}
	if (as->nlabels)
		qsort(as->labels, as->nlabels, sizeof(*as->labels), by_label);
	for (i = 1; i < as->nlabels; i++) {
		const struct label *a = &as->labels[i - 1], *b = &as->labels[i];

		if (a->function == b->function && !asm_compare_names(a->name, b->name))
			return err_set(as->err, -EINVAL,
				       "%u:1: label `%.*s` is there already, in line %u", b->line,
				       (int)b->name.size, b->name.at, a->line);
	}
	return 0;
}

static const struct label *find_label(const struct assembler *as, const struct fixup *fixup)
{
	size_t low = 0, high = as->nlabels;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct label *label = &as->labels[middle];
		int order = label->function != fixup->function
				    ? (label->function < fixup->function ? -1 : 1)
				    : asm_compare_names(label->name, fixup->name);

		if (!order)
			return label;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int refuse_fixup(struct assembler *as, const struct fixup *fixup, const char *why)
{
	return err_set(as->err, -EINVAL, "%u:%u: `%.*s`: %s", fixup->line, fixup->column,
		       (int)fixup->name.size, fixup->name.at, why);
}

static int no_such_label(struct assembler *as, const struct fixup *fixup)
{
	struct nearest nearest;
	char wanted[128], near[300];

	snprintf(wanted, sizeof(wanted), "%.*s", (int)fixup->name.size, fixup->name.at);
	nearest_init(&nearest, wanted);
	for (size_t i = 0; i < as->nlabels; i++) {
		char name[128];

		snprintf(name, sizeof(name), "%.*s", (int)as->labels[i].name.size,
			 as->labels[i].name.at);
		if (as->labels[i].function == fixup->function)
			nearest_offer(&nearest, name);
	}
	nearest_text(&nearest, near, sizeof(near));
	refuse_fixup(as, fixup, "no such label in this function");
	return near[0] ? err_hint(as->err, -EINVAL, "did you mean %s?", near) : -EINVAL;
}

static int fix_jump(struct assembler *as, const struct fixup *fixup)
{
	const struct isa_program *program = &as->program;
	const struct label *label = find_label(as, fixup);
	struct bpf_insn *insn = &program->code[fixup->slot];
	int64_t distance;

	if (!label)
		return no_such_label(as, fixup);
	if (label->slot ==
	    program->functions[label->function].first + program->functions[label->function].count)
		return refuse_fixup(as, fixup, "no instruction follows this label");
	distance = (int64_t)label->slot - fixup->slot - 1;
	if (fixup->refers == ASM_REFERS_IMM) {
		insn->imm = (int32_t)distance;
		return 0;
	}
	if (distance != (int16_t)distance)
		return refuse_fixup(as, fixup,
				    "more than 32767 instructions away: gotol goes "
				    "further");
	insn->off = (int16_t)distance;
	return 0;
}

static int fix_symbol(struct assembler *as, const struct fixup *fixup)
{
	struct isa_program *program = &as->program;
	struct isa_symbol *symbol =
		asm_find_symbol(as, fixup->name) ?: asm_add_symbol(as, fixup->name);
	struct isa_reference *reference =
		symbol ? array_grow(&program->references, &program->nreferences,
				    &as->references_capacity, sizeof(*reference))
		       : NULL;

	if (!reference)
		return err_nomem(as->err);
	if (fixup->refers == ASM_REFERS_CALL && symbol->size)
		return refuse_fixup(as, fixup, "is no function");
	*reference = (struct isa_reference){ .insn = fixup->slot,
					     .symbol = symbol - program->symbols,
					     .addend = fixup->addend };
	return 0;
}

static int fix(struct assembler *as, const struct fixup *fixup)
{
	const struct isa_function *function;
	struct bpf_insn *insn = &as->program.code[fixup->slot];

	if (fixup->refers == ASM_REFERS_OFF || fixup->refers == ASM_REFERS_IMM)
		return fix_jump(as, fixup);
	function = find_function(as, fixup->name);
	if (!function)
		return fix_symbol(as, fixup);
	if (fixup->refers == ASM_REFERS_CALL) {
		insn->src_reg = BPF_PSEUDO_CALL;
		insn->imm = (int32_t)((int64_t)function->first - fixup->slot - 1);
		return 0;
	}
	if (fixup->addend)
		return refuse_fixup(as, fixup, "is a function: nothing can be added to it");
	insn->src_reg = BPF_PSEUDO_FUNC;
	insn->imm = (int32_t)(function - as->program.functions);
	return 0;
}

int asm_resolve(struct assembler *as)
{
	int rc = sort_names(as);

	for (size_t i = 0; i < as->nfixups && !rc; i++)
		rc = fix(as, &as->fixups[i]);
	return rc;
}
