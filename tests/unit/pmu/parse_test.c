// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
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

/* ---- the event table: what perf_event_attr a text means ---------------------------------- */

#define MSR    0x10000 /* type of PMU "msr" of this machine */
#define UPROBE 0x10001

/* Flags: attr bits. u k v i: exclude_user, _kernel, _hv, _idle; h g: exclude_host, _guest;
 * D pinned; x exclusive; 1 2 3 precise_ip. */
static const struct row {
	const char *text;
	uint32_t type;
	uint64_t config;
	const char *flags;
	uint64_t config1, config2;
} rows[] = {
#include "event_rows.inc"
};

static struct perf_event_attr attr_of(const struct row *row, uint32_t type)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = type };
	const char *flag;

	if (type == PERF_TYPE_BREAKPOINT)
		attr.bp_type = row->config;
	else
		attr.config = row->config;
	attr.config1 = row->config1;
	attr.config2 = row->config2;
	for (flag = row->flags; *flag; flag++) {
		attr.exclude_user |= *flag == 'u';
		attr.exclude_kernel |= *flag == 'k';
		attr.exclude_hv |= *flag == 'v';
		attr.exclude_idle |= *flag == 'i';
		attr.exclude_host |= *flag == 'h';
		attr.exclude_guest |= *flag == 'g';
		attr.pinned |= *flag == 'D';
		attr.exclusive |= *flag == 'x';
		if (*flag >= '1' && *flag <= '3')
			attr.precise_ip = *flag - '0';
	}
	return attr;
}

/* The type that the row means here, or -1 when this machine has no such PMU. */
static int64_t type_of(const struct row *row)
{
	const char *path = row->type == MSR ? "/sys/bus/event_source/devices/msr/type"
					    : "/sys/bus/event_source/devices/uprobe/type";
	unsigned int type;
	FILE *file;

	if (row->type < MSR)
		return row->type;
	file = fopen(path, "r");
	if (!file)
		return -1;
	assert_int_equal(fscanf(file, "%u", &type), 1);
	fclose(file);
	return type;
}

static void table_gives_the_expected_attr(void **state)
{
	size_t i;

	assert_true(COUNT(rows) >= 200);
	for (i = 0; i < COUNT(rows); i++) {
		int64_t type = type_of(&rows[i]);
		struct perf_event_attr wanted = attr_of(&rows[i], type);
		struct pmu_event event;
		struct err err = { 0 };

		if (type < 0)
			continue;
		if (pmu_parse(rows[i].text, &event, &err))
			fail_msg("%s", err.text);
		if (memcmp(&event.attr, &wanted, sizeof(wanted)))
			fail_msg("%s: another attr: type %u config %#llx", rows[i].text,
				 event.attr.type, (unsigned long long)event.attr.config);
	}
}

/* Reads one "  name   value" line of perf's dump into the attr. */
static void read_field(struct perf_event_attr *attr, const char *name, uint64_t value)
{
	if (!strcmp(name, "type"))
		attr->type = value;
	else if (!strcmp(name, "config"))
		attr->config = value;
	else if (!strcmp(name, "bp_type"))
		attr->bp_type = value;
	else if (!strcmp(name, "{ bp_addr, config1 }"))
		attr->config1 = value;
	else if (!strcmp(name, "{ bp_len, config2 }"))
		attr->config2 = value;
	else if (!strcmp(name, "exclude_user"))
		attr->exclude_user = value;
	else if (!strcmp(name, "exclude_kernel"))
		attr->exclude_kernel = value;
	else if (!strcmp(name, "exclude_hv"))
		attr->exclude_hv = value;
	else if (!strcmp(name, "exclude_idle"))
		attr->exclude_idle = value;
	else if (!strcmp(name, "exclude_host"))
		attr->exclude_host = value;
	else if (!strcmp(name, "exclude_guest"))
		attr->exclude_guest = value;
	else if (!strcmp(name, "pinned"))
		attr->pinned = value;
	else if (!strcmp(name, "exclusive"))
		attr->exclusive = value;
	else if (!strcmp(name, "precise_ip"))
		attr->precise_ip = value;
}

