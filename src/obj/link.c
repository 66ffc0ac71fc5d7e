// SPDX-License-Identifier: BSD-2-Clause
/* The user half's code: functions one after the other, calls linked, references by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "obj/splitter.h"

/* Compilers may fold an index into an address (`&array[i - 1]`): how far outside of its section an
 * address may lie before it must be a mistake. */
#define ADDRESS_SLACK 4096

struct linker {
	struct splitter *splitter;
	struct user_ref *refs; /* of one array */
	size_t nrefs, refs_capacity, externs_capacity;
	uint32_t section; /* what is being linked: a function's or a data section */
	uint32_t offset;
};

static uint32_t find_func_type(const struct splitter *splitter, uint32_t function)
{
	const struct obj *obj = splitter->obj;
	const struct object_function *of = &obj->functions[function];

	for (uint32_t i = 0; i < obj->nfunc_infos; i++)
		if (obj->func_infos[i].section == of->section &&
		    obj->func_infos[i].offset == of->offset)
			return obj->func_infos[i].type;
	return splitter->types ? types_find(splitter->types, BTF_KIND_FUNC,
					    object_function_name(obj, function))
			       : 0;
}

static int add_ref(struct linker *linker, enum user_ref_kind kind, uint32_t at, uint32_t index,
		   int64_t addend)
{
	struct user_ref *ref =
		array_grow(&linker->refs, &linker->nrefs, &linker->refs_capacity, sizeof(*ref));

	if (!ref)
		return err_nomem(linker->splitter->err);
	*ref = (struct user_ref){ kind, at, index, addend };
	return 0;
}

static int add_extern(struct linker *linker, uint32_t symbol, bool call)
{
	struct splitter *splitter = linker->splitter;
	struct user_half *user = splitter->user;
	const char *name = object_symbol_name(splitter->obj, symbol);
	struct user_extern *entry;
	uint32_t function, variable;

	if (!splitter->types || !name[0])
		return object_refuse(splitter->obj, splitter->err, "no BTF: compile it with -g");
	splitter->extern_index[symbol] = user->nexterns;
	entry = array_grow(&user->externs, &user->nexterns, &linker->externs_capacity,
			   sizeof(*entry));
	if (!entry)
		return err_nomem(splitter->err);
	entry->name = user_half_string(user, name);
	if (!entry->name)
		return err_nomem(splitter->err);
	entry->weak = ELF64_ST_BIND(splitter->obj->symbols[symbol].st_info) == STB_WEAK;
	function = types_find(splitter->types, BTF_KIND_FUNC, name);
	variable = types_find(splitter->types, BTF_KIND_VAR, name);
	entry->variable = !function && (variable || !call);
	if (function)
		entry->proto = types_get(splitter->types, function)->type;
	return 0;
}

static int refuse_here(const struct linker *linker, const char *what)
{
	return split_refuse(linker->splitter, linker->section, linker->offset, "user half: %s",
			    what);
}

/* An address, in a lddw or in data. */
static int link_address(struct linker *linker, uint32_t at, const struct object_target *target)
{
	struct splitter *splitter = linker->splitter;
	const struct obj *obj = splitter->obj;
	uint32_t function;
	int code;

	if (!target->section) {
		if (splitter->extern_index[target->symbol] == UINT32_MAX) {
			code = add_extern(linker, target->symbol, false);
			if (code)
				return code;
		}
		return add_ref(linker, USER_REF_EXTERN, at, splitter->extern_index[target->symbol],
			       0);
	}
	function = object_function_at(obj, target->section, target->offset);
	if (function != UINT32_MAX && splitter->function_index[function] != UINT32_MAX)
		return add_ref(linker, USER_REF_FUNCTION, at, splitter->function_index[function],
			       0);
	if (function != UINT32_MAX && splitter->program_index[function] != UINT32_MAX)
		return add_ref(linker, USER_REF_PROGRAM, at, splitter->program_index[function], 0);
	if (splitter->roles[target->section] == ROLE_MAPS) {
		for (uint32_t i = 1; i < obj->nsymbols; i++)
			if (splitter->map_index[i] != UINT32_MAX &&
			    obj->symbols[i].st_shndx == target->section &&
			    (int64_t)obj->symbols[i].st_value == target->offset)
				return add_ref(linker, USER_REF_MAP, at, splitter->map_index[i], 0);
		return refuse_here(linker, "the address of something inside a map's definition");
	}
	if (splitter->data_index[target->section] == UINT32_MAX)
		return refuse_here(linker, "the address of no data");
	if (target->offset < -ADDRESS_SLACK ||
	    target->offset > (int64_t)obj->headers[target->section].sh_size + ADDRESS_SLACK)
		return refuse_here(linker, "an address outside its section");
	return add_ref(linker, USER_REF_DATA, at, splitter->data_index[target->section],
		       target->offset);
}

static int link_local_call(struct linker *linker, uint32_t at, struct bpf_insn *insn,
			   const struct object_target *target)
{
	struct splitter *splitter = linker->splitter;
	uint32_t function = object_function_at(splitter->obj, target->section, target->offset);

	function = function == UINT32_MAX ? UINT32_MAX : splitter->function_index[function];
	if (function == UINT32_MAX)
		return refuse_here(linker, "a call of no function");
	insn->src_reg = BPF_PSEUDO_CALL;
	insn->imm = (int32_t)splitter->user->functions[function].first - (int32_t)(at + 1);
	return 0;
}

