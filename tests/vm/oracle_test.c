// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle_test [PROGRAMS [SEED]]
 *
 * Random programs run in the vm and in the kernel, from equal memory, and must leave equal memory
 * and registers. Prints the seed; the first difference is printed with its program, and ends it.
 * Exit status 77 (skipped) where bpf(2) is not allowed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <duet/vm.h>

#include "generate.h"
#include "isa/disasm.h"
#include "kernel.h"

#define PROGRAMS          20000
#define LEAST_ACCEPTED    70   /* per cent */
#define LEAST_OF_EACH_ROW 1000 /* in a run of PROGRAMS */

struct tally {
	uint64_t accepted, refused;
	uint64_t rows[ISA_NOPS];
};

static void show(const struct generated *program, const uint8_t *start, const uint8_t *kernel,
		 const uint8_t *vm)
{
	char text[80];

	for (size_t i = 0; i < program->ncode;) {
		size_t slots =
			isa_disassemble(&program->code[i], program->ncode - i, text, sizeof(text));

		printf("# %4zu: %s\n", i, text);
		i += slots;
	}
	for (size_t i = 0; i < GENERATE_VALUE; i += 8) {
		uint64_t a, b, c;

		memcpy(&a, start + i, 8);
		memcpy(&b, kernel + i, 8);
		memcpy(&c, vm + i, 8);
		printf("# %3zu: start %016llx kernel %016llx vm %016llx%s\n", i,
		       (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
		       b == c ? "" : "  <-- differs");
	}
}

static int run_vm(struct generated *program, uint8_t *value)
{
	struct vm_image image = { VM_IMAGE_SIZES, .code = program->code, .ncode = program->ncode,
				  .functions = program->functions,
				  .nfunctions = program->nfunctions };
	struct vm_fault fault;
	char text[256];
	struct vm *vm;
	int rc;

	for (size_t i = 0; i < program->nfunctions; i++) {
		struct bpf_insn *pair = &program->code[program->address[i]];
		uintptr_t address = (uintptr_t)value + program->offset[i];

		pair[0].src_reg = 0;
		pair[0].imm = (uint32_t)address;
		pair[1].imm = address >> 32;
	}
	if (vm_create(&image, NULL, &vm, text, sizeof(text), NULL)) {
		printf("# vm: %s\n", text);
		return -1;
	}
	rc = vm_call(vm, 0, NULL, 0, NULL, &fault);
	if (rc)
		printf("# vm: instruction %u: %s\n", fault.insn,
		       vm_fault_text(&fault, text, sizeof(text)));
	vm_destroy(vm);
	return rc;
}

static void count_rows(const struct generated *program, struct tally *tally)
{
	for (size_t i = 0; i < program->ncode;) {
		enum isa_op op = isa_find(&program->code[i]);

		tally->rows[op]++;
		i += isa_slots(isa_row(op));
	}
}

static int kernel_side(const struct kernel *kernel, struct generated *program, char *log,
		       size_t log_size)
{
	for (size_t i = 0; i < program->nfunctions; i++) {
		struct bpf_insn *pair = &program->code[program->address[i]];

		kernel_load_address(kernel, 9, pair);
		pair[1].imm = program->offset[i];
	}
	return kernel_run(kernel, program->code, program->ncode, log, log_size);
}

/* Why the verifier refused a program: its last lines but the statistics. */
static void show_last_lines(char *log, uint64_t seed)
{
	size_t size = strlen(log);
	char *line, *rest = log + (size > 600 ? size - 600 : 0);

	printf("# refused (seed %llu):\n", (unsigned long long)seed);
	while ((line = strsep(&rest, "\n")))
		if (*line && strncmp(line, "processed", 9))
			printf("# %.200s\n", line);
}

/* 0: the same on both sides, or refused by the verifier. */
static int compare_one(const struct kernel *kernel, uint64_t seed, struct tally *tally)
{
	static struct generated program;
	uint8_t start[GENERATE_VALUE], value[GENERATE_VALUE];
	struct random random = { seed };

	generate(&random, &program);
	memset(start, 0, sizeof(start));
	for (size_t i = 0; i < GENERATE_SCRATCH; i += 8) {
		uint64_t number = random_edge(&random);

		memcpy(start + i, &number, 8);
	}
	memcpy(value, start, sizeof(value));
	memcpy(kernel->value, start, sizeof(start));
	if (kernel_side(kernel, &program, NULL, 0)) {
		tally->refused++;
		if (tally->refused <= 3) {
			static char log[1 << 20];

			kernel_side(kernel, &program, log, sizeof(log));
			show_last_lines(log, seed);
		}
		return 0;
	}
	tally->accepted++;
	count_rows(&program, tally);
	if (!run_vm(&program, value) && !memcmp(value, kernel->value, sizeof(value)))
		return 0;
	printf("# seed %llu: the vm and the kernel differ\n", (unsigned long long)seed);
	show(&program, start, kernel->value, value);
	return -1;
}

static int judge(const struct tally *tally, uint64_t programs)
{
	uint64_t all = tally->accepted + tally->refused, least = ~0ull;
	int bad = 0, rarest = 0;

	for (int op = 0; op < ISA_NOPS; op++) {
		if (!generates(op) || tally->rows[op] >= least)
			continue;
		least = tally->rows[op];
		rarest = op;
	}
	printf("# %llu programs, %llu accepted by the verifier (%.1f %%); rarest operation: %s, "
	       "%llu times\n",
	       (unsigned long long)all, (unsigned long long)tally->accepted,
	       100.0 * tally->accepted / all, isa_row(rarest)->name, (unsigned long long)least);
	if (tally->accepted * 100 < all * LEAST_ACCEPTED) {
		printf("not ok 2 - at least %d %% are accepted\n", LEAST_ACCEPTED);
		bad = 1;
	} else {
		printf("ok 2 - at least %d %% are accepted\n", LEAST_ACCEPTED);
	}
	if (programs < PROGRAMS)
		printf("ok 3 - every operation occurs # SKIP needs %d programs\n", PROGRAMS);
	else
		printf("%s 3 - every operation occurs at least %d times\n",
		       least < LEAST_OF_EACH_ROW ? "not ok" : "ok", LEAST_OF_EACH_ROW);
	return bad || (programs >= PROGRAMS && least < LEAST_OF_EACH_ROW);
}

int main(int argc, char **argv)
{
	uint64_t programs = argc > 1 ? strtoull(argv[1], NULL, 0) : PROGRAMS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000003;
	static struct tally tally;
	struct kernel kernel;
	int rc;

	rc = kernel_open(&kernel, GENERATE_VALUE);
	if (rc) {
		printf("1..0 # SKIP bpf(2): %s\n", strerror(-rc));
		return 77;
	}
	printf("1..3\n# seed %llu\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < programs; i++) {
		rc = compare_one(&kernel, seed + i, &tally);
		if (rc) {
			printf("not ok 1 - the vm and the kernel agree\n");
			return 1;
		}
	}
	printf("ok 1 - the vm and the kernel agree\n");
	kernel_close(&kernel);
	return judge(&tally, programs);
}
