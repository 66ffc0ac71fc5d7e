// SPDX-License-Identifier: BSD-2-Clause
/*
 * passes_test [PROGRAMS [SEED]]
 *
 * Random programs run in the interpreter and, as the compiler's intermediate form, with no pass,
 * all passes, each pass alone and all but each: all must leave the same memory. Needs no back end,
 * and looks at both kinds of target on every machine. Prints the seed of the first difference.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "eval.h"
#include "host.h"
#include "natives.h"

#define PROGRAMS 1500

static bool any_address(bool has_index, unsigned int scale, int64_t off, unsigned int size)
{
	(void)has_index;
	(void)size;
	return scale <= 3 && off >= INT32_MIN && off <= INT32_MAX;
}

static bool plain_address(bool has_index, unsigned int scale, int64_t off, unsigned int size)
{
	if (has_index)
		return !off && (!scale || !size || 1u << scale == size);
	return off >= -256 && off < 4096 && !scale;
}

static const struct jit_target targets[] = {
	{ .name = "rich",
	  .has_modify = true,
	  .has_branch_memory = true,
	  .has_lea_scaled_off = true,
	  .least_cases = 3,
	  .can_address = any_address },
	{ .name = "plain", .least_cases = 6, .can_address = plain_address },
};

static void show(const struct eval *eval)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < eval->image->nfunctions; i++) {
		if (!eval->functions[i].ninsns)
			continue;
		buf_printf(&text, "function %zu:\n", i);
		jit_dump(&eval->functions[i], &text);
	}
	printf("%s", text.size ? text.data : "");
	buf_deinit(&text);
}

static int compare(struct host *host, const struct vm_image *image,
		   const struct generate_memory *start, const struct generate_memory *expected,
		   uint32_t passes, bool checked, const struct jit_target *target)
{
	static const uint64_t args[VM_MAX_ARGUMENTS];
	struct eval eval;
	int rc;

	if (eval_compile(&eval, host->vm, image, passes, checked, target)) {
		printf("# cannot be compiled\n");
		return -1;
	}
	host->memory = *start;
	eval_run(&eval, host->main[0], args);
	rc = eval.why || memcmp(&host->memory, expected, sizeof(*expected)) ? -1 : 0;
	if (rc) {
		printf("# passes %#x, target %s%s: %s\n", passes, target->name,
		       checked ? ", checked" : "", eval.why ? eval.why : "differs");
		show(&eval);
		eval_deinit(&eval);
		if (!eval_compile(&eval, host->vm, image, 0, checked, target))
			show(&eval);
	}
	eval_deinit(&eval);
	return rc;
}

/* In an unchecked vm. */
static int compare_passes(struct host *host, const struct generate_memory *start,
			  const struct generate_memory *expected, struct random *random)
{
	const struct vm_image *image = &host->vm->image;
	int rc = 0;

	for (int t = 0; t < 2 && !rc; t++) {
		const struct jit_target *target = &targets[t];

		rc = compare(host, image, start, expected, 0, false, target);
		rc = rc ? rc : compare(host, image, start, expected, VM_PASS_ALL, false, target);
		for (uint32_t pass = 1; pass < VM_PASS_ALL && !rc; pass <<= 1) {
			rc = compare(host, image, start, expected, pass, false, target);
			rc = rc ? rc
				: compare(host, image, start, expected, VM_PASS_ALL & ~pass, false,
					  target);
		}
		rc = rc ? rc
			: compare(host, image, start, expected, random_next(random) & VM_PASS_ALL,
				  false, target);
	}
	return rc;
}

static int compare_checked(struct host *host, const struct generate_memory *start,
			   const struct generate_memory *expected, struct random *random)
{
	const struct vm_image *image = &host->vm->image;
	const struct jit_target *target = &targets[random_below(random, 2)];
	int rc;

	rc = compare(host, image, start, expected, 0, true, target);
	rc = rc ? rc : compare(host, image, start, expected, VM_PASS_ALL, true, target);
	return rc ? rc
		  : compare(host, image, start, expected, random_next(random) & VM_PASS_ALL, true,
			    target);
}

static int run(struct host *host, bool checked, const struct generate_memory *start,
	       struct generate_memory *expected, struct random *random)
{
	const struct engine engine = { .name = "interpreter",
				       .kind = VM_ENGINE_INTERPRETER,
				       .checked = checked };
	char why[256];
	int rc;

	if (host_create(host, &engine, why, sizeof(why)) ||
	    (!checked && host_run(host, 0, start, why, sizeof(why)))) {
		printf("# %s\n", why);
		return -1;
	}
	if (!checked)
		*expected = host->memory;
	rc = checked ? compare_checked(host, start, expected, random)
		     : compare_passes(host, start, expected, random);
	host_destroy(host);
	return rc;
}

static int one_program(struct host *host, uint64_t seed)
{
	static struct generated program;
	struct random random = { seed };
	struct generate_memory start, expected;
	int rc;

	generate(&random, random_below(&random, 2), &program);
	generate_memory(&random, &start);
	host_clear(host);
	if (!host_has_room(host, &program))
		return 0;
	host_add(host, &program);
	rc = run(host, false, &start, &expected, &random);
	/* What C calls back runs in the vm, which knows nothing of the evaluator's frames. */
	if (!program.alone)
		rc = rc ? rc : run(host, true, &start, &expected, &random);
	if (rc)
		printf("# seed %llu\n", (unsigned long long)seed);
	return rc;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : PROGRAMS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20;
	struct host *host = malloc(sizeof(*host));
	uint64_t i = 0;

	if (!host)
		return 1;
	while (i < count && !one_program(host, seed + i))
		i++;
	printf("%s 1 - the passes change no result (seed %llu, %llu programs)\n1..1\n",
	       i == count ? "ok" : "not ok", (unsigned long long)seed, (unsigned long long)i);
	free(host);
	return i != count;
}
