// SPDX-License-Identifier: BSD-2-Clause
/* From the name of an undefined symbol to a C function and how to call it. */
#include "hook/soft.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <string.h>

#include "base/nearest.h"

/* Reading order of `duet list functions`. */
static const struct {
	const char *theme;
	const struct hook_function *functions;
} themes[] = {
	{ "reports", hook_functions_reports }, { "text", hook_functions_text },
	{ "maps", hook_functions_maps },       { "control", hook_functions_control },
	{ "numbers", hook_functions_math },    { "memory", hook_functions_memory },
	{ "compilers", hook_functions_soft },  { "compilers", hook_functions_wide },
};

void hook_list_functions(hook_function_fn fn, void *context)
{
	const struct hook_function *row;
	size_t i;

	for (i = 0; i < sizeof(themes) / sizeof(themes[0]); i++) {
		for (row = themes[i].functions; row->name; row++)
			fn(context, row->name, themes[i].theme);
	}
}

void hook_list_safe_functions(hook_function_fn fn, void *context)
{
	const struct hook_function *row;

	for (row = hook_functions_checked; row->name; row++)
		fn(context, row->name, "the C library, checked");
	hook_contract_list(fn, context);
}

static const struct hook_function *find_own(const struct hook_half *half, const char *name)
{
	const struct hook_function *row = hook_functions_checked;
	size_t i;

	for (; half->options.checked && row->name; row++) {
		if (!strcmp(row->name, name))
			return row;
	}

	for (i = 0; i < sizeof(themes) / sizeof(themes[0]); i++) {
		for (row = themes[i].functions; row->name; row++) {
			if (!strcmp(row->name, name))
				return row;
		}
	}
	return NULL;
}

/* Calls that would pull the ground from under duet. */
static const struct {
	const char *name, *instead;
} refused[] = {
	{ "exit", "duet_stop(status)" },
	{ "_exit", "duet_stop(status)" },
	{ "quick_exit", "duet_stop(status)" },
	{ "fork", "system() or popen()" },
	{ "vfork", "system() or popen()" },
	{ "longjmp", "return values" },
	{ "siglongjmp", "return values" },
	{ "setjmp", "return values" },
	{ "sigaction", "SEC(\"user/signal/NAME\")" },
	{ "signal", "SEC(\"user/signal/NAME\")" },
};

static int integer_class(const struct types *types, uint32_t id, enum vm_class *ret)
{
	const struct btf_type *type = types_get(types, id);
	uint32_t encoding = *(const uint32_t *)(type + 1);
	bool is_signed = BTF_INT_ENCODING(encoding) & BTF_INT_SIGNED;

	switch (type->size) {
	case 1:
		*ret = is_signed ? VM_S8 : VM_U8;
		return 0;
	case 2:
		*ret = is_signed ? VM_S16 : VM_U16;
		return 0;
	case 4:
		*ret = is_signed ? VM_S32 : VM_U32;
		return 0;
	case 8:
		*ret = is_signed ? VM_S64 : VM_U64;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int class_of(const struct types *types, uint32_t id, enum vm_class *ret)
{
	const struct btf_type *type;

	id = types_resolve(types, id);
	if (!id) {
		*ret = VM_VOID;
		return 0;
	}
	type = types_get(types, id);
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
		return integer_class(types, id, ret);
	case BTF_KIND_ENUM:
		*ret = VM_S32;
		return type->size == 4 ? 0 : -EOPNOTSUPP;
	case BTF_KIND_PTR:
	case BTF_KIND_ARRAY:
		*ret = VM_POINTER;
		return 0;
	case BTF_KIND_FLOAT:
		*ret = type->size == 4 ? VM_FLOAT : VM_DOUBLE;
		return type->size == 4 || type->size == 8 ? 0 : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

static int describe(const struct types *types, uint32_t proto_id, struct vm_native *native,
		    struct err *err)
{
	const struct btf_type *proto = types_get(types, proto_id);
	const struct btf_param *params = (const struct btf_param *)(proto + 1);
	uint32_t count = BTF_INFO_VLEN(proto->info), i;

	if (class_of(types, proto->type, &native->result))
		return err_set(err, -EOPNOTSUPP,
			       "%s() returns a value that does not fit a register: write to "
			       "memory through a pointer instead",
			       native->name);
	for (i = 0; i < count; i++) {
		if (i + 1 == count && !params[i].type && !params[i].name_off) {
			/* `...`: whatever follows travels as integers */
			for (; i < VM_MAX_ARGUMENTS; i++)
				native->args[i] = VM_U64;
			native->nargs = VM_MAX_ARGUMENTS;
			return 0;
		}
		if (i == VM_MAX_ARGUMENTS)
			return err_set(err, -EOPNOTSUPP, "%s() takes more than %d arguments",
				       native->name, VM_MAX_ARGUMENTS);
		if (class_of(types, params[i].type, &native->args[i]))
			return err_set(err, -EOPNOTSUPP,
				       "%s(): argument %u is a structure or wider than 8 bytes: "
				       "hand over a pointer",
				       native->name, i + 1);
	}
	native->nargs = count;
	return 0;
}

static int no_such_function(const char *name, struct err *err)
{
	const struct hook_function *row;
	struct nearest nearest;
	char near[256];
	size_t i;

	nearest_init(&nearest, name);
	for (i = 0; i < sizeof(themes) / sizeof(themes[0]); i++) {
		for (row = themes[i].functions; row->name; row++)
			nearest_offer(&nearest, row->name);
	}
	nearest_text(&nearest, near, sizeof(near));
	err_set(err, -ENOENT,
		"`%s` is neither a function of duet nor of this machine's C library (glibc %s)",
		name, gnu_get_libc_version());
	if (near[0])
		return err_hint(err, -ENOENT, "did you mean %s?", near);
	return err_hint(err, -ENOENT, "see `duet list functions`");
}

/* A variable of the C library. */
static int check_variable(const struct hook_half *half, const char *name, struct err *err)
{
	if (!half->options.checked || !strcmp(name, "stdin") || !strcmp(name, "stderr"))
		return 0;
	return err_set(err, -EPERM,
		       "`%s` is the C library's: in checked mode scripts may use its stdin, stdout "
		       "and stderr only: run without --checked",
		       name);
}

int hook_resolve(struct hook_half *half, const struct user_extern *external,
		 struct vm_native *native, struct err *err)
{
	const struct hook_function *own = find_own(half, external->name);
	size_t i;
	int code;

	native->name = external->name;
	if (own) {
		native->function = (void *)own->function;
		native->result = VM_U64;
		native->nargs = VM_MAX_ARGUMENTS;
		native->with_context = true;
		native->contract = own->contract;
		native->intrinsic = own->intrinsic;
		return 0;
	}
	if (!strcmp(external->name, "stdout")) {
		native->function = &half->text;
		return 0;
	}
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (!strcmp(refused[i].name, external->name))
			return err_set(err, -EOPNOTSUPP,
				       "%s() would end duet without a report: "
				       "use %s",
				       external->name, refused[i].instead);
	}
	native->function = dlsym(RTLD_DEFAULT, external->name);
	if (!native->function)
		return no_such_function(external->name, err);
	native->foreign = true;
	if (external->variable)
		return check_variable(half, external->name, err);
	if (!external->proto || !half->types)
		return err_set(err, -EINVAL,
			       "%s() has no prototype in the object's BTF: declare it and compile "
			       "with -g",
			       external->name);
	code = describe(half->types, external->proto, native, err);
	return code || !half->options.checked ? code : hook_contract_find(native, err);
}
