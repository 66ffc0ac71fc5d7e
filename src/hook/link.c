// SPDX-License-Identifier: BSD-2-Clause
/* Final addresses for the symbolic references of the user half. */
#include "hook/soft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define NO_NATIVE UINT32_MAX

/* While linking: which native an extern or helper became. */
struct link {
	struct hook_half *half;
	uint32_t *externs; /* index in half->natives */
	struct err *err;
};

const char *hook_where(const struct hook_half *half, uint32_t insn, char *text, size_t size)
{
	const struct user_half *user = half->options.user;
	struct obj_line line;

	insn = hook_half_insn(half, insn);
	if (insn < user->ncode &&
	    obj_line_of(half->options.obj, user->origin[insn].section, user->origin[insn].offset,
			&line) &&
	    line.line)
		snprintf(text, size, "%s:%u", line.file, line.line);
	else
		snprintf(text, size, "instruction %u", insn);
	return text;
}

static struct vm_native *add_native(struct hook_half *half)
{
	return array_grow(&half->natives, &half->nnatives, &half->natives_capacity,
			  sizeof(*half->natives));
}

static int function_of_insn(const struct user_half *user, uint32_t insn)
{
	size_t i;

	for (i = 0; i < user->nfunctions; i++) {
		if (insn - user->functions[i].first < user->functions[i].count)
			return i;
	}
	return -1;
}

const struct hook_program *hook_program_of(const struct hook_half *half, uint32_t function)
{
	size_t i;

	for (i = 0; i < half->nprograms; i++) {
		if (half->program_function[i] == function)
			return &half->programs[i];
	}
	return NULL;
}

static int link_extern(struct link *link, const struct user_ref *ref, uint32_t *native)
{
	struct hook_half *half = link->half;
	const struct user_extern *external = &half->options.user->externs[ref->index];
	struct vm_native *row, resolved = { 0 };
	int code;

	if (link->externs[ref->index] == NO_NATIVE) {
		code = hook_resolve(half, external, &resolved, link->err);
		if (code)
			return code;
		row = add_native(half);
		if (!row)
			return err_nomem(link->err);
		*row = resolved;
		link->externs[ref->index] = half->nnatives - 1;
	}
	*native = link->externs[ref->index];
	return 0;
}

static int link_helper(struct link *link, const struct user_ref *ref, uint32_t *native)
{
	struct hook_half *half = link->half;
	int function = function_of_insn(half->options.user, ref->at);
	const struct hook_program *program = function < 0 ? NULL : hook_program_of(half, function);
	int32_t number = (int32_t)ref->index;
	const char *name = hook_helper_name(number);
	const struct hook_function *found;
	struct vm_native *row;
	bool is_lookup;
	size_t i;

	found = program && program->ubpf ? hook_ubpf_helper(number) : hook_helper(number);
	if (!found)
		return err_set(link->err, -EINVAL,
			       "helper %d%s%s%s has no meaning in the user half: it runs in duet's "
			       "process: call it in the kernel half and hand the value over in a "
			       "map or a global variable",
			       number, name ? " (bpf_" : "", name ?: "", name ? ")" : "");
	is_lookup = found == hook_helper(BPF_FUNC_map_lookup_elem);
	for (i = 0; i < half->nnatives; i++) {
		if (half->natives[i].with_context &&
		    half->natives[i].function == (void *)found->function)
			break;
	}
	if (i == half->nnatives) {
		row = add_native(half);
		if (!row)
			return err_nomem(link->err);
		*row = (struct vm_native){ .name = found->name,
					   .function = (void *)found->function,
					   .contract = found->contract,
					   .result = VM_U64,
					   .nargs = 5,
					   .intrinsic =
						   is_lookup ? VM_ARRAY_LOOKUP : VM_INTRINSIC_NONE,
					   .with_context = true };
	}
	*native = i;
	return 0;
}

