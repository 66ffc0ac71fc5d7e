// SPDX-License-Identifier: BSD-2-Clause
/*
 * cases_test CASES.tsv...
 *
 * Runs the cases of each file (name, memory, program, result; the first line names the columns) in
 * this process, in every engine. TAP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host.h"
#include "program.h"

struct state {
	int n, bad;
};

static int split(char *line, char **fields, int n)
{
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < n; i++) {
		fields[i] = strsep(&line, "\t");
		if (!fields[i])
			return -1;
	}
	return 0;
}

/* Every engine must give the result of the case. */
static const char *run_case(char **fields, char *why, size_t size)
{
	uint64_t result, want = strtoull(fields[3], NULL, 16);
	char text[400];

	for (size_t i = 0; i < nengines; i++) {
		CLEANUP(buf_deinit) struct buf memory = { 0 }, code = { 0 };
		struct vm_options how = { .engine = engines[i].kind,
					  .checked = engines[i].checked,
					  .passes_off = engines[i].passes_off };

		if (program_from_hex(fields[1], &memory) || program_from_hex(fields[2], &code))
			return "is not hex";
		if (program_run(&code, &memory, &how, &result, text, sizeof(text)))
			snprintf(why, size, "%s: %s", engines[i].name, text);
		else if (result != want)
			snprintf(why, size, "%s: want 0x%llx, got 0x%llx", engines[i].name,
				 (unsigned long long)want, (unsigned long long)result);
		else
			continue;
		return why;
	}
	return NULL;
}

static int run_file(const char *path, struct state *state)
{
	CLEANUP(close_file) FILE *file = fopen(path, "re");
	CLEANUP(free_pointer) char *line = NULL;
	char why[512], *fields[4];
	const char *wrong;
	size_t room = 0;

	if (!file || getline(&line, &room, file) < 0) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return -1;
	}
	while (getline(&line, &room, file) > 0) {
		state->n++;
		wrong = split(line, fields, 4) ? "has too few columns"
					       : run_case(fields, why, sizeof(why));
		state->bad += wrong != NULL;
		printf("%sok %d - %s%s%s\n", wrong ? "not " : "", state->n, fields[0],
		       wrong ? ": " : "", wrong ? wrong : "");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct state state = { 0 };

	for (int i = 1; i < argc; i++)
		if (run_file(argv[i], &state))
			return 1;
	printf("1..%d\n", state.n);
	return !state.n || state.bad;
}
