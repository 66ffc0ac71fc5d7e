// SPDX-License-Identifier: BSD-2-Clause
/* Which functions and data does each half reach? What must not be reached is refused here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "obj/splitter.h"

static int walk_instruction(struct splitter *splitter, uint32_t function, uint32_t offset,
			    reference_fn visit)
{
	const struct obj *obj = splitter->obj;
	uint32_t section = obj->functions[function].section;
	const struct bpf_insn *insn = object_insn(obj, section, offset);
	const struct object_reloc *reloc = object_reloc_at(obj, section, offset);
	struct reference reference = { section, offset, function, insn_is_call(insn), { 0 } };

	if (reloc) {
		reference.target = object_reloc_target(obj, section, reloc);
	} else if (insn_is_call(insn) && insn->src_reg == BPF_PSEUDO_CALL) {
		reference.target.section = section;
		reference.target.offset = offset + 8 + insn->imm * 8LL;
	} else {
		return 0;
	}
	return visit(splitter, &reference);
}

int split_walk_function(struct splitter *splitter, uint32_t function, reference_fn visit)
{
	const struct object_function *of = &splitter->obj->functions[function];
	uint32_t end = of->offset + of->size;

	for (uint32_t offset = of->offset; offset < end; offset += 8) {
		const struct bpf_insn *insn = object_insn(splitter->obj, of->section, offset);
		int code = walk_instruction(splitter, function, offset, visit);

		if (code)
			return code;
		if (!insn_is_lddw(insn))
			continue;
		offset += 8;
		if (offset >= end || insn[1].code)
			return split_refuse(splitter, of->section, offset - 8,
					    "function `%s`: half an instruction",
					    object_function_name(splitter->obj, function));
	}
	return 0;
}

int split_walk_data(struct splitter *splitter, uint32_t section, reference_fn visit)
{
	const struct obj *obj = splitter->obj;
	const struct object_section *of = &obj->sections[section];

	for (uint32_t i = 0; i < of->nrelocs; i++) {
		struct reference reference = {
			section, of->relocs[i].offset, UINT32_MAX, false, { 0 }
		};
		int code;

		if (of->relocs[i].type != RELOC_ABS64 && of->relocs[i].type != RELOC_GNU_DATA_64)
			return object_refuse(obj, splitter->err,
					     "section %s: a pointer of less than 8 bytes at %#x, "
					     "or a relocation of "
					     "unknown type %u",
					     of->name, of->relocs[i].offset, of->relocs[i].type);
		reference.target = object_reloc_target(obj, section, &of->relocs[i]);
		code = visit(splitter, &reference);
		if (code)
			return code;
	}
	return 0;
}

/* The name of what is referred to, as its author knows it. */
static const char *target_name(const struct splitter *splitter, const struct object_target *target)
{
	const struct obj *obj = splitter->obj;
	uint32_t function;

	if (target->symbol && ELF64_ST_TYPE(obj->symbols[target->symbol].st_info) != STT_SECTION)
		return object_symbol_name(obj, target->symbol);
	function = target->section ? object_function_around(obj, target->section, target->offset)
				   : UINT32_MAX;
	if (function != UINT32_MAX)
		return object_function_name(obj, function);
	for (uint32_t i = 1; target->section && i < obj->nsymbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];

		if (symbol->st_shndx == target->section &&
		    ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
		    target->offset >= (int64_t)symbol->st_value &&
		    target->offset < (int64_t)(symbol->st_value + symbol->st_size))
			return object_symbol_name(obj, i);
	}
	return target->section ? obj->sections[target->section].name : "?";
}

/* "kernel program `p` calls `x` (through `f`, `g`), WHY" */
static int refuse_in_kernel(struct splitter *splitter, const struct reference *reference,
			    const char *why)
{
	const struct obj *obj = splitter->obj;
	uint32_t path[8], depth = 0, function = reference->function;
	char through[400] = "";
	size_t used = 0;

	while (splitter->callers[function] != UINT32_MAX) {
		if (depth < 8)
			path[depth++] = function;
		function = splitter->callers[function];
	}
	for (uint32_t i = depth; i-- > 0 && used < sizeof(through);)
		used += snprintf(through + used, sizeof(through) - used, "%s`%.60s`%s",
				 i == depth - 1 ? " (through " : ", ",
				 object_function_name(obj, path[i]), i ? "" : ")");
	return split_refuse(splitter, reference->section, reference->offset,
			    "kernel program `%s` %s `%s`%s, %s",
			    object_function_name(obj, function), reference->call ? "calls" : "uses",
			    target_name(splitter, &reference->target), through, why);
}

static int visit_kernel_text(struct splitter *splitter, const struct reference *reference)
{
	const struct obj *obj = splitter->obj;
	uint32_t function =
		object_function_at(obj, reference->target.section, reference->target.offset);

	if (strcmp(obj->sections[reference->target.section].name, ".text"))
		return refuse_in_kernel(
			splitter, reference,
			"which is not in section .text: the kernel half can call only those");
	if (function == UINT32_MAX)
		return refuse_in_kernel(splitter, reference,
					"which is not the start of a function");
	if (!splitter->kernel_functions[function]) {
		splitter->kernel_functions[function] = true;
		splitter->callers[function] = reference->function;
	}
	return 0;
}

