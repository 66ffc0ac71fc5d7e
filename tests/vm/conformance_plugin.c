// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_conformance_plugin ["hex memory"] [--interp|--jit|--checked] [--elf]
 *
 * The plug-in of the public bpf_conformance runner: the program as hex bytes on standard input,
 * r1 = memory, r2 = its length; prints r0 as hex. Helper 5 is "unwind": when it returns 0, which
 * is what its argument was, the program ends there with that result. With --elf standard input is a BPF
 * object, as hex bytes (the runner's way) or as it is: see elf_program.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf_program.h"
#include "program.h"

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return 1;
}

/* Where there is no compiler for the machine, checked mode runs in the interpreter. */
#if defined(__x86_64__) || defined(__aarch64__)
#define CHECKED_ENGINE VM_ENGINE_JIT
#else
#define CHECKED_ENGINE VM_ENGINE_INTERPRETER
#endif

/* false: no such option. --checked --interp: checked, in the interpreter. */
static bool take_engine(const char *option, struct vm_options *how)
{
	if (!strcmp(option, "--interp")) {
		how->engine = VM_ENGINE_INTERPRETER;
	} else if (!strcmp(option, "--jit")) {
		how->engine = VM_ENGINE_JIT;
	} else if (!strcmp(option, "--checked")) {
		how->checked = true;
		how->engine = CHECKED_ENGINE;
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct vm_options how = { .engine = VM_ENGINE_INTERPRETER };
	CLEANUP(buf_deinit) struct buf text = { 0 }, memory = { 0 };
	CLEANUP(elf_program_deinit) struct elf_program program = { 0 };
	bool elf = false;
	uint64_t result;
	char why[512];

	for (int i = 1; i < argc; i++) {
		if (take_engine(argv[i], &how))
			continue;
		if (!strcmp(argv[i], "--elf")) {
			elf = true;
			continue;
		}
		if (!strncmp(argv[i], "--", 2))
			return fail(argv[i], "no such option: --interp, --jit, --checked, --elf");
		if (program_from_hex(argv[i], &memory))
			return fail("memory", "is not hex bytes");
	}
	if (buf_read_fd(&text, STDIN_FILENO))
		return fail("program", "cannot be read");
	if (elf && elf_program_load(&text, &program, why, sizeof(why)))
		return fail("program", why);
	if (!elf && program_from_hex(text.data ? text.data : "", &program.code))
		return fail("program", "is not hex bytes");
	if (program_run(&program.code, &memory, &how, &result, why, sizeof(why)))
		return fail("program", why);
	printf("%llx\n", (unsigned long long)result);
	return fflush(stdout) ? 1 : 0;
}