static int link_call(struct linker *linker, uint32_t at, struct bpf_insn *insn,
		     const struct object_reloc *reloc)
{
	struct splitter *splitter = linker->splitter;
	struct object_target target = { 0 };
	int code;

	if (!reloc && insn->src_reg == BPF_PSEUDO_CALL) {
		target.section = linker->section;
		target.offset = linker->offset + 8 + insn->imm * 8LL;
		return link_local_call(linker, at, insn, &target);
	}
	if (!reloc) {
		if (insn->src_reg || insn->imm <= 0)
			return refuse_here(linker, "a call of no function and no helper");
		return add_ref(linker, USER_REF_HELPER, at, insn->imm, 0);
	}
	target = object_reloc_target(splitter->obj, linker->section, reloc);
	if (target.section)
		return link_local_call(linker, at, insn, &target);
	if (splitter->extern_index[target.symbol] == UINT32_MAX) {
		code = add_extern(linker, target.symbol, true);
		if (code)
			return code;
	}
	insn->src_reg = 0;
	insn->imm = 0;
	return add_ref(linker, USER_REF_EXTERN, at, splitter->extern_index[target.symbol], 0);
}

/* Functions move, so a jump must stay inside its own. */
static bool jump_stays_inside(const struct bpf_insn *insn, uint32_t at, uint32_t first,
			      uint32_t count)
{
	uint8_t class = BPF_CLASS(insn->code), operation = BPF_OP(insn->code);
	int64_t target = at;

	if ((class != BPF_JMP && class != BPF_JMP32) || operation == BPF_CALL ||
	    operation == BPF_EXIT)
		return true;
	/* gotol keeps its distance in imm (RFC 9669, 4.3) */
	target += 1 + (class == BPF_JMP32 && operation == BPF_JA ? insn->imm : insn->off);
	return target >= first && target < (int64_t)first + count;
}

static int link_function(struct linker *linker, uint32_t function)
{
	struct splitter *splitter = linker->splitter;
	const struct obj *obj = splitter->obj;
	const struct object_function *of = &obj->functions[function];
	struct user_half *user = splitter->user;
	struct user_function *mine = &user->functions[splitter->function_index[function]];
	int code;

	mine->type = find_func_type(splitter, function);
	memcpy(user->code + mine->first, object_insn(obj, of->section, of->offset), of->size);
	for (uint32_t i = 0; i < mine->count; i++) {
		uint32_t at = mine->first + i;
		struct bpf_insn *insn = &user->code[at];
		const struct object_reloc *reloc;
		struct object_target target;

		linker->section = user->origin[at].section = of->section;
		linker->offset = user->origin[at].offset = of->offset + i * 8;
		reloc = object_reloc_at(obj, of->section, linker->offset);
		if (!jump_stays_inside(insn, at, mine->first, mine->count))
			return refuse_here(linker, "a jump out of its function");
		if (insn_is_call(insn)) {
			code = link_call(linker, at, insn, reloc);
			if (code)
				return code;
		}
		if (!insn_is_lddw(insn))
			continue;
		i++; /* the walk made sure that the other half is there */
		user->origin[at + 1] = user->origin[at];
		if (!reloc && insn->src_reg)
			return refuse_here(linker, "an address that no relocation explains");
		if (!reloc)
			continue;
		target = object_reloc_target(obj, of->section, reloc);
		insn[0].imm = insn[1].imm = 0;
		insn->src_reg = 0;
		code = link_address(linker, at, &target);
		if (code)
			return code;
	}
	return 0;
}

static int link_data(struct linker *linker, uint32_t section)
{
	const struct obj *obj = linker->splitter->obj;
	const struct object_section *of = &obj->sections[section];

	for (uint32_t i = 0; i < of->nrelocs; i++) {
		struct object_target target = object_reloc_target(obj, section, &of->relocs[i]);
		int code;

		linker->section = section;
		linker->offset = of->relocs[i].offset;
		code = link_address(linker, of->relocs[i].offset, &target);
		if (code)
			return code;
	}
	return 0;
}

static int link_all_data(struct splitter *splitter, size_t *externs_capacity)
{
	for (uint32_t i = 1; i < splitter->obj->nsections; i++) {
		struct linker linker = { .splitter = splitter,
					 .externs_capacity = *externs_capacity };
		int code;

		/* Without code nobody follows pointers. */
		if (splitter->data_index[i] == UINT32_MAX || !splitter->user_sections[i])
			continue;
		code = link_data(&linker, i);
		*externs_capacity = linker.externs_capacity;
		splitter->user->data[splitter->data_index[i]].refs = linker.refs;
		splitter->user->data[splitter->data_index[i]].nrefs = linker.nrefs;
		if (code)
			return code;
	}
	return 0;
}

int split_link(struct splitter *splitter)
{
	struct user_half *user = splitter->user;
	struct linker linker = { .splitter = splitter };
	int code = 0;

	user->code = calloc(user->ncode + 1, sizeof(*user->code));
	user->origin = calloc(user->ncode + 1, sizeof(*user->origin));
	if (!user->code || !user->origin)
		return err_nomem(splitter->err);
	for (uint32_t i = 0; !code && i < splitter->obj->nfunctions; i++)
		if (splitter->function_index[i] != UINT32_MAX)
			code = link_function(&linker, i);
	user->refs = linker.refs;
	user->nrefs = linker.nrefs;
	return code ? code : link_all_data(splitter, &linker.externs_capacity);
}