/* The first attr that perf tries to open for @text; false when perf says nothing. */
static bool ask_perf(const char *text, struct perf_event_attr *ret)
{
	char command[256], line[256];
	bool inside = false, done = false;
	FILE *pipe;

	snprintf(command, sizeof(command), "LC_ALL=C perf stat -vv -e '%s' -- true 2>&1", text);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	*ret = (struct perf_event_attr){ .size = sizeof(*ret) };
	while (fgets(line, sizeof(line), pipe)) {
		char *name = line + strspn(line, " "), *end = name + strcspn(name, "\n");
		char *value;

		*end = 0;
		if (!strcmp(line, "perf_event_attr:")) {
			inside = !done;
			continue;
		}
		if (*line == '-' && inside) {
			inside = false;
			done = true;
		}
		value = strrchr(name, ' ');
		if (!inside || !value)
			continue;
		for (end = value; end > name && end[-1] == ' ';)
			*--end = 0;
		read_field(ret, name, strtoull(value + 1, NULL, 0));
	}
	pclose(pipe);
	return done;
}

/* Newer perfs count guests by default; the table holds the rules of 6.1. */
static bool perf_is_known(void)
{
	char version[64] = "";
	FILE *pipe = popen("perf --version 2>/dev/null", "r");

	if (pipe && !fgets(version, sizeof(version), pipe))
		version[0] = 0;
	if (pipe)
		pclose(pipe);
	return strstr(version, "version 6.1.");
}

static void table_is_what_perf_opens(void **state)
{
	size_t i, compared = 0;

#if defined(__SANITIZE_ADDRESS__)
	return; /* 250 times perf: once, in the plain build, is enough */
#endif
	if (!perf_is_known()) {
		print_message("no perf 6.1 here: table not compared\n");
		return;
	}
	for (i = 0; i < COUNT(rows); i++) {
		int64_t type = type_of(&rows[i]);
		struct perf_event_attr wanted = attr_of(&rows[i], type), got;

		if (type < 0)
			continue;
		if (!ask_perf(rows[i].text, &got))
			fail_msg("perf does not take %s", rows[i].text);
		if (memcmp(&got, &wanted, sizeof(got)))
			fail_msg("perf opens another attr for %s: type %u config %#llx",
				 rows[i].text, got.type, (unsigned long long)got.config);
		compared++;
	}
	assert_true(compared >= 200);
}

/* Intel's manual, Skylake: INST_RETIRED.ANY_P is event C0 umask 00, LD_BLOCKS.STORE_FORWARD 03/02. */
static void names_of_libpfm4(void **state)
{
	static const struct {
		const char *text, *canonical;
		uint64_t config;
		bool user_only;
	} known[] = {
		{ "skl::INST_RETIRED:ANY_P", "skl::INST_RETIRED:ANY_P", 0xc0, false },
		{ "skl::INST_RETIRED:ANY_P:u", "skl::INST_RETIRED:ANY_P:u", 0xc0, true },
		{ "skl::LD_BLOCKS:STORE_FORWARD", "skl::LD_BLOCKS:STORE_FORWARD", 0x203, false },
	};
	struct fake *fake = *state;
	struct pmu_event event;
	struct err err = { 0 };
	size_t i;

	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1); /* whatever this machine's CPU is */
	for (i = 0; i < COUNT(known); i++) {
		if (pmu_parse_on(&fake->system, known[i].text, &event, &err))
			fail_msg("%s", err.text);
		assert_string_equal(event.text, known[i].canonical);
		assert_int_equal(event.attr.type, PERF_TYPE_RAW);
		assert_int_equal(event.attr.config & 0xffff, known[i].config);
		assert_int_equal(event.attr.exclude_kernel, known[i].user_only);
		assert_int_equal(event.attr.exclude_user, 0);
		assert_false(event.software);
	}
	assert_int_equal(pmu_parse_on(&fake->system, "skl::INST_RETIRED:NO_SUCH", &event, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "libpfm4: "));
	assert_int_equal(pmu_parse_on(&fake->system, "skl::NO_SUCH_EVENT", &event, &err), -ENOENT);
}

/* ---- names, units, errors --------------------------------------------------------------- */