/* The address that a reference stands for (function addresses of BPF code come from the vm). */
static int link_address(struct link *link, const struct user_ref *ref, uint64_t *address)
{
	struct hook_half *half = link->half;
	uint32_t native;
	int code;

	switch (ref->kind) {
	case USER_REF_DATA:
		*address = (uintptr_t)half->data[ref->index] + ref->addend;
		return 0;
	case USER_REF_MAP:
		*address = (uintptr_t)&half->maps[ref->index];
		return 0;
	case USER_REF_PROGRAM:
		*address = (uintptr_t)half->options.user->programs[ref->index].name;
		return 0;
	case USER_REF_EXTERN:
		if (half->options.user->externs[ref->index].weak &&
		    hook_resolve(half, &half->options.user->externs[ref->index],
				 &(struct vm_native){ 0 }, NULL)) {
			*address = 0;
			return 0;
		}
		code = link_extern(link, ref, &native);
		if (code)
			return code;
		if (half->natives[native].with_context)
			return err_set(link->err, -EOPNOTSUPP,
				       "the address of duet's function `%s` cannot be taken: wrap "
				       "it in a function of the script",
				       half->natives[native].name);
		*address = (uintptr_t)half->natives[native].function + ref->addend;
		return 0;
	default:
		return err_set(link->err, -EINVAL, "a reference of an unknown kind");
	}
}

static int link_insn(struct link *link, const struct user_ref *ref)
{
	struct bpf_insn *insn = &link->half->code[ref->at];
	uint32_t native = 0;
	uint64_t address = 0;
	int code;

	if (insn->code == (BPF_JMP | BPF_CALL)) {
		code = ref->kind == USER_REF_HELPER ? link_helper(link, ref, &native)
						    : link_extern(link, ref, &native);
		insn->src_reg = 0;
		insn->imm = native;
		return code;
	}
	if (ref->kind == USER_REF_FUNCTION) {
		insn->src_reg = BPF_PSEUDO_FUNC;
		insn[0].imm = ref->index;
		insn[1].imm = 0;
		return 0;
	}
	code = link_address(link, ref, &address);
	insn[0].src_reg = 0;
	insn[0].imm = (uint32_t)address;
	insn[1].imm = address >> 32;
	return code;
}

/* BPF_MAP_TYPE_... of a map, by the BTF of its declaration; 0: unknown. */
static uint32_t map_type(const struct types *types, uint32_t id)
{
	const struct btf_type *type = types_get(types, id = types_resolve(types, id));
	const struct btf_member *members = (const struct btf_member *)(type + 1);
	uint32_t i;

	if (types_kind(types, id) != BTF_KIND_STRUCT)
		return 0;
	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		uint32_t pointer = members[i].type, array;

		if (strcmp(types_string(types, members[i].name_off), "type") ||
		    types_kind(types, pointer) != BTF_KIND_PTR)
			continue;
		array = types_get(types, pointer)->type;
		if (types_kind(types, array) == BTF_KIND_ARRAY)
			return ((const struct btf_array *)(types_get(types, array) + 1))->nelems;
	}
	return 0;
}

static bool is_per_cpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/*
 * bpf_map_lookup_elem(&map, ...) as compilers write it: r1 = map, then straight to the call. What
 * gets past this is refused when it runs.
 */
static bool is_looked_up(const struct user_half *user, uint32_t at)
{
	const struct bpf_insn *code = user->code;
	uint32_t i;

	if (code[at].code != (BPF_LD | BPF_IMM | BPF_DW) || code[at].dst_reg != BPF_REG_1)
		return false;
	for (i = at + 2; i < user->ncode; i++) {
		uint8_t class = BPF_CLASS(code[i].code);

		if (class == BPF_JMP || class == BPF_JMP32)
			return code[i].code == (BPF_JMP | BPF_CALL) && !code[i].src_reg &&
			       code[i].imm == BPF_FUNC_map_lookup_elem;
		if (class != BPF_ST && class != BPF_STX && code[i].dst_reg == BPF_REG_1)
			return false;
	}
	return false;
}

static int check_lookup(struct link *link, const struct user_ref *ref)
{
	const struct user_half *user = link->half->options.user;
	const struct types *types = obj_types(link->half->options.obj);
	const struct user_map *map = &user->maps[ref->index];

	if (!types || !is_per_cpu(map_type(types, map->variable_type)) ||
	    !is_looked_up(user, ref->at))
		return 0;
	return err_set(link->err, -EINVAL,
		       "bpf_map_lookup_elem() of the per-CPU map `%s`: use "
		       "bpf_map_lookup_percpu_elem(map, key, cpu)",
		       map->name);
}

