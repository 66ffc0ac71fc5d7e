// SPDX-License-Identifier: BSD-2-Clause
/* duet doctor */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "compile/compile.h"
#include "kern/kern.h"
#include "pmu/pmu.h"

static const char help[] =
	"usage: duet doctor\n"
	"Tells what this machine and user can do, and for the rest: why not, and "
	"how to get it.\n"
	"Status 0 when scripts can run at all, 1 otherwise.\n\n"
	"example: duet doctor | grep -E '^ .* (no|\\?) '   # only what is missing\n";

static void line(const char *what, int yes, const char *format, const char *text)
{
	printf("  %-20s %-4s ", what, yes > 0 ? "yes" : yes ? "?" : "no");
	printf(format, text);
	putchar('\n');
}

static void print_machine(void)
{
	struct utsname name;

	uname(&name);
	printf("this machine\n  %-20s %s %s, %ld CPUs, %s\n", "kernel", name.release, name.machine,
	       sysconf(_SC_NPROCESSORS_ONLN),
	       geteuid() ? "not root: most of this needs root" : "root");
}

static void print_setting(const char *path, const char *name, const char *meaning)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };

	if (buf_read_file(&text, path, NULL))
		return;
	text.data[strcspn(text.data, "\n")] = 0;
	printf("  %-20s %s%s%s\n", name, text.data, meaning[0] ? ": " : "", meaning);
}

/* Scripts need BTF and one kind of probe. */
static int print_features(void)
{
	int needed = 1;
	unsigned int i;

	printf("probes and maps\n");
	for (i = 0; i < KERN_FEATURE_COUNT; i++) {
		const struct kern_feature_row *row = kern_feature_row(i);
		struct err err = { 0 };
		int yes = kern_feature(i, &err);

		if (yes > 0)
			line(row->name, 1, "%s", row->purpose);
		else
			printf("  %-20s %-4s %s: %s%s%s\n", row->name, yes ? "?" : "no",
			       row->purpose, err.text, err.text[0] ? ": " : "", row->remedy);
		if (yes <= 0 && (i == KERN_FEATURE_BTF || i == KERN_FEATURE_RAW_TRACEPOINT))
			needed = 0;
	}
	return needed;
}

static void print_events(void)
{
	static const char *const events[] = { "cycles",        "instructions", "cache-misses",
					      "branch-misses", "task-clock",   "page-faults" };
	size_t i;

	printf("events (PMU)\n");
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct err err = { 0 };
		int code = pmu_probe(events[i], &err);
		const char *substitute = pmu_substitute(events[i]);

		if (!code)
			line(events[i], 1, "%s", "counts on this machine");
		else
			printf("  %-20s no   %s%s%s%s\n", events[i], err.text,
			       substitute ? ": -e NAME=" : "", substitute ?: "",
			       substitute ? " is the nearest that counts" : "");
	}
	print_setting("/proc/sys/kernel/perf_event_paranoid", "perf_event_paranoid",
		      "above 1 only root opens CPU-wide events");
	print_setting("/sys/kernel/security/lockdown", "lockdown",
		      "[confidentiality] forbids reading kernel memory");
}

static void print_compiler(void)
{
	struct compile_compiler compiler;
	struct err err = { 0 };

	printf("compiler (for .c scripts only)\n");
	if (compile_find_compiler(&compiler, &err))
		line("clang", 0, "%s", err.text);
	else
		printf("  %-20s yes  %s, version %d%s\n", "clang", compiler.path, compiler.version,
		       compiler.signed_division ? "" : ": no signed division: clang-19 is better");
}

int cli_doctor(int argc, char **argv)
{
	int usable;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return fputs(help, stdout), CLI_OK;
	if (argc > 1)
		return cli_usage("doctor", "%s: it takes no arguments", argv[1]);
	print_machine();
	usable = print_features();
	print_events();
	print_compiler();
	return usable ? CLI_OK : CLI_FAILURE;
}
