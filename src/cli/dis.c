// SPDX-License-Identifier: BSD-2-Clause
/* duet dis */
#include "cli/cli.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <duet/vm.h>

#include "base/cleanup.h"
#include "cli/listing.h"
#include "cli/options.h"
#include "hook/hook.h"

#define MOST_NATIVES 4096 /* of a program in hex: they are only called by number */

static const char help[] =
	"usage: duet dis SCRIPT|HEX [FUNCTION] [--jit]\n"
	"Prints BPF instructions, in the language that `duet asm` takes: of both halves of a "
	"script\n"
	"(.c, .s or .o) with their source lines, of all functions or of one; or of hex bytes, "
	"which are\n"
	"an argument, a file, or `-`: standard input, which may be an object too.\n"
	"  --jit  under each function of the user half the machine code that duet makes of it; a "
	"number\n"
	"         tells which instruction it comes from\n\n"
	"examples:\n"
	"  duet dis ipc.o report --jit\n"
	"  duet dis 'b7 00 00 00 2a 00 00 00 95 00 00 00 00 00 00 00'\n";

struct disassemble {
	const char *what, *function;
	bool jit;
};

/* ---- objects ------------------------------------------------------------------------------------- */

DEFINE_CLEANUP(struct native_listing *, native_close);

static int split(const struct obj *obj, struct types **types, struct split *ret, struct err *err)
{
	CLEANUP(buf_deinit) struct buf btf = { 0 };
	int code = 0;

	if (obj_user_needs_kernel_types(obj)) {
		code = buf_read_file(&btf, "/sys/kernel/btf/vmlinux", err);
		if (!code)
			code = types_open(btf.data, btf.size, types, err);
	}
	return code ? code : obj_split(obj, *types, ret, err);
}

static int print_listing(struct listing *listing, const char *name, struct err *err)
{
	if (!listing_print(listing) && listing->function)
		return err_set(err, -ENOENT, "%s: there is no function `%s`: see `duet dis %s`",
			       name, listing->function, name);
	return 0;
}

/* Links the user half as a run would, so that the code is what would run. */
static int print_with_native(struct listing *listing, const char *name, struct err *err)
{
	CLEANUP(hook_half_close_cleanup) struct hook_half *half = NULL;
	struct hook_options options = { .obj = listing->obj,
					.user = listing->user,
					.link_only = true };
	int code = hook_half_open(&options, &half, err);

	if (code)
		return code;
	listing->half = half;
	listing->vm = hook_half_vm(half);
	return print_listing(listing, name, err);
}

static int print_object(const struct disassemble *options, const struct buf *object,
			struct native_listing *native, struct err *err)
{
	CLEANUP(obj_close_cleanup) struct obj *obj = NULL;
	CLEANUP(split_deinit) struct split parts = { 0 };
	CLEANUP(types_close_cleanup) struct types *types = NULL;
	struct listing listing = { .function = options->function, .native = native };
	struct err why = { 0 };
	int code = obj_open(object->data, object->size, options->what, &obj, err);

	if (code)
		return code;
	listing.obj = obj;
	code = split(obj, &types, &parts, &why);
	listing.user = parts.user;
	if (!options->jit) /* what does not fit together can be read all the same */
		return print_listing(&listing, options->what, err);
	return code ? err_set(err, code, "%s", why.text)
		    : print_with_native(&listing, options->what, err);
}

/* ---- hex ----------------------------------------------------------------------------------------- */

