// SPDX-License-Identifier: BSD-2-Clause
/* Random event texts against a second, independent statement of the grammar. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int setup(void **state)
{
	struct fake *fake = malloc(sizeof(*fake));

	fake_create(fake);
	*state = fake;
	return 0;
}

static int teardown(void **state)
{
	fake_destroy(*state);
	free(*state);
	return 0;
}

static const char grammar[] =
	"^("
	/* generic names */
	"((cycles|cpu-cycles|instructions|cache-references|cache-misses|branches|"
	"branch-instructions|branch-misses|bus-cycles|(stalled|idle)-cycles-(front|back)end|"
	"ref-cycles|cpu-clock|task-clock|page-faults|faults|context-switches|cs|cpu-migrations|"
	"migrations|minor-faults|major-faults|alignment-faults|emulation-faults|dummy|bpf-output|"
	"cgroup-switches"
	/* cache names */
	"|(L1-dcache|l1-d|l1d|L1-data|LLC|L2|dTLB|d-tlb|Data-TLB|node)OPERATION"
	"|(L1-icache|l1-i|l1i|L1-instruction)FETCH"
	"|(iTLB|i-tlb|Instruction-TLB|branch|bpu|btb|bpc)READ"
	"|r[0-9a-fA-F]{1,16})"
	"(:MODIFIERS|/(COMMON(,COMMON)*)?/MODIFIERS)?)"
	/* bare names of the fake PMUs, the tracepoint */
	"|(misses|core-energy|data_reads|sched:sched_switch)(:MODIFIERS)?"
	"|cpu/((COMMON|CPU)(,(COMMON|CPU))*)?/MODIFIERS"
	"|odd/(COMMON(,COMMON)*)?/MODIFIERS"
	"|mem:NUMBER(/(0x)?0*[1248])?(:(r|w|rw|wr|x))?(:MODIFIERS)?"
	")$";

/* Which expands the capital words above. */
static const struct {
	const char *word, *text;
} words[] = {
	{ "OPERATION", "(-(loads?|read|stores?|write|prefetch|prefetches|speculative-read|"
		       "speculative-load)(-RESULT)?|-RESULT(-(loads?|read|stores?|write|prefetch|"
		       "prefetches|speculative-read|speculative-load))?)?" },
	{ "FETCH", "(-(loads?|read|prefetch|prefetches|speculative-read|speculative-load)"
		   "(-RESULT)?|-RESULT(-(loads?|read|prefetch|prefetches|speculative-read|"
		   "speculative-load))?)?" },
	{ "READ", "(-(loads?|read)(-RESULT)?|-RESULT(-(loads?|read))?)?" },
	{ "RESULT", "(refs|Reference|ops|access|misses|miss)" },
	{ "MODIFIERS", "[ukhIGHpPSDeW]*" },
	{ "COMMON", "(name=[A-Za-z0-9_.?-]{1,63}|(config|config1|config2)=NUMBER|"
		    "(period|freq)=POSITIVE)" },
	{ "CPU", "(misses|core-energy|edge(=(0|1|0x0|0x1))?|event|umask|ldlat|offcore_rsp|twisted|"
		 "(umask|event|ldlat)=(0x[0-9a-f]{1,2}|[0-9]{1,2})|offcore_rsp=NUMBER|"
		 "r[0-9a-fA-F]{1,16})" },
	{ "NUMBER", "(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})" },
	{ "POSITIVE", "(0[xX]0*[1-9a-fA-F][0-9a-fA-F]{0,9}|0*[1-9][0-9]{0,9})" },
};

static void compile_grammar(regex_t *regex)
{
	static char text[65536], next[65536];
	size_t i;

	strcpy(text, grammar);
	for (i = 0; i < COUNT(words); i++) {
		char *from = text, *at;

		next[0] = 0;
		while ((at = strstr(from, words[i].word))) {
			strncat(next, from, at - from);
			strcat(next, words[i].text);
			from = at + strlen(words[i].word);
		}
		strcat(next, from);
		strcpy(text, next);
	}
	assert_int_equal(regcomp(regex, text, REG_EXTENDED | REG_NOSUB), 0);
}