static int visit_kernel(struct splitter *splitter, const struct reference *reference)
{
	const struct object_target *target = &reference->target;

	if (!target->section) {
		if (splitter->kernel_externs[target->symbol]) {
			splitter->kernel_symbols[target->symbol] = true;
			return 0;
		}
		return refuse_in_kernel(splitter, reference,
					"which exists only in the user half: send a record to a "
					"SEC(\"user/event/MAP\") function, or bpf_printk()");
	}
	splitter->kernel_symbols[target->symbol] = true;
	switch (splitter->roles[target->section]) {
	case ROLE_TEXT:
		return visit_kernel_text(splitter, reference);
	case ROLE_DATA:
		splitter->kernel_sections[target->section] = true;
		return 0;
	case ROLE_MAPS:
	case ROLE_KERNEL:
	case ROLE_KERNEL_DATA:
		return 0;
	case ROLE_USER:
	case ROLE_LUA:
	case ROLE_NOTE:
		return refuse_in_kernel(splitter, reference, "which exists only in the user half");
	default:
		return refuse_in_kernel(
			splitter, reference,
			"whose section the kernel half cannot have: name it .data.NAME, "
			".rodata.NAME or .bss.NAME");
	}
}

/* Visits what was reached, functions and data, until there is nothing new. */
static int reach_all(struct splitter *splitter, const bool *functions, const bool *sections,
		     reference_fn visit)
{
	const struct obj *obj = splitter->obj;
	CLEANUP(free_pointer)
	bool *visited = calloc(obj->nfunctions + obj->nsections, sizeof(bool));
	bool again = true;
	int code = 0;

	if (!visited)
		return err_nomem(splitter->err);
	while (again) {
		again = false;
		for (uint32_t i = 0; !code && i < obj->nfunctions; i++) {
			if (!functions[i] || visited[i])
				continue;
			visited[i] = again = true;
			code = split_walk_function(splitter, i, visit);
		}
		for (uint32_t i = 0; sections && !code && i < obj->nsections; i++) {
			if (!sections[i] || visited[obj->nfunctions + i])
				continue;
			visited[obj->nfunctions + i] = again = true;
			code = split_walk_data(splitter, i, visit);
		}
		if (code)
			return code;
	}
	return 0;
}

static int visit_map_value(struct splitter *splitter, const struct reference *reference)
{
	splitter->kernel_symbols[reference->target.symbol] = true;
	return 0;
}

int split_reach_kernel(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;

	for (uint32_t i = 0; i < obj->nfunctions; i++)
		if (splitter->roles[obj->functions[i].section] == ROLE_KERNEL)
			splitter->kernel_functions[i] = true;
	for (uint32_t i = 1; i < obj->nsections; i++) {
		/* Maps inside maps are the kernel's: nobody else fills them in. */
		int code = splitter->roles[i] == ROLE_MAPS
				   ? split_walk_data(splitter, i, visit_map_value)
				   : 0;

		if (code)
			return code;
	}
	return reach_all(splitter, splitter->kernel_functions, NULL, visit_kernel);
}

static int refuse_in_user(struct splitter *splitter, const struct reference *reference,
			  const char *verb, const char *what)
{
	const char *from = reference->function != UINT32_MAX
				   ? object_function_name(splitter->obj, reference->function)
				   : splitter->obj->sections[reference->section].name;

	return split_refuse(splitter, reference->section, reference->offset,
			    "user half: `%s` %s `%s`, %s", from, verb,
			    target_name(splitter, &reference->target), what);
}

static int visit_user(struct splitter *splitter, const struct reference *reference)
{
	const struct object_target *target = &reference->target;
	const char *verb = reference->call ? "calls" : "uses";
	uint32_t function;

	if (!target->section)
		return splitter->kernel_externs[target->symbol]
			       ? refuse_in_user(
					 splitter, reference, verb,
					 "which exists only in the kernel half (.ksyms, .kconfig)")
			       : 0;
	function = object_function_at(splitter->obj, target->section, target->offset);
	switch (splitter->roles[target->section]) {
	case ROLE_KERNEL:
		if (reference->call)
			return refuse_in_user(splitter, reference, verb,
					      "which is a kernel program: use probe_run()");
		return function == UINT32_MAX
			       ? refuse_in_user(splitter, reference, verb, "at no function's start")
			       : 0;
	case ROLE_TEXT:
	case ROLE_USER:
		if (function == UINT32_MAX)
			return refuse_in_user(splitter, reference, verb, "at no function's start");
		splitter->user_functions[function] = true;
		return 0;
	case ROLE_MAPS:
	case ROLE_NONE:
		break;
	default:
		if (reference->call)
			break;
		splitter->user_sections[target->section] = true;
		return 0;
	}
	if (splitter->roles[target->section] == ROLE_MAPS && !reference->call)
		return 0;
	return refuse_in_user(splitter, reference, verb, "which is no code and no data");
}

int split_reach_user(struct splitter *splitter)
{
	const struct obj *obj = splitter->obj;

	if (!splitter->has_user)
		return 0;
	for (uint32_t i = 0; i < obj->nfunctions; i++)
		if (splitter->roles[obj->functions[i].section] == ROLE_USER)
			splitter->user_functions[i] = true;
	for (uint32_t i = 1; i < obj->nsections; i++)
		if (splitter->roles[i] == ROLE_DATA && obj->headers[i].sh_size)
			splitter->user_sections[i] = true;
	return reach_all(splitter, splitter->user_functions, splitter->user_sections, visit_user);
}