static void canonical_names_and_units(void **state)
{
	static const struct {
		const char *text, *canonical, *unit;
		bool software;
	} names[] = {
		{ "cs:u", "context-switches:u", "", true },
		{ "faults", "page-faults", "", true },
		{ "cpu-clock", "cpu-clock", "ns", true },
		{ "cpu-cycles:k", "cycles:k", "", false },
		{ "l1d-load-miss", "L1-dcache-load-misses", "", false },
		{ "L2", "LLC-loads", "", false },
		{ "cycles/name=work/u", "work", "", false },
		{ "r1a8:u", "r1a8:u", "", false },
	};
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct pmu_event event;

		assert_int_equal(pmu_parse(names[i].text, &event, NULL), 0);
		assert_string_equal(event.text, names[i].canonical);
		assert_string_equal(event.unit, names[i].unit);
		assert_int_equal(event.software, names[i].software);
		assert_true(event.scale == 1);
	}
	assert_string_equal(pmu_substitute("cycles"), "cpu-clock");
	assert_string_equal(pmu_substitute("cpu-cycles:u"), "cpu-clock");
	assert_null(pmu_substitute("instructions"));
	assert_null(pmu_substitute("page-faults"));
	assert_null(pmu_substitute("nonsense"));
}

static void wrong_texts_say_why_and_where(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} wrong[] = {
		{ "", -EINVAL, "empty" },
		{ "cylces", -ENOENT, "did you mean cycles" },
		{ "cylces:u", -ENOENT, "did you mean cycles" },
		{ "page-fault", -ENOENT, "page-faults" },
		{ "LLC-load-mises", -ENOENT, "LLC-load-misses" },
		{ "CYCLES", -ENOENT, "no such event" },
		{ "zzzzzzzzzzzz", -ENOENT, "duet list events" },
		{ "cycles:x", -EINVAL, "'x' at character 8" },
		{ "cycles:uu", -EINVAL, "repeated at character 9" },
		{ "cycles:pppp", -EINVAL, "repeated at character 11" },
		{ "cycles:u:k", -EINVAL, "':' at character 9" },
		{ "cycles:SS", -EINVAL, "repeated at character 9" },
		{ ":u", -EINVAL, "name is missing" },
		{ " cycles", -EINVAL, "character 1 is a blank" },
		{ "cycles,faults", -ENOENT, "no such event" },
		{ "{cycles,faults}", -EOPNOTSUPP, "PMU_GROUP" },
		{ "mem:", -EINVAL, "address is missing at character 5" },
		{ "mem:zz", -EINVAL, "address is missing at character 5" },
		{ "mem:0x1000/3", -EINVAL, "'3' at character 12" },
		{ "mem:0x1000/", -EINVAL, "at character 12" },
		{ "mem:0:rwx", -EINVAL, "does not go together" },
		{ "mem:0:rr", -EINVAL, "'r' at character 7" },
		{ "mem:0:uw", -EINVAL, "'w' at character 8" },
		{ "mem:0:rw:z", -EINVAL, "'z' at character 10" },
		{ "L1-icache-stores", -EINVAL, "know no stores" },
		{ "iTLB-prefetches", -EINVAL, "know no prefetches" },
		{ "LLC-loads-loads", -ENOENT, "no such event" },
		{ "LLC-", -ENOENT, "no such event" },
		{ "r", -ENOENT, "no such event" },
		{ "r0x1a8", -ENOENT, "no such event" },
		{ "r1ffffffffffffffff", -ENOENT, "no such event" },
		{ "cycles/name=/", -EINVAL, "character 13" },
		{ "cycles/name/", -EINVAL, "needs a name" },
		{ "cycles/u", -EINVAL, "character 7 is not closed" },
		{ "cycles/umask=1/", -ENOENT, "no term of a generic event" },
		{ "cycles/period=0/", -EINVAL, "above 0" },
		{ "cycles/call-graph=fp/", -EOPNOTSUPP, "call-graph" },
		{ "cycles/config=1,,period=2/", -EINVAL, "missing at character 17" },
		{ "cycles/config=1,/", -EINVAL, "missing" },
		{ "/event=1/", -EINVAL, "PMU's name is missing" },
		{ "cpu/event=1/:u", -EINVAL, "':' at character 13" },
		{ "cpu/event=1/u/", -EINVAL, "'/' at character 14" },
		{ "cpu/event=-1/", -EINVAL, "no number" },
		{ "cpu/event=0x10000000000000000/", -EINVAL, "no number of 64 bits" },
		{ "cpu/event=0x1000/", -EINVAL, "at most 0xfff" },
		{ "cpu/edge=2/", -EINVAL, "at most 0x1" },
		{ "cpu/evnt=1/", -ENOENT, "did you mean event" },
		{ "cpu/mises/", -ENOENT, "did you mean misses" },
		{ "cpu/misses=1/", -ENOENT, "no term or event 'misses'" },
		{ "cpu/nested/", -ENOENT, "'misses'" },
		{ "cpu/broken/", -EINVAL, "'zz'" },
		{ "cpu/mem-lat/", -EINVAL, "add ldlat=NUMBER" },
		{ "cpu/event=?/", -EINVAL, "no number" },
		{ "cpu/../", -ENOENT, "no term" },
		{ "../cpu/event=1/", -ENOENT, "no PMU '..'" },
		{ "uncore_/", -EINVAL, "not closed" },
		{ "unkore_x/event=1/", -ENOENT, "did you mean uncore_x" },
		{ "odd/backwards=1/", -EBADMSG, "not understood" },
		{ "odd/wide=1/", -EBADMSG, "not understood" },
		{ "odd/twice=1/", -EBADMSG, "not understood" },
		{ "odd/other=1/", -EBADMSG, "not understood" },
		{ "odd/text=1/", -EBADMSG, "not understood" },
		{ "sched:sched_swatch", -ENOENT, "no tracepoint of this name" },
		{ "sched:sched_switch:z", -EINVAL, "'z' at character 20" },
	};
	struct fake *fake = *state;
	size_t i;

	for (i = 0; i < COUNT(wrong); i++) {
		struct pmu_event event = { .text = "untouched" };
		struct err err = { 0 };
		int code = pmu_parse_on(&fake->system, wrong[i].text, &event, &err);

		if (code != wrong[i].code || !strstr(err.text, wrong[i].says))
			fail_msg("%s: %d, %s", wrong[i].text, code, err.text);
		assert_int_equal(err.code, code);
		assert_memory_equal(err.text, "event", 5);
		assert_string_equal(event.text, "untouched");
	}
}

