// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>
#include <unistd.h>

#include "code.h"
#include "oracle.h"

static void relocate(const struct kernel *kernel, const struct generated *program,
		     struct bpf_insn *code)
{
	for (size_t i = 0; i < program->nrelocations; i++) {
		struct bpf_insn *pair = &code[program->relocations[i].at];

		if (program->relocations[i].array < GENERATE_ARRAYS)
			kernel_load_map(kernel, 1 + program->relocations[i].array, pair->dst_reg,
					pair);
		else
			kernel_load_address(kernel, 0, program->relocations[i].offset,
					    pair->dst_reg, pair);
	}
}

static void put(const struct kernel *kernel, const struct generate_memory *memory)
{
	memcpy(kernel->arrays[0].data, memory->value, GENERATE_VALUE);
	for (size_t i = 0; i < GENERATE_ARRAYS; i++)
		memcpy(kernel->arrays[1 + i].data, memory->arrays[i], kernel->arrays[1 + i].size);
}

static void get(const struct kernel *kernel, struct generate_memory *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->value, kernel->arrays[0].data, GENERATE_VALUE);
	for (size_t i = 0; i < GENERATE_ARRAYS; i++)
		memcpy(ret->arrays[i], kernel->arrays[1 + i].data, kernel->arrays[1 + i].size);
}

int oracle_ask_one(struct oracle *oracle, const struct generated *program,
		   const struct generate_memory *start, struct generate_memory *ret, char *log,
		   size_t log_size)
{
	struct bpf_insn code[GENERATE_MAX];
	int fd;

	memcpy(code, program->code, program->ncode * sizeof(code[0]));
	relocate(&oracle->kernel, program, code);
	fd = kernel_load(code, program->ncode, log, log_size);
	if (fd < 0)
		return -1;
	put(&oracle->kernel, start);
	if (kernel_run(fd, 0)) {
		close(fd);
		return -1;
	}
	close(fd);
	get(&oracle->kernel, ret);
	return 0;
}

/* One program for the kernel out of several, since loading is what takes the time:
 *	r6 = number; if (r6 == 0) first(); else if (r6 == 1) second(); ...; return 0 */
static size_t join(struct oracle *oracle, size_t n, struct bpf_insn *code)
{
	size_t at = 0, end = 1 + 3 * n + 2;

	code[at++] = LDX_W(6, 1, 0);
	for (size_t i = 0; i < n; i++) {
		const struct generated *program = &oracle->programs[i];

		code[at] = JNE_K(6, (int)i, 2);
		code[at + 1] = CALL_LOCAL((int)(end - at - 2));
		code[at + 2] = JA((int)(3 * n - at - 2));
		at += 3;
		memcpy(&code[end], program->code, program->ncode * sizeof(code[0]));
		relocate(&oracle->kernel, program, &code[end]);
		end += program->ncode;
	}
	code[at++] = MOV_K(0, 0);
	code[at++] = EXIT();
	return end;
}

void oracle_ask_kernel(struct oracle *oracle, size_t n)
{
	static struct bpf_insn code[HOST_CODE + 3 * HOST_PROGRAMS + 3];
	size_t ncode = join(oracle, n, code);
	int fd = n > 1 ? kernel_load(code, ncode, NULL, 0) : -1;

	oracle->tally->engine = -1;
	for (size_t i = 0; i < n; i++) {
		oracle->tally->seed = oracle->seeds[i];
		if (fd < 0) { /* one of them was refused, or too much to look at */
			oracle->refused[i] =
				oracle_ask_one(oracle, &oracle->programs[i], &oracle->start[i],
					       &oracle->expected[i], NULL, 0);
			continue;
		}
		put(&oracle->kernel, &oracle->start[i]);
		oracle->refused[i] = kernel_run(fd, i) != 0;
		get(&oracle->kernel, &oracle->expected[i]);
	}
	if (fd >= 0)
		close(fd);
}