static int link_code(struct link *link)
{
	const struct user_half *user = link->half->options.user;
	char where[300];
	size_t i;
	int code;

	for (i = 0; i < user->nrefs; i++) {
		code = user->refs[i].kind == USER_REF_MAP ? check_lookup(link, &user->refs[i]) : 0;
		if (!code)
			code = link_insn(link, &user->refs[i]);
		if (code)
			return err_prepend(
				link->err, code, "%s",
				hook_where(link->half, user->refs[i].at, where, sizeof(where)));
	}
	return 0;
}

static int link_data(struct link *link)
{
	struct hook_half *half = link->half;
	const struct user_half *user = half->options.user;
	size_t i, k;

	for (i = 0; i < user->ndata; i++) {
		for (k = 0; k < user->data[i].nrefs; k++) {
			const struct user_ref *ref = &user->data[i].refs[k];
			uint64_t address = 0;
			int code = 0;

			if (ref->kind == USER_REF_FUNCTION)
				address = (uintptr_t)vm_function_address(half->vm, ref->index);
			else
				code = link_address(link, ref, &address);
			if (code)
				return err_prepend(link->err, code, "%s+%u", user->data[i].name,
						   ref->at);
			memcpy((char *)half->data[i] + ref->at, &address, sizeof(address));
		}
	}
	return 0;
}

int hook_create_vm(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	struct vm_options options = { .size = sizeof(options),
				      .context = half,
				      .checked = half->options.checked };
	struct vm_image image = { VM_IMAGE_SIZES,  half->code,       half->ncode,
				  half->functions, user->nfunctions, half->natives,
				  half->nnatives,  half->arrays,     half->narrays };
	char message[256], where[300];
	uint32_t bad = 0;
	int code;

	if (!user->ncode) /* a script without a user half */
		return 0;
	if (half->options.link_only)
		options.engine = VM_ENGINE_JIT;
	code = vm_create(&image, &options, &half->vm, message, sizeof(message), &bad);
	if (code == -ENOMEM)
		return err_nomem(err);
	if (code)
		return err_set(err, code, "%s: %s", hook_where(half, bad, where, sizeof(where)),
			       message);
	return 0;
}

static int describe_functions(struct hook_half *half)
{
	const struct user_half *user = half->options.user;
	size_t i;

	half->functions = calloc(user->nfunctions + 1, sizeof(*half->functions));
	half->code = malloc((user->ncode + 1) * sizeof(*half->code));
	if (!half->functions || !half->code)
		return -ENOMEM;
	if (user->ncode)
		memcpy(half->code, user->code, user->ncode * sizeof(*half->code));
	for (i = 0; i < user->nfunctions; i++)
		half->functions[i] = (struct vm_function){ .name = user->functions[i].name,
							   .first = user->functions[i].first,
							   .count = user->functions[i].count,
							   .nargs = 5 };
	return 0;
}

/* A function that returns 128 bits sets two registers, of which one survives. */
static int check_results(struct link *link)
{
	const struct user_half *user = link->half->options.user;
	const struct types *types = link->half->types;
	char where[300];
	size_t i;

	for (i = 0; types && i < user->nfunctions; i++) {
		const struct user_function *function = &user->functions[i];
		const struct btf_type *proto;
		uint32_t result;

		if (!function->type)
			continue;
		proto = types_get(types, types_get(types, function->type)->type);
		result = types_resolve(types, proto->type);
		if (types_kind(types, result) == BTF_KIND_INT && types_size(types, result) > 8)
			return err_set(
				link->err, -EOPNOTSUPP,
				"%s: %s() returns a value that does not fit a register: "
				"write to memory through a pointer instead",
				hook_where(link->half, function->first, where, sizeof(where)),
				function->name);
	}
	return 0;
}

int hook_link(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	CLEANUP(free_pointer) uint32_t *externs = malloc((user->nexterns + 1) * sizeof(*externs));
	struct link link = { .half = half, .externs = externs, .err = err };
	int code;

	if (!externs || describe_functions(half))
		return err_nomem(err);
	memset(externs, 0xff, (user->nexterns + 1) * sizeof(*externs));
	code = check_results(&link);
	if (!code)
		code = link_code(&link);
	if (!code)
		code = hook_widen(half, err);
	if (!code)
		code = hook_create_vm(half, err);
	if (!code)
		code = link_data(&link);
	if (!code)
		code = hook_regions_open(half, err);
	return code ? code : hook_widen_allow(half, err);
}