/* Each modifier once, p three times: beyond a regular expression of sane size. */
static bool modifiers_repeat(const char *text)
{
	const char *letters = strrchr(text, '/'), *at;

	if (!strncmp(text, "mem:", 4)) { /* behind the address, the length and the access */
		letters = text + 4 + strcspn(text + 4, ":");
		letters += *letters == ':';
		if (letters[strspn(letters, "rwx")] == ':')
			letters += strspn(letters, "rwx") + 1;
	} else if (letters)
		letters++;
	else
		letters = strrchr(text, ':');
	if (!letters || !strcmp(text, "sched:sched_switch"))
		return false;
	for (at = letters; *at; at++) {
		int times = 0;
		const char *other;

		for (other = letters; *other; other++)
			times += *other == *at;
		if (times > (*at == 'p' ? 3 : 1))
			return true;
	}
	return false;
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

static void random_text(uint64_t *seed, char *text, size_t size)
{
	static const char *const pieces[] = {
		"cycles",    "instructions",
		"LLC",       "-load",
		"-loads",    "-misses",
		"L1-dcache", "cs",
		"r1a8",      "r",
		"cpu",       "/",
		"/",         ":",
		"u",         "k",
		"p",         "D",
		"event",     "=",
		"0x3c",      "1",
		",",         "umask",
		"misses",    "edge",
		"name=x",    "period=9",
		"config",    "-stores",
		"l1-i",      "node",
		"sched:",    "sched_switch",
		"odd",       "?",
		"..",        "ldlat",
		"faults",    "L1-icache",
		"S",         "G",
		"H",         "-ops",
		"zz",        "0",
		"dTLB",      "branch",
		"mem:",      "{",
		"}",         "-prefetches",
		"read",      "-refs",
		"/u",        ":k",
	};
	size_t count = 1 + next_random(seed) % 7, used = 0;

	text[0] = 0;
	while (count-- && used < size - 20)
		used += snprintf(text + used, size - used, "%s",
				 pieces[next_random(seed) % COUNT(pieces)]);
	/* Now and then any byte anywhere. */
	if (next_random(seed) % 8 == 0 && used)
		text[next_random(seed) % used] = 1 + next_random(seed) % 255;
}

static void random_strings_are_taken_or_refused_rightly(void **state)
{
	const char *given = getenv("DUET_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() << 20;
	struct fake *fake = *state;
	int i, taken = 0;
	regex_t regex;

	print_message("DUET_TEST_SEED=%llu\n", (unsigned long long)seed);
	compile_grammar(&regex);
	for (i = 0; i < 20000; i++) {
		struct pmu_event event;
		struct err err = { 0 };
		char text[200];
		bool wanted;
		int code;

		random_text(&seed, text, sizeof(text));
		wanted = !regexec(&regex, text, 0, NULL, 0) && !modifiers_repeat(text);
		code = pmu_parse_on(&fake->system, text, &event, &err);
		if (!code != wanted && !strstr(text, "mem-lat"))
			fail_msg("'%s': %s, %s", text, code ? "refused" : "taken", err.text);
		if (code) {
			assert_memory_equal(err.text, "event", 5);
			assert_int_equal(err.code, code);
			continue;
		}
		taken++;
		assert_int_equal(event.attr.size, sizeof(event.attr));
	}
	print_message("%d of %d taken\n", taken, i);
	assert_true(taken > 250);
	regfree(&regex);
}

static void mutate(void *context, const char *name, const char *kind, const char *description)
{
	struct fake *fake = context;
	size_t at;
	int byte;

	for (at = 0; at < strlen(name); at++) {
		for (byte = 0; byte < 256; byte += 3) {
			struct pmu_event event;
			struct err err = { 0 };
			char text[128];

			snprintf(text, sizeof(text), "%s", name);
			text[at] = byte;
			if (pmu_parse_on(&fake->system, text, &event, &err))
				assert_memory_equal(err.text, "event", 5);
		}
	}
}

/* Every name that is listed, every byte of it replaced: no crash, no silence. */
static void mutations_never_crash(void **state)
{
	struct fake *fake = *state;

	pmu_list_on(&fake->system, mutate, fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_strings_are_taken_or_refused_rightly),
		cmocka_unit_test(mutations_never_crash),
	};

	return cmocka_run_group_tests_name("pmu random", tests, setup, teardown);
}
