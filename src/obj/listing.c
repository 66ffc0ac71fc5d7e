// SPDX-License-Identifier: BSD-2-Clause
/* Names for listings. */
#include <string.h>

#include "obj/object.h"

uint32_t obj_function_count(const struct obj *obj)
{
	return obj->nfunctions;
}

struct obj_function obj_function_at(const struct obj *obj, uint32_t index)
{
	const struct object_function *function = &obj->functions[index];

	return (struct obj_function){ .name = object_function_name(obj, index),
				      .section = function->section,
				      .offset = function->offset,
				      .size = function->size };
}

/* The variable that starts there, else "SECTION" plus the offset. */
static void name_of_data(const struct obj *obj, const struct object_target *target,
			 struct obj_reference *ret)
{
	for (uint32_t i = 1; i < obj->nsymbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];

		if (symbol->st_shndx == target->section && symbol->st_name &&
		    (int64_t)symbol->st_value == target->offset &&
		    ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT) {
			ret->name = object_symbol_name(obj, i);
			return;
		}
	}
	ret->name = obj->sections[target->section].name;
	ret->addend = target->offset;
}

bool obj_reference_at(const struct obj *obj, uint32_t section, uint64_t offset,
		      struct obj_reference *ret)
{
	const struct object_reloc *reloc = object_reloc_at(obj, section, offset);
	const struct bpf_insn *insn = object_insn(obj, section, offset);
	struct object_target target = { .section = section };
	uint32_t function;

	*ret = (struct obj_reference){ 0 };
	if (reloc)
		target = object_reloc_target(obj, section, reloc);
	else if (insn_is_call(insn) && insn->src_reg == BPF_PSEUDO_CALL)
		target.offset = (int64_t)offset + 8 + insn->imm * 8ll;
	else
		return false;
	if (!target.section) {
		ret->name = object_symbol_name(obj, target.symbol);
		ret->addend = insn_is_lddw(insn) ? insn->imm : 0;
		return ret->name[0];
	}
	if (target.section >= obj->nsections)
		return false;
	function = object_function_at(obj, target.section, target.offset);
	if (function != UINT32_MAX)
		ret->name = object_function_name(obj, function);
	else
		name_of_data(obj, &target, ret);
	return function != UINT32_MAX || reloc;
}
