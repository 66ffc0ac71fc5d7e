// SPDX-License-Identifier: BSD-2-Clause
#include "oracle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "isa/disasm.h"

/* Of so many groups of programs one uses what the kernel does not have. */
#define ALONE 8

int oracle_open(struct oracle *oracle)
{
	int rc = kernel_add_array(&oracle->kernel, GENERATE_VALUE, 1);

	for (size_t i = 0; rc >= 0 && i < GENERATE_ARRAYS; i++)
		rc = kernel_add_array(&oracle->kernel, generate_arrays[i].value_size,
				      generate_arrays[i].entries);
	if (rc >= 0)
		return 0;
	kernel_close(&oracle->kernel);
	return rc;
}

void oracle_close(struct oracle *oracle)
{
	kernel_close(&oracle->kernel);
}

static bool has_kernel(const struct oracle *oracle)
{
	return oracle->kernel.n;
}

static void show_program(const struct generated *program)
{
	char text[80];

	for (size_t i = 0; i < program->ncode;) {
		for (size_t k = 0; k < program->nfunctions; k++)
			if (program->functions[k].first == i)
				printf("#       function %zu\n", k);
		for (size_t k = 0; k < program->nrelocations; k++)
			if (program->relocations[k].at == i)
				printf("#       array %u offset %u:\n",
				       program->relocations[k].array,
				       program->relocations[k].offset);
		printf("# %4zu: ", i);
		i += isa_disassemble(&program->code[i], program->ncode - i, text, sizeof(text));
		printf("%s\n", text);
	}
}

