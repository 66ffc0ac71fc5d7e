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
	{ "cycles", 0, 0, "g" },
	{ "cpu-cycles", 0, 0, "g" },
	{ "instructions", 0, 1, "g" },
	{ "cache-references", 0, 2, "g" },
	{ "cache-misses", 0, 3, "g" },
	{ "branches", 0, 4, "g" },
	{ "branch-instructions", 0, 4, "g" },
	{ "branch-misses", 0, 5, "g" },
	{ "bus-cycles", 0, 6, "g" },
	{ "stalled-cycles-frontend", 0, 7, "g" },
	{ "idle-cycles-frontend", 0, 7, "g" },
	{ "stalled-cycles-backend", 0, 8, "g" },
	{ "idle-cycles-backend", 0, 8, "g" },
	{ "ref-cycles", 0, 9, "g" },
	{ "cpu-clock", 1, 0, "g" },
	{ "task-clock", 1, 1, "g" },
	{ "page-faults", 1, 2, "g" },
	{ "faults", 1, 2, "g" },
	{ "context-switches", 1, 3, "g" },
	{ "cs", 1, 3, "g" },
	{ "cpu-migrations", 1, 4, "g" },
	{ "migrations", 1, 4, "g" },
	{ "minor-faults", 1, 5, "g" },
	{ "major-faults", 1, 6, "g" },
	{ "alignment-faults", 1, 7, "g" },
	{ "emulation-faults", 1, 8, "g" },
	{ "dummy", 1, 9, "g" },
	{ "bpf-output", 1, 10, "g" },
	{ "cgroup-switches", 1, 11, "g" },
	{ "L1-dcache", 3, 0, "g" },
	{ "L1-dcache-loads", 3, 0, "g" },
	{ "L1-dcache-load-misses", 3, 0x10000, "g" },
	{ "L1-dcache-stores", 3, 0x100, "g" },
	{ "L1-dcache-store-misses", 3, 0x10100, "g" },
	{ "L1-dcache-write-miss", 3, 0x10100, "g" },
	{ "L1-dcache-prefetches", 3, 0x200, "g" },
	{ "L1-dcache-prefetch-misses", 3, 0x10200, "g" },
	{ "L1-dcache-load-ops", 3, 0, "g" },
	{ "l1d-loads", 3, 0, "g" },
	{ "L1-data-loads", 3, 0, "g" },
	{ "L1-icache-loads", 3, 1, "g" },
	{ "L1-icache-load-misses", 3, 0x10001, "g" },
	{ "L1-icache-prefetches", 3, 0x201, "g" },
	{ "l1-i-loads", 3, 1, "g" },
	{ "l1i-read", 3, 1, "g" },
	{ "LLC", 3, 2, "g" },
	{ "L2", 3, 2, "g" },
	{ "LLC-loads", 3, 2, "g" },
	{ "LLC-access", 3, 2, "g" },
	{ "LLC-load-miss", 3, 0x10002, "g" },
	{ "LLC-load-misses", 3, 0x10002, "g" },
	{ "LLC-misses-loads", 3, 0x10002, "g" },
	{ "LLC-stores", 3, 0x102, "g" },
	{ "LLC-store-misses", 3, 0x10102, "g" },
	{ "LLC-prefetch-refs", 3, 0x202, "g" },
	{ "LLC-speculative-read", 3, 0x202, "g" },
	{ "LLC-speculative-load-misses", 3, 0x10202, "g" },
	{ "dTLB-loads", 3, 3, "g" },
	{ "dTLB-load-misses", 3, 0x10003, "g" },
	{ "dTLB-stores", 3, 0x103, "g" },
	{ "d-tlb-loads", 3, 3, "g" },
	{ "Data-TLB-loads", 3, 3, "g" },
	{ "iTLB-loads", 3, 4, "g" },
	{ "i-tlb-load-misses", 3, 0x10004, "g" },
	{ "Instruction-TLB-loads", 3, 4, "g" },
	{ "branch-loads", 3, 5, "g" },
	{ "branch-load-misses", 3, 0x10005, "g" },
	{ "bpu-loads", 3, 5, "g" },
	{ "btb", 3, 5, "g" },
	{ "bpc-read", 3, 5, "g" },
	{ "node", 3, 6, "g" },
	{ "node-load-misses", 3, 0x10006, "g" },
	{ "node-prefetch-misses", 3, 0x10206, "g" },
	{ "r1a8", 4, 0x1a8, "g" },
	{ "ra", 4, 0xa, "g" },
	{ "r01ffffffffff", 4, 0x1ffffffffff, "g" },
	{ "rffffffffffffffff", 4, ~0ULL, "g" },
	{ "r1A8:k", 4, 0x1a8, "uv" },
	{ "cycles:", 0, 0, "g" },
	{ "cycles:u", 0, 0, "kvg" },
	{ "cycles:k", 0, 0, "uv" },
	{ "cycles:uk", 0, 0, "vg" },
	{ "cycles:ku", 0, 0, "vg" },
	{ "cycles:h", 0, 0, "uk" },
	{ "cycles:hu", 0, 0, "kg" },
	{ "cycles:ukhG", 0, 0, "h" },
	{ "cycles:kG", 0, 0, "uvh" },
	{ "cycles:uH", 0, 0, "kvg" },
	{ "cycles:G", 0, 0, "h" },
	{ "cycles:H", 0, 0, "g" },
	{ "cycles:GH", 0, 0, "" },
	{ "cycles:uGH", 0, 0, "kv" },
	{ "cycles:kGH", 0, 0, "uv" },
	{ "cycles:p", 0, 0, "1g" },
	{ "cycles:pp", 0, 0, "2g" },
	{ "cycles:ppp", 0, 0, "3g" },
	{ "cycles:kp", 0, 0, "uv1g" },
	{ "cycles:pu", 0, 0, "kv1g" },
	{ "cycles:P", 0, 0, "" },
	{ "cycles:D", 0, 0, "D" },
	{ "cycles:uDe", 0, 0, "Dxkvg" },
	{ "cycles:DP", 0, 0, "D" },
	{ "cycles:I", 0, 0, "i" },
	{ "cycles:uI", 0, 0, "kvig" },
	{ "cpu-clock:p", 1, 0, "1g" },
	{ "iTLB-load-misses:u", 3, 0x10004, "kvg" },
	{ "cycles//", 0, 0, "g" },
	{ "cycles/name=hello/", 0, 0, "g" },
	{ "cycles/config=5/", 0, 5, "g" },
	{ "cpu-clock/name=a.b-c/u", 1, 0, "kvg" },
	{ "r1a8/name=foo/", 4, 0x1a8, "g" },
	{ "LLC-load-misses/name=x/", 3, 0x10002, "g" },
	{ "software/config=2/", 1, 2, "g" },
	{ "msr/tsc/", MSR, 0, "g" },
	{ "msr//", MSR, 0, "g" },
	{ "msr/event/", MSR, 1, "g" },
	{ "msr/event=0x0/", MSR, 0, "g" },
	{ "msr/event=010/", MSR, 10, "g" },
	{ "msr/tsc,event=5/", MSR, 5, "g" },
	{ "msr/event=0,name=foo/", MSR, 0, "g" },
	{ "msr/config=7/", MSR, 7, "g" },
	{ "msr/config1=7/", MSR, 0, "g", 7 },
	{ "msr/r5/", MSR, 5, "g" },
	{ "msr/tsc/uk", MSR, 0, "vg" },
	{ "uprobe/retprobe/", UPROBE, 1, "g" },
	{ "uprobe/retprobe=0/u", UPROBE, 0, "kvg" },
	{ "uprobe/ref_ctr_offset=3/", UPROBE, 0x300000000, "g" },
	{ "uprobe/config2=4/", UPROBE, 0, "g", 0, 4 },
};

static struct perf_event_attr attr_of(const struct row *row, uint32_t type)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = type };
	const char *flag;

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

	assert_true(COUNT(rows) >= 60);
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
	assert_true(compared >= 60);
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
		{ "cycles:S", -EOPNOTSUPP, "'S'" },
		{ "cycles:W", -EOPNOTSUPP, "weak group" },
		{ ":u", -EINVAL, "name is missing" },
		{ " cycles", -EINVAL, "character 1 is a blank" },
		{ "cycles,faults", -ENOENT, "no such event" },
		{ "{cycles,faults}", -EOPNOTSUPP, "PMU_GROUP" },
		{ "mem:0x1000:rw", -EOPNOTSUPP, "breakpoint" },
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
		{ "sched:sched_swatch", -ENOENT, "no tracepoint sched:sched_swatch" },
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
		cmocka_unit_test(canonical_names_and_units),
		cmocka_unit_test(wrong_texts_say_why_and_where),
		cmocka_unit_test(sysfs_describes_terms),
		cmocka_unit_test(sampling_texts),
		cmocka_unit_test(list_has_all_kinds),
	};

	return cmocka_run_group_tests_name("pmu parse", tests, setup, teardown);
}
