// SPDX-License-Identifier: BSD-2-Clause
/*
 * Places where nothing happens between two probes, in this process and in the kernel. The kernel
 * carries out a probed instruction in one of several ways, and they cost differently: some it
 * emulates, others run out of line, with a trap of their own. So there is a place for each class.
 */
#include "kern/calibrate_places.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kern/bpf/code_request.h"
#include "kern/own.h"

/* NAME(first instruction, rest). */
#define EMPTY_FUNCTION(name, first, rest)                                                         \
	void name(void);                                                                          \
	__asm__(".pushsection .text\n\t.p2align 6\n\t.globl " #name "\n\t.type " #name            \
		", %function\n" #name ":\n\t" first "\n\t" rest "\n\t.size " #name ", . - " #name \
		"\n\t.popsection")

/* A USDT probe "duet:EVENT" at the start of function NAME: a note as <sys/sdt.h> writes it. */
#define USDT_NOTE(name, event)                                                   \
	__asm__(".pushsection .note.stapsdt, \"\", %note\n\t.balign 4\n\t"       \
		".4byte 992f - 991f, 994f - 993f, 3\n991:\t.asciz \"stapsdt\"\n" \
		"992:\t.balign 4\n993:\t.8byte " #name ", 0, 0\n\t"              \
		".asciz \"duet\"\n\t.asciz \"" event "\"\n\t.asciz \"\"\n"       \
		"994:\t.balign 4\n\t.popsection")

EMPTY_FUNCTION(kern_empty_usdt_first, "nop", "ret");
EMPTY_FUNCTION(kern_empty_usdt_second, "nop", "ret");
USDT_NOTE(kern_empty_usdt_first, "calibrate_first");
USDT_NOTE(kern_empty_usdt_second, "calibrate_second");

/* Two of each class: the second for the probe that ends what the first began. */
#if defined(__x86_64__)
enum { LIKE_NOP, LIKE_PUSH, LIKE_OTHER, CLASSES };
EMPTY_FUNCTION(kern_empty_nop, "nop", "ret");
EMPTY_FUNCTION(kern_empty_push, "push %rbp", "pop %rbp\n\tret");
EMPTY_FUNCTION(kern_empty_other, "mov %rdi, %rdi", "ret");
EMPTY_FUNCTION(kern_empty_nop_second, "nop", "ret");
EMPTY_FUNCTION(kern_empty_push_second, "push %rbp", "pop %rbp\n\tret");
EMPTY_FUNCTION(kern_empty_other_second, "mov %rdi, %rdi", "ret");
static void (*const empty_functions[2][CLASSES])(void) = {
	{ kern_empty_nop, kern_empty_push, kern_empty_other },
	{ kern_empty_nop_second, kern_empty_push_second, kern_empty_other_second },
};

static int class_of(const uint8_t *code)
{
	if (code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb)
		return LIKE_NOP;
	if (code[0] == 0x0f && (code[1] == 0x1f || (code[1] & 0xf0) == 0x80))
		return LIKE_NOP;
	if ((code[0] & 0xf8) == 0x50 || (code[0] == 0x41 && (code[1] & 0xf8) == 0x50))
		return LIKE_PUSH;
	return LIKE_OTHER;
}

/*
 * Behind the call of ftrace, or the no-op in its place, which begins each function; before it may be a
 * landing pad of indirect jumps. There is one class, the breakpoint.
 */
static int offset_like(const uint8_t *wanted, const uint8_t *function, size_t size)
{
	static const uint8_t no_call[] = { 0x0f, 0x1f, 0x44 };

	(void)wanted;
	(void)size;
	return function[0] == 0xe8 || !memcmp(function, no_call, sizeof(no_call)) ? 5 : 9;
}
#elif defined(__aarch64__)
enum { LIKE_NOP, LIKE_BRANCH, LIKE_PUSH, LIKE_OTHER, CLASSES };
EMPTY_FUNCTION(kern_empty_nop, "nop", "ret");
EMPTY_FUNCTION(kern_empty_branch, "b 1f\n1:", "ret");
EMPTY_FUNCTION(kern_empty_push, "stp x29, x30, [sp, #-16]!", "ldp x29, x30, [sp], #16\n\tret");
EMPTY_FUNCTION(kern_empty_other, "mov x0, x0", "ret");
EMPTY_FUNCTION(kern_empty_nop_second, "nop", "ret");
EMPTY_FUNCTION(kern_empty_branch_second, "b 1f\n1:", "ret");
EMPTY_FUNCTION(kern_empty_push_second, "stp x29, x30, [sp, #-16]!",
	       "ldp x29, x30, [sp], #16\n\tret");
EMPTY_FUNCTION(kern_empty_other_second, "mov x0, x0", "ret");
static void (*const empty_functions[2][CLASSES])(void) = {
	{ kern_empty_nop, kern_empty_branch, kern_empty_push, kern_empty_other },
	{ kern_empty_nop_second, kern_empty_branch_second, kern_empty_push_second,
	  kern_empty_other_second },
};

/* Branches, and loads and addresses relative to the program counter. */
static bool depends_on_place(uint32_t insn)
{
	return (insn & 0x7c000000) == 0x14000000 || (insn & 0xff000010) == 0x54000000 ||
	       (insn & 0x7c000000) == 0x34000000 || (insn & 0xfe000000) == 0xd6000000 ||
	       (insn & 0x1f000000) == 0x10000000 || (insn & 0x3b000000) == 0x18000000;
}