static uint64_t nothing(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct vm_function *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* A function starts at 0 and wherever a local call goes. */
static size_t find_functions(const struct bpf_insn *code, size_t count, struct vm_function *ret)
{
	size_t n = 1, kept = 0, i;

	ret[0].first = 0;
	for (i = 0; i < count; i++) {
		int64_t target = (int64_t)i + 1 + code[i].imm;

		if (code[i].code == (BPF_JMP | BPF_CALL) && code[i].src_reg == BPF_PSEUDO_CALL &&
		    target >= 0 && target < (int64_t)count)
			ret[n++].first = target;
		if (code[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
	qsort(ret, n, sizeof(*ret), by_first);
	for (i = 0; i < n; i++) {
		if (!i || ret[i].first != ret[kept - 1].first)
			ret[kept++].first = ret[i].first;
	}
	for (i = 0; i < kept; i++) {
		ret[i].name = "function";
		ret[i].count = (i + 1 < kept ? ret[i + 1].first : count) - ret[i].first;
	}
	return kept;
}

struct compiled {
	struct vm_native *natives;
	struct vm_function *functions;
	size_t nfunctions;
	struct vm *vm;
};

static void compiled_deinit(struct compiled *compiled)
{
	vm_destroy(compiled->vm);
	free(compiled->natives);
	free(compiled->functions);
}

static int compile(const struct bpf_insn *code, size_t count, struct compiled *ret, struct err *err)
{
	struct vm_options options = { .size = sizeof(options), .engine = VM_ENGINE_JIT };
	struct vm_image image = { VM_IMAGE_SIZES, code, count };
	char message[300];
	int rc;

	ret->natives = calloc(MOST_NATIVES, sizeof(*ret->natives));
	if (!ret->natives)
		return err_nomem(err);
	for (size_t i = 0; i < MOST_NATIVES; i++)
		ret->natives[i] =
			(struct vm_native){ .name = "native",
					    .function = nothing,
					    .result = VM_U64,
					    .nargs = VM_MAX_ARGUMENTS,
					    .args = { VM_U64, VM_U64, VM_U64, VM_U64, VM_U64 } };
	image.natives = ret->natives;
	image.nnatives = MOST_NATIVES;
	image.functions = ret->functions;
	image.nfunctions = ret->nfunctions;
	rc = vm_create(&image, &options, &ret->vm, message, sizeof(message), NULL);
	return rc ? err_set(err, rc, "%s", message) : 0;
}

static int from_hex(const char *text, struct buf *ret, struct err *err)
{
	while (*text) {
		unsigned int byte;
		char c;

		if (isspace((unsigned char)*text)) {
			text++;
			continue;
		}
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return err_set(err, -EINVAL, "neither an object nor hex bytes");
		sscanf(text, "%2x", &byte);
		c = byte;
		if (buf_append(ret, &c, 1))
			return err_nomem(err);
		text += 2;
	}
	if (!ret->size || ret->size % sizeof(struct bpf_insn))
		return err_set(err, -EINVAL,
			       "%zu bytes are no whole number of instructions: each "
			       "has 8",
			       ret->size);
	return 0;
}

static int print_hex(const struct disassemble *options, const char *text,
		     struct native_listing *native, struct err *err)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	CLEANUP(compiled_deinit) struct compiled compiled = { 0 };
	struct listing listing = { .native = native };
	const struct bpf_insn *code;
	size_t count;
	int rc;

	if (options->function)
		return err_set(err, -EINVAL, "%s: hex bytes have no named functions",
			       options->function);
	rc = from_hex(text, &bytes, err);
	if (rc)
		return rc;
	code = (const struct bpf_insn *)bytes.data;
	count = bytes.size / sizeof(*code);
	compiled.functions = calloc(count + 1, sizeof(*compiled.functions));
	if (!compiled.functions)
		return err_nomem(err);
	compiled.nfunctions = find_functions(code, count, compiled.functions);
	rc = options->jit ? compile(code, count, &compiled, err) : 0;
	if (rc)
		return rc;
	listing.vm = compiled.vm;
	listing.functions = compiled.functions;
	listing.nfunctions = compiled.nfunctions;
	listing_print_code(&listing, code, count);
	return 0;
}

/* ---- what it is -------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	size_t text_size = strlen(text), end_size = strlen(end);

	return text_size >= end_size && !strcmp(text + text_size - end_size, end);
}

/* Bytes of an object or hex text; what is no file is text itself. */
static int load(const char *what, struct buf *ret, struct err *err)
{
	struct cli_script_options options = { 0 };
	int code;

	if (!strcmp(what, "-")) {
		code = buf_read_fd(ret, STDIN_FILENO);
		return code ? err_set(err, code, "standard input: %s", strerror(-code)) : 0;
	}
	if (ends_with(what, ".c") || ends_with(what, ".s") || ends_with(what, ".o"))
		return cli_load_script(what, &options, ret, err);
	if (!access(what, F_OK))
		return buf_read_file(ret, what, err);
	return buf_puts(ret, what) ? err_nomem(err) : 0;
}

static int disassemble(const struct disassemble *options, struct err *err)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	CLEANUP(native_close_cleanup) struct native_listing *native = NULL;
	const char *missing;
	int code = load(options->what, &bytes, err);

	if (code)
		return code;
	native = native_open();
	if (!native)
		return err_nomem(err);
	missing = options->jit ? native_missing(native) : NULL;
	if (missing)
		fprintf(stderr, "duet: %s\n", missing);
	if (bytes.size >= SELFMAG && !memcmp(bytes.data, ELFMAG, SELFMAG))
		return print_object(options, &bytes, native, err);
	code = print_hex(options, bytes.data ?: "", native, err);
	return code ? err_prepend(err, code, "%.60s", options->what) : 0;
}

int cli_dis(int argc, char **argv)
{
	struct disassemble options = { 0 };
	const struct cli_option table[] = { { "jit", .flag = &options.jit }, {} };
	const struct cli_word words[] = { { "SCRIPT", &options.what },
					  { "FUNCTION", &options.function },
					  {} };
	struct err err = { 0 };
	int status;

	if (!cli_parse(&(struct cli_syntax){ help, table, words }, argc, argv, &status))
		return status;
	if (!options.what)
		return cli_usage("dis", "which SCRIPT, or which bytes?");
	return disassemble(&options, &err) ? cli_fail(&err) : CLI_OK;
}
