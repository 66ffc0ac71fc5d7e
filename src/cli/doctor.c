// SPDX-License-Identifier: BSD-2-Clause
/* duet doctor */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/options.h"
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
	char who[128];

	uname(&name);
	printf("this machine\n  %-20s %s %s, %ld CPUs, %s\n", "kernel", name.release, name.machine,
	       sysconf(_SC_NPROCESSORS_ONLN),
	       geteuid() ? "not root: most of this needs root" : "root");
	if (pmu_is_virtual(NULL, who, sizeof(who)))
		printf("  %-20s yes  %s: its hardware counters are those that the host gives it\n",
		       "virtual machine", who);
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

static void print_event(const char *event)
{
	const char *substitute = pmu_substitute(event);
	struct err err = { 0 };
	const char *why;

	if (!pmu_probe(event, &err)) {
		line(event, 1, "%s", "counts on this machine");
		return;
	}
	why = strstr(err.text, "': "); /* behind "event 'NAME': ", which the line says already */
	why = why ? why + 3 : err.text;
	printf("  %-20s no   %s%s%s%s\n", event, why, substitute ? ": -e NAME=" : "",
	       substitute ?: "", substitute ? " is the nearest that counts" : "");
}

/* The NMI watchdog pins one event a CPU. */
static void print_watchdog(void)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };

	if (buf_read_file(&text, "/proc/sys/kernel/nmi_watchdog", NULL) || text.data[0] != '1')
		return;
	printf("  %-20s on   takes one counter of each CPU: sysctl kernel.nmi_watchdog=0\n",
	       "nmi_watchdog");
}

#define USERS_SHOWN 8

/* Other processes whose events want counters too. */
static void print_users(void)
{
	CLEANUP(free_pointer) struct pmu_user *users = NULL;
	size_t count = 0, i;

	if (pmu_users(&users, &count))
		return;
	for (i = 0; i < count && i < USERS_SHOWN; i++)
		printf("  %-20s %-4u events are open in process %d (%s): hardware events among "
		       "them share the counters, or hold those that they pinned: kill %d frees "
		       "them\n",
		       "other user", users[i].events, users[i].pid, users[i].comm, users[i].pid);
	if (count > USERS_SHOWN)
		printf("  %-20s %zu processes more\n", "other users", count - USERS_SHOWN);
	if (geteuid())
		printf("  %-20s ?    others' processes are shown to root alone\n", "other users");
}

/* Of a host, for its guests. */
static void print_guest_pmu(void)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };

	if (buf_read_file(&text, "/sys/module/kvm/parameters/enable_pmu", NULL) ||
	    text.data[0] != 'N')
		return;
	printf("  %-20s no   guests of this machine get no counters: module option kvm "
	       "enable_pmu=1\n",
	       "kvm");
}

static void print_counters(void)
{
	CLEANUP(free_pointer) struct pmu_capacity *rows = NULL;
	struct err err = { 0 };
	size_t count = 0, i;
	char who[128];

	printf("counters of the CPU\n");
	if (pmu_capacities(&rows, &count, &err))
		printf("  %-20s ?    %s\n", "free", err.text);
	else if (!count)
		printf("  %-20s no   %s\n", "hardware PMU",
		       pmu_is_virtual(NULL, who, sizeof(who))
			       ? "a virtual machine whose host gives it none: QEMU and "
				 "libvirt: -cpu host,pmu=on; clouds: a .metal or larger "
				 "instance"
			       : "the kernel found none in this CPU");
	for (i = 0; i < count; i++) {
		if (rows[i].event)
			printf("  %-20s %-4u are free on CPU %d (that many pinned %s counted at "
			       "once); more events take turns and are scaled\n",
			       rows[i].pmu, rows[i].free, rows[i].cpu, rows[i].event);
		else
			printf("  %-20s ?    none of the usual events can be opened\n",
			       rows[i].pmu);
	}
	print_watchdog();
	print_users();
	print_guest_pmu();
}

static void print_events(void)
{
	const char *const *event;

	printf("events (PMU)\n");
	for (event = pmu_probe_names; *event; event++)
		print_event(*event);
	print_setting("/proc/sys/kernel/perf_event_paranoid", "perf_event_paranoid",
		      "above 0 only root counts whole CPUs: sysctl kernel.perf_event_paranoid=0");
	print_setting("/sys/bus/event_source/devices/cpu/rdpmc", "rdpmc",
		      "0: counters cannot be read without a system call: echo 1 "
		      ">/sys/bus/event_source/devices/cpu/rdpmc");
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
	int usable, status;

	if (!cli_parse(&(struct cli_syntax){ help }, argc, argv, &status))
		return status;
	print_machine();
	usable = print_features();
	print_events();
	print_counters();
	print_compiler();
	return usable ? CLI_OK : CLI_FAILURE;
}