static void sysfs_describes_terms(void **state)
{
	static const struct {
		const char *text;
		uint64_t config, config1, config2;
	} good[] = {
		{ "cpu/event=0x3c,umask=1/u", 0x13c },
		{ "cpu/event=0xabc/", 0xa000000bc },
		{ "cpu/event=0xfff,umask=0xff,edge/", 0xf0004ffff },
		{ "cpu/misses/", 0x10000412e },
		{ "cpu/misses,umask=2/", 0x10000022e },
		{ "cpu/misses,edge=0/", 0x10000412e },
		{ "misses", 0x10000412e },
		{ "misses:u", 0x10000412e },
		{ "cpu/mem-lat,ldlat=30/", 0x1cd, 30 },
		{ "cpu/ldlat=30,mem-lat/", 0x1cd, 30 },
		{ "cpu/offcore_rsp=0xffffffffffffffff/", 0, ~0ULL },
		{ "cpu/twisted=0x1ab/", 0, 0, 0xb00000000000010aULL },
		{ "cpu/r1234/", 0x1234 },
		{ "cpu/config=0xff,config2=3/", 0xff, 0, 3 },
	};
	struct fake *fake = *state;
	struct pmu_event event;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		struct err err = { 0 };

		if (pmu_parse_on(&fake->system, good[i].text, &event, &err))
			fail_msg("%s", err.text);
		assert_int_equal(event.attr.type, 4);
		assert_int_equal(event.attr.config, good[i].config);
		assert_int_equal(event.attr.config1, good[i].config1);
		assert_int_equal(event.attr.config2, good[i].config2);
		assert_string_equal(event.pmu, "cpu");
		assert_string_equal(event.text, good[i].text);
		assert_string_equal(event.cpumask, "");
	}
	assert_int_equal(pmu_parse_on(&fake->system, "uncore_x/data_reads/", &event, NULL), 0);
	assert_int_equal(event.attr.type, 30);
	assert_int_equal(event.attr.config, 5);
	assert_string_equal(event.unit, "MiB");
	assert_true(event.scale == 6.103515625e-05);
	assert_string_equal(event.cpumask, "1");
	assert_int_equal(pmu_parse_on(&fake->system, "sched:sched_switch:u", &event, NULL), 0);
	assert_int_equal(event.attr.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(event.attr.config, 314);
	assert_true(event.attr.exclude_kernel);
	assert_string_equal(event.text, "sched:sched_switch:u");
	/* A kind of PMU that exists, but not here. */
	assert_int_equal(pmu_parse_on(&fake->system, "cpu_atom/event=1/k", &event, NULL), 0);
	assert_non_null(strstr(event.missing, "no PMU cpu_atom"));
}