static int class_of(const uint8_t *code)
{
	uint32_t insn;

	memcpy(&insn, code, sizeof(insn));
	if (depends_on_place(insn))
		return LIKE_BRANCH;
	if (insn == 0xd503201f)
		return LIKE_NOP;
	if ((insn & 0xffc07fff) == 0xa9807bfd)
		return LIKE_PUSH;
	return LIKE_OTHER;
}

/* Hints, and where ftrace calls from: what begins every function. */
static bool is_prologue(uint32_t insn)
{
	return (insn & 0xfffff01f) == 0xd503201f || insn == 0xaa1e03e9;
}

/* The kernel has two classes: what it simulates depends on its place. */
static int offset_like(const uint8_t *wanted, const uint8_t *function, size_t size)
{
	uint32_t insn, like;
	size_t at;

	memcpy(&like, wanted, sizeof(like));
	for (at = 0; at + sizeof(insn) <= size; at += sizeof(insn)) {
		memcpy(&insn, function + at, sizeof(insn));
		if (!is_prologue(insn) && depends_on_place(insn) == depends_on_place(like))
			return at;
		if (insn == 0xd65f03c0)
			break;
	}
	return -ENOENT;
}
#else
#error "tell here how this machine's kernel treats probed instructions"
#endif

/* ---- in this process ---------------------------------------------------------------------------- */

int empty_place(void (*function)(void), const char *kind, char *text, size_t size, struct err *err)
{
	unsigned long address = (unsigned long)function, from, to, offset;
	CLEANUP(buf_deinit)
	struct buf maps = { 0 };
	int code = buf_read_file(&maps, "/proc/self/maps", err);
	char *line, *rest;

	if (code)
		return code;
	for (line = strtok_r(maps.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3)
			continue;
		if (address < from || address >= to)
			continue;
		/* The path in the line may have been deleted; this one always opens. */
		snprintf(text, size, "%s:/proc/%d/exe:0x%lx", kind, getpid(),
			 address - from + offset);
		return 0;
	}
	return err_set(err, -ENOENT, "calibration: our own function is not mapped");
}

void (*empty_function_for(const char *target, bool second))(void)
{
	uint8_t code[PROBED_BYTES] = { 0 };
	struct user_place place;
	struct err err = { 0 };

	if (!target || user_place_parse(target, &place, &err) ||
	    elfnames_code_at(place.path, place.symbol, place.offset, code, &err))
		return empty_functions[second][LIKE_PUSH];
	return empty_functions[second][class_of(code)];
}

void (*empty_usdt(bool second, char *text, size_t size))(void)
{
	snprintf(text, size, "usdt:/proc/%d/exe:duet:calibrate_%s", getpid(),
		 second ? "second" : "first");
	return second ? kern_empty_usdt_second : kern_empty_usdt_first;
}

/* ---- in the kernel ------------------------------------------------------------------------------ */

/* The instructions at @offset in a kernel function. */
static int kernel_code(struct own *own, const char *function, size_t length, uint64_t offset,
		       uint8_t *code, struct err *err)
{
	struct code_request request = { .offset = offset };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &request, .ctx_size_in = sizeof(request));
	int error;

	if (length >= sizeof(request.function))
		return err_set(err, -ENAMETOOLONG, "%s: too long", function);
	memcpy(request.function, function, length);
	error = bpf_prog_test_run_opts(own_program_fd(own, "duet_code"), &opts);
	if (!error)
		error = (int)opts.retval;
	if (error)
		return err_set(err, error, "the code of %.*s cannot be read: %s", (int)length,
			       function, kern_errno_text(error));
	memcpy(code, request.code, CODE_BYTES);
	return 0;
}

/* Both codes: of the empty function, and at @target. */
static int read_codes(const char *empty, const char *target, uint8_t *function, uint8_t *wanted,
		      struct err *err)
{
	size_t length = strcspn(target, "+");
	uint64_t offset = strtoul(target + length + 1, NULL, 0);
	struct own own;
	int code = own_open(&own, OWN_CODE, err);

	if (!code)
		code = own_load(&own, err);
	if (!code)
		code = kernel_code(&own, empty, strlen(empty), 0, function, err);
	if (!code)
		code = kernel_code(&own, target, length, offset, wanted, err);
	own_close(&own);
	return code;
}

int empty_kernel_place(const char *target, bool second, char *text, size_t size, struct err *err)
{
	const char *empty = second ? EMPTY_KERNEL_SECOND : EMPTY_KERNEL_FUNCTION;
	uint8_t wanted[CODE_BYTES], function[CODE_BYTES];
	int code, offset;

	snprintf(text, size, "kprobe:%s", empty);
	if (!strchr(target, '+'))
		return 0; /* at a function's start, as the empty one */
	code = read_codes(empty, target, function, wanted, err);
	if (code)
		return code;
	offset = offset_like(wanted, function, sizeof(function));
	if (offset < 0)
		return err_set(err, offset, "calibration: no empty place like %s", target);
	snprintf(text, size, "kprobe:%s+0x%x", empty, offset);
	return 0;
}
