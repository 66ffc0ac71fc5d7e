// SPDX-License-Identifier: BSD-2-Clause
#include "cli/signature.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* "const struct file *", "unsigned int"; deep declarators (function pointers, arrays) as void *. */
static void format_type(const struct types *types, uint32_t id, char *text, size_t size)
{
	const struct btf_type *type = types_get(types, id);
	char inner[200];

	if (!type) {
		snprintf(text, size, "void");
		return;
	}
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
		format_type(types, type->type, inner, sizeof(inner));
		snprintf(text, size, "%s%s", inner, inner[strlen(inner) - 1] == '*' ? "*" : " *");
		break;
	case BTF_KIND_CONST:
		format_type(types, type->type, inner, sizeof(inner));
		/* const of a pointer says nothing to the caller */
		snprintf(text, size, "%s%s", inner[strlen(inner) - 1] == '*' ? "" : "const ",
			 inner);
		break;
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		format_type(types, type->type, text, size);
		break;
	case BTF_KIND_STRUCT:
		snprintf(text, size, "struct %s", types_name(types, id));
		break;
	case BTF_KIND_UNION:
		snprintf(text, size, "union %s", types_name(types, id));
		break;
	case BTF_KIND_FWD:
		snprintf(text, size, "struct %s", types_name(types, id));
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		snprintf(text, size, "enum %s", types_name(types, id));
		break;
	case BTF_KIND_FUNC_PROTO:
	case BTF_KIND_ARRAY:
		snprintf(text, size, "void");
		break;
	default:
		snprintf(text, size, "%s", types_name(types, id));
	}
}

void cli_print_signature(const struct types *types, const char *kind, const char *name,
			 uint32_t proto)
{
	const struct btf_type *type = types_get(types, proto);
	const struct btf_param *params = (const struct btf_param *)(type + 1);
	uint32_t count = BTF_INFO_VLEN(type->info), i;
	bool raw = !strcmp(kind, "raw_tp");
	char text[256];

	/* The first argument of a raw tracepoint's prototype is the tracer's own. */
	printf("SEC(\"%s/%s\")\nint %s(%s", raw ? "tp_btf" : kind, name,
	       raw ? "BPF_PROG" : "BPF_KPROBE", name);
	for (i = raw; i < count; i++) {
		if (!params[i].type) {
			printf(", ...");
			break;
		}
		format_type(types, params[i].type, text, sizeof(text));
		printf(", %s%s%s", text, text[strlen(text) - 1] == '*' ? "" : " ",
		       params[i].name_off ? types_string(types, params[i].name_off) : "arg");
		if (!params[i].name_off)
			printf("%u", i);
	}
	printf(")\n");
	if (!raw) {
		format_type(types, type->type, text, sizeof(text));
		printf("SEC(\"kretprobe/%s\")\nint BPF_KRETPROBE(%s_return%s%s%s)\n", name, name,
		       strcmp(text, "void") ? ", " : "", strcmp(text, "void") ? text : "",
		       strcmp(text, "void") ? " result" : "");
	}
	printf("\n");
}