static void show_memory(const struct generate_memory *start, const struct generate_memory *want,
			const struct generate_memory *got)
{
	for (size_t i = 0; i < sizeof(*start); i += 8) {
		uint64_t a, b, c;

		memcpy(&a, (const uint8_t *)start + i, 8);
		memcpy(&b, (const uint8_t *)want + i, 8);
		memcpy(&c, (const uint8_t *)got + i, 8);
		if (a || b || c)
			printf("# %3zu: start %016llx want %016llx got %016llx%s\n", i,
			       (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
			       b == c ? "" : "  <-- differs");
	}
}

static int run_one(struct oracle *oracle, const struct generated *program,
		   const struct engine *engine, const struct generate_memory *start,
		   struct generate_memory *ret)
{
	struct host *host = &oracle->host;
	int rc;

	host_clear(host);
	host_add(host, program);
	if (host_create(host, engine, oracle->why, sizeof(oracle->why)))
		return -1;
	rc = host_run(host, 0, start, oracle->why, sizeof(oracle->why));
	*ret = host->memory;
	host_destroy(host);
	return rc;
}

/* Does it store addresses? Then it says nothing: in another place it would end differently. */
static bool depends_on_addresses(struct oracle *oracle, const struct generated *program,
				 const struct generate_memory *start,
				 const struct generate_memory *here)
{
	static struct host there;
	bool same;

	host_clear(&there);
	host_add(&there, program);
	if (host_create(&there, &engines[0], oracle->why, sizeof(oracle->why)))
		return true;
	same = !host_run(&there, 0, start, oracle->why, sizeof(oracle->why)) &&
	       !memcmp(&there.memory, here, sizeof(*here));
	host_destroy(&there);
	return !same;
}

enum outcome { EQUAL, OTHER_MEMORY, FAULT };

struct difference {
	struct oracle *oracle;
	const struct engine *engine;
	const struct generate_memory *start;
	enum outcome outcome; /* a smaller program must end alike, or it shows something else */
};

/* How @program, which must not depend on addresses, ends in the engine. */
static enum outcome outcome(const struct difference *difference, const struct generated *program)
{
	struct oracle *oracle = difference->oracle;
	const struct engine *engine = difference->engine;
	const struct generate_memory *start = difference->start;
	struct generate_memory ours, want, got;

	if (run_one(oracle, program, &engines[0], start, &ours) && engine != &engines[0])
		return EQUAL;
	if (engine != &engines[0] && depends_on_addresses(oracle, program, start, &ours))
		return EQUAL;
	want = ours;
	if (has_kernel(oracle) && !program->alone &&
	    oracle_ask_one(oracle, program, start, &want, NULL, 0))
		return EQUAL;
	if (run_one(oracle, program, engine, start, &got))
		return FAULT;
	return memcmp(&want, &got, sizeof(got)) ? OTHER_MEMORY : EQUAL;
}

static bool still_differs(void *context, const struct generated *program)
{
	const struct difference *difference = context;

	return outcome(difference, program) == difference->outcome;
}

/* Everything about a difference: which program, where, and the smallest part of it that still
 * does it. */
static void tell(struct oracle *oracle, size_t n, const struct engine *engine)
{
	static struct generated program;
	struct difference difference = { oracle, engine, &oracle->start[n], EQUAL };
	struct generate_memory want, got;

	printf("# seed %llu: %s and the %s differ%s%s\n", (unsigned long long)oracle->seeds[n],
	       engine->name,
	       has_kernel(oracle) && !oracle->programs[n].alone ? "kernel" : "interpreter",
	       oracle->why[0] ? ": " : "", oracle->why);
	if (oracle->quiet)
		return;
	show_program(&oracle->programs[n]);
	show_memory(&oracle->start[n], &oracle->expected[n], &oracle->left);
	fflush(stdout);
	program = oracle->programs[n];
	program.alone |= !has_kernel(oracle);
	difference.outcome = outcome(&difference, &program);
	if (difference.outcome == EQUAL) {
		printf("# it does not happen when the program runs alone\n");
		return;
	}
	minimise(&program, still_differs, &difference);
	printf("# minimised:\n");
	show_program(&program);
	if (run_one(oracle, &program, &engines[0], difference.start, &want) && program.alone)
		return;
	if (has_kernel(oracle) && !program.alone)
		oracle_ask_one(oracle, &program, difference.start, &want, NULL, 0);
	oracle->why[0] = '\0';
	run_one(oracle, &program, engine, difference.start, &got);
	printf("# %s%s\n", oracle->why[0] ? "fault: " : "left", oracle->why);
	show_memory(difference.start, &want, &got);
}

static void count_rows(const struct generated *program, struct oracle_tally *tally)
{
	for (size_t i = 0; i < program->ncode;) {
		enum isa_op op = isa_find(&program->code[i]);

		tally->rows[op]++;
		i += isa_slots(isa_row(op));
	}
}

/* Why the verifier refused a program: its last lines but the statistics. */
static void show_refused(struct oracle *oracle, size_t n)
{
	static char log[1 << 20];
	struct generate_memory memory;
	char *line, *rest;
	size_t size;

	oracle_ask_one(oracle, &oracle->programs[n], &oracle->start[n], &memory, log, sizeof(log));
	size = strlen(log);
	rest = log + (size > 600 ? size - 600 : 0);
	printf("# refused (seed %llu):\n", (unsigned long long)oracle->seeds[n]);
	while ((line = strsep(&rest, "\n")))
		if (*line && strncmp(line, "processed", 9))
			printf("# %.200s\n", line);
}

/* Fills in what the programs must leave behind. */
static int expect(struct oracle *oracle, size_t n, bool alone)
{
	struct oracle_tally *tally = oracle->tally;

	memset(oracle->refused, 0, sizeof(oracle->refused));
	if (!alone && has_kernel(oracle))
		oracle_ask_kernel(oracle, n);
	for (size_t i = 0; i < n; i++) {
		if (alone || !has_kernel(oracle)) {
			tally->alone++;
		} else if (oracle->refused[i]) {
			if (++tally->refused <= 2 && !oracle->quiet)
				show_refused(oracle, i);
			continue;
		} else {
			tally->accepted++;
		}
		count_rows(&oracle->programs[i], tally);
	}
	return 0;
}

static int compare_engine(struct oracle *oracle, size_t n, bool alone, size_t which)
{
	struct host *host = &oracle->host;
	const struct engine *engine = &engines[which];
	bool reference = which == 0 && (alone || !has_kernel(oracle));

	oracle->tally->engine = which;
	oracle->why[0] = '\0';
	if (host_create(host, engine, oracle->why, sizeof(oracle->why))) {
		printf("# %s: %s (programs of seed %llu)\n", engine->name, oracle->why,
		       (unsigned long long)oracle->seeds[0]);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (oracle->refused[i])
			continue;
		oracle->tally->seed = oracle->seeds[i];
		oracle->tally->runs[which]++;
		if (!host_run(host, i, &oracle->start[i], oracle->why, sizeof(oracle->why))) {
			if (reference)
				oracle->expected[i] = host->memory;
			if (!memcmp(&host->memory, &oracle->expected[i], sizeof(host->memory)))
				continue;
		}
		oracle->left = host->memory;
		host_destroy(host);
		tell(oracle, i, engine);
		return -1;
	}
	host_destroy(host);
	return 0;
}

static int compare_group(struct oracle *oracle, size_t n, bool alone)
{
	int rc = expect(oracle, n, alone);

	for (size_t i = 0; !rc && i < nengines; i++)
		if (oracle->engines >> i & 1)
			rc = compare_engine(oracle, n, alone, i);
	return rc;
}

int oracle_compare(struct oracle *oracle, uint64_t seed, uint64_t n)
{
	while (n) {
		/* A program's kind depends on its seed alone, so that it can be repeated. */
		bool alone = seed / HOST_PROGRAMS % ALONE == 0;
		size_t group = 0;

		host_clear(&oracle->host);
		do {
			struct random random = { seed };

			generate(&random, alone, &oracle->programs[group]);
			generate_memory(&random, &oracle->start[group]);
			if (!host_has_room(&oracle->host, &oracle->programs[group]))
				break;
			host_add(&oracle->host, &oracle->programs[group]);
			oracle->seeds[group++] = seed++;
		} while (--n && seed % HOST_PROGRAMS);
		if (compare_group(oracle, group, alone))
			return -1;
	}
	return 0;
}