static void sampling_texts(void **state)
{
	struct pmu_event event;
	struct pmu_rate rate;
	struct err err;

	assert_int_equal(pmu_parse_sampling("cpu-clock@99", &event, &rate, NULL), 0);
	assert_string_equal(event.text, "cpu-clock");
	assert_int_equal(rate.freq, 99);
	assert_int_equal(rate.period, 0);
	assert_int_equal(pmu_parse_sampling("cycles:u", &event, &rate, NULL), 0);
	assert_int_equal(rate.freq, PMU_DEFAULT_FREQ);
	assert_int_equal(pmu_parse_sampling("cycles/period=5000/", &event, &rate, NULL), 0);
	assert_int_equal(rate.freq, 0);
	assert_int_equal(rate.period, 5000);
	assert_int_equal(pmu_parse_sampling("cycles/freq=7/", &event, &rate, NULL), 0);
	assert_int_equal(rate.freq, 7);
	assert_int_equal(pmu_parse_sampling("cycles@", &event, &rate, &err), -EINVAL);
	assert_int_equal(pmu_parse_sampling("cycles@0", &event, &rate, &err), -EINVAL);
	assert_int_equal(pmu_parse_sampling("cycles@9x", &event, &rate, &err), -EINVAL);
	assert_non_null(strstr(err.text, "character 8"));
	assert_int_equal(pmu_parse_sampling("@99", &event, &rate, &err), -EINVAL);
}

struct listed {
	int count, cycles, llc, fake_alias, details;
};

static void on_name(void *context, const char *name, const char *kind, const char *description)
{
	struct listed *listed = context;
	struct pmu_event event;

	listed->count++;
	listed->cycles += !strcmp(name, "cycles") && !strcmp(kind, "hardware");
	listed->llc += !strcmp(name, "LLC-load-misses") && !strcmp(kind, "cache");
	listed->fake_alias += !strcmp(name, "uncore_x/data_reads/") && !strcmp(kind, "uncore_x");
	listed->details += strstr(name, ".unit") || strstr(name, ".scale");
	if (!strcmp(kind, "hardware") || !strcmp(kind, "software") || !strcmp(kind, "cache")) {
		assert_int_equal(pmu_parse(name, &event, NULL), 0);
		assert_string_equal(event.text, name);
	}
}

static void list_has_all_kinds(void **state)
{
	struct fake *fake = *state;
	struct listed listed = { 0 };

	pmu_list_on(&fake->system, on_name, &listed);
	assert_int_equal(listed.cycles, 1);
	assert_int_equal(listed.llc, 1);
	assert_int_equal(listed.fake_alias, 1);
	assert_int_equal(listed.details, 0);
	assert_int_equal(listed.count, 10 + 12 + 2 * (3 * 4 + 2 + 1 + 1) + 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_gives_the_expected_attr),
		cmocka_unit_test(table_is_what_perf_opens),
		cmocka_unit_test_setup_teardown(names_of_libpfm4, setup, teardown),
		cmocka_unit_test(canonical_names_and_units),
		cmocka_unit_test(wrong_texts_say_why_and_where),
		cmocka_unit_test(sysfs_describes_terms),
		cmocka_unit_test(sampling_texts),
		cmocka_unit_test(list_has_all_kinds),
	};

	return cmocka_run_group_tests_name("pmu parse", tests, setup, teardown);
}
