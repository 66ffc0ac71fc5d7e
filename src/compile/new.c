// SPDX-License-Identifier: BSD-2-Clause
/* `duet new`: a first script that runs everywhere, on software events, and says how to go on. */
#include "compile/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char template[] =
	"// Which process is switched in how often, and how long does it run?\n"
	"//\n"
	"//\tduet run FILE -- ls -lR /usr/lib\tof a command and its children\n"
	"//\tduet run FILE -a -d 5\t\tof the whole system, for 5 seconds\n"
	"//\tduet run FILE -e work=cycles ...\tanother counter (duet list events)\n"
	"#include <duet.h>\n"
	"\n"
	"// A counter on every CPU. -e work=EVENT binds it to another event.\n"
	"PMU(work, \"task-clock\");\n"
	"\n"
	"// Key and value of the table below. The types' names say how to print them.\n"
	"struct who {\n"
	"\tduet_pid pid;\n"
	"\tchar comm[16];\n"
	"};\n"
	"struct use {\n"
	"\tstruct pmu_sum work;\n"
	"\tu64 switches;\n"
	"};\n"
	"HASH(by_process, 10240, struct who, struct use);\n"
	"\n"
	"// Kernel half: runs in the kernel whenever a CPU changes from one thread to the next.\n"
	"static __always_inline int charge(void)\n"
	"{\n"
	"\tstruct who who = { .pid = bpf_get_current_pid_tgid() >> 32 };\n"
	"\tstruct pmu_sum delta;\n"
	"\tstruct use *use;\n"
	"\n"
	"\tif (pmu_lap(work, &delta) || !in_target())\n"
	"\t\treturn 0;\n"
	"\tbpf_get_current_comm(who.comm, sizeof(who.comm));\n"
	"\tuse = map_at(&by_process, &who);\n"
	"\tif (use) {\n"
	"\t\tpmu_add(&use->work, &delta);\n"
	"\t\t__sync_fetch_and_add(&use->switches, 1);\n"
	"\t}\n"
	"\treturn 0;\n"
	"}\n"
	"SEC(\"raw_tp/sched_switch\") int on_switch(void *ctx) { return charge(); }\n"
	"// Without a target: runs once on each CPU at the end, for the slice that still runs.\n"
	"SEC(\"raw_tp\") int flush(void *ctx) { return charge(); }\n"
	"\n"
	"// User half: runs in duet. Both halves see the same maps and global variables.\n"
	"SEC(\"user/exit\") int report(const struct duet_exit *e)\n"
	"{\n"
	"\tprint_map(&by_process, \"sort=-work top=20\");\n"
	"\tprintf(\"%llu processes\\n\", map_count(&by_process));\n"
	"\treturn 0;\n"
	"}\n";

int compile_new(const char *path, struct err *err)
{
	CLEANUP(close_fd)
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	size_t size = sizeof(template) - 1;
	int code;

	if (fd < 0 && errno == EEXIST)
		return err_set(err, -EEXIST, "%s: exists already: choose another name", path);
	if (fd < 0)
		return err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
	if (write(fd, template, size) == (ssize_t)size)
		return 0;
	code = errno ? -errno : -ENOSPC;
	unlink(path);
	return err_set(err, code, "%s: cannot be written: %s", path, strerror(-code));
}
